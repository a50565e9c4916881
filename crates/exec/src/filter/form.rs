//! A test in the form that one chunk of its column needs, and what it does to the chunk's rows.

use super::classify::Test;
use eris_column::{ColumnChunk, ColumnPredicate, KeyOrder, Selection};
use eris_kernels::Isa;
use std::sync::Arc;

/// A condition for chunks that are stored by an order of keys. Workers share it, and remember it so that they need not
/// meet for every chunk.
#[derive(Debug)]
pub(super) struct OrderedPredicate {
    order: Arc<KeyOrder>,
    predicate: Arc<ColumnPredicate>,
}

/// A test in the form that one chunk of its column needs.
#[derive(Clone, Copy)]
pub(crate) struct ChunkTest<'a> {
    pub(super) predicate: &'a ColumnPredicate,
    or_null: bool,
}

impl Test {
    /// The test for a chunk of the column. `known` is the form for the order of the last chunk that had one.
    pub(super) fn form<'a>(
        &'a self,
        chunk: &ColumnChunk,
        known: &'a mut Option<OrderedPredicate>,
    ) -> ChunkTest<'a> {
        let predicate = match (&self.plain, chunk.order()) {
            (Some(plain), _) if !chunk.is_coded() => &**plain,
            (_, Some(order)) => {
                known.take_if(|form| !Arc::ptr_eq(&form.order, order));
                let form = known.get_or_insert_with(|| OrderedPredicate {
                    order: order.clone(),
                    predicate: (self.by_order).get(order, |order| self.predicate.by_order(order)),
                });
                &*form.predicate
            }
            _ => &*self.predicate,
        };
        ChunkTest {
            predicate,
            or_null: self.or_null,
        }
    }
}

impl<'a> ChunkTest<'a> {
    /// A predicate on values, as chunks without an order of keys have them. NULLs pass, too, if it says so.
    pub(crate) fn of_values(predicate: &'a ColumnPredicate, or_null: bool) -> Self {
        ChunkTest { predicate, or_null }
    }

    /// The zone shows that no row passes.
    pub(crate) fn excludes(&self, chunk: &ColumnChunk) -> bool {
        chunk.excludes(self.predicate) && !self.looks_for_nulls(chunk)
    }

    /// The zone shows that every row passes.
    pub(super) fn covers(&self, chunk: &ColumnChunk) -> bool {
        if self.looks_for_nulls(chunk) {
            return chunk.nulls() == chunk.rows();
        }
        chunk.covers(self.predicate)
    }

    /// Whether NULLs pass, and there are some.
    pub(super) fn looks_for_nulls(&self, chunk: &ColumnChunk) -> bool {
        self.or_null && chunk.nulls() > 0
    }

    /// Takes the rows out of the selection that do not pass.
    pub(crate) fn filter(
        &self,
        chunk: &ColumnChunk,
        isa: Isa,
        selection: &mut Selection,
        scratch: &mut Selection,
    ) {
        if !self.looks_for_nulls(chunk) {
            return chunk.filter(isa, self.predicate, selection);
        }
        scratch.clone_from(selection);
        chunk.filter(isa, self.predicate, selection);
        chunk.filter(isa, &ColumnPredicate::Null, scratch);
        eris_kernels::or(selection.words_mut(), scratch.words());
    }

    /// The same of a few rows, which ascend.
    pub(crate) fn retain(&self, chunk: &ColumnChunk, isa: Isa, rows: &mut Vec<u32>) {
        if !self.looks_for_nulls(chunk) {
            return chunk.retain(isa, self.predicate, rows);
        }
        let mut nulls = rows.clone();
        chunk.retain(isa, &ColumnPredicate::Null, &mut nulls);
        chunk.retain(isa, self.predicate, rows);
        rows.extend(nulls);
        rows.sort_unstable();
    }

    /// What a row costs, in units that only compare: the bytes that are read, and loads.
    pub(super) fn cost(&self, chunk: &ColumnChunk) -> f64 {
        let bytes = chunk.bytes() as f64 / chunk.rows() as f64;
        bytes
            + match self.predicate {
                ColumnPredicate::Never | ColumnPredicate::Null | ColumnPredicate::NotNull => 0.2,
                ColumnPredicate::Integers { .. } | ColumnPredicate::NotIntegers { .. } => 0.3,
                // One or a few comparisons, if it was worth to store them so.
                ColumnPredicate::Ordinals { .. } => 0.4,
                ColumnPredicate::Floats { .. } => 1.0,
                // One load, from the nearest cache that holds the bits.
                ColumnPredicate::Codes(words) | ColumnPredicate::IntegerBitmap { words, .. } => {
                    match words.len() {
                        0..4_096 => 2.0,
                        4_096..65_536 => 4.0,
                        _ => 10.0,
                    }
                }
                ColumnPredicate::IntegerSet(values) => 4.0 + values.len().ilog2() as f64 * 2.0,
                ColumnPredicate::StringSet(_) => 30.0,
                ColumnPredicate::StringTest(_) => 100.0,
            }
    }
}
