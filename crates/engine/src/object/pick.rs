//! The rows of a batch by owner, where owners are few: a bit per row and owner, and by these the values of every column
//! are moved together, many at a time.
//!
//! ```text
//! numbers   7 91 12 55 …      ranges │ ← AEU 0 │ 50 AEU 1 → │
//! AEU 0     1  0  1  0 …      ─▶ rows 0, 2, …
//! AEU 1     0  1  0  1 …      ─▶ rows 1, 3, …
//! ```
//! Each range takes a pass over the numbers, each owner one over all columns; with many of them, taking row by row is
//! quicker.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch,
    downcast_primitive,
};
use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use eris_route::RangeTable;
use eris_types::AeuId;
use std::cell::OnceCell;
use std::sync::Arc;

/// Ranges up to which it is worth while.
const FEW: usize = 8;

/// The rows of each owner that has some, in order; `None` if they are better taken otherwise.
pub(crate) fn pick(
    batch: &RecordBatch,
    numbers: &[i64],
    ranges: &RangeTable<i64, AeuId>,
) -> Option<Vec<(AeuId, RecordBatch)>> {
    if ranges.ranges() > FEW || numbers.len() < VECTOR {
        return None;
    }
    let parts = masks(numbers, ranges)
        .into_iter()
        .filter_map(|(aeu, mask)| {
            let rows = Rows::new(mask, batch);
            match rows.count {
                0 => None,
                all if all == numbers.len() => Some((aeu, batch.clone())),
                _ => Some((aeu, rows.of(batch))),
            }
        });
    Some(parts.collect())
}

/// Per owner, a bit for each of its numbers.
fn masks(numbers: &[i64], ranges: &RangeTable<i64, AeuId>) -> Vec<(AeuId, Vec<u64>)> {
    let isa = Isa::best();
    let words = numbers.len().div_ceil(64);
    let owners = ranges.holders().iter();
    let mut masks: Vec<_> = owners.map(|&aeu| (aeu, vec![0; words])).collect();
    let mut within = vec![0; words];
    // The first range also has what lies below it.
    let mut low = i64::MIN;
    let highs = ranges.iter().skip(1).map(|(next, _)| next - 1);
    for ((_, aeu), high) in ranges.iter().zip(highs.chain([i64::MAX])) {
        isa.between_i64(numbers, low, high, &mut within);
        let (_, mask) = (masks.iter_mut())
            .find(|(other, _)| *other == aeu)
            .expect("a holder of the table");
        mask.iter_mut().zip(&within).for_each(|(a, b)| *a |= b);
        low = high.wrapping_add(1);
    }
    masks
}

/// Some rows of a batch.
struct Rows {
    mask: Vec<u64>,
    rows: usize,
    count: usize,
    /// The same for columns of types without a kernel.
    predicate: OnceCell<FilterPredicate>,
    /// There are several of these, so that positions are looked for once.
    is_used_again: bool,
}

impl Rows {
    fn new(mask: Vec<u64>, batch: &RecordBatch) -> Self {
        let count = mask.iter().map(|word| word.count_ones() as usize);
        let columns = batch.columns().iter();
        let others =
            columns.filter(|column| !has_kernel(column.data_type()) || column.nulls().is_some());
        Rows {
            count: count.sum(),
            mask,
            rows: batch.num_rows(),
            predicate: OnceCell::new(),
            is_used_again: others.count() > 1,
        }
    }

    fn predicate(&self) -> &FilterPredicate {
        self.predicate.get_or_init(|| {
            let bits = BooleanBuffer::new(Buffer::from_vec(self.mask.clone()), 0, self.rows);
            let predicate = FilterBuilder::new(&BooleanArray::new(bits, None));
            match self.is_used_again {
                true => predicate.optimize().build(),
                false => predicate.build(),
            }
        })
    }

    fn of(&self, batch: &RecordBatch) -> RecordBatch {
        let columns = batch.columns().iter().map(|column| self.column(column));
        let columns = columns.collect::<Result<Vec<_>, _>>();
        columns
            .and_then(|columns| RecordBatch::try_new(batch.schema(), columns))
            .expect("the rows are of this batch")
    }

