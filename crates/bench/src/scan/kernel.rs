//! The kernels alone: one thread per AEU over packed words of its own node.

use super::bandwidth::read_bandwidth;
use super::error::ScanError;
use super::values::{Predicate, RandomValues, SCANNED};
use crate::report::{BenchReport, median};
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack, popcount};
use eris_numa::measure::LocalReads;
use eris_numa::{AeuPlace, Buffer, Memory, Topology, pin_current_thread};
use serde_json::json;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

const WIDTHS: [u8; 17] = [1, 2, 3, 4, 6, 7, 8, 10, 12, 16, 20, 24, 31, 32, 40, 48, 64];

/// Bytes that all threads scan together: far more than any cache holds.
const BYTES: usize = 512 << 20;

/// Vectors that one call of the kernel covers: those of a chunk.
const VECTORS: usize = 64;

/// Adds the rows of one instruction set.
pub fn run(
    topology: &Topology,
    memory: &Memory,
    isa: Isa,
    runs: usize,
    reads: &LocalReads,
    report: &mut BenchReport,
) -> Result<(), ScanError> {
    for width in WIDTHS {
        let before = read_bandwidth(reads, runs)?;
        let measured = measure_width(topology, memory, isa, width, runs)?;
        let around = [before, read_bandwidth(reads, runs)?].concat();
        let limit = median(&around);
        for (predicate, seconds, values) in measured {
            let bytes_per_value = f64::from(width) / 8.0;
            let per_second: Vec<f64> = seconds
                .iter()
                .map(|seconds| values as f64 / seconds)
                .collect();
            let scaled = |factor: f64| per_second.iter().map(|rate| rate * factor).collect();
            let params = [
                ("isa", json!(isa.name())),
                ("width", json!(width)),
                ("predicate", json!(predicate.name)),
            ];
            report.row(
                "kernel",
                params.clone(),
                "million rows/s",
                scaled(1e-6),
                Some(limit / bytes_per_value / 1e6),
            );
            report.row(
                "kernel",
                params,
                "GB/s",
                scaled(bytes_per_value / 1e9),
                Some(limit / 1e9),
            );
        }
    }
    Ok(())
}

/// Per predicate the seconds of each run and the number of values that each run scanned.
fn measure_width(
    topology: &Topology,
    memory: &Memory,
    isa: Isa,
    width: u8,
    runs: usize,
) -> Result<Vec<(Predicate, Vec<f64>, u64)>, ScanError> {
    let aeus = topology.aeus();
    let barrier = &Barrier::new(aeus.len());
    let blocks = (BYTES / aeus.len() / (VECTORS * VECTOR * usize::from(width) / 8)).max(1);
    let scan = |place: AeuPlace| {
        let prepared = prepare(memory, place, width, blocks);
        let mut spans = Vec::new();
        for predicate in Predicate::of_width(width) {
            for _ in 0..runs {
                // Also without data, or the others would wait forever.
                barrier.wait();
                let begun = Instant::now();
                if let Ok(buffer) = &prepared {
                    black_box(count(isa, width, buffer.as_slice(), predicate));
                }
                spans.push((begun, Instant::now()));
            }
        }
        prepared.map(|_| spans)
    };
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = aeus
            .iter()
            .map(|place| scope.spawn(|| scan(*place)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads
            .into_iter()
            .map(join)
            .collect::<Result<Vec<_>, ScanError>>()
    })?;
    let values = (aeus.len() * blocks * VECTORS * VECTOR) as u64;
    let seconds = |run: usize| {
        let begun = threads.iter().map(|spans| spans[run].0).min();
        let ended = threads.iter().map(|spans| spans[run].1).max();
        begun
            .zip(ended)
            .map_or(0.0, |(begun, ended)| (ended - begun).as_secs_f64())
    };
    let predicates = Predicate::of_width(width).into_iter().enumerate();
    Ok(predicates
        .map(|(at, p)| {
            (
                p,
                (at * runs..(at + 1) * runs).map(seconds).collect(),
                values,
            )
        })
        .collect())
}

/// A node-local buffer of packed random values: one block, repeated, for a kernel's speed does not depend on more.
fn prepare(
    memory: &Memory,
    place: AeuPlace,
    width: u8,
    blocks: usize,
) -> Result<Buffer, ScanError> {
    if let Some(cpu) = place.cpu {
        pin_current_thread(cpu)?;
    }
    let words = MASK_WORDS * usize::from(width);
    let mut buffer = memory
        .node(place.node)
        .allocate(SCANNED, blocks * VECTORS * words * size_of::<u64>())?;
    let all: &mut [u64] = buffer.as_mut_slice();
    let (first, rest) = all.split_at_mut(VECTORS * words);
    let mut random = RandomValues(u64::from(width));
    for vector in first.chunks_exact_mut(words) {
        pack(
            &std::array::from_fn(|_| random.of_width(width)),
            width,
            vector,
        );
    }
    for block in rest.chunks_exact_mut(VECTORS * words) {
        block.copy_from_slice(first);
    }
    Ok(buffer)
}

/// The scan: a mask per chunk, reused, and its bits counted.
fn count(isa: Isa, width: u8, words: &[u64], predicate: Predicate) -> u64 {
    let mut masks = [0; VECTORS * MASK_WORDS];
    let chunks = words.chunks_exact(VECTORS * MASK_WORDS * usize::from(width));
    let matches = chunks.map(|chunk| {
        isa.between(width, chunk, predicate.lo, predicate.hi, &mut masks);
        popcount(&masks)
    });
    matches.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::HugePages;

    #[test]
    fn every_instruction_set_counts_what_is_there() {
        let topology = Topology::fake(1, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(64 << 20)).unwrap();
        let place = AeuPlace {
            cpu: None,
            ..topology.aeus()[0]
        };
        for width in WIDTHS {
            let buffer = prepare(&memory, place, width, 2).unwrap();
            let mut random = RandomValues(u64::from(width));
            let values: Vec<u64> = (0..VECTORS * VECTOR)
                .map(|_| random.of_width(width))
                .collect();
            for predicate in Predicate::of_width(width) {
                let expected = 2 * values
                    .iter()
                    .filter(|value| predicate.holds(**value))
                    .count() as u64;
                for isa in Isa::supported() {
                    assert_eq!(
                        count(isa, width, buffer.as_slice(), predicate),
                        expected,
                        "{width} {predicate:?}"
                    );
                }
            }
        }
    }
}
