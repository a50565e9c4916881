//! How fast chunks are encoded, filtered and gathered on this machine, one thread: `cargo run --release --example
//! encode`. Over chunks that together exceed the caches; beside them what copying the same bytes costs.

use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array,
    Int64Array, StringViewArray, types::Int32Type,
};
use arrow_schema::DataType;
use eris_column::{CHUNK_ROWS, ColumnChunk, ColumnPredicate, Dictionary, ObjectMemory, Selection};
use eris_kernels::Isa;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const CHUNKS: usize = 64;

/// Nanoseconds that this thread has run, so that time given to other processes does not count; where the system does
/// not tell, nanoseconds that have passed.
fn clock(start: Instant) -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = statistics.and_then(|text| text.split(' ').next()?.parse().ok());
    ran.unwrap_or_else(|| start.elapsed().as_nanos() as f64)
}

/// Nanoseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    let before = clock(start);
    work();
    clock(start) - before
}

/// Nanoseconds per row of rounds that together run for a while, as the clock moves in steps of milliseconds.
fn measure(mut round: impl FnMut()) -> f64 {
    round();
    let (mut rounds, mut more, mut nanoseconds) = (0, 1, 0.0);
    while nanoseconds < 150e6 {
        nanoseconds += timed(|| (0..more).for_each(|_| round()));
        rounds += more;
        more *= 2;
    }
    nanoseconds / (rounds * CHUNKS * CHUNK_ROWS) as f64
}

