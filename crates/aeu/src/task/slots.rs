//! The memory of tasks that wait at latches.
//!
//! ```text
//! slot     next 24 bits │ words of the command 8 │ header 3 words │ resource │ arguments
//!
//! pool ◀── 128 of 256 ── free list of AEU 0 ── take ──▶ waits at a latch ── who runs it ──▶ free list of AEU 1
//! ```
//! A slot belongs to whoever took it, then to the latch, then to whoever takes it from there. Slots that one AEU has
//! too many of go to all others by the pool. There are as many as tasks once waited at a time.

use crate::sync::{AtomicU64, Ordering};
use crate::task::latch::MOST_SLOTS;
use crate::task::work::{MOST_WORDS, Task};
use eris_atomics::Lock;
use eris_route::{Endpoint, Header, Rank};
use eris_types::ObjectId;
use std::sync::OnceLock;

const BLOCK_BITS: u32 = if cfg!(loom) { 2 } else { 10 };
/// So many tasks wait at most, in 200 MB. Others come again and again, so that their senders find no room.
const BLOCKS: usize = if cfg!(loom) { 1 } else { 1024 };
/// Header, resource, arguments.
const COMMAND_WORDS: usize = Header::WORDS + 1 + MOST_WORDS;
/// Slots that go to the pool, or come from there, at a time.
const SOME: usize = if cfg!(loom) { 1 } else { 128 };

const _: () = assert!(BLOCKS << BLOCK_BITS <= MOST_SLOTS as usize);

#[repr(align(64))]
struct Slot {
    /// The slot + 1 of the task that came before, or comes next, in the lower half; the words in the upper.
    link: AtomicU64,
    words: [AtomicU64; COMMAND_WORDS],
}

type Block = Box<[Slot]>;

/// All slots.
pub(crate) struct Slots {
    blocks: Box<[OnceLock<Block>]>,
    pool: Lock<Pool>,
}

#[derive(Default)]
struct Pool {
    free: Vec<u32>,
    blocks: usize,
}

/// A copy of a task that waited.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    header: Header,
    words: [u64; 1 + MOST_WORDS],
    len: usize,
}

impl Waited {
    #[inline]
    pub fn task(&self) -> Task<'_> {
        Task::of(&self.header, &self.words[..self.len])
    }
}

impl Slots {
    pub fn new() -> Self {
        Slots {
            blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect(),
            pool: Lock::default(),
        }
    }

    fn slot(&self, slot: u32) -> &Slot {
        let block = self.blocks[(slot >> BLOCK_BITS) as usize].get();
        let block = block.expect("slots come from blocks");
        &block[(slot & ((1 << BLOCK_BITS) - 1)) as usize]
    }

    /// Writes a task into a slot that is the caller's.
    pub fn write(&self, slot: u32, task: &Task<'_>) {
        let Slot { link, words } = self.slot(slot);
        let header = task.header();
        let of_header = [
            u64::from(header.sender.to_bits()) << 32 | u64::from(header.object.0),
            header.callback,
            u64::from(header.kind) << 8 | header.rank as u64,
        ];
        let store = |(place, word): (&AtomicU64, u64)| place.store(word, Ordering::Relaxed);
        words.iter().zip(of_header).for_each(store);
        task.with_words(|all| {
            (words[Header::WORDS..].iter())
                .zip(all.iter().copied())
                .for_each(store);
            link.store((all.len() as u64) << 32, Ordering::Relaxed);
        });
    }

    /// The task in a slot that is the caller's, and the next slot + 1.
    pub fn read(&self, slot: u32) -> (Waited, u32) {
        let Slot { link, words } = self.slot(slot);
        let load = |at: usize| words[at].load(Ordering::Relaxed);
        let header = Header {
            object: ObjectId(load(0) as u32),
            sender: Endpoint::from_bits((load(0) >> 32) as u32),
            callback: load(1),
            kind: (load(2) >> 8) as u16,
            rank: Rank::ALL[(load(2) as u8) as usize],
        };
        let link = link.load(Ordering::Relaxed);
        let len = (link >> 32) as usize;
        let mut all = [0; 1 + MOST_WORDS];
        for (at, word) in all.iter_mut().enumerate().take(len) {
            *word = load(Header::WORDS + at);
        }
        let waited = Waited {
            header,
            words: all,
            len,
        };
        (waited, link as u32)
    }

    /// Notes in a slot that is the caller's which one comes next: its number + 1.
    pub fn link(&self, slot: u32, next: u32) {
        let link = &self.slot(slot).link;
        let words = link.load(Ordering::Relaxed) >> 32 << 32;
        link.store(words | u64::from(next), Ordering::Relaxed);
    }

    /// Turns a chain round: from the last slot + 1 to the first one's.
    pub fn reverse(&self, mut last: u32) -> u32 {
        let mut first = 0;
        while last > 0 {
            let slot = last - 1;
            let before = self.slot(slot).link.load(Ordering::Relaxed) as u32;
            self.link(slot, first);
            (first, last) = (last, before);
        }
        first
    }

    fn fill(&self, free: &mut Vec<u32>) {
        let mut pool = self.pool.lock();
        if pool.free.is_empty() && pool.blocks < BLOCKS {
            let block = pool.blocks;
            let words = || std::array::from_fn(|_| AtomicU64::new(0));
            let slot = |_| Slot {
                link: AtomicU64::new(0),
                words: words(),
            };
            let _ = self.blocks[block].set((0..1 << BLOCK_BITS).map(slot).collect());
            pool.blocks += 1;
            let first = (block as u32) << BLOCK_BITS;
            pool.free.extend(first..first + (1 << BLOCK_BITS));
        }
        let some = pool.free.len().saturating_sub(SOME);
        free.extend(pool.free.drain(some..));
    }
}

/// The free slots of one AEU.
#[derive(Default)]
pub(crate) struct FreeSlots(Vec<u32>);

impl FreeSlots {
    /// A slot; `None` if as many tasks wait as can be told apart.
    pub fn take(&mut self, slots: &Slots) -> Option<u32> {
        if self.0.is_empty() {
            slots.fill(&mut self.0);
        }
        self.0.pop()
    }

    pub fn give(&mut self, slot: u32, slots: &Slots) {
        self.0.push(slot);
        if self.0.len() > 2 * SOME {
            let mut pool = slots.pool.lock();
            pool.free.extend(self.0.drain(SOME..));
        }
    }
}
