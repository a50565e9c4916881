//! A system table: name, columns, and what computes its rows.

use crate::context::StatementContext;
use crate::error::SqlError;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use eris_exact::types::ZONE;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A system table.
pub(crate) struct SystemTable {
    pub name: &'static str,
    pub columns: &'static [(&'static str, CellType)],
    pub rows: ComputeRows,
}

/// Computes rows, each with one cell per column.
pub(crate) type ComputeRows =
    fn(&StatementContext) -> BoxFuture<'_, Result<Vec<Vec<Cell>>, SqlError>>;

/// The types of columns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CellType {
    Text,
    Number,
    Real,
    Truth,
    Time,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Number(i64),
    Real(f64),
    Truth(bool),
    /// Microseconds since 1970.
    Time(i64),
}

impl SystemTable {
    pub fn schema(&self) -> SchemaRef {
        let field = |(name, kind): &(&str, CellType)| Field::new(*name, kind.data_type(), true);
        Arc::new(Schema::new(
            self.columns.iter().map(field).collect::<Vec<_>>(),
        ))
    }

    /// The rows as they are now.
    pub async fn compute(&self, context: &StatementContext) -> Result<RecordBatch, SqlError> {
        let rows = (self.rows)(context).await?;
        let columns = self.columns.iter().enumerate();
        let columns = columns.map(|(position, (_, kind))| {
            let cells = rows.iter().map(|row| {
                debug_assert_eq!(row.len(), self.columns.len(), "{}", self.name);
                &row[position]
            });
            kind.array(cells)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.schema(), columns.collect(), &options)
            .map_err(|error| SqlError::from_datafusion(error.into()))
    }
}

impl CellType {
    fn data_type(self) -> DataType {
        match self {
            CellType::Text => DataType::Utf8View,
            CellType::Number => DataType::Int64,
            CellType::Real => DataType::Float64,
            CellType::Truth => DataType::Boolean,
            CellType::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        }
    }

    fn array<'a>(self, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
        macro_rules! collect {
            ($array:ty, $cell:ident) => {
                cells
                    .map(|cell| match cell {
                        Cell::$cell(value) => Some(value.clone()),
                        _ => None,
                    })
                    .collect::<$array>()
            };
        }
        match self {
            CellType::Text => Arc::new(collect!(StringViewArray, Text)),
            CellType::Number => Arc::new(collect!(Int64Array, Number)),
            CellType::Real => Arc::new(collect!(Float64Array, Real)),
            CellType::Truth => Arc::new(collect!(BooleanArray, Truth)),
            CellType::Time => {
                Arc::new(collect!(TimestampMicrosecondArray, Time).with_timezone(ZONE))
            }
        }
    }
}

/// A row of values that convert to cells.
macro_rules! row {
    ($($value:expr),+ $(,)?) => {
        vec![$($crate::system::relation::Cell::from($value)),+]
    };
}
pub(crate) use row;

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Cell::Text(text.clone())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Truth(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Real(value)
    }
}

impl From<SystemTime> for Cell {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Cell::Time(since.as_micros() as i64)
    }
}

macro_rules! numbers {
    ($($native:ty),+) => {
        $(
            impl From<$native> for Cell {
                /// Numbers beyond BIGINT, which nothing here counts to, become the greatest.
                fn from(value: $native) -> Self {
                    Cell::Number(i64::try_from(value).unwrap_or(i64::MAX))
                }
            }
        )+
    };
}
numbers!(u8, u16, u32, i32, i64, u64, usize);
