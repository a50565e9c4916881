//! Secondary indexes of a table: an index for each owner (`art`) beside one tree for all of them (`blink`).
//!
//! Three tables have the same rows: a key that ascends, and a number that is scattered over them. One has no index of
//! that number, each of the others has one of the two kinds. They are asked in turn, by fragments, so no SQL is in the
//! times. What the key leads to is the measure of what indexes could do.

use super::error::IndexBenchError;
use super::progress::Spinner;
use crate::report::{BenchReport, median};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, IndexKind, Partitioning, RowClient, Settings};
use eris_fragment::{BinaryOp, Executor, Expr, Fragment, Output, Scalar, ScanOptions, Type, Value};
use eris_types::{ColumnId, ObjectId};
use futures::StreamExt;
use futures::executor::block_on;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Rows of a batch that is loaded.
const LOADED: i64 = 50_000;
/// Rows of a range.
const RANGE: i64 = 100;
/// Fragments of a case and a run.
const ASKED: usize = 1000;
/// Rows that are put in, in a run, one at a time.
const PUT: usize = 2000;
/// There are as many numbers.
const NUMBERS: i64 = 1_000_000_007;

/// How rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Key,
    Art,
    Blink,
}

impl Way {
    const ALL: [Way; 3] = [Way::Key, Way::Art, Way::Blink];

    fn name(self) -> &'static str {
        match self {
            Way::Key => "key",
            Way::Art => "art",
            Way::Blink => "blink",
        }
    }

    fn kind(self) -> Option<IndexKind> {
        match self {
            Way::Key => None,
            Way::Art => Some(IndexKind::Ordered),
            Way::Blink => Some(IndexKind::Shared),
        }
    }
}

/// A table and the way to its rows.
struct Table {
    way: Way,
    object: ObjectId,
    rows: RowClient,
}

/// The number of a row, which looks as if it were random; another one each time that the row is put in.
fn number(key: i64, version: i64) -> i64 {
    (mixed((version << 40 | key) as u64) % NUMBERS as u64) as i64
}

/// SplitMix64: numbers that look as if they were random.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Times of a table with so many rows.
pub fn run(
    settings: &Settings,
    rows: u64,
    runs: usize,
    report: &mut BenchReport,
    progress: &Spinner,
) -> Result<(), IndexBenchError> {
    let rows = rows as i64;
    progress.begin(format!("{rows} rows with secondary indexes"));
    let engine = Engine::start(settings.clone())?;
    let mut tables = Vec::new();
    for way in Way::ALL {
        tables.push(load(&engine, way, rows)?);
    }
    build(&engine, &tables, rows, runs, report)?;
    for (case, span) in [("secondary lookup", 1), ("secondary range of 100", RANGE)] {
        progress.begin(format!("{case}, {rows} rows"));
        let mut times = vec![Vec::new(); tables.len()];
        for run in 0..runs {
            let asked = ask(&engine, &tables, rows, span, run as u64)?;
            times
                .iter_mut()
                .zip(asked)
                .for_each(|(times, took)| times.push(took));
        }
        for (table, times) in tables.iter().zip(times) {
            report.row(case, params(table, rows), "µs", times, None);
        }
    }
    upserts(&mut tables, rows, runs, report)
}

fn params(table: &Table, rows: i64) -> [(&'static str, serde_json::Value); 2] {
    [("by", json!(table.way.name())), ("keys", json!(rows))]
}

fn load(engine: &Engine, way: Way, rows: i64) -> Result<Table, IndexBenchError> {
    let field = |name| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![
        field("key"),
        field("number"),
        field("value"),
    ]));
    let by_size = Partitioning::Size;
    let object = engine.create_with_key(way.name(), schema.clone(), by_size, &[ColumnId(0)])?;
    let mut writer = engine.writer(object)?;
    for first in (0..rows).step_by(LOADED as usize) {
        let keys: Vec<i64> = (first..rows.min(first + LOADED)).collect();
        block_on(writer.append(batch(&schema, &keys, 0)))?;
    }
    block_on(writer.commit())?;
    let rows = engine.rows(object)?;
    Ok(Table { way, object, rows })
}

fn batch(schema: &SchemaRef, keys: &[i64], version: i64) -> RecordBatch {
    let numbers = keys.iter().map(|&key| number(key, version));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(keys.to_vec())),
        Arc::new(Int64Array::from_iter_values(numbers)),
        Arc::new(Int64Array::from(keys.to_vec())),
    ];
    RecordBatch::try_new(schema.clone(), columns).expect("columns of the schema")
}

