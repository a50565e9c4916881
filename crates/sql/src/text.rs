//! The text of a statement: cut out of a script, parsed, and rewritten to what DataFusion is to plan.
//!
//! ```text
//! script ── statement: split ── parse (lexeme, depth, precedence) ── tree ── rewrite ── tree for the planner
//! ```
//!
//! Nothing here knows the catalogue: a name is still a name.

pub(crate) mod depth;
mod from_first;
pub(crate) mod identifier;
pub(crate) mod lexeme;
mod limits;
pub(crate) mod mistakes;
pub(crate) mod named_windows;
pub(crate) mod names;
mod nested_with;
mod operators;
pub(crate) mod parameter;
pub(crate) mod parse;
pub(crate) mod precedence;
pub(crate) mod reject;
pub(crate) mod rewrite;
mod sample;
pub(crate) mod set_all;
pub(crate) mod shorthand;
pub(crate) mod statement;
pub(crate) mod transaction;
pub(crate) mod using;
mod values;
