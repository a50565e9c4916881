//! The merge of two sorted inputs.
//!
//! For each row of the left input, in its order, the right input is read as long as its rows are not behind. The last
//! one that was read is the match, if its keys are the same.
//!
//! Of the right input, at most one batch is held, and those rows that the left batch at hand has matched.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{
    SortOptions, cast, concat_batches, filter, filter_record_batch, is_not_null, take,
    take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use futures::StreamExt;
use std::sync::Arc;

/// An input, and what is compared of it.
pub(super) struct Side {
    pub stream: SendableRecordBatchStream,
    /// The keys, and what goes on as the last one.
    pub exprs: Vec<Arc<dyn PhysicalExpr>>,
}

/// The merge of one partition.
pub(super) struct Merge {
    left: Side,
    right: Side,
    /// Keys and what goes on, as bytes that compare as the inputs are sorted.
    whole: RowConverter,
    /// The keys alone, unless there is none.
    keys: Option<RowConverter>,
    types: Vec<DataType>,
    /// Whether rows match that are the same in what goes on.
    takes_equal: bool,
    is_outer: bool,
    schema: SchemaRef,
    /// The batch of the right input that is read, and the next row of it.
    current: Option<(Batch, usize)>,
    right_ended: bool,
    candidate: Option<Candidate>,
}

/// A batch with what is compared of it.
struct Batch {
    rows: RecordBatch,
    whole: Rows,
    keys: Option<Rows>,
    nulls: Option<NullBuffer>,
}

impl Batch {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn key(&self, row: usize) -> Option<OwnedRow> {
        self.keys.as_ref().map(|keys| keys.row(row).owned())
    }
}

/// The last row of the right input that is not behind.
struct Candidate {
    rows: RecordBatch,
    row: usize,
    key: Option<OwnedRow>,
    /// Whether its batch has been given up, and it is all that is left of it.
    is_alone: bool,
    /// Its place among the rows that the left batch at hand has matched.
    taken: Option<u32>,
}

/// Rows of the right input that the left batch at hand has matched.
#[derive(Default)]
struct Matches {
    pieces: Vec<RecordBatch>,
    /// Rows of the batch that is read.
    chosen: Vec<u32>,
    count: u32,
}

impl Matches {
    /// Copies the chosen rows, before their batch is given up.
    fn keep(&mut self, from: &RecordBatch) -> Result<()> {
        if !self.chosen.is_empty() {
            let chosen = UInt32Array::from(std::mem::take(&mut self.chosen));
            self.pieces.push(take_record_batch(from, &chosen)?);
        }
        Ok(())
    }
}

impl Merge {
    pub fn new(
        left: Side,
        right: Side,
        options: &[SortOptions],
        takes_equal: bool,
        is_outer: bool,
        schema: SchemaRef,
    ) -> Result<Self> {
        let input = left.stream.schema();
        let types = left.exprs.iter().map(|expr| expr.data_type(&input));
        let types = types.collect::<Result<Vec<_>>>()?;
        let fields = types.iter().zip(options);
        let fields = fields
            .map(|(data_type, options)| SortField::new_with_options(data_type.clone(), *options));
        let fields: Vec<_> = fields.collect();
        let keys = fields[..fields.len() - 1].to_vec();
        Ok(Merge {
            left,
            right,
            whole: RowConverter::new(fields)?,
            keys: match keys.is_empty() {
                true => None,
                false => Some(RowConverter::new(keys)?),
            },
            types,
            takes_equal,
            is_outer,
            schema,
            current: None,
            right_ended: false,
            candidate: None,
        })
    }

