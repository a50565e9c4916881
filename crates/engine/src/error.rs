//! What can go wrong in the engine: what can go wrong in any home.

use eris_column::EncodeError;
pub use eris_home::HomeError as EngineError;
use eris_store::StoreError;

/// Why rows of a table, or their deletion, could not be written.
pub(crate) fn store_error(table: &str, error: &StoreError) -> EngineError {
    let table = table.to_owned();
    match error {
        StoreError::OutOfMemory(denied)
        | StoreError::Encode {
            source: EncodeError::OutOfMemory(denied),
            ..
        } => EngineError::OutOfMemory {
            table,
            reason: denied.to_string(),
        },
        other => EngineError::Store {
            table,
            reason: other.to_string(),
        },
    }
}
