//! Rows of every type, in columns that are stored in every encoding.

use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeBinaryArray, Int64Array, IntervalMonthDayNanoArray,
    RecordBatch, StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use eris_aeu::Random;
use std::sync::Arc;

/// So many rows are a chunk of their own.
pub const LARGE_ROWS: usize = 33_000;
/// More than a vector.
pub const ROWS: usize = 1_050;

type NamedColumns = Vec<(&'static str, ArrayRef)>;

/// Rows with numbers from `first` on, in columns of every type and encoding.
pub fn everything(first: i64, rows: usize, random: &mut Random) -> RecordBatch {
    let bits: Vec<u64> = (0..rows).map(|_| random.bits()).collect();
    let any = |nulls: u64, value: &dyn Fn(usize, u64) -> i64| -> ArrayRef {
        let of = |(row, bits): (usize, &u64)| (bits % 8 >= nulls).then(|| value(row, bits >> 3));
        Arc::new(Int64Array::from_iter(bits.iter().enumerate().map(of)))
    };
    let small = |data_type: DataType| -> ArrayRef {
        let numbers = any(1, &|_, bits| (bits % 100) as i64);
        let narrow = match data_type {
            DataType::Date32 => arrow_cast::cast(&numbers, &DataType::Int32).unwrap(),
            _ => numbers,
        };
        arrow_cast::cast(&narrow, &data_type).unwrap()
    };
    let cast = |numbers: ArrayRef, data_type| arrow_cast::cast(&numbers, &data_type).unwrap();
    let texts = |nulls: u64, text: &dyn Fn(usize, u64) -> String| -> ArrayRef {
        let of = |(row, bits): (usize, &u64)| (bits % 8 >= nulls).then(|| text(row, bits >> 3));
        Arc::new(StringViewArray::from_iter(bits.iter().enumerate().map(of)))
    };
    let bytes = |nulls: u64, text: &dyn Fn(usize, u64) -> String| -> ArrayRef {
        let of = |(row, bits): (usize, &u64)| (bits % 8 >= nulls).then(|| text(row, bits >> 3));
        Arc::new(BinaryViewArray::from_iter(bits.iter().enumerate().map(of)))
    };
    let wide = DataType::Decimal128(30, 4);
    let at = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let intervals = bits.iter().map(|bits| {
        let (months, days) = (bits % 9, bits >> 3 & 31);
        (bits % 8 > 0).then(|| IntervalMonthDayNano::new(months as i32, days as i32, 5))
    });
    let uuids = bits
        .iter()
        .map(|bits| [bits.to_le_bytes(), (!bits).to_be_bytes()].concat());
    let columns: NamedColumns = vec![
        ("id", any(0, &|row, _| first + row as i64)),
        ("only_nulls", any(8, &|_, _| 0)),
        ("constant", cast(any(0, &|_, _| 7), DataType::Int32)),
        (
            "constant_with_nulls",
            cast(any(2, &|_, _| -7), DataType::Int32),
        ),
        ("packed", any(0, &|_, bits| (bits % 1000) as i64)),
        ("packed_with_nulls", any(3, &|_, bits| (bits % 1000) as i64)),
        (
            "runs",
            cast(any(0, &|row, _| row as i64 / 100), DataType::Int32),
        ),
        (
            "short_runs",
            any(0, &|row, _| (row as i64 / 6) * 0x9E37_79B9 % 99_999_989),
        ),
        (
            "framed",
            cast(
                any(0, &|row, bits| (row as i64 >> 8 << 40) + (bits % 99) as i64),
                DataType::UInt64,
            ),
        ),
        ("boolean", small(DataType::Boolean)),
        ("int8", small(DataType::Int8)),
        ("int16", small(DataType::Int16)),
        ("uint8", small(DataType::UInt8)),
        ("uint16", small(DataType::UInt16)),
        ("uint32", small(DataType::UInt32)),
        ("date", small(DataType::Date32)),
        ("time", small(DataType::Time64(TimeUnit::Microsecond))),
        ("time_ns", small(DataType::Time64(TimeUnit::Nanosecond))),
        ("second", small(at(TimeUnit::Second))),
        ("millisecond", small(at(TimeUnit::Millisecond))),
        (
            "microsecond",
            small(DataType::Timestamp(TimeUnit::Microsecond, None)),
        ),
        ("nanosecond", small(at(TimeUnit::Nanosecond))),
        ("decimal", small(DataType::Decimal128(10, 2))),
        ("float", small(DataType::Float32)),
        ("double", small(DataType::Float64)),
        (
            "constant_double",
            cast(any(1, &|_, _| 3), DataType::Float64),
        ),
        (
            "wide",
            cast(any(1, &|_, bits| (bits >> 8) as i64), wide.clone()),
        ),
        ("constant_wide", cast(any(0, &|_, _| 1 << 40), wide)),
        (
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from_iter(intervals)),
        ),
        (
            "uuid",
            Arc::new(FixedSizeBinaryArray::try_from_iter(uuids).unwrap()),
        ),
        ("codes", texts(1, &|_, bits| format!("name {}", bits % 20))),
        (
            "codes_in_runs",
            texts(0, &|row, _| format!("run {}", row / 100)),
        ),
        (
            "constant_bytes",
            bytes(0, &|_, _| "always the same".to_owned()),
        ),
        (
            "some_bytes",
            bytes(1, &|_, bits| format!("one of a few strings: {}", bits % 30)),
        ),
        (
            "more_bytes",
            bytes(1, &|row, _| {
                format!("https://eris.example/table/{row}/rows")
            }),
        ),
        (
            "any_bytes",
            bytes(1, &|_, bits| format!("{:x}", bits.wrapping_mul(bits))),
        ),
    ];
    batch(columns)
}

