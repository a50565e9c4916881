//! Rows of a fragment that are written where they are found.
#![allow(missing_docs)]

mod common;

use arrow_array::{Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use common::*;
use eris_engine::{Engine, EngineError, Partitioning};
use eris_fragment::*;
use eris_types::{ColumnId, NodeId, ObjectId};
use futures::FutureExt;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: usize = 700_000;

/// The columns of [`schema`], NULL allowed everywhere.
fn target() -> SchemaRef {
    let fields = schema().fields().iter().cloned().collect::<Vec<_>>();
    let fields = fields
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn append(engine: &Engine, to: ObjectId, fragment: &Fragment) -> Result<Option<u64>, EngineError> {
    let mut writer = engine.writer(to)?;
    let rows = match writer.append_from(fragment)? {
        Some(appending) => block_on(appending.done)?,
        None => return Ok(None),
    };
    assert_eq!(block_on(writer.commit())?, rows);
    Ok(Some(rows))
}

/// Rows by node.
fn by_node(engine: &Engine, object: ObjectId) -> BTreeMap<NodeId, u64> {
    let mut rows = BTreeMap::new();
    for partition in engine.partitions(object).unwrap() {
        *rows.entry(partition.node).or_default() += partition.rows;
    }
    rows
}

fn number(value: i64) -> Expr {
    Expr::Literal(Scalar {
        data_type: Type::Int64,
        value: Value::Integer(value.into()),
    })
}

/// `id < bound`
fn below(bound: i64) -> Expr {
    Expr::Binary {
        op: BinaryOp::Lt,
        left: Box::new(Expr::Column(0)),
        right: Box::new(number(bound)),
    }
}

#[test]
fn rows_stay_on_the_node_where_they_were_found() {
    on_all_topologies(|engine| {
        let from = create(engine, Partitioning::Range(ColumnId(0)));
        // All that comes behind the first rows is the last AEU's.
        insert(engine, from, rows(0, 100_000)).unwrap();
        insert(engine, from, rows(100_000, ROWS - 100_000)).unwrap();
        let to = (engine.create("t", target(), Partitioning::Size)).unwrap();
        let mut fragment = fragment(engine, from, all_rows());
        fragment.options.strategy = NumaStrategy::Push;
        assert_eq!(append(engine, to, &fragment).unwrap(), Some(ROWS as u64));
        assert_eq!(by_node(engine, to), by_node(engine, from));
        assert_eq!(
            count_sum(engine, to).unwrap(),
            count_sum(engine, from).unwrap()
        );
        // Of few rows, and of a table that is made of its own.
        let few = Fragment {
            filter: vec![below(1_000)],
            ..fragment
        };
        assert_eq!(append(engine, to, &few).unwrap(), Some(1_000));
        let of_itself = Fragment {
            snapshot: engine.snapshot(),
            object: to,
            ..few
        };
        assert_eq!(append(engine, to, &of_itself).unwrap(), Some(2_000));
        let (count, _) = count_sum(engine, to).unwrap();
        assert_eq!(count, ROWS as i64 + 3_000);
        // The strings are those of the source.
        let names = |object| {
            let output = Output::Groups {
                keys: vec![Expr::Column(1)],
                aggregates: Vec::new(),
            };
            let batches = collect(engine, common::fragment(engine, object, output), 1).unwrap();
            let names = batches.iter().flat_map(|batch| {
                let column = batch.column(0).as_any().downcast_ref::<StringViewArray>();
                let column = column.unwrap();
                column
                    .iter()
                    .map(|name| name.map(str::to_owned))
                    .collect::<Vec<_>>()
            });
            names.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(names(to), names(from));
    });
}

#[test]
fn what_has_to_be_looked_at_is_sent() {
    let engine = &engine(2, 2);
    let from = create(engine, Partitioning::Size);
    insert(engine, from, rows(0, ROWS)).unwrap();
    let all = fragment(engine, from, all_rows());
    let mut limited = all.clone();
    limited.output = Output::Rows {
        columns: vec![Expr::Column(0), Expr::Column(1)],
        limit: Some(5),
    };
    let mut narrow = all.clone();
    narrow.output = Output::Rows {
        columns: vec![Expr::Column(0)],
        limit: None,
    };
    let to = (engine.create("t", target(), Partitioning::Size)).unwrap();
    for fragment in [&limited, &narrow] {
        assert_eq!(append(engine, to, fragment).unwrap(), None);
    }
    let keyed = engine.create_with_key("k", schema(), Partitioning::Size, &[ColumnId(0)]);
    let ranged = engine.create("r", target(), Partitioning::Range(ColumnId(0)));
    for to in [keyed.unwrap(), ranged.unwrap()] {
        assert_eq!(append(engine, to, &all).unwrap(), None);
    }
    let small = create(engine, Partitioning::Size);
    insert(engine, small, rows(0, 10)).unwrap();
    let few = fragment(engine, small, all_rows());
    assert_eq!(append(engine, to, &few).unwrap(), None);
    assert_eq!(count_sum(engine, to).unwrap().0, 0);
}

#[test]
fn a_null_where_none_is_allowed_fails_the_statement() {
    let engine = &engine(1, 2);
    let from = create(engine, Partitioning::Size);
    insert(engine, from, rows(0, ROWS)).unwrap();
    let fields = ["id", "name"].map(|name| {
        let old = schema();
        let field = old.field_with_name(name).unwrap();
        Field::new(name, field.data_type().clone(), false)
    });
    let strict = Arc::new(Schema::new(fields.to_vec()));
    let to = engine.create("t", strict, Partitioning::Size).unwrap();
    let all = fragment(engine, from, all_rows());
    let error = append(engine, to, &all).unwrap_err();
    assert!(matches!(error, EngineError::Null { .. }), "{error}");
    assert_eq!(count_sum(engine, to).unwrap().0, 0);
}

#[test]
fn without_memory_it_fails_alone_and_leaves_nothing() {
    on_all_topologies(|engine| {
        let from = create(engine, Partitioning::Size);
        insert(engine, from, rows(0, ROWS)).unwrap();
        let to = (engine.create("t", target(), Partitioning::Size)).unwrap();
        let budget = engine.memory().budget();
        let (ample, used) = (budget.limit(), budget.used());
        let all = fragment(engine, from, all_rows());
        for room in [0, 64 << 10, 256 << 10] {
            budget.set_limit(used + room);
            let error = append(engine, to, &all).unwrap_err();
            assert!(matches!(error, EngineError::OutOfMemory { .. }), "{error}");
            block_on(engine.barrier()).unwrap();
        }
        budget.set_limit(ample);
        // Their Abort comes before.
        assert_eq!(append(engine, to, &all).unwrap(), Some(ROWS as u64));
        assert_eq!(count_sum(engine, to).unwrap().0, ROWS as i64);
        block_on(engine.drop(to)).unwrap();
        assert_eq!(budget.used(), used);
    });
}

#[test]
fn a_statement_that_is_given_up_leaves_nothing() {
    let engine = &engine(2, 2);
    let from = create(engine, Partitioning::Size);
    insert(engine, from, rows(0, ROWS)).unwrap();
    let to = (engine.create("t", target(), Partitioning::Size)).unwrap();
    let all = fragment(engine, from, all_rows());
    let used = engine.memory().budget().used();
    for polls in [0, 1, 50, 5_000] {
        let mut writer = engine.writer(to).unwrap();
        let mut appending = writer.append_from(&all).unwrap().unwrap();
        for _ in 0..polls {
            if (&mut appending.done).now_or_never().is_some() {
                break;
            }
            std::thread::yield_now();
        }
    }
    // A statement whose rows are not all there cannot go on.
    let mut writer = engine.writer(to).unwrap();
    drop(writer.append_from(&all).unwrap());
    let error = block_on(writer.append(rows(0, 1))).unwrap_err();
    assert!(
        matches!(error, EngineError::Fragment(FragmentError::Cancelled)),
        "{error}"
    );
    assert!(block_on(writer.commit()).is_err());
    assert_eq!(count_sum(engine, to).unwrap().0, 0);
    assert_eq!(append(engine, to, &all).unwrap(), Some(ROWS as u64));
    block_on(engine.drop(to)).unwrap();
    assert_eq!(engine.memory().budget().used(), used);
}

#[test]
fn a_failure_of_an_expression_is_the_fragments() {
    let engine = &engine(1, 2);
    let from = create(engine, Partitioning::Size);
    insert(engine, from, rows(0, ROWS)).unwrap();
    let to = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    let to = engine
        .create("t", Arc::new(to), Partitioning::Size)
        .unwrap();
    let sum = Expr::Binary {
        op: BinaryOp::Add,
        left: Box::new(Expr::Column(0)),
        right: Box::new(number(i64::MAX)),
    };
    let output = Output::Rows {
        columns: vec![sum],
        limit: None,
    };
    let error = append(engine, to, &fragment(engine, from, output)).unwrap_err();
    assert!(
        matches!(error, EngineError::Fragment(FragmentError::Overflow { .. })),
        "{error}"
    );
    let ids = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1])) as _)]);
    insert(engine, to, ids.unwrap()).unwrap();
}
