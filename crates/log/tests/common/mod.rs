//! What the tests of this crate have in common.

pub mod careless;

use eris_disk::Disk;
use eris_log::DatabaseId;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub const DATABASE: DatabaseId = DatabaseId([42; 16]);

/// Xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The seeds of histories: as many as usual, unless `ERIS_SEED` names one or `ERIS_SEEDS` says how many.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse().expect("a number"));
    match number("ERIS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ERIS_SEEDS").unwrap_or(usual),
    }
}

/// The files of a directory, by name.
pub fn paths(disk: &dyn Disk, directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(directory);
    let entries = disk.list(directory).unwrap_or_default();
    let paths = entries.into_iter().map(|entry| directory.join(entry.name));
    paths.collect()
}
