//! What the functions mean that repairs put into plans, for whoever translates a plan.

use crate::arithmetic::checked::CheckedArithmetic;
use crate::arithmetic::rounding::ROUND_HALF_EVEN;
use crate::columns::ColumnFunction;
use crate::comparison::nan::ONE_NAN;
use crate::comparison::timestamp::Finer;
use crate::comparison::zero::UNSIGNED_ZERO;
use datafusion::logical_expr::{Operator, ScalarUDF};

/// What a function of ours stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// `+`, `-` or `*` of two integers or DECIMAL values, with an error where the result does not fit its type.
    Arithmetic(Operator),
    /// The operand of a cast to an integer, rounded half to even.
    RoundHalfEven,
    /// A cast of a date or timestamp to the function's type, which has more digits of a second.
    FinerTimestamp,
    /// The same number, and 0.0 for -0.0.
    UnsignedZero,
    /// The same number, and the one NaN for any.
    OneNan,
}

impl Replacement {
    /// What this function stands for; `None` if it is not one of these.
    pub fn of(function: &ScalarUDF) -> Option<Self> {
        let function = function.inner();
        if let Some(checked) = function.downcast_ref::<CheckedArithmetic>() {
            Some(Replacement::Arithmetic(checked.op()))
        } else if function.is::<Finer>() {
            Some(Replacement::FinerTimestamp)
        } else if function.is::<ColumnFunction>() {
            match function.name() {
                ROUND_HALF_EVEN => Some(Replacement::RoundHalfEven),
                UNSIGNED_ZERO => Some(Replacement::UnsignedZero),
                ONE_NAN => Some(Replacement::OneNan),
                _ => None,
            }
        } else {
            None
        }
    }
}
