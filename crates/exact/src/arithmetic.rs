//! Arithmetic and casts that fail or round, rather than wrap and cut off.

pub(crate) mod checked;
pub(crate) mod date;
pub(crate) mod division;
pub(crate) mod rounding;
pub(crate) mod rule;
mod timestamp_string;
