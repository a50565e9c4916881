//! Lookups by all nodes at a time, in one index whose memory is interleaved, and in one that is partitioned: Figure 1,
//! and the lookups of Figure 12.
//!
//! ```text
//! interleaved   each level of the tree: lines of all homes                         a lookup waits for the farthest
//! partitioned   keys ─▶ owner, a buffer for each;  each level: lines of its own node;  values ─▶ who asked
//! ```
//!
//! A node looks up as many keys at a time as its cores keep under way. Both ways look the keys up in the same way; what
//! differs is which links are crossed.

use super::{Placing, SlowMachine, params};
use crate::report::BenchReport;
use eris_index::Art;
use eris_numa::{HugePages, Memory, Profile, Topology};
use eris_types::{NodeId, ObjectId};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Keys that a core has under way.
const UNDER_WAY: usize = 16;
/// Levels of a large tree that no cache has.
const LEVELS: usize = 3;
const LINE: u64 = 64;
/// A command with a key, and an answer with a value.
const COMMAND: u64 = 40;
const ANSWER: u64 = 40;
/// Keys of each node: for their own sake, a tree that is out of the caches here.
const KEYS: u64 = 1 << 18;
const TIME: Duration = Duration::from_millis(250);
/// A dependent load takes so long here: threads sleep that long without trouble.
const LOAD: f64 = 2e-3;

/// Lookups per second by placement and number of nodes, and what crosses links.
pub(super) fn measure(
    name: &str,
    profile: &Profile,
    most: usize,
    runs: usize,
    report: &mut BenchReport,
) -> Result<(), String> {
    let topology = Topology::fake(1, 1);
    let memory =
        Memory::new(&topology, HugePages::Auto, None).map_err(|error| error.to_string())?;
    let mut tree = Art::new(memory.node(NodeId(0)), ObjectId(1));
    for number in 0..KEYS {
        tree.insert(key(number), number)
            .map_err(|error| error.to_string())?;
    }
    let batch = UNDER_WAY * usize::from(profile.aeus_per_node);
    let load = profile.link(NodeId(0), NodeId(0)).nanoseconds * 1e-9;
    let doubled = std::iter::successors(Some(1), |nodes| Some(2 * nodes));
    for nodes in doubled.take_while(|&nodes| nodes <= most) {
        let machine = SlowMachine::new(profile, nodes, LOAD / load);
        let mut rates = [const { (Vec::new(), Vec::new()) }; 2];
        let placings = [Placing::Interleaved, Placing::Partitioned];
        for _ in 0..runs {
            for (placing, (rates, crossing)) in placings.into_iter().zip(&mut rates) {
                let (done, crossed) = run(&machine, placing, &tree, batch);
                rates.push(done * machine.factor / 1e6);
                crossing.push(crossed * machine.factor / 1e9);
            }
        }
        for (placing, (rates, crossing)) in placings.into_iter().zip(rates) {
            report.row(
                "lookup",
                params(name, nodes, placing),
                "million/s",
                rates,
                None,
            );
            let case = "lookup, crossing links";
            report.row(case, params(name, nodes, placing), "GB/s", crossing, None);
        }
    }
    Ok(())
}

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Lookups per second of all nodes, and bytes that cross links per second.
fn run(machine: &SlowMachine, placing: Placing, tree: &Art<u64>, batch: usize) -> (f64, f64) {
    let nodes = machine.nodes();
    let start = Barrier::new(nodes);
    let _ = machine.take_crossed();
    let look_up = |node: usize| {
        let mut state = node as u64 + 1;
        let mut values = vec![None; batch];
        start.wait();
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < TIME {
            let keys: Vec<u64> = (0..batch).map(|_| key(next(&mut state) % KEYS)).collect();
            if placing == Placing::Partitioned {
                // What others ask this node for has come while it worked on the batch before. So have the answers to
                // what it has asked for.
                let each = (batch / nodes) as u64;
                machine.exchange(node, COMMAND * each, ANSWER * each);
            }
            tree.get_many(&keys, &mut values);
            black_box(&values);
            for _ in 0..LEVELS {
                let lines = LINE * batch as u64;
                match placing {
                    Placing::Partitioned => machine.request(node, node, lines).wait(),
                    _ => machine.request_interleaved(node, lines).wait(),
                }
            }
            done += batch;
        }
        done as f64 / began.elapsed().as_secs_f64()
    };
    let done = thread::scope(|scope| {
        let look_up = &look_up;
        let threads: Vec<_> = (0..nodes)
            .map(|node| scope.spawn(move || look_up(node)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|rate| rate.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    });
    (done, machine.take_crossed() as f64 / TIME.as_secs_f64())
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
