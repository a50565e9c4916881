//! Frames: relations of the calling program, such as a DataFrame, read like files.
//!
//! ```text
//! program   Frame::read(columns, conditions) ── batches as the program has them
//!                                                  │ one worker at a time asks for the next one
//! workers   slices of 65,536 rows ── validated ── cast to the types of SQL ── batches of a plan
//! ```
//!
//! Nothing is copied that has the right type already. What the program gives is not trusted: the types are compared
//! with what was declared, and offsets, codes and texts are checked before anybody reads them.

mod checked;
mod condition;
mod fault;
mod types;

pub use condition::{Comparison, Condition, ConditionTest};
pub use fault::{FrameError, FrameFault, FrameFaultKind};

use self::checked::{check_batch, check_slice};
use crate::calendar;
use crate::error::{FileError, FileFaultKind};
use crate::foreign::without_null_entries;
use crate::progress::ReadProgress;
use crate::scan::{FileBytes, FileReading, FileSource, FileTable};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::TableProvider;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that a worker takes at once: as many as a chunk has.
const ROWS: usize = 65_536;
/// What a value is taken to need, where only the number of rows is known.
const BYTES_PER_VALUE: u64 = 8;
/// Rows that a frame is taken to have if it does not know.
const UNKNOWN_ROWS: u64 = 1 << 20;

/// A relation of the calling program. Its functions are called on threads that may wait, never on a worker of the
/// engine.
pub trait Frame: Send + Sync + fmt::Debug {
    /// What kind of object it is, for EXPLAIN, such as `polars.DataFrame`.
    fn kind(&self) -> &str;

    /// Its columns, in Arrow's types.
    fn schema(&self) -> SchemaRef;

    /// How many rows it has, if that is known before it is read.
    fn rows(&self) -> Option<u64>;

    /// Whether it looks at conditions.
    fn takes_conditions(&self) -> bool {
        false
    }

    /// Begins to read these columns, given by their positions in the schema: the batches have these and no others, in
    /// this order, in the types of the schema. Rows for which a condition does not hold may be left out.
    ///
    /// # Errors
    /// Whatever the program fails with, such as that it can be read only once.
    fn read(&self, columns: &[usize], conditions: &[Condition])
    -> Result<FrameBatches, FrameError>;
}

/// Batches of a frame. The first error ends them.
pub type FrameBatches = Box<dyn Iterator<Item = Result<RecordBatch, FrameError>> + Send>;

/// The frame as a table that a statement calls by this name.
///
/// # Errors
/// A column has a type that SQL does not have, or two have one name, or there is none.
pub fn frame_table(
    name: &str,
    frame: Arc<dyn Frame>,
    progress: &ReadProgress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    let name: Arc<str> = name.into();
    let given = frame.schema();
    let schema = types::schema(&given).map_err(|(column, kind)| fault(&name, column, kind))?;
    let source = FrameSource {
        name,
        given,
        schema: Arc::new(schema),
        frame,
    };
    Ok(Arc::new(FileTable::new(Arc::new(source), progress.clone())))
}

fn fault(frame: &Arc<str>, column: Option<String>, kind: FrameFaultKind) -> FileError {
    FileError::Frame(Arc::new(FrameFault::new(frame, column, kind)))
}

#[derive(Debug)]
struct FrameSource {
    name: Arc<str>,
    /// As the program declares it.
    given: SchemaRef,
    /// As SQL knows it.
    schema: SchemaRef,
    frame: Arc<dyn Frame>,
}

impl FileSource for FrameSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn bytes(&self) -> FileBytes {
        let values = BYTES_PER_VALUE * self.schema.fields().len() as u64;
        let rows = self.frame.rows().unwrap_or(UNKNOWN_ROWS);
        FileBytes {
            // Its rows are counted instead.
            of_files: 0,
            of_rows: rows * values,
        }
    }

    fn rows(&self) -> Option<u64> {
        self.frame.rows()
    }

    fn operator(&self) -> &'static str {
        "FrameExec"
    }

    fn shown(&self) -> Option<String> {
        Some(format!("frame={} ({})", self.name, self.frame.kind()))
    }

    fn takes_conditions(&self) -> bool {
        self.frame.takes_conditions()
    }

    fn begin(
        &self,
        projection: &[usize],
        conditions: &[Condition],
        _: &ReadProgress,
    ) -> Arc<dyn FileReading> {
        // Rows are counted by any column, if none is wanted.
        let columns = match projection {
            [] => vec![0],
            wanted => wanted.to_vec(),
        };
        let project = |schema: &Schema, columns: &[usize]| {
            let projected = schema.project(columns);
            Arc::new(projected.expect("the projection is one of this schema"))
        };
        Arc::new(FrameReading {
            name: Arc::clone(&self.name),
            given: project(&self.given, &columns),
            schema: project(&self.schema, projection),
            frame: Arc::clone(&self.frame),
            columns,
            conditions: conditions.to_vec(),
            under_way: Mutex::new(UnderWay::Unopened),
        })
    }
}

