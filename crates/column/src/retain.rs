//! Predicates on a few rows, wherever they are: found by an index, or left by other predicates.
//!
//! A [filter](ColumnChunk::filter) reads every vector of which a row is selected; here it is the rows alone that are
//! read.

use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers};
use crate::floats::{TotalOrder, narrow};
use crate::predicate::{ColumnPredicate, Reduced};
use crate::zone::ZoneRange;
use arrow_array::Array;
use eris_kernels::Isa;

impl ColumnChunk {
    /// Keeps those of the rows at these positions, which ascend, that pass: what [`ColumnChunk::filter`] would keep of
    /// a selection of them.
    ///
    /// # Panics
    /// As there, or if there is no such row.
    pub fn retain(&self, isa: Isa, predicate: &ColumnPredicate, rows: &mut Vec<u32>) {
        let last = rows.last();
        assert!(
            last.is_none_or(|&row| (row as usize) < self.rows),
            "rows of another chunk"
        );
        let is_valid = |row: &u32| self.validity.is_valid(*row as usize);
        match predicate {
            ColumnPredicate::Null => return rows.retain(|row| !is_valid(row)),
            ColumnPredicate::NotNull => return rows.retain(is_valid),
            ColumnPredicate::Never => return rows.clear(),
            _ if self.nulls() > 0 => rows.retain(is_valid),
            _ => {}
        }
        match (&self.data, &self.zone.range) {
            (_, ZoneRange::Empty) => rows.clear(),
            (Data::Integers(integers), &ZoneRange::Integer(min, max)) => {
                integers.retain(isa, predicate.reduce(min, max), rows);
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
                    ordinals.retain(isa, predicate.reduce(*low, *high), rows);
                }
                _ => {
                    let condition = predicate.reduce(min, max);
                    let key = |row: u32| order.keys()[ordinals.get(row as usize) as usize];
                    rows.retain(|&row| condition.holds(|| key(row)));
                }
            },
            (Data::Codes(codes), &ZoneRange::Codes(min, max)) => {
                codes.retain(isa, predicate.reduce(min as i64, max as i64), rows);
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
            (Data::Strings(text), ZoneRange::Strings(..)) => match predicate {
                ColumnPredicate::StringSet(texts) => rows.retain(|&row| {
                    let text = text.get(row as usize);
                    let found = texts.binary_search_by(|other| other.as_bytes().cmp(&text));
                    found.is_ok()
                }),
                ColumnPredicate::StringTest(test) => {
                    let places: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
                    let passed = test(&self.pick_strings(text, &places));
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

impl Integers {
    fn retain(&self, isa: Isa, condition: Reduced<'_>, rows: &mut Vec<u32>) {
        match condition {
            Reduced::None => rows.clear(),
            Reduced::All => {}
            // The usual one, in a loop of its own.
            Reduced::Between(low, high) => {
                let width = high.abs_diff(low);
                self.retain_values(isa, rows, |value| value.wrapping_sub(low) as u64 <= width);
            }
            other => self.retain_values(isa, rows, |value| other.holds(|| value)),
        }
    }

    fn retain_values(&self, isa: Isa, rows: &mut Vec<u32>, passes: impl Fn(i64) -> bool) {
        let mut values = Vec::with_capacity(rows.len());
        self.take(isa, rows, &mut values);
        let mut kept = 0;
        for (at, &value) in values.iter().enumerate() {
            // No branch that could be mistaken for the other.
            rows[kept] = rows[at];
            kept += usize::from(passes(value));
        }
        rows.truncate(kept);
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
