//! Scan sharing, seen step by step: fragments on one data object work on the same chunk at about the same time,
//! wherever each of them began.

use crate::clients::engine::Engine;
use crate::simulations::simulated::Simulated;
use crate::{EngineError, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_aeu::Faults;
use eris_fragment::*;
use eris_numa::Topology;
use eris_types::{ColumnId, ObjectId};
use futures::StreamExt;
use futures::future::join;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

const CHUNKS: u64 = 24;
const CHUNK_ROWS: u64 = 65_536;

/// What the clients have come to.
#[derive(Default)]
struct Delivered {
    /// Chunks that the early fragment had behind it when the late one began.
    began: u64,
    /// The first row that the late fragment delivered, and how many rows it delivered.
    first: Option<i64>,
    rows: u64,
    sum: i64,
    /// How far the two were apart while both ran, in chunks of the pass.
    apart: Vec<i64>,
    /// Bytes that were read for both.
    shared: u64,
}

/// Lets everybody else take a turn.
async fn turn() {
    let mut waited = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// A number that tells nothing of the row's (SplitMix64), so that no encoding makes a chunk narrower than 64 bits.
fn value(row: i64) -> i64 {
    let mut word = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)) as i64
}

async fn fill(engine: &Engine, object: ObjectId) -> Result<(), EngineError> {
    let mut writer = engine.writer(object)?;
    for chunk in 0..CHUNKS {
        let rows = (chunk * CHUNK_ROWS) as i64..((chunk + 1) * CHUNK_ROWS) as i64;
        let ids = Int64Array::from_iter_values(rows.clone());
        let wide = Int64Array::from_iter_values(rows.map(value));
        let batch = RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(wide)]);
        writer.append(batch.unwrap()).await?;
    }
    writer.commit().await.map(|_| ())
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("wide", DataType::Int64, false),
    ]))
}

/// All rows whose wide value is not negative: about half, and no zone map knows which.
fn fragment(
    engine: &Engine,
    object: ObjectId,
    output: Output,
    options: ScanOptions,
) -> Arc<Fragment> {
    let zero = Scalar {
        data_type: Type::Int64,
        value: Value::Integer(0),
    };
    let filter = Expr::Binary {
        op: BinaryOp::GtEq,
        left: Box::new(Expr::Column(1)),
        right: Box::new(Expr::Literal(zero)),
    };
    Arc::new(Fragment {
        object,
        snapshot: engine.snapshot(),
        order: None,
        columns: vec![ColumnId(0), ColumnId(1)],
        filter: vec![filter],
        probes: Vec::new(),
        lookups: Vec::new(),
        output,
        options,
    })
}

/// How many rows there are.
fn count() -> Output {
    let count = Aggregate {
        function: AggregateFunction::Count,
        input: None,
        filter: None,
        state: Type::Int64,
    };
    Output::Groups {
        keys: Vec::new(),
        aggregates: vec![count],
    }
}

/// Chunks that a fragment has worked on.
fn chunks(report: &dyn Fn() -> FragmentReport) -> u64 {
    report().workers.iter().map(|worker| worker.chunks).sum()
}

async fn early_and_late(
    engine: Engine,
    object: ObjectId,
    sharing: bool,
    seen: Rc<RefCell<Delivered>>,
) {
    fill(&engine, object).await.unwrap();
    let options = ScanOptions {
        sharing,
        ..ScanOptions::default()
    };
    let mut early = engine
        .execute(fragment(&engine, object, count(), options), 1)
        .unwrap();
    let early_report = early.report.clone();
    while chunks(&*early_report) < CHUNKS / 3 {
        turn().await;
    }
    let rows = Output::Rows {
        columns: vec![Expr::Column(0)],
        limit: None,
    };
    let mut late = engine
        .execute(fragment(&engine, object, rows, options), 1)
        .unwrap();
    let late_report = late.report.clone();
    seen.borrow_mut().began = chunks(&*early_report);
    let watched = seen.clone();
    let take = async {
        while let Some(batch) = late.streams[0].next().await {
            let batch = batch.unwrap();
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            let mut seen = watched.borrow_mut();
            seen.first.get_or_insert(ids[0]);
            seen.rows += ids.len() as u64;
            seen.sum += ids.iter().sum::<i64>();
        }
    };
    let watch = async {
        loop {
            let (early, late) = (chunks(&*early_report), chunks(&*late_report));
            if early == CHUNKS {
                break;
            }
            if late > 0 {
                seen.borrow_mut().apart.push(early as i64 - late as i64);
            }
            turn().await;
        }
    };
    let counted = async {
        let batch = early.streams[0].next().await.unwrap().unwrap();
        batch.column(0).as_primitive::<Int64Type>().value(0)
    };
    let (counted, ((), ())) = join(counted, join(take, watch)).await;
    let shared = |report: &dyn Fn() -> FragmentReport| -> u64 {
        (report().workers.iter())
            .map(|worker| worker.bytes_shared)
            .sum()
    };
    seen.borrow_mut().shared = shared(&*early_report) + shared(&*late_report);
    assert_eq!(counted as u64, seen.borrow().rows);
}

