//! What the tests share: seeds, chance, and looking at a whole disk.

#![allow(dead_code)]

use eris_disk::{Access, Disk, EntryKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Calls `test` with the seed of `ERIS_SEED`, or with as many as `ERIS_SEEDS` or `seeds` says.
pub fn for_seeds(seeds: u64, mut test: impl FnMut(u64)) {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse().expect("a number"));
    if let Some(seed) = number("ERIS_SEED") {
        return test(seed);
    }
    for seed in 0..number("ERIS_SEEDS").unwrap_or(seeds) {
        // Shown when the test fails.
        println!("seed {seed}");
        test(seed);
    }
}

/// Numbers by chance: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len() as u64) as usize]
    }

    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most + 1))
            .map(|_| 1 + self.below(255) as u8)
            .collect()
    }
}

/// All bytes of a file.
pub fn contents(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// All that a disk has. Directories have no bytes.
pub fn tree(disk: &dyn Disk) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        for entry in disk.list(&directory).unwrap() {
            let path = directory.join(entry.name);
            match entry.kind {
                EntryKind::File(len) => {
                    let bytes = contents(disk, &path);
                    assert_eq!(bytes.len() as u64, len);
                    found.insert(path, Some(bytes));
                }
                EntryKind::Directory => {
                    found.insert(path.clone(), None);
                    left.push(path);
                }
                EntryKind::Other => panic!("{} is none of ours", path.display()),
            }
        }
    }
    found
}
