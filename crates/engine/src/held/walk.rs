//! Following a path in one partition: from keys to ids, from ids to rows that a snapshot sees.
//!
//! ```text
//! primary      newest row per key ─┐
//! deleted      rows of older snapshots (held::deleted), rows that a commit under way deletes ────┴─▶ ids ─▶ chunks
//! secondary    all rows that some snapshot may see ───────────────────────────────────────────────▶ ids ─▶ chunks
//! of all owners: found when the path was made, or those of its own that come first in order ──────▶ ids ─▶ chunks
//! ```
//!
//! At any snapshot at most one row has a key; it is the newest, or was deleted since. So the two sources of the first
//! kind together know all rows, as long as it is remembered what was deleted.

use crate::held::entered::Entered;
use crate::held::index_part::is_gone;
use crate::held::partition::Partition;
use crate::held::primary::PrimaryIndex;
use crate::held::secondary::{OwnedKey, Secondary, Tree};
use crate::object::coding::ByteRange;
use crate::object::indexes::key_bytes;
use crate::object::keys::KeyRange;
use crate::object::path::{Enough, Path};
use eris_home::IndexKind;
use eris_store::ChunkView;
use eris_types::{AeuId, RowId, Timestamp};
use std::ops::Bound;

/// So many rows that nobody sees are worth cleaning up behind a lookup.
const GONE: usize = 32;

/// A fragment of single keys takes as long as so many lookups in a batch.
const POINT_LOOKUPS: u64 = 100;

/// More rows than an index is good for, or nobody knows.
struct TooMany;

/// An index with an order: that of the key, which has no NULL, or a secondary one.
#[derive(Clone, Copy)]
enum Ordered<'a> {
    Primary(&'a PrimaryIndex),
    Secondary(Tree<'a>),
}

/// A walk in progress.
struct Walk<'a> {
    ids: Vec<RowId>,
    most: usize,
    visited: usize,
    /// Rows of other owners that were passed.
    passed: usize,
    /// Chains of a secondary index.
    chains: Option<&'a Secondary>,
    /// Keys that were visited, if they have chains.
    keys: Vec<OwnedKey>,
}

impl<'a> Walk<'a> {
    fn new(most: usize, chains: Option<&'a Secondary>) -> Self {
        Walk {
            ids: Vec::new(),
            most,
            visited: 0,
            passed: 0,
            chains,
            keys: Vec::new(),
        }
    }

    /// Passes a row that is another owner's.
    fn pass(&mut self) -> Result<bool, TooMany> {
        self.passed += 1;
        self.check().map(|()| true)
    }

    fn check(&self) -> Result<(), TooMany> {
        match self.visited + self.passed > self.most {
            true => Err(TooMany),
            false => Ok(()),
        }
    }

    /// Visits the rows of a key; `wanted` says which count, and whether to go on.
    fn visit(
        &mut self,
        newest: u64,
        wanted: &mut impl FnMut(RowId) -> Option<bool>,
    ) -> Result<bool, TooMany> {
        let mut next = Some(RowId(newest));
        while let Some(row) = next {
            self.visited += 1;
            self.check()?;
            if let Some(goes_on) = wanted(row) {
                self.ids.push(row);
                if !goes_on {
                    return Ok(false);
                }
            }
            next = self
                .chains
                .and_then(|chains| chains.chain(Some(row)).nth(1));
        }
        Ok(true)
    }
}

