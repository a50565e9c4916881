//! Fragments that yield rows: late materialisation of the output columns, limit, and batches of a good size.

use crate::columns::FragmentColumns;
use crate::expr::{Expression, Frame, unexpected};
use crate::group::Window;
use crate::window::{ChunkPosition, OutputStep, Windows};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use eris_column::Selection;
use eris_fragment::{Expr, FragmentError, with_few_buffers};
use eris_kernels::Isa;
use eris_store::Chunk;
use std::sync::Arc;

/// A batch is handed out once it has this many rows.
const BATCH_ROWS: usize = 8_192;
/// The rows of a chunk make one batch if they take no more than this, else several: many batches are under way at once,
/// and operators that put rows on the disk take in whole batches.
const BATCH_BYTES: usize = 1 << 20;
/// No column of such a batch has values or views of more bytes: allocators round blocks of half a MiB and more up by an
/// eighth.
const COLUMN_BYTES: usize = 256 << 10;
/// What a string takes beside its view, as far as can be known before it is read.
const STRING_BYTES: usize = 16;

/// A compiled projection.
#[derive(Debug)]
pub(crate) struct RowPlan {
    outputs: Vec<Expression>,
    /// All columns that they read, those of lookups included.
    read: Vec<usize>,
    /// The fragment's columns that these come from, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
    limit: u64,
    /// Rows of a chunk that become one batch, at most.
    batch_rows: usize,
}

/// A worker's rows that do not fill a batch yet.
#[derive(Debug, Default)]
pub(crate) struct RowState {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Bytes of these batches.
    bytes: usize,
    /// Rows that were taken in so far.
    taken: u64,
}

