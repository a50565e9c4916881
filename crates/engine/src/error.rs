//! What can go wrong in the engine: what can go wrong in any home.

use eris_column::EncodeError;
pub use eris_home::HomeError as EngineError;
use eris_store::StoreError;

/// Why rows of a table, or their deletion, could not be staged.
pub(crate) fn store_error(table: &str, error: &StoreError) -> EngineError {
    let table = table.to_owned();
    match error {
        StoreError::OutOfMemory(refused)
        | StoreError::Encode {
            source: EncodeError::OutOfMemory(refused),
            ..
        } => EngineError::OutOfMemory {
            table,
            reason: refused.to_string(),
        },
        other => EngineError::Store {
            table,
            reason: other.to_string(),
        },
    }
}
