//! The rows of a segment by their numbers, as runs.

use std::collections::BTreeMap;

/// Which rows there are.
#[derive(Debug, Default)]
pub struct Living {
    /// The first of each run, and its last.
    runs: BTreeMap<u32, u32>,
}

impl Living {
    /// Adds so many rows from `first` on, at least one. `None`: one of them is there already, or has no number.
    pub fn add(&mut self, first: u32, rows: usize) -> Option<()> {
        let last = last(first, rows)?;
        match self.runs.range_mut(..=last).next_back() {
            Some((_, before)) if *before >= first => return None,
            Some((_, before)) if *before + 1 == first => *before = last,
            _ => drop(self.runs.insert(first, last)),
        }
        Some(())
    }

    /// Removes so many rows from `first` on, at least one. `None`: one of them is not there.
    pub fn remove(&mut self, first: u32, rows: usize) -> Option<()> {
        let last = last(first, rows)?;
        let mut next = first;
        loop {
            let (&from, &to) = self.runs.range(..=next).next_back()?;
            if to < next {
                return None;
            }
            self.runs.remove(&from);
            if from < next {
                self.runs.insert(from, next - 1);
            }
            if to > last {
                self.runs.insert(last + 1, to);
            }
            if to >= last {
                return Some(());
            }
            next = to + 1;
        }
    }

    /// Removes those of so many rows from `first` on that are there.
    pub fn remove_any(&mut self, first: u32, rows: usize) {
        let Some(last) = last(first, rows) else {
            return;
        };
        while let Some((&from, &to)) = self.runs.range(..=last).next_back()
            && to >= first
        {
            self.runs.remove(&from);
            if to > last {
                self.runs.insert(last + 1, to);
            }
            if from < first {
                self.runs.insert(from, first - 1);
            }
        }
    }

    /// How many there are.
    pub fn rows(&self) -> u64 {
        let rows = self.runs.iter();
        rows.map(|(first, last)| u64::from(last - first) + 1).sum()
    }
}

fn last(first: u32, rows: usize) -> Option<u32> {
    first.checked_add(u32::try_from(rows.checked_sub(1)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn what_is_there_of_rows_is_removed(
            adds in prop::collection::vec((0u32..60, 1usize..20), 0..9), removes in prop::collection::vec((0u32..60, 0usize..20), 0..9),
        ) {
            let (mut living, mut expected) = (Living::default(), BTreeSet::new());
            for (first, rows) in adds {
                let all: BTreeSet<u32> = (first..first + rows as u32).collect();
                if expected.is_disjoint(&all) {
                    prop_assert!(living.add(first, rows).is_some());
                    expected.extend(all);
                }
            }
            for (first, rows) in removes {
                living.remove_any(first, rows);
                expected.retain(|row| !(first..first + rows as u32).contains(row));
                prop_assert_eq!(living.rows(), expected.len() as u64);
            }
        }

        #[test]
        fn rows_are_those_of_a_set(steps in prop::collection::vec((any::<bool>(), 0u32..60, 0usize..20), 0..60)) {
            let (mut living, mut expected) = (Living::default(), BTreeSet::new());
            for (adds, first, rows) in steps {
                let all: BTreeSet<u32> = (first..first + rows as u32).collect();
                let done = if adds { living.add(first, rows) } else { living.remove(first, rows) };
                let is_possible = rows > 0 && match adds {
                    true => expected.is_disjoint(&all),
                    false => expected.is_superset(&all),
                };
                prop_assert_eq!(done.is_some(), is_possible);
                match (is_possible, adds) {
                    (true, true) => expected.extend(all),
                    (true, false) => expected = &expected - &all,
                    // What was asked of it in vain has ended it.
                    (false, _) => break,
                }
                prop_assert_eq!(living.rows(), expected.len() as u64);
            }
        }
    }

    #[test]
    fn the_greatest_number_is_one() {
        let mut living = Living::default();
        assert_eq!(living.add(u32::MAX, 1), Some(()));
        assert_eq!(living.add(u32::MAX, 2), None);
        assert_eq!(living.remove(u32::MAX, 1), Some(()));
        assert_eq!(living.rows(), 0);
    }
}
