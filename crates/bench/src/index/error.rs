//! What can go wrong.

use eris_engine::EngineError;
use eris_fragment::FragmentError;
use eris_index::IndexError;

/// Why indexes could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum IndexBenchError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A fragment failed.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// An index rejected a key.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The engine's memory could not be had.
    #[error("cannot reserve memory: {0}")]
    Memory(String),
    /// The program with the rivals failed.
    #[error("{program}: {reason}")]
    Rival {
        /// Its file.
        program: String,
        /// What it said, or what became of it.
        reason: String,
    },
    /// A structure has lost keys.
    #[error(
        "{structure} found {found} of {asked} keys that were put in; its numbers would mean nothing"
    )]
    WrongAnswer {
        /// Which.
        structure: String,
        /// Keys with their values.
        found: u64,
        /// All keys asked for.
        asked: u64,
    },
}
