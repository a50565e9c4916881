//! Expressions: compiled once per statement, evaluated by Arrow's kernels on gathered rows.

mod case;
mod cast;
mod compile;
mod error;
mod eval;
mod in_list;
pub(crate) mod ints;
mod literal;
mod pattern;

pub(crate) use compile::{Expression, columns_of};
pub(crate) use error::unexpected;
pub(crate) use eval::Frame;
pub(crate) use literal::integers_to_array;
