//! A segment against a list of rows with their versions: random statements, commits, aborts, deletes and snapshots.
#![allow(missing_docs)]

use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use eris_column::{CHUNK_ROWS, ColumnChunk, ColumnValue, Dictionary, Home, Selection};
use eris_numa::{HugePages, Memory, Topology};
use eris_store::{Encoder, Recoder, Segment};
use eris_types::{NodeId, ObjectId, SegmentId, StatementId, Timestamp};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    /// Stage so many rows and commit or abort.
    Write { rows: usize, commit: bool },
    /// Delete every n-th row of a sealed chunk.
    Delete { chunk: usize, every: usize },
    /// Encode the append buffer.
    Settle,
    /// Compare what a snapshot so many commits ago sees.
    Read { ago: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let rows = prop_oneof![
        8 => 1usize..50,
        4 => 50usize..5_000,
        2 => 30_000usize..=CHUNK_ROWS,
    ];
    prop_oneof![
        6 => (rows, prop::bool::weighted(0.8)).prop_map(|(rows, commit)| Step::Write { rows, commit }),
        1 => (0usize..4, 1usize..9).prop_map(|(chunk, every)| Step::Delete { chunk, every }),
        1 => Just(Step::Settle),
        3 => (0u64..5).prop_map(|ago| Step::Read { ago }),
    ]
}

fn batch(first: i64, rows: usize) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8View, true),
    ]);
    let ids = Int64Array::from_iter_values(first..first + rows as i64);
    let texts = (0..rows).map(|row| (row % 3 != 0).then(|| format!("v{}", row % 5)));
    let texts = StringViewArray::from_iter(texts);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids), Arc::new(texts)]).unwrap()
}

/// The same rows as they come from a writer: in up to three pieces, text looked up before or not.
fn staged(first: i64, rows: usize) -> Encoder {
    let whole = batch(first, rows);
    let cuts = [0, rows / 3, rows - rows / 4, rows];
    let pieces = cuts.windows(2).filter(|cut| cut[0] < cut[1]);
    let pieces = pieces.map(|cut| whole.slice(cut[0], cut[1] - cut[0]));
    Encoder::new(whole.schema(), pieces.collect())
}

struct Row {
    id: i64,
    begin: Timestamp,
    end: Timestamp,
}

fn id(column: &ColumnChunk, row: usize) -> i64 {
    match column.get(row, None) {
        ColumnValue::Integer(id) => id,
        other => panic!("{other:?}"),
    }
}

/// The ids that a snapshot sees.
fn read(segment: &Segment, at: Timestamp) -> Vec<i64> {
    let mut ids = Vec::new();
    for view in segment.view() {
        let mut selection = Selection::all(view.chunk.rows());
        if !view.all_visible(at) {
            view.visible(at, &mut selection);
        }
        let column = &view.chunk.columns()[0];
        ids.extend(selection.iter_ones().map(|row| id(column, row)));
    }
    ids.sort_unstable();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_segment_is_a_list_of_versioned_rows(steps in prop::collection::vec(step(), 1..25)) {
        let topology = Topology::fake(1, 1);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let node = memory.node(NodeId(0));
        let object = ObjectId(1);
        let home = || Home { memory: &node, object };
        let texts = [None, Some(Dictionary::new().extend(["v0", "v1", "v2", "v3", "v4"].into_iter()))];
        let mut segment = Segment::new(SegmentId(1));
        let mut model: Vec<Row> = Vec::new();
        let mut now = Timestamp(10);
        let mut next_id = 0;
        for (number, step) in steps.into_iter().enumerate() {
            let statement = StatementId(number as u64);
            match step {
                Step::Write { rows, commit } => {
                    let mut encoder = staged(next_id, rows);
                    if number % 2 == 0 {
                        let few = [None, Some(Dictionary::new().extend(["v0", "v1"].into_iter()))];
                        let missing = encoder.look_up(&few);
                        prop_assert!(missing.iter().all(|(column, strings)| *column == 1 && !strings.is_empty()));
                        prop_assert_eq!(encoder.look_up(&texts), vec![]);
                    }
                    while !encoder.is_done() {
                        encoder.step(&texts, home()).unwrap();
                    }
                    segment.stage(statement, encoder);
                    if commit {
                        now.0 += 1;
                        prop_assert_eq!(segment.commit(statement, now), rows as u64);
                        model.extend((next_id..next_id + rows as i64).map(|id| Row { id, begin: now, end: Timestamp::NEVER }));
                    } else {
                        segment.abort(statement);
                        prop_assert_eq!(segment.commit(statement, now), 0);
                    }
                    next_id += rows as i64;
                }
                Step::Delete { chunk, every } if chunk < segment.sealed_since(0).count() => {
                    now.0 += 1;
                    let rows = segment.sealed_since(chunk).next().unwrap().rows();
                    let deleted: Vec<usize> = (0..rows).step_by(every).collect();
                    let first = segment.sealed_since(chunk).next().unwrap();
                    let ids: Vec<i64> = (0..rows).map(|row| id(&first.columns()[0], row)).collect();
                    segment.delete(chunk, &deleted, now);
                    for row in deleted {
                        let version = model.iter_mut().find(|version| version.id == ids[row]).unwrap();
                        version.end = version.end.min(now);
                    }
                }
                Step::Delete { .. } => {}
                Step::Settle => {
                    // Text that was coded is coded no longer now and then.
                    let coding = if number % 3 == 0 { &[None, None] } else { &texts };
                    let schema = batch(0, 0).schema();
                    let recoder = Recoder { schema: &schema, known: &texts, coding, home: home() };
                    segment.settle(recoder).unwrap();
                }
                Step::Read { ago } => {
                    let at = Timestamp(now.0 - ago);
                    let expected: Vec<i64> = model
                        .iter()
                        .filter(|row| row.begin <= at && row.end > at)
                        .map(|row| row.id)
                        .collect();
                    prop_assert_eq!(read(&segment, at), expected);
                }
            }
            prop_assert_eq!(segment.statistics().rows, model.len() as u64);
        }
        drop(segment);
        prop_assert!(memory.usage().iter().all(|usage| usage.bytes == 0), "memory is left over");
    }
}
