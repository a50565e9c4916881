//! Column chunks of every encoding, their stored forms, and what must be the same of two chunks.

use super::*;
use arrow_array::{
    Array, BinaryViewArray, Date32Array, Float32Array, Float64Array, Int64Array, new_null_array,
};
use eris_column::*;
use eris_kernels::Isa;
use std::ops::Bound;

/// An array, and the dictionary whose codes it is to become.
pub type Column = (ArrayRef, Option<Arc<Dictionary>>);

pub fn encode((array, dictionary): &Column) -> ColumnChunk {
    ColumnChunk::encode(array, dictionary.as_deref(), home()).expect("the array can be encoded")
}

/// The stored form, written so far behind a multiple of 64.
pub fn form(chunk: &ColumnChunk, before: usize) -> Vec<u8> {
    let mut out = FormWriter::at(before);
    chunk.store(home(), &mut out).expect("there is memory");
    assert_eq!(out.position(), before + out.len());
    let bytes = out.to_vec();
    assert_eq!(bytes.len(), out.len());
    bytes
}

/// What a form of no other place is read as, with its large sections copied.
pub fn read(form: &[u8], data_type: &DataType, rows: usize) -> Result<ColumnChunk, FormError> {
    let mut form = FormReader::copying(form);
    let chunk = ColumnChunk::read(&mut form, data_type, rows, home())?;
    match form.rest() {
        [] => Ok(chunk),
        _ => Err(FormError::Damaged("something behind the form")),
    }
}

/// The same, with its large sections shared.
pub fn read_shared(
    form: &[u8],
    data_type: &DataType,
    rows: usize,
) -> Result<ColumnChunk, FormError> {
    let mut buffer = NODE.allocate(OBJECT, form.len())?;
    buffer.as_mut_slice().copy_from_slice(form);
    ColumnChunk::read(&mut FormReader::sharing(buffer), data_type, rows, home())
}

/// Everything that can be asked of a chunk is as of an oracle with the same values. The slots of NULLs may differ.
pub fn check_same(chunk: &ColumnChunk, oracle: &ColumnChunk, column: &Column) {
    let (array, dictionary) = column;
    let dictionary = dictionary.as_deref();
    let data_type = array.data_type();
    let rows = array.len();
    assert_eq!((chunk.rows(), chunk.domain()), (rows, oracle.domain()));
    // By their text, for NaN is not equal to itself.
    assert_eq!(
        format!("{:?}", chunk.zone()),
        format!("{:?}", oracle.zone())
    );
    let mut some = Selection::none(rows);
    (0..rows)
        .filter(|row| row * 7 % 10 < 4)
        .for_each(|row| some.insert(row));
    let few: Vec<u32> = (0..rows as u32).filter(|row| row * 7 % 60 == 3).collect();
    let picked: Vec<usize> = few.iter().rev().map(|&row| row as usize).collect();
    for isa in Isa::supported() {
        for selection in [&Selection::all(rows), &some] {
            let of = |chunk: &ColumnChunk| chunk.gather(isa, selection, data_type, dictionary);
            assert_eq!(&of(chunk), &of(oracle));
        }
        for predicate in predicates(array, dictionary) {
            for selection in [&Selection::all(rows), &some] {
                let of = |chunk: &ColumnChunk| {
                    let mut passed = selection.clone();
                    chunk.filter(isa, &predicate, &mut passed);
                    passed
                };
                assert_eq!(
                    of(chunk),
                    of(oracle),
                    "{predicate:?} on {}",
                    chunk.encoding()
                );
            }
            let count = |chunk: &ColumnChunk| chunk.count(isa, &predicate);
            assert_eq!(
                count(chunk),
                count(oracle),
                "{predicate:?} on {}",
                chunk.encoding()
            );
            let of = |chunk: &ColumnChunk| {
                let mut passed = few.clone();
                chunk.retain(isa, &predicate, &mut passed);
                passed
            };
            assert_eq!(
                of(chunk),
                of(oracle),
                "{predicate:?} on {}",
                chunk.encoding()
            );
            let known =
                |chunk: &ColumnChunk| (chunk.excludes(&predicate), chunk.covers(&predicate));
            assert_eq!(known(chunk), known(oracle));
        }
    }
    let of = |chunk: &ColumnChunk| chunk.pick(&picked, data_type, dictionary);
    assert_eq!(&of(chunk), &of(oracle));
    for &row in picked.iter().take(20) {
        let of = |chunk: &ColumnChunk| format!("{:?}", chunk.get(row, dictionary));
        assert_eq!(of(chunk), of(oracle));
    }
}

