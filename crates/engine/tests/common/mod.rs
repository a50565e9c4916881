//! Engines on fake topologies, and rows to fill them with.
#![allow(missing_docs)]

use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, EngineError, Partitioning, Settings};
use eris_fragment::*;
use eris_numa::{HugePages, Topology};
use eris_types::{ColumnId, ObjectId, Timestamp};
use futures::StreamExt;
use futures::executor::block_on;
use std::sync::Arc;

pub fn engine(nodes: u16, cores: u16) -> Engine {
    Engine::start(Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Auto,
        memory_limit: Some(4 << 30),
        database: None,
    })
    .unwrap()
}

pub fn on_all_topologies(test: impl Fn(&Engine)) {
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        test(&engine(nodes, cores));
    }
}

/// id BIGINT NOT NULL, name VARCHAR
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8View, true),
    ]))
}

/// Rows `first..first + count`; every tenth name is NULL, the others are of 100 kinds.
pub fn rows(first: i64, count: usize) -> RecordBatch {
    let ids = Int64Array::from_iter_values(first..first + count as i64);
    let names = (first..first + count as i64)
        .map(|id| (id % 10 != 0).then(|| format!("name number {}", id % 100)));
    let names = StringViewArray::from_iter(names);
    RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names)]).unwrap()
}

pub fn create(engine: &Engine, partitioning: Partitioning) -> ObjectId {
    engine.create("t", schema(), partitioning).unwrap()
}

pub fn insert(engine: &Engine, object: ObjectId, rows: RecordBatch) -> Result<u64, EngineError> {
    let mut writer = engine.writer(object)?;
    block_on(writer.append(rows))?;
    block_on(writer.commit())
}

pub fn fragment(engine: &Engine, object: ObjectId, output: Output) -> Fragment {
    Fragment {
        object,
        snapshot: engine.snapshot(),
        order: None,
        columns: vec![ColumnId(0), ColumnId(1)],
        filter: Vec::new(),
        probes: Vec::new(),
        lookups: Vec::new(),
        output,
        options: ScanOptions::default(),
    }
}

pub fn all_rows() -> Output {
    Output::Rows {
        columns: vec![Expr::Column(0), Expr::Column(1)],
        limit: None,
    }
}

pub fn count_and_sum() -> Output {
    let aggregate = |function, input| Aggregate {
        function,
        input,
        filter: None,
        state: Type::Int64,
    };
    Output::Groups {
        keys: Vec::new(),
        aggregates: vec![
            aggregate(AggregateFunction::Count, None),
            aggregate(AggregateFunction::Sum, Some(Expr::Column(0))),
        ],
    }
}

/// Every batch of every stream.
pub fn collect(
    engine: &Engine,
    fragment: Fragment,
    streams: usize,
) -> Result<Vec<RecordBatch>, FragmentError> {
    let execution = engine.execute(Arc::new(fragment), streams)?;
    let streams = futures::stream::select_all(execution.streams);
    block_on(streams.collect::<Vec<_>>()).into_iter().collect()
}

/// COUNT(*) and SUM(id), merged.
pub fn count_sum(engine: &Engine, object: ObjectId) -> Result<(i64, i64), FragmentError> {
    count_sum_at(engine, object, engine.snapshot())
}

/// The same at a snapshot that somebody holds.
pub fn count_sum_at(
    engine: &Engine,
    object: ObjectId,
    snapshot: Timestamp,
) -> Result<(i64, i64), FragmentError> {
    let fragment = Fragment {
        snapshot,
        ..fragment(engine, object, count_and_sum())
    };
    let batches = collect(engine, fragment, 2)?;
    let add = |column: usize| {
        let column = batches
            .iter()
            .map(move |batch| batch.column(column).clone());
        column
            .flat_map(|array| {
                let array = array.as_any().downcast_ref::<Int64Array>().unwrap().clone();
                array.iter().flatten().collect::<Vec<_>>()
            })
            .sum::<i64>()
    };
    Ok((add(0), add(1)))
}
