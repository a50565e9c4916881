//! The way to a fragment's rows: which index leads to them, and by which keys; or none.
//!
//! ```text
//! index on (a, b), WHERE a IN (1, 7) AND b > 5 AND c = 3
//!
//! a:  1 · 7 (values)     b: 5 … (a range)        keys from (1, 5] to before (2), from (7, 5] to before (8)
//!                                                c = 3 is the filter's business, which looks at all conditions again
//! ```
//!
//! Columns of the index are taken in order as long as conditions leave single values of them, and one more with a
//! range. A path leads to all rows that pass, and may lead to others. Whether it pays off is estimated here and found
//! out by the owner, who leaves it when it leads to more rows than a scan would need.

mod candidate;
mod found;

use crate::object::coding::{ByteRanges, Coding};
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use crate::object::keys::word_bytes;
use crate::object::load::Timed;
use crate::object::shared_index::SharedIndex;
use candidate::Candidate;
use eris_column::Domain;
use eris_fragment::{Access, Fragment};
use eris_home::IndexKind;
use eris_types::{AeuId, ColumnId, Timestamp};
use found::{FoundRows, are_mixed};

/// One row in so many: a range that leads to more is faster found by reading all (docs/decisions/0013).
const ROWS_PER_LOOKUP: u64 = 4096;
/// The same of single keys, for which a scan has to look up every row in a set.
const ROWS_PER_KEY: u64 = 1024;
/// The same where the first rows in order are enough, for which all others would have to be compared.
const ROWS_IN_ORDER: u64 = 512;
/// To ask one more owner takes as long as to look at so many more rows (docs/decisions/0041).
const OWNER_ROWS: u64 = 32;
/// So few rows are always worth it.
const ALWAYS: u64 = 64;

impl Path {
    /// How many rows it may lead to in a partition before a scan is better. More than was planned with: part of the way
    /// has been gone already.
    pub fn most_rows(&self, partition_rows: u64) -> usize {
        let share = match self.enough {
            Enough::All => ROWS_PER_LOOKUP / 4,
            Enough::First(_) | Enough::Ends { .. } => ROWS_IN_ORDER / 4,
        };
        (partition_rows / share).max(4 * ALWAYS) as usize
    }
}

/// Which rows are enough of those that the keys lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    All,
    /// So many that the snapshot sees, from the end at which the walk begins.
    First(usize),
    /// The first and the last that the snapshot sees.
    Ends {
        first: bool,
        last: bool,
    },
}

/// An index and keys in it.
#[derive(Debug)]
pub(crate) struct Path {
    /// The number of a secondary index; `None`: that of the key.
    pub index: Option<u32>,
    columns: Vec<ColumnId>,
    /// In the order of the walk.
    pub ranges: ByteRanges,
    /// Whether each range is one whole key.
    pub is_points: bool,
    /// Each range is walked from its end.
    pub descending: bool,
    pub enough: Enough,
    /// Who holds the keys of each range, if it is a whole key, by ranges of them.
    pub owners: Vec<AeuId>,
    conditions: Vec<usize>,
    probes: Vec<usize>,
    rows: Option<u64>,
    /// The rows, where one tree leads to those of all owners.
    pub found: Option<FoundRows>,
    /// How many owners are asked, as far as it is known.
    asked: u64,
}

impl Path {
    /// The best path for a fragment, if any promises to be better than reading all.
    pub fn of(fragment: &Fragment, object: &DataObject) -> Option<Path> {
        let total = || -> u64 { object.total_rows() };
        let mut best: Option<Path> = None;
        if !object.key.is_empty() {
            let types: Vec<_> = object
                .key
                .iter()
                .map(|column| object.schema.field(column.index()).data_type())
                .collect();
            let word = matches!(types[..], [one] if Domain::of(one) == Some(Domain::Integer));
            let candidate = Candidate {
                index: None,
                kind: IndexKind::Ordered,
                columns: object.key.to_vec(),
                codings: types
                    .iter()
                    .map(|data_type| Coding::new(data_type, false, word))
                    .collect(),
                rows_per_value: Some(1.0),
            };
            best = candidate.path(fragment, object);
            if let (Some(path), Some(bytes)) = (&mut best, word_bytes(types)) {
                // Numbers of several columns have these bytes at their end.
                let ahead = 8 - bytes;
                path.ranges
                    .iter_mut()
                    .for_each(|range| range.put_ahead(ahead));
            }
            // At most one row: there is no better one.
            if best
                .as_ref()
                .is_some_and(|path| path.is_points && path.ranges.len() <= 1)
            {
                return best;
            }
        }
        for index in object.indexes().iter().filter(|index| index.is_ready()) {
            let columns = index.columns.iter();
            let types: Vec<_> = columns
                .map(|column| object.schema.field(column.index()).data_type())
                .collect();
            let (entries, keys) = index.size();
            let word = index.has_words(&object.schema);
            let candidate = Candidate {
                index: Some(index.id),
                kind: index.kind,
                columns: index.columns.to_vec(),
                codings: types
                    .iter()
                    .map(|data_type| Coding::new(data_type, true, word))
                    .collect(),
                rows_per_value: (keys > 0).then(|| entries as f64 / keys as f64),
            };
            let path = candidate.path(fragment, object);
            let path = match index.kind {
                IndexKind::Shared => path.and_then(|path| path.found_in(index, object)),
                IndexKind::Ordered | IndexKind::Hashed => path,
            };
            best = match (best, path) {
                (Some(best), Some(path)) => Some(if path.cost() < best.cost() {
                    path
                } else {
                    best
                }),
                (best, path) => best.or(path),
            };
        }
        best.filter(|path| {
            let share = if path.is_points {
                ROWS_PER_KEY
            } else {
                ROWS_PER_LOOKUP
            };
            let always = match path.found {
                // Some may be of rows that are gone, which are taken out where the path leads.
                Some(_) => 4 * ALWAYS,
                None => ALWAYS,
            };
            let few = |rows| rows <= always || rows <= total() / share;
            path.enough != Enough::All || path.rows.is_none_or(few)
        })
    }

