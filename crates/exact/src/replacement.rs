//! What the functions mean that repairs put into plans, for whoever translates a plan.

use crate::arithmetic::checked::CheckedArithmetic;
use crate::arithmetic::rounding::RoundHalfEven;
use crate::comparison::timestamp::Finer;
use crate::comparison::zero::UnsignedZero;
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
}

impl Replacement {
    /// What this function stands for; `None` if it is not one of these.
    pub fn of(function: &ScalarUDF) -> Option<Self> {
        let function = function.inner();
        if let Some(checked) = function.downcast_ref::<CheckedArithmetic>() {
            Some(Replacement::Arithmetic(checked.op()))
        } else if function.is::<RoundHalfEven>() {
            Some(Replacement::RoundHalfEven)
        } else if function.is::<Finer>() {
            Some(Replacement::FinerTimestamp)
        } else {
            let is_zero = function.is::<UnsignedZero>();
            is_zero.then_some(Replacement::UnsignedZero)
        }
    }
}
