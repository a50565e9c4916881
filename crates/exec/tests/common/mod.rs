//! What the tests of whole programs share: random tables and expressions, a naive evaluator, and the way back from
//! batches to values.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod oracle;
pub mod random;
pub mod table;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use eris_exec::{Division, Partial, Program, Work};
use eris_fragment::{Fragment, FragmentError, Value};
use table::Table;

/// A small generator of random numbers (SplitMix64), so that a seed in a message is all that is needed to repeat a
/// case.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn range(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The seeds to try: `count` of them, or the one in `ERIS_SEED`.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("ERIS_SEED") {
        Ok(seed) => vec![seed.parse().expect("ERIS_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}

/// Runs a fragment over all chunks of a table with one worker.
pub fn run(fragment: &Fragment, table: &Table) -> Result<Vec<RecordBatch>, FragmentError> {
    run_counting(fragment, table, &mut Work::default())
}

pub fn run_counting(
    fragment: &Fragment,
    table: &Table,
    work: &mut Work,
) -> Result<Vec<RecordBatch>, FragmentError> {
    let program = Program::compile(fragment, &table.schema, &table.dictionaries)?;
    let mut partial = program.start();
    let mut batches = Vec::new();
    for chunk in &table.chunks {
        batches.extend(program.run(&chunk.view, &mut partial, work)?);
        while partial.is_midway() {
            batches.extend(program.go_on(&mut partial)?);
        }
    }
    batches.extend(finish(&program, partial)?);
    for batch in &batches {
        assert_eq!(&batch.schema(), program.output_schema());
    }
    Ok(batches)
}

/// Runs a fragment with several workers that repartition their groups to each other whenever it pleases `rng`. Each
/// group comes from one worker only, that to which all agree that it belongs, and once.
pub fn run_repartitioning(
    fragment: &Fragment,
    table: &Table,
    rng: &mut Rng,
) -> Result<Vec<RecordBatch>, FragmentError> {
    let program = Program::compile(fragment, &table.schema, &table.dictionaries)?;
    let division = Division {
        workers: 1 + rng.below(4) as u32,
        buckets: 1 + rng.below(20) as u32,
    };
    let mut workers = Vec::new();
    for _ in 0..division.workers {
        let mut partial = program.start();
        program.start_repartitioning(division, &mut partial);
        workers.push((partial, program.merger(division)));
    }
    for chunk in &table.chunks {
        let worker = rng.below(workers.len());
        let partial = &mut workers[worker].0;
        let batches = program.run(&chunk.view, partial, &mut Work::default())?;
        assert!(batches.is_empty(), "groups come in the end");
        let mut repartitioned = program.take_repartitioned(partial);
        if rng.one_in(3) {
            repartitioned.extend(program.repartition(division, partial));
        }
        for (to, groups) in repartitioned {
            assert!(!groups.is_empty() && groups.bytes() > 0);
            workers[to as usize].1.push(groups);
        }
        let merger = &mut workers[rng.below(division.workers as usize)].1;
        if rng.one_in(3) && !merger.is_in_round() && merger.pending_bytes() > 0 {
            merger.begin_round();
        }
        for _ in 0..rng.below(30) {
            if merger.is_in_round() {
                program.merge_next(merger)?;
            }
        }
    }
    let mut all = Vec::new();
    let mut mergers = Vec::new();
    for (mut partial, merger) in workers {
        mergers.push(merger);
        all.extend(program.repartition(division, &mut partial));
    }
    for (to, groups) in all {
        mergers[to as usize].push(groups);
    }
    let mut batches = Vec::new();
    for mut merger in mergers {
        loop {
            let taken = program.take_merged(&mut merger)?;
            if taken.is_empty() {
                break;
            }
            batches.extend(taken);
        }
        assert!(merger.is_empty() && merger.bytes() == 0);
    }
    Ok(batches)
}

/// The rest of what one worker has.
pub fn finish(program: &Program, partial: Partial) -> Result<Vec<RecordBatch>, FragmentError> {
    let batches = program.finish(partial, 1)?.into_iter();
    Ok(batches.map(|(_, batch)| batch).collect())
}

/// The rows of batches.
pub fn rows_of(batches: &[RecordBatch]) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter();
            rows.push(columns.map(|column| value(column, row)).collect());
        }
    }
    rows
}

/// One value of an array.
pub fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! integer {
        ($kind:ty) => {
            Value::Integer(array.as_primitive::<$kind>().value(row) as i128)
        };
    }
    match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Date32 => integer!(Date32Type),
        DataType::Timestamp(TimeUnit::Second, _) => integer!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => integer!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => integer!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => integer!(TimestampNanosecondType),
        DataType::Decimal128(..) => integer!(Decimal128Type),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row) as f64),
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8View => Value::String(array.as_string_view().value(row).to_owned()),
        other => panic!("{other} in an output"),
    }
}

/// Whether two values are the same, all NaNs being one.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => {
            left == right || left.is_nan() && right.is_nan()
        }
        _ => left == right,
    }
}
