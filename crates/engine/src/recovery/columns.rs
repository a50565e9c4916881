//! The columns of rows, read from their stored form.

use super::Wrong;
use crate::error::store_error;
use crate::object::data_object::DataObject;
use eris_column::{
    CHUNK_ROWS, ColumnChunk, Dictionary, FormError, FormReader, ObjectMemory, ZoneRange,
};
use eris_numa::OutOfMemory;
use eris_store::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An object whose columns are read, and the dictionaries that it has so far.
#[derive(Clone, Copy)]
pub(super) struct ColumnsOf<'a> {
    pub object: &'a DataObject,
    pub dictionaries: &'a [Option<Dictionary>],
    /// Whether text of a column was found that has no codes, though there is a dictionary.
    pub plain: &'a [AtomicBool],
}

impl ColumnsOf<'_> {
    /// The dictionaries whose codes rows get. Where text repeats too little, new rows have got none, and none of them
    /// will.
    pub fn coding(self) -> Vec<Option<Dictionary>> {
        let columns = self.dictionaries.iter().zip(self.plain);
        let coding = columns.map(|(dictionary, plain)| {
            let has_codes = !plain.load(Ordering::Relaxed);
            dictionary.clone().filter(|_| has_codes)
        });
        coding.collect()
    }

    /// Reads the columns of some rows from their stored form.
    ///
    /// # Errors
    /// They are none of this object, or there is no memory for them.
    pub fn read(
        self,
        rows: usize,
        mut reader: FormReader<'_>,
        home: ObjectMemory<'_>,
    ) -> Result<Vec<Arc<ColumnChunk>>, Wrong> {
        if !(1..=CHUNK_ROWS).contains(&rows) {
            return Err(self.wrong(&format!("a chunk of {rows} rows")));
        }
        let mut columns = Vec::with_capacity(self.object.schema.fields().len());
        for (place, field) in self.object.schema.fields().iter().enumerate() {
            let column = ColumnChunk::read(&mut reader, field.data_type(), rows, home);
            let column = column.map_err(|error| match error {
                FormError::OutOfMemory(denied) => self.out_of_memory(denied),
                other => self.wrong(&format!("column {}: {other}", field.name())),
            })?;
            let codes = self.dictionaries[place].as_ref().map_or(0, Dictionary::len);
            if column.is_coded()
                && let ZoneRange::Codes(_, greatest) = column.zone().range
                && greatest as usize >= codes
            {
                return Err(self.wrong(&format!(
                    "column {}: code {greatest} of {codes}",
                    field.name()
                )));
            }
            let is_plain = !column.is_coded() && column.zone().range != ZoneRange::Empty;
            if is_plain && self.dictionaries[place].is_some() {
                self.plain[place].store(true, Ordering::Relaxed);
            }
            columns.push(Arc::new(column));
        }
        match reader.rest().is_empty() {
            true => Ok(columns),
            false => Err(self.wrong("rows are followed by bytes that belong to nothing")),
        }
    }

    pub fn out_of_memory(self, denied: OutOfMemory) -> Wrong {
        let denied = StoreError::OutOfMemory(denied);
        Wrong::Failed(store_error(&self.object.name, &denied))
    }

    pub fn wrong(self, reason: &str) -> Wrong {
        Wrong::Damaged(format!("table {}: {reason}", self.object.name))
    }
}
