//! The hash index: unordered, batched, of one owner.
//!
//! ```text
//! hash of the key, 64 bits       first bits │ … │ last bits
//!                                     │               └─► slot, and from there to the next free one (linear probing)
//! directory  [ ■ ■ ■ ■ ■ ■ ■ ■ ] ◄────┘
//!              │ │ └─┬─┘ └──┬───┘        as many bits as the deepest table needs (extendible hashing)
//! tables      2 MiB each, at most three quarters full: [key][value] · [key][value] · …
//! ```
//!
//! A table that gets too full is split in two by one bit more of the hash, one that gets too empty is merged with the
//! one that it differs from in the last bit. So growing never means rebuilding everything, only one table of one huge
//! page, and memory is taken and given back in these steps. Before there are several, the one table doubles and halves.
//!
//! A lookup touches one line and sometimes the next, and a batch asks for the lines of a group of keys before it looks
//! at any of them. Keys that are strings of bytes lie in records as those of [`crate::Art`]; their slot holds hash and
//! place.

mod batch;
mod keys;
mod resize;
mod table;

pub use keys::Hashed;

use crate::art::{Key, NodeKind, Present, Ref, Space};
use crate::slabs::{Footprint, IndexMemory};
use crate::{IndexError, MAX_KEY};
use eris_numa::{Extent, NodeMemory};
use eris_types::ObjectId;
use foldhash::quality::FixedState;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::marker::PhantomData;
use table::SlotTable;

/// A map without order from keys, `u64` or `[u8]`, to 64-bit values.
///
/// ```
/// use eris_index::HashIndex;
/// use eris_numa::{HugePages, Memory, Topology};
/// use eris_types::{NodeId, ObjectId};
///
/// let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, Some(64 << 20))?;
/// let mut index: HashIndex<[u8]> = HashIndex::new(memory.node(NodeId(0)), ObjectId(1));
/// assert_eq!(index.insert(b"one", 1)?, None);
/// assert_eq!(index.upsert(b"one", 2)?, Some(1));
/// assert_eq!(index.get(b"one"), Some(2));
/// assert_eq!(index.remove(b"one"), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HashIndex<K: Key + ?Sized> {
    /// Numbers of tables, by the first `depth` bits of the hash.
    directory: Vec<u32>,
    depth: u32,
    tables: Vec<Option<SlotTable>>,
    len: usize,
    /// The slot of the word zero, which says "free" in tables.
    zero: Option<u64>,
    hasher: FixedState,
    /// Of records, where keys lie in such.
    space: Space,
    keys: PhantomData<fn(&K)>,
}

/// What is computed of a key once.
#[derive(Clone, Copy, Default)]
struct Hash {
    word: u64,
    hash: u64,
}

impl<K: Key + ?Sized> HashIndex<K> {
    /// An empty index, whose tables will lie in this memory and be accounted to this data object.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        // A seed that nobody knows, so that nobody can choose keys that collide.
        let seed = RandomState::new().build_hasher().finish();
        HashIndex {
            directory: Vec::new(),
            depth: 0,
            tables: Vec::new(),
            len: 0,
            zero: None,
            hasher: FixedState::with_seed(seed),
            space: Space::new::<K>(IndexMemory { memory, object }),
            keys: PhantomData,
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory that its tables lie in.
    pub fn memory(&self) -> &NodeMemory {
        &self.space.home().memory
    }

    /// The data object that its memory is accounted to.
    pub fn object(&self) -> ObjectId {
        self.space.home().object
    }

    /// Bytes of entries, and of the tables and slabs in which they lie.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = self.space.footprint();
        for table in self.tables.iter().flatten() {
            footprint.used += table.used() * size_of::<[u64; 2]>();
            footprint.held += table.bytes();
        }
        footprint
    }

