//! What a kernel's failure means to the user.

use arrow_schema::ArrowError;
use eris_fragment::FragmentError;
use std::sync::Arc;

/// An expression that failed on a value.
#[derive(Debug, thiserror::Error)]
#[error("{} in {expression}", reason(.source))]
struct EvaluationError {
    source: ArrowError,
    expression: Arc<str>,
}

/// Why, in the user's terms.
fn reason(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".to_owned(),
        ArrowError::CastError(reason)
        | ArrowError::ParseError(reason)
        | ArrowError::ComputeError(reason)
        | ArrowError::InvalidArgumentError(reason) => reason.clone(),
        other => other.to_string(),
    }
}

/// The failure of an Arrow kernel that evaluated `expression`.
pub(super) fn kernel(error: ArrowError, expression: &Arc<str>) -> FragmentError {
    match error {
        ArrowError::ArithmeticOverflow(_) => FragmentError::Overflow {
            what: expression.to_string(),
        },
        source => FragmentError::Evaluation(Arc::new(EvaluationError {
            source,
            expression: expression.clone(),
        })),
    }
}

/// Failures that compiled types rule out.
pub(crate) fn unexpected(error: ArrowError) -> FragmentError {
    kernel(error, &"an expression".into())
}
