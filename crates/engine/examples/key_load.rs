//! What a key costs when a table is loaded: the same rows with and without one, in turns.
//!
//! `cargo run --release --workspace --example key_load -- [rows] [rounds] [kind of keys]`. Rows are in memory before the clock starts,
//! so nothing but dealing, encoding, checking and committing is measured; where they come from a file, the ratio is smaller.
//!
//! Beside the time that passes stand what the processors do for it, which others that use the machine disturb less – of the
//! process and of the system, which brings memory – and how many megabytes of memory were new: minor faults, each of a page of
//! 4 KiB. (A huge page is one fault, too, so that megabytes of these are not seen there.) The program takes huge pages for all of its
//! memory; this comes near to it:
//!
//! `GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296`

use arrow_array::types::Date32Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, PrimitiveArray, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, Partitioning, Settings};
use eris_numa::{HugePages, Topology};
use eris_types::ColumnId;
use futures::executor::block_on;
use std::sync::Arc;
use std::time::Instant;

/// Rows of a batch, as a reader of Parquet files hands them over.
const BATCH: usize = 16_384;

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

/// What a load took, or the process so far.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// Milliseconds: of time, and of processors in the process and in the system for it.
    wall: f64,
    user: f64,
    system: f64,
    faults: f64,
}

impl Taken {
    /// Of the process so far, but for the time.
    fn now() -> std::io::Result<Taken> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        // Behind the command's name, which may have blanks: field 3 and those that follow.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<f64> = fields
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        // The kernel tells processor time in hundredths of a second.
        let of = |field: usize| fields.get(field - 3).copied().unwrap_or(0.0);
        Ok(Taken {
            wall: 0.0,
            user: of(14) * 10.0,
            system: of(15) * 10.0,
            faults: of(10),
        })
    }
}

fn load(
    engine: &Engine,
    keys: Keys,
    keyed: bool,
    batches: &[RecordBatch],
) -> Result<Taken, Box<dyn std::error::Error>> {
    let key: &[ColumnId] = match (keyed, keys) {
        (false, _) => &[],
        (true, Keys::Pair) => &[ColumnId(0), ColumnId(1)],
        (true, _) => &[ColumnId(0)],
    };
    let object = engine.create_with_key("t", schema(keys), Partitioning::Size, key)?;
    let before = Taken::now()?;
    let begun = Instant::now();
    block_on(async {
        let mut writer = engine.writer(object)?;
        for batch in batches {
            writer.append(batch.clone()).await?;
        }
        writer.commit().await
    })?;
    let wall = begun.elapsed().as_secs_f64() * 1e3;
    let after = Taken::now()?;
    block_on(engine.drop(object))?;
    Ok(Taken {
        wall,
        user: after.user - before.user,
        system: after.system - before.system,
        faults: after.faults - before.faults,
    })
}

fn median(taken: &[Taken], figure: impl Fn(&Taken) -> f64) -> f64 {
    let mut figures: Vec<f64> = taken.iter().map(figure).collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Of a figure that is counted in coarse steps.
fn mean(taken: &[Taken], figure: impl Fn(&Taken) -> f64) -> f64 {
    taken.iter().map(figure).sum::<f64>() / taken.len() as f64
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
        "{:<24}{:>10}{:>8}{:>8}{:>10}{:>8}",
        "milliseconds", "time", "user", "system", "new MB", "ratio"
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
        println!("{name}");
        let least = median(&without, |taken| taken.wall);
        for (name, taken) in [("  without a key", &without), ("  with a key", &with)] {
            let wall = median(taken, |taken| taken.wall);
            println!(
                "{name:<24}{wall:>10.0}{:>8.0}{:>8.0}{:>10.0}{:>8.2}",
                mean(taken, |taken| taken.user),
                mean(taken, |taken| taken.system),
                mean(taken, |taken| taken.faults) * 4096.0 / 1e6,
                wall / least,
            );
        }
    }
    Ok(())
}
