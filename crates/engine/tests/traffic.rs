//! What crosses from node to node, for statements of known sizes. The client is on the first node, as on every machine
//! whose nodes are made up.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use common::{engine, fragment};
use eris_engine::{Engine, Partitioning, Settings, Shift};
use eris_fragment::{Executor, Expr, Fragment, NumaStrategy, Output, ScanOptions};
use eris_home::{Home, Traffic, TrafficKind};
use eris_numa::{HugePages, Profile, Topology};
use eris_types::{AeuId, ColumnId, NodeId, ObjectId, RowId};
use futures::StreamExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A command without words.
const COMMAND: u64 = 24;

/// Keys and rows of each AEU of 4 x 2.
const EACH: i64 = 1_000;
const ROWS: i64 = 8 * EACH;

type Crossed = BTreeMap<(u16, u16, &'static str), (u64, u64)>;

/// Requests and bytes by source, home and kind, since `before`.
fn since(engine: &Engine, before: &[Traffic]) -> Crossed {
    let mut all = Crossed::new();
    for now in engine.traffic() {
        let same = |then: &&Traffic| {
            (then.source, then.home, then.kind) == (now.source, now.home, now.kind)
        };
        let (requests, bytes) = before
            .iter()
            .find(same)
            .map_or((0, 0), |then| (then.requests, then.bytes));
        if now.requests > requests {
            let place = (now.source.0, now.home.0, now.kind.name());
            all.insert(place, (now.requests - requests, now.bytes - bytes));
        }
    }
    all
}

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("k"), field("v")]))
}