/// The numbers of a range, both ends included, and whether NULL is in it.
fn words(key_range: &ByteRange, nullable: bool) -> (Option<(u64, u64)>, bool) {
    let number = |bytes: &[u8]| {
        let mut padded = [0; 8];
        let common = bytes.len().min(8);
        padded[..common].copy_from_slice(&bytes[..common]);
        u64::from_be_bytes(padded)
    };
    let up_to = |bytes: &[u8]| number(bytes).checked_sub(1);
    if !nullable {
        let high = match &key_range.high {
            None => Some(u64::MAX),
            Some(high) => up_to(high),
        };
        return (high.map(|high| (number(&key_range.low), high)), false);
    }
    let null = key_range.low[..] <= [0][..]
        && key_range
            .high
            .as_ref()
            .is_none_or(|high| high[..] > [0][..]);
    let low = match key_range.low.first() {
        None | Some(0) => Some(0),
        Some(1) => Some(number(&key_range.low[1..])),
        _ => None,
    };
    let high = match key_range.high.as_deref() {
        None => Some(u64::MAX),
        Some([] | [0, ..]) => None,
        Some([1, rest @ ..]) => up_to(rest),
        Some(_) => Some(u64::MAX),
    };
    (low.zip(high).filter(|(low, high)| low <= high), null)
}

impl Partition {
    /// The chunks with the rows that a path leads to, as far as the snapshot sees them, and their positions. `None`: it
    /// cannot tell, or a scan is better.
    pub fn view_by(
        &mut self,
        path: &Path,
        snapshot: Timestamp,
        horizon: Timestamp,
        aeu: AeuId,
    ) -> Option<Vec<ChunkView>> {
        let rows = self
            .segments
            .iter()
            .map(|segment| segment.all_rows() as u64)
            .sum();
        let most = path.most_rows(rows);
        let (mut ids, keys, visited) = match path.index {
            None => {
                let mut extra: Vec<RowId> = self.deleted.behind(snapshot)?.collect();
                let pending = self.pending.values();
                extra.extend(pending.flat_map(|pending| pending.deleted_ids()));
                if extra.len() > most.max(1 << 10) {
                    return None;
                }
                let index = self.index.as_ref()?;
                let mut walk = Walk::new(most.max(path.ranges.len()), None);
                self.primary(index, path, snapshot, aeu, &mut walk).ok()?;
                extra.extend(walk.ids);
                if let (true, Some(index)) = (path.is_points, &mut self.index) {
                    index.reorganizable().work_for_lookups(POINT_LOOKUPS);
                }
                (extra, Vec::new(), 0)
            }
            Some(_) if let Some(found) = &path.found => {
                let ids = found.rows_of(aeu)?;
                let visited = ids.len();
                (ids, Vec::new(), visited)
            }
            Some(id) => {
                let part = self.secondary.iter().find(|part| part.index.id == id)?;
                let secondary = part.usable()?;
                let most = match secondary {
                    Entered::Own(_) => most,
                    // It passes the rows of all owners.
                    Entered::Shared(_) => path.most_rows(self.object.total_rows()),
                };
                let mut walk = Walk::new(most, secondary.own());
                let followed = self.secondary(secondary, path, snapshot, &mut walk);
                let Walk {
                    ids, keys, visited, ..
                } = walk;
                if followed.is_err() {
                    // It has met few rows that it sees, where it looked.
                    if path.enough != Enough::All {
                        self.clean(path, &keys, horizon);
                    }
                    return None;
                }
                (ids, keys, visited)
            }
        };
        ids.sort_unstable();
        ids.dedup();
        let mut views = Vec::new();
        let mut found = 0;
        for of_segment in ids.chunk_by(|a, b| a.segment() == b.segment()) {
            let id = of_segment[0].segment();
            if let Some(segment) = self.segments.iter().find(|segment| segment.id() == id) {
                views.extend(segment.view_of_rows(of_segment, snapshot));
            }
        }
        views
            .iter()
            .for_each(|view| found += view.rows.as_ref().map_or(0, |rows| rows.len()));
        if visited > 2 * found + GONE {
            self.clean(path, &keys, horizon);
        }
        Some(views)
    }

    /// Whether the snapshot sees a row.
    fn sees(&self, row: RowId, snapshot: Timestamp) -> bool {
        let mut segments = self.segments.iter();
        segments
            .find(|segment| segment.id() == row.segment())
            .is_some_and(|segment| segment.sees(row, snapshot))
    }