/// Few bytes for many rows.
pub fn large(first: i64, rows: usize, random: &mut Random) -> RecordBatch {
    let ids = Int64Array::from_iter_values(first..first + rows as i64);
    let flags = Int64Array::from_iter(
        (0..rows).map(|_| (!random.one_in(9)).then(|| random.bits() as i64 & 1)),
    );
    let groups = Int64Array::from_iter_values((0..rows).map(|row| row as i64 / 500));
    let name = |row: usize| format!("group {}", row / 10 % 7);
    let names = StringViewArray::from_iter_values((0..rows).map(name));
    batch(vec![
        ("id", Arc::new(ids)),
        (
            "flag",
            arrow_cast::cast(&flags, &DataType::Boolean).unwrap(),
        ),
        ("group", Arc::new(groups)),
        ("name", Arc::new(names)),
    ])
}

pub fn keyed(ids: impl Iterator<Item = i64> + Clone, random: &mut Random) -> RecordBatch {
    let names = ids
        .clone()
        .map(|_| (!random.one_in(5)).then(|| format!("name {}", random.below(90))));
    let names = StringViewArray::from_iter(names);
    batch(vec![
        (
            "id",
            Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef,
        ),
        ("name", Arc::new(names)),
    ])
}

/// Text of which no two are alike: symbols pay, or they do not.
pub fn texts(first: i64, rows: usize, is_like: bool, random: &mut Random) -> RecordBatch {
    let ids = first..first + rows as i64;
    let text = |id: i64| match is_like {
        true => format!("of number {id}"),
        false => format!("{:x}{:x}", random.bits(), random.bits()),
    };
    let texts = StringViewArray::from_iter_values(ids.clone().map(text));
    batch(vec![
        (
            "id",
            Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef,
        ),
        ("text", Arc::new(texts)),
    ])
}

fn batch(columns: NamedColumns) -> RecordBatch {
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(at, (name, array))| Field::new(*name, array.data_type().clone(), at > 0));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}
