//! Writers, readers and cancels at the same time, on real threads.
#![allow(missing_docs)]

mod common;

use common::*;
use eris_engine::Partitioning;
use eris_fragment::Executor;
use futures::StreamExt;
use futures::executor::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Statements write ten rows whose ids are the same modulo nothing: a reader sees whole statements only.
#[test]
fn readers_see_whole_statements() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let stop = &stop;
                scope.spawn(move || {
                    for statement in 0..150 {
                        // Large enough to be spread over several AEUs now and then.
                        let count = if statement % 50 == 49 { 140_000 } else { 7 };
                        let first = writer * 1_000_000_000 + statement * 1_000_000;
                        let mut rows_of = engine.writer(object).unwrap();
                        block_on(rows_of.append(rows(first, count))).unwrap();
                        if statement % 5 == 4 && count == 7 {
                            drop(rows_of);
                        } else {
                            block_on(rows_of.commit()).unwrap();
                        }
                    }
                    if writer == 0 {
                        stop.store(true, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let (count, _) = count_sum(engine, object).unwrap();
                        assert!(count >= last, "{count} rows after {last}");
                        // 140,000 is a multiple of 7.
                        assert_eq!(count % 7, 0, "part of a statement is visible");
                        last = count;
                    }
                });
            }
        });
        let (count, _) = count_sum(engine, object).unwrap();
        // Of 150 statements, 3 are large, 27 of the others are given up.
        assert_eq!(count, 2 * (3 * 140_000 + (147 - 27) * 7));
    });
}

#[test]
fn sessions_that_come_and_go_do_not_disturb_each_other() {
    let engine = &engine(4, 2);
    let object = create(engine, Partitioning::Size);
    insert(engine, object, rows(0, 400_000)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..50 {
                    if (thread + round) % 3 == 0 {
                        let fragment = fragment(engine, object, all_rows());
                        let run = engine.execute(Arc::new(fragment), 2).unwrap();
                        // All rows may come by one stream: its AEUs have helped the others.
                        let mut streams = futures::stream::select_all(run.streams);
                        block_on(streams.next()).unwrap().unwrap();
                    } else {
                        let (count, _) = count_sum(engine, object).unwrap();
                        assert_eq!(count, 400_000);
                    }
                }
            });
        }
    });
}

#[test]
fn helpers_take_over_chunks_of_a_busy_owner() {
    let engine = engine(1, 2);
    let object = create(&engine, Partitioning::Range(eris_types::ColumnId(0)));
    // The ranges are cut by the first statement; what comes later all goes to the last AEU.
    insert(&engine, object, rows(0, 1_000)).unwrap();
    insert(&engine, object, rows(1_000, 4_000_000)).unwrap();
    let mut helped = 0;
    // A scan is short: whether the other AEU wakes up in time is a matter of luck.
    for _ in 0..500 {
        let fragment = fragment(&engine, object, count_and_sum());
        let execution = engine.execute(Arc::new(fragment), 1).unwrap();
        let streams = futures::stream::select_all(execution.streams);
        for batch in block_on(streams.collect::<Vec<_>>()) {
            batch.unwrap();
        }
        let report = (execution.report)();
        let chunks: u64 = report.workers.iter().map(|worker| worker.chunks).sum();
        assert!(chunks >= 61, "{report:?}");
        helped += report
            .workers
            .iter()
            .map(|worker| worker.chunks_helped)
            .sum::<u64>();
        if helped > 0 {
            return;
        }
    }
    panic!("in 500 scans nobody helped");
}
