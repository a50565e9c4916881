//! The input decides what is done to a tree of byte strings and to a map: `cargo +nightly fuzz run strings` in
//! `crates/blink`.

#![no_main]

use eris_blink::Tree;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

/// A string of the input's bytes between others, so that long beginnings are shared.
fn key(step: [u8; 4], at: u8) -> Vec<u8> {
    let [_, length, letter, last] = step;
    let mut key = vec![letter & 3; usize::from(length) * 4 + usize::from(at % 4)];
    key.extend([last, at]);
    key
}

fuzz_target!(|input: &[u8]| {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(64 << 20)).unwrap();
    let tree = Tree::of_bytes(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    let mut model = BTreeMap::new();
    for (number, &step) in input.as_chunks::<4>().0.iter().enumerate() {
        // A step does something to a run of keys, so that nodes fill up.
        let keys = (0..1 + (step[0] >> 3)).map(|at| key(step, at));
        match step[0] & 3 {
            0 | 1 => keys.for_each(|key| {
                let value = number as u64;
                match tree.put(&key, value) {
                    Ok(before) => assert_eq!(before, model.insert(key, value)),
                    Err(_) => assert!(key.len() > 1024),
                }
            }),
            2 => keys.for_each(|key| assert_eq!(tree.remove(&key), model.remove(&key))),
            _ => {
                let first = key(step, 0);
                let expected = || {
                    model
                        .range(first.clone()..)
                        .map(|(key, value)| (key.clone(), *value))
                };
                assert!(tree.range(&first[..]..).take(50).eq(expected().take(50)));
                assert!(
                    tree.range(&first[..]..)
                        .rev()
                        .take(50)
                        .eq(expected().rev().take(50))
                );
            }
        }
    }
    assert!(tree.range(..).eq(model));
});
