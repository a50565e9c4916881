//! What `tools/cache-misses` runs under a simulator of caches: a tree of random keys that is filled, asked until the
//! caches are as they stay, and asked again by a child process, so that what parent and child counted differs by these
//! lookups alone.
//!
//! ```text
//! cache_misses art|congee <keys> <bits> <lookups>
//! ```
//! `bits` of the keys are zero at their beginning: those of one partition of many.

use congee::U64Congee;
use eris_index::Art;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::hint::black_box;

const BATCH: u64 = 1024;

/// A bijection that scatters numbers over all 64 bits.
fn scatter(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Asks for `lookups` keys, numbered by what is in the first range.
type Ask = Box<dyn Fn(std::ops::Range<u64>)>;

fn art(keys: u64, key: impl Fn(u64) -> u64, asked: impl Fn(u64) -> u64 + 'static) -> Ask {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, None).expect("memory");
    let mut tree: Art<u64> = Art::new(memory.node(NodeId(0)), ObjectId(1));
    let mut present = [None; BATCH as usize];
    for first in (0..keys).step_by(BATCH as usize) {
        let batch = first..keys.min(first + BATCH);
        let entries: Vec<(u64, u64)> = batch.map(|i| (key(i), i)).collect();
        let inserted = tree.insert_many(&entries, &mut present[..entries.len()]);
        inserted.expect("memory");
    }
    Box::new(move |lookups| {
        let mut values = [None; BATCH as usize];
        let batches = lookups.clone().step_by(BATCH as usize);
        for first in batches {
            let batch = first..lookups.end.min(first + BATCH);
            let keys: Vec<u64> = batch.map(&asked).collect();
            let values = &mut values[..keys.len()];
            tree.get_many(&keys, values);
            assert!(values.iter().all(Option::is_some));
        }
    })
}

fn congee(keys: u64, key: impl Fn(u64) -> u64, asked: impl Fn(u64) -> u64 + 'static) -> Ask {
    let tree: U64Congee<usize> = U64Congee::new();
    for i in 0..keys {
        let guard = congee::epoch::pin();
        assert!(tree.insert(key(i), i as usize, &guard).is_ok(), "memory");
    }
    Box::new(move |lookups| {
        for i in lookups {
            let guard = congee::epoch::pin();
            assert!(black_box(tree.get(asked(i), &guard)).is_some());
        }
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [structure, numbers @ ..] = &arguments[..] else {
        eprintln!("cache_misses art|congee <keys> <bits> <lookups>");
        std::process::exit(2);
    };
    let numbers: Vec<u64> = numbers
        .iter()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [keys, bits, lookups] = numbers[..] else {
        panic!("three numbers");
    };
    // Distinct but for a few in many millions, which are then there already.
    let key = move |i: u64| scatter(i) >> bits;
    let asked = move |i: u64| key(((u128::from(scatter(!i)) * u128::from(keys)) >> 64) as u64);
    let ask = match structure.as_str() {
        "art" => art(keys, key, asked),
        _ => congee(keys, key, asked),
    };
    ask(0..lookups);
    // SAFETY: no other thread runs that could hold a lock in the child.
    let child = unsafe { libc::fork() };
    match child {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => ask(lookups..2 * lookups),
        _ => {
            let mut status = 0;
            // SAFETY: the child is this process's, and `status` is written before the call returns.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child failed");
        }
    }
}