    /// The memory of tables and slabs.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.space.extents(all);
        all.extend(self.tables.iter().flatten().map(SlotTable::extent));
    }

    /// Removes everything and gives all memory back.
    pub fn clear(&mut self) {
        self.directory.clear();
        self.tables.clear();
        self.depth = 0;
        self.len = 0;
        self.zero = None;
        self.space.clear();
    }

    /// The value of a key.
    pub fn get(&self, key: K::View<'_>) -> Option<u64> {
        self.get_hashed(key, self.hash(key))
    }

    #[inline(always)]
    fn get_hashed(&self, key: K::View<'_>, Hash { word, hash }: Hash) -> Option<u64> {
        let payload = match word {
            0 => self.zero?,
            _ => {
                let table = self.table(hash)?;
                table.payload(
                    table
                        .find(word, hash, |payload| self.is(payload, key))
                        .ok()?,
                )
            }
        };
        Some(self.value(payload))
    }

    /// Whether there is this key.
    pub fn contains(&self, key: K::View<'_>) -> bool {
        self.get(key).is_some()
    }

    /// All keys with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (K::View<'_>, u64)> {
        let zero = self.zero.map(|payload| (0, payload));
        let entries = self.tables.iter().flatten().flat_map(SlotTable::entries);
        zero.into_iter()
            .chain(entries)
            .map(|(word, payload)| match K::INLINE {
                true => (K::key(word), payload),
                // SAFETY: payloads in the tables are places of live records.
                false => (
                    unsafe { self.space.record_key::<K>(record(payload)) },
                    self.value(payload),
                ),
            })
    }

    /// Adds a key unless it is there; returns the value that it has then.
    ///
    /// # Errors
    /// No memory, or the key is too long; the index is as before.
    pub fn insert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        self.put(key, self.hash(key), value, Present::Keep)
    }

    /// Adds a key, or replaces its value; returns the value before.
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    pub fn upsert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        self.put(key, self.hash(key), value, Present::Replace)
    }

    /// Removes a key; returns its value, if it was there.
    pub fn remove(&mut self, key: K::View<'_>) -> Option<u64> {
        self.remove_hashed(key, self.hash(key))
    }

    fn remove_hashed(&mut self, key: K::View<'_>, Hash { word, hash }: Hash) -> Option<u64> {
        let payload = match word {
            0 => self.zero.take()?,
            _ => {
                let number = self.number(hash)?;
                let table = self.tables[number as usize].as_ref()?;
                let slot = table
                    .find(word, hash, |payload| self.is(payload, key))
                    .ok()?;
                let hasher = &self.hasher;
                let table = self.tables[number as usize].as_mut().expect("a live table");
                let payload = table.remove(slot, |word| K::spread(word, hasher));
                self.shrink(number, hash);
                payload
            }
        };
        let value = self.value(payload);
        if !K::INLINE {
            // SAFETY: the record of the key, to which nothing refers any more.
            unsafe { self.space.give(record(payload)) };
        }
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(value)
    }

    fn put(
        &mut self,
        key: K::View<'_>,
        Hash { word, hash }: Hash,
        value: u64,
        present: Present,
    ) -> Result<Option<u64>, IndexError> {
        if K::length(key) > MAX_KEY {
            return Err(IndexError::KeyTooLong(K::length(key)));
        }
        if word == 0 {
            // Only a number is zero, so that the payload is the value.
            let before = self.zero;
            if before.is_none() || present == Present::Replace {
                self.zero = Some(value);
            }
            self.len += usize::from(before.is_none());
            return Ok(before);
        }
        if self.directory.is_empty() {
            self.directory.push(0);
            self.tables.push(None);
        }
        loop {
            let number = self.directory[self.index(hash)];
            let Some(table) = &self.tables[number as usize] else {
                self.tables[number as usize] =
                    Some(SlotTable::new(self.space.home(), SlotTable::SMALLEST, 0)?);
                continue;
            };
            let vacant = match table.find(word, hash, |payload| self.is(payload, key)) {
                Ok(slot) => {
                    let payload = table.payload(slot);
                    let before = self.value(payload);
                    if present == Present::Replace {
                        self.replace(number, slot, payload, value);
                    }
                    return Ok(Some(before));
                }
                Err(vacant) => vacant,
            };
            if table.is_full() {
                self.grow(number, hash)?;
                continue;
            }
            let payload = match K::INLINE {
                true => value,
                false => self.space.take_record::<K>(key, value)?.place().into(),
            };
            let table = self.tables[number as usize].as_mut().expect("found above");
            table.put(vacant, word, payload);
            self.len += 1;
            return Ok(None);
        }
    }

    fn replace(&mut self, number: u32, slot: usize, payload: u64, value: u64) {
        if K::INLINE {
            let table = self.tables[number as usize].as_mut().expect("a live table");
            table.replace(slot, value);
        } else {
            // SAFETY: payloads in the tables are places of live records.
            unsafe { *self.space.record_value_mut::<K>(record(payload)) = value };
        }
    }

    #[inline(always)]
    fn hash(&self, key: K::View<'_>) -> Hash {
        let word = K::word(key, &self.hasher);
        let hash = K::spread(word, &self.hasher);
        Hash { word, hash }
    }

    /// Whether a payload whose word is the key's is the key's.
    fn is(&self, payload: u64, key: K::View<'_>) -> bool {
        // SAFETY: payloads in the tables are places of live records.
        K::INLINE || unsafe { K::compare(self.space.record_key::<K>(record(payload)), key).is_eq() }
    }

    /// The value that a payload is or leads to.
    fn value(&self, payload: u64) -> u64 {
        match K::INLINE {
            true => payload,
            // SAFETY: payloads in the tables are places of live records.
            false => unsafe { self.space.record_value::<K>(record(payload)) },
        }
    }

    /// Where in the directory a hash is.
    fn index(&self, hash: u64) -> usize {
        hash.checked_shr(u64::BITS - self.depth).unwrap_or(0) as usize
    }

    fn number(&self, hash: u64) -> Option<u32> {
        self.directory.get(self.index(hash)).copied()
    }

    fn table(&self, hash: u64) -> Option<&SlotTable> {
        self.tables[self.number(hash)? as usize].as_ref()
    }
}

/// The record at a place.
fn record(place: u64) -> Ref {
    let record = Ref::record(place as u32);
    debug_assert_eq!(record.kind(), NodeKind::Record);
    record
}

impl<K: Key + ?Sized> fmt::Debug for HashIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashIndex({} keys of {})", self.len, self.object())
    }
}
