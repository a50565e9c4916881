//! Tables whose rows change owners while they are read and written, on real threads.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array};
use common::*;
use eris_engine::{Balancer, Balancing, Engine, EngineError, Partitioning};
use eris_fragment::{Expr, Output};
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use futures::executor::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rows that were not deleted, by AEU.
fn living(engine: &Engine, object: ObjectId) -> Vec<u64> {
    let partitions = engine.partitions(object).unwrap();
    partitions.iter().map(|one| one.rows).collect()
}

/// The ids of all rows, ascending.
fn ids(engine: &Engine, object: ObjectId) -> Vec<i64> {
    let batches = collect(engine, fragment(engine, object, all_rows()), 2).unwrap();
    let ids = batches.iter().flat_map(|batch| {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        ids.values().to_vec()
    });
    let mut ids: Vec<i64> = ids.collect();
    ids.sort_unstable();
    ids
}

/// Deletes the rows of all AEUs but the first.
fn empty_others(engine: &Engine, object: ObjectId) {
    let inspection = block_on(engine.inspect(object)).unwrap();
    let segments = inspection.segments.iter();
    let gone = segments.filter(|segment| segment.aeu.0 > 0);
    let gone: Vec<_> = gone.map(|segment| segment.segment).collect();
    let mut changer = block_on(engine.changer(object)).unwrap();
    let ids = Output::Rows {
        columns: vec![Expr::Column(2)],
        limit: None,
    };
    let mut ids = fragment(engine, object, ids);
    ids.columns.push(ColumnId::ROW_ID);
    for batch in collect(engine, ids, 1).unwrap() {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let ids = ids.iter().map(|id| RowId(*id as u64));
        let ids: Vec<RowId> = ids.filter(|id| gone.contains(&id.segment())).collect();
        changer.delete(ids.into_iter()).unwrap();
    }
    block_on(changer.commit()).unwrap();
}

#[test]
fn what_is_left_of_a_table_is_spread_again_when_it_is_asked_for() {
    for (nodes, cores) in [(1, 2), (2, 2)] {
        let engine = engine(nodes, cores);
        let object = create(&engine, Partitioning::Size);
        insert(&engine, object, rows(0, 1_600_000)).unwrap();
        empty_others(&engine, object);
        let before = ids(&engine, object);
        let held = living(&engine, object);
        assert_eq!(held.iter().sum::<u64>(), held[0]);
        let balancing = Balancing {
            algorithm: None,
            ..Balancing::default()
        };
        let balancer = Balancer::start(&engine, balancing).unwrap();
        block_on(balancer.balance(&engine, object)).unwrap();
        let held = living(&engine, object);
        let mean = held.iter().sum::<u64>() / held.len() as u64;
        assert!(
            held.iter().all(|rows| rows.abs_diff(mean) <= 65_536),
            "{held:?}"
        );
        assert_eq!(ids(&engine, object), before);
        let history = balancer.history();
        assert_eq!(history.len(), held.len() - 1);
        for one in &history {
            let moved = one.result.as_ref().unwrap();
            let node = |aeu| engine.topology().node_of(aeu);
            let is_near = node(one.from) == node(one.to);
            assert_eq!(
                (moved.linked > 0, moved.copied > 0),
                (is_near, !is_near),
                "{one:?}"
            );
        }
        // Nothing is uneven now.
        block_on(balancer.balance(&engine, object)).unwrap();
        assert_eq!(balancer.history().len(), history.len());
    }
}

/// Rows of a table with the key `id`.
fn keyed(engine: &Engine, count: usize) -> ObjectId {
    let key = [ColumnId(0)];
    let object = engine.create_with_key("k", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    insert(engine, object, rows(0, count)).unwrap();
    object
}

#[test]
fn rows_of_keys_that_one_owner_has_are_spread_by_size() {
    for (nodes, cores) in [(1, 2), (2, 2)] {
        let engine = engine(nodes, cores);
        let object = keyed(&engine, 600_000);
        let all = engine.move_keys(object, i64::MIN, i64::MAX, AeuId(0));
        let moved = block_on(all).unwrap();
        assert!(moved.linked > 0, "{moved:?}");
        let held = living(&engine, object);
        assert_eq!(held.iter().sum::<u64>(), held[0]);
        let before = ids(&engine, object);
        let balancing = Balancing {
            algorithm: None,
            ..Balancing::default()
        };
        let balancer = Balancer::start(&engine, balancing).unwrap();
        block_on(balancer.balance(&engine, object)).unwrap();
        let held = living(&engine, object);
        let mean = held.iter().sum::<u64>() / held.len() as u64;
        // What is linked is counted by a sample.
        assert!(
            held.iter().all(|rows| rows.abs_diff(mean) <= mean / 8),
            "{held:?}"
        );
        assert_eq!(ids(&engine, object), before);
        let history = balancer.history();
        assert!(history.iter().all(|one| one.result.is_ok()), "{history:?}");
    }
}

fn key(ids: impl Iterator<Item = i64>) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from_iter_values(ids))]
}

