//! Values of a key's columns, each once: what a statement remembers of its rows to check foreign keys.
//!
//! A key of one integer is kept as that, for there may be millions; any other as the bytes that Arrow makes of a row.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::reserved::Reserved;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::HashSet;
use std::sync::Arc;

/// A set of keys, none of which has a NULL.
pub(super) struct KeySet {
    types: Vec<DataType>,
    keys: KnownKeys,
    /// Bytes in rows.
    bytes: usize,
    counted: usize,
    reserved: Reserved,
}

enum KnownKeys {
    Numbers(HashSet<i64>),
    Rows(RowConverter, HashSet<Box<[u8]>>),
}

/// Whether a key of these types is one number of 64 bits.
pub(super) fn is_number(types: &[DataType]) -> bool {
    use DataType::{Date32, Int8, Int16, Int32, Int64};
    matches!(types, [Int8 | Int16 | Int32 | Int64 | Date32])
}

impl KeySet {
    /// An empty set of keys of these types.
    pub fn new(context: &StatementContext, types: Vec<DataType>) -> Result<Self, SqlError> {
        let keys = match is_number(&types) {
            true => KnownKeys::Numbers(HashSet::default()),
            false => {
                let fields = types.iter().cloned().map(SortField::new).collect();
                KnownKeys::Rows(RowConverter::new(fields)?, HashSet::default())
            }
        };
        Ok(KeySet {
            types,
            keys,
            bytes: 0,
            counted: 0,
            reserved: Reserved::new(context.home.budget()),
        })
    }

    /// Adds keys, given as one array per column; the positions of those that are new.
    pub fn add(&mut self, columns: &[ArrayRef]) -> Result<Vec<u32>, SqlError> {
        let mut fresh = Vec::new();
        match &mut self.keys {
            KnownKeys::Numbers(known) => {
                let numbers = cast(&columns[0], &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>().values();
                let mut before = None;
                for (row, &number) in (0..).zip(numbers.iter()) {
                    // Rows often come sorted.
                    if before != Some(number) && known.insert(number) {
                        fresh.push(row);
                    }
                    before = Some(number);
                }
            }
            KnownKeys::Rows(converter, known) => {
                let rows = converter.convert_columns(columns)?;
                for (number, row) in (0..).zip(rows.iter()) {
                    if !known.contains(row.data()) {
                        self.bytes += row.data().len();
                        known.insert(row.data().into());
                        fresh.push(number);
                    }
                }
            }
        }
        let memory = self.memory();
        self.reserved.grow(memory.saturating_sub(self.counted))?;
        self.counted = self.counted.max(memory);
        Ok(fresh)
    }

    fn memory(&self) -> usize {
        match &self.keys {
            KnownKeys::Numbers(known) => known.capacity() * (size_of::<i64>() + 1),
            KnownKeys::Rows(_, known) => {
                known.capacity() * (size_of::<Box<[u8]>>() + 1) + self.bytes
            }
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        match &self.keys {
            KnownKeys::Numbers(known) => known.len(),
            KnownKeys::Rows(_, known) => known.len(),
        }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.bytes = 0;
        match &mut self.keys {
            KnownKeys::Numbers(known) => known.clear(),
            KnownKeys::Rows(_, known) => known.clear(),
        }
    }

    /// Takes out the keys that another set of the same columns has.
    pub fn subtract(&mut self, other: &KeySet) {
        self.retain(other, false);
    }

    /// Leaves only the keys that another set of the same columns has, too.
    pub fn intersect(&mut self, other: &KeySet) {
        self.retain(other, true);
    }

    fn retain(&mut self, other: &KeySet, common: bool) {
        match (&mut self.keys, &other.keys) {
            (KnownKeys::Numbers(own), KnownKeys::Numbers(other)) => {
                own.retain(|number| other.contains(number) == common);
            }
            (KnownKeys::Rows(_, own), KnownKeys::Rows(_, other)) => {
                own.retain(|row| other.contains(row) == common);
            }
            _ => unreachable!("sets of the same columns are of one kind"),
        }
    }

    /// The keys, as one array per column.
    pub fn arrays(&self) -> Result<Vec<ArrayRef>, SqlError> {
        match &self.keys {
            KnownKeys::Numbers(known) => self.numbers(known.iter().copied()),
            KnownKeys::Rows(converter, known) => {
                let parser = converter.parser();
                let rows = known.iter().map(|row| parser.parse(row));
                Ok(converter.convert_rows(rows)?)
            }
        }
    }

    /// The least key, the same way; nothing if there is none.
    pub fn least(&self) -> Result<Vec<ArrayRef>, SqlError> {
        match &self.keys {
            KnownKeys::Numbers(known) => self.numbers(known.iter().min().copied()),
            KnownKeys::Rows(converter, known) => {
                let parser = converter.parser();
                let least = known.iter().min().map(|row| parser.parse(row));
                Ok(converter.convert_rows(least)?)
            }
        }
    }

    fn numbers(&self, numbers: impl IntoIterator<Item = i64>) -> Result<Vec<ArrayRef>, SqlError> {
        let numbers: Int64Array = numbers.into_iter().map(Some).collect();
        let numbers: ArrayRef = Arc::new(numbers);
        // By way of a number of its own width, for a date is no number to Arrow.
        let narrow = match &self.types[0] {
            DataType::Date32 => cast(&numbers, &DataType::Int32)?,
            _ => numbers,
        };
        Ok(vec![cast(&narrow, &self.types[0])?])
    }
}