    /// The same path by a tree of all owners, with the rows to which it leads. `None`: these are too many, or each
    /// owner would pass too many of others.
    fn found_in(mut self, index: &Index, object: &DataObject) -> Option<Path> {
        if self.enough != Enough::All {
            let owners: Vec<AeuId> = object.holders().map(|(aeu, _)| aeu).collect();
            let most = self.most_rows(object.total_rows());
            let is_mixed = self.is_mixed(index.tree()?, most, &owners);
            return is_mixed.then_some(self);
        }
        let most = self.most_rows(object.total_rows());
        let found = FoundRows::of(index, &self.ranges, most)?;
        self.rows = Some(found.len() as u64);
        self.asked = found.owners().len().max(1) as u64;
        self.found = Some(found);
        Some(self)
    }

    /// Whether each owner soon meets enough of its own rows on its walk.
    fn is_mixed(&self, tree: &SharedIndex, most: usize, owners: &[AeuId]) -> bool {
        let ranges = self.ranges.iter();
        match self.enough {
            Enough::All => true,
            Enough::First(rows) => are_mixed(tree, ranges, self.descending, (rows, most), owners),
            Enough::Ends { first, last } => {
                (!first || are_mixed(tree, ranges.clone(), false, (1, most), owners))
                    && (!last || are_mixed(tree, ranges.rev(), true, (1, most), owners))
            }
        }
    }

    /// What it takes, in rows that are looked at.
    fn cost(&self) -> u64 {
        let rows = match self.enough {
            Enough::All => self.rows.unwrap_or(u64::MAX / 2),
            Enough::First(rows) => rows as u64,
            Enough::Ends { .. } => 2,
        };
        rows + OWNER_ROWS * self.asked + u64::from(self.found.is_some())
    }

    /// Whether at most one owner has at most one row, or all rows are few and known.
    pub fn is_little(&self) -> bool {
        let is_known = |found: &FoundRows| found.is_all() && found.len() as u64 <= ALWAYS;
        self.found.as_ref().is_some_and(is_known)
            || self.index.is_none() && self.is_points && self.ranges.len() <= 1
    }

    /// The owners of the keys' rows that a snapshot shows, ascending, if rows are assigned by ranges of these, or were
    /// found. At least one.
    pub fn holders(&mut self, object: &DataObject, snapshot: Timestamp) -> Option<Vec<AeuId>> {
        if let Some(found) = &self.found {
            return Some(at_least_one(found.owners()));
        }
        if self.index.is_some() {
            return None;
        }
        // Keys may have been shifted since: then anybody may have them.
        let ranges = object
            .ranges
            .get()
            .filter(|ranges| ranges.since <= snapshot)?;
        let mut holders: Vec<AeuId> = Vec::new();
        for range in &self.ranges {
            if self.is_points {
                let owner = ranges.owner_of(&range.low);
                self.owners.push(owner);
                holders.push(owner);
            } else {
                holders.extend(ranges.owners_between(&range.low, range.high.as_deref()));
            }
        }
        holders.sort_unstable();
        holders.dedup();
        Some(at_least_one(holders))
    }

    /// An owner has looked up the keys, which are whole ones.
    pub fn note_keys(&self, object: &DataObject, aeu: AeuId, timed: Option<Timed>) {
        let own = self.ranges.iter().enumerate();
        let own = own.filter(|(at, _)| self.owners.get(*at).is_none_or(|owner| *owner == aeu));
        let own: Vec<_> = own.map(|(_, range)| range).collect();
        object.loads.end_keys(aeu, timed, own.len(), |some| {
            let ranges = object.ranges.get().into_iter();
            let numbers = ranges.flat_map(|ranges| {
                let number = |at: &u32| ranges.number_of(&own[*at as usize].low);
                some.iter().map(number).collect::<Vec<_>>()
            });
            numbers.collect()
        });
    }

    /// What planners may know of it.
    pub fn access(&self) -> Access {
        Access {
            index: self.index,
            columns: self.columns.clone(),
            conditions: self.conditions.clone(),
            probes: self.probes.clone(),
            rows: match self.enough {
                Enough::All => self.rows,
                Enough::First(rows) => Some(rows as u64),
                Enough::Ends { first, last } => Some(u64::from(first) + u64::from(last)),
            },
            ordered: self.enough != Enough::All,
        }
    }
}

/// Somebody has to say that there are no rows.
fn at_least_one(mut owners: Vec<AeuId>) -> Vec<AeuId> {
    if owners.is_empty() {
        owners.push(AeuId(0));
    }
    owners
}
