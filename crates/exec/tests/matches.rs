//! Lookups whose keys occur many times: chunks that take more than one step, and what is counted without being made.

mod common;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{Field, Schema};
use common::rows_of;
use common::table::{SNAPSHOT, chunk};
use eris_exec::{Program, Work};
use eris_fragment::{
    Aggregate, AggregateFunction, Expr, Fragment, FragmentError, Lookup, Output, ScanOptions, Type,
    Value,
};
use eris_types::{ColumnId, ObjectId};
use std::sync::Arc;

const ROWS: i64 = 5_000;

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// A relation with keys 0 to 9, of which `key` is there `key * times + 1` times, and the places of its rows as texts.
fn relation(times: i64) -> RecordBatch {
    let keys = (0..10).flat_map(|key| std::iter::repeat_n(key, (key * times + 1) as usize));
    // Not side by side.
    let mut keys: Vec<i64> = keys.collect();
    let len = keys.len();
    keys = (0..len).map(|at| keys[at * 7_919 % len]).collect();
    let texts: StringViewArray = (0..len).map(|at| Some(format!("row {at}"))).collect();
    let columns: [(&str, ArrayRef); 2] = [("key", numbers(keys)), ("text", Arc::new(texts))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Rows with two columns: their number, and this modulo 20, by which relations are joined.
fn fragment(lookups: &[RecordBatch], output: Output) -> Fragment {
    Fragment {
        object: ObjectId(1),
        snapshot: SNAPSHOT,
        order: None,
        columns: vec![ColumnId(0), ColumnId(1)],
        filter: vec![],
        probes: vec![],
        lookups: (lookups.iter().cloned().map(|rows| Lookup::new(1, rows))).collect(),
        output,
        options: ScanOptions::default(),
    }
}

struct Ran {
    rows: Vec<Vec<Value>>,
    turns: usize,
    /// Rows that the output phase met, and that it put out.
    output: (u64, u64),
}

fn run(fragment: &Fragment) -> Result<Ran, FragmentError> {
    let arrays = [numbers(0..ROWS), numbers((0..ROWS).map(|row| row % 20))];
    let fields = arrays
        .iter()
        .map(|array| Field::new("n", array.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let view = chunk(&arrays, &[None, None]);
    let program = Program::compile(fragment, &schema, &[None, None])?;
    let mut partial = program.start();
    let mut batches = program.run(&view, &mut partial, &mut Work::default())?;
    let mut turns = 1;
    while partial.is_midway() {
        batches.extend(program.go_on(&mut partial)?);
        turns += 1;
    }
    let output = *partial.phases().0.last().unwrap();
    let rest = program.finish(partial, 1)?;
    batches.extend(rest.into_iter().map(|(_, batch)| batch));
    Ok(Ran {
        rows: rows_of(&batches),
        turns,
        output: (output.rows_in, output.rows_out),
    })
}

fn integer(value: &Value) -> i128 {
    match value {
        Value::Integer(value) => *value,
        other => panic!("{other:?}"),
    }
}

/// Per row that finds a match, how many it has in a relation.
fn matches(times: i64) -> impl Iterator<Item = (i64, i64)> {
    let rows = (0..ROWS).map(|row| (row, row % 20));
    let found = rows.filter(|&(_, key)| key < 10);
    found.map(move |(row, key)| (row, key * times + 1))
}

#[test]
fn a_chunk_with_very_many_matches_takes_several_turns() {
    let columns = vec![Expr::Column(0), Expr::Column(2)];
    let rows = Output::Rows {
        columns,
        limit: None,
    };
    let ran = run(&fragment(&[relation(40)], rows)).unwrap();
    let expected: i64 = matches(40).map(|(_, count)| count).sum();
    assert_eq!(ran.rows.len() as i64, expected);
    assert_eq!(ran.output, (2_500, expected as u64));
    assert!(
        ran.turns as i64 >= expected / 200_000,
        "{} turns",
        ran.turns
    );
    let mut counts = vec![0; ROWS as usize];
    ran.rows
        .iter()
        .for_each(|row| counts[integer(&row[0]) as usize] += 1);
    for (row, count) in matches(40) {
        assert_eq!(counts[row as usize], count, "row {row}");
    }
    let mut seen: Vec<String> = ran.rows.iter().map(|row| format!("{row:?}")).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len() as i64, expected, "each pair once");
}

#[test]
fn groups_and_sums_are_those_of_all_pairs() {
    let aggregate = |function, input| Aggregate {
        function,
        input,
        filter: None,
        state: Type::Int64,
    };
    let output = Output::Groups {
        keys: vec![Expr::Column(1)],
        aggregates: vec![
            aggregate(AggregateFunction::Count, None),
            aggregate(AggregateFunction::Sum, Some(Expr::Column(0))),
        ],
    };
    let ran = run(&fragment(&[relation(9), relation(4)], output)).unwrap();
    assert!(ran.turns > 5, "{} turns", ran.turns);
    let mut expected = [(0, 0); 10];
    for ((row, one), (_, other)) in matches(9).zip(matches(4)) {
        let (count, sum) = &mut expected[(row % 20) as usize];
        *count += one * other;
        *sum += row * one * other;
    }
    assert_eq!(ran.rows.len(), 10);
    for row in ran.rows {
        let (count, sum) = expected[integer(&row[0]) as usize];
        assert_eq!(
            (integer(&row[1]), integer(&row[2])),
            (count.into(), sum.into())
        );
    }
}

#[test]
fn rows_that_are_only_counted_are_not_made() {
    let count = || Output::Groups {
        keys: vec![],
        aggregates: vec![Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        }],
    };
    let relations = [relation(400), relation(300), relation(500)];
    let ran = run(&fragment(&relations, count())).unwrap();
    let expected: i64 = matches(400)
        .zip(matches(300))
        .zip(matches(500))
        .map(|((one, two), three)| one.1 * two.1 * three.1)
        .sum();
    assert_eq!(ran.turns, 1);
    assert_eq!(integer(&ran.rows[0][0]), i128::from(expected));
    // More than anything can count.
    let relations: Vec<RecordBatch> = (0..6).map(|_| relation(1_000)).collect();
    let failed = run(&fragment(&relations, count())).map(|ran| ran.rows);
    assert!(
        matches!(failed, Err(FragmentError::Overflow { .. })),
        "{failed:?}"
    );
}

#[test]
fn a_limit_ends_the_pairs_of_a_row() {
    for limit in [0, 1, 7, 8_191, 8_192, 70_000, 140_001] {
        let output = Output::Rows {
            columns: vec![Expr::Column(0), Expr::Column(2)],
            limit: Some(limit),
        };
        let ran = run(&fragment(&[relation(40)], output)).unwrap();
        assert_eq!(ran.rows.len() as u64, limit);
        let mut seen: Vec<String> = ran.rows.iter().map(|row| format!("{row:?}")).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u64, limit, "each pair once");
    }
}
