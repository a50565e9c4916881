//! What is read of a stored form is what was written: values, zone, encoding and bytes, of every encoding and domain.

mod common;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int64Array};
use arrow_schema::DataType;
use common::forms::*;
use common::*;
use eris_column::*;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::NodeId;
use proptest::prelude::*;
use std::sync::Arc;

/// Reads the form in both ways, and compares.
fn check(column: &Column) -> ColumnChunk {
    let chunk = encode(column);
    let (data_type, rows) = (column.0.data_type(), chunk.rows());
    let form = form(&chunk, 0);
    for read in [read, read_shared] {
        let again = read(&form, data_type, rows).expect("what was written can be read");
        assert_eq!(again.encoding(), chunk.encoding());
        assert_eq!(again.bytes(), chunk.bytes(), "{}", chunk.encoding());
        assert_eq!(again.is_coded(), chunk.is_coded());
        check_same(&again, &chunk, column);
        // It is written as the one that it comes from.
        assert!(
            common::forms::form(&again, 0) == form,
            "{}",
            chunk.encoding()
        );
    }
    chunk
}

#[test]
fn every_encoding_of_every_domain() {
    let mut encodings = Vec::new();
    for rows in [0, 1, 2, 3, 100, 511, 512, 1024, 1025, 5000, 65_536] {
        for column in columns(rows) {
            let chunk = check(&column);
            let name = chunk.encoding().to_string();
            let name = name.split('(').next().unwrap_or_default();
            let nulls = chunk.nulls() > 0 && chunk.nulls() < rows;
            let coded = if chunk.is_coded() { "Codes" } else { "" };
            encodings.push(format!("{:?}{coded} {name} {nulls}", chunk.domain()));
        }
    }
    encodings.sort();
    encodings.dedup();
    let integers = [
        "constant",
        "packed",
        "run-length",
        "short-runs",
        "framed",
        "delta",
    ];
    let plain = ["constant", "plain"];
    let text = ["constant", "dictionary", "fsst", "plain"];
    for (domain, names) in [
        ("Integer", &integers[..]),
        ("StringCodes", &integers[..4]),
        ("Float32", &plain),
        ("Float64", &plain),
        ("Wide", &plain),
        ("String", &text),
        ("Bytes", &text),
    ] {
        for name in names {
            for nulls in [false, true] {
                let has = encodings.contains(&format!("{domain} {name} {nulls}"));
                assert!(has, "no {domain} {name} {nulls} among {encodings:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_columns(shape in shapes(), bits in 0u32..=64) {
        for (data_type, low, high) in integer_types() {
            let values = integers(&shape, low, high, bits);
            check(&(integer_array(&data_type, &values), None));
        }
        let wide = shape.values(|random| random.within(i128::MIN >> bits, i128::MAX >> bits));
        check(&(integer_array(&DataType::Decimal128(38, 4), &wide), None));
        check(&(Arc::new(Float64Array::from(shape.values(float))), None));
        check(&(Arc::new(Float32Array::from(shape.values(single))), None));
        let array = string_array(&shape.values(string));
        let dictionary = Dictionary::new();
        let missing = unknown(&dictionary, &array);
        let dictionary = dictionary.extend(missing.iter().map(String::as_str));
        let array: ArrayRef = Arc::new(array);
        check(&(array.clone(), None));
        check(&(array, Some(Arc::new(dictionary))));
    }
}

/// Forms of several columns one after the other, with bytes of a container before, between and behind them.
#[test]
fn forms_follow_each_other_and_share_a_buffer() {
    for before in [0, 1, 40, 63] {
        let columns = columns(20_000);
        let chunks: Vec<ColumnChunk> = columns.iter().map(encode).collect();
        let mut out = FormWriter::at(before);
        for chunk in &chunks {
            chunk.store(home(), &mut out).unwrap();
            out.bytes(b"between");
        }
        let all = [&vec![9; before][..], &out.to_vec()].concat();
        assert_eq!(all.len(), out.position());
        let mut buffer = NODE.allocate(OBJECT, all.len()).unwrap();
        buffer.as_mut_slice().copy_from_slice(&all);
        let start = buffer.as_slice::<u8>().as_ptr().addr();
        for mut form in [FormReader::copying(&all), FormReader::sharing(buffer)] {
            assert_eq!(form.bytes(before, <[u8]>::len).unwrap(), before);
            let mut shared = 0;
            for (chunk, column) in chunks.iter().zip(&columns) {
                let again =
                    ColumnChunk::read(&mut form, column.0.data_type(), chunk.rows(), home());
                let again = again.unwrap();
                check_same(&again, chunk, column);
                let mut extents = Vec::new();
                again.extents(&mut extents);
                for extent in extents.iter().filter(|extent| extent.bytes() > 0) {
                    assert!(extent.start().is_multiple_of(64));
                    let is_part = (start..start + all.len()).contains(&extent.start());
                    shared += if is_part { extent.bytes() } else { 0 };
                }
                assert_eq!(form.bytes(7, <[u8]>::to_vec).unwrap(), b"between");
            }
            assert!(form.rest().is_empty() && form.position() == all.len());
            let lent: usize = out
                .pieces()
                .map(<[u8]>::len)
                .filter(|&len| len >= 4096)
                .sum();
            assert!(
                shared == 0 || shared > lent * 9 / 10,
                "{shared} of {lent} bytes"
            );
        }
    }
}

/// The least that a row of a log can take.
#[test]
fn a_constant_takes_its_value_and_little_more() {
    let bytes = |column: Column| form(&encode(&column), 0).len();
    let integer = |value: i64| bytes((Arc::new(Int64Array::from(vec![value])), None));
    assert_eq!((integer(0), integer(-64), integer(64)), (2, 2, 3));
    assert_eq!((integer(1_700_000_000_000_000), integer(i64::MIN)), (9, 11));
    assert_eq!(bytes((Arc::new(Float64Array::from(vec![0.1])), None)), 9);
    assert_eq!(
        bytes((Arc::new(string_array(&[Some("hello".into())])), None)),
        7
    );
    assert_eq!(
        bytes((Arc::new(Int64Array::from(vec![None, None])), None)),
        1
    );
    // A few rows take no vector for each bit.
    let few: Vec<i64> = (0..10).map(|row| row * row % 7).collect();
    assert_eq!(bytes((Arc::new(Int64Array::from(few)), None)), 10);
}

#[test]
fn integers_stored_by_an_order_are_written_as_integers() {
    let keys = |rows: usize| (0..rows as i64).map(|row| (row * 7919 % 400) * 10);
    let order = Arc::new(KeyOrder::new((0..400).rev().map(|key| key * 10).collect()).unwrap());
    for nulls in [0, 3] {
        let values = keys(30_000).zip(0..);
        let values = values.map(|(key, row)| (nulls == 0 || row % nulls > 0).then_some(key));
        let column: Column = (Arc::new(values.collect::<Int64Array>()), None);
        let chunk = encode(&column);
        let stored = chunk
            .stored_by(&order, home())
            .unwrap()
            .expect("all keys are in it");
        assert!(stored.order().is_some());
        let form = form(&stored, 0);
        assert_eq!(form, common::forms::form(&chunk, 0));
        let again = read_shared(&form, &DataType::Int64, 30_000).unwrap();
        check_same(&again, &chunk, &column);
    }
}

/// The bytes of docs/formats/column-chunk.md: what was written once can be read for good.
#[test]
fn the_bytes_are_those_that_are_documented() {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let integers =
        |values: Vec<Option<i64>>| -> Column { (Arc::new(Int64Array::from(values)), None) };
    let text = |values: &[&str]| -> Column {
        let values: Vec<_> = values.iter().map(|text| Some(text.to_string())).collect();
        (Arc::new(string_array(&values)), None)
    };
    for (column, bytes) in [
        (integers(vec![Some(-3)]), "0005"),
        (integers(vec![None]), "01"),
        (integers(vec![Some(300), None, Some(300)]), "020305d804"),
        (
            integers(vec![Some(5), Some(70), Some(6)]),
            "04030a41070505a301",
        ),
        (text(&["eris"]), "600465726973"),
    ] {
        let chunk = encode(&column);
        assert_eq!(hex(&form(&chunk, 0)), bytes, "{:?}", column.0);
    }
}

#[test]
fn a_form_of_something_else_is_named() {
    let column: Column = (Arc::new(Int64Array::from(vec![1, 300, 5])), None);
    let mut form = form(&encode(&column), 0);
    let message = |form: &[u8], data_type: &DataType, rows| {
        read(form, data_type, rows)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    let int64 = &DataType::Int64;
    assert_eq!(
        message(&form, &DataType::Utf8View, 3),
        "the stored form is not of type Utf8View"
    );
    assert_eq!(
        message(&form, int64, 4),
        "the stored form has 3 rows instead of 4"
    );
    let narrow = "the stored form is damaged: a value that its type does not have";
    assert_eq!(message(&form, &DataType::Int8, 3), narrow);
    assert_eq!(message(&[], int64, 3), "the stored form is cut short");
    form[0] |= 0x80;
    assert_eq!(
        message(&form, int64, 3),
        "the stored form is of a later version"
    );
    form[0] = 5 << 2;
    assert_eq!(
        message(&form, int64, 3),
        "the stored form has an unknown encoding, 0x05"
    );
}

/// A budget that is exhausted is an error, and what was taken is given back.
#[test]
fn memory_that_is_not_there_is_an_error() {
    let column: Column = (
        Arc::new(
            (0..60_000)
                .map(|row| Some(row * row))
                .collect::<Int64Array>(),
        ),
        None,
    );
    let form = form(&encode(&column), 0);
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(64 << 10)).unwrap();
    let home = ObjectMemory {
        memory: &memory.node(NodeId(0)),
        object: OBJECT,
    };
    let read = ColumnChunk::read(
        &mut FormReader::copying(&form),
        &DataType::Int64,
        60_000,
        home,
    );
    assert!(matches!(read, Err(FormError::OutOfMemory(_))), "{read:?}");
    assert_eq!(memory.budget().used(), 0);
}