    /// The next batch of joined rows.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(batch) = self.left.stream.next().await else {
                return Ok(None);
            };
            let left = self.compared(batch?, 0)?;
            let joined = self.join(&left).await?;
            if joined.num_rows() > 0 {
                return Ok(Some(joined));
            }
        }
    }

    async fn join(&mut self, left: &Batch) -> Result<RecordBatch> {
        let mut matches = Matches::default();
        let mut places: Vec<Option<u32>> = Vec::with_capacity(left.rows.num_rows());
        for row in 0..left.rows.num_rows() {
            if left.is_null(row) {
                places.push(None);
                continue;
            }
            self.read_until(left, row, &mut matches).await?;
            let found =
                self.candidate
                    .as_mut()
                    .filter(|candidate| match (&candidate.key, &left.keys) {
                        (Some(key), Some(keys)) => key.row() == keys.row(row),
                        _ => true,
                    });
            places.push(found.map(|candidate| {
                *candidate.taken.get_or_insert_with(|| {
                    matches.chosen.push(candidate.row as u32);
                    matches.count += 1;
                    matches.count - 1
                })
            }));
        }
        if let Some(candidate) = &mut self.candidate {
            matches.keep(&candidate.rows)?;
            candidate.taken = None;
        }
        self.joined(&left.rows, places, &matches)
    }

    /// Reads rows of the right input that are not behind a row of the left one.
    async fn read_until(&mut self, left: &Batch, row: usize, matches: &mut Matches) -> Result<()> {
        let limit = left.whole.row(row);
        loop {
            if self.current.is_none() && !self.right_ended {
                match self.right.stream.next().await {
                    Some(batch) => self.current = Some((self.compared(batch?, 1)?, 0)),
                    None => self.right_ended = true,
                }
            }
            let Some((batch, next)) = &mut self.current else {
                return Ok(());
            };
            let from = *next;
            while *next < batch.rows.num_rows() {
                let right = batch.whole.row(*next);
                if right > limit || (right == limit && !self.takes_equal) {
                    break;
                }
                *next += 1;
            }
            // The last row that is not NULL.
            let last = (from..*next).rev().find(|row| !batch.is_null(*row));
            if let Some(last) = last {
                if let Some(before) = &self.candidate
                    && before.is_alone
                {
                    matches.keep(&before.rows)?;
                }
                self.candidate = Some(Candidate {
                    rows: batch.rows.clone(),
                    row: last,
                    key: batch.key(last),
                    is_alone: false,
                    taken: None,
                });
            }
            if *next < batch.rows.num_rows() {
                return Ok(());
            }
            // The batch is given up, but for the row that may be matched still.
            if let Some(candidate) = &mut self.candidate {
                matches.keep(&candidate.rows)?;
                let only = UInt32Array::from(vec![candidate.row as u32]);
                candidate.rows = take_record_batch(&candidate.rows, &only)?;
                candidate.row = 0;
                candidate.is_alone = true;
            }
            self.current = None;
        }
    }

    /// Left rows beside the rows at these places of the matches.
    fn joined(
        &self,
        left: &RecordBatch,
        places: Vec<Option<u32>>,
        matches: &Matches,
    ) -> Result<RecordBatch> {
        let places = UInt32Array::from(places);
        let (left, places) = match self.is_outer {
            true => (left.clone(), places),
            false => {
                let found = is_not_null(&places)?;
                let left = filter_record_batch(left, &found)?;
                let places = filter(&places, &found)?;
                (left, places.as_primitive().clone())
            }
        };
        let mut columns = left.columns().to_vec();
        let schema = self.right.stream.schema();
        if matches.pieces.is_empty() {
            let fields = schema.fields().iter();
            columns.extend(fields.map(|field| new_null_array(field.data_type(), left.num_rows())));
        } else {
            let right = concat_batches(&schema, &matches.pieces)?;
            for column in right.columns() {
                columns.push(take(column, &places, None)?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(left.num_rows()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// A batch with what is compared of it.
    fn compared(&self, rows: RecordBatch, side: usize) -> Result<Batch> {
        let exprs = match side {
            0 => &self.left.exprs,
            _ => &self.right.exprs,
        };
        let columns = exprs.iter().zip(&self.types).map(|(expr, data_type)| {
            let column = expr.evaluate(&rows)?.into_array(rows.num_rows())?;
            Ok(unsigned_zero(match column.data_type() == data_type {
                true => column,
                false => cast(&column, data_type)?,
            }))
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let nulls = columns.iter().map(|column| column.logical_nulls());
        let nulls = nulls.reduce(|one, other| NullBuffer::union(one.as_ref(), other.as_ref()));
        let keys = &columns[..columns.len() - 1];
        let keys = self
            .keys
            .as_ref()
            .map(|converter| converter.convert_columns(keys));
        Ok(Batch {
            whole: self.whole.convert_columns(&columns)?,
            keys: keys.transpose()?,
            nulls: nulls.flatten(),
            rows,
        })
    }
}

/// -0.0 is 0.0.
fn unsigned_zero(column: ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => {
            let column = column.as_primitive::<Float64Type>();
            Arc::new(column.unary::<_, Float64Type>(|value| value + 0.0))
        }
        DataType::Float32 => {
            let column = column.as_primitive::<Float32Type>();
            Arc::new(column.unary::<_, Float32Type>(|value| value + 0.0))
        }
        _ => column,
    }
}
