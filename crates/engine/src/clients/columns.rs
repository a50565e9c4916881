//! The column interface between a query engine and its storage, over whole tables (elastic OLAP paper, Sections 2.1 and
//! 4.2, Listing 1).
//!
//! ```text
//! Listing 1                                     here
//! ColumnPosition append(ColumnValue)            Column::append(value) -> position
//! ColumnValue get(ColumnPosition)               Column::get(position)
//! void set(ColumnPosition, ColumnValue)         Column::set(position, value)
//! ColumnPositionList scan(comparator, value,    ColumnSnapshot::scan(&[one or two conditions], positions)
//!                         positions)
//! Array<ColumnValue> materialize(positions)     ColumnSnapshot::materialize(positions)
//! ColumnPositionList joinProbe(keys, positions) ColumnSnapshot::join_probe(keys, positions)
//! size_t size() · void restore(values)          ColumnSnapshot::size() · Column::restore(values)
//!
//! table    position, its key │ value            position   0 ········ │ ········ │ ········ size
//!                                               owner           0     │     1    │     2
//! ```
//!
//! A column is a table of positions and values, so all owners take part, and positions may get other owners. Single
//! values go to their owner by the key; whatever reads many is a fragment, which is pushed down as any other is. Where
//! the paper passes an empty position list for "the whole column", `None` does so here, and an empty list has no rows.
//! Values are 64-bit integers or strings; as in the paper there is no NULL.
//!
//! What changes a column is a statement of its own. What reads many values does so at a snapshot.

mod snapshot;

pub use snapshot::ColumnSnapshot;

use super::engine::Engine;
use crate::error::EngineError;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_column::CHUNK_ROWS;
use eris_fragment::{FragmentError, Type, Value};
use eris_home::{Newest, Partitioning};
use eris_types::{ColumnId, ObjectId};
use std::fmt;
use std::sync::Arc;

const POSITION: ColumnId = ColumnId(0);
const VALUE: ColumnId = ColumnId(1);

/// The place of a value in a [`Column`], from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnPosition(pub u64);

impl fmt::Display for ColumnPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}", self.0)
    }
}

/// Why an operation on a [`Column`] failed; the column is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// There is no such position.
    #[error("{position} is beyond the column's {size} values")]
    Position {
        /// The position asked for.
        position: ColumnPosition,
        /// The size of the column.
        size: u64,
    },
    /// The value is not of the column's type.
    #[error("{value:?} in a column of {expected}")]
    Type {
        /// The type of the column's values.
        expected: Type,
        /// The value that was given.
        value: Value,
    },
    /// A scan takes one or two conditions.
    #[error("{0} conditions for a scan that takes one or two")]
    Conditions(usize),
    /// The table could not be read at single positions or changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The table could not be scanned.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
}

/// A growing sequence of 64-bit integers or strings, over all owners. Clones are the same column.
#[derive(Clone, Debug)]
pub struct Column {
    engine: Engine,
    object: ObjectId,
    data_type: Type,
    schema: SchemaRef,
}

impl Column {
    /// An empty column of integers.
    ///
    /// # Errors
    /// Those of [`Engine::create_with_key`].
    pub fn of_integers(engine: &Engine, name: &str) -> Result<Self, EngineError> {
        Self::create(engine, name, Type::Int64)
    }

    /// An empty column of strings.
    ///
    /// # Errors
    /// Those of [`Engine::create_with_key`].
    pub fn of_strings(engine: &Engine, name: &str) -> Result<Self, EngineError> {
        Self::create(engine, name, Type::String)
    }

