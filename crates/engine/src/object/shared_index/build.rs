//! A tree of all owners is built by all of them side by side: a sample sort, whose parts become leaves.
//!
//! ```text
//! sample   owners: some of their entries          ──▶ fences, between which there are about as many entries
//! gather   owners: the entries of their rows      ──▶ a batch for each part, between two fences
//! fill     any AEU, part by part: the batches of all owners, sorted   ──▶ leaves
//! raise    whoever makes the index: all leaves    ──▶ the tree, which nobody asks yet
//! finish   owners: what was written meanwhile     ──▶ the tree
//! ```
//! Rows that are written meanwhile are entered into a tree beside it. It is small, so entries are put into it one by
//! one.

use super::batch::{Batch, Headed, head, sorted, write_entry};
use super::{SharedIndex, parts};
use eris_atomics::Lock;
use eris_blink::{BuildError, Leaves, Part, PutError};
use eris_numa::{Budget, OutOfMemory, Reservation};
use eris_types::{AeuId, RowId};
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries of a part: so many are sorted in one go. Tests have small tables: with small parts these have several.
const PART: usize = if cfg!(test) { 16 } else { 16_384 };

/// Bytes of a buffer: some cache lines.
const BUFFER: usize = 512;

/// A row in so many is in the sample, so a part has some 128 of its own.
const SAMPLED: usize = if cfg!(test) { 2 } else { 128 };

/// What owners share who build a tree.
pub(crate) struct SharedBuild {
    /// Rows that are written meanwhile.
    beside: SharedIndex,
    samples: Lock<Vec<Batch>>,
    plan: OnceLock<Plan>,
    /// Of each AEU, a batch for each part.
    gathered: Box<[OnceLock<Batches>]>,
    leaves: Lock<Vec<(usize, Leaves<[u8]>)>>,
    /// Entries may be put into the tree.
    is_raised: AtomicBool,
}

/// Which parts there are.
struct Plan {
    fences: Batch,
    heads: Vec<u128>,
    /// Bytes of a part that an owner is expected to have.
    expected: usize,
    /// Those that nobody has taken yet.
    parts: Lock<Vec<(usize, Part<[u8]>)>>,
}

/// The entries of an owner, by part.
#[derive(Debug)]
struct Batches {
    of_parts: Vec<Batch>,
    reserved: Reservation,
}

/// An owner that gathers its entries.
#[derive(Debug)]
pub(crate) struct Gathered {
    build: Arc<SharedBuild>,
    /// What is on its way to each batch. All these together stay in the cache, unlike the ends of so many batches.
    buffers: Vec<Batch>,
    batches: Batches,
    rows: usize,
    /// Of all batches.
    bytes: u64,
}

impl SharedBuild {
    /// `beside` is a tree that is empty, too.
    pub fn new(aeus: usize, beside: SharedIndex) -> Self {
        SharedBuild {
            beside,
            samples: Lock::default(),
            plan: OnceLock::new(),
            gathered: (0..aeus).map(|_| OnceLock::new()).collect(),
            leaves: Lock::default(),
            is_raised: AtomicBool::new(false),
        }
    }

    /// The tree of what is written meanwhile.
    pub fn beside(&self) -> &SharedIndex {
        &self.beside
    }

    /// The rows of a chunk that are in the sample, ascending.
    pub fn sampled_rows(rows: usize) -> impl Iterator<Item = usize> {
        (0..rows.div_ceil(SAMPLED)).filter_map(move |block| {
            // Not the same one of each block: rows may repeat with its length.
            let mixed = (block as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let row = block * SAMPLED + (mixed >> 32) as usize % SAMPLED;
            (row < rows).then_some(row)
        })
    }

    /// Entries of an owner that are in the sample.
    pub fn add_sample(&self, sample: Batch) {
        self.samples.lock().push(sample);
    }

    /// Chooses the parts, once all owners have added their samples.
    ///
    /// # Errors
    /// There is no memory.
    pub fn plan(&self, tree: &SharedIndex) -> Result<(), PutError> {
        let samples = std::mem::take(&mut *self.samples.lock());
        let sample = sorted(samples.iter());
        let parts = (sample.len() * SAMPLED).div_ceil(PART).max(1);
        let mut fences = Batch::default();
        let mut heads = Vec::new();
        let mut last: Option<&[u8]> = None;
        for at in 1..parts {
            let fence = sample[at * sample.len() / parts];
            // Of rows that are in two chunks there are two.
            if last != Some(fence) {
                fences.push_entry(fence);
                heads.push(head(fence));
                last = Some(fence);
            }
        }
        let bytes: usize = sample.iter().map(|entry| Batch::bytes_of(entry)).sum();
        // A quarter more: no part is as large as all others.
        let expected = PART * 5 / 4 / self.gathered.len();
        let parts = tree.tree.parts(&fences.iter().collect::<Vec<_>>())?;
        let plan = Plan {
            fences,
            heads,
            expected: expected * bytes / sample.len().max(1),
            parts: Lock::new(parts.into_iter().enumerate().collect()),
        };
        let is_first = self.plan.set(plan).is_ok();
        assert!(is_first, "parts are chosen once");
        Ok(())
    }

    fn planned(&self) -> &Plan {
        self.plan.get().expect("the parts were chosen")
    }

    /// None yet.
    ///
    /// # Errors
    /// There is no memory.
    pub fn gather(self: &Arc<Self>, budget: &Budget) -> Result<Gathered, OutOfMemory> {
        let plan = self.planned();
        let parts = plan.heads.len() + 1;
        let reserved = budget.try_reserve((parts * (BUFFER + plan.expected)) as u64)?;
        Ok(Gathered {
            build: Arc::clone(self),
            bytes: 0,
            buffers: (0..=plan.heads.len())
                .map(|_| Batch::with_capacity(BUFFER))
                .collect(),
            batches: Batches {
                of_parts: (0..=plan.heads.len())
                    .map(|_| Batch::with_capacity(plan.expected))
                    .collect(),
                reserved,
            },
            rows: 0,
        })
    }

    /// Makes the leaves of some part that nobody has taken yet; to be called once all owners have gathered. Whether
    /// there was one.
    ///
    /// # Errors
    /// There is no memory.
    pub fn fill_one(&self, tree: &SharedIndex) -> Result<bool, PutError> {
        let Some((at, part)) = self.planned().parts.lock().pop() else {
            return Ok(false);
        };
        let gathered = self.gathered.iter().filter_map(OnceLock::get);
        let entries = sorted(gathered.map(|gathered| &gathered.of_parts[at]));
        let entries = entries.into_iter().map(|entry| (entry, 0));
        let leaves = tree.tree.fill(part, entries).map_err(put_error)?;
        self.leaves.lock().push((at, leaves));
        Ok(true)
    }

    /// Makes the leaves a tree, once all are filled.
    ///
    /// # Errors
    /// There is no memory.
    pub fn raise(&self, tree: &SharedIndex) -> Result<(), PutError> {
        let mut leaves = std::mem::take(&mut *self.leaves.lock());
        leaves.sort_unstable_by_key(|(at, _)| *at);
        let leaves = leaves.into_iter().map(|(_, leaves)| leaves);
        tree.tree.raise(leaves).map_err(put_error)?;
        self.is_raised.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the tree has what owners have gathered. From then on they enter rows there.
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }
}

impl Gathered {
    /// Begins to add rows.
    pub fn adding(&mut self) -> Adding<'_> {
        let plan = self.build.planned();
        Adding {
            plan,
            fences: plan.fences.iter().collect(),
            entry: Vec::new(),
            buffers: &mut self.buffers,
            to: &mut self.batches,
            rows: &mut self.rows,
            bytes: &mut self.bytes,
        }
    }

