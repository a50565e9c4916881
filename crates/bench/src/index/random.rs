//! Keys, and how fast memory can be read at random.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// The keys of a run: a bijection of 0, 1, 2 …, so that all differ and any of them can be named again.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    pub count: u64,
    is_dense: bool,
}

impl Keys {
    /// 0, 1, 2 …
    pub fn dense(count: u64) -> Self {
        Keys {
            count,
            is_dense: true,
        }
    }

    /// As many, anywhere in 64 bits.
    pub fn random(count: u64) -> Self {
        Keys {
            count,
            is_dense: false,
        }
    }

    /// `dense` or `random`.
    pub fn order(self) -> &'static str {
        if self.is_dense { "dense" } else { "random" }
    }

    /// The n-th.
    pub fn key(self, n: u64) -> u64 {
        if self.is_dense { n } else { scatter(n) }
    }

    /// The range in which all lie.
    pub fn last(self) -> u64 {
        if self.is_dense {
            self.count - 1
        } else {
            u64::MAX
        }
    }

    /// One of the keys, by chance.
    pub fn any(self, state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let random = u128::from(scatter(*state));
        self.key(((random * u128::from(self.count)) >> 64) as u64)
    }
}

/// A bijection that scatters numbers over all 64 bits (the finaliser of SplitMix64).
fn scatter(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Random words (SplitMix64).
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scatter(self.0)
    }
}

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
