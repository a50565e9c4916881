//! What a kernel's failure means to the user.

use arrow_schema::ArrowError;
use eris_fragment::FragmentError;
use std::sync::Arc;

/// An expression that failed on a value.
#[derive(Debug, thiserror::Error)]
#[error("{reason} in {expression}")]
struct EvaluationError {
    reason: String,
    expression: Arc<str>,
}

/// The failure of `expression` for a reason in the user's terms.
fn evaluation(reason: impl Into<String>, expression: &Arc<str>) -> FragmentError {
    FragmentError::Evaluation(Arc::new(EvaluationError {
        reason: reason.into(),
        expression: expression.clone(),
    }))
}

/// The failure of an Arrow kernel that evaluated `expression`.
pub(super) fn kernel(error: ArrowError, expression: &Arc<str>) -> FragmentError {
    match error {
        ArrowError::DivideByZero => evaluation("division by zero", expression),
        ArrowError::ArithmeticOverflow(_) => FragmentError::Overflow {
            what: expression.to_string(),
        },
        ArrowError::CastError(reason)
        | ArrowError::ParseError(reason)
        | ArrowError::ComputeError(reason)
        | ArrowError::InvalidArgumentError(reason) => evaluation(reason, expression),
        other => evaluation(other.to_string(), expression),
    }
}
