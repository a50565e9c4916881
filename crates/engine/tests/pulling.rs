//! Rows of one node and workers of all: who works on them, what crosses, and that the answers are the same.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_cast::display::{ArrayFormatter, FormatOptions};
use common::{fragment, insert, rows, schema};
use eris_engine::{Engine, Partitioning, Settings};
use eris_fragment::*;
use eris_home::{Home, TrafficKind};
use eris_numa::{HugePages, Profile, ScanKernel, ScanSpeed, Speeds, Topology};
use eris_types::{AeuId, ObjectId};
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: usize = 20 * 65_536 + 1_234;

fn engine(topology: Topology) -> Engine {
    Engine::start(Settings {
        topology,
        huge_pages: HugePages::Auto,
        memory_limit: Some(1 << 30),
        database: None,
    })
    .unwrap()
}

/// All rows lie at one AEU.
fn filled(engine: &Engine) -> ObjectId {
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    insert(engine, object, rows(0, ROWS)).unwrap();
    for place in &engine.topology().aeus()[1..] {
        block_on(engine.move_rows(object, place.aeu, AeuId(0), ROWS as u64)).unwrap();
    }
    object
}

fn filtered(engine: &Engine, object: ObjectId, strategy: NumaStrategy, output: Output) -> Fragment {
    let literal = Scalar {
        data_type: Type::Int64,
        value: Value::Integer(70_000),
    };
    Fragment {
        filter: vec![Expr::Binary {
            op: BinaryOp::GtEq,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Literal(literal)),
        }],
        options: ScanOptions {
            strategy,
            ..ScanOptions::default()
        },
        ..fragment(engine, object, output)
    }
}

/// The rows, sorted; of groups the counts of all workers together.
fn run(engine: &Engine, fragment: Fragment) -> (Vec<String>, FragmentReport) {
    let is_grouped = matches!(fragment.output, Output::Groups { .. });
    let mut execution = engine.execute(Arc::new(fragment), 1).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut stream = execution.streams.remove(0);
    while let Some(batch) = block_on(stream.next()) {
        let batch = batch.unwrap();
        let columns = batch.columns().iter();
        let columns =
            columns.map(|column| ArrayFormatter::try_new(column, &FormatOptions::new()).unwrap());
        let columns: Vec<_> = columns.collect();
        let line = |row| {
            columns
                .iter()
                .map(|column| format!("{}|", column.value(row)))
                .collect()
        };
        lines.extend((0..batch.num_rows()).map(line));
    }
    drop(stream);
    if is_grouped {
        let mut counts = BTreeMap::<String, u64>::new();
        for line in &lines {
            let (name, count) = line.trim_end_matches('|').split_once('|').unwrap();
            *counts.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
        lines = counts
            .iter()
            .map(|(name, count)| format!("{name}|{count}"))
            .collect();
    }
    lines.sort_unstable();
    (lines, (execution.report)())
}

fn names() -> Output {
    let count = Aggregate {
        function: AggregateFunction::Count,
        input: None,
        filter: None,
        state: Type::Int64,
    };
    Output::Groups {
        keys: vec![Expr::Column(1)],
        aggregates: vec![count],
    }
}

#[test]
fn answers_are_the_same_wherever_rows_are_worked_on() {
    let machine = || Arc::new(Profile::known("eris-sgi").unwrap());
    for topology in [
        Topology::fake(2, 1),
        Topology::fake(4, 2),
        Topology::fake(2, 1).paced_as(machine()).unwrap(),
    ] {
        let engine = engine(topology);
        let object = filled(&engine);
        let everything = Output::Rows {
            columns: vec![Expr::Column(0), Expr::Column(1)],
            limit: None,
        };
        for output in [names(), everything] {
            let of = |strategy| run(&engine, filtered(&engine, object, strategy, output.clone()));
            let (expected, pushed) = of(NumaStrategy::Push);
            let moved = |report: &FragmentReport| -> u64 {
                report.workers.iter().map(|worker| worker.bytes_moved).sum()
            };
            assert_eq!(moved(&pushed), 0);
            let workers = pushed.workers.iter();
            assert!(
                workers
                    .filter(|worker| worker.chunks > 0)
                    .all(|worker| worker.node == 0)
            );
            for strategy in [NumaStrategy::Auto, NumaStrategy::Pull] {
                let (lines, report) = of(strategy);
                assert!(lines == expected, "{strategy:?} has other rows");
                let chunks: u64 = report.workers.iter().map(|worker| worker.chunks).sum();
                let skipped: u64 = (report.workers.iter())
                    .map(|worker| worker.chunks_skipped)
                    .sum();
                assert!(chunks > 0 && skipped > 0);
            }
        }
    }
}

/// The owner waits for nobody, so that others may come too late: it is tried again.
#[test]
fn chunks_of_other_nodes_are_copied_and_counted() {
    let engine = engine(Topology::fake(2, 1));
    let object = filled(&engine);
    for _ in 0..100 {
        let scans = || {
            let mut all = engine.traffic();
            all.retain(|traffic| traffic.kind == TrafficKind::Scan);
            all
        };
        let before: u64 = scans().iter().map(|traffic| traffic.bytes).sum();
        let (_, report) = run(
            &engine,
            filtered(&engine, object, NumaStrategy::Pull, names()),
        );
        let (mut copied, mut moved) = (0, 0);
        for worker in &report.workers {
            copied += worker.chunks_copied;
            moved += worker.bytes_moved;
            assert!(worker.bytes_moved <= worker.bytes);
            assert!(worker.chunks_copied <= worker.chunks_helped);
        }
        let traffic = scans();
        let after: u64 = traffic.iter().map(|traffic| traffic.bytes).sum();
        assert_eq!(after - before, moved);
        if copied > 0 {
            assert!(moved > 0);
            assert_eq!(traffic.len(), 1, "{traffic:?}");
            return;
        }
    }
    panic!("nobody has helped in 100 scans");
}

#[test]
fn estimates_go_by_the_speeds_of_a_given_machine() {
    let pushed = |gigabytes_per_second| {
        let scan = ScanSpeed {
            kernel: ScanKernel::Compare,
            bits: 8,
            gigabytes_per_second,
        };
        let speeds = Speeds {
            scans: vec![scan],
            ..Speeds::usual()
        };
        let machine = Profile::known("eris-intel").unwrap().with_speeds(speeds);
        let topology = Topology::fake(2, 1).planned_as(Arc::new(machine));
        let engine = engine(topology.unwrap());
        let object = filled(&engine);
        let fragment = filtered(&engine, object, NumaStrategy::Push, names());
        engine.estimate(&fragment).unwrap().pushed
    };
    let ratio = pushed(0.01) / pushed(10.0);
    assert!((900.0..1100.0).contains(&ratio), "{ratio}");
}
