//! Predicates on a few rows, wherever they are: for whoever has found them by an index.
//!
//! A [filter](ColumnChunk::filter) reads every vector of which a row is selected; here it is the rows alone that are read.

use crate::chunk::{ColumnChunk, Data};
use crate::floats::{TotalOrder, narrow};
use crate::predicate::{ColumnPredicate, Reduced};
use crate::zone::ZoneRange;
use arrow_array::{Array, StringViewArray};

impl ColumnChunk {
    /// Keeps those of the rows at these positions that pass: what [`ColumnChunk::filter`] would keep of a selection of them.
    ///
    /// # Panics
    /// As there, or if there is no such row.
    pub fn retain(&self, predicate: &ColumnPredicate, rows: &mut Vec<u32>) {
        let last = rows.iter().max();
        assert!(
            last.is_none_or(|&row| (row as usize) < self.rows),
            "rows of another chunk"
        );
        let is_valid = |row: &u32| self.validity.is_valid(*row as usize);
        match predicate {
            ColumnPredicate::Null => return rows.retain(|row| !is_valid(row)),
            ColumnPredicate::NotNull => return rows.retain(is_valid),
            ColumnPredicate::Never => return rows.clear(),
            _ => rows.retain(is_valid),
        }
        match (&self.data, &self.zone.range) {
            (_, ZoneRange::Empty) => rows.clear(),
            (Data::Integers(integers), &ZoneRange::Integer(min, max)) => {
                let condition = predicate.reduce(min, max);
                rows.retain(|&row| condition.holds(|| integers.get(row as usize)));
            }
            (
                Data::Ordinals {
                    ordinals,
                    order,
                    low,
                    high,
                },
                &ZoneRange::Integer(min, max),
            ) => match predicate {
                ColumnPredicate::Ordinals { .. } => {
                    let condition = predicate.reduce(*low, *high);
                    rows.retain(|&row| condition.holds(|| ordinals.get(row as usize)));
                }
                _ => {
                    let condition = predicate.reduce(min, max);
                    let key = |row: u32| order.keys()[ordinals.get(row as usize) as usize];
                    rows.retain(|&row| condition.holds(|| key(row)));
                }
            },
            (Data::Codes(codes), &ZoneRange::Codes(min, max)) => {
                let condition = predicate.reduce(min as i64, max as i64);
                rows.retain(|&row| condition.holds(|| codes.get(row as usize)));
            }
            (Data::Float32(plain), &ZoneRange::Float(min, max)) => {
                let condition = match predicate.reduce_floats(min, max) {
                    Reduced::Between(low, high) => {
                        let (low, high) = narrow(low, high);
                        Reduced::Between(low, high)
                    }
                    decided => decided,
                };
                rows.retain(|&row| condition.holds(|| plain.get(row as usize).key()));
            }
            (Data::Float64(plain), &ZoneRange::Float(min, max)) => {
                let condition = predicate.reduce_floats(min, max);
                rows.retain(|&row| condition.holds(|| plain.get(row as usize).key()));
            }
            (Data::Text(text), ZoneRange::Text(..)) => match predicate {
                ColumnPredicate::TextSet(texts) => rows.retain(|&row| {
                    let text = text.get(row as usize);
                    texts.binary_search_by(|other| (**other).cmp(&text)).is_ok()
                }),
                ColumnPredicate::Text(test) => {
                    let values = rows.iter().map(|&row| Some(text.get(row as usize)));
                    let passed = test(&values.collect::<StringViewArray>());
                    let mut passed =
                        (0..rows.len()).map(|at| passed.is_valid(at) && passed.value(at));
                    rows.retain(|_| passed.next().expect("a result for each row"));
                }
                other => panic!("{other:?} asked of plain text"),
            },
            (_, range) => panic!("{predicate:?} asked of values in {range:?}"),
        }
    }
}

impl Reduced<'_> {
    /// Whether a value passes, which is only asked for if that is not decided yet.
    pub(crate) fn holds(&self, value: impl FnOnce() -> i64) -> bool {
        match *self {
            Reduced::None => false,
            Reduced::All => true,
            Reduced::Between(low, high) => (low..=high).contains(&value()),
            Reduced::NotBetween(low, high) => !(low..=high).contains(&value()),
            Reduced::Ranges(ranges) => {
                let value = value();
                ranges
                    .iter()
                    .any(|&(low, high)| (low..=high).contains(&value))
            }
            Reduced::Bitmap { first, words } => {
                let value = value();
                let bit = value.wrapping_sub(first) as u64;
                value >= first
                    && (words.get((bit / 64) as usize))
                        .is_some_and(|word| word >> (bit % 64) & 1 == 1)
            }
            Reduced::Set(values) => values.binary_search(&value()).is_ok(),
        }
    }
}
