//! Short statements take no lock, in the client or at the owner: a simulation has both in one thread, which counts.

use super::simulated::Simulated;
use crate::{Becomes, Compute, IndexKind, Partitioning};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::Faults;
use eris_atomics::acquisitions;
use eris_fragment::{
    Aggregate, AggregateFunction, BinaryOp, Executor, Expr, Fragment, Output, Scalar, ScanOptions,
    Type, Value,
};
use eris_numa::Topology;
use eris_types::{AeuId, ColumnId, ObjectId};
use futures::StreamExt;
use std::sync::Arc;

/// Rows of the table, and operations of each kind.
const ROWS: i64 = 1_000;
const OPERATIONS: i64 = 3_000;

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("k"), field("v")]))
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn rows(keys: std::ops::Range<i64>, value: i64) -> RecordBatch {
    let columns = vec![column(keys.clone()), column(keys.map(|_| value))];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// Adds 1 to the value.
#[derive(Debug)]
struct Increment(i64);

impl Compute for Increment {
    fn reads(&self) -> &[ColumnId] {
        &[ColumnId(1)]
    }

    fn may_add(&self) -> bool {
        false
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        let value = row.expect("it is there")[0]
            .as_primitive::<Int64Type>()
            .value(0);
        Becomes::Row(rows(self.0..self.0 + 1, value + 1))
    }
}

#[test]
fn short_statements_take_no_lock() {
    let mut simulated = Simulated::new(1, Topology::fake(2, 2), Faults::default());
    let engine = simulated.engine.clone();
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.unwrap();
    simulated.client(async move {
        engine
            .rows(object)
            .unwrap()
            .put(rows(0..ROWS, 0))
            .await
            .unwrap();
        for kind in ["get", "put", "insert", "compute", "remove", "hold"] {
            let (mut taken, mut free) = (0, 0);
            for operation in 0..OPERATIONS {
                let before = acquisitions();
                let any = operation * 7 % ROWS;
                let next = ROWS + operation;
                // A session from the pool for each statement, as SQL takes it.
                let mut client = engine.rows(object).unwrap();
                match kind {
                    "get" => {
                        let found = client.get(&[column([any])], &[ColumnId(1)]).await.unwrap();
                        assert_eq!(found.of, [0]);
                    }
                    "put" => assert_eq!(client.put(rows(any..any + 1, 7)).await.unwrap(), 1),
                    "insert" => assert!(client.insert(rows(next..next + 1, 0)).await.unwrap()),
                    "compute" => {
                        let increment = Arc::new(Increment(any));
                        client.compute(&[column([any])], increment).await.unwrap();
                    }
                    "remove" => assert_eq!(client.remove(&[column([next])]).await.unwrap(), 1),
                    _ => drop(engine.hold()),
                }
                drop(client);
                let count = acquisitions() - before;
                taken += count;
                free += i64::from(count == 0);
            }
            println!("{kind}: {taken} locks in {OPERATIONS} operations, {free} without any");
            // A collection of garbage is due once in a thousand deleted rows, and ranges of ascending keys are looked
            // at again once in some hundred rows.
            assert!(
                free >= OPERATIONS * 99 / 100,
                "{kind}: only {free} took no lock"
            );
            if kind == "get" || kind == "hold" {
                assert_eq!(taken, 0);
            }
        }
    });
    simulated.run();
    simulated.drop_object(object);
    simulated.end();
}

/// Rows whose column equals or exceeds a number: all columns of them, or how many there are.
fn fragment(
    engine: &crate::Engine,
    object: ObjectId,
    (column, op, number): (u32, BinaryOp, i64),
    is_counted: bool,
) -> Arc<Fragment> {
    let literal = Scalar {
        data_type: Type::Int64,
        value: Value::Integer(number.into()),
    };
    let count = Aggregate {
        function: AggregateFunction::Count,
        input: None,
        filter: None,
        state: Type::Int64,
    };
    Arc::new(Fragment {
        object,
        snapshot: engine.snapshot(),
        order: None,
        columns: (0..4).map(ColumnId).collect(),
        filter: vec![Expr::Binary {
            op,
            left: Box::new(Expr::Column(column as usize)),
            right: Box::new(Expr::Literal(literal)),
        }],
        probes: Vec::new(),
        lookups: Vec::new(),
        output: match is_counted {
            true => Output::Groups {
                keys: Vec::new(),
                aggregates: vec![count],
            },
            false => Output::Rows {
                columns: (0..4).map(Expr::Column).collect(),
                limit: None,
            },
        },
        options: ScanOptions::default(),
    })
}

/// A scan of all owners, the row of a key, and rows that a secondary index leads to: none takes a lock, neither for the
/// participants, nor for dictionaries, indexes and reports.
#[test]
fn short_fragments_take_no_lock() {
    let mut simulated = Simulated::new(1, Topology::fake(4, 2), Faults::default());
    let engine = simulated.engine.clone();
    let field = |name, data_type| Field::new(name, data_type, false);
    let schema = Arc::new(Schema::new(vec![
        field("k", DataType::Int64),
        field("v", DataType::Int64),
        field("t", DataType::Utf8View),
        field("w", DataType::Int64),
    ]));
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema.clone(), Partitioning::Size, &key);
    let object = object.unwrap();
    simulated.client(async move {
        let texts = StringViewArray::from_iter_values((0..ROWS).map(|row| format!("{}", row % 9)));
        let columns = vec![column(0..ROWS), column((0..ROWS).map(|row| row % 100))];
        let more = column((0..ROWS).map(|row| row % 100));
        let columns = [columns, vec![Arc::new(texts), more]].concat();
        let batch = RecordBatch::try_new(schema, columns).unwrap();
        let mut writer = engine.writer(object).unwrap();
        writer.append(batch).await.unwrap();
        writer.commit().await.unwrap();
        for (column, kind) in [(1, IndexKind::Ordered), (3, IndexKind::Shared)] {
            let columns = [ColumnId(column)];
            let indexed = engine.create_index(object, &columns, kind, Arc::default());
            indexed.await.unwrap();
        }
        let owners = engine.object(object).unwrap().holders().count();
        assert_eq!(owners, 8, "all have rows");
        for (kind, condition, rows) in [
            ("count", (0, BinaryOp::GtEq, 10), ROWS - 10),
            ("scan", (0, BinaryOp::GtEq, ROWS - 3), 3),
            ("key", (0, BinaryOp::Eq, 17), 1),
            ("index", (1, BinaryOp::Eq, 42), 10),
            ("index of all owners", (3, BinaryOp::Eq, 42), 10),
        ] {
            let mut taken = 0;
            for _ in 0..300 {
                let before = acquisitions();
                let wanted = fragment(&engine, object, condition, kind == "count");
                let mut execution = engine.execute(wanted, 2).unwrap();
                let mut found = 0;
                for stream in &mut execution.streams {
                    while let Some(batch) = stream.next().await {
                        let batch = batch.unwrap();
                        found += match kind {
                            "count" => batch.column(0).as_primitive::<Int64Type>().value(0),
                            _ => batch.num_rows() as i64,
                        };
                    }
                }
                let report = (execution.report)();
                drop(execution);
                taken += acquisitions() - before;
                assert_eq!(found, rows, "{kind}");
                let passed: u64 = report.workers.iter().map(|worker| worker.rows_passed).sum();
                assert_eq!(passed, rows as u64, "{kind}: {report:?}");
                assert!(
                    report
                        .workers
                        .iter()
                        .all(|worker| !worker.phases.is_empty())
                );
            }
            println!("{kind}: {taken} locks in 300 fragments");
            assert_eq!(taken, 0, "{kind}");
        }
    });
    simulated.run();
    simulated.drop_object(object);
    simulated.end();
}