fn number(row: usize) -> usize {
    (row as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(31) as usize
}

fn main() {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, None).expect("memory");
    let node = memory.node(NodeId(0));
    let home = ObjectMemory {
        memory: &node,
        object: ObjectId(1),
    };
    let isa = Isa::best();
    println!(
        "{} chunks of {CHUNK_ROWS} rows, {}, one thread",
        CHUNKS,
        isa.name()
    );
    println!(
        "{:28} {:>15} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "ns/row, but GB/s encoded",
        "encoding",
        "encode",
        "GB/s",
        "copy",
        "filter",
        "count",
        "gather",
        "1 %"
    );

    let rows = || 0..CHUNK_ROWS;
    let words: Vec<String> = (0..250).map(|code| format!("SHIP MODE {code}")).collect();
    let names: Vec<String> = (0..300_000)
        .map(|code| format!("Customer#{code:09}"))
        .collect();
    let noise: Vec<String> = (0..300_000)
        .map(|at| {
            (0..20)
                .map(|byte| char::from(b'!' + (number(at * 32 + byte) % 90) as u8))
                .collect()
        })
        .collect();
    let small = Dictionary::new().extend(words.iter().map(String::as_str));
    let large = Dictionary::new().extend(names.iter().map(String::as_str));
    let text = |strings: &[String]| -> StringViewArray {
        rows()
            .map(|row| Some(strings[number(row) % strings.len()].as_str()))
            .collect()
    };
    let coded: DictionaryArray<Int32Type> = rows()
        .map(|row| words[number(row) % words.len()].as_str())
        .collect();
    let cases: Vec<(&str, ArrayRef, Option<&Dictionary>)> = vec![
        (
            "i32, 6 bits",
            Arc::new(Int32Array::from_iter_values(
                rows().map(|r| (number(r) % 50) as i32),
            )),
            None,
        ),
        (
            "i32, 16 bits",
            Arc::new(Int32Array::from_iter_values(
                rows().map(|r| (number(r) % 60_000) as i32),
            )),
            None,
        ),
        (
            "i32, 1 % NULL",
            Arc::new(
                rows()
                    .map(|r| (r % 100 > 0).then_some((number(r) % 60_000) as i32))
                    .collect::<Int32Array>(),
            ),
            None,
        ),
        (
            "i64, 33 bits",
            Arc::new(Int64Array::from_iter_values(
                rows().map(|r| (number(r) % (1 << 33)) as i64),
            )),
            None,
        ),
        (
            "i64, ascending, repeated",
            Arc::new(Int64Array::from_iter_values(rows().map(|r| r as i64 / 4))),
            None,
        ),
        (
            "i32, 16 bits, 4 rows each",
            Arc::new(Int32Array::from_iter_values(
                rows().map(|r| (number(r / 4) % 60_000) as i32),
            )),
            None,
        ),
        (
            "i64, ascending by 0 to 15",
            Arc::new(Int64Array::from_iter_values(rows().scan(0, |sum, r| {
                *sum += number(r) as i64 & 15;
                Some(*sum)
            }))),
            None,
        ),
        (
            "i64, jumping by -7 to 8",
            Arc::new(Int64Array::from_iter_values(rows().scan(0, |sum, r| {
                *sum += (number(r) as i64 & 15) - 7;
                Some(*sum)
            }))),
            None,
        ),
        (
            "i64, close by",
            Arc::new(Int64Array::from_iter_values(rows().map(|r| {
                (r / 1024) as i64 * 100_000 + (number(r) as i64 & 4095)
            }))),
            None,
        ),
        (
            "date, runs",
            Arc::new(Date32Array::from_iter_values(
                rows().map(|r| r as i32 / 700),
            )),
            None,
        ),
        (
            "decimal(12,2), 24 bits",
            Arc::new(
                Decimal128Array::from_iter_values(rows().map(|r| (number(r) % (1 << 24)) as i128))
                    .with_precision_and_scale(12, 2)
                    .expect("a decimal"),
            ),
            None,
        ),
        (
            "f64",
            Arc::new(Float64Array::from_iter_values(
                rows().map(|r| number(r) as f64),
            )),
            None,
        ),
        (
            "text, 250 values, views",
            Arc::new(text(&words)),
            Some(&small),
        ),
        ("text, 250 values, coded", Arc::new(coded), Some(&small)),
        ("text, 300,000 values", Arc::new(text(&names)), Some(&large)),
        ("text, names, no codes", Arc::new(text(&names)), None),
        ("text, 250 values, no codes", Arc::new(text(&words)), None),
        ("text, random", Arc::new(text(&noise)), None),
    ];
    for (name, array, dictionary) in cases {
        let bytes = array.to_data().get_slice_memory_size().expect("a size");
        let mut chunks = Vec::new();
        let encode = measure(|| {
            chunks.clear();
            for _ in 0..CHUNKS {
                let chunk = ColumnChunk::encode(&array, dictionary, home);
                chunks.push(chunk.expect("memory suffices"));
            }
        });
        let source = vec![1u8; bytes * CHUNKS];
        let mut target = vec![0u8; bytes * CHUNKS];
        let copy = measure(|| {
            black_box(&mut target).copy_from_slice(black_box(&source));
        });
        let data_type = match array.data_type() {
            DataType::Dictionary(_, _) => DataType::Utf8View,
            other => other.clone(),
        };
        let predicate = match &data_type {
            DataType::Utf8View if dictionary.is_some() => {
                ColumnPredicate::Codes([0x5a5a, 0, 7].into())
            }
            DataType::Utf8View => {
                ColumnPredicate::StringTest(Arc::new(|strings: &StringViewArray| {
                    strings
                        .iter()
                        .map(|text| text.map(|text| text.ends_with('7')))
                        .collect()
                }))
            }
            DataType::Float64 => ColumnPredicate::Floats {
                low: std::ops::Bound::Included(1e18),
                high: std::ops::Bound::Unbounded,
            },
            _ => ColumnPredicate::Integers { low: 5, high: 20 },
        };
        let mut selection = Selection::default();
        let filter = measure(|| {
            for chunk in &chunks {
                selection.reset_all(CHUNK_ROWS);
                chunk.filter(isa, &predicate, &mut selection);
                black_box(&selection);
            }
        });
        let count = measure(|| {
            for chunk in &chunks {
                black_box(chunk.count(isa, &predicate));
            }
        });
        let gather = |selection: &Selection| {
            measure(|| {
                for chunk in &chunks {
                    black_box(chunk.gather(isa, selection, &data_type, dictionary));
                }
            })
        };
        let all = gather(&Selection::all(CHUNK_ROWS));
        let mut few = Selection::none(CHUNK_ROWS);
        rows()
            .filter(|&row| number(row).is_multiple_of(100))
            .for_each(|row| few.insert(row));
        let few = gather(&few);
        println!(
            "{name:28} {:>15} {encode:>9.2} {:>9.2} {copy:>9.2} {filter:>8.3} {count:>8.3} {all:>8.3} {few:>8.3}",
            chunks[0].encoding().to_string(),
            bytes as f64 / CHUNK_ROWS as f64 / encode,
        );
    }

    let mut next = large.clone();
    let extend = timed(|| {
        for value in 0..1000 {
            next = large.extend([format!("new {value}").as_str()].into_iter());
        }
    });
    println!(
        "a dictionary of {} values: extend by one {:.1} µs, all of its views {:.1} ms, ranks {:.1} ms",
        large.len(),
        extend / 1e6,
        timed(|| drop(black_box(next.values()).clone())) / 1e6,
        timed(|| drop(black_box(next.rank()).clone())) / 1e6,
    );
}
