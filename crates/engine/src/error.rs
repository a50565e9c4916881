//! What can go wrong in the engine: what can go wrong in any home.

pub use eris_home::HomeError as EngineError;
