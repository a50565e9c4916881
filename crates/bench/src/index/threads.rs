//! How work is divided among threads. `bench/rivals` has this file, too.

use std::ops::Range;
use std::thread;

/// Runs `work` on so many threads; the sum of what they return.
pub fn on_threads<E, W>(threads: usize, work: W) -> Result<u64, E>
where
    E: Send,
    W: Fn(usize) -> Result<u64, E> + Sync,
{
    thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let ended = started.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.sum()
    })
}

/// The share of a thread in some work.
pub fn share(work: &Range<u64>, thread: usize, threads: usize) -> Range<u64> {
    let (thread, threads) = (thread as u64, threads as u64);
    let length = work.end - work.start;
    work.start + length * thread / threads..work.start + length * (thread + 1) / threads
}
