//! What the machine's memory can deliver: the ERIS paper's Table 2 for the machine at hand.
//!
//! Per pair of a *source* node (whose cores read) and a *home* node (whose memory is read):
//!
//! - **bandwidth**: all cores of the source read disjoint parts of one buffer sequentially, at the same time;
//! - **latency**: one core follows a chain of pointers through all cache lines of the buffer in a scattered order, so
//!   that no load can begin before the one before it has ended.
//!
//! The buffer is several times as large as the last-level caches of a node. Results are medians of several runs, beside
//! the least and the greatest; a shared machine scatters. On a fake topology all pairs show the same memory.

mod local;
mod sequential;

pub use local::{LocalReads, ReadBandwidth};

use crate::affinity::{PinError, pin_current_thread};
use crate::budget::OutOfMemory;
use crate::buffer::Buffer;
use crate::memory::Memory;
use crate::topology::Topology;
use eris_types::{NodeId, ObjectId};
use sequential::sequential;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// About how long everything may take. Short runs scatter more.
    pub time: Duration,
    /// Runs per number, at least 1.
    pub runs: usize,
    /// Size of the buffer in bytes, a power of two; `None`: sixteen times the last-level caches of a node, from 512 MiB
    /// to 1 GiB: a virtual machine may have more of a cache than it is told, and what lies in it is not memory.
    pub buffer_bytes: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            time: Duration::from_secs(2),
            runs: 5,
            buffer_bytes: None,
        }
    }
}

/// The results: plain data to store, to print and to plan with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// Size of the buffer that was read, in bytes.
    pub buffer_bytes: usize,
    /// All pairs up to 64 of them; on larger machines one pair per distance. By source, then home.
    pub pairs: Vec<Pair>,
}

/// Cores of one node reading memory of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The node whose cores read.
    pub source: NodeId,
    /// The node whose memory is read.
    pub home: NodeId,
    /// The firmware's distance from source to home; 10 is local.
    pub distance: u32,
    /// Threads that read sequentially at the same time.
    pub threads: usize,
    /// Sequential reading by all of them together, in bytes per second.
    pub bandwidth: Spread,
    /// One dependent load, in nanoseconds.
    pub latency: Spread,
}

/// A number measured several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle run; of an even number of runs the lower one of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// All, in the order in which they were made.
    pub runs: Vec<f64>,
}

/// The machine cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// No memory for the buffer.
    #[error("no memory to measure with: {0}")]
    Memory(#[from] OutOfMemory),
    /// A reading thread cannot be bound to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
}

impl Measurements {
    /// Sequential read bandwidth in bytes per second; of a pair that was not measured that of the most similar
    /// distance.
    pub fn bandwidth(&self, topology: &Topology, source: NodeId, home: NodeId) -> f64 {
        self.like(topology, source, home).bandwidth.median
    }

    /// Latency of a dependent load in nanoseconds; of a pair that was not measured as for [`Measurements::bandwidth`].
    pub fn latency_nanoseconds(&self, topology: &Topology, source: NodeId, home: NodeId) -> f64 {
        self.like(topology, source, home).latency.median
    }

    pub(crate) fn like(&self, topology: &Topology, source: NodeId, home: NodeId) -> &Pair {
        let distance = topology.nodes()[source.index()].distances[home.index()];
        let unlike = |pair: &&Pair| {
            let other = (pair.source, pair.home) != (source, home);
            (
                pair.distance.abs_diff(distance),
                other,
                pair.source != source,
            )
        };
        self.pairs
            .iter()
            .min_by_key(unlike)
            .expect("a machine has at least one pair")
    }
}

/// Measures the machine. Takes memory for one buffer at a time, and all cores; run it while nothing else runs.
///
/// # Errors
/// [`MeasureError`]: no memory for the buffer, or a thread cannot be bound to its core.
///
/// # Panics
/// If the options ask for no runs, or for a buffer that is not a power of two of at least 4 KiB.
pub fn measure(
    topology: &Topology,
    memory: &Memory,
    options: &Options,
) -> Result<Measurements, MeasureError> {
    let bytes = options
        .buffer_bytes
        .unwrap_or_else(|| default_bytes(topology));
    assert!(
        options.runs > 0 && bytes.is_power_of_two() && bytes >= 4096,
        "cannot measure so: {options:?}"
    );
    let chosen = choose(topology);
    // The rest is for allocating and filling the buffers.
    let windows = u32::try_from(2 * chosen.len() * options.runs).unwrap_or(u32::MAX);
    let window = (options.time * 3 / 5 / windows).max(Duration::from_millis(1));
    let mut pairs = Vec::new();
    for home in topology.nodes() {
        let sources: Vec<NodeId> = chosen
            .iter()
            .filter(|pair| pair.1 == home.id)
            .map(|pair| pair.0)
            .collect();
        if sources.is_empty() {
            continue;
        }
        let mut buffer = memory.node(home.id).allocate(MEASURING, bytes)?;
        link_lines(buffer.as_mut_slice());
        for source in sources {
            let cpus: Vec<Option<u32>> = topology
                .aeus()
                .iter()
                .filter(|aeu| aeu.node == source)
                .map(|aeu| aeu.cpu)
                .collect();
            pairs.push(Pair {
                source,
                home: home.id,
                distance: topology.nodes()[source.index()].distances[home.id.index()],
                threads: cpus.len(),
                bandwidth: bandwidth(&buffer, &cpus, window, options.runs)?,
                latency: latency(&buffer, cpus[0], window, options.runs)?,
            });
        }
    }
    pairs.sort_unstable_by_key(|pair| (pair.source, pair.home));
    Ok(Measurements {
        buffer_bytes: bytes,
        pairs,
    })
}

