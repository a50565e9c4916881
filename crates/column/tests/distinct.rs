//! Distinct values that are counted by sketches, beside those of a set.

mod common;

use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use common::forms::*;
use eris_column::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Four standard deviations of the sketch.
const TOLERANCE: f64 = 0.13;

fn distinct(chunk: &ColumnChunk, dictionary: Option<&Dictionary>) -> usize {
    let rows = 0..chunk.rows();
    let values = rows.map(|row| format!("{:?}", chunk.get(row, dictionary)));
    values
        .filter(|value| value != "Null")
        .collect::<BTreeSet<_>>()
        .len()
}

fn is_near(count: u64, exact: usize) -> bool {
    (count as f64 - exact as f64).abs() <= TOLERANCE * exact as f64
}

#[test]
fn every_encoding_is_counted() {
    for rows in [0, 1, 7, 100, 4095, 4096, 30_000] {
        for column in columns(rows) {
            let chunk = encode(&column);
            let mut count = DistinctCount::default();
            let is_counted = count.add(&chunk);
            assert_eq!(is_counted, !chunk.is_coded());
            if is_counted {
                let exact = distinct(&chunk, column.1.as_deref());
                let count = count.count();
                assert!(
                    is_near(count, exact),
                    "{count} of {exact} in {}",
                    chunk.encoding()
                );
            }
        }
    }
}

#[test]
fn chunks_have_values_in_common() {
    let chunk = |from: i64, step: usize| {
        let values = (from..from + 40_000).step_by(step);
        encode(&(Arc::new(Int64Array::from_iter_values(values)), None))
    };
    let chunks = [
        chunk(0, 1),
        chunk(20_000, 1),
        chunk(0, 2),
        chunk(1 << 40, 4),
    ];
    let mut one = DistinctCount::default();
    assert!(chunks.iter().all(|chunk| one.add(chunk)));
    let mut two = [DistinctCount::default(), DistinctCount::default()];
    for (place, chunk) in chunks.iter().enumerate() {
        two[place % 2].add(chunk);
    }
    let [mut merged, other] = two;
    merged.merge(&other);
    assert!(is_near(one.count(), 70_000), "{}", one.count());
    assert_eq!(merged.count(), one.count());
    // Again.
    chunks.iter().for_each(|chunk| assert!(one.add(chunk)));
    assert_eq!(merged.count(), one.count());
}

/// The same strings in few rows and many, so that chunks have dictionaries, symbols, or neither.
#[test]
fn strings_are_the_same_in_all_encodings() {
    let text = |values: &[usize]| -> ArrayRef {
        let text = values
            .iter()
            .map(|value| Some(format!("https://example.org/{value}")));
        let text: StringArray = text.collect();
        arrow_cast::cast(&text, &arrow_schema::DataType::Utf8View).unwrap()
    };
    let all: Vec<usize> = (0..5000).collect();
    let often: Vec<usize> = (0..50_000).map(|row| row % 300).collect();
    let chunks = [
        encode(&(text(&all), None)),
        encode(&(text(&often), None)),
        encode(&(text(&all[..3]), None)),
    ];
    let encodings: BTreeSet<_> = chunks
        .iter()
        .map(|chunk| chunk.encoding().to_string())
        .collect();
    assert_eq!(encodings.len(), 3, "{encodings:?}");
    let mut count = DistinctCount::default();
    count.add(&chunks[0]);
    let first = count.count();
    assert!(is_near(first, 5000), "{first}");
    chunks.iter().for_each(|chunk| assert!(count.add(chunk)));
    assert_eq!(count.count(), first);
}

/// What was written without a sketch is counted only by whoever wants its values read; what had one, has it again.
#[test]
fn sketches_are_stored() {
    // So few bits a value that all of the form is in one piece.
    let values = (0..5000).map(|row| row * row % 53);
    let column: Column = (Arc::new(Int64Array::from_iter_values(values)), None);
    let (data_type, rows) = (column.0.data_type(), 5000);
    let chunk = encode(&column);
    let exact = distinct(&chunk, None) as u64;
    let count = |chunk: &ColumnChunk| {
        let mut count = DistinctCount::default();
        count.add(chunk).then(|| count.count())
    };
    assert_eq!(count(&chunk), Some(exact));
    let written = form(&chunk, 0);
    let again = read(&written, data_type, rows).unwrap();
    assert_eq!(count(&again), Some(exact));
    // A former version wrote the tag without its top bit, and nothing of the sketch.
    assert_eq!((written[0] >> 7, written[1]), (1, 1));
    let behind = 3 + 3 * usize::from(written[2]);
    let former = [&[written[0] & 0x7f], &written[behind..]].concat();
    let former = read(&former, data_type, rows).unwrap();
    assert_eq!(count(&former), None);
    former.count_values();
    assert_eq!(count(&former), Some(exact));
    // A later one may write something else.
    let mut later = written;
    later[1] = 2;
    let later = read(&later, data_type, rows);
    assert!(matches!(later, Err(FormError::Version)), "{later:?}");
}
