//! Rows by their keys: against a map in the standard library, with several threads, and what may not leave a trace.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use common::*;
use eris_engine::{Engine, EngineError, Partitioning, RowClient};
use eris_types::{ColumnId, ObjectId};
use futures::executor::block_on;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A composite key of text and number, and a value that may be NULL.
type Key = (String, i32);
type Model = BTreeMap<Key, Option<i64>>;

const KEY: [ColumnId; 2] = [ColumnId(0), ColumnId(2)];
const VALUE: ColumnId = ColumnId(1);

fn keyed_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8View, false),
        Field::new("value", DataType::Int64, true),
        Field::new("number", DataType::Int32, false),
    ]))
}

fn keys(keys: &[Key]) -> Vec<ArrayRef> {
    let names = keys.iter().map(|key| Some(key.0.as_str()));
    let numbers = keys.iter().map(|key| key.1);
    vec![
        Arc::new(names.collect::<StringViewArray>()),
        Arc::new(Int32Array::from_iter_values(numbers)),
    ]
}

fn keyed_rows(entries: &[(Key, Option<i64>)]) -> RecordBatch {
    let of: Vec<Key> = entries.iter().map(|entry| entry.0.clone()).collect();
    let [names, numbers]: [ArrayRef; 2] = keys(&of).try_into().unwrap();
    let values: Int64Array = entries.iter().map(|entry| entry.1).collect();
    RecordBatch::try_new(keyed_schema(), vec![names, Arc::new(values), numbers]).unwrap()
}

fn create_keyed(engine: &Engine) -> ObjectId {
    let partitioning = Partitioning::Size;
    (engine.create_with_key("t", keyed_schema(), partitioning, &KEY)).unwrap()
}

fn entries(batch: &RecordBatch) -> Vec<(Key, Option<i64>)> {
    let names = batch.column(0).as_string_view();
    let numbers = batch
        .column(1)
        .as_primitive::<arrow_array::types::Int32Type>();
    let values = batch.column(2).as_primitive::<Int64Type>();
    let entry = |row| {
        let key = (names.value(row).to_owned(), numbers.value(row));
        (key, values.is_valid(row).then(|| values.value(row)))
    };
    (0..batch.num_rows()).map(entry).collect()
}

#[derive(Clone, Debug)]
enum Operation {
    Put(Vec<(Key, Option<i64>)>),
    Insert(Vec<(Key, Option<i64>)>),
    Remove(Vec<Key>),
    Get(Vec<Key>),
    Ranges(Vec<(Bound<Key>, Bound<Key>)>, usize),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || ("[ab]{0,3}", -3i32..3);
    let some_keys = || prop::collection::btree_set(key(), 1..40);
    let some_rows = || prop::collection::btree_map(key(), prop::option::of(any::<i64>()), 1..40);
    let bound = || {
        prop_oneof![
            Just(Bound::Unbounded),
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
        ]
    };
    let operation = prop_oneof![
        some_rows().prop_map(|rows| Operation::Put(rows.into_iter().collect())),
        some_rows().prop_map(|rows| Operation::Insert(rows.into_iter().take(2).collect())),
        some_keys().prop_map(|keys| Operation::Remove(keys.into_iter().take(9).collect())),
        prop::collection::vec(key(), 0..60).prop_map(Operation::Get),
        (prop::collection::vec((bound(), bound()), 0..5), 0usize..50)
            .prop_map(|(ranges, limit)| Operation::Ranges(ranges, limit)),
    ];
    prop::collection::vec(operation, 1..40)
}

fn perform(rows: &mut RowClient, model: &mut Model, operation: &Operation) {
    let columns = [KEY[0], KEY[1], VALUE];
    match operation {
        Operation::Put(put) => {
            let replaced = block_on(rows.put(keyed_rows(put))).unwrap();
            let expected = put
                .iter()
                .filter(|(key, value)| model.insert(key.clone(), *value).is_some());
            assert_eq!(replaced as usize, expected.count());
        }
        Operation::Insert(new) => {
            let is_free = new.iter().all(|(key, _)| !model.contains_key(key));
            assert_eq!(block_on(rows.insert(keyed_rows(new))).unwrap(), is_free);
            if is_free {
                model.extend(new.iter().cloned());
            }
        }
        Operation::Remove(gone) => {
            let removed = block_on(rows.remove(&keys(gone))).unwrap();
            let expected = gone.iter().filter(|key| model.remove(key).is_some());
            assert_eq!(removed as usize, expected.count());
        }
        Operation::Get(wanted) => {
            let found = block_on(rows.get(&keys(wanted), &columns)).unwrap();
            let of = found
                .of
                .iter()
                .map(|&position| wanted[position as usize].clone());
            let expected = wanted.iter().filter(|key| model.contains_key(key));
            assert!(of.eq(expected.cloned()));
            for (key, value) in entries(&found.rows) {
                assert_eq!(model[&key], value);
            }
        }
        Operation::Ranges(ranges, limit) => {
            let array = |key: &Key| keys(std::slice::from_ref(key));
            let bounds: Vec<_> = (ranges.iter())
                .map(|(from, to)| (from.as_ref().map(array), to.as_ref().map(array)))
                .collect();
            let bounds: Vec<_> = (bounds.iter())
                .map(|(from, to)| {
                    let from = from.as_ref().map(Vec::as_slice);
                    (from, to.as_ref().map(Vec::as_slice))
                })
                .collect();
            let found = block_on(rows.ranges(&bounds, *limit, &columns)).unwrap();
            assert_eq!(found.len(), ranges.len());
            for (range, found) in ranges.iter().zip(found) {
                let expected = model.iter().filter(|(key, _)| is_between(range, key));
                let expected = expected.map(|(key, value)| (key.clone(), *value));
                assert!(entries(&found).into_iter().eq(expected.take(*limit)));
            }
        }
    }
}