#[test]
fn a_late_fragment_joins_the_pass_and_stays_with_it() {
    let seen = late_fragment(true);
    // All that it reads but the last chunks, which the early one has behind it.
    assert!(
        seen.shared > (CHUNKS - seen.began - 3) * CHUNK_ROWS * 8,
        "{}",
        seen.shared
    );
}

#[test]
fn without_sharing_they_take_turns_over_the_same_chunks() {
    assert_eq!(late_fragment(false).shared, 0);
}

fn late_fragment(sharing: bool) -> Delivered {
    let mut simulated = Simulated::new(7, Topology::fake(1, 1), Faults::default());
    let engine = simulated.engine.clone();
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    let seen = Rc::new(RefCell::new(Delivered::default()));
    let client = early_and_late(engine.clone(), object, sharing, seen.clone());
    simulated.client(client);
    simulated.run();

    drop(simulated);
    let seen = Rc::into_inner(seen)
        .expect("the client is gone")
        .into_inner();
    // It began where the other one was, not at the front.
    let first = seen.first.unwrap() as u64 / CHUNK_ROWS;
    assert!(
        (seen.began..=seen.began + 2).contains(&first),
        "began with chunk {first} when the pass had come to {}",
        seen.began
    );
    // One slice each in turn: the distance that it had at the beginning never grew.
    assert!(!seen.apart.is_empty());
    let (least, most) = (
        seen.apart.iter().min().unwrap(),
        seen.apart.iter().max().unwrap(),
    );
    assert!(most - least <= 1, "they drifted apart: {:?}", seen.apart);
    // And it has come round to the chunks before.
    let all = (0..(CHUNKS * CHUNK_ROWS) as i64).filter(|&row| value(row) >= 0);
    let (rows, sum) = all.fold((0, 0), |(rows, sum), row| (rows + 1, sum + row));
    assert_eq!((seen.rows, seen.sum), (rows, sum));
    seen
}

/// How many chunks six fragments on one data object have come through when one on another is done.
fn chunks_beside(statements: [u64; 2]) -> u64 {
    let mut simulated = Simulated::new(7, Topology::fake(1, 1), Faults::default());
    let engine = simulated.engine.clone();
    let objects = ["t", "u"].map(|name| engine.create(name, schema(), Partitioning::Size).unwrap());
    let seen = Rc::new(RefCell::new(0));
    let (client, told) = (engine.clone(), seen.clone());
    simulated.client(async move {
        for object in objects {
            fill(&client, object).await.unwrap();
        }
        let execute = |object, statement| {
            let options = ScanOptions {
                sharing: false,
                statement,
                ..ScanOptions::default()
            };
            let fragment = fragment(&client, object, count(), options);
            client.execute(fragment, 1).unwrap()
        };
        let many: Vec<_> = (0..6).map(|_| execute(objects[0], statements[0])).collect();
        let one = execute(objects[1], statements[1]);
        while chunks(&*one.report) < CHUNKS {
            turn().await;
        }
        *told.borrow_mut() = many.iter().map(|run| chunks(&*run.report)).sum();
    });
    simulated.run();
    *seen.borrow()
}

#[test]
fn a_statement_of_many_fragments_gets_no_more_than_one_of_one() {
    let others = chunks_beside([1, 2]);
    assert!((CHUNKS - 2..=CHUNKS + 12).contains(&others), "{others}");
    // As parts of none, each fragment is one.
    let others = chunks_beside([0, 0]);
    assert!(others >= 5 * CHUNKS, "{others}");
}
