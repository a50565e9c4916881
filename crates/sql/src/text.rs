//! The text of a statement: cut out of a script, parsed, and rewritten to what DataFusion is to plan.
//!
//! ```text
//! script ── statement: split ── parse (lexeme, depth, precedence) ── tree ── rewrite ── tree for the planner
//! ```
//!
//! Nothing here knows the catalogue: a name is still a name.

mod asof;
mod cast_keys;
pub(crate) mod clause_tokens;
mod column_lists;
mod commas;
pub(crate) mod depth;
mod duckdb_catalog;
mod from_first;
pub(crate) mod generated;
pub(crate) mod identifier;
mod intervals;
mod lambdas;
pub(crate) mod lexeme;
mod limits;
pub(crate) mod macros;
pub(crate) mod mistakes;
pub(crate) mod named_windows;
pub(crate) mod names;
mod nested_with;
mod operators;
mod order_by_all;
mod own;
pub(crate) mod parameter;
pub(crate) mod parse;
mod pivot;
mod pivot_tokens;
mod pragma;
pub(crate) mod precedence;
pub(crate) mod qualify;
pub(crate) mod questions;
pub(crate) mod reject;
pub(crate) mod rewrite;
mod sample;
mod sample_tokens;
mod series;
pub(crate) mod set_all;
pub(crate) mod shorthand;
pub(crate) mod statement;
mod tokens;
pub(crate) mod transaction;
mod tuples;
pub(crate) mod using;
mod values;
mod wildcards;
