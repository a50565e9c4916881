//! Comparisons of what DataFusion would first make equal in type, and so lose a part of.

pub(crate) mod decimal;
mod interval;
pub(crate) mod membership;
pub(crate) mod timestamp;
