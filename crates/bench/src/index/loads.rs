//! How fast memory can be read at random.

use super::keys::scatter;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Loads per second of random words in so many bytes, by so many threads; no load waits for another.
pub fn random_loads(threads: usize, bytes: u64, loads: u64) -> f64 {
    let words = (bytes / 8).max(1);
    let memory = vec![1u64; words as usize];
    let start = Barrier::new(threads + 1);
    let workers = threads as u64;
    let each = loads / workers;
    let load = &|thread: usize| {
        start.wait();
        let mut sum = 0u64;
        let mut state = thread as u64;
        for _ in 0..each {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let at = (u128::from(scatter(state)) * u128::from(words)) >> 64;
            sum = sum.wrapping_add(memory[at as usize]);
        }
        black_box(sum);
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || load(thread)))
            .collect();
        start.wait();
        let begun = Instant::now();
        for thread in threads {
            thread.join().expect("a sum does not panic");
        }
        (each * workers) as f64 / begun.elapsed().as_secs_f64()
    })
}
