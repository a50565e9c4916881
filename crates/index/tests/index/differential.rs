//! The tree against `BTreeMap`: many random operations, all transitions between node classes among them.

use crate::driver::{Pair, Random, TestKey, memory};
use eris_index::Art;
use eris_types::ObjectId;
use std::collections::BTreeSet;

const STEPS: u64 = if cfg!(miri) { 40 } else { 600_000 };

/// From `ERIS_SEED`, or different each time; printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let given = std::env::var("ERIS_SEED")
        .ok()
        .map(|seed| seed.parse().expect("ERIS_SEED is a number"));
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64
    });
    println!("ERIS_SEED={seed}");
    seed
}

fn run<K: TestKey + ?Sized>() -> BTreeSet<(&'static str, &'static str)> {
    let mut choices = Random(seed());
    let mut pair: Pair<K> = Pair::new(memory(1 << 30));
    for part in 0..4 {
        for _ in 0..STEPS / 4 {
            pair.step(&mut choices).expect("choices without end");
        }
        pair.check();
        if part % 2 == 0 {
            pair.rebuild();
        }
    }
    for family in K::families() {
        pair.sweep(&mut choices, family)
            .expect("choices without end");
    }
    pair.transitions
}

fn assert_hit(hit: &BTreeSet<(&'static str, &'static str)>, classes: &[&'static str]) {
    for pair in classes.windows(2) {
        assert!(
            hit.contains(&(pair[0], pair[1])),
            "no {} became {}",
            pair[0],
            pair[1]
        );
        assert!(
            hit.contains(&(pair[1], pair[0])),
            "no {} became {}",
            pair[1],
            pair[0]
        );
    }
}

const INNER: [&str; 5] = ["inner 6", "inner 12", "inner 25", "inner 51", "inner 256"];

#[test]
fn numbers_are_where_the_model_has_them() {
    let hit = run::<u64>();
    assert_hit(&hit, &INNER);
    assert_hit(
        &hit,
        &[
            "record",
            "value 7",
            "value 14",
            "value 28",
            "value 56",
            "value 256",
        ],
    );
}

#[test]
fn byte_strings_are_where_the_model_has_them() {
    let hit = run::<[u8]>();
    assert_hit(&hit, &INNER);
}

/// A branch inside of a prefix comes and goes, wherever it is and however long the prefix is.
#[test]
fn prefixes_split_and_merge() {
    let lengths = [0, 1, 5, 26, 27, 28, 53, 54, 80];
    let lengths = if cfg!(miri) {
        &lengths[3..6]
    } else {
        &lengths[..]
    };
    for (&front, &rest) in lengths
        .iter()
        .flat_map(|front| lengths.iter().map(move |rest| (front, rest)))
    {
        let key = |middle: u8, last: u8| {
            [
                &vec![b'f'; front][..],
                &[middle],
                &vec![b'r'; rest],
                &[last],
            ]
            .concat()
        };
        let mut tree: Art<[u8]> = Art::new(memory(1 << 20), ObjectId(1));
        let prefixes = |tree: &Art<[u8]>| tree.classes().next().expect("prefixes").count;
        tree.insert(&key(b'm', 1), 1).unwrap();
        tree.insert(&key(b'm', 2), 2).unwrap();
        let together = prefixes(&tree);
        assert_eq!(together, (front + 1 + rest).div_ceil(27));
        for branch in [b'a', b'z'] {
            let key = key(branch, 9);
            tree.insert(&key, 3).unwrap();
            tree.check();
            assert_eq!(tree.iter().count(), 3);
            assert!(
                tree.prefix(&key[..front]).count() == 3 && tree.prefix(&key[..=front]).count() == 1
            );
            assert_eq!(tree.remove(&key), Some(3));
            tree.check();
            assert!(prefixes(&tree) <= together + 1, "{front} {rest}");
        }
        assert!(tree.iter().map(|(_, value)| value).eq([1, 2]));
    }
}
