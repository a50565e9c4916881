//! Which way costs least: measured on this machine, or estimated for one that is not here.
//!
//! What is compared is the time from one draw of anybody to the next, when all draw as fast as they can:
//!
//! ```text
//! cpu            L                       the line goes from one contender to another, chosen at random
//! delegated      2 · H / min(k, O)       k others have two transfers each, to the home and back; O of them overlap
//! hierarchical   max(2 · N / min(k, O) / nodes, L / k)
//!                                        k is of one node: its slots, or the word that goes from node to node
//! ```
//!
//! *L*, *H* and *N* are mean latencies: between any two contenders, between the home and the others, within a node.
//! The estimate knows neither the time of the instructions nor what else runs. So it says which way to try first on a
//! machine; to measure is better. One contender always uses CPU atomics.

use crate::sequence::Sequence;
use crate::way::Way;
use eris_types::NodeId;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// So many transfers of lines a core has under way at a time: about its line fill buffers.
const OVERLAP: f64 = 10.0;
/// A line goes from core to core within a node in this share of the time of a load from its memory.
const WITHIN_NODE: f64 = 0.5;
/// Measured so often, the ways in turns; the median counts.
const ROUNDS: usize = 5;
/// Draws between two looks at the clock.
const DRAWS: usize = 64;

/// What a draw costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Drawn in this way.
    pub way: Way,
    /// From one draw of anybody to the next.
    pub nanoseconds: f64,
}

/// The way that costs least; of several the first.
pub fn cheapest(costs: &[Cost]) -> Way {
    let least = costs
        .iter()
        .min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
    least.map_or(Way::Cpu, |cost| cost.way)
}

/// Estimates what a draw costs. `contenders` are the nodes of all threads that draw, the home's first. `latency` is
/// that of a dependent load from the first node to the second, in nanoseconds.
pub fn estimate(contenders: &[NodeId], latency: impl Fn(NodeId, NodeId) -> f64) -> [Cost; 3] {
    let transfer = |from: NodeId, to: NodeId| match from == to {
        true => latency(from, to) * WITHIN_NODE,
        false => latency(from, to),
    };
    let mean = |all: &mut dyn Iterator<Item = f64>| {
        let (count, sum) = all.fold((0, 0.0), |(count, sum), one| (count + 1, sum + one));
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    };
    let numbered = || contenders.iter().copied().enumerate();
    let line = mean(&mut numbered().flat_map(|(i, from)| {
        let others = numbered().filter(move |(j, _)| *j != i);
        others.map(move |(_, to)| transfer(from, to))
    }));
    let home = contenders.first().copied().unwrap_or_default();
    let others = contenders.len().saturating_sub(1).max(1) as f64;
    let to_home = mean(&mut contenders.iter().skip(1).map(|node| transfer(home, *node)));
    let mut nodes = contenders.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    let each = contenders.len() as f64 / nodes.len().max(1) as f64;
    let within = mean(&mut nodes.iter().map(|node| transfer(*node, *node)));
    let in_slots = 2.0 * within / each.min(OVERLAP) / nodes.len().max(1) as f64;
    let mut delegated = 2.0 * to_home / others.min(OVERLAP);
    let mut hierarchical = in_slots.max(line / each);
    if contenders.len() < 2 {
        (delegated, hierarchical) = (f64::INFINITY, f64::INFINITY);
    }
    let costs = [line, delegated, hierarchical];
    std::array::from_fn(|way| Cost {
        way: Way::ALL[way],
        nanoseconds: costs[way],
    })
}

/// Measures what a draw costs. As in [`estimate`], `contenders` are the nodes of all threads that draw. `begin` is
/// called on each of them with its number first, to pin it. Takes about `time`.
pub fn calibrate(contenders: &[NodeId], begin: impl Fn(usize) + Sync, time: Duration) -> [Cost; 3] {
    let mut runs = [const { Vec::new() }; 3];
    let each = time / (3 * ROUNDS as u32);
    for _ in 0..ROUNDS {
        for (way, runs) in Way::ALL.into_iter().zip(&mut runs) {
            runs.push(measure(way, contenders, &begin, each));
        }
    }
    let mut runs = runs.into_iter();
    Way::ALL.map(|way| {
        let mut runs: Vec<f64> = runs.next().expect("one for each way");
        runs.sort_by(f64::total_cmp);
        let nanoseconds = runs[ROUNDS / 2];
        Cost { way, nanoseconds }
    })
}

/// Nanoseconds from one draw of anybody to the next. The first contender lives at the home: it serves there, and draws
/// by CPU atomics if others delegate.
fn measure(
    way: Way,
    contenders: &[NodeId],
    begin: &(impl Fn(usize) + Sync),
    time: Duration,
) -> f64 {
    let nodes = contenders.iter().map(|node| node.index() + 1).max();
    let sequence = Sequence::new(0, way, nodes.unwrap_or(1), contenders.len());
    let barrier = Barrier::new(contenders.len());
    let draw = |number: usize, node: NodeId| {
        begin(number);
        let is_home = number == 0 && way == Way::Delegated;
        let own = if is_home { Way::Cpu } else { way };
        sequence.set_home(way == Way::Delegated);
        barrier.wait();
        let began = Instant::now();
        while began.elapsed() < time {
            for _ in 0..DRAWS {
                black_box(sequence.draw_by(own, 1, node));
                if is_home {
                    sequence.serve();
                }
            }
        }
        let took = began.elapsed();
        if is_home {
            sequence.set_home(false);
        }
        took
    };
    let longest = thread::scope(|scope| {
        let numbered = contenders.iter().enumerate();
        let draw = &draw;
        let threads: Vec<_> = numbered
            .map(|(number, node)| scope.spawn(move || draw(number, *node)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|took| took.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .max()
    });
    longest.unwrap_or_default().as_nanos() as f64 / sequence.next().max(1) as f64
}
