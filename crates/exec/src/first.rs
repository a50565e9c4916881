//! The first rows by an order: which rows cannot be among them.
//!
//! ```text
//! the three least              rows with    bound
//! chunk 1:  7 3 9 1 4 …        1 3 4        4        of its rows, only these go on
//! chunk 2:  8 2 6 5 …          2            3        only rows up to 4 are looked for
//! chunk 3:  from 5 to 9                     3        skipped, as its zone says
//! ```
//!
//! Each worker keeps the keys of the best rows that it has met, and tells the others its bound. Only the first key of
//! the order counts: rows that equal the bound stay, for the other keys decide about them. Why: docs/decisions/0044.

use crate::columns::FragmentColumns;
use crate::filter::{
    ChunkInput, ChunkTest, FEW_TESTED, FilterState, Passed, float_key, float_of_key,
};
use crate::phases::Left;
use crate::work::Work;
use eris_column::{ColumnChunk, ColumnPredicate, Domain, Selection};
use eris_fragment::{Order, OrderKey, PhaseKind};
use eris_kernels::Isa;
use eris_store::ChunkView;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Of more rows nobody keeps the keys: they are hardly fewer than those of a chunk.
const MOST: u64 = 32_768;

/// What is to be kept, and what workers know of it. A rank is a key turned so that the best row has the least.
#[derive(Debug)]
pub(crate) struct FirstRows {
    key: OrderKey,
    domain: Domain,
    rows: usize,
    /// So many rows with this rank or a lower one have been met. `i64::MAX` at first.
    bound: AtomicI64,
}

/// The ranks of the best rows that a worker has met, in no order.
#[derive(Debug, Default)]
pub(crate) struct BestRanks {
    ranks: Vec<i64>,
    floats: Vec<f64>,
    valid: Selection,
}

