//! The hash index against `BTreeMap`, and its memory.

use crate::differential::seed;
use crate::driver::{Choices, Random, TestKey, all_memory, memory};
use eris_index::{Footprint, HashIndex, IndexError};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;

const STEPS: u64 = if cfg!(miri) { 60 } else { 300_000 };

fn run<K: TestKey + ?Sized>() {
    let mut choices = Random(seed());
    let mut below = |end| choices.below(end).expect("choices without end");
    let mut index: HashIndex<K> = HashIndex::new(memory(1 << 30), ObjectId(1));
    let mut model: BTreeMap<K::Owned, u64> = BTreeMap::new();
    let mut keys = Random(seed());
    let mut removing = 30;
    for i in 0..STEPS {
        if i % 4000 == 0 {
            removing = [10, 30, 60, 90][below(4) as usize];
        }
        let mut key = K::make(&mut keys).expect("choices without end");
        if below(3) == 0
            && let Some((next, _)) = model.range(&key..).next()
        {
            key = next.clone();
        }
        let view = K::view(&key);
        if below(100) < removing {
            assert_eq!(index.remove(view), model.remove(&key), "{key:?}");
        } else if below(2) == 0 {
            assert_eq!(
                index.upsert(view, i),
                Ok(model.insert(key.clone(), i)),
                "{key:?}"
            );
        } else {
            assert_eq!(
                index.insert(view, i),
                Ok(model.get(&key).copied()),
                "{key:?}"
            );
            model.entry(key.clone()).or_insert(i);
        }
        assert_eq!(
            index.get(K::view(&key)),
            model.get(&key).copied(),
            "{key:?}"
        );
        assert_eq!(index.len(), model.len());
        if below(STEPS / 10) == 0 {
            let mut all: Vec<_> = index
                .iter()
                .map(|(key, value)| (K::own(key), value))
                .collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(model.clone()));
        }
    }
}

#[test]
fn numbers_are_where_the_model_has_them() {
    run::<u64>();
}

#[test]
fn byte_strings_are_where_the_model_has_them() {
    run::<[u8]>();
}

/// Enough for several tables; in batches, also of keys that are there twice.
#[test]
fn tables_split_and_merge() {
    let keys: u64 = if cfg!(miri) { 100 } else { 500_000 };
    let mut index: HashIndex<u64> = HashIndex::new(memory(1 << 30), ObjectId(1));
    let entries: Vec<(u64, u64)> = (0..keys).map(|i| (i * i, i)).collect();
    let mut found = vec![None; entries.len()];
    index.insert_many(&entries, &mut found).unwrap();
    assert!(found.iter().all(Option::is_none));
    index.upsert_many(&entries, &mut found).unwrap();
    assert!((0..keys).all(|i| found[i as usize] == Some(i)));
    let Footprint { used, held } = index.footprint();
    assert_eq!(
        (index.len() as u64, used as u64),
        (keys, (keys - 1) * 16),
        "the key zero has no slot"
    );
    assert!(held < used * 3, "{held} bytes for {used}");

    let all: Vec<u64> = entries.iter().map(|(key, _)| *key).collect();
    let (gone, kept) = all.split_at(all.len() / 50 * 49);
    index.remove_many(gone, &mut found[..gone.len()]);
    assert!((0..gone.len() as u64).all(|i| found[i as usize] == Some(i)));
    index.get_many(&all, &mut found);
    assert!((0..keys).all(|i| found[i as usize] == (i >= gone.len() as u64).then_some(i)));
    assert!(
        cfg!(miri) || index.footprint().held < held / 8,
        "{:?}",
        index.footprint()
    );
    index.remove_many(kept, &mut found[..kept.len()]);
    assert_eq!((index.len(), index.footprint()), (0, Footprint::default()));
}

#[test]
fn denied_memory_leaves_an_index_as_it_was() {
    let memory = all_memory(1 << 20);
    let mut index: HashIndex<u64> = HashIndex::new(memory.node(NodeId(0)), ObjectId(1));
    memory.budget().set_limit(0);
    assert!(index.insert(7, 7).is_err(), "not even the first");
    assert_eq!(
        (index.get(7), index.remove(7), index.len()),
        (None, None, 0)
    );
    memory.budget().set_limit(1 << 20);
    let mut keys = 0;
    let error = loop {
        if cfg!(miri) && keys == 100 {
            memory.budget().set_limit(0);
        }
        match index.insert(keys, keys) {
            Ok(_) => keys += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, IndexError::OutOfMemory(_)), "{error}");
    memory.budget().set_limit(0);
    assert_eq!(index.len() as u64, keys);
    assert!((0..keys).all(|key| index.get(key) == Some(key)) && !index.contains(keys));
    assert!((0..keys).all(|key| index.remove(key) == Some(key)));
    assert_eq!(memory.budget().used(), 0);
}
