use super::*;
use eris_aeu::Random;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId, SegmentId};
use std::collections::BTreeMap;

/// The parts of a statement with these keys, as rows of segments that fill up.
fn parts(keys: Vec<Keys>) -> Vec<Added> {
    let ids = keys.into_iter().enumerate().map(|(part, keys)| Added {
        keys,
        first: RowId::new(SegmentId(1 + part as u64 / 3), part as u32 % 3 * 100_000),
    });
    ids.collect()
}

fn words(all: &[u64], part: usize) -> Vec<Added> {
    parts(
        all.chunks(part)
            .map(|some| Keys::Words(some.into()))
            .collect(),
    )
}

/// The texts of numbers as keys.
fn texts(all: &[u64], part: usize) -> Vec<Added> {
    let keys = all.chunks(part).map(|some| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for number in some {
            bytes.extend_from_slice(format!("Customer#{number:020}\0").as_bytes());
            ends.push(bytes.len());
        }
        Keys::Bytes(bytes, ends)
    });
    parts(keys.collect())
}

/// The last step, and how the keys were brought into order.
fn run(added: &[Added], budget: u64) -> (BulkStep, String) {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, Some(budget)).unwrap();
    let home = ObjectMemory {
        memory: &memory.node(NodeId(0)),
        object: ObjectId(1),
    };
    let mut bulk = Bulk::new();
    let mut how = String::new();
    loop {
        match bulk.step(added, home).expect("memory") {
            BulkStep::Again => how = format!("{:?}", bulk.0),
            last => return (last, how),
        }
    }
}

/// A statement's tree has its keys and no others, each with its row; with one key twice it has none.
fn check(all: Vec<u64>, part: usize, random: &mut Random, how: &str) {
    for (to_parts, how) in [
        (words as fn(&[u64], usize) -> Vec<Added>, how),
        (texts, "sorting"),
    ] {
        let added = to_parts(&all, part);
        let (last, did) = run(&added, 1 << 30);
        assert_eq!(did, how);
        let BulkStep::Done(index) = last else {
            panic!("{} keys, {how}: no tree", all.len());
        };
        let expected: BTreeMap<u64, RowId> = (0..all.len())
            .map(|at| (all[at], added[at / part].first.plus(at % part)))
            .collect();
        for keys in &added {
            let rows = (0..keys.keys.len()).map(|row| Some(keys.first.plus(row)));
            assert_eq!(index.get_many(&keys.keys), rows.collect::<Vec<_>>());
        }
        let unbounded = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let range =
            crate::object::keys::KeyRange::new(unbounded, matches!(added[0].keys, Keys::Words(_)));
        let rows: Vec<RowId> = expected.into_values().collect();
        assert_eq!(index.range(&range, usize::MAX), rows);

        let mut twice = all.clone();
        let (one, other) = (random.below(all.len()), random.below(all.len() - 1));
        let other = other + usize::from(other >= one);
        twice[one] = twice[other];
        let added = to_parts(&twice, part);
        let (BulkStep::Duplicate(place), _) = run(&added, 1 << 30) else {
            panic!("{} keys, {how}: {one} is as {other}", all.len());
        };
        let at = place.part() * part + place.row();
        assert!(at == one || at == other, "{at} instead of {one} or {other}");

        // Of many the least is named.
        let halves: Vec<u64> = all.iter().map(|key| key / 2).collect();
        let mut sorted = halves.clone();
        sorted.sort_unstable();
        let mut pairs = sorted.windows(2);
        if let Some(least) = pairs.find(|pair| pair[0] == pair[1]) {
            let (BulkStep::Duplicate(place), _) = run(&to_parts(&halves, part), 1 << 30) else {
                panic!("{} keys, {how}: {} is there twice", all.len(), least[0]);
            };
            assert_eq!(halves[place.part() * part + place.row()], least[0]);
        }
    }
}

fn shuffle(all: &mut [u64], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
}

#[test]
fn keys_become_a_tree_however_they_come() {
    let seed = std::env::var("ERIS_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("ERIS_SEED={seed}");
    let random = &mut Random::new(seed);
    let count = 70_000 + random.below(30_000);
    let part = 1_000 + random.below(20_000);
    let mix = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);

    // In order; in pieces of which the later ones come first; in pieces between each other's.
    let ascending: Vec<u64> = (0..count as u64).map(|number| number * 3 + 1000).collect();
    let pieces: Vec<u64> = ascending.rchunks(700).flatten().copied().collect();
    let woven = ascending.iter().step_by(2);
    let woven: Vec<u64> = woven
        .chain(ascending.iter().skip(1).step_by(2))
        .copied()
        .collect();
    check(ascending, part, random, "joining");
    check(pieces, part, random, "joining");
    check(woven, part, random, "distributing");

    // In no order: all of a range, some of it, of all 64 bits.
    for step in [1, 3, 1000, u64::MAX / count as u64] {
        let mut all: Vec<u64> = (0..count as u64).map(|number| number * step).collect();
        shuffle(&mut all, random);
        check(all, part, random, "distributing");
    }
    let mut all: Vec<u64> = (0..count as u64).map(mix).collect();
    shuffle(&mut all, random);
    check(all, part, random, "distributing");

    // Many in little of the range: together, or by their lowest bits.
    let mut far: Vec<u64> = (0..count as u64).collect();
    far[7] = u64::MAX;
    shuffle(&mut far, random);
    check(far, part, random, "sorting");
    let mut clusters: Vec<u64> = (0..count as u64)
        .map(|number| (number % 64) << 40 | number)
        .collect();
    shuffle(&mut clusters, random);
    check(clusters, part, random, "distributing");
    let mut few: Vec<u64> = (0..count as u64)
        .map(|number| (number % 2) << 63 | number)
        .collect();
    shuffle(&mut few, random);
    check(few, part, random, "sorting");
}

#[test]
fn without_memory_to_sort_in_nothing_is_made() {
    let mut all: Vec<u64> = (0..50_000).collect();
    shuffle(&mut all, &mut Random::new(1));
    for added in [words(&all, 10_000), texts(&all, 10_000)] {
        let (last, _) = run(&added, 100_000);
        assert!(matches!(last, BulkStep::NoRoom));
    }
}
