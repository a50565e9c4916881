//! Scans by all nodes at a time: Figure 9, and the scans of Figure 12.

use super::{Placing, SlowMachine, params};
use crate::report::BenchReport;
use eris_kernels::{Isa, VECTOR};
use eris_numa::Profile;
use eris_types::NodeId;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Bits of a value.
const WIDTH: u8 = 10;
const VECTOR_WORDS: usize = VECTOR / 64 * WIDTH as usize;
/// What is asked for at once, in words: half a millisecond and more, which a thread sleeps.
const BLOCK: usize = VECTOR_WORDS * 800;
/// Words of each node.
const WORDS: usize = BLOCK * 8;
const TIME: Duration = Duration::from_millis(120);
/// All nodes together read so much of what the cores here scan.
const SHARE: f64 = 0.25;

/// Bandwidth by placement, and what crosses links.
pub(super) fn measure(
    name: &str,
    profile: &Profile,
    nodes: usize,
    runs: usize,
    report: &mut BenchReport,
) {
    let node = |number: usize| NodeId(number as u16);
    let speed = |source, home| profile.link(node(source), node(home)).gigabytes_per_second;
    let local: f64 = (0..nodes).map(|node| speed(node, node)).sum();
    let parts: Vec<Vec<u64>> = (0..nodes).map(|node| filled(node as u64)).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let here = scan_speed(&parts[0]) * cores as f64;
    let machine = SlowMachine::new(profile, nodes, (local * 1e9 / (here * SHARE)).max(1.0));
    let mut rates = Placing::ALL.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..runs {
        for (placing, (rates, crossing)) in Placing::ALL.into_iter().zip(&mut rates) {
            let (read, crossed) = run(&machine, placing, &parts);
            rates.push(read * machine.factor / 1e9);
            crossing.push(crossed * machine.factor / 1e9);
        }
    }
    for (placing, (rates, crossing)) in Placing::ALL.into_iter().zip(rates) {
        let sources = 0..nodes;
        let limit = match placing {
            Placing::Single => sources
                .map(|source| speed(source, 0))
                .sum::<f64>()
                .min(speed(0, 0)),
            // A source goes on when the slowest part of a block is there.
            Placing::Interleaved => {
                let slowest = |source| {
                    (0..nodes)
                        .map(|home| speed(source, home))
                        .fold(f64::MAX, f64::min)
                };
                sources
                    .map(|source| slowest(source) * nodes as f64)
                    .sum::<f64>()
                    .min(local)
            }
            Placing::Partitioned => local,
        };
        report.row(
            "scan",
            params(name, nodes, placing),
            "GB/s",
            rates,
            Some(limit),
        );
        let case = "scan, crossing links";
        report.row(case, params(name, nodes, placing), "GB/s", crossing, None);
    }
}

/// Bytes per second that are read, and those of them that cross links.
fn run(machine: &SlowMachine, placing: Placing, parts: &[Vec<u64>]) -> (f64, f64) {
    let start = Barrier::new(machine.nodes());
    let _ = machine.take_crossed();
    let scan = |node: usize| {
        let ask = |bytes: u64| match placing {
            Placing::Single => machine.request(node, 0, bytes),
            Placing::Interleaved => machine.request_interleaved(node, bytes),
            Placing::Partitioned => machine.request(node, node, bytes),
        };
        start.wait();
        let began = Instant::now();
        let mut read = 0;
        let mut blocks = parts[node].chunks_exact(BLOCK).cycle();
        let mut next = ask((BLOCK * 8) as u64);
        while began.elapsed() < TIME {
            // Double-buffered: one block is on its way while another one is scanned.
            let arrived = std::mem::replace(&mut next, ask((BLOCK * 8) as u64));
            arrived.wait();
            count(blocks.next().expect("it begins again"));
            read += BLOCK * 8;
        }
        read as f64 / began.elapsed().as_secs_f64()
    };
    let read = thread::scope(|scope| {
        let scan = &scan;
        let threads: Vec<_> = (0..machine.nodes())
            .map(|node| scope.spawn(move || scan(node)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|rate| rate.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    });
    (read, machine.take_crossed() as f64 / TIME.as_secs_f64())
}

fn count(block: &[u64]) {
    let isa = Isa::best();
    for vector in block.chunks_exact(VECTOR_WORDS) {
        black_box(isa.count_between(WIDTH, vector, 100, 600));
    }
}

/// Bytes per second of one core here.
fn scan_speed(words: &[u64]) -> f64 {
    let least = (0..5).map(|_| {
        let began = Instant::now();
        words.chunks_exact(BLOCK).for_each(count);
        began.elapsed().as_secs_f64()
    });
    size_of_val(words) as f64 / least.fold(f64::MAX, f64::min)
}

fn filled(node: u64) -> Vec<u64> {
    (0..WORDS as u64)
        .map(|word| (word ^ node << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect()
}
