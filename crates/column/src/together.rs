//! Several predicates on one column chunk, whose values come from memory once.
//!
//! ```text
//! packed    ranges            one kernel call for all of them: a vector is unpacked once
//!           bitmaps, sets     one after the other: a column chunk fits into a second-level cache
//! framed    any               a vector is decoded once
//! others    any               one after the other: they are small (runs), or long to compare (text)
//! ```

use crate::chunk::ColumnChunk;
use crate::data::Integers;
use crate::packed::Packed;
use crate::predicate::{ColumnPredicate, Reduced};
use crate::selection::Selection;
use eris_kernels::{Isa, PassedValues, RangeTest};

/// One of several predicates on a column chunk.
#[derive(Debug)]
pub struct ColumnTest<'a> {
    /// What must hold.
    pub predicate: &'a ColumnPredicate,
    /// What is done with the rows that pass.
    pub passed: PassedRows<'a>,
}

/// What a [`ColumnTest`] does with the rows that pass.
#[derive(Debug)]
pub enum PassedRows<'a> {
    /// Keeps them of a selection, as [`ColumnChunk::filter`] does.
    Kept(&'a mut Selection),
    /// Sets this to their number, of all rows, as [`ColumnChunk::count`] finds it.
    Counted(&'a mut u64),
}

impl ColumnChunk {
    /// Does what each test wants.
    ///
    /// # Panics
    /// As [`ColumnChunk::filter`] does for one of them.
    pub fn filter_together(&self, isa: Isa, tests: &mut [ColumnTest<'_>]) {
        let mut joined = Vec::with_capacity(tests.len());
        for test in tests {
            match self.joins(test) {
                Some((integers, condition)) => joined.push((integers, condition, test)),
                None => self.test(isa, test),
            }
        }
        match &mut joined[..] {
            [] => return,
            [(_, _, test)] => return self.test(isa, test),
            [(Integers::Packed(packed), ..), ..] => {
                let ranges = joined.iter_mut();
                let ranges = ranges.map(|(_, condition, test)| packed.range_test(*condition, test));
                packed.test_ranges(isa, &mut ranges.collect::<Vec<_>>());
            }
            [(Integers::Framed(framed), ..), ..] => {
                let conditions = joined.iter_mut().filter_map(|(_, condition, test)| {
                    test.kept()
                        .map(|selection| (*condition, selection.words_mut()))
                });
                framed.filter_each(isa, &mut conditions.collect::<Vec<_>>());
            }
            _ => unreachable!("tests that have nothing in common"),
        }
        for (integers, condition, test) in joined {
            match (&mut test.passed, integers) {
                (PassedRows::Kept(selection), _) => self.validity.retain_valid(selection),
                (PassedRows::Counted(count), Integers::Packed(packed)) => {
                    **count -= packed.padding_passed(condition);
                }
                _ => unreachable!("only packed values are counted"),
            }
        }
    }

    fn test(&self, isa: Isa, test: &mut ColumnTest<'_>) {
        match &mut test.passed {
            PassedRows::Kept(selection) => self.filter(isa, test.predicate, selection),
            PassedRows::Counted(count) => **count = self.count(isa, test.predicate) as u64,
        }
    }

    /// The integers that are stored, and what a test comes down to for them, if it is cheaper with others.
    fn joins<'a>(&self, test: &ColumnTest<'a>) -> Option<(&Integers, Reduced<'a>)> {
        let (integers, condition) = self.reduce_integers(test.predicate)?;
        let is_range = matches!(condition, Reduced::Between(..) | Reduced::NotBetween(..));
        let joins = match (integers, &test.passed) {
            _ if matches!(condition, Reduced::None | Reduced::All) => false,
            (Integers::Packed(_), PassedRows::Kept(_)) => is_range,
            // The slot of a NULL holds a value, too.
            (Integers::Packed(_), PassedRows::Counted(_)) => is_range && self.nulls() == 0,
            (Integers::Framed(framed), PassedRows::Kept(_)) => !framed.is_sorted(),
            _ => false,
        };
        joins.then_some((integers, condition))
    }
}

impl<'a> ColumnTest<'a> {
    fn kept(&mut self) -> Option<&mut Selection> {
        match &mut self.passed {
            PassedRows::Kept(selection) => Some(selection),
            PassedRows::Counted(_) => None,
        }
    }
}

impl Packed {
    /// A test in the kernels' form, of a range or of what is outside of one.
    fn range_test<'a>(
        &self,
        condition: Reduced<'_>,
        test: &'a mut ColumnTest<'_>,
    ) -> RangeTest<'a> {
        let (low, high, outside) = match condition {
            Reduced::Between(low, high) => (low, high, false),
            Reduced::NotBetween(low, high) => (low, high, true),
            other => unreachable!("{other:?} is no range"),
        };
        RangeTest {
            lo: self.distance(low),
            hi: self.distance(high),
            outside,
            passed: match &mut test.passed {
                PassedRows::Kept(selection) => PassedValues::Kept(selection.words_mut()),
                PassedRows::Counted(count) => {
                    **count = 0;
                    PassedValues::Counted(count)
                }
            },
        }
    }

    fn test_ranges(&self, isa: Isa, tests: &mut [RangeTest<'_>]) {
        isa.between_each(self.width(), self.words(), self.vectors(), tests);
    }

    /// How much of the padding passes a test of a range: it has distance 0.
    fn padding_passed(&self, condition: Reduced<'_>) -> u64 {
        let passes = match condition {
            Reduced::Between(low, _) => self.distance(low) == 0,
            Reduced::NotBetween(low, _) => self.distance(low) != 0,
            other => unreachable!("{other:?} is no range"),
        };
        if passes { self.padding() as u64 } else { 0 }
    }
}
