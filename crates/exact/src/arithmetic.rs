//! Arithmetic and casts that fail or round, rather than wrap and cut off.

pub(crate) mod checked;
pub(crate) mod date;
mod digits;
pub(crate) mod division;
mod double;
pub(crate) mod interval;
mod real;
pub(crate) mod rounding;
pub(crate) mod rule;
mod timestamp_string;
