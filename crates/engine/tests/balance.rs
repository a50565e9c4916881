//! Tables whose rows change owners while they are read and written, on real threads.
#![allow(missing_docs)]

mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use common::*;
use eris_engine::{Balancer, Balancing, Engine, Partitioning};
use eris_fragment::{Expr, Output};
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use futures::executor::block_on;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Rows that have not ended, by AEU.
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

/// Ends the rows of all AEUs but the first.
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

#[test]
fn sums_add_up_while_rows_move_to_and_fro() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 600_000)).unwrap();
        let expected = count_sum(engine, object).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        // Otherwise what has moved since is garbage.
                        let _held = engine.hold();
                        let (count, sum) = count_sum(engine, object).unwrap();
                        let extra = count - expected.0;
                        // Statements add ten rows of one id.
                        assert_eq!(extra % 10, 0, "part of a statement is visible");
                        assert_eq!(sum - expected.1, extra * 7);
                    }
                });
            }
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let ten = rows(7, 1);
                    let ten = arrow_select::concat::concat_batches(&schema(), vec![&ten; 10]);
                    insert(engine, object, ten.unwrap()).unwrap();
                }
            });
            let aeus = engine.topology().aeus().len() as u16;
            let (mut moved, began) = (0, Instant::now());
            for round in 0.. {
                if began.elapsed() > Duration::from_secs(2) {
                    break;
                }
                let (from, to) = (AeuId(round % aeus), AeuId((round / aeus + round) % aeus));
                let done = block_on(engine.move_rows(object, from, to, 150_000)).unwrap();
                moved += done.keys;
            }
            stop.store(true, Ordering::Relaxed);
            assert!(moved > 100_000, "{moved}");
        });
    });
}
