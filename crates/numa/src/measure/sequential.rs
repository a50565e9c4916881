//! Threads that read memory from its beginning to its end, at the same time.

use super::{MeasureError, join, pin};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Words between two looks at the clock: 256 KiB.
const BLOCK_WORDS: usize = 32 << 10;

/// What threads have read.
pub(super) struct Readings {
    /// By thread, then run.
    threads: Vec<Vec<Reading>>,
    runs: usize,
}

/// One run of one thread.
struct Reading {
    start: Instant,
    /// When each block had been read, and its bytes.
    blocks: Vec<(Instant, usize)>,
}

impl Reading {
    fn end(&self) -> Instant {
        self.blocks.last().map_or(self.start, |(end, _)| *end)
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Reads. Each thread reads its words, again and again, on its CPU.
pub(super) fn sequential(
    parts: &[(&[u64], Option<u32>)],
    window: Duration,
    runs: usize,
) -> Result<Readings, MeasureError> {
    let barrier = &Barrier::new(parts.len());
    let read = |words: &[u64], cpu: Option<u32>| {
        let pinned = pin(cpu);
        let mut readings = Vec::with_capacity(runs);
        let mut blocks = words.chunks(BLOCK_WORDS).cycle();
        for _ in 0..runs {
            let mut read = Vec::with_capacity(window.as_micros() as usize / 4);
            // Also when binding failed, or the others would wait forever.
            barrier.wait();
            let start = Instant::now();
            let mut now = start;
            while now - start < window {
                let Some(block) = blocks.next() else { break };
                black_box(
                    block
                        .iter()
                        .fold(0, |sum, &word| u64::wrapping_add(sum, word)),
                );
                now = Instant::now();
                read.push((now, size_of_val(block)));
            }
            readings.push(Reading {
                start,
                blocks: read,
            });
        }
        pinned.map(|()| readings)
    };
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|&(words, cpu)| scope.spawn(move || read(words, cpu)))
            .collect();
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Readings { threads, runs })
}

impl Readings {
    /// Bytes per second that all threads read together, from the first one's start to the last one's end, per run.
    pub fn together(&self) -> Vec<f64> {
        let of_run = |run: usize| {
            let readings = || self.threads.iter().map(move |thread| &thread[run]);
            let start = readings().map(|reading| reading.start).min();
            let end = readings().map(Reading::end).max();
            let bytes: usize = readings().map(Reading::bytes).sum();
            let elapsed = start
                .zip(end)
                .map_or(Duration::ZERO, |(start, end)| end - start);
            bytes as f64 / elapsed.as_secs_f64()
        };
        (0..self.runs).map(of_run).collect()
    }

    /// Bytes per second of each thread, such that together they are those of the stretch of this length in which most
    /// was read: what keeps some of them from their CPUs for a while does not count.
    pub fn at_best(&self, stretch: Duration) -> Vec<f64> {
        let mut best = 0;
        for run in 0..self.runs {
            let readings = || self.threads.iter().map(move |thread| &thread[run]);
            let Some(start) = readings().map(|reading| reading.start).min() else {
                continue;
            };
            let mut stretches: Vec<usize> = Vec::new();
            for (end, bytes) in readings().flat_map(|reading| &reading.blocks) {
                let at = ((*end - start).as_nanos() / stretch.as_nanos()) as usize;
                stretches.resize(stretches.len().max(at + 1), 0);
                stretches[at] += bytes;
            }
            best = best.max(stretches.into_iter().max().unwrap_or(0));
        }
        let each = self.threads.iter();
        let each: Vec<usize> = each
            .map(|runs| runs.iter().map(Reading::bytes).sum())
            .collect();
        let all = each.iter().sum::<usize>().max(1) as f64;
        let together = best as f64 / stretch.as_secs_f64();
        each.iter()
            .map(|&bytes| together * bytes as f64 / all)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_kept_from_its_cpu_counts_when_it_reads() {
        let start = Instant::now();
        let millis = |at: u64| start + Duration::from_micros(at * 1000 + 500);
        let reading = |at: std::ops::Range<u64>, bytes| Reading {
            start,
            blocks: at.map(|at| (millis(at), bytes)).collect(),
        };
        // The second one reads in the last two of ten milliseconds only.
        let readings = Readings {
            threads: vec![vec![reading(0..10, 3_000)], vec![reading(8..10, 5_000)]],
            runs: 1,
        };
        let best = readings.at_best(Duration::from_millis(1));
        assert!((best.iter().sum::<f64>() - 8e6).abs() < 1.0, "{best:?}");
        assert!((best[0] - 6e6).abs() < 1.0, "as they read in all: {best:?}");
        let together = readings.together()[0];
        assert!((together - 40_000.0 / 9.5e-3).abs() < 1.0, "{together}");
    }
}