/// Each index is made in each run; those of the last one stay.
fn build(
    engine: &Engine,
    tables: &[Table],
    rows: i64,
    runs: usize,
    report: &mut BenchReport,
) -> Result<(), IndexBenchError> {
    let mut rates = vec![Vec::new(); tables.len()];
    for run in 0..runs {
        for (table, rates) in tables.iter().zip(&mut rates) {
            let Some(kind) = table.way.kind() else {
                continue;
            };
            let begun = Instant::now();
            let index = engine.create_index(table.object, &[ColumnId(1)], kind, Arc::default());
            let index = block_on(index)?;
            rates.push(rows as f64 / begun.elapsed().as_secs_f64() / 1e6);
            if run + 1 < runs {
                engine.drop_index(table.object, index)?;
            }
        }
    }
    for (table, rates) in tables.iter().zip(rates) {
        let Some(index) = engine.indexes(table.object)?.pop() else {
            continue;
        };
        let each = index.bytes as f64 / rows as f64;
        report.row(
            "secondary build",
            params(table, rows),
            "million/s",
            rates,
            None,
        );
        report.row(
            "secondary memory",
            params(table, rows),
            "bytes/key",
            vec![each],
            None,
        );
    }
    Ok(())
}

/// Fragments that want so many rows, of all tables in turn: the median of each, in microseconds.
fn ask(
    engine: &Engine,
    tables: &[Table],
    rows: i64,
    span: i64,
    run: u64,
) -> Result<Vec<f64>, IndexBenchError> {
    let mut times = vec![Vec::new(); tables.len()];
    // So many numbers lie between the first and the last of a range.
    let width = (span - 1) * (NUMBERS / rows);
    for asked in 0..ASKED {
        let key = (mixed(run << 32 | asked as u64) % (rows - span + 1) as u64) as i64;
        for at in 0..tables.len() {
            let at = (at + asked) % tables.len();
            let table = &tables[at];
            let (column, low, high) = match table.way {
                Way::Key => (0, key, key + span - 1),
                Way::Art | Way::Blink => (1, number(key, 0), number(key, 0) + width),
            };
            let begun = Instant::now();
            let fragment = fragment(engine, table.object, column, low, high);
            let execution = engine.execute(Arc::new(fragment), 1)?;
            let found = block_on(async {
                let mut found = 0;
                for mut stream in execution.streams {
                    while let Some(batch) = stream.next().await {
                        found += batch?.num_rows();
                    }
                }
                Ok::<_, IndexBenchError>(found)
            })?;
            times[at].push(begun.elapsed().as_secs_f64() * 1e6);
            if found == 0 {
                return Err(IndexBenchError::WrongAnswer {
                    structure: table.way.name().to_owned(),
                    found: 0,
                    asked: span as u64,
                });
            }
        }
    }
    Ok(times.iter().map(|times| median(times)).collect())
}

/// The values of rows whose column is from `low` to `high`.
fn fragment(engine: &Engine, object: ObjectId, column: u32, low: i64, high: i64) -> Fragment {
    let compare = |op, number: i64| Expr::Binary {
        op,
        left: Box::new(Expr::Column(0)),
        right: Box::new(Expr::Literal(Scalar {
            data_type: Type::Int64,
            value: Value::Integer(number.into()),
        })),
    };
    let filter = match low == high {
        true => vec![compare(BinaryOp::Eq, low)],
        false => vec![compare(BinaryOp::GtEq, low), compare(BinaryOp::LtEq, high)],
    };
    Fragment {
        object,
        snapshot: engine.snapshot(),
        order: None,
        columns: vec![ColumnId(column), ColumnId(2)],
        filter,
        probes: Vec::new(),
        lookups: Vec::new(),
        output: Output::Rows {
            columns: vec![Expr::Column(1)],
            limit: None,
        },
        options: ScanOptions::default(),
    }
}

/// Rows get other numbers, one at a time.
fn upserts(
    tables: &mut [Table],
    rows: i64,
    runs: usize,
    report: &mut BenchReport,
) -> Result<(), IndexBenchError> {
    let field = |name| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![
        field("key"),
        field("number"),
        field("value"),
    ]));
    let mut rates = vec![Vec::new(); tables.len()];
    for run in 0..runs {
        for at in 0..tables.len() {
            let at = (at + run) % tables.len();
            let begun = Instant::now();
            for put in 0..PUT {
                let asked = mixed((run << 32 | put) as u64) % rows as u64;
                let row = batch(&schema, &[asked as i64], run as i64 + 1);
                block_on(tables[at].rows.put(row))?;
            }
            rates[at].push(PUT as f64 / begun.elapsed().as_secs_f64() / 1e3);
        }
    }
    for (table, rates) in tables.iter().zip(rates) {
        report.row(
            "secondary upsert",
            params(table, rows),
            "thousand/s",
            rates,
            None,
        );
    }
    Ok(())
}
