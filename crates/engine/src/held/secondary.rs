//! A secondary index of one partition: from values of columns to the ids of all rows that have them.
//!
//! ```text
//! map      value ──▶ id of the newest row with it          ordered (ART) or hashed
//! older    id ──▶ id of the row before it with the same value; hashed
//!
//!          'Lyon' ──▶ 9 ──▶ 7 ──▶ 2
//! ```
//!
//! A row is entered when it is written, under its lasting id. It stays while a snapshot may see it. A reader checks
//! visibility and conditions itself. So every snapshot finds all of its rows, also one that is older than the index.
//! Entries of rows that are gone lead nowhere. Those on which lookups stumble are removed, and with too many of them
//! the index is [built anew](crate::held::index_part).
//!
//! NULL has a place before all values. A hashed index, which is asked for equal values only, leaves it out.

mod values;

pub(crate) use values::{IndexedValues, each_in_bytes};

use crate::object::indexes::IndexSize;
use crate::object::shared_index::SharedIndex;
use eris_column::ObjectMemory;
use eris_home::IndexKind;
use eris_index::{Art, HashIndex, IndexError};
use eris_numa::Extent;
use eris_types::{AeuId, RowId};

/// Most rows of a chain that are looked at in one go for whether they are gone.
const CLEANED: usize = 4_096;

#[derive(Debug)]
enum Map {
    OrderedWords(Art<u64>),
    OrderedBytes(Art<[u8]>),
    HashedWords(HashIndex<u64>),
    HashedBytes(HashIndex<[u8]>),
}

/// Calls a method of whichever map takes numbers, or whichever takes bytes.
macro_rules! with_map {
    ($map:expr, words $w:ident => $words:expr, bytes $b:ident => $bytes:expr) => {
        match $map {
            Map::OrderedWords($w) => $words,
            Map::HashedWords($w) => $words,
            Map::OrderedBytes($b) => $bytes,
            Map::HashedBytes($b) => $bytes,
        }
    };
}

/// The index.
#[derive(Debug)]
pub(crate) struct Secondary {
    map: Map,
    older: HashIndex<u64>,
    /// The newest row whose only column is NULL, where keys are numbers and have an order.
    null: Option<RowId>,
}

impl Secondary {
    /// An empty index of columns of these types.
    pub fn new(kind: IndexKind, words: bool, home: ObjectMemory<'_>) -> Self {
        let memory = home.memory.clone();
        let map = match (kind, words) {
            (IndexKind::Ordered, true) => Map::OrderedWords(Art::new(memory, home.object)),
            (IndexKind::Ordered, false) => Map::OrderedBytes(Art::new(memory, home.object)),
            (IndexKind::Hashed, true) => Map::HashedWords(HashIndex::new(memory, home.object)),
            (IndexKind::Hashed, false) => Map::HashedBytes(HashIndex::new(memory, home.object)),
            (IndexKind::Shared, _) => unreachable!("it is not one partition's"),
        };
        Secondary {
            map,
            older: HashIndex::new(home.memory.clone(), home.object),
            null: None,
        }
    }

    /// How many different values it has.
    pub fn keys(&self) -> usize {
        let values = with_map!(&self.map, words map => map.len(), bytes map => map.len());
        values + usize::from(self.null.is_some())
    }

    /// How many rows are entered.
    pub fn entries(&self) -> usize {
        self.keys() + self.older.len()
    }

    /// What it takes of the node's memory.
    pub fn bytes(&self) -> usize {
        let map = with_map!(&self.map, words map => map.footprint(), bytes map => map.footprint());
        map.held + self.older.footprint().held
    }

    /// How large it is.
    pub fn size(&self) -> IndexSize {
        IndexSize {
            entries: self.entries() as u64,
            keys: self.keys() as u64,
            bytes: self.bytes() as u64,
        }
    }

