//! Macros: what is put in where their name is called.

use crate::catalog::RelationName;
use crate::text::macros::Definition;
use std::sync::Arc;

/// A name for expressions or queries with parameters.
#[derive(Clone, Debug)]
pub(crate) struct Macro {
    pub name: RelationName,
    /// Whether it is called in FROM.
    pub is_table: bool,
    pub definition: Arc<Definition>,
    /// COMMENT ON MACRO.
    pub comment: Option<String>,
}