    fn primary(
        &self,
        index: &PrimaryIndex,
        path: &Path,
        snapshot: Timestamp,
        aeu: AeuId,
        walk: &mut Walk<'_>,
    ) -> Result<(), TooMany> {
        if path.is_points {
            let here = path.ranges.iter().enumerate();
            let here =
                here.filter(|(at, _)| path.owners.get(*at).is_none_or(|owner| *owner == aeu));
            let found = match index.has_words() {
                true => {
                    let words = here
                        .filter_map(|(_, key_range)| words(key_range, false).0.map(|word| word.0));
                    index.rows_of_words(&words.collect::<Vec<u64>>())
                }
                false => {
                    let keys: Vec<&[u8]> = here.map(|(_, key_range)| &key_range.low[..]).collect();
                    index.rows_of_bytes(&keys)
                }
            };
            walk.ids.extend(found.into_iter().flatten().map(RowId));
            return Ok(());
        }
        self.follow(Ordered::Primary(index), path, snapshot, walk)
    }

    fn secondary(
        &self,
        entered: &Entered,
        path: &Path,
        snapshot: Timestamp,
        walk: &mut Walk<'_>,
    ) -> Result<(), TooMany> {
        let index = match entered.own() {
            Some(own) if path.is_points => own,
            _ => {
                let tree = entered.tree().ok_or(TooMany)?;
                return self.follow(Ordered::Secondary(tree), path, snapshot, walk);
            }
        };
        let mut all = |_| Some(true);
        if index.has_words() {
            let key_ranges = path.ranges.iter().map(|key_range| words(key_range, true));
            let (found, nulls): (Vec<_>, Vec<_>) = key_ranges.unzip();
            if let Some(null) = index.newest_null().filter(|_| nulls.contains(&true)) {
                walk.keys.push(OwnedKey::Null);
                walk.visit(null.0, &mut all)?;
            }
            let found: Vec<u64> = found.into_iter().flatten().map(|word| word.0).collect();
            for (word, newest) in found.iter().zip(index.newest_of_words(&found)) {
                if let Some(newest) = newest {
                    walk.keys.push(OwnedKey::Word(*word));
                    walk.visit(newest, &mut all)?;
                }
            }
        } else {
            let keys: Vec<&[u8]> = path
                .ranges
                .iter()
                .map(|key_range| &key_range.low[..])
                .collect();
            for (key, newest) in keys.iter().zip(index.newest_of_bytes(&keys)) {
                if let Some(newest) = newest {
                    walk.keys.push(OwnedKey::Bytes((*key).into()));
                    walk.visit(newest, &mut all)?;
                }
            }
        }
        Ok(())
    }

    /// Walks along the ranges in order, until there is enough.
    fn follow(
        &self,
        index: Ordered<'_>,
        path: &Path,
        snapshot: Timestamp,
        walk: &mut Walk<'_>,
    ) -> Result<(), TooMany> {
        match path.enough {
            Enough::All => {
                along(index, path.ranges.iter(), false, walk, &mut |_| Some(true))?;
            }
            Enough::First(rows) => {
                let mut left = rows;
                let key_ranges = path.ranges.iter();
                along(index, key_ranges, path.descending, walk, &mut |row| {
                    self.sees(row, snapshot).then(|| {
                        left = left.saturating_sub(1);
                        left > 0
                    })
                })?;
            }
            Enough::Ends { first, last } => {
                let mut one = |row| self.sees(row, snapshot).then_some(false);
                if first {
                    along(index, path.ranges.iter(), false, walk, &mut one)?;
                }
                if last {
                    along(index, path.ranges.iter().rev(), true, walk, &mut one)?;
                }
            }
        }
        Ok(())
    }