impl RowPlan {
    pub(crate) fn compile(
        exprs: &[Expr],
        limit: Option<u64>,
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
        let outputs: Result<Vec<_>, _> = exprs
            .iter()
            .map(|expr| Expression::compile(expr, columns))
            .collect();
        let outputs = outputs?;
        let name = |position| columns.name(position);
        let fields = exprs.iter().zip(&outputs).map(|(expr, output)| {
            let text = expr.named(&name).to_string();
            Field::new(text, output.data_type.clone(), true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut read: Vec<usize> = outputs
            .iter()
            .flat_map(|output| &output.columns)
            .copied()
            .collect();
        read.sort_unstable();
        read.dedup();
        let types: Vec<_> = outputs
            .iter()
            .map(|output| output.data_type.clone())
            .collect();
        Ok(RowPlan {
            outputs,
            columns: columns.sources(read.clone()),
            read,
            schema,
            limit: limit.unwrap_or(u64::MAX),
            batch_rows: batch_rows(&types),
        })
    }

    /// Whether not all rows may be wanted.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit < u64::MAX
    }

    /// Whether no more rows are wanted.
    pub(crate) fn is_full(&self, state: &RowState) -> bool {
        state.taken >= self.limit
    }

    /// Takes in the selected rows of a chunk, from a position on; batches, if enough rows have come together. The
    /// selection must be the same until the chunk is done with.
    pub(crate) fn add(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        isa: Isa,
        selection: &mut Selection,
        from: ChunkPosition,
        state: &mut RowState,
    ) -> Result<(Vec<RecordBatch>, OutputStep), FragmentError> {
        let wanted = self.limit - state.taken;
        if from == ChunkPosition::default() && (selection.count() as u64) > wanted {
            truncate(selection, wanted as usize);
        }
        let mut batches = Vec::new();
        let mut step = OutputStep::default();
        if selection.count() <= self.batch_rows {
            let window = Window::new(chunk, columns, isa, selection);
            self.add_window(window, from, &mut step, state, &mut batches)?;
            return Ok((batches, step));
        }
        // A window may be a vector larger than what is asked for.
        let rows = self.batch_rows - eris_kernels::VECTOR + 1;
        let mut windows = Windows::starting(rows, from.word);
        let mut from = from;
        while let Some(selection) = windows.next(selection)
            && !self.is_full(state)
        {
            let window = Window::new(chunk, columns, isa, selection);
            if self.add_window(window, from, &mut step, state, &mut batches)? {
                break;
            }
            from = ChunkPosition::window(windows.end());
        }
        Ok((batches, step))
    }

    /// The same of a few rows, which ascend, and are the same until the chunk is done with.
    pub(crate) fn add_few(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        isa: Isa,
        rows: &[u32],
        from: ChunkPosition,
        state: &mut RowState,
    ) -> Result<(Vec<RecordBatch>, OutputStep), FragmentError> {
        let wanted = usize::try_from(self.limit - state.taken).unwrap_or(usize::MAX);
        let rows = match from == ChunkPosition::default() {
            true => &rows[..rows.len().min(wanted)],
            false => rows,
        };
        let mut batches = Vec::new();
        let mut step = OutputStep::default();
        let window = Window::of_few(chunk, columns, isa, rows);
        self.add_window(window, from, &mut step, state, &mut batches)?;
        Ok((batches, step))
    }

    /// Takes in a window's rows; whether the step ends in it.
    fn add_window(
        &self,
        mut window: Window<'_>,
        from: ChunkPosition,
        step: &mut OutputStep,
        state: &mut RowState,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<bool, FragmentError> {
        window.skip_to(from.row);
        while !self.is_full(state) {
            let wanted = usize::try_from(self.limit - state.taken).unwrap_or(usize::MAX);
            if !window.advance(self.batch_rows.min(wanted)) {
                break;
            }
            let rows = self.add_at_hand(&mut window, state)?;
            batches.extend(self.take(state)?);
            let next = window.next().map(|row| ChunkPosition { row, ..from });
            let next = next.filter(|_| !self.is_full(state));
            if step.took(rows, next) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes in the rows at hand, as far as they are wanted; how many that are.
    fn add_at_hand(
        &self,
        window: &mut Window<'_>,
        state: &mut RowState,
    ) -> Result<usize, FragmentError> {
        let rows = window.rows;
        let mut frame = Frame {
            rows,
            columns: vec![None; window.columns.len()],
        };
        for &column in &self.read {
            frame.columns[column] = Some(window.array(column).clone());
        }
        let arrays: Result<Vec<ArrayRef>, _> = self
            .outputs
            .iter()
            .map(|output| output.evaluate(&frame))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays?, &options);
        let batch = batch.map_err(unexpected)?;
        let wanted = (rows as u64).min(self.limit - state.taken) as usize;
        state.bytes += batch.get_array_memory_size();
        state.batches.push(batch.slice(0, wanted));
        state.taken += wanted as u64;
        state.rows += wanted;
        Ok(wanted)
    }

    /// A batch, if enough rows have come together.
    fn take(&self, state: &mut RowState) -> Result<Option<RecordBatch>, FragmentError> {
        let enough = BATCH_ROWS.min(self.batch_rows);
        match state.rows >= enough || self.is_full(state) {
            true => self.flush(state),
            false => Ok(None),
        }
    }

    /// What has come together, as one batch.
    pub(crate) fn flush(&self, state: &mut RowState) -> Result<Option<RecordBatch>, FragmentError> {
        (state.rows, state.bytes) = (0, 0);
        match &mut state.batches {
            batches if batches.len() < 2 => Ok(batches.pop()),
            batches => {
                let batch = concat_batches(&self.schema, &*batches).and_then(with_few_buffers);
                let batch = batch.map_err(unexpected)?;
                batches.clear();
                Ok(Some(batch))
            }
        }
    }
}

impl RowState {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How many rows of a chunk a batch with such columns has: a power of two, so that the batches of a whole chunk are of
/// one length, and allocators waste the least.
fn batch_rows(columns: &[DataType]) -> usize {
    let row: usize = columns.iter().map(|of| width(of) + beside(of)).sum();
    let widest = columns.iter().map(width).max();
    let most = (BATCH_BYTES / row.max(1)).min(COLUMN_BYTES / widest.unwrap_or(1));
    (1 << most.max(1).ilog2()).max(eris_kernels::VECTOR)
}

/// The bytes of a value.
fn width(of: &DataType) -> usize {
    match of {
        DataType::Utf8View | DataType::BinaryView => size_of::<u128>(),
        DataType::FixedSizeBinary(bytes) => *bytes as usize,
        fixed => fixed.primitive_width().unwrap_or(1),
    }
}

/// The bytes that a value has elsewhere.
fn beside(of: &DataType) -> usize {
    match of {
        DataType::Utf8View | DataType::BinaryView => STRING_BYTES,
        _ => 0,
    }
}

/// Leaves only the first `wanted` rows selected.
fn truncate(selection: &mut Selection, wanted: usize) {
    let cut = selection.iter_ones().nth(wanted);
    if let Some(cut) = cut {
        selection.remove_range(cut, selection.rows());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_as_many_rows_as_their_columns_allow() {
        use DataType::{Boolean, Decimal128, FixedSizeBinary, Int32, Int64, Utf8View};
        assert_eq!(batch_rows(&[Int64]), 32_768);
        assert_eq!(batch_rows(&[Int32]), 65_536);
        assert_eq!(batch_rows(&[Utf8View]), 16_384);
        assert_eq!(batch_rows(&[FixedSizeBinary(16)]), 16_384);
        assert_eq!(batch_rows(&[Decimal128(30, 2), Int32]), 16_384);
        assert_eq!(batch_rows(&[Int64, Int64, Int32, Int64, Utf8View]), 16_384);
        assert_eq!(batch_rows(&vec![Int64; 100]), eris_kernels::VECTOR);
        // A chunk has fewer rows than these.
        assert_eq!(batch_rows(&[Boolean]), 262_144);
        assert_eq!(batch_rows(&[]), 262_144);
    }
}