    fn column(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        macro_rules! picked {
            ($native:ty) => {
                self.primitive::<$native>(column.as_primitive())
            };
        }
        downcast_primitive! {
            column.data_type() => (picked),
            _ => self.predicate().filter(column)
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        column: &PrimitiveArray<T>,
    ) -> Result<ArrayRef, ArrowError> {
        let (isa, rows) = (Isa::best(), column.len());
        let values = column.values().inner().clone();
        let picked = match size_of::<T::Native>() {
            8 => {
                let values = ScalarBuffer::<i64>::new(values, 0, rows);
                let select = |values: &_, mask: &_, out: &mut _| isa.select_i64(values, mask, out);
                Buffer::from_vec(self.select(&values, select))
            }
            4 => {
                let values = ScalarBuffer::<u32>::new(values, 0, rows);
                let select = |values: &_, mask: &_, out: &mut _| isa.select_u32(values, mask, out);
                Buffer::from_vec(self.select(&values, select))
            }
            _ => return self.predicate().filter(column),
        };
        let values = ScalarBuffer::new(picked, 0, self.count);
        let nulls = (column.nulls()).and_then(|_| self.predicate().filter_nulls(column.nulls()));
        let picked = PrimitiveArray::<T>::try_new(values, nulls)?;
        Ok(Arc::new(picked.with_data_type(column.data_type().clone())))
    }

    /// The values at these rows, by a kernel for a vector at a time.
    fn select<T: Copy + Default>(
        &self,
        values: &[T],
        kernel: impl Fn(&[T; VECTOR], &[u64; MASK_WORDS], &mut [T; VECTOR]) -> usize,
    ) -> Vec<T> {
        // Kernels write a whole vector behind what they have moved.
        let mut out = vec![T::default(); self.count + VECTOR];
        let mut count = 0;
        let mut select = |values: &[T; VECTOR], mask: &[u64; MASK_WORDS]| {
            let (room, _) = out[count..].split_first_chunk_mut().expect("room for all");
            count += kernel(values, mask, room);
        };
        let (vectors, rest) = values.as_chunks();
        let (masks, mask_rest) = self.mask.split_at(vectors.len() * MASK_WORDS);
        for (values, mask) in vectors.iter().zip(masks.as_chunks().0) {
            select(values, mask);
        }
        if !rest.is_empty() {
            let (mut values, mut mask) = ([T::default(); VECTOR], [0; MASK_WORDS]);
            values[..rest.len()].copy_from_slice(rest);
            mask[..mask_rest.len()].copy_from_slice(mask_rest);
            select(&values, &mask);
        }
        out.truncate(count);
        out
    }
}

/// Whether values of a type are moved by a kernel.
fn has_kernel(data_type: &DataType) -> bool {
    matches!(data_type.primitive_width(), Some(4 | 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Float64Type;
    use arrow_array::{BooleanArray, Decimal128Array, Int32Array, Int64Array, StringViewArray};
    use arrow_array::{TimestampMicrosecondArray, UInt32Array};
    use arrow_select::take::take_record_batch;
    use eris_aeu::Random;

    #[test]
    fn picks_the_same_rows_as_taking_them() {
        let random = &mut Random::new(3);
        // The last two have as many words of their masks as whole vectors, and one row less.
        for rows in [
            VECTOR,
            VECTOR + 1,
            3000,
            16_384,
            2 * VECTOR - 1,
            4 * VECTOR - 60,
        ] {
            for owners in 1..5u16 {
                let numbers: Vec<i64> =
                    (0..rows).map(|_| random.below(1000) as i64 - 500).collect();
                let row = || 0..rows as i64;
                let batch = RecordBatch::try_from_iter([
                    (
                        "number",
                        Arc::new(Int64Array::from(numbers.clone())) as ArrayRef,
                    ),
                    (
                        "int",
                        Arc::new(Int32Array::from_iter(
                            row().map(|row| (row % 3 > 0).then_some(row as i32)),
                        )),
                    ),
                    (
                        "float",
                        Arc::new(PrimitiveArray::<Float64Type>::from_iter_values(
                            row().map(|row| row as f64),
                        )),
                    ),
                    (
                        "time",
                        Arc::new(
                            TimestampMicrosecondArray::from_iter_values(row()).with_timezone("UTC"),
                        ),
                    ),
                    (
                        "price",
                        Arc::new(Decimal128Array::from_iter_values(row().map(i128::from))),
                    ),
                    (
                        "flag",
                        Arc::new(BooleanArray::from_iter(row().map(|row| Some(row % 7 == 0)))),
                    ),
                    (
                        "text",
                        Arc::new(StringViewArray::from_iter_values(
                            row().map(|row| format!("a long text {row}")),
                        )),
                    ),
                ])
                .unwrap();
                // Owners that have two ranges each, and the lowest keys without a bound below them.
                let bounds =
                    (0..2 * owners).map(|at| (i64::from(at) * 100 - 400, AeuId(at % owners)));
                let ranges = RangeTable::new(bounds).unwrap();
                let parts = pick(&batch, &numbers, &ranges).unwrap();
                let mut all = 0;
                for (aeu, part) in parts {
                    let own =
                        (0..rows as u32).filter(|&row| ranges.get(numbers[row as usize]) == aeu);
                    let own = UInt32Array::from_iter_values(own);
                    assert_eq!(part, take_record_batch(&batch, &own).unwrap());
                    all += part.num_rows();
                }
                assert_eq!(all, rows);
            }
        }
    }
}
