//! Rows that commits have replaced or removed which are applied, but not visible yet. See [`crate::sequencer`].
//!
//! ```text
//! index            key 7 ─▶ row 30           the newest rows
//! added            row 30 at t9, before: row 20      row 20 at t8, before: row 10
//! removed          key 5 at t9: row 11
//!
//! reader at t7     key 7 ─▶ 30 ─▶ 20 ─▶ 10           key 5 ─▶ none ─▶ 11
//! ```
//!
//! The index knows the newest rows only. So a reader goes back from there, commit by commit, to what its snapshot sees,
//! and waits for nobody. Where commits are visible as soon as they are applied, nothing is kept.

use crate::object::keys::{KeyRange, Keys};
use eris_numa::{Budget, Reservation};
use eris_types::{RowId, Timestamp};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A key as bytes that sort as keys do.
type KeyBytes = Box<[u8]>;

/// What is kept of commits that are not visible yet.
#[derive(Debug, Default)]
pub(crate) struct Superseded {
    /// Rows that were added: the first of consecutive ids, how many, and when.
    added: BTreeMap<RowId, (usize, Timestamp)>,
    /// The rows before, of those that had one.
    before: HashMap<RowId, RowId>,
    /// The last rows of keys that were removed, in the order of commits.
    removed: BTreeMap<KeyBytes, Vec<(Timestamp, RowId)>>,
    /// What is kept for which commit, in their order.
    commits: VecDeque<SupersedingCommit>,
}

/// What a commit has done to the keys of a partition.
#[derive(Debug, Default)]
pub(crate) struct SupersedingCommit {
    pub at: Timestamp,
    /// The first of consecutive ids, and how many.
    pub added: Vec<(RowId, usize)>,
    /// Of added rows that replace others: both ids.
    pub replaced: Vec<(RowId, RowId)>,
    /// Keys that no row has any more, and the rows that had them.
    pub removed: Vec<(KeyBytes, RowId)>,
    /// For all of it, also beyond the limit: a commit cannot fail.
    reserved: Option<Reservation>,
}

/// What an entry takes, about.
const ENTRY_BYTES: u64 = 64;

impl SupersedingCommit {
    /// Nothing yet, at this timestamp.
    pub fn at(at: Timestamp) -> Self {
        SupersedingCommit {
            at,
            ..SupersedingCommit::default()
        }
    }

    fn bytes(&self) -> u64 {
        let keys = self.removed.iter().map(|(key, _)| key.len() as u64);
        let entries = self.added.len() + self.replaced.len() + self.removed.len();
        2 * keys.sum::<u64>() + entries as u64 * ENTRY_BYTES
    }
}

/// A key's bytes.
pub(crate) fn key_bytes(keys: &Keys, row: usize) -> KeyBytes {
    match keys {
        Keys::Words(words) => Box::new(words[row].to_be_bytes()),
        Keys::Bytes(..) => keys.bytes(row).into(),
    }
}

impl Superseded {
    /// Whether nothing is kept: then the index is right for every snapshot that somebody may take now.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// Keeps what a commit has done.
    pub fn add(&mut self, mut commit: SupersedingCommit, budget: &Budget) {
        let at = commit.at;
        let mut reserved = budget.try_reserve(0).expect("nothing is always granted");
        reserved.grow(commit.bytes());
        commit.reserved = Some(reserved);
        for (first, rows) in &commit.added {
            self.added.insert(*first, (*rows, at));
        }
        self.before.extend(commit.replaced.iter().copied());
        for (key, row) in &commit.removed {
            self.removed
                .entry(key.clone())
                .or_default()
                .push((at, *row));
        }
        self.commits.push_back(commit);
    }

    /// Forgets what everybody sees who takes a snapshot from `visible` on. The newest commit among these that has
    /// removed keys, if one has.
    pub fn forget(&mut self, visible: Timestamp) -> Option<Timestamp> {
        let mut removed = None;
        while let Some(commit) = self.commits.pop_front_if(|commit| commit.at <= visible) {
            for (first, _) in commit.added {
                self.added.remove(&first);
            }
            for (new, _) in commit.replaced {
                self.before.remove(&new);
            }
            if !commit.removed.is_empty() {
                removed = Some(commit.at);
            }
            for (key, _) in commit.removed {
                if let Some(rows) = self.removed.get_mut(&key) {
                    rows.retain(|(at, _)| *at > commit.at);
                    if rows.is_empty() {
                        self.removed.remove(&key);
                    }
                }
            }
        }
        removed
    }

    /// The row that has a key at a snapshot, if the newest one is `row`.
    pub fn resolve(
        &self,
        keys: &Keys,
        at: usize,
        row: Option<RowId>,
        snapshot: Timestamp,
    ) -> Option<RowId> {
        match row {
            None if self.removed.is_empty() => None,
            None => self.last_row(&key_bytes(keys, at), Timestamp::NEVER, snapshot),
            Some(row) => self.resolve_row(row, snapshot, || key_bytes(keys, at)),
        }
    }

    /// The row that the key of a row has at a snapshot.
    pub fn resolve_row(
        &self,
        row: RowId,
        snapshot: Timestamp,
        key: impl FnOnce() -> KeyBytes,
    ) -> Option<RowId> {
        match self.before(row, snapshot) {
            Before::IsSeen => Some(row),
            Before::Row(row) => Some(row),
            Before::Nothing(_) if self.removed.is_empty() => None,
            Before::Nothing(since) => self.last_row(&key(), since, snapshot),
        }
    }