    /// The memory that this is.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        with_map!(&self.map, words map => map.extents(all), bytes map => map.extents(all));
        self.older.extents(all);
    }

    /// Enters consecutive rows.
    ///
    /// # Errors
    /// No memory. None of them is entered then.
    pub fn insert(&mut self, values: &IndexedValues, first: RowId) -> Result<(), IndexError> {
        let mut before = Vec::new();
        let (rows, put) = match values {
            IndexedValues::Words(words) => {
                let entries = words.iter().enumerate();
                let entries: Vec<(u64, u64)> = entries
                    .filter_map(|(row, word)| Some(((*word)?, first.plus(row).0)))
                    .collect();
                before.resize(entries.len(), None);
                let put = match &mut self.map {
                    Map::OrderedWords(map) => map.upsert_many(&entries, &mut before),
                    Map::HashedWords(map) => map.upsert_many(&entries, &mut before),
                    _ => unreachable!("values of other columns"),
                };
                (
                    entries.into_iter().map(|entry| entry.1).collect::<Vec<_>>(),
                    put,
                )
            }
            IndexedValues::Bytes(bytes) => {
                let entries = bytes.iter().enumerate();
                let entries: Vec<(&[u8], u64)> = entries
                    .filter_map(|(row, bytes)| Some((bytes?, first.plus(row).0)))
                    .collect();
                before.resize(entries.len(), None);
                let put = match &mut self.map {
                    Map::OrderedBytes(map) => map.upsert_many(&entries, &mut before),
                    Map::HashedBytes(map) => map.upsert_many(&entries, &mut before),
                    _ => unreachable!("values of other columns"),
                };
                (entries.into_iter().map(|entry| entry.1).collect(), put)
            }
        };
        let done = put
            .as_ref()
            .map_or_else(|failed| failed.done, |()| rows.len());
        let links = rows.iter().zip(&before).take(done);
        let mut links: Vec<(u64, u64)> = links
            .filter_map(|(row, before)| Some((*row, (*before)?)))
            .collect();
        let null = self.null;
        if put.is_ok()
            && let (IndexedValues::Words(words), Map::OrderedWords(_)) = (values, &self.map)
        {
            for row in (0..words.len()).filter(|&row| words[row].is_none()) {
                let row = first.plus(row);
                links.extend(self.null.replace(row).map(|before| (row.0, before.0)));
            }
        }
        let mut present = vec![None; links.len()];
        let failed = match put {
            Ok(()) => match self.older.insert_many(&links, &mut present) {
                Ok(()) => return Ok(()),
                Err(failed) => {
                    links.truncate(failed.done);
                    failed.error
                }
            },
            Err(failed) => {
                links.clear();
                failed.error
            }
        };
        for (row, _) in links {
            self.older.remove(row);
        }
        self.null = null;
        self.put_back(values, &before[..done]);
        Err(failed)
    }

    /// Gives the values of the first rows back to the rows that had them before.
    fn put_back(&mut self, values: &IndexedValues, before: &[Option<u64>]) {
        macro_rules! put_back {
            ($map:expr, $keys:expr) => {{
                let keys: Vec<_> = $keys.take(before.len()).collect();
                for (key, before) in keys.into_iter().zip(before).rev() {
                    match before {
                        Some(row) => {
                            let replaced = $map.upsert(key, *row);
                            assert!(
                                replaced.is_ok(),
                                "replacing the value of a key needs no memory"
                            );
                        }
                        None => {
                            $map.remove(key);
                        }
                    }
                }
            }};
        }
        match values {
            IndexedValues::Words(words) => {
                with_map!(&mut self.map, words map => put_back!(map, words.iter().flatten().copied()), bytes _map => {});
            }
            IndexedValues::Bytes(bytes) => {
                with_map!(&mut self.map, words _map => {}, bytes map => put_back!(map, bytes.iter().flatten()));
            }
        }
    }

    /// Takes consecutive rows out again, if they are entered.
    pub fn remove(&mut self, values: &IndexedValues, first: RowId) {
        for row in (0..values.len()).rev() {
            let id = first.plus(row);
            match values {
                IndexedValues::Words(words) => match words[row] {
                    Some(word) => self.remove_from(Key::Word(word), id),
                    None => self.remove_from(Key::Null, id),
                },
                IndexedValues::Bytes(bytes) => {
                    if let Some(bytes) = bytes.get(row) {
                        self.remove_from(Key::Bytes(bytes), id);
                    }
                }
            }
        }
    }

    fn remove_from(&mut self, key: Key<'_>, row: RowId) {
        let Some(newest) = self.newest(key) else {
            return;
        };
        if newest == row {
            let next = self.older.remove(row.0).map(RowId);
            return self.set_newest(key, next);
        }
        let mut at = newest;
        while let Some(next) = self.older.get(at.0) {
            if next == row.0 {
                match self.older.remove(row.0) {
                    Some(behind) => replace(&mut self.older, at, RowId(behind)),
                    None => {
                        self.older.remove(at.0);
                    }
                }
                return;
            }
            at = RowId(next);
        }
    }

    /// Takes rows out of the chains of some keys: those of the first of each of which `is_gone` is true.
    pub fn clean(&mut self, keys: &[OwnedKey], is_gone: impl Fn(RowId) -> bool) {
        for key in keys {
            let key = key.view();
            let mut rows: Vec<RowId> = self.chain(self.newest(key)).take(CLEANED + 1).collect();
            let rest = (rows.len() > CLEANED).then(|| rows.pop()).flatten();
            let (gone, left): (Vec<_>, Vec<_>) =
                rows.iter().copied().partition(|&row| is_gone(row));
            if gone.is_empty() {
                continue;
            }
            for row in gone {
                self.older.remove(row.0);
            }
            let next = left.iter().skip(1).copied().map(Some).chain([rest]);
            for (row, next) in left.iter().zip(next) {
                match next {
                    Some(next) if self.older.get(row.0) == Some(next.0) => {}
                    Some(next) => replace(&mut self.older, *row, next),
                    None => {
                        self.older.remove(row.0);
                    }
                }
            }
            self.set_newest(key, left.first().copied().or(rest));
        }
    }

    fn newest(&self, key: Key<'_>) -> Option<RowId> {
        let found = match (&self.map, key) {
            (_, Key::Null) => return self.null,
            (Map::OrderedWords(map), Key::Word(word)) => map.get(word),
            (Map::HashedWords(map), Key::Word(word)) => map.get(word),
            (Map::OrderedBytes(map), Key::Bytes(bytes)) => map.get(bytes),
            (Map::HashedBytes(map), Key::Bytes(bytes)) => map.get(bytes),
            _ => unreachable!("values of other columns"),
        };
        found.map(RowId)
    }

    /// The rows of a chain from one on.
    pub fn chain(&self, newest: Option<RowId>) -> impl Iterator<Item = RowId> {
        std::iter::successors(newest, |row| self.older.get(row.0).map(RowId))
    }

    /// Replaces or removes the newest row of a key that is there.
    fn set_newest(&mut self, key: Key<'_>, row: Option<RowId>) {
        macro_rules! set {
            ($map:expr, $key:expr) => {
                match row {
                    Some(row) => {
                        let replaced = $map.upsert($key, row.0);
                        assert!(
                            replaced.is_ok(),
                            "replacing the value of a key needs no memory"
                        );
                    }
                    None => {
                        $map.remove($key);
                    }
                }
            };
        }
        match (&mut self.map, key) {
            (_, Key::Null) => self.null = row,
            (Map::OrderedWords(map), Key::Word(word)) => set!(map, word),
            (Map::HashedWords(map), Key::Word(word)) => set!(map, word),
            (Map::OrderedBytes(map), Key::Bytes(bytes)) => set!(map, bytes),
            (Map::HashedBytes(map), Key::Bytes(bytes)) => set!(map, bytes),
            _ => unreachable!("values of other columns"),
        }
    }

    /// The tree, if it has an order.
    pub fn tree(&self) -> Option<Tree<'_>> {
        match &self.map {
            Map::OrderedWords(map) => Some(Tree::Words(map)),
            Map::OrderedBytes(map) => Some(Tree::Bytes(map)),
            _ => None,
        }
    }

    /// The newest rows of many keys.
    pub fn newest_of_words(&self, words: &[u64]) -> Vec<Option<u64>> {
        let mut found = vec![None; words.len()];
        match &self.map {
            Map::OrderedWords(map) => map.get_many(words, &mut found),
            Map::HashedWords(map) => map.get_many(words, &mut found),
            _ => unreachable!("values of other columns"),
        }
        found
    }

    /// The same, of keys of bytes.
    pub fn newest_of_bytes(&self, bytes: &[&[u8]]) -> Vec<Option<u64>> {
        let mut found = vec![None; bytes.len()];
        match &self.map {
            Map::OrderedBytes(map) => map.get_many(bytes, &mut found),
            Map::HashedBytes(map) => map.get_many(bytes, &mut found),
            _ => unreachable!("values of other columns"),
        }
        found
    }

    /// The newest row that is NULL.
    pub fn newest_null(&self) -> Option<RowId> {
        self.null
    }

    /// Whether keys are numbers.
    pub fn has_words(&self) -> bool {
        matches!(self.map, Map::OrderedWords(_) | Map::HashedWords(_))
    }
}

/// Replaces what a row that has an older one leads to.
fn replace(older: &mut HashIndex<u64>, row: RowId, by: RowId) {
    let replaced = older.upsert(row.0, by.0);
    assert!(
        matches!(replaced, Ok(Some(_))),
        "replacing the value of a key needs no memory"
    );
}

#[derive(Clone, Copy)]
enum Key<'a> {
    Null,
    Word(u64),
    Bytes(&'a [u8]),
}

/// A key whose chain may have rows that are gone.
#[derive(Debug)]
pub(crate) enum OwnedKey {
    Null,
    Word(u64),
    Bytes(Box<[u8]>),
}

impl OwnedKey {
    fn view(&self) -> Key<'_> {
        match self {
            OwnedKey::Null => Key::Null,
            OwnedKey::Word(word) => Key::Word(*word),
            OwnedKey::Bytes(bytes) => Key::Bytes(bytes),
        }
    }
}

/// An index with an order.
#[derive(Clone, Copy)]
pub(crate) enum Tree<'a> {
    Words(&'a Art<u64>),
    Bytes(&'a Art<[u8]>),
    /// That of all owners; one of them wants its own rows.
    Shared(&'a SharedIndex, AeuId),
}
