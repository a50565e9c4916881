//! Rows of a chunk that become another owner's, one column at a time, so that this one can do other work in between.
//!
//! ```text
//! link   chunk ─ columns ─────────────────────▶ uncommitted chunk        the same columns, without a copy
//! copy   chunk ─ living rows ─▶ encoded anew ─▶ uncommitted chunk        in the memory of the new owner
//! ```
//!
//! The rows are uncommitted like new ones: they get ids of their own, and are inserted by the statement's commit, which
//! deletes the old ones.

use crate::join::Recoder;
use crate::uncommitted::{UncommittedChunk, encode_column, encode_error};
use crate::{Chunk, StoreError};
use eris_column::{ColumnChunk, Selection};
use eris_types::ColumnId;
use std::sync::Arc;

/// Rows that are being adopted.
#[derive(Debug)]
pub struct Adoption {
    source: Arc<Chunk>,
    living: Selection,
    columns: Vec<Arc<ColumnChunk>>,
}

impl Adoption {
    /// Of all rows, with the columns as they are.
    pub fn link(source: &Arc<Chunk>) -> Self {
        Adoption {
            living: Selection::all(source.rows()),
            columns: source.columns().to_vec(),
            source: source.clone(),
        }
    }

    /// Of some rows, one at least; nothing is copied yet.
    pub fn copy(source: &Arc<Chunk>, living: Selection) -> Self {
        Adoption {
            source: source.clone(),
            living,
            columns: Vec::new(),
        }
    }

    /// How many rows they are.
    pub fn rows(&self) -> usize {
        self.living.count()
    }

    /// Whether nothing is left to copy.
    pub fn is_done(&self) -> bool {
        self.columns.len() == self.source.columns().len()
    }

    /// Copies the next column. One that is stored by a key order is stored by it again, and text that has no codes gets
    /// none.
    ///
    /// # Errors
    /// The memory of the home is exhausted.
    pub fn step(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        let place = self.columns.len();
        let source = self.source.column(ColumnId(place as u32));
        let field = recoder.schema.field(place);
        let known = recoder.known[place].as_ref();
        let values = source.select(&self.living, field.data_type(), known);
        let coding = recoder.coding[place].as_ref();
        let coding = coding.filter(|_| source.is_coded());
        let mut column = encode_column(&values, field.name(), coding, recoder.home)?;
        if let Some(order) = source.order() {
            let stored = column.stored_by(order, recoder.home);
            if let Some(stored) = stored.map_err(|source| encode_error(field.name(), source))? {
                column = stored;
            }
        }
        self.columns.push(Arc::new(column));
        Ok(())
    }

    /// The columns that are done, in the order of the schema.
    pub fn columns(&self) -> &[Arc<ColumnChunk>] {
        &self.columns
    }

    pub(crate) fn finish(self) -> UncommittedChunk {
        assert!(self.is_done());
        let rows = self.rows();
        // Columns that are linked are in a chunk file already, or will be once.
        let is_linked = (self.columns.iter().zip(self.source.columns()))
            .all(|(column, source)| Arc::ptr_eq(column, source));
        let mut chunk = UncommittedChunk::new(self.columns, rows);
        if is_linked && !chunk.few && self.source.number().is_open() {
            chunk.number = self.source.number().clone();
        }
        chunk
    }
}
