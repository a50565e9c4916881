//! DataFusion made exact: what Eris repairs of it, and nothing that knows a catalogue.
//!
//! ```text
//! doors ─ sql ─[exact]─ DataFusion
//! ```
//!
//! Each module says what it repairs, and of what DataFusion does.
//!
//! This crate must not know the catalogue, statements, sessions or the engine.

#![forbid(unsafe_code)]

mod aggregate;
mod arithmetic;
mod columns;
mod comparison;
mod counting;
mod expressions;
mod join;
mod memory;
mod once;
mod replacement;
mod rules;
pub mod scalar;
mod state;
pub mod types;

pub use arithmetic::rounding::before_cast;
pub use counting::counted_input;
pub use memory::spill::{Spill, SpillError};
pub use once::OnceExec;
pub use replacement::Replacement;
pub use rules::{PhysicalRule, insert_before, physical_rules};
pub use state::{session_config, session_state};