/// What the buffer is accounted to: a number that no catalogue gives out.
const MEASURING: ObjectId = ObjectId(u32::MAX);

const WORDS_PER_LINE: usize = 8;

/// Bytes of all last-level caches; 0 if the machine does not tell.
fn last_level_bytes(topology: &Topology) -> u64 {
    let last = topology.caches().iter().map(|cache| cache.level).max();
    let last_level = topology
        .caches()
        .iter()
        .filter(|cache| Some(cache.level) == last);
    last_level
        .map(|cache| cache.bytes * u64::from(cache.instances))
        .sum()
}

fn default_bytes(topology: &Topology) -> usize {
    let total = last_level_bytes(topology);
    // Logical nodes have no caches of their own.
    let nodes = if topology.is_fake() {
        1
    } else {
        topology.nodes().len() as u64
    };
    let wanted = (16 * total / nodes).clamp(512 << 20, 1 << 30);
    (wanted as usize).next_power_of_two()
}

/// The pairs to measure, (source, home): sources have AEUs, homes have memory.
fn choose(topology: &Topology) -> Vec<(NodeId, NodeId)> {
    const MOST: usize = 64;
    let nodes = topology.nodes();
    let has_aeu = |node: NodeId| topology.aeus().iter().any(|aeu| aeu.node == node);
    let sources = nodes.iter().filter(|node| has_aeu(node.id));
    let homes = |node: &&crate::Node| topology.is_fake() || node.memory_bytes > 0;
    let mut pairs: Vec<(NodeId, NodeId)> = sources
        .flat_map(|source| nodes.iter().filter(homes).map(|home| (source.id, home.id)))
        .collect();
    if pairs.len() > MOST {
        let mut distances = Vec::new();
        pairs.retain(|(source, home)| {
            let distance = nodes[source.index()].distances[home.index()];
            let new = !distances.contains(&distance);
            distances.push(distance);
            new
        });
    }
    pairs
}

/// Writes into the first word of each cache line where the next line begins: one cycle through all of them, scattered.
///
/// A linear congruential sequence modulo a power of two has full period for an odd increment and a multiplier that is
/// 1 modulo 4 (Hull and Dobell), so that the cycle can be written sequentially.
fn link_lines(words: &mut [u64]) {
    let lines = (words.len() / WORDS_PER_LINE) as u64;
    debug_assert!(lines.is_power_of_two());
    for (line, words) in words.chunks_exact_mut(WORDS_PER_LINE).enumerate() {
        let next = (line as u64)
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f)
            % lines;
        words[0] = next * WORDS_PER_LINE as u64;
    }
}

fn latency(
    buffer: &Buffer,
    cpu: Option<u32>,
    window: Duration,
    runs: usize,
) -> Result<Spread, MeasureError> {
    let words = buffer.as_slice::<u64>();
    let chase = move || {
        pin(cpu)?;
        let mut at = 0u64;
        let mut run = || {
            let start = Instant::now();
            let mut loads = 0u32;
            loop {
                for _ in 0..1000 {
                    at = words[at as usize];
                }
                loads += 1000;
                let elapsed = start.elapsed();
                if elapsed >= window {
                    return elapsed.as_secs_f64() * 1e9 / f64::from(loads);
                }
            }
        };
        let results = (0..runs).map(|_| run()).collect();
        black_box(at);
        Ok(Spread::of(results))
    };
    // A thread of its own, for binding it must not bind the caller.
    std::thread::scope(|scope| join(scope.spawn(chase)))
}

fn bandwidth(
    buffer: &Buffer,
    cpus: &[Option<u32>],
    window: Duration,
    runs: usize,
) -> Result<Spread, MeasureError> {
    let words = buffer.as_slice::<u64>();
    let parts = words.chunks_exact(words.len() / cpus.len()).zip(cpus);
    let parts: Vec<_> = parts.map(|(words, &cpu)| (words, cpu)).collect();
    Ok(Spread::of(sequential(&parts, window, runs)?.together()))
}

fn pin(cpu: Option<u32>) -> Result<(), MeasureError> {
    cpu.map_or(Ok(()), |cpu| {
        pin_current_thread(cpu).map_err(MeasureError::from)
    })
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Spread {
    fn of(runs: Vec<f64>) -> Spread {
        let mut sorted = runs.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Spread {
            median: sorted[(sorted.len() - 1) / 2],
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_one_cycle_through_all_lines_and_scattered() {
        for lines in [64usize, if cfg!(miri) { 1 << 9 } else { 1 << 14 }] {
            let mut words = vec![0; lines * WORDS_PER_LINE];
            link_lines(&mut words);
            let (mut at, mut steps, mut near) = (0u64, 0, 0);
            loop {
                let next = words[at as usize];
                near += usize::from(next.abs_diff(at) <= 4 * WORDS_PER_LINE as u64);
                at = next;
                steps += 1;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(steps, lines);
            assert!(
                near <= lines / 8,
                "{near} of {lines} steps lead to a line close by"
            );
        }
    }

    #[test]
    fn a_spread_keeps_the_order_of_its_runs() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0, 9.0]);
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 9.0));
        assert_eq!(spread.runs, [3.0, 1.0, 2.0, 9.0]);
    }

    #[test]
    fn large_machines_are_measured_by_distance() {
        assert_eq!(choose(&Topology::fake(8, 1)).len(), 64);
        let few: Vec<_> = choose(&Topology::fake(9, 1))
            .iter()
            .map(|(source, home)| (source.0, home.0))
            .collect();
        assert_eq!(few, [(0, 0), (0, 1)]);
    }
}
