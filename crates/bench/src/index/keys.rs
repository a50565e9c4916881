//! Keys and their values, and random numbers.
//!
//! `bench/rivals` has this file, too, so that what is compared is asked for the same keys.

/// Keys of a batch.
pub const BATCH: usize = 1000;

/// A key's value.
pub fn value(key: u64) -> u64 {
    key ^ 1
}

/// How many of the first `length` entries have the values of their keys.
pub fn count_entries(entries: impl Iterator<Item = (u64, u64)>, length: usize) -> u64 {
    let right = entries
        .take(length)
        .filter(|(key, found)| *found == value(*key));
    right.count() as u64
}

/// The keys of a run: a bijection of 0, 1, 2 …, so that all differ and any of them can be named again.
#[derive(Clone, Copy, Debug)]
pub struct KeySequence {
    pub count: u64,
    is_dense: bool,
}

impl KeySequence {
    /// 0, 1, 2 …
    pub fn dense(count: u64) -> Self {
        KeySequence {
            count,
            is_dense: true,
        }
    }

    /// As many, anywhere in 64 bits.
    pub fn random(count: u64) -> Self {
        KeySequence {
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
pub fn scatter(mut bits: u64) -> u64 {
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