fn is_between((from, to): &(Bound<Key>, Bound<Key>), key: &Key) -> bool {
    let above = match from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    };
    above
        && match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn rows_are_those_of_a_map(operations in operations()) {
        on_all_topologies(|engine| {
            let mut rows = engine.rows(create_keyed(engine)).unwrap();
            let mut model = Model::new();
            for operation in &operations {
                perform(&mut rows, &mut model, operation);
            }
            perform(&mut rows, &mut model, &Operation::Ranges(vec![(Bound::Unbounded, Bound::Unbounded)], usize::MAX));
        });
    }
}

/// Four threads add one to the same rows, of one partition or of several: nothing is lost, nothing is given up.
#[test]
fn increments_add_up() {
    on_all_topologies(|engine| {
        let object = create_keyed(engine);
        let all: Vec<Key> = (0..64).map(|number| (format!("{number:02}"), 0)).collect();
        let zeros: Vec<_> = all.iter().map(|key| (key.clone(), Some(0))).collect();
        block_on(engine.rows(object).unwrap().put(keyed_rows(&zeros))).unwrap();
        let increment = |rows: &mut RowClient, which: &[Key]| loop {
            let found = block_on(rows.get(&keys(which), &[VALUE])).unwrap();
            let values = found.rows.column(0).as_primitive::<Int64Type>().values();
            let more: Vec<_> = (which.iter().zip(values))
                .map(|(key, value)| (key.clone(), Some(value + 1)))
                .collect();
            if block_on(rows.put_if_unchanged(&found, keyed_rows(&more))).unwrap() {
                return;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut rows = engine.rows(object).unwrap();
                    for round in 0..500 {
                        match round % 10 {
                            // First and last belong to different owners, if there are several.
                            0 => increment(&mut rows, &[all[0].clone(), all[63].clone()]),
                            _ => increment(&mut rows, &all[..1]),
                        }
                    }
                });
            }
        });
        let found = block_on(engine.rows(object).unwrap().get(&keys(&all), &[VALUE])).unwrap();
        let values = found.rows.column(0).as_primitive::<Int64Type>().values();
        assert_eq!((values[0], values[1], values[63]), (2_000, 0, 200));
    });
}

#[test]
fn what_fails_leaves_no_trace() {
    on_all_topologies(|engine| {
        let mut rows = engine.rows(create_keyed(engine)).unwrap();
        let key = |name: &str| (name.to_owned(), 1);
        block_on(rows.put(keyed_rows(&[(key("a"), Some(1)), (key("z"), Some(1))]))).unwrap();
        for twice in [
            vec![key("a"), key("b"), key("a")],
            vec![key("c"), key("d"), key("d")],
        ] {
            let twice: Vec<_> = twice.into_iter().map(|key| (key, Some(2))).collect();
            let error = block_on(rows.put(keyed_rows(&twice))).unwrap_err();
            let EngineError::DuplicateKey { key, .. } = &error else {
                panic!("{error}");
            };
            assert!(["a, 1", "d, 1"].contains(&key.as_str()), "{key}");
        }
        let strangers = common::rows(0, 1);
        assert!(matches!(
            block_on(rows.put(strangers)),
            Err(EngineError::Shape { .. })
        ));
        let all = block_on(rows.range(
            (Bound::Unbounded, Bound::Unbounded),
            9,
            &[KEY[0], KEY[1], VALUE],
        ));
        let expected = vec![(key("a"), Some(1)), (key("z"), Some(1))];
        assert_eq!(entries(&all.unwrap()), expected);
        // A key of which a part is NULL has no row.
        let names: ArrayRef = Arc::new(StringViewArray::from(vec![None, Some("z")]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 1]));
        let found = block_on(rows.get(&[names, numbers], &[VALUE])).unwrap();
        assert_eq!(found.of, [1]);
    });
}

#[test]
fn a_dropped_object_has_no_rows() {
    for has_rows in [true, false] {
        let engine = engine(1, 2);
        let object = create_keyed(&engine);
        let mut rows = engine.rows(object).unwrap();
        let row = || keyed_rows(&[(("a".to_owned(), 1), None)]);
        if has_rows {
            block_on(rows.put(row())).unwrap();
        }
        block_on(engine.drop(object)).unwrap();
        let is_gone = |error| matches!(error, Some(EngineError::NoSuchObject(_)));
        assert!(is_gone(block_on(rows.put(row())).err()));
        let found = block_on(rows.get(&keys(&[("a".to_owned(), 1)]), &[VALUE]));
        assert!(is_gone(found.err()));
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert!(is_gone(block_on(rows.range(all, 9, &[VALUE])).err()));
        assert_eq!(engine.memory().budget().used(), 0);
    }
}
