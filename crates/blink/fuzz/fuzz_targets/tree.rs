//! The input decides what is done to a tree and to a map: `cargo +nightly fuzz run tree` in `crates/blink`.

#![no_main]

use eris_blink::Tree;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|input: &[u8]| {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(64 << 20)).unwrap();
    let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    let mut model = BTreeMap::new();
    for (number, step) in input.as_chunks::<3>().0.iter().enumerate() {
        // Few keys, some at both ends; a step does something to a run of them, so that nodes fill up.
        let first = u64::from(u16::from_le_bytes([step[1], step[2]]));
        let first = if step[0] & 4 > 0 {
            u64::MAX - first
        } else {
            first
        };
        let keys = (0..1 + u64::from(step[0] >> 3)).map(|at| first.saturating_add(at));
        match step[0] & 3 {
            0 | 1 => keys.for_each(|key| {
                let value = number as u64;
                assert_eq!(tree.put(key, value).unwrap(), model.insert(key, value));
            }),
            2 => keys.for_each(|key| assert_eq!(tree.remove(key), model.remove(&key))),
            _ => {
                let last = keys.last().unwrap_or(first);
                let expected = || model.range(first..=last).map(|(key, value)| (*key, *value));
                assert!(tree.range(first..=last).eq(expected()));
                assert!(tree.range(first..=last).rev().eq(expected().rev()));
            }
        }
    }
    assert!(tree.range(..).eq(model));
});
