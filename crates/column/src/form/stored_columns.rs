//! The columns of a chunk on their way to a file, which somebody writes later.
//!
//! ```text
//! owner ── StoredColumns: the columns, shared ──▶ whoever writes files: their pieces, one behind the other
//! ```
//!
//! Nothing is copied. The columns stay where they are until they are written.

use super::FormWriter;
use crate::chunk::ColumnChunk;
use std::sync::Arc;

/// The columns of a chunk, whose stored form can be written at any time, by any thread.
#[derive(Clone, Debug)]
pub struct StoredColumns {
    columns: Vec<Arc<ColumnChunk>>,
    bytes: usize,
}

impl StoredColumns {
    /// Of columns that are [stored by no order](ColumnChunk::unordered).
    ///
    /// # Panics
    /// If one is.
    pub fn new(columns: Vec<Arc<ColumnChunk>>) -> Self {
        assert!(columns.iter().all(|column| column.order().is_none()));
        let mut stored = StoredColumns { columns, bytes: 0 };
        stored.bytes = stored.writer().len();
        stored
    }

    /// The bytes of the stored form.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pieces of the stored form, one behind the other. The first byte is to lie at a multiple of 64.
    pub fn with_pieces<R>(&self, take: impl FnOnce(&[&[u8]]) -> R) -> R {
        take(&self.writer().pieces().collect::<Vec<_>>())
    }

    fn writer(&self) -> FormWriter<'_> {
        let mut writer = FormWriter::at(0);
        let columns = self.columns.iter();
        columns.for_each(|column| column.store_as_encoded(&mut writer));
        writer
    }
}