/// The chunk answers as the one does that is encoded from the values that it yields.
pub fn check_sound(chunk: &ColumnChunk, (array, dictionary): &Column) {
    let all = Selection::all(chunk.rows());
    let values = chunk.gather(Isa::best(), &all, array.data_type(), dictionary.as_deref());
    assert_eq!(values.null_count(), chunk.nulls());
    let column = (values, dictionary.clone());
    check_same(chunk, &encode(&column), &column);
}

/// Conditions of each kind near the values of some rows.
fn predicates(array: &ArrayRef, dictionary: Option<&Dictionary>) -> Vec<ColumnPredicate> {
    let mut all = vec![ColumnPredicate::Null, ColumnPredicate::NotNull];
    let step = (array.len() / 3).max(1);
    let rows = (0..array.len())
        .step_by(step)
        .filter(|&row| array.is_valid(row));
    // A chunk of one row is read without doubt.
    let values: Vec<ColumnValue> = rows
        .map(|row| encode(&(array.slice(row, 1), dictionary.cloned().map(Arc::new))))
        .map(|chunk| chunk.get(0, dictionary))
        .collect();
    let mut integers = Vec::new();
    let mut texts: Vec<Box<str>> = Vec::new();
    for value in values {
        match value {
            ColumnValue::Integer(value) => {
                let high = value.saturating_add(9);
                all.push(ColumnPredicate::Integers {
                    low: value,
                    high: value,
                });
                all.push(ColumnPredicate::NotIntegers { low: value, high });
                let words = Arc::new([0x5555_0000_ffff_1235; 3]);
                all.push(ColumnPredicate::IntegerBitmap {
                    first: value,
                    words,
                });
                integers.push(value);
            }
            ColumnValue::String(text) => {
                let dictionary = dictionary.map(|dictionary| dictionary.code(&text));
                if let Some(code) = dictionary {
                    let code = code.expect("a code for each string").index();
                    let mut words = vec![0x1000_0001; code / 64 + 1];
                    words[code / 64] |= 1 << (code % 64);
                    all.push(ColumnPredicate::Codes(words.into()));
                } else {
                    let longer = text.len();
                    let test: StringTest = Arc::new(move |texts: &StringViewArray| {
                        BooleanArray::from_unary(texts, |text: &str| text.len() <= longer)
                    });
                    all.push(ColumnPredicate::StringTest(test));
                    texts.push(text.into());
                }
            }
            ColumnValue::Float32(value) => floats(value.into(), &mut all),
            ColumnValue::Float64(value) => floats(value, &mut all),
            _ => {}
        }
    }
    integers.sort_unstable();
    integers.dedup();
    texts.sort_unstable();
    texts.dedup();
    if !integers.is_empty() {
        all.push(ColumnPredicate::IntegerSet(integers.into()));
    }
    if !texts.is_empty() {
        all.push(ColumnPredicate::StringSet(texts.into()));
    }
    all
}

fn floats(value: f64, all: &mut Vec<ColumnPredicate>) {
    for (low, high) in [
        (Bound::Included(value), Bound::Included(value)),
        (Bound::Excluded(value), Bound::Unbounded),
        (Bound::Unbounded, Bound::Excluded(value)),
    ] {
        all.push(ColumnPredicate::Floats { low, high });
    }
}

