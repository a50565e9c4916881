//! The first rows by an order: those that are left are enough, whichever worker met them, and hardly more.

mod common;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array};
use arrow_schema::{Field, Schema};
use common::table::{SNAPSHOT, Table, chunk};
use common::{Rng, rows_of, seeds};
use eris_exec::{Program, Work};
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId};
use std::cmp::Ordering;
use std::sync::Arc;

fn fragment(column: usize, order: Order, filter: Vec<Expr>) -> Fragment {
    Fragment {
        object: ObjectId(1),
        snapshot: SNAPSHOT,
        order: Some(order),
        columns: vec![ColumnId(column as u32), ColumnId(3)],
        filter,
        probes: vec![],
        lookups: vec![],
        output: Output::Rows {
            columns: vec![Expr::Column(0), Expr::Column(1)],
            limit: None,
        },
        options: ScanOptions::default(),
    }
}

/// The order of values, NULLs left out.
fn compare(own: &Value, other: &Value) -> Ordering {
    match (own, other) {
        (Value::Integer(own), Value::Integer(other)) => own.cmp(other),
        (Value::Boolean(own), Value::Boolean(other)) => own.cmp(other),
        (Value::String(own), Value::String(other)) => own.cmp(other),
        // Both zeros are equal.
        (Value::Float(own), Value::Float(other)) => (own + 0.0).total_cmp(&(other + 0.0)),
        other => panic!("{other:?}"),
    }
}

/// The first values by an order, as text.
fn first(mut values: Vec<Value>, order: &Order) -> Vec<String> {
    let key = &order.keys[0];
    values.sort_by(|own, other| match (own, other) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) if key.nulls_first => Ordering::Less,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) if key.nulls_first => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        _ if key.descending => compare(other, own),
        _ => compare(own, other),
    });
    values.truncate(order.rows as usize);
    let text = |value: Value| match value {
        Value::Float(value) => format!("{}", value + 0.0),
        other => format!("{other:?}"),
    };
    values.into_iter().map(text).collect()
}

#[test]
fn what_is_left_is_enough_whoever_met_it() {
    for seed in seeds(150) {
        let mut rng = Rng(seed);
        let table = Table::random(&mut rng);
        let column = rng.below(table.types.len());
        let order = Order {
            keys: vec![OrderKey {
                column: 0,
                descending: rng.one_in(2),
                nulls_first: rng.one_in(2),
            }],
            rows: *rng.pick(&[1, 2, 10, 100, 3000]),
        };
        let filter = match rng.one_in(2) {
            true => vec![Expr::IsNotNull(Box::new(Expr::Column(1)))],
            false => vec![],
        };
        let has_filter = !filter.is_empty();
        let fragment = fragment(column, order.clone(), filter);
        let program = Program::compile(&fragment, &table.schema, &table.dictionaries).unwrap();
        let mut workers = [program.start(), program.start()];
        let mut batches = Vec::new();
        for chunk in &table.chunks {
            let worker = &mut workers[rng.below(2)];
            let work = &mut Work::default();
            batches.extend(program.run(&chunk.view, worker, work).unwrap());
        }
        for worker in workers {
            let rest = program.finish(worker, 1).unwrap();
            batches.extend(rest.into_iter().map(|(_, batch)| batch));
        }
        let left = rows_of(&batches).into_iter().map(|row| row[0].clone());
        let chunks = table.chunks.iter();
        let rows = chunks.flat_map(|chunk| chunk.rows.iter().zip(&chunk.visible));
        let passing =
            rows.filter(|(row, visible)| **visible && !(has_filter && row[3] == Value::Null));
        let all: Vec<Value> = passing.map(|(row, _)| row[column].clone()).collect();
        assert_eq!(
            first(left.collect(), &order),
            first(all, &order),
            "seed {seed}, {order:?} of {:?}",
            table.types[column]
        );
    }
}

/// Rows of each chunk that go on if only the first three are wanted.
fn passed(chunks: &[ArrayRef], descending: bool, nulls_first: bool) -> Vec<u64> {
    let order = Order {
        keys: vec![OrderKey {
            column: 0,
            descending,
            nulls_first,
        }],
        rows: 3,
    };
    let mut fragment = fragment(0, order, vec![]);
    fragment.columns.truncate(1);
    fragment.output = Output::Rows {
        columns: vec![Expr::Column(0)],
        limit: None,
    };
    let schema = Schema::new(vec![Field::new("n", chunks[0].data_type().clone(), true)]);
    let program = Program::compile(&fragment, &schema, &[None]).unwrap();
    let mut partial = program.start();
    let rows = chunks.iter().map(|array| {
        let mut work = Work::default();
        let view = chunk(std::slice::from_ref(array), &[None]);
        program.run(&view, &mut partial, &mut work).unwrap();
        assert_eq!(work.chunks_skipped == 1, work.rows_scanned == 0);
        work.rows_passed
    });
    rows.collect()
}

#[test]
fn rows_and_chunks_that_come_too_late_are_left_out() {
    let numbers = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(2), None]));
    let chunks = [
        numbers(&[7, 3, 9, 1, 4, 8]),
        numbers(&[8, 2, 6, 5]),
        numbers(&[5, 9, 7]),
        nulls,
    ];
    assert_eq!(passed(&chunks, false, false), [3, 1, 0, 1]);
    assert_eq!(passed(&chunks, true, false), [3, 1, 1, 0]);
    // NULLs stay if they come first, and only they.
    assert_eq!(passed(&chunks, false, true), [3, 1, 0, 3]);
    assert_eq!(passed(&chunks, true, true), [3, 1, 1, 2]);
    let floats = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let chunks = [
        floats(&[1.0, -0.0, 2.5, 0.0, f64::NAN, 0.0]),
        floats(&[0.5, -0.0, 0.0]),
        floats(&[0.5, 2.0]),
    ];
    // None of the zeros comes first.
    assert_eq!(passed(&chunks, false, false), [3, 2, 0]);
    assert_eq!(passed(&chunks, true, true), [3, 0, 1]);
}
