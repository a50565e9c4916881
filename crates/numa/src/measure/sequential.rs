//! Threads that read memory from its beginning to its end, at the same time.

use super::{MeasureError, join, pin};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Words between two looks at the clock: 256 KiB.
const BLOCK_WORDS: usize = 32 << 10;

/// Bytes per second that each of the threads reads while all of them do, per run. Each reads its words, again and again, on its CPU.
pub(super) fn sequential(
    parts: &[(&[u64], Option<u32>)],
    window: Duration,
    runs: usize,
) -> Result<Vec<Vec<f64>>, MeasureError> {
    let barrier = &Barrier::new(parts.len());
    // Start, end and bytes of each run of one thread.
    let read = |words: &[u64], cpu: Option<u32>| {
        let pinned = pin(cpu);
        let mut results = Vec::with_capacity(runs);
        let mut blocks = words.chunks(BLOCK_WORDS).cycle();
        for _ in 0..runs {
            // Also when binding failed, or the others would wait forever.
            barrier.wait();
            let start = Instant::now();
            let mut bytes = 0;
            while start.elapsed() < window {
                let Some(block) = blocks.next() else { break };
                black_box(
                    block
                        .iter()
                        .fold(0, |sum, &word| u64::wrapping_add(sum, word)),
                );
                bytes += size_of_val(block);
            }
            results.push((start, Instant::now(), bytes));
        }
        pinned.map(|()| results)
    };
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|&(words, cpu)| scope.spawn(move || read(words, cpu)))
            .collect();
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    let each = |run: usize| {
        let start = threads.iter().map(|thread| thread[run].0).min();
        let end = threads.iter().map(|thread| thread[run].1).max();
        // From the first one's start to the last one's end: what they read is to add up.
        let elapsed = start
            .zip(end)
            .map_or(Duration::ZERO, |(start, end)| end - start);
        let rate = |bytes: usize| bytes as f64 / elapsed.as_secs_f64();
        threads.iter().map(|thread| rate(thread[run].2)).collect()
    };
    Ok((0..runs).map(each).collect())
}
