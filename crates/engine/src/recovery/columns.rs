//! The columns of rows, read from their stored form.

use super::Wrong;
use crate::error::store_error;
use crate::object::data_object::DataObject;
use arrow_buffer::NullBuffer;
use eris_column::{
    CHUNK_ROWS, ColumnChunk, Dictionary, EncodeError, FormError, FormReader, ObjectMemory,
    Selection, ZoneRange,
};
use eris_kernels::Isa;
use eris_numa::OutOfMemory;
use eris_store::StoreError;
use eris_types::Code;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An object whose columns are read, and the dictionaries that it has so far.
#[derive(Clone, Copy)]
pub(super) struct ColumnsOf<'a> {
    pub object: &'a DataObject,
    pub dictionaries: &'a [Option<Dictionary>],
    /// Whether text of a column was found that has no codes, though there is a dictionary.
    pub plain: &'a [AtomicBool],
    /// `None`: codes are those that were written.
    pub codes: Option<&'a Codes>,
}

/// What has become of the codes of text columns of which strings may be lost: dictionaries have those that are left, in
/// their order.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// By column the new code of each old one. A column that is not here has all codes as they were.
    pub of_columns: BTreeMap<usize, Vec<Option<Code>>>,
}

/// Rows that nobody may see.
#[derive(Debug)]
pub(super) struct Hidden {
    pub rows: Selection,
    /// The columns whose strings are lost.
    pub columns: Vec<usize>,
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
                && self.codes.is_none()
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

    /// The same columns with the codes that their strings have by now; and the rows whose strings are lost, with the
    /// columns of these. In their place is NULL, which nobody may see.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn with_new_codes(
        self,
        columns: Vec<Arc<ColumnChunk>>,
        home: ObjectMemory<'_>,
    ) -> Result<(Vec<Arc<ColumnChunk>>, Hidden), Wrong> {
        let rows = columns.first().map_or(0, |column| column.rows());
        let mut hidden = Hidden {
            rows: Selection::none(rows),
            columns: Vec::new(),
        };
        let Some(codes) = self.codes else {
            return Ok((columns, hidden));
        };
        let all = Selection::all(rows);
        let mut renumbered = Vec::with_capacity(columns.len());
        for (place, column) in columns.into_iter().enumerate() {
            let known = self.dictionaries[place].as_ref().map_or(0, Dictionary::len);
            let map = codes.of_columns.get(&place);
            let is_known = match column.zone().range {
                ZoneRange::Codes(_, greatest) => map.is_none() && (greatest as usize) < known,
                _ => true,
            };
            if !column.is_coded() || is_known {
                renumbered.push(column);
                continue;
            }
            let new = |old: i64| match map {
                Some(map) => *map.get(old as usize)?,
                None => ((old as usize) < known).then_some(Code(old as u32)),
            };
            let mut old = Vec::with_capacity(rows);
            column.gather_integers(Isa::best(), &all, &mut old);
            let validity = column.gather_validity(&all);
            let is_valid = |row| validity.as_ref().is_none_or(|rows| rows.is_valid(row));
            let before = hidden.rows.count();
            let codes: Vec<Option<Code>> = (old.iter().enumerate())
                .map(|(row, old)| {
                    let code = is_valid(row).then(|| new(*old));
                    if code == Some(None) {
                        hidden.rows.insert(row);
                    }
                    code.flatten()
                })
                .collect();
            if hidden.rows.count() > before {
                hidden.columns.push(place);
            }
            let nulls: NullBuffer = codes.iter().map(Option::is_some).collect();
            let codes: Vec<u32> = codes
                .iter()
                .map(|code| code.map_or(0, |code| code.0))
                .collect();
            let column = ColumnChunk::encode_codes(&codes, Some(&nulls), home);
            let column = column.map_err(|error| match error {
                EncodeError::OutOfMemory(denied) => self.out_of_memory(denied),
                other => self.wrong(&other.to_string()),
            })?;
            renumbered.push(Arc::new(column));
        }
        Ok((renumbered, hidden))
    }

    pub fn out_of_memory(self, denied: OutOfMemory) -> Wrong {
        let denied = StoreError::OutOfMemory(denied);
        Wrong::Failed(store_error(&self.object.name, &denied))
    }

    pub fn wrong(self, reason: &str) -> Wrong {
        Wrong::Damaged(format!("table {}: {reason}", self.object.name))
    }
}