/// A column of `rows` rows for each encoding that they can have, with and without NULLs.
pub fn columns(rows: usize) -> Vec<Column> {
    let count = rows as i64;
    let scattered = |row: i64| Random(row as u64).next() as i64;
    let mut integers: Vec<Vec<i64>> = vec![
        (0..count).map(|_| -7).collect(),
        (0..count).map(|row| scattered(row) % 1000).collect(),
        (0..count).map(scattered).collect(),
        (0..count)
            .map(|row| row * 3 / count.max(1) * 1_000_003)
            .collect(),
        (0..count).map(|row| row / 5 * 7919 % 991).collect(),
        (0..count).map(|row| row * 1_000_003).collect(),
        (0..count)
            .map(|row| row * 16 + scattered(row) % 4)
            .collect(),
        (0..count)
            .map(|row| row / 1024 * 1_000_000 + row * 40_503 % 1024)
            .collect(),
    ];
    integers.push(integers[6].iter().rev().copied().collect());
    let mut strings: Vec<Vec<String>> = vec![
        (0..count).map(|_| "always the same".to_owned()).collect(),
        (0..count)
            .map(|row| format!("like {} others, größer", scattered(row) % 9))
            .collect(),
        (0..count)
            .map(|row| format!("https://www.example.org/{}/🦀", scattered(row) % 10_000))
            .collect(),
        (0..count)
            .map(|row| format!("{:x}{:x}", scattered(row), scattered(row + count)))
            .collect(),
        (0..count)
            .map(|row| format!("{}", scattered(row) % 100_000))
            .collect(),
    ];
    strings.push(
        (0..count)
            .map(|row| format!("part {}", row * 3 / count.max(1)))
            .collect(),
    );
    strings.push(strings[1].iter().map(|text| text[..6].to_owned()).collect());
    let is_valid = |row: usize| row % 9 != 2 && row % 100 < 90;
    let mut all: Vec<Column> = Vec::new();
    for nulls in [false, true] {
        let valid = |row: &usize| !nulls || is_valid(*row);
        let of = |values: &[i64]| -> Vec<Option<i64>> {
            let rows = values.iter().enumerate();
            rows.map(|(row, &value)| valid(&row).then_some(value))
                .collect()
        };
        for values in &integers {
            all.push((Arc::new(Int64Array::from(of(values))), None));
        }
        let dates = of(&integers[1])
            .into_iter()
            .map(|day| day.map(|day| day as i32));
        all.push((Arc::new(dates.collect::<Date32Array>()), None));
        let singles = |float: fn(&mut Random) -> f32| -> Float32Array {
            let mut random = Random(rows as u64);
            (0..rows)
                .map(|row| Some(float(&mut random)).filter(|_| valid(&row)))
                .collect()
        };
        all.push((Arc::new(singles(single)), None));
        all.push((Arc::new(singles(|_| -0.0)), None));
        let doubles = |float: fn(&mut Random) -> f64| -> Float64Array {
            let mut random = Random(rows as u64);
            (0..rows)
                .map(|row| Some(float(&mut random)).filter(|_| valid(&row)))
                .collect()
        };
        all.push((Arc::new(doubles(float)), None));
        all.push((Arc::new(doubles(|_| f64::NAN)), None));
        for factor in [0, 1 << 60] {
            let wide = |row: usize| i128::from(integers[2][row]) * factor;
            let values: Vec<_> = (0..rows)
                .map(|row| valid(&row).then(|| wide(row)))
                .collect();
            all.push((integer_array(&DataType::Decimal128(38, 2), &values), None));
        }
        for values in &strings {
            let values = values.iter().enumerate();
            let values: Vec<_> = values
                .map(|(row, text)| valid(&row).then(|| text.clone()))
                .collect();
            let array = string_array(&values);
            let bytes = values.iter().map(|text| {
                text.as_ref()
                    .map(|text| [&b"\xff\x00"[..], text.as_bytes()].concat())
            });
            let bytes: BinaryViewArray = bytes.collect();
            let known = Dictionary::new().extend(["nobody has this"].into_iter());
            let missing = unknown(&known, &array);
            let dictionary = known.extend(missing.iter().map(String::as_str));
            let array: ArrayRef = Arc::new(array);
            all.push((array.clone(), None));
            all.push((Arc::new(bytes), None));
            all.push((array, Some(Arc::new(dictionary))));
        }
    }
    for data_type in [
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(38, 2),
        DataType::Utf8View,
        DataType::BinaryView,
    ] {
        all.push((new_null_array(&data_type, rows), None));
    }
    let codes = Some(Arc::new(Dictionary::new()));
    all.push((new_null_array(&DataType::Utf8View, rows), codes));
    all
}
