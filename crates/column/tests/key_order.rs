//! Columns stored by an order of keys hold what they held before, whatever is asked of them.

mod common;

use arrow_array::Int64Array;
use arrow_schema::DataType;
use common::*;
use eris_column::{ColumnChunk, ColumnPredicate, KeyOrder, Selection};
use eris_kernels::Isa;
use eris_numa::Budget;
use proptest::prelude::*;
use std::sync::Arc;

/// Keys in an order that is neither theirs nor random: runs of them, exchanged.
fn shuffled(mut keys: Vec<i64>, random: &mut Random) -> Vec<i64> {
    keys.sort_unstable();
    keys.dedup();
    for _ in 0..4 {
        let at = random.below(keys.len() as u64 + 1) as usize;
        keys.rotate_left(at);
        let half = keys.len() / 2;
        keys[..half].reverse();
    }
    keys
}

fn predicates(random: &mut Random, keys: &[i64]) -> Vec<ColumnPredicate> {
    let mut some = || keys[random.below(keys.len() as u64) as usize];
    let (a, b, c) = (some(), some(), some());
    let mut set = vec![a, b, c, 77];
    set.sort_unstable();
    set.dedup();
    let (low, high) = (a.min(b), a.max(b));
    let words: Vec<u64> = (0..3).map(|_| random.next()).collect();
    vec![
        ColumnPredicate::Integers { low, high },
        ColumnPredicate::Integers {
            low: i64::MIN,
            high: c,
        },
        ColumnPredicate::NotIntegers { low, high },
        ColumnPredicate::IntegerSet(set.into()),
        ColumnPredicate::IntegerBitmap {
            first: low.saturating_sub(5),
            words: words.into(),
        },
        ColumnPredicate::IntegerBitmap {
            first: i64::MAX - 3,
            words: [u64::MAX].into(),
        },
        ColumnPredicate::Null,
        ColumnPredicate::NotNull,
        ColumnPredicate::Never,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn it_holds_what_it_held(
        seed in any::<u64>(), rows in 1..3_000usize, distinct in 1..400u64,
        spread in prop::sample::select(vec![1, 3, 1 << 20, 1 << 50]), nulls in prop::sample::select(vec![0, 0, 3, 40]),
    ) {
        let mut random = Random(seed);
        let pool: Vec<i64> = (0..distinct).map(|at| (at as i64 - 100) * spread).collect();
        let values: Vec<Option<i64>> = (0..rows)
            .map(|_| (nulls == 0 || random.below(nulls) > 0).then(|| random.pick(&pool)))
            .collect();
        let plain = ColumnChunk::encode(&Int64Array::from(values.clone()), None, home()).unwrap();
        let order = Arc::new(KeyOrder::new(shuffled(pool.clone(), &mut random)).unwrap());
        for (ordinal, key) in order.keys().iter().enumerate() {
            prop_assert_eq!(order.ordinal(*key), Some(ordinal as u32));
        }
        let Some(stored) = plain.stored_by(&order, home()).unwrap() else {
            let all_null = values.iter().all(Option::is_none);
            // Or it was smaller before: few rows, or a few runs.
            prop_assert!(all_null || rows < 3_000);
            return Ok(());
        };
        prop_assert!(Arc::ptr_eq(stored.order().unwrap(), &order));
        prop_assert_eq!(stored.zone(), plain.zone());
        for row in 0..rows {
            prop_assert_eq!(stored.get(row, None), plain.get(row, None));
        }
        for share in [1000, 400, 3] {
            let mut selection = Selection::all(rows);
            if share < 1000 {
                selection = Selection::none(rows);
                (0..rows).filter(|_| random.below(1000) < share).for_each(|row| selection.insert(row));
            }
            let both = [&stored, &plain].map(|chunk| chunk.select(&selection, &DataType::Int64, None));
            prop_assert_eq!(&both[0], &both[1]);
            for isa in Isa::supported() {
                let (mut rows, mut keys, mut ordinals) = (Vec::new(), Vec::new(), Vec::new());
                selection.positions(isa, selection.count(), &mut rows);
                stored.take_integers(isa, &rows, &mut keys);
                stored.take_ordinals(isa, &rows, &mut ordinals);
                for (row, (key, ordinal)) in rows.iter().zip(keys.iter().zip(ordinals)) {
                    prop_assert_eq!(*key, order.keys()[ordinal as usize]);
                    let value = values[*row as usize];
                    prop_assert!(value.is_none_or(|value| value == *key));
                }
            }
            let positions: Vec<usize> = selection.iter_ones().take(50).collect();
            if !positions.is_empty() {
                let both = [&stored, &plain].map(|chunk| chunk.pick(&positions, &DataType::Int64, None));
                prop_assert_eq!(&both[0], &both[1]);
            }
            for predicate in predicates(&mut random, &pool) {
                let by_order = predicate.by_order(&order);
                let mut expected = selection.clone();
                plain.filter(Isa::best(), &predicate, &mut expected);
                for asked in [&predicate, &by_order] {
                    for isa in Isa::supported() {
                        let mut found = selection.clone();
                        stored.filter(isa, asked, &mut found);
                        prop_assert_eq!(found.words(), expected.words(), "{:?}", asked);
                    }
                    let wanted: Vec<u32> = expected.iter_ones().map(|row| row as u32).collect();
                    for isa in Isa::supported() {
                        let mut few: Vec<u32> = selection.iter_ones().map(|row| row as u32).collect();
                        stored.retain(isa, asked, &mut few);
                        prop_assert_eq!(&few, &wanted);
                    }
                    prop_assert_eq!(stored.count(Isa::best(), asked), plain.count(Isa::best(), &predicate));
                    if share == 1000 {
                        prop_assert!(!stored.excludes(asked) || expected.is_empty());
                        prop_assert!(!stored.covers(asked) || expected.is_all());
                    }
                }
            }
        }
        // By a longer order: the same numbers, and the late keys have others.
        let late: Vec<i64> = (1..=random.below(20) as i64).map(|at| at * 7 - 1_000_000).collect();
        let longer = Arc::new(order.extended(&late).unwrap().extended(&[-2_000_000]).unwrap());
        prop_assert_eq!(longer.late(), late.len() + 1);
        prop_assert_eq!(longer.ordinal(-2_000_000), Some(longer.keys().len() as u32 - 1));
        let again = stored.stored_by(&longer, home()).unwrap().unwrap();
        prop_assert_eq!((again.bytes(), again.zone()), (stored.bytes(), stored.zone()));
        for row in 0..rows {
            prop_assert_eq!(again.get(row, None), plain.get(row, None));
        }
        for predicate in predicates(&mut random, &pool) {
            let by_order = predicate.by_order(&longer);
            prop_assert_eq!(again.count(Isa::best(), &by_order), plain.count(Isa::best(), &predicate));
            prop_assert!(!again.excludes(&by_order) || plain.count(Isa::best(), &predicate) == 0);
        }
        // By another order, or back: what is stored can be stored again.
        let other = Arc::new(KeyOrder::new(shuffled(pool.clone(), &mut random)).unwrap());
        if let Some(again) = stored.stored_by(&other, home()).unwrap() {
            for row in 0..rows {
                prop_assert_eq!(again.get(row, None), plain.get(row, None));
            }
        }
    }
}

#[test]
fn neighbours_in_the_order_are_found_by_comparing() {
    // Two thousand keys, in ten groups: a group is one run of ordinals, and its condition excludes or covers
    // chunks.
    let mut keys: Vec<i64> = (0..2_000).collect();
    keys.sort_by_key(|key| (key % 10, *key));
    let order = Arc::new(KeyOrder::new(keys).unwrap());
    let group = |group: i64| {
        let keys: Vec<i64> = (0..2_000).filter(|key| key % 10 == group).collect();
        ColumnPredicate::IntegerSet(keys.into()).by_order(&order)
    };
    let values =
        Int64Array::from_iter_values((0..5_000).map(|row| row * 7 % 600 * 10 % 2_000 + row % 3));
    let chunk = ColumnChunk::encode(&values, None, home()).unwrap();
    let stored = chunk.stored_by(&order, home()).unwrap().unwrap();
    assert!(stored.bytes() <= chunk.bytes());
    assert!(stored.excludes(&group(7)), "its keys end in 0, 1 and 2");
    assert!(!stored.excludes(&group(1)));
    let one = values.values().iter().filter(|&&key| key % 10 == 1).count();
    assert_eq!(stored.count(Isa::best(), &group(1)), one);
}

/// Sets of many keys that are runs of the order, or almost: a key that is missing, one too many, one that the order has
/// not.
#[test]
fn sets_of_many_keys_are_what_they_are_key_by_key() {
    const KEYS: usize = 40_000;
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().expect("a seed"));
    let mut random = Random(seed);
    for round in 0..40 {
        let step = random.pick(&[1, 3]);
        let mut keys: Vec<i64> = (0..KEYS as i64).map(|key| key * step).collect();
        keys.sort_by_key(|key| ((key * 7_919) % 25, *key));
        let order = Arc::new(KeyOrder::new(keys).unwrap());
        let mut chosen = vec![false; KEYS];
        for _ in 0..random.pick(&[1, 2, 5, 90]) {
            let from = random.below(KEYS as u64) as usize;
            let most = random.pick(&[64, 6_000, 30_000]);
            let end = (from + 1 + random.below(most) as usize).min(KEYS);
            chosen[from..end].fill(true);
        }
        for _ in 0..random.pick(&[0, 0, 1, 3]) {
            let at = random.below(KEYS as u64) as usize;
            chosen[at] = !chosen[at];
        }
        let first: i64 = random.pick(&[0, -64, -65]);
        let mut words = vec![0u64; (KEYS as i64 * step - first) as usize / 64 + 1];
        let mut insert = |key: i64| {
            let bit = (key - first) as usize;
            words[bit / 64] |= 1 << (bit % 64);
        };
        let keys = order.keys().iter().zip(&chosen);
        let keys = keys.filter(|(_, chosen)| **chosen);
        keys.for_each(|(key, _)| insert(*key));
        if step > 1 && random.below(3) == 0 {
            insert(1);
        }
        let words = words.into();
        let by_order = ColumnPredicate::IntegerBitmap { first, words }.by_order(&order);
        let values = Int64Array::from_iter_values(order.keys().iter().copied());
        let chunk = ColumnChunk::encode(&values, None, home()).unwrap();
        let Some(stored) = chunk.stored_by(&order, home()).unwrap() else {
            panic!("ordinals that rise by one take next to nothing");
        };
        let mut found = Selection::all(KEYS);
        stored.filter(Isa::best(), &by_order, &mut found);
        let found: Vec<usize> = found.iter_ones().collect();
        let expected: Vec<usize> = (0..KEYS).filter(|&at| chosen[at]).collect();
        assert!(found == expected, "seed {seed}, round {round}");
    }
}

