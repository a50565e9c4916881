//! The memory of nodes, which are named by numbers.
//!
//! ```text
//! number    slab │ place        blocks ─▶ [ slab │ slab │ ─ … 256 ] ─▶ 2 MiB: 4,096 nodes of 512 bytes, 512 of 4 KiB
//! ```
//! The first slabs are smaller. A place that was a node's stays a node's as long as the tree lives. So a number that
//! somebody noted leads to some node whenever it is followed, and what the node says of itself tells whether it is the
//! right one. Nothing waits for readers before it is used again.

use crate::key::Key;
use crate::node::Node;
use crate::slab::Slab;
use crate::sync::AtomicU64;
use eris_atomics::Lock;
#[cfg(not(loom))]
use eris_numa::Extent;
use eris_numa::{NodeMemory, OutOfMemory};
use eris_types::ObjectId;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of a slab.
const SLAB: usize = 2 << 20;
/// Slabs of a block, and the most blocks: 512 GiB.
const BLOCK: usize = 256;
const BLOCKS: usize = 1024;

type Block = Box<[OnceLock<Slab>]>;

/// What numbers of nodes mean, and how many are made at a time.
struct Numbers<K: ?Sized>(PhantomData<fn(&K)>);

impl<K: Key + ?Sized> Numbers<K> {
    const WORDS: usize = size_of::<K::Words>() / size_of::<AtomicU64>();
    /// Nodes of a slab: as many as a number can tell.
    const PLACES: u32 = (SLAB / size_of::<u64>() / Self::WORDS) as u32;
    const PLACE_BITS: u32 = Self::PLACES.ilog2();
    /// Nodes of the first slabs.
    const FIRST: [u32; 2] = match cfg!(loom) {
        true => [8, 8],
        false => [Self::PLACES / 64, Self::PLACES / 8],
    };
    /// Places that leaves do not get: those above find one for each leaf that was split.
    const RESERVE: u64 = if cfg!(loom) {
        2
    } else {
        Self::PLACES as u64 / 128
    };
    /// With fewer free places another slab is made, by whoever holds no node.
    const FEW: u64 = if cfg!(loom) {
        0
    } else {
        Self::PLACES as u64 / 16
    };

    /// How many nodes a slab has.
    fn of(slab: u32) -> u32 {
        let first = Self::FIRST.get(slab as usize).copied();
        first.unwrap_or(1 << Self::PLACE_BITS)
    }
}

pub(crate) struct Space<K: ?Sized> {
    memory: NodeMemory,
    object: ObjectId,
    blocks: Box<[OnceLock<Block>]>,
    free: Lock<Free>,
    /// Whether there are few free places. Only a hint.
    has_few: AtomicBool,
    numbers: PhantomData<fn(&K)>,
}

/// Places that are no nodes.
#[derive(Default)]
struct Free {
    /// Of nodes that are gone.
    given: Vec<u32>,
    /// The slab that is being filled, and the next place in it.
    slab: u32,
    next: u32,
    /// How many slabs there are.
    slabs: u32,
}

impl Free {
    /// How many there are.
    fn count<K: Key + ?Sized>(&self) -> u64 {
        let behind: u64 = (self.slab..self.slabs)
            .map(|slab| u64::from(Numbers::<K>::of(slab)))
            .sum();
        self.given.len() as u64 + behind - u64::from(self.next)
    }

    fn take<K: Key + ?Sized>(&mut self) -> u32 {
        if let Some(number) = self.given.pop() {
            return number;
        }
        if self.next == Numbers::<K>::of(self.slab) {
            (self.slab, self.next) = (self.slab + 1, 0);
        }
        let number = self.slab << Numbers::<K>::PLACE_BITS | self.next;
        self.next += 1;
        number
    }
}

impl<K: Key + ?Sized> Space<K> {
    /// Memory with room for the first nodes.
    ///
    /// # Errors
    /// There is none.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        let space = Space {
            memory,
            object,
            blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect(),
            free: Lock::default(),
            has_few: AtomicBool::new(false),
            numbers: PhantomData,
        };
        space.make(0)?;
        Ok(space)
    }

    /// The node with a number that was given out.
    #[inline]
    pub fn node(&self, number: u32) -> Node<'_, K> {
        let words = self.words(number).expect("numbers lead to nodes");
        Node::new(words)
    }

    #[inline]
    fn words(&self, number: u32) -> Option<&K::Words> {
        let slab = (number >> Numbers::<K>::PLACE_BITS) as usize;
        let slab = self.blocks.get(slab / BLOCK)?.get()?.get(slab % BLOCK)?;
        let nodes = slab.get()?.nodes::<K>();
        nodes.get((number & ((1 << Numbers::<K>::PLACE_BITS) - 1)) as usize)
    }

    /// A place for a node of a level, which nobody else gets until it is given back.
    ///
    /// # Errors
    /// There is no memory. Levels above the leaves find a place in the reserve.
    pub fn take(&self, level: u8) -> Result<u32, OutOfMemory> {
        let reserve = if level > 0 { 0 } else { Numbers::<K>::RESERVE };
        loop {
            let mut free = self.free.lock();
            if free.count::<K>() > reserve {
                let number = free.take::<K>();
                if free.count::<K>() < Numbers::<K>::FEW {
                    self.has_few.store(true, Relaxed);
                }
                return Ok(number);
            }
            let slabs = free.slabs;
            drop(free);
            self.make(slabs)?;
        }
    }

    /// Sees to it that there are free places: to make a slab takes long. Called by whoever holds no node.
    pub fn prepare(&self) {
        if self.has_few.load(Relaxed) && self.has_few.swap(false, Relaxed) {
            let free = self.free.lock();
            let (slabs, has_few) = (free.slabs, free.count::<K>() < Numbers::<K>::FEW);
            drop(free);
            if has_few {
                // Whoever needs it and finds none is told.
                let _ = self.make(slabs);
            }
        }
    }

    /// Makes another slab, where there were so many. Memory is cleared meanwhile, so others go on, and may make slabs
    /// themselves.
    fn make(&self, slabs: u32) -> Result<(), OutOfMemory> {
        let nodes = Numbers::<K>::of(slabs);
        let made = Slab::new(
            &self.memory,
            self.object,
            nodes as usize * Numbers::<K>::WORDS,
        )?;
        let mut free = self.free.lock();
        if Numbers::<K>::of(free.slabs) != nodes {
            // Others have made some, of which the next one would be larger.
            return Ok(());
        }
        let at = free.slabs as usize;
        let block = self
            .blocks
            .get(at / BLOCK)
            .expect("nobody has as much memory");
        let block = block.get_or_init(|| (0..BLOCK).map(|_| OnceLock::new()).collect());
        let _ = block[at % BLOCK].set(made);
        free.slabs += 1;
        Ok(())
    }

    /// The memory that it is.
    #[cfg(not(loom))]
    pub fn extents(&self, all: &mut Vec<Extent>) {
        let slabs = self.blocks.iter().filter_map(OnceLock::get).flatten();
        all.extend(slabs.filter_map(OnceLock::get).map(Slab::extent));
    }

    /// How many places are nodes.
    pub fn taken(&self) -> u64 {
        let free = self.free.lock();
        let all: u64 = (0..free.slabs)
            .map(|slab| u64::from(Numbers::<K>::of(slab)))
            .sum();
        all - free.count::<K>()
    }

    /// Gives the place of a node back, which is dead.
    pub fn give(&self, number: u32) {
        self.free.lock().given.push(number);
    }
}
