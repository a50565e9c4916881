use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

/// A value of a column, NULL included where the column is nullable.
#[derive(Clone, Debug)]
enum TestValue {
    Boolean(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    UInt8(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    Float32(f32),
    Float64(f64),
    Decimal(i128, u8),
    Text(String),
    Blob(Vec<u8>),
}

use TestValue::*;

/// SQL's order, by the order of Rust's values.
fn compare(a: &TestValue, b: &TestValue) -> Ordering {
    match (a, b) {
        (Boolean(a), Boolean(b)) => a.cmp(b),
        (Int8(a), Int8(b)) => a.cmp(b),
        (Int16(a), Int16(b)) => a.cmp(b),
        (Int32(a), Int32(b)) => a.cmp(b),
        (Int64(a), Int64(b)) => a.cmp(b),
        (UInt8(a), UInt8(b)) => a.cmp(b),
        (UInt16(a), UInt16(b)) => a.cmp(b),
        (UInt32(a), UInt32(b)) => a.cmp(b),
        (UInt64(a), UInt64(b)) => a.cmp(b),
        (Float32(a), Float32(b)) => a.total_cmp(b),
        (Float64(a), Float64(b)) => a.total_cmp(b),
        (Decimal(a, _), Decimal(b, _)) => a.cmp(b),
        (Text(a), Text(b)) => a.cmp(b),
        (Blob(a), Blob(b)) => a.cmp(b),
        _ => unreachable!("values of one column"),
    }
}

fn encode(columns: &[Option<TestValue>], nullable: &[bool]) -> Vec<u8> {
    let mut encoder = KeyEncoder::new();
    for (value, nullable) in columns.iter().zip(nullable) {
        let Some(value) = value else {
            encoder.push_null();
            continue;
        };
        if *nullable {
            encoder.push_present();
        }
        match value {
            Boolean(value) => encoder.push(*value),
            Int8(value) => encoder.push(*value),
            Int16(value) => encoder.push(*value),
            Int32(value) => encoder.push(*value),
            Int64(value) => encoder.push(*value),
            UInt8(value) => encoder.push(*value),
            UInt16(value) => encoder.push(*value),
            UInt32(value) => encoder.push(*value),
            UInt64(value) => encoder.push(*value),
            Float32(value) => encoder.push(*value),
            Float64(value) => encoder.push(*value),
            Decimal(value, precision) => encoder.push_decimal(*value, *precision),
            Text(value) => encoder.push_string(value),
            Blob(value) => encoder.push_blob(value),
        };
    }
    encoder.bytes().to_vec()
}

/// The key's columns again, of the same types as `like`.
fn decode(key: &[u8], like: &[Option<TestValue>], nullable: &[bool]) -> Vec<Option<TestValue>> {
    let mut decoder = Decoder::new(key);
    let mut values = Vec::new();
    for (like, nullable) in like.iter().zip(nullable) {
        if *nullable && !decoder.take_present() {
            values.push(None);
            continue;
        }
        values.push(Some(match like.as_ref().expect("it was present") {
            Boolean(_) => Boolean(decoder.take()),
            Int8(_) => Int8(decoder.take()),
            Int16(_) => Int16(decoder.take()),
            Int32(_) => Int32(decoder.take()),
            Int64(_) => Int64(decoder.take()),
            UInt8(_) => UInt8(decoder.take()),
            UInt16(_) => UInt16(decoder.take()),
            UInt32(_) => UInt32(decoder.take()),
            UInt64(_) => UInt64(decoder.take()),
            Float32(_) => Float32(decoder.take()),
            Float64(_) => Float64(decoder.take()),
            Decimal(_, precision) => Decimal(decoder.take_decimal(*precision), *precision),
            Text(_) => Text(decoder.take_text()),
            Blob(_) => Blob(decoder.take_blob()),
        }));
    }
    assert_eq!(decoder.rest(), b"");
    values
}

fn order(a: &[Option<TestValue>], b: &[Option<TestValue>]) -> Ordering {
    let columns = a.iter().zip(b).map(|(a, b)| match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => compare(a, b),
    });
    columns.fold(Ordering::Equal, Ordering::then)
}

/// Two values of one column: near each other, equal or anywhere.
fn two<T: Clone + std::fmt::Debug + 'static>(
    one: impl Strategy<Value = T> + Clone + 'static,
    make: fn(T) -> TestValue,
) -> BoxedStrategy<(TestValue, TestValue)> {
    let pair = prop_oneof![
        3 => (one.clone(), one.clone()),
        1 => one.prop_map(|value| (value.clone(), value)),
    ];
    pair.prop_map(move |(a, b)| (make(a), make(b))).boxed()
}

fn edges<T: Arbitrary + Clone + 'static>(edges: Vec<T>) -> BoxedStrategy<T> {
    prop_oneof![any::<T>(), prop::sample::select(edges)].boxed()
}