    /// Takes rows that nobody sees any more out of the chains of some keys, or out of the tree of all owners where a
    /// path leads.
    fn clean(&mut self, path: &Path, keys: &[OwnedKey], horizon: Timestamp) {
        let segments = &self.segments;
        let mut parts = self.secondary.iter_mut();
        if let Some(part) = parts.find(|part| Some(part.index.id) == path.index) {
            part.clean(keys, path, |row| is_gone(segments, row, horizon));
            self.tell_of_indexes();
        }
    }
}

/// Visits the rows of ranges, each from its end if the walk descends.
fn along<'s>(
    index: Ordered<'_>,
    key_ranges: impl Iterator<Item = &'s ByteRange>,
    descending: bool,
    walk: &mut Walk<'_>,
    wanted: &mut impl FnMut(RowId) -> Option<bool>,
) -> Result<(), TooMany> {
    for key_range in key_ranges {
        let tree = match index {
            Ordered::Secondary(tree) => tree,
            Ordered::Primary(index) => {
                if !along_key(index, key_range, descending, walk, wanted)? {
                    return Ok(());
                }
                continue;
            }
        };
        match tree {
            Tree::Words(tree) => {
                let (range, has_null) = words(key_range, true);
                let null = walk.chains.and_then(|chains| chains.newest_null());
                if let Some(null) = null.filter(|_| has_null) {
                    walk.keys.push(OwnedKey::Null);
                    if !walk.visit(null.0, wanted)? {
                        return Ok(());
                    }
                }
                let Some((low, high)) = range else {
                    continue;
                };
                let mut entries = tree.range(low..=high);
                while let Some((word, newest)) = match descending {
                    true => entries.next_back(),
                    false => entries.next(),
                } {
                    if walk.chains.is_some() {
                        walk.keys.push(OwnedKey::Word(word));
                    }
                    if !walk.visit(newest, wanted)? {
                        return Ok(());
                    }
                }
            }
            Tree::Shared(tree, owner) => {
                let mut visited = Ok(true);
                let goes_on = tree.walk(key_range, descending, |columns, other, row| {
                    visited = match other == owner {
                        _ if columns.len() >= key_bytes(IndexKind::Shared) => Err(TooMany),
                        true => walk.visit(row.0, wanted),
                        false => walk.pass(),
                    };
                    matches!(visited, Ok(true))
                });
                visited?;
                if !goes_on {
                    return Ok(());
                }
            }
            Tree::Bytes(tree) => {
                let high = key_range
                    .high
                    .as_deref()
                    .map_or(Bound::Unbounded, Bound::Excluded);
                let mut entries = tree.range((Bound::Included(&key_range.low[..]), high));
                while let Some((key, newest)) = match descending {
                    true => entries.next_back(),
                    false => entries.next(),
                } {
                    if walk.chains.is_some() {
                        // Keys that were cut off have no order among themselves.
                        if key.len() >= key_bytes(IndexKind::Ordered) {
                            return Err(TooMany);
                        }
                        walk.keys.push(OwnedKey::Bytes(key.into()));
                    }
                    if !walk.visit(newest, wanted)? {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Visits the rows of a range of the key; says whether to go on.
fn along_key(
    index: &PrimaryIndex,
    key_range: &ByteRange,
    descending: bool,
    walk: &mut Walk<'_>,
    wanted: &mut impl FnMut(RowId) -> Option<bool>,
) -> Result<bool, TooMany> {
    let keys = match index.has_words() {
        true => {
            let Some((low, high)) = words(key_range, false).0.filter(|(low, high)| low <= high)
            else {
                return Ok(true);
            };
            KeyRange::Words((Bound::Included(low), Bound::Included(high)))
        }
        false => {
            let high = key_range.high.clone();
            let high = high.map_or(Bound::Unbounded, Bound::Excluded);
            KeyRange::Bytes((Bound::Included(key_range.low.to_vec()), high))
        }
    };
    let mut visited = Ok(true);
    index.visit(&keys, descending, |row| {
        visited = walk.visit(row.0, wanted);
        matches!(visited, Ok(true))
    });
    visited
}
