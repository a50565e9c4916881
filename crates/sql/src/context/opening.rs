//! A definition that is made again when a database is opened, instead of anew by a user.

use super::StatementContext;
use crate::catalog::{DataSource, RelationName, Sequence, StoredObjects};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a definition has from before.
#[derive(Debug)]
pub(crate) struct Opening {
    pub objects: Arc<StoredObjects>,
    /// The sequences of columns, by table and column.
    pub sequences: Arc<BTreeMap<(RelationName, String), Arc<Sequence>>>,
}

impl StatementContext {
    /// For statements of a definition that was stored. Its rows are there, and keep their rules.
    pub fn for_opening(&self, opening: Opening) -> Self {
        StatementContext {
            opening: Some(Arc::new(opening)),
            ..self.clone()
        }
    }

    /// Whether what is defined was there before.
    pub fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Where data objects come from.
    pub fn data_source(&self) -> DataSource {
        match &self.opening {
            Some(opening) => DataSource::stored(&self.home, &opening.objects),
            None => DataSource::new(&self.home),
        }
    }

    /// The sequence that a column had before.
    pub fn sequence_before(&self, table: &RelationName, column: &str) -> Option<Arc<Sequence>> {
        let sequences = &self.opening.as_ref()?.sequences;
        sequences.get(&(table.clone(), column.to_owned())).cloned()
    }
}