    fn create(engine: &Engine, name: &str, data_type: Type) -> Result<Self, EngineError> {
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("position", DataType::Int64, false),
            Field::new("value", (&data_type).into(), false),
        ]));
        let key = [POSITION];
        let object = engine.create_with_key(name, schema.clone(), Partitioning::Size, &key)?;
        Ok(Column {
            engine: engine.clone(),
            object,
            data_type,
            schema,
        })
    }

    /// The table that it is.
    pub fn object(&self) -> ObjectId {
        self.object
    }

    /// The column as it is now: later changes do not show in it.
    pub fn snapshot(&self) -> ColumnSnapshot {
        ColumnSnapshot::new(self.clone(), self.engine.hold())
    }

    /// The same for whoever has the write lock.
    fn applied(&self) -> ColumnSnapshot {
        ColumnSnapshot::new(self.clone(), self.engine.hold_applied())
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// The value is of the wrong type, or the row cannot be written.
    pub async fn append(&self, value: Value) -> Result<ColumnPosition, ColumnError> {
        let values = self.array(&[value])?;
        // Whoever changes the column waits for this one: the end stays where it is.
        let mut writer = self.engine.changer(self.object).await?;
        let end = self.applied().size().await?;
        writer.append(self.rows(end, values)).await?;
        writer.commit().await?;
        Ok(ColumnPosition(end))
    }

    /// The newest value at a position.
    ///
    /// # Errors
    /// There is no such position, or its owner cannot be asked.
    pub async fn get(&self, position: ColumnPosition) -> Result<Value, ColumnError> {
        let mut rows = self.engine.rows(self.object)?;
        let found = rows.get(&[positions(&[position])], &[VALUE]).await?;
        match self.values(found.rows.column(0)).pop() {
            Some(value) => Ok(value),
            None => Err(self.beyond(position).await?),
        }
    }

    /// Replaces the value at a position.
    ///
    /// # Errors
    /// There is no such position, the value is of the wrong type, or the row cannot be written.
    pub async fn set(&self, position: ColumnPosition, value: Value) -> Result<(), ColumnError> {
        let values = self.array(&[value])?;
        let mut rows = self.engine.rows(self.object)?;
        let (key, columns) = ([positions(&[position])], Arc::from([VALUE]));
        loop {
            let found = rows.find(&key, &columns, Newest::Applied).await?;
            if found.rows.num_rows() == 0 {
                return Err(self.beyond(position).await?);
            }
            let row = self.rows(position.0, values.clone());
            if rows.put_if_unchanged(&found, row).await? {
                return Ok(());
            }
        }
    }

    /// Replaces all values, at once for everybody who reads them.
    ///
    /// # Errors
    /// A value is of the wrong type, or there is no memory.
    pub async fn restore(&self, values: &[Value]) -> Result<(), ColumnError> {
        let pieces = values.chunks(CHUNK_ROWS).map(|values| self.array(values));
        let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
        let mut writer = self.engine.changer(self.object).await?;
        let old = self.applied().row_ids().await?;
        writer.delete(old.into_iter())?;
        let mut first = 0;
        for values in pieces {
            let rows = self.rows(first, values);
            first += rows.num_rows() as u64;
            writer.append(rows).await?;
        }
        writer.commit().await?;
        Ok(())
    }

    async fn beyond(&self, position: ColumnPosition) -> Result<ColumnError, ColumnError> {
        let size = self.snapshot().size().await?;
        Ok(ColumnError::Position { position, size })
    }

    /// Rows of the table: these values, from a position on.
    fn rows(&self, first: u64, values: ArrayRef) -> RecordBatch {
        let first = first as i64;
        let positions = Int64Array::from_iter_values(first..first + values.len() as i64);
        RecordBatch::try_new(self.schema.clone(), vec![Arc::new(positions), values])
            .expect("arrays of the table's types")
    }

    /// Values as the table stores them.
    fn array(&self, values: &[Value]) -> Result<ArrayRef, ColumnError> {
        let wrong = |value: &Value| ColumnError::Type {
            expected: self.data_type.clone(),
            value: value.clone(),
        };
        if self.data_type == Type::Int64 {
            let integer = |value: &Value| match value {
                Value::Integer(integer) => i64::try_from(*integer).map_err(|_| wrong(value)),
                _ => Err(wrong(value)),
            };
            let integers = values
                .iter()
                .map(integer)
                .collect::<Result<Vec<i64>, _>>()?;
            return Ok(Arc::new(Int64Array::from(integers)));
        }
        let strings = values
            .iter()
            .map(|value| match value {
                Value::String(string) => Ok(string.as_str()),
                _ => Err(wrong(value)),
            })
            .collect::<Result<Vec<&str>, _>>()?;
        Ok(Arc::new(StringViewArray::from(strings)))
    }

    /// Values that the table has stored.
    fn values(&self, array: &ArrayRef) -> Vec<Value> {
        if self.data_type == Type::Int64 {
            let integers = array.as_primitive::<Int64Type>().values().iter();
            return integers
                .map(|&integer| Value::Integer(integer.into()))
                .collect();
        }
        let strings = array.as_string_view().iter().flatten();
        strings
            .map(|string| Value::String(string.to_owned()))
            .collect()
    }
}

/// Positions as the table stores them.
fn positions(positions: &[ColumnPosition]) -> ArrayRef {
    let positions = positions.iter().map(|position| position.0 as i64);
    Arc::new(Int64Array::from_iter_values(positions))
}
