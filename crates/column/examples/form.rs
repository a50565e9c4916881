//! How fast stored forms are written to memory, and read with all checks, one thread: `cargo run --release --example
//! form`. Over chunks that together exceed the caches; beside them what copying the same bytes costs. Rounds of all of
//! these alternate, and medians are shown.

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringViewArray};
use arrow_schema::DataType;
use eris_column::*;
use eris_numa::{Buffer, HugePages, Memory, Topology, thread_cpu_time};
use eris_types::{NodeId, ObjectId};
use std::hint::black_box;
use std::sync::Arc;

const ROUNDS: usize = 15;

/// Bytes of forms of one column that are read in turn.
const BYTES: usize = 64 << 20;

fn number(row: usize) -> usize {
    (row as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(31) as usize
}

/// Gigabytes per second.
fn rate(bytes: usize, mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    bytes as f64 / seconds[seconds.len() / 2] / 1e9
}

/// Seconds that this thread runs, so that time given to other processes does not count.
fn timed(work: impl FnOnce()) -> f64 {
    let start = thread_cpu_time();
    work();
    (thread_cpu_time() - start).as_secs_f64()
}

fn columns() -> Vec<(String, ArrayRef, Option<Arc<Dictionary>>)> {
    let rows = || 0..CHUNK_ROWS;
    let integers = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows().map(value)))
    };
    let text = |value: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(
            rows()
                .map(|row| Some(value(row)))
                .collect::<StringViewArray>(),
        )
    };
    let mut all: Vec<(String, ArrayRef, _)> = Vec::new();
    let mut add = |name: &str, array: ArrayRef| all.push((name.to_owned(), array, None));
    for bits in [1, 2, 4, 6, 8, 12, 16, 24, 33, 48] {
        let name = format!("{bits} bits");
        add(&name, integers(&|row| (number(row) % (1 << bits)) as i64));
    }
    let some: Int64Array = rows()
        .map(|row| (row % 100 > 0).then_some((number(row) % 60_000) as i64))
        .collect();
    add("16 bits, 1 % NULL", Arc::new(some));
    add("runs of 700", integers(&|row| row as i64 / 700));
    add(
        "runs of 4",
        integers(&|row| (number(row / 4) % 60_000) as i64),
    );
    add(
        "close by",
        integers(&|row| (row / 1024) as i64 * 100_000 + (number(row) as i64 & 4095)),
    );
    let rising = rows().scan(0, |sum, row| {
        *sum += number(row) as i64 & 15;
        Some(*sum)
    });
    add(
        "ascending by 0 to 15",
        Arc::new(Int64Array::from_iter_values(rising)),
    );
    let floats = rows().map(|row| number(row) as f64);
    add("f64", Arc::new(Float64Array::from_iter_values(floats)));
    add(
        "text, 250 values",
        text(&|row| format!("SHIP MODE {}", number(row) % 250)),
    );
    add(
        "text, names",
        text(&|row| format!("Customer#{:09}", number(row) % 300_000)),
    );
    add(
        "text, addresses",
        text(&|row| format!("https://example.org/{}/{}", number(row) % 70, number(row))),
    );
    let noise = |row: usize| -> String {
        let byte = |at: usize| char::from(b'!' + (number(row * 32 + at) % 90) as u8);
        (0..20).map(byte).collect()
    };
    add("text, random", text(&noise));
    let words: Vec<String> = (0..250).map(|code| format!("SHIP MODE {code}")).collect();
    let dictionary = Arc::new(Dictionary::new().extend(words.iter().map(String::as_str)));
    let coded = text(&|row| words[number(row) % words.len()].clone());
    all.push((
        "text, 250 values, coded".to_owned(),
        coded,
        Some(dictionary),
    ));
    all
}

fn main() {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, None).expect("memory");
    let node = memory.node(NodeId(0));
    let object = ObjectId(1);
    let home = ObjectMemory {
        memory: &node,
        object,
    };
    println!(
        "GB/s of stored bytes, one thread, medians of {ROUNDS} rounds of {} MiB",
        BYTES >> 20
    );
    println!(
        "{:26} {:>15} {:>10} {:>8} {:>8} {:>8} {:>8} {:>12}",
        "", "encoding", "bytes", "write", "shared", "copied", "memcpy", "shared, µs"
    );
    // Those whose names have the argument in them, or all.
    let chosen = std::env::args().nth(1).unwrap_or_default();
    for (name, array, dictionary) in columns() {
        if !name.contains(&chosen) {
            continue;
        }
        let data_type: &DataType = array.data_type();
        let chunk = ColumnChunk::encode(&array, dictionary.as_deref(), home).expect("memory");
        let mut out = FormWriter::at(0);
        chunk.store(home, &mut out).expect("memory");
        let form = out.to_vec();
        let count = BYTES.div_ceil(form.len()).min(1 << 12);
        let forms: Vec<Vec<u8>> = vec![form.clone(); count];
        let buffers = || -> Vec<Buffer> {
            let buffer = |form: &Vec<u8>| {
                let mut buffer = node.allocate(object, form.len()).expect("memory");
                buffer.as_mut_slice().copy_from_slice(form);
                buffer
            };
            forms.iter().map(buffer).collect()
        };
        let mut written = forms.clone();
        let (mut write, mut shared, mut copied, mut plain) = (vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            write.push(timed(|| {
                for form in &mut written {
                    let mut out = FormWriter::at(0);
                    chunk.store(home, &mut out).expect("memory");
                    let mut rest = &mut form[..];
                    for piece in out.pieces() {
                        let here;
                        (here, rest) = rest.split_at_mut(piece.len());
                        here.copy_from_slice(piece);
                    }
                }
            }));
            let whole = buffers();
            let mut chunks = Vec::with_capacity(count);
            shared.push(timed(|| {
                for buffer in whole {
                    let mut form = FormReader::sharing(buffer);
                    let read = ColumnChunk::read(&mut form, data_type, CHUNK_ROWS, home);
                    chunks.push(read.expect("what was written"));
                }
            }));
            chunks.clear();
            copied.push(timed(|| {
                for form in &forms {
                    let mut form = FormReader::copying(form);
                    let read = ColumnChunk::read(&mut form, data_type, CHUNK_ROWS, home);
                    chunks.push(read.expect("what was written"));
                }
            }));
            plain.push(timed(|| {
                for (to, from) in written.iter_mut().zip(&forms) {
                    black_box(to).copy_from_slice(black_box(from));
                }
            }));
        }
        let bytes = form.len() * count;
        let read = rate(bytes, shared);
        println!(
            "{name:26} {:>15} {:>10} {:>8.2} {read:>8.2} {:>8.2} {:>8.2} {:>12.1}",
            chunk.encoding().to_string(),
            form.len(),
            rate(bytes, write),
            rate(bytes, copied),
            rate(bytes, plain),
            form.len() as f64 / read / 1e3,
        );
    }
}
