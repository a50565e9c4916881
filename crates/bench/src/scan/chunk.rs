//! How many consecutive values a scan needs: the RAMCloud paper's Figure 3.
//!
//! ```text
//! order of the scan:    block 0   block 1   block 2   …
//! place in memory:      ▒▒▒ 2 ▒▒▒ 0 ▒▒▒ 1 ▒▒▒            a random permutation of the blocks
//! ```
//!
//! The paper sums ten million 8-byte values. The same is done here for values packed at 12 bits, on which a chunk of
//! ours has fewer bytes to hide a jump behind.

use super::error::ScanError;
use super::values::{Predicate, RandomValues, SCANNED};
use crate::report::BenchReport;
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack, popcount};
use eris_numa::{Memory, Topology, pin_current_thread};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;

/// The paper's ten million.
const VALUES: usize = 10_000_000;
/// As many packed vectors as give the same bytes.
const PACKED_WIDTH: u8 = 12;
const PACKED_VECTORS: usize = VALUES * 64 / PACKED_WIDTH as usize / VECTOR;

/// Adds one row per block size and form; `limit` in bytes per second of one core.
pub fn run(
    topology: &Topology,
    memory: &Memory,
    runs: usize,
    limit: f64,
    report: &mut BenchReport,
) -> Result<(), ScanError> {
    let place = topology.aeus()[0];
    let node = memory.node(place.node);
    let measure = || {
        if let Some(cpu) = place.cpu {
            pin_current_thread(cpu)?;
        }
        let mut buffer = node.allocate(SCANNED, VALUES * size_of::<u64>())?;
        let words: &mut [u64] = buffer.as_mut_slice();
        let mut random = RandomValues(1);
        words.fill_with(|| random.next());
        for consecutive in [
            1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, VALUES,
        ] {
            let blocks = scattered(VALUES, consecutive);
            let rates = timed(runs, blocks.len() * consecutive, || {
                blocks.iter().fold(0u64, |sum, &at| {
                    let block = &words[at as usize..][..consecutive];
                    sum.wrapping_add(block.iter().fold(0, |sum, &word| sum.wrapping_add(word)))
                })
            });
            let params = [("consecutive", json!(consecutive))];
            report.row(
                "8-byte values, sum",
                params,
                "million values/s",
                rates,
                Some(limit / 8.0 / 1e6),
            );
        }

        let per_vector = MASK_WORDS * usize::from(PACKED_WIDTH);
        let words = &mut words[..PACKED_VECTORS * per_vector];
        for vector in words.chunks_exact_mut(per_vector) {
            pack(
                &std::array::from_fn(|_| random.of_width(PACKED_WIDTH)),
                PACKED_WIDTH,
                vector,
            );
        }
        let isa = Isa::best();
        let [_, predicate, _] = Predicate::of_width(PACKED_WIDTH);
        for vectors in [1, 4, 16, 64, 256, 1_024] {
            let mut masks = vec![0; vectors * MASK_WORDS];
            let blocks = scattered(PACKED_VECTORS, vectors);
            let rates = timed(runs, blocks.len() * vectors * VECTOR, || {
                blocks.iter().fold(0, |count, &at| {
                    let block = &words[at as usize * per_vector..][..vectors * per_vector];
                    isa.between(PACKED_WIDTH, block, predicate.lo, predicate.hi, &mut masks);
                    count + popcount(&masks)
                })
            });
            let bytes_per_value = f64::from(PACKED_WIDTH) / 8.0;
            let params = [("consecutive", json!(vectors * VECTOR))];
            report.row(
                "12-bit values, between",
                params,
                "million values/s",
                rates,
                Some(limit / bytes_per_value / 1e6),
            );
        }
        Ok(())
    };
    // A thread of its own, for binding it must not bind the caller.
    std::thread::scope(|scope| {
        scope
            .spawn(measure)
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Where each block of `length` begins, in the random order in which a scan visits them; what does not fill a block is
/// left out.
fn scattered(total: usize, length: usize) -> Vec<u32> {
    let mut blocks: Vec<u32> = (0..total / length)
        .map(|block| (block * length) as u32)
        .collect();
    let mut random = RandomValues(length as u64);
    for at in (1..blocks.len()).rev() {
        let other = (random.next() % (at as u64 + 1)) as usize;
        blocks.swap(at, other);
    }
    blocks
}

/// Million values per second of each run, after one that is not timed.
fn timed(runs: usize, values: usize, mut scan: impl FnMut() -> u64) -> Vec<f64> {
    black_box(scan());
    let mut run = || {
        let begun = Instant::now();
        black_box(scan());
        values as f64 / begun.elapsed().as_secs_f64() / 1e6
    };
    (0..runs).map(|_| run()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_visited_once_each_and_out_of_order() {
        let mut blocks = scattered(1_003, 10);
        assert_eq!(blocks.len(), 100);
        assert!(!blocks.is_sorted());
        blocks.sort_unstable();
        assert_eq!(
            blocks,
            (0..100).map(|block| block * 10).collect::<Vec<u32>>()
        );
    }
}
