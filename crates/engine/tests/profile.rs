//! What planners are told of values: distinct ones, and what filters find in samples, beside what rows really have.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use arrow_array::{Array, Int64Array, RecordBatch, StringViewArray};
use common::{create, engine, insert, on_all_topologies, rows, schema};
use eris_engine::{DatabaseSettings, Engine, Partitioning, Settings};
use eris_fragment::{BinaryOp, Expr, Scalar, Type, Value};
use eris_home::{Home, ObjectDefinition, Samples};
use eris_numa::{HugePages, Topology};
use eris_types::ObjectId;
use futures::executor::block_on;
use std::path::Path;
use std::sync::Arc;

fn compare(op: BinaryOp, column: usize, data_type: Type, value: Value) -> Expr {
    Expr::Binary {
        op,
        left: Box::new(Expr::Column(column)),
        right: Box::new(Expr::Literal(Scalar { data_type, value })),
    }
}

fn less_than(id: i64) -> Expr {
    compare(BinaryOp::Lt, 0, Type::Int64, Value::Integer(id.into()))
}

fn named(name: &str) -> Expr {
    let value = Value::String(name.to_owned());
    compare(BinaryOp::Eq, 1, Type::String, value)
}

/// The share of the sample that passes.
fn share(engine: &Engine, object: ObjectId, filter: &[Expr]) -> Option<f64> {
    let found = Samples::find(engine, object, filter)?;
    assert!(found.passed <= found.rows);
    Some(found.passed as f64 / found.rows as f64)
}

fn distinct(engine: &Engine, object: ObjectId) -> Vec<Option<u64>> {
    let columns = engine.statistics(object).unwrap().columns;
    columns.iter().map(|column| column.distinct).collect()
}

/// About so many, by four standard deviations.
fn assert_near(count: Option<u64>, exact: u64) {
    let count = count.expect("values are counted");
    let error = (count as f64 - exact as f64).abs() / exact as f64;
    assert!(error < 0.13, "{count} of {exact}");
}

fn assert_share(share: Option<f64>, exact: f64) {
    let share = share.expect("there is a sample");
    assert!((share - exact).abs() < 0.05, "{share} of {exact}");
}

#[test]
fn an_empty_table_has_no_sample() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        assert_eq!(share(engine, object, &[less_than(5)]), None);
        assert_eq!(distinct(engine, object)[0], None);
        assert!(Samples::values(engine, object).unwrap().is_empty());
    });
}

#[test]
fn a_small_table_is_sampled_as_a_whole() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        insert(engine, object, rows(0, 40)).unwrap();
        let found = Samples::find(engine, object, &[less_than(10), named("name number 7")]);
        let found = found.unwrap();
        assert_eq!((found.rows, found.passed), (40, 1));
        assert_near(distinct(engine, object)[0], 40);
    });
}

#[test]
fn rows_are_counted_and_sampled_while_they_are_written() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        for part in 0..5 {
            insert(engine, object, rows(part * 60_000, 60_000)).unwrap();
        }
        assert_near(distinct(engine, object)[0], 300_000);
        // Of text it is the dictionary that counts.
        assert_eq!(distinct(engine, object)[1], Some(90));
        assert_share(share(engine, object, &[less_than(75_000)]), 0.25);
        assert_share(share(engine, object, &[less_than(-1)]), 0.0);
        let values = Samples::values(engine, object).unwrap();
        let ids = values[0].as_ref().unwrap();
        assert!((1000..=8192).contains(&ids.len()), "{}", ids.len());
        let names = values[1].as_ref().unwrap();
        assert!((0.05..0.15).contains(&(names.null_count() as f64 / ids.len() as f64)));
    });
}

/// Conditions that go together: a product of their shares would be a tenth of what is right.
#[test]
fn a_sample_knows_what_goes_together() {
    let engine = engine(1, 2);
    let object = create(&engine, Partitioning::Size);
    let count = 200_000;
    let ids = Int64Array::from_iter_values((0..count).map(|row| row % 10));
    let names = StringViewArray::from_iter_values((0..count).map(|row| format!("of {}", row % 10)));
    let batch = RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names)]).unwrap();
    insert(&engine, object, batch).unwrap();
    assert_eq!(distinct(&engine, object), [Some(10), Some(10)]);
    let both = [
        compare(BinaryOp::Eq, 0, Type::Int64, Value::Integer(3)),
        named("of 3"),
    ];
    assert_share(share(&engine, object, &both), 0.1);
}

/// Rows that are written one by one are looked at now and then, and all of them when somebody asks.
#[test]
fn single_rows() {
    on_all_topologies(|engine| {
        let object = create(engine, Partitioning::Size);
        for row in 0..700 {
            insert(engine, object, rows(row, 1)).unwrap();
        }
        let known = distinct(engine, object)[0].unwrap();
        assert!((300..800).contains(&known), "{known}");
        block_on(Engine::analyze(engine, object)).unwrap();
        assert_near(distinct(engine, object)[0], 700);
        let found = Samples::find(engine, object, &[less_than(70)]).unwrap();
        assert_eq!((found.rows, found.passed), (700, 70));
    });
}

#[test]
fn values_that_are_long_are_not_sampled() {
    let engine = engine(1, 1);
    let object = create(&engine, Partitioning::Size);
    let ids = Int64Array::from_iter_values(0..5000);
    let names = StringViewArray::from_iter_values((0..5000).map(|row| format!("{row:0>3000}")));
    let batch = RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names)]).unwrap();
    insert(&engine, object, batch).unwrap();
    assert_eq!(share(&engine, object, &[named("none")]), None);
    assert_share(share(&engine, object, &[less_than(500)]), 0.1);
    let values = Samples::values(&engine, object).unwrap();
    assert!(values[0].is_some() && values[1].is_none());
}

fn open(directory: &Path, nodes: u16, cores: u16) -> Engine {
    Engine::start(Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: Some(DatabaseSettings {
            directory: directory.to_owned(),
            synchronous: None,
            read_only: false,
        }),
    })
    .unwrap()
}

#[test]
fn a_profile_is_there_again_when_a_database_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let object;
    let before;
    {
        let engine = open(directory.path(), 1, 2);
        let definition = ObjectDefinition {
            name: "t".to_owned(),
            schema: schema(),
            partitioning: Partitioning::Size,
            key: Vec::new(),
            is_temporary: false,
        };
        object = block_on(Home::create(&engine, definition)).unwrap();
        insert(&engine, object, rows(0, 150_000)).unwrap();
        insert(&engine, object, rows(150_000, 300)).unwrap();
        before = distinct(&engine, object);
        let home: &dyn Home = &engine;
        block_on(home.durability().unwrap().checkpoint()).unwrap();
    }
    for (nodes, cores) in [(1, 2), (4, 2), (1, 1)] {
        let engine = open(directory.path(), nodes, cores);
        assert_near(distinct(&engine, object)[0], before[0].unwrap());
        assert_eq!(distinct(&engine, object)[1], before[1]);
        assert_share(share(&engine, object, &[less_than(15_000)]), 0.1);
    }
}