/// The published partition table follows what owners hold: nobody before the first row, everybody with rows, and not
/// who has given all of them away once its deleted rows are collected.
#[test]
fn whoever_has_rows_takes_part() {
    let mut simulated = Simulated::new(3, Topology::fake(4, 2), Faults::default());
    let engine = simulated.engine.clone();
    let object = engine.create("t", schema(), Partitioning::Size).unwrap();
    simulated.client(async move {
        let known = engine.object(object).unwrap();
        let holders = || known.holders().map(|(aeu, _)| aeu).collect::<Vec<_>>();
        assert_eq!(holders(), []);
        let participants = |engine: &crate::Engine| -> Vec<u32> {
            let wanted = Arc::new(Fragment {
                columns: vec![ColumnId(0)],
                output: Output::Rows {
                    columns: vec![Expr::Column(0)],
                    limit: None,
                },
                ..Fragment::clone(&fragment(engine, object, (0, BinaryOp::GtEq, 0), false))
            });
            let execution = engine.execute(wanted, 1).unwrap();
            let workers = (execution.report)().workers;
            workers.iter().map(|worker| worker.worker).collect()
        };
        assert_eq!(
            participants(&engine),
            [0],
            "somebody says that there is nothing"
        );
        let mut writer = engine.writer(object).unwrap();
        writer.append(rows(0..ROWS, 1)).await.unwrap();
        writer.commit().await.unwrap();
        let first = holders();
        assert!(!first.is_empty());
        let all: Vec<u32> = first.iter().map(|aeu| aeu.0.into()).collect();
        assert_eq!(participants(&engine), all);
        let (from, to) = (first[0], AeuId(7));
        engine.move_rows(object, from, to, u64::MAX).await.unwrap();
        assert!(holders().contains(&to));
        engine.barrier().await.unwrap();
        assert_eq!(
            known.total_rows(),
            holders()
                .iter()
                .map(|aeu| known.partition_rows(*aeu))
                .sum::<u64>()
        );
    });
    simulated.run();
    simulated.drop_object(object);
    simulated.end();
}
