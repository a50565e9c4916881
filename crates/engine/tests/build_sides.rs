//! Build sides that are kept once on each node: whatever the topology, rows and groups are the same.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use common::*;
use eris_engine::{Engine, Partitioning};
use eris_fragment::*;
use eris_types::ObjectId;
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: usize = 300_000;

/// Keys, a number and a string for each; several of them for some keys if they shall repeat.
fn side(count: i64, is_unique: bool) -> RecordBatch {
    let key = |row: i64| match is_unique {
        true => row * 3,
        false => row % (count / 3) * 3,
    };
    let names =
        (0..count).map(|row| (row % 11 > 0).then(|| format!("a name of kind {}", row % 17)));
    RecordBatch::try_from_iter([
        (
            "key",
            Arc::new(Int64Array::from_iter_values((0..count).map(key))) as ArrayRef,
        ),
        (
            "number",
            Arc::new(Int64Array::from_iter_values(
                (0..count).map(|row| row % 1_000),
            )),
        ),
        ("name", Arc::new(names.collect::<StringViewArray>())),
    ])
    .unwrap()
}

/// Rows that have a match; numbers of rows, and sums, by what is joined; the same with a set of keys beside it.
fn fragments(engine: &Engine, object: ObjectId, is_unique: bool) -> Vec<Fragment> {
    let aggregate = |function, input| Aggregate {
        function,
        input,
        filter: None,
        state: Type::Int64,
    };
    let groups = |keys: Vec<usize>| Output::Groups {
        keys: keys.into_iter().map(Expr::Column).collect(),
        aggregates: vec![
            aggregate(AggregateFunction::Count, None),
            aggregate(AggregateFunction::Sum, Some(Expr::Column(2))),
        ],
    };
    let rows = Output::Rows {
        columns: vec![Expr::Column(0), Expr::Column(2)],
        limit: None,
    };
    let outputs = [
        groups(vec![3]),
        groups(vec![2, 3]),
        groups(vec![0, 3]),
        rows,
    ];
    let fragments = outputs.into_iter().map(|output| Fragment {
        lookups: vec![Lookup::new(0, side(100_000, is_unique))],
        ..fragment(engine, object, output)
    });
    let mut fragments: Vec<_> = fragments.collect();
    let keys = KeySet::of_sorted((0..ROWS as i64).filter(|id| id % 7 < 3).collect());
    for with_keys in fragments.clone() {
        fragments.push(Fragment {
            probes: vec![Probe {
                column: 0,
                keys: keys.clone(),
            }],
            ..with_keys
        });
    }
    fragments
}

/// Counts and sums of what it yields, by all other columns; of rows, how often each occurs.
fn merged(engine: &Engine, fragment: Fragment) -> BTreeMap<String, (i64, i64)> {
    let (keys, of_rows) = match &fragment.output {
        Output::Groups { keys, .. } => (keys.len(), false),
        Output::Rows { columns, .. } => (columns.len(), true),
    };
    let mut merged = BTreeMap::new();
    for batch in collect(engine, fragment, 3).unwrap() {
        for row in 0..batch.num_rows() {
            let shown = (0..keys).map(|column| match batch.column(column).as_string_view_opt() {
                Some(names) => format!("{:?}", names.iter().nth(row).unwrap()),
                None => batch
                    .column(column)
                    .as_primitive::<Int64Type>()
                    .value(row)
                    .to_string(),
            });
            let key = shown.collect::<Vec<_>>().join(" ");
            let number =
                |column: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
            let (count, sum) = match of_rows {
                true => (1, 0),
                false => (number(keys), number(keys + 1)),
            };
            let entry = merged.entry(key).or_insert((0, 0));
            *entry = (entry.0 + count, entry.1 + sum);
        }
    }
    merged
}

/// Bytes that are mapped for each node.
fn mapped(engine: &Engine) -> Vec<u64> {
    let nodes = engine.topology().nodes().iter();
    nodes
        .map(|node| engine.memory().node(node.id).mapped_bytes())
        .collect()
}

#[test]
fn rows_and_groups_are_the_same_on_all_topologies() {
    for is_unique in [true, false] {
        let mut expected = Vec::new();
        for (nodes, cores) in [(1, 1), (2, 2), (4, 1)] {
            let engine = &engine(nodes, cores);
            let object = create(engine, Partitioning::Size);
            for first in (0..ROWS).step_by(50_000) {
                insert(engine, object, rows(first as i64, 50_000)).unwrap();
            }
            let fragments = fragments(engine, object, is_unique);
            let found = fragments
                .into_iter()
                .map(|fragment| merged(engine, fragment));
            let found: Vec<_> = found.collect();
            assert!(found.iter().all(|one| !one.is_empty()));
            if expected.is_empty() {
                expected = found;
            } else {
                assert!(found == expected, "on {nodes} nodes with {cores} AEUs each");
            }
        }
    }
}

#[test]
fn each_node_has_a_copy_unless_there_is_no_memory() {
    let engine = &engine(4, 2);
    let object = create(engine, Partitioning::Size);
    // Each owner has rows with a match.
    for _ in 0..8 {
        insert(engine, object, rows(0, 65_536)).unwrap();
    }
    let expected = 8 * 65_536_usize.div_ceil(3);
    let fragment = fragments(engine, object, true).remove(3);
    let (used, before) = (engine.memory().budget().used(), mapped(engine));
    let execution = engine.execute(Arc::new(fragment.clone()), 1).unwrap();
    let began = Instant::now();
    // Keys lie close enough together for a table of 32 bits for each place between them.
    let has_table = |(now, before): (&u64, &u64)| now.saturating_sub(*before) >= 4 * 299_998;
    while !mapped(engine).iter().zip(&before).all(has_table) {
        let now = mapped(engine);
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{before:?}, {now:?}"
        );
        std::thread::yield_now();
    }
    let streams = execution.streams.into_iter();
    let rows: usize = streams
        .flat_map(|stream| block_on(stream.collect::<Vec<_>>()))
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    assert_eq!(rows, expected);
    // They have the run, and with it the copies.
    drop((execution.is_merged, execution.report));

    let budget = engine.memory().budget();
    let limit = budget.limit();
    budget.set_limit(budget.used() + (1 << 20));
    let found = merged(engine, fragment);
    let found: i64 = found.values().map(|(count, _)| count).sum();
    assert_eq!(found, expected as i64);
    budget.set_limit(limit);
    let began = Instant::now();
    while budget.used() != used {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{} left",
            budget.used() - used
        );
        std::thread::yield_now();
    }
}