#[test]
fn orders_that_were_extended_apart_do_not_stand_for_each_other() {
    let order = KeyOrder::new((0..500).map(|key| key * 3 % 500).collect()).unwrap();
    let one = Arc::new(order.extended(&[500, 501]).unwrap());
    let other = Arc::new(order.extended(&[501, 500]).unwrap());
    let values = Int64Array::from_iter_values((0..4_000).map(|row| row * 7 % 502));
    let chunk = ColumnChunk::encode(&values, None, home()).unwrap();
    let stored = chunk.stored_by(&one, home()).unwrap().unwrap();
    let stored = stored.stored_by(&other, home()).unwrap().unwrap();
    assert!(Arc::ptr_eq(stored.order().unwrap(), &other));
    for row in 0..4_000 {
        assert_eq!(stored.get(row, None), chunk.get(row, None));
    }
    assert!(order.extended(&[7]).is_none(), "it is there already");
    assert!(order.extended(&[600, 600]).is_none());
}

#[test]
fn what_is_no_order_and_what_is_not_in_it_is_rejected() {
    assert!(KeyOrder::new(vec![1, 2, 1]).is_none());
    assert!(KeyOrder::new(vec![1, 1 << 40, 1]).is_none());
    let order = Arc::new(KeyOrder::new(vec![5, 3]).unwrap());
    assert_eq!(order.ordinal(4), None);
    assert_eq!(order.ordinal(i64::MIN), None);
    let chunk = |values: Vec<Option<i64>>| {
        ColumnChunk::encode(&Int64Array::from(values), None, home()).unwrap()
    };
    let unknown = chunk(vec![Some(3), Some(4)]);
    assert!(unknown.stored_by(&order, home()).unwrap().is_none());
    let nothing = chunk(vec![None, None]);
    assert!(nothing.stored_by(&order, home()).unwrap().is_none());
    let budget = Budget::new(10);
    let large = KeyOrder::new((0..1_000).collect()).unwrap();
    assert!(large.accounted(&budget).is_err());
    assert_eq!(budget.used(), 0);
}
