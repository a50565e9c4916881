//! Key sets of values in any order have all of them, know whether one occurs twice, and have one form for one set.

use arrow_array::{ArrayRef, Int64Array};
use eris_fragment::KeySet;
use proptest::prelude::*;
use std::sync::Arc;

fn keys_of(set: &KeySet) -> Vec<i64> {
    match set {
        KeySet::Range { low, high } => (*low..=*high).collect(),
        KeySet::Bitmap { first, words } => (0..words.len() * 64)
            .filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
            .map(|bit| first + bit as i64)
            .collect(),
        KeySet::Integers(keys) => keys.clone(),
        KeySet::Strings(_) => panic!("integers became texts"),
    }
}

fn check(values: Vec<i64>) {
    let mut sorted = values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
    let (set, unique) = KeySet::of_values(&array).expect("integers are keys");
    assert_eq!(unique, sorted.len() == values.len());
    assert_eq!(keys_of(&set), sorted);
    assert_eq!(set.len(), sorted.len() as u64);
    assert_eq!(set, KeySet::of_sorted(sorted));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn of_any_values(
        first in prop::sample::select(vec![i64::MIN, -70, 0, 1_000_000_007, i64::MAX - 2_000]),
        values in prop_oneof![
            prop::collection::vec(0..2_000i64, 0..3_000),
            prop::collection::vec(0..90i64, 0..3_000),
            prop::collection::vec(0..2_000i64, 0..200),
        ],
    ) {
        check(values.into_iter().map(|value| first + value).collect());
    }

    #[test]
    fn of_permutations(len in 0..1_000i64, step in prop::sample::select(vec![1, 3, 63, 65, 1 << 40]), by: u64) {
        let mut values: Vec<i64> = (0..len).map(|at| at * step).collect();
        values.sort_by_key(|value| (*value as u64 ^ by).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        check(values);
    }

    #[test]
    fn of_values_far_apart(values in prop::collection::vec(any::<i64>(), 0..400)) {
        check(values);
    }
}