fn column() -> BoxedStrategy<(TestValue, TestValue)> {
    const NAN: f64 = f64::NAN;
    let f64s = vec![
        0.0,
        -0.0,
        NAN,
        -NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        1.0,
        -1.0,
    ];
    let f32s: Vec<f32> = f64s.iter().map(|&value| value as f32).collect();
    // Few letters, the byte zero and the greatest characters among them; short, so that many are equal at first.
    let text = "[ab\u{0}\u{1}\u{7F}é\u{10FFFF}]{0,4}";
    let text = prop_oneof![text, ".{0,40}"].boxed();
    let few = prop::sample::select(vec![0u8, 1, 0x80, 0xFD, 0xFE, 0xFF]);
    let blob = prop::collection::vec(prop_oneof![few, any::<u8>()], 0..5).boxed();
    let decimal = (1..=38u8).prop_flat_map(|precision| {
        let most = 10i128.pow(precision.into()) - 1;
        let value = prop_oneof![
            -most..=most,
            prop::sample::select(vec![0, 1, -1, most, -most])
        ];
        (value.clone(), value)
            .prop_map(move |(a, b)| (Decimal(a, precision), Decimal(b, precision)))
    });
    prop_oneof![
        two(any::<bool>(), Boolean),
        two(edges(vec![0, -1, i8::MIN, i8::MAX]), Int8),
        two(edges(vec![0, -1, i16::MIN, i16::MAX]), Int16),
        two(edges(vec![0, -1, i32::MIN, i32::MAX]), Int32),
        two(edges(vec![0, -1, i64::MIN, i64::MAX]), Int64),
        two(edges(vec![0, 1, u8::MAX]), UInt8),
        two(edges(vec![0, 1, u16::MAX]), UInt16),
        two(edges(vec![0, 1, u32::MAX]), UInt32),
        two(edges(vec![0, 1, u64::MAX]), UInt64),
        two(
            prop_oneof![
                any::<u32>().prop_map(f32::from_bits),
                prop::sample::select(f32s)
            ]
            .boxed(),
            Float32
        ),
        two(
            prop_oneof![
                any::<u64>().prop_map(f64::from_bits),
                prop::sample::select(f64s)
            ]
            .boxed(),
            Float64
        ),
        decimal,
        two(text.clone(), Text),
        two(text, Text),
        two(blob, Blob),
    ]
    .boxed()
}

/// Two rows of the same columns, and which columns are nullable.
fn rows() -> impl Strategy<Value = (Vec<Option<TestValue>>, Vec<Option<TestValue>>, Vec<bool>)> {
    let column = (column(), any::<bool>(), 0..6u8).prop_map(|((a, b), nullable, which)| {
        let is_null = |number| nullable && which == number;
        (
            (!is_null(0)).then_some(a),
            (!is_null(1)).then_some(b),
            nullable,
        )
    });
    prop::collection::vec(column, 1..4).prop_map(|columns| {
        let a = columns.iter().map(|column| column.0.clone()).collect();
        let b = columns.iter().map(|column| column.1.clone()).collect();
        (a, b, columns.iter().map(|column| column.2).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 20_000 }))]

    #[test]
    fn byte_order_is_the_order_of_sql((a, b, nullable) in rows()) {
        let keys = [encode(&a, &nullable), encode(&b, &nullable)];
        prop_assert_eq!(keys[0].cmp(&keys[1]), order(&a, &b));
    }

    #[test]
    fn no_key_is_the_beginning_of_another((a, b, nullable) in rows()) {
        let keys = [encode(&a, &nullable), encode(&b, &nullable)];
        prop_assert!(keys[0] == keys[1] || !keys[0].starts_with(&keys[1]) && !keys[1].starts_with(&keys[0]));
    }

    #[test]
    fn columns_come_back((a, _, nullable) in rows()) {
        let decoded = decode(&encode(&a, &nullable), &a, &nullable);
        prop_assert_eq!(order(&a, &decoded), Ordering::Equal);
    }

    /// All keys that begin so lie between the beginning and its successor, all others outside.
    #[test]
    fn a_successor_ends_what_begins_so(start in prop::collection::vec(prop_oneof![any::<u8>(), Just(255)], 0..4), key: [u8; 5]) {
        let mut encoder = KeyEncoder::new();
        start.iter().for_each(|byte| { encoder.push(*byte); });
        let ends = encoder.successor();
        let inside = key[..] >= start[..] && (!ends || key[..] < *encoder.bytes());
        prop_assert_eq!(inside, key.starts_with(&start));
    }

    #[test]
    fn words_are_in_order(a: f64, b: f64, c: i64, d: i64) {
        prop_assert_eq!(word(a).cmp(&word(b)), a.total_cmp(&b));
        prop_assert_eq!(word(c).cmp(&word(d)), c.cmp(&d));
    }
}

#[test]
fn a_string_that_begins_so_is_found_by_its_start() {
    let key = |text: &str| KeyEncoder::new().push_string(text).bytes().to_vec();
    let mut start = KeyEncoder::new();
    start.push_string_start("ab");
    assert!(key("ab").starts_with(start.bytes()) && key("abc").starts_with(start.bytes()));
    assert!(!key("a").starts_with(start.bytes()) && !key("ac").starts_with(start.bytes()));
}
