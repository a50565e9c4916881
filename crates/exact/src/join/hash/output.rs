//! What becomes of pairs: the columns of the result.

use super::JoinSpec;
use super::build::BuildSide;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{JoinSide, Result, internal_err};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use eris_join::{NO_ROW, Pairs};
use std::sync::Arc;

/// Rows of one side, in the result's order.
#[derive(Debug)]
pub(super) enum Rows {
    /// NULL in all columns, so many times.
    Nulls(usize),
    /// These.
    Chosen(UInt32Array),
    /// So many from one on.
    Slice { first: usize, len: usize },
}

impl Rows {
    /// These rows, all of them there.
    pub fn of(rows: Vec<u32>) -> Self {
        let first = rows.first().copied().unwrap_or(0);
        let follow = |(row, expected): (&u32, u32)| *row == expected;
        if rows.iter().zip(first..).all(follow) {
            return Rows::Slice {
                first: first as usize,
                len: rows.len(),
            };
        }
        Rows::Chosen(UInt32Array::from(rows))
    }

    /// These rows, of which [`NO_ROW`] is not there.
    pub fn of_some(mut rows: Vec<u32>) -> Self {
        let are_there = BooleanBuffer::collect_bool(rows.len(), |at| rows[at] != NO_ROW);
        match are_there.count_set_bits() {
            0 => Rows::Nulls(rows.len()),
            all if all == rows.len() => Rows::Chosen(UInt32Array::from(rows)),
            _ => {
                for row in &mut rows {
                    *row = if *row == NO_ROW { 0 } else { *row };
                }
                let nulls = NullBuffer::new(are_there);
                Rows::Chosen(UInt32Array::new(rows.into(), Some(nulls)))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Rows::Nulls(len) | Rows::Slice { len, .. } => *len,
            Rows::Chosen(rows) => rows.len(),
        }
    }

    fn of_column(&self, column: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Rows::Nulls(len) => new_null_array(column.data_type(), *len),
            Rows::Chosen(rows) => take(column, rows, None)?,
            Rows::Slice { first, len } if (*first, *len) == (0, column.len()) => Arc::clone(column),
            Rows::Slice { first, len } => column.slice(*first, *len),
        })
    }
}

/// Columns that are made of rows of both sides.
pub(super) struct Joined<'a> {
    pub side: &'a BuildSide,
    pub build: &'a Rows,
    /// A batch of the probe side, or one without rows of which there are only NULLs.
    pub batch: &'a RecordBatch,
    pub probe: &'a Rows,
    /// Whether there is a match, of a mark join.
    pub mark: Option<Vec<bool>>,
}

impl Joined<'_> {
    /// The batch of these columns.
    pub fn batch(
        self,
        columns: &[ColumnIndex],
        schema: &SchemaRef,
        rows: usize,
    ) -> Result<RecordBatch> {
        let column = |column: &ColumnIndex| match column.side {
            JoinSide::Left => match &self.side.columns[column.index] {
                Some(array) => self.build.of_column(array),
                None => internal_err!("a column of the build side was left out"),
            },
            JoinSide::Right => self.probe.of_column(self.batch.column(column.index)),
            JoinSide::None => match &self.mark {
                Some(mark) => Ok(Arc::new(BooleanArray::from(mark.clone())) as _),
                None => internal_err!("a mark without a mark join"),
            },
        };
        let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(schema),
            columns,
            &options,
        )?)
    }
}

/// Keeps the pairs for which a condition is true.
pub(super) fn retain_true(
    pairs: &mut Pairs,
    filter: &JoinFilter,
    side: &BuildSide,
    batch: &RecordBatch,
) -> Result<()> {
    let joined = Joined {
        side,
        build: &Rows::of(pairs.build.clone()),
        batch,
        probe: &Rows::of(pairs.probe.clone()),
        mark: None,
    };
    let rows = pairs.probe.len();
    let batch = joined.batch(filter.column_indices(), filter.schema(), rows)?;
    let passes = filter.expression().evaluate(&batch)?.into_array(rows)?;
    let passes = passes.as_boolean();
    let is_true = |pair: usize| passes.is_valid(pair) && passes.value(pair);
    pairs.retain(|pair, _, _| is_true(pair));
    Ok(())
}

impl JoinSpec {
    /// A batch of the result.
    pub(super) fn joined(
        &self,
        side: &BuildSide,
        (build, probe): (&Rows, &Rows),
        batch: &RecordBatch,
        mark: Option<Vec<bool>>,
    ) -> Result<RecordBatch> {
        let rows = build.len().max(probe.len());
        let joined = Joined {
            side,
            build,
            batch,
            probe,
            mark,
        };
        joined.batch(&self.columns, &self.schema, rows)
    }
}
