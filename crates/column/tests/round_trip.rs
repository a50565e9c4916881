//! What goes in comes out: every type, every encoding, every selection, on every instruction set of this machine.

mod common;

use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float32Array, Float64Array, LargeStringArray, StringArray,
    StringViewArray, UInt64Array,
};
use arrow_schema::DataType;
use common::*;
use eris_column::{
    ColumnChunk, ColumnPredicate, ColumnValue, Dictionary, Domain, EncodeError, Encoding,
    Selection, ZoneRange, from_integer, to_integer,
};
use eris_kernels::Isa;
use proptest::prelude::*;
use std::sync::Arc;

fn encode(array: &dyn Array, dictionary: Option<&Dictionary>) -> ColumnChunk {
    ColumnChunk::encode(array, dictionary, home()).expect("the array can be encoded")
}

/// Gathers with several selections and compares with Arrow's own filter.
fn check_gather(
    chunk: &ColumnChunk,
    array: &dyn Array,
    dictionary: Option<&Dictionary>,
    shape: &Shape,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(chunk.rows(), array.len());
    prop_assert_eq!(chunk.nulls(), array.null_count());
    let mut selections = vec![Selection::all(shape.rows)];
    selections.extend([0, 2, 100, 900, 1000].map(|share| shape.selection(share)));
    for selection in &selections {
        let expected = arrow_select::filter::filter(array, &mask(selection)).unwrap();
        let rows: Vec<u32> = selection.iter_ones().map(|row| row as u32).collect();
        for isa in Isa::supported() {
            if let Some(taken) = chunk.take(isa, &rows, array.data_type(), dictionary) {
                prop_assert_eq!(&taken, &expected);
            }
            let gathered = chunk.gather(isa, selection, array.data_type(), dictionary);
            prop_assert_eq!(gathered.data_type(), array.data_type());
            prop_assert_eq!(&gathered, &expected);
            if let Some(nulls) = gathered.nulls() {
                prop_assert!(nulls.null_count() > 0, "NULLs without a NULL");
            }
        }
        let nulls = chunk.gather_validity(selection);
        prop_assert_eq!(
            nulls.map_or(0, |nulls| nulls.null_count()),
            expected.null_count()
        );
    }
    // A few rows, in another order than theirs, some of them twice.
    let mut few: Vec<usize> = selections[2].iter_ones().collect();
    few.reverse();
    few.extend_from_within(..few.len() / 3);
    let positions: UInt64Array = few.iter().map(|&row| Some(row as u64)).collect();
    let expected = arrow_select::take::take(array, &positions, None).unwrap();
    let picked = chunk.pick(&few, array.data_type(), dictionary);
    prop_assert_eq!(&picked, &expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn integers_of_every_type(shape in shapes(), bits in 0u32..=64) {
        for (data_type, low, high) in integer_types() {
            let values = integers(&shape, low, high, bits);
            let array = integer_array(&data_type, &values);
            let chunk = encode(&array, None);
            prop_assert_eq!(chunk.domain(), Domain::Integer);
            check_gather(&chunk, &array, None, &shape)?;

            let mapped: Vec<_> = values.iter().map(|v| v.map(|v| to_integer(&data_type, v))).collect();
            let min = mapped.iter().flatten().min();
            let range = min.map_or(ZoneRange::Empty, |&min| {
                ZoneRange::Integer(min, *mapped.iter().flatten().max().unwrap())
            });
            prop_assert_eq!(&chunk.zone().range, &range);

            let some = shape.selection(300);
            let mut gathered = vec![-7];
            chunk.gather_integers(Isa::best(), &some, &mut gathered);
            prop_assert_eq!(gathered.remove(0), -7, "gathering appends");
            for selection in [&some, &shape.selection(30)] {
                let expected: Vec<_> = selection.iter_ones().collect();
                let mut gathered = Vec::new();
                chunk.gather_integers(Isa::best(), selection, &mut gathered);
                for isa in Isa::supported() {
                    let (mut rows, mut taken) = (vec![3; 5], vec![-7]);
                    selection.positions(isa, selection.count(), &mut rows);
                    prop_assert!(rows.iter().map(|&row| row as usize).eq(expected.iter().copied()));
                    chunk.take_integers(isa, &rows, &mut taken);
                    prop_assert_eq!(taken.remove(0), -7, "taking appends");
                    for (&row, (taken, gathered)) in expected.iter().zip(taken.iter().zip(&gathered)) {
                        // What is in the slot of a NULL is nobody's business.
                        prop_assert!(taken == gathered || mapped[row].is_none(), "{}", chunk.encoding());
                    }
                    prop_assert_eq!(taken.len(), expected.len());
                }
            }
            prop_assert_eq!(gathered.len(), some.count());
            for (row, integer) in some.iter_ones().zip(gathered) {
                let value = chunk.get(row, None);
                match mapped[row] {
                    None => prop_assert_eq!(value, ColumnValue::Null),
                    Some(expected) => {
                        prop_assert_eq!(integer, expected);
                        prop_assert_eq!(value, ColumnValue::Integer(expected));
                        prop_assert_eq!(Some(from_integer(&data_type, integer)), values[row]);
                    }
                }
            }
        }
    }

    #[test]
    fn wide_decimals(shape in shapes(), bits in 0u32..=126) {
        let window = (1i128 << bits) - 1;
        let values = shape.values(|random| random.within(-window / 2, window / 2));
        let data_type = DataType::Decimal128(38, 4);
        let array = integer_array(&data_type, &values);
        let chunk = encode(&array, None);
        prop_assert_eq!(chunk.domain(), Domain::Wide);
        check_gather(&chunk, &array, None, &shape)?;
        let range = values.iter().flatten().min().map_or(ZoneRange::Empty, |&min| {
            ZoneRange::Wide(min, *values.iter().flatten().max().unwrap())
        });
        prop_assert_eq!(&chunk.zone().range, &range);
        for row in shape.selection(5).iter_ones() {
            let expected = values[row].map_or(ColumnValue::Null, ColumnValue::Wide);
            prop_assert_eq!(chunk.get(row, None), expected);
        }
    }

    #[test]
    fn floats_bit_by_bit(shape in shapes()) {
        let doubles = shape.values(float);
        let array = Float64Array::from(doubles.clone());
        let chunk = encode(&array, None);
        check_gather(&chunk, &array, None, &shape)?;
        let (min, max) = (
            doubles.iter().flatten().copied().min_by(f64::total_cmp),
            doubles.iter().flatten().copied().max_by(f64::total_cmp),
        );
        match chunk.zone().range {
            ZoneRange::Empty => prop_assert!(min.is_none()),
            ZoneRange::Float(least, greatest) => {
                prop_assert_eq!(Some(least.to_bits()), min.map(f64::to_bits));
                prop_assert_eq!(Some(greatest.to_bits()), max.map(f64::to_bits));
            }
            ref other => prop_assert!(false, "{:?}", other),
        }
        let singles = shape.values(single);
        let array = Float32Array::from(singles.clone());
        let chunk = encode(&array, None);
        check_gather(&chunk, &array, None, &shape)?;

        for isa in Isa::supported() {
            let some = shape.selection(300);
            let mut gathered = vec![];
            chunk.gather_floats(isa, &some, &mut gathered);
            prop_assert_eq!(gathered.len(), some.count());
            for (row, wide) in some.iter_ones().zip(gathered) {
                if let Some(value) = singles[row] {
                    let same = wide == value as f64 || (wide.is_nan() && value.is_nan());
                    prop_assert!(same, "{} is not {}", wide, value);
                }
            }
        }
    }

    #[test]
    fn plain_text(shape in shapes()) {
        let values = shape.values(string);
        let array = string_array(&values);
        let chunk = encode(&array, None);
        prop_assert!(!chunk.is_coded());
        check_gather(&chunk, &array, None, &shape)?;
        let range = values.iter().flatten().min().map_or(ZoneRange::Empty, |min| {
            let max = values.iter().flatten().max().unwrap();
            ZoneRange::Strings(min.as_str().into(), max.as_str().into())
        });
        prop_assert_eq!(&chunk.zone().range, &range);
        for row in shape.selection(5).iter_ones() {
            let expected = values[row].clone().map_or(ColumnValue::Null, ColumnValue::String);
            prop_assert_eq!(chunk.get(row, None), expected);
        }
    }

    #[test]
    fn text_as_codes_from_every_form_of_array(shape in shapes()) {
        let values = shape.values(string);
        let views = string_array(&values);
        let old = Dictionary::new().extend(["not used", "1"].into_iter());
        let missing = unknown(&old, &views);
        let dictionary = old.extend(missing.iter().map(String::as_str));
        prop_assert_eq!(dictionary.len(), old.len() + missing.len());
        prop_assert!(dictionary.look_up([&views, &views]).is_ok());

        let texts = || values.iter().map(Option::as_deref);
        let forms: [ArrayRef; 4] = [
            Arc::new(views.clone()),
            Arc::new(texts().collect::<StringArray>()),
            Arc::new(texts().collect::<LargeStringArray>()),
            Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
        ];
        for form in forms {
            let chunk = encode(&form, Some(&dictionary));
            prop_assert!(chunk.is_coded());
            check_gather(&chunk, &views, Some(&dictionary), &shape)?;
            let later = dictionary.extend(["later"].into_iter());
            for row in shape.selection(5).iter_ones() {
                let expected = values[row].clone().map_or(ColumnValue::Null, ColumnValue::String);
                prop_assert_eq!(chunk.get(row, Some(&later)), expected);
            }
        }
    }
}

fn shape(rows: usize, nulls: u64) -> Shape {
    Shape {
        seed: 5,
        rows,
        distinct: 0,
        run: 1,
        nulls,
        order: Order::None,
    }
}

#[test]
fn the_smallest_encoding_is_chosen() {
    let encoding = |values: Vec<i64>| {
        let chunk = encode(&arrow_array::Int64Array::from(values), None);
        (chunk.encoding().to_string(), chunk.bytes())
    };
    assert_eq!(encoding(vec![]), ("constant".into(), 0));
    assert_eq!(encoding(vec![i64::MIN; 500]), ("constant".into(), 0));
    assert_eq!(
        encoding((0..65_536).map(|i| i * 40_503 % 65_536).collect()),
        ("packed(16)".into(), 131_072)
    );
    assert_eq!(
        encoding((0..2000).map(|i| 1_000_000 + i % 4).collect()),
        ("packed(2)".into(), 512)
    );
    let (name, bytes) = encoding((0..65_536).map(|i| i / 2000).collect());
    assert_eq!((name.as_str(), bytes), ("run-length(6)", 6 * 128 + 33 * 2));
    // Four rows of each value, in no order: a bit per row and a value per run.
    let (name, bytes) = encoding((0..65_536).map(|i| i / 4 * 40_503 % 16_384).collect());
    assert_eq!(name, "short-runs(14)");
    assert_eq!(bytes, 16 * 14 * 128 + 64 * (128 + 2));
    // Ascending: per vector nothing but its frame.
    assert_eq!(
        encoding((0..65_536).collect()),
        ("delta(0)".into(), 64 * 24)
    );
    // Ascending by 0 to 7, but for one jump, which widens one vector to 32 bits.
    let step = |i: i64| i * 40_503 % 65_536 % 8;
    let sums = (0..65_536).scan(0, |sum, i| {
        *sum += step(i) + if i == 20_000 { 1 << 31 } else { 0 };
        Some(*sum)
    });
    let (name, bytes) = encoding(sums.collect());
    assert_eq!(name, "delta(3)");
    assert_eq!(bytes, 64 * 24 + (63 * 3 + 32) * 128);
    // Neighbours are close, in no order: a range for each vector.
    let near = |i: i64| i / 1024 * 1_000_000 + i * 40_503 % 1024;
    assert_eq!(
        encoding((0..65_536).map(near).collect()),
        ("framed(10)".into(), 64 * (24 + 10 * 128))
    );
    // A few rows take a frame instead of a vector for each bit.
    assert_eq!(encoding(vec![i64::MIN, i64::MAX]), ("delta(0)".into(), 24));
}

/// Text of each kind, some of it NULL or empty, and the encoding that is smallest.
fn texts() -> Vec<(&'static str, StringViewArray)> {
    let number = |row: u64| Random(row).next();
    let with_gaps = |text: &dyn Fn(u64) -> String| {
        let text = |row: u64| match row % 50 {
            7 => None,
            8 => Some(String::new()),
            _ => Some(text(row)),
        };
        let texts: Vec<_> = (0..20_000).map(text).collect();
        string_array(&texts)
    };
    vec![
        (
            "dictionary(8)",
            with_gaps(&|row| format!("the same as {} others", number(row) % 200)),
        ),
        (
            "fsst",
            with_gaps(&|row| format!("http://www.größe.example/{}/🦀", number(row) % 100_000)),
        ),
        (
            "fsst",
            with_gaps(&|row| format!("{:07}", number(row) % 10_000_000)),
        ),
        // All of one length.
        (
            "fsst",
            (0..20_000)
                .map(|row| Some(format!("Customer#{:09}", number(row) % 1_000_000)))
                .collect(),
        ),
        (
            "plain",
            with_gaps(&|row| {
                let byte = |at: u64| char::from(b'!' + (number(row * 64 + at) % 90) as u8);
                (0..48).map(byte).collect()
            }),
        ),
    ]
}

#[test]
fn text_is_stored_in_the_smallest_form() {
    for (encoding, array) in texts() {
        let chunk = encode(&array, None);
        assert_eq!(
            chunk.encoding().to_string(),
            encoding,
            "{:?}",
            array.value(1)
        );
        check_gather(&chunk, &array, None, &shape(array.len(), 0)).unwrap();
        for row in [0, 7, 8, 1023, 1024, 19_999] {
            let expected = array.is_valid(row).then(|| array.value(row).to_owned());
            let expected = expected.map_or(ColumnValue::Null, ColumnValue::String);
            assert_eq!(chunk.get(row, None), expected);
        }
        let views = array.get_array_memory_size();
        assert!(chunk.bytes() < views, "{} of {views} bytes", chunk.bytes());
    }
}

#[test]
fn text_is_tested_in_every_form() {
    for (encoding, array) in texts() {
        let chunk = encode(&array, None);
        let beyond = |text: &str| ColumnPredicate::StringSet([text.into()].into());
        assert!(beyond("\u{10ffff}").excludes(chunk.zone()));
        assert!(!beyond(array.value(1)).excludes(chunk.zone()));
        let test = |strings: &StringViewArray| {
            let digit = |text: &str| text.contains('7') || text.is_empty();
            strings.iter().map(|text| text.map(digit)).collect()
        };
        let predicate = ColumnPredicate::StringTest(Arc::new(test));
        let passes = test(&array);
        // Some that occur, one that does not, and the empty string.
        let mut wanted: Vec<Box<str>> = [1, 77, 300, 19_998]
            .map(|row| array.value(row).into())
            .into_iter()
            .chain(["".into(), "no such text".into()])
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let equal = ColumnPredicate::StringSet(wanted.clone().into());
        for share in [1000, 300, 20, 1] {
            let before = match share {
                1000 => Selection::all(array.len()),
                _ => shape(array.len(), 0).selection(share),
            };
            let mut after = before.clone();
            chunk.filter(Isa::best(), &predicate, &mut after);
            let passed = |row: usize| passes.is_valid(row) && passes.value(row);
            for row in 0..array.len() {
                let expected = before.contains(row) && passed(row);
                assert_eq!(after.contains(row), expected, "row {row} of {encoding}");
            }
            let mut after = before.clone();
            chunk.filter(Isa::best(), &equal, &mut after);
            for row in 0..array.len() {
                let passed = array.is_valid(row) && wanted.contains(&array.value(row).into());
                let expected = before.contains(row) && passed;
                assert_eq!(after.contains(row), expected, "row {row} of {encoding}");
            }
        }
    }
}

#[test]
fn nulls_cost_neither_width_nor_runs() {
    let values = (0..65_536).map(|row| (row % 3 > 0).then_some(40_000 + row / 5000));
    let array: arrow_array::Int32Array = values.collect();
    let chunk = encode(&array, None);
    assert!(matches!(
        chunk.encoding(),
        Encoding::RunLength { width: 4, runs: 14 }
    ));
    check_gather(&chunk, &array, None, &shape(65_536, 0)).unwrap();
}

#[test]
fn slices_start_where_they_start() {
    let array: arrow_array::Int16Array =
        (0..5000).map(|row| (row % 7 > 0).then_some(row)).collect();
    let words: Vec<_> = (0..5000).map(|row| Some(format!("number {row}"))).collect();
    let words = string_array(&words);
    let flags: arrow_array::BooleanArray = (0..5000).map(|row| Some(row % 3 == 0)).collect();
    for (array, start, len) in [
        (&array as &dyn Array, 3, 3000),
        (&words, 77, 2000),
        (&flags, 13, 1500),
    ] {
        let slice = array.slice(start, len);
        let chunk = encode(&slice, None);
        check_gather(&chunk, &slice, None, &shape(len, 0)).unwrap();
    }
}

#[test]
fn dictionary_arrays_of_other_types_lose_their_dictionary() {
    let values = arrow_array::Int64Array::from(vec![Some(500), None, Some(-3)]);
    let keys = arrow_array::UInt16Array::from(vec![Some(0), Some(2), None, Some(1), Some(0)]);
    let array = DictionaryArray::<UInt16Type>::new(keys, Arc::new(values));
    let chunk = encode(&array, None);
    let expected = arrow_array::Int64Array::from(vec![Some(500), Some(-3), None, None, Some(500)]);
    check_gather(&chunk, &expected, None, &shape(5, 0)).unwrap();
}

#[test]
fn dictionary_values_may_be_null_or_unused() {
    let values = StringArray::from(vec![Some("unused"), None, Some("used")]);
    let keys = arrow_array::Int8Array::from(vec![Some(2), Some(1), None, Some(2)]);
    let array = DictionaryArray::<Int8Type>::new(keys, Arc::new(values));
    let dictionary = Dictionary::new().extend(["used"].into_iter());
    let expected = StringViewArray::from(vec![Some("used"), None, None, Some("used")]);
    let chunk = encode(&array, Some(&dictionary));
    check_gather(&chunk, &expected, Some(&dictionary), &shape(4, 0)).unwrap();
    let plain = encode(&array, None);
    check_gather(&plain, &expected, None, &shape(4, 0)).unwrap();
}

#[test]
fn what_cannot_be_encoded_says_why() {
    let dictionary = Dictionary::new().extend(["a"].into_iter());
    let error = |array: &dyn Array| ColumnChunk::encode(array, Some(&dictionary), home());
    let text = StringArray::from(vec!["a", "b"]);
    assert_eq!(
        error(&text).unwrap_err().to_string(),
        "'b' is not in the dictionary"
    );
    let coded: DictionaryArray<Int32Type> = ["a", "c"].into_iter().collect();
    assert!(matches!(error(&coded), Err(EncodeError::NotInDictionary(text)) if text == "c"));
    let nothing = arrow_array::NullArray::new(1);
    assert_eq!(
        error(&nothing).unwrap_err().to_string(),
        "type Null is not supported"
    );
    let values = [Some(1), None, Some(i128::MAX)];
    let decimals = integer_array(&DataType::Decimal128(10, 0), &values);
    assert!(matches!(
        error(&decimals),
        Err(EncodeError::OutOfRange {
            value: i128::MAX,
            ..
        })
    ));
}

#[test]
fn bytes_go_back_when_arrays_and_chunks_are_gone() {
    use eris_column::ObjectMemory;
    use eris_numa::{HugePages, Memory, Topology};
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 21)).unwrap();
    let node = memory.node(eris_types::NodeId(0));
    let home = ObjectMemory {
        memory: &node,
        object: OBJECT,
    };
    let array = Float64Array::from_iter_values((0..65_536).map(f64::from));
    let chunk = ColumnChunk::encode(&array, None, home).unwrap();
    assert_eq!(chunk.bytes(), 65_536 * 8);
    let all = Selection::all(65_536);
    let lent = chunk.gather(Isa::best(), &all, &DataType::Float64, None);
    drop(chunk);
    assert_eq!(lent.as_ref(), &array as &dyn Array);
    assert!(memory.budget().used() >= 65_536 * 8);

    let mut chunks = Vec::new();
    let denied = loop {
        match ColumnChunk::encode(&array, None, home) {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => break error,
        }
    };
    assert!(matches!(denied, EncodeError::OutOfMemory(_)), "{denied}");
    assert!(!chunks.is_empty());
    drop((lent, chunks));
    memory.trim();
    let used: u64 = memory.usage().iter().map(|usage| usage.bytes).sum();
    assert_eq!(used, 0);
}