/// Numbers in no order.
fn mixed(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

#[test]
fn keys_that_are_asked_for_most_are_shared_out_and_nothing_moves_without_need() {
    const ROWS: u64 = 100_000;
    let engine = engine(2, 2);
    let object = keyed(&engine, ROWS as usize);
    let balancing = Balancing {
        period: Duration::from_millis(200),
        ..Balancing::default()
    };
    let balancer = Balancer::start(&engine, balancing).unwrap();
    let (stop, most) = (AtomicBool::new(false), AtomicU64::new(ROWS));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = engine.rows(object).unwrap();
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let id = mixed(round) % most.load(Ordering::Relaxed);
                let found = block_on(client.get(&key([id as i64].into_iter()), &[ColumnId(1)]));
                assert_eq!(found.unwrap().rows.num_rows(), 1);
            }
        });
        std::thread::sleep(Duration::from_millis(1_500));
        let moved = balancer.history();
        // All of these are one AEU's.
        most.store(ROWS / 10, Ordering::Relaxed);
        let began = Instant::now();
        let is_shared = || {
            let history = balancer.history();
            let imbalance = history.iter().rev().find_map(|one| one.after);
            imbalance.is_some_and(|imbalance| imbalance < 1.5)
        };
        while !is_shared() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(moved.is_empty(), "{moved:?}");
        assert!(is_shared(), "{:?}", balancer.history());
    });
    let history = balancer.history();
    assert!(
        history
            .iter()
            .all(|one| one.range.is_some() && one.result.is_ok())
    );
    // Three quarters of the tenth, and little more.
    let moved: u64 = history
        .iter()
        .map(|one| one.result.as_ref().unwrap().keys)
        .sum();
    assert!((ROWS / 20..ROWS / 4).contains(&moved), "{moved}");
    assert!(ids(&engine, object).into_iter().eq(0..ROWS as i64));
}

/// Rows of a table wait until nobody writes others, and are given up then. Another table's do not wait for them.
#[test]
fn what_moved_before_a_failure_is_told_and_other_tables_do_not_wait_for_it() {
    let engine = engine(2, 1);
    let others = create(&engine, Partitioning::Size);
    insert(&engine, others, rows(0, 600_000)).unwrap();
    empty_others(&engine, others);
    let all = 1_200_000;
    let object = keyed(&engine, all);
    let moved = block_on(engine.move_keys(object, i64::MIN, i64::MAX, AeuId(0))).unwrap();
    let per_row = moved.copied as f64 / moved.keys as f64;
    assert!((8.0..64.0).contains(&per_row), "{moved:?}");
    assert_eq!(living(&engine, object), [all as u64, 0]);
    let balancing = Balancing {
        algorithm: None,
        ..Balancing::default()
    };
    let balancer = Balancer::start(&engine, balancing).unwrap();
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| block_on(balancer.balance(&engine, object)));
        while living(&engine, object)[1] == 0 {
            assert!(!moving.is_finished(), "nothing has moved");
            std::thread::yield_now();
        }
        let mut open = engine.writer(object).unwrap();
        block_on(open.append(rows(-1, 1))).unwrap();
        block_on(balancer.balance(&engine, others)).unwrap();
        assert!(!moving.is_finished(), "the other table has waited");
        moving.join().unwrap().unwrap();
    });
    let history = balancer.history().into_iter();
    let (of_object, of_others): (Vec<_>, Vec<_>) = history.partition(|one| one.object == object);
    assert!(of_others.iter().all(|one| one.result.is_ok()) && !of_others.is_empty());
    let [moved, failed] = &of_object[..] else {
        panic!("{of_object:?}");
    };
    let moved_rows = moved.result.as_ref().unwrap().keys;
    assert_eq!(
        living(&engine, object),
        [all as u64 - moved_rows, moved_rows]
    );
    assert!((1..all as u64 / 2).contains(&moved_rows), "{moved:?}");
    let (first, rest) = (moved.range.as_ref(), failed.range.as_ref());
    assert_eq!(first, Some(&format!("< {moved_rows}")));
    assert!(
        rest.unwrap().starts_with(&format!(">= {moved_rows}")),
        "{failed:?}"
    );
    assert!(
        failed
            .result
            .as_ref()
            .is_err_and(|error| error.contains("being written"))
    );
}

#[test]
fn without_memory_rows_stay_where_they_are() {
    let engine = engine(2, 1);
    let (plain, object) = (create(&engine, Partitioning::Size), keyed(&engine, 200_000));
    insert(&engine, plain, rows(0, 400_000)).unwrap();
    let before = [ids(&engine, plain), ids(&engine, object)];
    let budget = engine.memory().budget();
    let (limit, to) = (budget.limit(), AeuId(1));
    budget.set_limit(budget.used());
    let denied = [
        block_on(engine.move_rows(plain, AeuId(0), to, 200_000)),
        block_on(engine.move_keys(object, i64::MIN, i64::MAX, to)),
    ];
    budget.set_limit(limit);
    for moved in &denied {
        assert!(
            matches!(moved, Err(EngineError::OutOfMemory { .. })),
            "{moved:?}"
        );
    }
    assert_eq!([ids(&engine, plain), ids(&engine, object)], before);
    assert!(
        block_on(engine.move_rows(plain, AeuId(0), to, 200_000))
            .unwrap()
            .copied
            > 0
    );
    assert!(
        block_on(engine.move_keys(object, i64::MIN, i64::MAX, to))
            .unwrap()
            .keys
            > 0
    );
    assert_eq!([ids(&engine, plain), ids(&engine, object)], before);
    assert_eq!(living(&engine, object), [0, 200_000]);
    let ranges = engine
        .partitions(object)
        .unwrap()
        .into_iter()
        .map(|one| one.ranges);
    let ranges: Vec<_> = ranges.flatten().collect();
    assert_eq!(ranges, ["none", "all"]);
}
