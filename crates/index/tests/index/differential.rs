//! The tree against `BTreeMap`: many random operations, all transitions between node classes among them.

use crate::driver::{Pair, Random, TestKey, memory};
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
    assert_hit(&hit, &["inner 6", "prefix"]);
}

#[test]
fn byte_strings_are_where_the_model_has_them() {
    let hit = run::<[u8]>();
    assert_hit(&hit, &INNER);
    assert_hit(&hit, &["inner 6", "prefix"]);
}
