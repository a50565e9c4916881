//! What a key costs when a table is loaded: the same rows with and without one, in turns.
//!
//! `cargo run --release --workspace --example key_load -- [rows] [rounds]`. Rows are in memory before the clock starts, so nothing but
//! dealing, encoding, checking and committing is measured; where they come from a file, the difference is smaller.

use arrow_array::types::Date32Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, EngineError, Partitioning, Settings};
use eris_numa::{HugePages, Topology};
use eris_types::ColumnId;
use futures::executor::block_on;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows of a batch, as a reader of Parquet files hands them over.
const BATCH: usize = 65_536;

/// How the keys come.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    Ascending,
    Shuffled,
    Random,
    Text,
    Pair,
}

impl Keys {
    const ALL: [(Keys, &str); 5] = [
        (Keys::Ascending, "numbers, ascending"),
        (Keys::Shuffled, "numbers, shuffled"),
        (Keys::Random, "numbers, random"),
        (Keys::Text, "text, shuffled"),
        (Keys::Pair, "two columns, shuffled"),
    ];
}

/// A number without a pattern (splitmix64); no two are equal.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn schema(keys: Keys) -> SchemaRef {
    let key = match keys {
        Keys::Text => DataType::Utf8View,
        _ => DataType::Int64,
    };
    Arc::new(Schema::new(vec![
        Field::new("key", key, false),
        Field::new("part", DataType::Int32, false),
        Field::new("day", DataType::Date32, false),
        Field::new("price", DataType::Int64, false),
        Field::new("quantity", DataType::Int32, false),
        Field::new("mode", DataType::Utf8View, false),
    ]))
}

fn batch(keys: Keys, first: u64, rows: u64, all: u64) -> RecordBatch {
    const MODES: [&str; 7] = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"];
    // Odd and without a common divisor: a permutation of the numbers below `all`.
    let step = (0..)
        .map(|i| (all * 5 / 8) + i)
        .find(|step| gcd(*step, all) == 1)
        .expect("a prime");
    let shuffled = |row: u64| ((u128::from(row) * u128::from(step)) % u128::from(all)) as u64;
    let number = |row: u64| match keys {
        Keys::Ascending => row,
        Keys::Random => mix(row),
        _ => shuffled(row),
    };
    let range = || first..first + rows;
    let key: ArrayRef = match keys {
        Keys::Text => {
            let texts = range().map(|row| Some(format!("Customer#{:09}", number(row))));
            Arc::new(texts.collect::<StringViewArray>())
        }
        Keys::Pair => Arc::new(Int64Array::from_iter_values(
            range().map(|row| (number(row) / 7) as i64),
        )),
        _ => Arc::new(Int64Array::from_iter_values(
            range().map(|row| number(row) as i64),
        )),
    };
    let part = range().map(|row| match keys {
        Keys::Pair => (number(row) % 7) as i32,
        _ => (mix(row) % 200_000) as i32,
    });
    let columns: Vec<ArrayRef> = vec![
        key,
        Arc::new(Int32Array::from_iter_values(part)),
        Arc::new(PrimitiveArray::<Date32Type>::from_iter_values(
            range().map(|row| (8_000 + mix(row + 1) % 2_400) as i32),
        )),
        Arc::new(Int64Array::from_iter_values(
            range().map(|row| (mix(row + 2) % 10_000_000) as i64),
        )),
        Arc::new(Int32Array::from_iter_values(
            range().map(|row| (mix(row + 3) % 50) as i32),
        )),
        Arc::new(
            range()
                .map(|row| Some(MODES[(mix(row + 4) % 7) as usize]))
                .collect::<StringViewArray>(),
        ),
    ];
    RecordBatch::try_new(schema(keys), columns).expect("columns of the schema")
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn load(
    engine: &Engine,
    keys: Keys,
    keyed: bool,
    batches: &[RecordBatch],
) -> Result<Duration, EngineError> {
    let key: &[ColumnId] = match (keyed, keys) {
        (false, _) => &[],
        (true, Keys::Pair) => &[ColumnId(0), ColumnId(1)],
        (true, _) => &[ColumnId(0)],
    };
    let object = engine.create_with_key("t", schema(keys), Partitioning::Size, key)?;
    let begun = Instant::now();
    block_on(async {
        let mut writer = engine.writer(object)?;
        for batch in batches {
            writer.append(batch.clone()).await?;
        }
        writer.commit().await
    })?;
    let taken = begun.elapsed();
    block_on(engine.drop(object))?;
    Ok(taken)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments
        .next()
        .map_or(Ok(10_000_000), |rows| rows.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let only = arguments.next();
    let engine = Engine::start(Settings {
        topology: Topology::detect()?,
        huge_pages: HugePages::Auto,
        memory_limit: None,
    })?;
    println!(
        "{rows} rows, medians of {rounds} rounds in turns, {:?}",
        engine
    );
    println!(
        "{:<24}{:>12}{:>12}{:>8}",
        "keys", "without, ms", "with, ms", "ratio"
    );
    for (keys, name) in Keys::ALL {
        if only
            .as_ref()
            .is_some_and(|only| !name.contains(only.as_str()))
        {
            continue;
        }
        let batches = (0..rows).step_by(BATCH);
        let batches =
            batches.map(|first| batch(keys, first, (rows - first).min(BATCH as u64), rows));
        let batches: Vec<RecordBatch> = batches.collect();
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            without.push(load(&engine, keys, false, &batches)?);
            with.push(load(&engine, keys, true, &batches)?);
        }
        let (without, with) = (median(&mut without), median(&mut with));
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!(
            "{name:<24}{:>12}{:>12}{ratio:>8.2}",
            without.as_millis(),
            with.as_millis()
        );
    }
    Ok(())
}