/// One reading of a frame.
struct FrameReading {
    name: Arc<str>,
    /// What its batches have to look like.
    given: SchemaRef,
    /// What is made of them.
    schema: SchemaRef,
    frame: Arc<dyn Frame>,
    columns: Vec<usize>,
    conditions: Vec<Condition>,
    /// A worker holds the lock while it asks the program for more: the others wait for the same rows.
    under_way: Mutex<UnderWay>,
}

enum UnderWay {
    Unopened,
    Open {
        batches: FrameBatches,
        /// What is left of the last batch.
        rest: Option<RecordBatch>,
    },
    Ended,
}

impl FileReading for FrameReading {
    fn next(&self, _: &mut Option<usize>) -> Result<Option<RecordBatch>, FileError> {
        let Some(slice) = self.slice()? else {
            return Ok(None);
        };
        self.converted(&slice).map(Some)
    }
}

impl FrameReading {
    /// The next rows, as the program gives them.
    fn slice(&self) -> Result<Option<RecordBatch>, FileError> {
        let mut under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Whatever fails ends it.
        let before = std::mem::replace(&mut *under_way, UnderWay::Ended);
        let (mut batches, rest) = match before {
            UnderWay::Ended => return Ok(None),
            UnderWay::Open { batches, rest } => (batches, rest),
            UnderWay::Unopened => {
                let opened = self.frame.read(&self.columns, &self.conditions);
                (opened.map_err(|error| self.raised(error))?, None)
            }
        };
        let batch = match rest {
            Some(rest) => rest,
            None => loop {
                match batches.next().transpose() {
                    Err(error) => return Err(self.raised(error)),
                    Ok(None) => return Ok(None),
                    Ok(Some(batch)) if batch.num_rows() == 0 => {}
                    Ok(Some(batch)) => {
                        self.check(&batch)?;
                        break batch;
                    }
                }
            },
        };
        let taken = batch.num_rows().min(ROWS);
        let left = batch.num_rows() - taken;
        *under_way = UnderWay::Open {
            batches,
            rest: (left > 0).then(|| batch.slice(taken, left)),
        };
        Ok(Some(batch.slice(0, taken)))
    }

    /// A batch that has just come: it has the columns that were asked for, in the types that were declared.
    fn check(&self, batch: &RecordBatch) -> Result<(), FileError> {
        let (found, expected) = (batch.num_columns(), self.given.fields().len());
        if found != expected {
            let kind = FrameFaultKind::OtherWidth { found, expected };
            return Err(fault(&self.name, None, kind));
        }
        let wrong = |position: usize, kind| {
            let name = self.given.field(position).name().clone();
            fault(&self.name, Some(name), kind)
        };
        for (position, column) in batch.columns().iter().enumerate() {
            let declared = self.given.field(position).data_type();
            if column.data_type() != declared {
                let kind = FrameFaultKind::OtherType {
                    found: column.data_type().to_string(),
                    declared: declared.to_string(),
                };
                return Err(wrong(position, kind));
            }
        }
        check_batch(batch).map_err(|(position, kind)| wrong(position, kind))
    }

    /// The same rows in the types of SQL.
    fn converted(&self, rows: &RecordBatch) -> Result<RecordBatch, FileError> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (position, field) in self.schema.fields().iter().enumerate() {
            let wrong = |kind| fault(&self.name, Some(field.name().clone()), kind);
            let column = rows.column(position);
            check_slice(column).map_err(wrong)?;
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            let cast = without_null_entries(column)
                .and_then(|column| cast_with_options(&column, field.data_type(), &options));
            let cast = cast.and_then(|column| with_its_digits(&column).map(|()| column));
            columns.push(cast.map_err(|error| wrong(FrameFaultKind::Invalid(error.to_string())))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let batch = batch
            .map_err(|error| fault(&self.name, None, FrameFaultKind::Invalid(error.to_string())))?;
        match calendar::fault(&batch) {
            Some(FileFaultKind::NoDate(column)) => {
                Err(fault(&self.name, Some(column), FrameFaultKind::NoDate))
            }
            _ => Ok(batch),
        }
    }

    fn raised(&self, error: FrameError) -> FileError {
        fault(&self.name, None, FrameFaultKind::Raised(error))
    }
}

/// Rejects decimals that have more digits than their type says.
fn with_its_digits(column: &ArrayRef) -> Result<(), ArrowError> {
    match column.data_type() {
        DataType::Decimal128(digits, _) => {
            let decimals = column.as_primitive::<Decimal128Type>();
            decimals.validate_decimal_precision(*digits)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
