//! How fast one core copies from each node and scans what it has copied, by engine and block.
//!
//! ```text
//!  alone    ▕ part of local memory ▏──▶ compare                               in turns,
//!  copied   ▕ part of remote memory ▏──▶▕ block n + 1 ▏  ▕ block n ▏──▶ compare    the next part each time
//! ```
//!
//! What the second takes longer than the first is the copy. This is what a helper has to weigh: a copy that leaves its
//! block in a cache makes the scan behind it faster, and one that goes past the caches does not. Parts are read in
//! turns, so that none of them is in a cache when its turn comes.

use crate::draws::pinned;
use crate::measure::{MEASURING, Measuring, fill, two_digits};
use eris_kernels::{Isa, VECTOR};
use eris_numa::{Buffer, CopyBlock, CopyEngine, CopySpeed, Memory, OutOfMemory, Profile, Topology};
use eris_types::NodeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Blocks that are measured, in bytes. Two of them have to fit into a second-level cache.
const BLOCKS: [usize; 4] = [64 << 10, 128 << 10, 256 << 10, 512 << 10];

/// What one turn reads, in bytes.
const PART: usize = 2 << 20;

/// Of each node so much is read in turns: more than what caches keep of it meanwhile.
const BUFFER: usize = 64 << 20;

/// Bits of the values that are compared.
const WIDTH: u8 = 8;

/// A copy that takes less than this share of the scan is too short to be told from nothing.
const LEAST: f64 = 1.0 / 64.0;

/// What copies over each link of `profile` reach, by the number of the link: of the first pair of nodes that has it.
/// Nothing is said of memory of the own node, which is read where it lies.
///
/// # Errors
/// There is no memory for the buffers.
pub fn copies(
    profile: &Profile,
    topology: &Topology,
    memory: &Memory,
    how: Measuring,
) -> Result<Vec<Vec<CopySpeed>>, OutOfMemory> {
    let links = profile.links().len();
    let pairs: Vec<_> = (0..links)
        .map(|link| pair_of(profile, topology, link))
        .collect();
    let window = how.time / links.max(1) as u32;
    let bytes = how.buffer_bytes.min(BUFFER);
    let mut buffers = BTreeMap::new();
    for node in pairs
        .iter()
        .flatten()
        .flat_map(|(source, home)| [source, home])
    {
        if let Entry::Vacant(place) = buffers.entry(*node) {
            let mut buffer = memory.node(*node).allocate(MEASURING, bytes)?;
            fill(buffer.as_mut_slice());
            place.insert(buffer);
        }
    }
    let speeds = |(source, home): (NodeId, NodeId)| {
        let (near, far) = (&buffers[&source], &buffers[&home]);
        let own = memory.node(source);
        let block = || CopyBlock::allocate(&own, MEASURING, BLOCKS[BLOCKS.len() - 1]);
        let mut blocks = [block()?, block()?];
        let place = topology.aeus().iter().find(|place| place.node == source);
        let measured = || {
            pinned(place.and_then(|place| place.cpu));
            speeds(near.as_slice(), far.as_slice(), &mut blocks, window)
        };
        // A thread of its own, for binding it must not bind the caller.
        Ok(thread::scope(|scope| {
            let joined = scope.spawn(measured).join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }))
    };
    let copies = pairs
        .into_iter()
        .map(|pair| pair.map_or(Ok(Vec::new()), speeds));
    copies.collect()
}

/// Two nodes that have this link: one with AEUs, and another one with memory.
fn pair_of(profile: &Profile, topology: &Topology, link: usize) -> Option<(NodeId, NodeId)> {
    let nodes = || topology.nodes().iter();
    let works = |node: NodeId| topology.aeus().iter().any(|place| place.node == node);
    let sources = nodes().map(|node| node.id).filter(|&node| works(node));
    let homes = || nodes().filter(|node| topology.is_fake() || node.memory_bytes > 0);
    let mut pairs = sources.flat_map(|source| homes().map(move |home| (source, home.id)));
    pairs.find(|&(source, home)| source != home && profile.link_number(source, home) == link)
}

