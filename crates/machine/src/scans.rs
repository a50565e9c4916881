//! How fast one core reads packed values from memory, by kernel and width, and how fast it copies.

use eris_kernels::{Isa, VECTOR};
use eris_numa::{CopyEngine, ScanKernel, ScanSpeed};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The widths that are measured. Those between two are in between.
pub const WIDTHS: [u8; 9] = [1, 2, 4, 8, 12, 16, 24, 32, 64];

/// Bytes that are copied at a time: as in a scan that copies ahead, so that the target stays in a cache.
const BLOCK_WORDS: usize = (256 << 10) / 8;

/// Measures each kernel at each width, over `words` again and again, for about `window` each. What the words are does
/// not matter: any words are packed values.
///
/// # Panics
/// If there are fewer words than a vector of the widest values has.
pub fn scans(words: &[u64], window: Duration) -> Vec<ScanSpeed> {
    assert!(words.len() >= VECTOR, "too few words");
    let kernels = [ScanKernel::Compare, ScanKernel::Unpack];
    let all = kernels
        .iter()
        .flat_map(|kernel| WIDTHS.map(|bits| (*kernel, bits)));
    all.map(|(kernel, bits)| ScanSpeed {
        kernel,
        bits,
        gigabytes_per_second: scan(kernel, bits, words, window) / 1e9,
    })
    .collect()
}

/// Bytes per second of one kernel at one width.
fn scan(kernel: ScanKernel, width: u8, words: &[u64], window: Duration) -> f64 {
    let isa = Isa::best();
    // A vector is 1,024 values, which are as many words as 16 times the width.
    let vectors = words.chunks_exact(VECTOR / 64 * usize::from(width));
    let mut out = Box::new([0; VECTOR]);
    // Half of all values match, whatever they are: the range is the lower half of the values of this width.
    let high = u64::MAX >> (65 - u32::from(width));
    rate(words.len(), window, || {
        for vector in vectors.clone() {
            match kernel {
                ScanKernel::Compare => {
                    black_box(isa.count_between(width, vector, 0, high));
                }
                ScanKernel::Unpack => {
                    isa.unpack(width, vector, 0, &mut out);
                    black_box(&mut out);
                }
            }
        }
    })
}

/// Bytes per second that one core copies, block by block into the same block.
pub fn copy(words: &[u64], window: Duration) -> f64 {
    let mut block = vec![0; BLOCK_WORDS.min(words.len())];
    rate(words.len(), window, || {
        for part in words.chunks_exact(block.len()) {
            CopyEngine::Plain.copy(part, &mut block);
            black_box(&mut block);
        }
    })
}

/// Bytes per second of `pass`, which reads all words: the best of the passes that fit into `window`, and of one at
/// least.
fn rate(words: usize, window: Duration, mut pass: impl FnMut()) -> f64 {
    let began = Instant::now();
    let mut least = f64::INFINITY;
    while least.is_infinite() || began.elapsed() < window {
        let start = Instant::now();
        pass();
        least = least.min(start.elapsed().as_secs_f64());
    }
    (words * size_of::<u64>()) as f64 / least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_a_speed_at_each_width() {
        let words: Vec<u64> = (0..4096u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let scans = scans(&words, Duration::ZERO);
        assert_eq!(scans.len(), 2 * WIDTHS.len());
        assert!(scans.iter().all(|scan| scan.gigabytes_per_second > 0.0));
        assert!(copy(&words, Duration::ZERO) > 0.0);
    }
}