    /// All rows of the owner were added. How many they are.
    pub fn end(mut self, owner: AeuId) -> usize {
        let buffered = self.batches.of_parts.iter_mut().zip(&mut self.buffers);
        buffered.for_each(|(batch, buffer)| batch.take_all(buffer));
        let is_first = self.build.gathered[owner.index()].set(self.batches).is_ok();
        assert!(is_first, "an owner gathers once");
        self.rows
    }
}

/// Some rows of an owner that are being added.
pub(crate) struct Adding<'a> {
    plan: &'a Plan,
    fences: Vec<&'a [u8]>,
    entry: Vec<u8>,
    buffers: &'a mut [Batch],
    to: &'a mut Batches,
    rows: &'a mut usize,
    bytes: &'a mut u64,
}

impl Adding<'_> {
    pub fn add(&mut self, value: &[u8], owner: AeuId, row: RowId) {
        self.entry.clear();
        write_entry(&mut self.entry, value, owner, row);
        let at = (self.plan).part_of((head(&self.entry), &self.entry), &self.fences);
        let bytes = Batch::bytes_of(&self.entry);
        let buffer = &mut self.buffers[at];
        if buffer.bytes() + bytes > BUFFER {
            self.to.of_parts[at].take_all(buffer);
        }
        buffer.push_entry(&self.entry);
        *self.bytes += bytes as u64;
        *self.rows += 1;
    }

    /// All of these rows were added.
    ///
    /// # Errors
    /// There is no memory.
    pub fn end(self) -> Result<(), OutOfMemory> {
        let reserved = &mut self.to.reserved;
        reserved.try_grow(self.bytes.saturating_sub(reserved.bytes()))
    }
}

impl Plan {
    /// The part of an entry: the fences that are less than it are before it.
    fn part_of(&self, entry: Headed<'_>, fences: &[&[u8]]) -> usize {
        let at = self.heads.partition_point(|head| *head < entry.0);
        // Of long values, and of those of many rows, many fences have the same head.
        let equal = self.heads[at..].partition_point(|head| *head == entry.0);
        at + fences[at..at + equal].partition_point(|fence| *fence < entry.1)
    }
}

/// Entries are sorted and between their fences, and nobody else puts any into the tree.
fn put_error(error: BuildError<PutError>) -> PutError {
    match error {
        BuildError::Entry(error) => error,
        BuildError::NotEmpty | BuildError::NotAscending(_) => {
            unreachable!("a tree that is built: {error}")
        }
    }
}

impl SharedIndex {
    /// Enters what an owner has in the tree of what was written meanwhile, of some leaves behind an entry. The entry
    /// behind which it goes on; `None`: that was all.
    ///
    /// # Errors
    /// There is no memory.
    pub fn enter_from(
        &self,
        beside: &SharedIndex,
        owner: AeuId,
        behind: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, PutError> {
        let mut own = Batch::default();
        let last = beside.some_leaves(behind, |entries| {
            for (entry, _) in entries.iter() {
                if parts(entry).1 == owner {
                    own.push_entry(entry);
                }
            }
        });
        let entries: Vec<(&[u8], u64)> = own.iter().map(|entry| (entry, 0)).collect();
        self.tree.put_many(&entries, |_, _| {})?;
        Ok(last)
    }
}

impl fmt::Debug for SharedBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBuild(beside {:?})", self.beside)
    }
}