/// Rows of a chunk that passed all conditions.
enum Rows<'a> {
    Selected(&'a mut Selection),
    /// Their positions, ascending.
    Listed(&'a mut Vec<u32>),
}

impl FirstRows {
    /// `None` if rows cannot be told apart by the first key: it has no predicates for ranges.
    pub(crate) fn compile(order: &Order, columns: &FragmentColumns) -> Option<Self> {
        let key = *order.keys.first()?;
        let domain = *columns.domains.get(key.column)?;
        let has_ranges = matches!(domain, Domain::Integer | Domain::Float32 | Domain::Float64);
        let fits = has_ranges && !columns.is_row_id(key.column) && (1..=MOST).contains(&order.rows);
        fits.then(|| FirstRows {
            key,
            domain,
            rows: order.rows as usize,
            bound: AtomicI64::new(i64::MAX),
        })
    }

    /// What it is called.
    pub(crate) fn phase(&self) -> PhaseKind {
        let (column, rows) = (self.key.column, self.rows as u64);
        PhaseKind::First { column, rows }
    }

    /// Whether the zones of a chunk show that none of its rows is among the first.
    pub(crate) fn excludes(&self, view: &ChunkView, columns: &FragmentColumns) -> bool {
        let (chunk, predicate) = (self.chunk(view, columns), self.predicate());
        let excludes = |predicate: ColumnPredicate| self.test(&predicate).excludes(chunk);
        self.applies(chunk) && predicate.is_some_and(excludes)
    }

    fn chunk<'a>(&self, view: &'a ChunkView, columns: &FragmentColumns) -> &'a ColumnChunk {
        view.chunk.column(columns.ids[self.key.column])
    }

    /// Leaves out rows that passed and cannot be among the first, and learns from the others. Says in which form these
    /// are.
    pub(crate) fn keep(
        &self,
        input: ChunkInput<'_>,
        passed: Passed,
        state: &mut FilterState,
        selection: &mut Selection,
        best: &mut BestRanks,
        work: &mut Work,
    ) -> Passed {
        let ChunkInput {
            view, columns, isa, ..
        } = input;
        let chunk = self.chunk(view, columns);
        if !self.applies(chunk) {
            return passed;
        }
        let FilterState {
            few: listed, tally, ..
        } = state;
        let phase = tally.first();
        let (few, rows) = (matches!(passed, Passed::Few), view.chunk.rows());
        let left = |listed: &[u32], selection: &Selection| match few {
            true => listed.len(),
            false => selection.count(),
        };
        let met = left(listed, selection);
        let reads = match few {
            true => Left::Listed(listed, rows),
            false => Left::Selected(selection),
        };
        tally.reads(phase, self.key.column, view, columns, reads);
        let mut passing = match few {
            true => Rows::Listed(listed),
            false => Rows::Selected(selection),
        };
        self.retain(chunk, isa, &mut passing, best);
        let left = left(listed, selection);
        tally.took(phase, met, left);
        if left == 0 {
            work.bytes += view.touched(chunk.bytes());
            return Passed::Nothing;
        }
        if !few && left <= rows / FEW_TESTED {
            selection.positions(isa, left, listed);
            return Passed::Few;
        }
        passed
    }

    fn retain(&self, chunk: &ColumnChunk, isa: Isa, rows: &mut Rows<'_>, best: &mut BestRanks) {
        if let Some(predicate) = self.predicate() {
            rows.filter(chunk, isa, self.test(&predicate), &mut best.valid);
        }
        if self.learn(chunk, isa, rows, best)
            && let Some(predicate) = self.predicate()
        {
            rows.filter(chunk, isa, self.test(&predicate), &mut best.valid);
        }
    }

    /// Chunks that are stored by an order of keys are left as they are: for these each new bound would have to be
    /// translated.
    fn applies(&self, chunk: &ColumnChunk) -> bool {
        let has_values = chunk.nulls() < chunk.rows();
        has_values && chunk.order().is_none() && !chunk.is_coded()
    }

    /// NULLs that come first stay, however many there are.
    fn test<'a>(&self, predicate: &'a ColumnPredicate) -> ChunkTest<'a> {
        ChunkTest::of_values(predicate, self.key.nulls_first)
    }

    /// What values have to be to be among the first, as far as that is known.
    fn predicate(&self) -> Option<ColumnPredicate> {
        let rank = self.bound.load(Relaxed);
        if rank == i64::MAX {
            return None;
        }
        let (low, high) = match self.key.descending {
            true => (!rank, i64::MAX),
            false => (i64::MIN, rank),
        };
        if self.domain == Domain::Integer {
            return Some(ColumnPredicate::Integers { low, high });
        }
        // Chunks tell -0 from +0, and neither comes first.
        let float = |key: i64, zero: f64| match float_of_key(key) {
            0.0 => zero,
            other => other,
        };
        Some(match self.key.descending {
            true => ColumnPredicate::Floats {
                low: Bound::Included(float(low, -0.0)),
                high: Bound::Unbounded,
            },
            false => ColumnPredicate::Floats {
                low: Bound::Unbounded,
                high: Bound::Included(float(high, 0.0)),
            },
        })
    }

    /// Takes in the ranks of rows. True if the bound may be another one now.
    fn learn(&self, chunk: &ColumnChunk, isa: Isa, rows: &Rows<'_>, best: &mut BestRanks) -> bool {
        let BestRanks {
            ranks,
            floats,
            valid,
        } = best;
        let selected = match rows {
            Rows::Selected(selection) if chunk.nulls() == 0 => &**selection,
            _ => {
                match rows {
                    Rows::Selected(selection) => valid.clone_from(selection),
                    Rows::Listed(rows) => valid.reset_to(chunk.rows(), rows),
                }
                chunk.filter(isa, &ColumnPredicate::NotNull, valid);
                valid
            }
        };
        let known = ranks.len();
        if self.domain == Domain::Integer {
            chunk.gather_integers(isa, selected, ranks);
        } else {
            floats.clear();
            chunk.gather_floats(isa, selected, floats);
            ranks.extend(floats.iter().map(|&float| float_key(float)));
        }
        if self.key.descending {
            ranks[known..].iter_mut().for_each(|rank| *rank = !*rank);
        }
        if ranks.len() == known || ranks.len() < self.rows {
            return false;
        }
        let (_, bound, _) = ranks.select_nth_unstable(self.rows - 1);
        let before = self.bound.fetch_min(*bound, Relaxed);
        let is_better = *bound < before;
        ranks.truncate(self.rows);
        is_better
    }
}

impl BestRanks {
    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.valid.words().len();
        (self.ranks.capacity() + self.floats.capacity() + words) * size_of::<u64>()
    }
}

impl Rows<'_> {
    fn filter(
        &mut self,
        chunk: &ColumnChunk,
        isa: Isa,
        test: ChunkTest<'_>,
        scratch: &mut Selection,
    ) {
        match self {
            Rows::Selected(selection) => test.filter(chunk, isa, selection, scratch),
            Rows::Listed(rows) => test.retain(chunk, isa, rows),
        }
    }
}
