//! Values of 16 bytes, and bytes that are no text: what goes in comes out, in every encoding.

mod common;

use arrow_array::types::IntervalMonthDayNanoType;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeBinaryArray, IntervalMonthDayNanoArray,
};
use common::*;
use eris_column::{ColumnChunk, ColumnPredicate, ColumnValue, Selection, ZoneRange};
use std::sync::Arc;

fn encode(array: &dyn Array) -> ColumnChunk {
    ColumnChunk::encode(array, None, home()).expect("the array can be encoded")
}

/// All rows, every third, and a few of them.
fn check(array: &ArrayRef, chunk: &ColumnChunk) {
    for each in [1, 3, 5_000] {
        let rows: Vec<usize> = (0..array.len()).step_by(each).collect();
        let mut selection = Selection::none(array.len());
        rows.iter().for_each(|&row| selection.insert(row));
        let gathered = chunk.select(&selection, array.data_type(), None);
        let expected: Vec<ArrayRef> = rows.iter().map(|&row| array.slice(row, 1)).collect();
        let expected: Vec<&dyn Array> = expected.iter().map(AsRef::as_ref).collect();
        assert_eq!(&gathered, &arrow_select::concat::concat(&expected).unwrap());
    }
}

#[test]
fn bytes_are_stored_in_the_smallest_form() {
    let number = |row: u64| Random(row).next();
    let of = |bytes: &dyn Fn(u64) -> Vec<u8>| -> BinaryViewArray {
        let value = |row: u64| (row % 50 != 7).then(|| bytes(row));
        (0..20_000).map(value).collect()
    };
    for (encoding, array) in [
        ("constant", of(&|_| vec![0xFF, 0])),
        (
            "dictionary(8)",
            of(&|row| {
                format!("\u{e9}{}", number(row) % 200)
                    .into_bytes()
                    .repeat(4)
            }),
        ),
        (
            "fsst",
            of(&|row| [b"\xFF\xFEthe same\x00", &number(row).to_be_bytes()[6..]].concat()),
        ),
        (
            "plain",
            of(&|row| number(row).to_le_bytes().map(|byte| byte | 0x80).repeat(2)),
        ),
    ] {
        let chunk = encode(&array);
        assert_eq!(chunk.encoding().to_string(), encoding);
        let value = |row: usize| match array.is_valid(row) {
            true => ColumnValue::Bytes(array.value(row).to_vec()),
            false => ColumnValue::Null,
        };
        for row in [0, 7, 1_024, 19_999] {
            assert_eq!(chunk.get(row, None), value(row));
        }
        let mut selection = Selection::all(array.len());
        chunk.filter(
            eris_kernels::Isa::best(),
            &ColumnPredicate::NotNull,
            &mut selection,
        );
        assert_eq!(selection.count(), array.len() - array.null_count());
        let (min, max) = (array.iter().flatten().min(), array.iter().flatten().max());
        let range = ZoneRange::Bytes(min.unwrap().into(), max.unwrap().into());
        assert_eq!(chunk.zone().range, range);
        check(&(Arc::new(array) as ArrayRef), &chunk);
    }
}

#[test]
fn uuids_and_intervals_come_back() {
    let mut random = Random(1);
    let mut uuid = || [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
    let uuids: Vec<_> = (0..10_000)
        .map(|row| (row % 9 != 0).then(&mut uuid))
        .collect();
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16);
    let uuids: ArrayRef = Arc::new(uuids.unwrap());
    check(&uuids, &encode(&uuids));
    let mut random = Random(2);
    let mut interval = || {
        let number = random.next();
        IntervalMonthDayNanoType::make_value(number as i32, (number >> 40) as i32, number as i64)
    };
    let intervals = (0..10_000).map(|row| (row % 7 != 0).then(&mut interval));
    let intervals: ArrayRef = Arc::new(intervals.collect::<IntervalMonthDayNanoArray>());
    check(&intervals, &encode(&intervals));
}