    /// Whether a row is seen at a snapshot, or else which one had its key.
    fn before(&self, row: RowId, snapshot: Timestamp) -> Before {
        let mut row = row;
        let mut is_first = true;
        loop {
            let run = self.added.range(..=row).next_back();
            let added = run.filter(|(first, (rows, _))| row.0 - first.0 < *rows as u64);
            match added {
                Some((_, (_, at))) if *at > snapshot => match self.before.get(&row) {
                    Some(before) => row = *before,
                    None => return Before::Nothing(*at),
                },
                _ if is_first => return Before::IsSeen,
                _ => return Before::Row(row),
            }
            is_first = false;
        }
    }

    /// The row of a key that was removed before `before`, at a snapshot.
    fn last_row(&self, key: &[u8], before: Timestamp, snapshot: Timestamp) -> Option<RowId> {
        let mut before = before;
        loop {
            let mut removals = self.removed.get(key)?.iter().rev();
            let (at, row) = removals.find(|(at, _)| *at < before)?;
            if *at <= snapshot {
                return None;
            }
            match self.before(*row, snapshot) {
                Before::IsSeen => return Some(*row),
                Before::Row(row) => return Some(row),
                Before::Nothing(since) => before = since,
            }
        }
    }

    /// Keys of a range that were removed behind a snapshot, and the rows that they have at it, in the order of keys.
    /// Some of them may have other rows by now.
    pub fn removed_in<'a>(
        &'a self,
        keys: &'a KeyRange,
        snapshot: Timestamp,
    ) -> impl Iterator<Item = (&'a [u8], RowId)> {
        let within = self.removed.keys().filter(|key| keys.has(key));
        within.filter_map(move |key| {
            let row = self.last_row(key, Timestamp::NEVER, snapshot)?;
            Some((&**key, row))
        })
    }
}

/// What was before a row.
enum Before {
    /// The snapshot sees the row.
    IsSeen,
    /// It sees this one instead.
    Row(RowId),
    /// The key had none, directly before this commit.
    Nothing(Timestamp),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::keys::Keys;
    use std::ops::Bound;

    /// A table with keys below [`KEYS`], all versions of it, and what the index and this would know.
    struct Model {
        /// The rows of all keys, as of each commit.
        versions: Vec<BTreeMap<u64, RowId>>,
        superseded: Superseded,
        next: u64,
    }

    const KEYS: u64 = 12;

    impl Model {
        fn commit(&mut self, random: &mut impl FnMut(u64) -> u64) {
            let mut rows = self.versions.last().expect("there is one").clone();
            let mut commit = SupersedingCommit::at(Timestamp(self.versions.len() as u64));
            let first = RowId(self.next);
            let mut added = 0;
            for key in 0..KEYS {
                match random(6) {
                    0 => {
                        if let Some(row) = rows.remove(&key) {
                            commit.removed.push((Box::new(key.to_be_bytes()), row));
                        }
                    }
                    1 | 2 => {
                        let row = first.plus(added);
                        added += 1;
                        if let Some(before) = rows.insert(key, row) {
                            commit.replaced.push((row, before));
                        }
                    }
                    _ => {}
                }
            }
            if added > 0 {
                commit.added.push((first, added));
            }
            self.next += added as u64 + random(2);
            self.superseded.add(commit, &Budget::new(1 << 20));
            self.versions.push(rows);
        }
    }

    #[test]
    fn every_snapshot_finds_its_rows() {
        for seed in 1..200u64 {
            let mut state = seed * 0x9e37_79b9_7f4a_7c15;
            let mut random = |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            let mut model = Model {
                versions: vec![BTreeMap::new()],
                superseded: Superseded::default(),
                next: 100,
            };
            let keys = Keys::Words((0..KEYS).collect());
            let mut visible = 0;
            for _ in 0..40 {
                model.commit(&mut random);
                if random(4) == 0 {
                    visible += random(model.versions.len() as u64 - visible);
                    model.superseded.forget(Timestamp(visible));
                }
                let newest = model.versions.last().unwrap();
                for at in visible as usize..model.versions.len() {
                    let snapshot = Timestamp(at as u64);
                    for key in 0..KEYS {
                        let row = newest.get(&key).copied();
                        let found = model.superseded.resolve(&keys, key as usize, row, snapshot);
                        let expected = model.versions[at].get(&key).copied();
                        assert_eq!(found, expected, "seed {seed}, key {key} at {at}");
                    }
                    let range = KeyRange::Words((Bound::Included(3), Bound::Excluded(9)));
                    for (key, row) in model.superseded.removed_in(&range, snapshot) {
                        let key = u64::from_be_bytes(key.try_into().unwrap());
                        assert!((3..9).contains(&key));
                        assert_eq!(model.versions[at].get(&key), Some(&row), "seed {seed}");
                    }
                }
            }
            model.superseded.forget(Timestamp::NEVER);
            assert!(model.superseded.is_empty() && model.superseded.added.is_empty());
            assert!(model.superseded.before.is_empty() && model.superseded.removed.is_empty());
        }
    }
}