/// Every engine with every block, in turns until `window` has passed, and once at least. The least time of each counts.
fn speeds(
    near: &[u64],
    far: &[u64],
    blocks: &mut [CopyBlock; 2],
    window: Duration,
) -> Vec<CopySpeed> {
    let engines = CopyEngine::ALL.into_iter();
    let ways = engines.flat_map(|engine| BLOCKS.map(|block| (engine, block)));
    let mut least: Vec<_> = ways.map(|way| (way, f64::INFINITY)).collect();
    let part = (PART / size_of::<u64>()).min(near.len());
    let (mut near, mut far) = (Turns::new(near, part), Turns::new(far, part));
    let mut alone = f64::INFINITY;
    let began = Instant::now();
    while alone.is_infinite() || began.elapsed() < window {
        for ((engine, block), least) in &mut least {
            alone = alone.min(seconds(|| compare(near.next())));
            let words = far.next();
            *least = least.min(seconds(|| copy_and_compare(words, blocks, *engine, *block)));
        }
    }
    let gigabytes = (part * size_of::<u64>()) as f64 / 1e9;
    let speed = |((engine, block), seconds): &((CopyEngine, usize), f64)| CopySpeed {
        engine: *engine,
        block: *block,
        gigabytes_per_second: two_digits(gigabytes / (seconds - alone).max(LEAST * alone)),
    };
    least.iter().map(speed).collect()
}

/// Parts of a buffer, one after the other, round and round.
struct Turns<'a> {
    words: &'a [u64],
    part: usize,
    at: usize,
}

impl<'a> Turns<'a> {
    fn new(words: &'a [u64], part: usize) -> Self {
        Turns { words, part, at: 0 }
    }

    fn next(&mut self) -> &'a [u64] {
        if self.at + self.part > self.words.len() {
            self.at = 0;
        }
        self.at += self.part;
        &self.words[self.at - self.part..self.at]
    }
}

fn compare(words: &[u64]) {
    let isa = Isa::best();
    for vector in words.chunks_exact(VECTOR / 64 * usize::from(WIDTH)) {
        black_box(isa.count_between(WIDTH, vector, 0, u64::MAX >> (65 - u32::from(WIDTH))));
    }
}

/// Block n + 1 is copied before block n is compared, as a helper does.
fn copy_and_compare(words: &[u64], blocks: &mut [CopyBlock; 2], engine: CopyEngine, bytes: usize) {
    let mut before: Option<Buffer> = None;
    for (number, words) in words.chunks(bytes / size_of::<u64>()).enumerate() {
        let block = &mut blocks[number % 2];
        assert!(block.clear(), "its part has been compared");
        let part = block.copy(words, engine).expect("a block is large enough");
        if let Some(part) = before.replace(part) {
            compare(part.as_slice());
        }
    }
    if let Some(part) = before {
        compare(part.as_slice());
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::HugePages;

    #[test]
    fn each_link_between_nodes_has_a_speed_for_each_engine_and_block() {
        let topology = Topology::fake(2, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(32 << 20)).unwrap();
        let machine = Profile::known("eris-intel").unwrap();
        let how = Measuring {
            time: Duration::ZERO,
            buffer_bytes: 8 << 20,
        };
        let copies = copies(&machine, &topology, &memory, how).unwrap();
        let far = machine.link_number(NodeId(0), NodeId(1));
        for (link, copies) in copies.iter().enumerate() {
            let engines = CopyEngine::ALL.iter();
            let ways = engines.flat_map(|engine| BLOCKS.map(|block| (*engine, block)));
            let ways: Vec<_> = ways.filter(|_| link == far).collect();
            let measured = copies.iter().map(|copy| (copy.engine, copy.block));
            assert_eq!(measured.collect::<Vec<_>>(), ways);
            // No core copies a terabyte in a second.
            let speeds = copies.iter().map(|copy| copy.gigabytes_per_second);
            assert!(speeds.clone().all(|speed| (0.01..1e5).contains(&speed)));
        }
    }

    #[test]
    fn without_memory_nothing_is_said() {
        let topology = Topology::fake(2, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 20)).unwrap();
        let machine = Profile::known("eris-intel").unwrap();
        let how = Measuring::default();
        assert!(copies(&machine, &topology, &memory, how).is_err());
    }

    #[test]
    fn turns_go_round() {
        let words: Vec<u64> = (0..10).collect();
        let mut turns = Turns::new(&words, 4);
        let firsts: Vec<u64> = (0..4).map(|_| turns.next()[0]).collect();
        assert_eq!(firsts, [0, 4, 0, 4]);
    }
}