fn column(values: Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn table(engine: &Engine) -> ObjectId {
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    let columns = vec![column(0..ROWS), column(0..ROWS)];
    let rows = RecordBatch::try_new(schema(), columns).unwrap();
    common::insert(engine, object, rows).unwrap();
    object
}

/// What a command with a parcel takes beside what the parcel leads to.
fn parcel() -> u64 {
    let engine = engine(2, 1);
    let index = engine.create_key_index("i", 0..=99);
    let mut client = index.client().unwrap();
    let before = engine.traffic();
    client.get(&[99], &mut [None]).unwrap();
    let (requests, bytes) = since(&engine, &before)[&(0, 1, "keys")];
    assert_eq!(requests, 1);
    bytes - 8 - 16
}

#[test]
fn nothing_crosses_on_one_node() {
    let engine = engine(1, 2);
    let object = table(&engine);
    let mut client = engine.rows(object).unwrap();
    block_on(client.get(&[column(0..ROWS)], &[ColumnId(1)])).unwrap();
    assert_eq!(engine.traffic(), []);
}

#[test]
fn rows_and_what_is_found_are_counted_by_their_sizes() {
    let engine = engine(4, 2);
    let before = engine.traffic();
    let object = table(&engine);
    let loaded = since(&engine, &before);
    let parcel = parcel();
    let places = engine.topology().aeus();
    let others = || (1..4u16).map(|node| (node, 2 * EACH as u64));
    for (node, rows) in others() {
        // Rows go there, two numbers each, and "done" comes back for each request, and for each check.
        let (requests, bytes) = loaded[&(node, 0, "load")];
        assert_eq!(bytes, requests * parcel + rows * 16, "{loaded:?}");
        let (answers, bytes) = loaded[&(0, node, "load")];
        assert_eq!(bytes, answers * COMMAND, "{loaded:?}");
        let (requests, bytes) = loaded[&(node, 0, "commit")];
        assert_eq!(bytes, requests * parcel, "{loaded:?}");
        assert_eq!(requests, 4, "a check and a commit at each of two owners");
    }
    assert!(loaded.keys().all(|(source, home, _)| source != home));

    // The rows of keys at the last AEU, which is on the last node.
    let mut client = engine.rows(object).unwrap();
    let last = |count: i64| [column(ROWS - count..ROWS)];
    for count in [1, 10, EACH] {
        let before = engine.traffic();
        let found = block_on(client.get(&last(count), &[ColumnId(1)])).unwrap();
        assert_eq!(found.of.len() as i64, count);
        let crossed = since(&engine, &before);
        let row = 8 + size_of::<Option<RowId>>() as u64;
        let answer = (1, parcel + count as u64 * row);
        assert_eq!(crossed[&(0, 3, "rows")], answer, "{crossed:?}");
        // Unless the client did it in the place of a sleeping owner, the keys went there.
        if let Some(asked) = crossed.get(&(3, 0, "rows")) {
            assert_eq!(*asked, (1, parcel + count as u64 * 8), "{crossed:?}");
        }
        assert!(
            crossed.keys().all(|(_, _, kind)| *kind == "rows"),
            "{crossed:?}"
        );
    }

    // Keys of the client's own node.
    let before = engine.traffic();
    block_on(client.get(&[column(0..2 * EACH)], &[ColumnId(1)])).unwrap();
    assert_eq!(since(&engine, &before), Crossed::new());

    // A scan: the rows of three nodes come, in batches whose sizes are those of their rows.
    let before = engine.traffic();
    let output = Output::Rows {
        columns: vec![Expr::Column(0), Expr::Column(1)],
        limit: None,
    };
    // Nobody of another node helps, who would send the rows of this one.
    let options = ScanOptions {
        strategy: NumaStrategy::Push,
        ..ScanOptions::default()
    };
    let wanted = Arc::new(Fragment {
        options,
        ..fragment(&engine, object, output)
    });
    let mut execution = engine.execute(wanted, 1).unwrap();
    let mut found = 0;
    while let Some(batch) = block_on(execution.streams[0].next()) {
        found += batch.unwrap().num_rows();
    }
    assert_eq!(found as i64, ROWS);
    let crossed = since(&engine, &before);
    for (node, rows) in others() {
        let (messages, bytes) = crossed[&(0, node, "result")];
        assert_eq!(bytes, messages * parcel + rows * 16, "{crossed:?}");
    }
    assert_eq!(places.len(), 8);
}

#[test]
fn keys_and_what_moves_are_counted_by_their_sizes() {
    let engine = engine(4, 2);
    let parcel = parcel();
    let index = engine.create_key_index("i", 0..=ROWS as u64 - 1);
    let mut client = index.client().unwrap();
    let entries: Vec<(u64, u64)> = (0..ROWS as u64).map(|key| (key, 2 * key)).collect();
    let before = engine.traffic();
    client
        .put(&entries, &mut vec![None; entries.len()])
        .unwrap();
    let crossed = since(&engine, &before);
    for node in 1..4 {
        // Entries come back, and the value that each key had.
        let (parts, bytes) = crossed[&(0, node, "keys")];
        assert_eq!(parts, 2);
        assert_eq!(
            bytes,
            2 * parcel + 2 * EACH as u64 * (16 + 16),
            "{crossed:?}"
        );
    }

    // From one node to another, neither of them the client's.
    assert_eq!(
        (index.owner(2_500), index.owner(7_500)),
        (AeuId(2), AeuId(7))
    );
    let before = engine.traffic();
    let shift = Shift {
        low: 2_000,
        high: 2_999,
        to: AeuId(7),
    };
    block_on(index.shift(&[shift])).unwrap();
    let crossed = since(&engine, &before);
    let (pieces, bytes) = crossed[&(3, 1, "move")];
    assert_eq!(bytes, pieces * parcel + EACH as u64 * 16, "{crossed:?}");
    let (answers, bytes) = crossed[&(1, 3, "move")];
    assert_eq!((answers, bytes), (pieces, pieces * parcel), "{crossed:?}");
}

#[test]
fn chunks_that_move_are_counted_from_their_former_owner() {
    let engine = engine(4, 2);
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    let columns = vec![column(0..800_000), column(0..800_000)];
    let rows = RecordBatch::try_new(schema(), columns).unwrap();
    common::insert(&engine, object, rows).unwrap();
    let mut has_moved = false;
    for from in (2..4).map(AeuId) {
        let before = engine.traffic();
        let moved = block_on(engine.move_rows(object, from, AeuId(7), 65_536)).unwrap();
        let crossed = since(&engine, &before);
        let counted = crossed.get(&(3, 1, "move")).copied().unwrap_or_default();
        assert_eq!(counted.1, moved.copied, "{crossed:?}");
        has_moved |= moved.copied > 0;
        assert_eq!(engine.topology().node_of(from), NodeId(1));
    }
    assert!(has_moved);
    assert_eq!(TrafficKind::ALL.len(), 8);
}

#[test]
fn chunks_that_move_take_at_least_the_time_of_a_paced_link() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("slow.toml");
    let links = "[[links]]\nname = \"slow\"\ngigabytes_per_second = 0.05\nnanoseconds = 100\n";
    let head =
        "name = \"slow\"\nsource = \"made up\"\naeus_per_node = 1\npairs = [\"00\", \"00\"]\n";
    std::fs::write(&file, format!("{head}{links}")).unwrap();
    let machine = Arc::new(Profile::read(&file).unwrap());
    let engine = Engine::start(Settings {
        topology: Topology::fake(2, 1).paced_as(machine).unwrap(),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: None,
    })
    .unwrap();
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    let columns = vec![column(0..8 * 65_536), column(0..8 * 65_536)];
    let rows = RecordBatch::try_new(schema(), columns).unwrap();
    common::insert(&engine, object, rows).unwrap();
    let began = Instant::now();
    let moved = block_on(engine.move_rows(object, AeuId(1), AeuId(0), 8 * 65_536)).unwrap();
    let (took, crosses) = (began.elapsed().as_secs_f64(), moved.copied as f64 / 0.05e9);
    assert!(
        moved.copied > 0 && took >= crosses,
        "{took} s instead of {crosses}"
    );
    assert_eq!(common::count_sum(&engine, object).unwrap().0, 8 * 65_536);
}
