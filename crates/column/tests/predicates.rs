//! Every predicate against the plain meaning of it, row by row; and what zones may conclude.

mod common;

use arrow_array::{Array, BooleanArray, Float32Array, Float64Array, StringViewArray};
use arrow_schema::DataType;
use common::*;
use eris_column::{
    ColumnChunk, ColumnPredicate, Dictionary, Selection, StringTest, Zone, ZoneRange, to_integer,
};
use eris_kernels::Isa;
use proptest::prelude::*;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

fn encode(array: &dyn Array, dictionary: Option<&Dictionary>) -> ColumnChunk {
    ColumnChunk::encode(array, dictionary, home()).expect("the array can be encoded")
}

/// Filters from several selections, on every instruction set, and compares with `passes`.
fn check(
    chunk: &ColumnChunk,
    predicate: &ColumnPredicate,
    shape: &Shape,
    passes: impl Fn(usize) -> bool,
) -> Result<(), TestCaseError> {
    let rows = chunk.rows();
    let mut expected = Selection::none(rows);
    (0..rows)
        .filter(|&row| passes(row))
        .for_each(|row| expected.insert(row));

    let (excludes, covers) = (
        predicate.excludes(chunk.zone()),
        predicate.covers(chunk.zone(), rows),
    );
    prop_assert!(
        !excludes || expected.is_empty(),
        "{:?} excludes {:?}",
        predicate,
        chunk.zone()
    );
    prop_assert!(
        !covers || expected.is_all(),
        "{:?} covers {:?}",
        predicate,
        chunk.zone()
    );

    for isa in Isa::supported() {
        for share in [1000, 900, 50, 1] {
            let before = if share == 1000 {
                Selection::all(rows)
            } else {
                shape.selection(share)
            };
            let mut after = before.clone();
            chunk.filter(isa, predicate, &mut after);
            let mut wanted = expected.clone();
            wanted.and(&before);
            prop_assert_eq!(
                &after,
                &wanted,
                "{:?} on {} {}",
                predicate,
                chunk.encoding(),
                isa.name()
            );
        }
        prop_assert_eq!(
            chunk.count(isa, predicate),
            expected.count(),
            "{:?}",
            predicate
        );
    }
    for share in [50, 1] {
        let few = shape.selection(share);
        let wanted = few.iter_ones().filter(|&row| expected.contains(row));
        let wanted: Vec<u32> = wanted.map(|row| row as u32).collect();
        for isa in Isa::supported() {
            let mut after: Vec<u32> = few.iter_ones().map(|row| row as u32).collect();
            chunk.retain(isa, predicate, &mut after);
            prop_assert_eq!(&after, &wanted, "{:?} on {}", predicate, chunk.encoding());
        }
    }
    Ok(())
}

fn bitmap(values: &[i64], first: i64, bits: usize) -> Arc<[u64]> {
    let mut words = vec![0; bits.div_ceil(64)];
    for &value in values {
        let bit = value as i128 - first as i128;
        if (0..bits as i128).contains(&bit) {
            words[bit as usize / 64] |= 1 << (bit % 64);
        }
    }
    words.into()
}

/// Predicates near the values: with bounds that occur, that just do not, and far away.
fn predicates(values: &[Option<i64>], random: &mut Random) -> Vec<ColumnPredicate> {
    let known: Vec<i64> = values.iter().flatten().copied().take(500).collect();
    let near = |random: &mut Random| match random.below(6) {
        0 => random.next() as i64,
        1 => random.pick(&[i64::MIN, i64::MAX, 0, -1, 1]),
        _ if known.is_empty() => 5,
        step => random.pick(&known).saturating_add(step as i64 - 3),
    };
    let mut predicates = vec![
        ColumnPredicate::Null,
        ColumnPredicate::NotNull,
        ColumnPredicate::Never,
        ColumnPredicate::IntegerSet([].into()),
        ColumnPredicate::IntegerBitmap {
            first: 3,
            words: [].into(),
        },
    ];
    for _ in 0..4 {
        let (a, b) = (near(random), near(random));
        let (low, high) = (a.min(b), a.max(b));
        predicates.push(ColumnPredicate::Integers { low, high });
        predicates.push(ColumnPredicate::Integers { low: a, high: a });
        predicates.push(ColumnPredicate::NotIntegers { low, high });
        predicates.push(ColumnPredicate::NotIntegers { low: a, high: a });
        predicates.push(ColumnPredicate::Integers { low: a, high: b });
        let count = random.pick(&[1, 2, 30, 400]);
        let mut set: Vec<i64> = (0..count).map(|_| near(random)).collect();
        set.sort_unstable();
        set.dedup();
        let first = set[0].saturating_sub(random.below(200) as i64);
        let words = bitmap(&set, first, random.pick(&[64, 128, 3000]));
        predicates.push(ColumnPredicate::IntegerBitmap { first, words });
        predicates.push(ColumnPredicate::IntegerSet(set.into()));
        // One run of bits, or of zeros.
        let run: Vec<i64> = (0..random.below(90) as i64)
            .map(|i| a.saturating_add(i))
            .collect();
        let first = a.saturating_sub(70);
        let words = bitmap(&run, first, 256);
        let inverse: Vec<u64> = words.iter().map(|word| !word).collect();
        predicates.push(ColumnPredicate::IntegerBitmap { first, words });
        predicates.push(ColumnPredicate::IntegerBitmap {
            first,
            words: inverse.into(),
        });
    }
    predicates
}

fn integer_passes(predicate: &ColumnPredicate, value: Option<i64>) -> bool {
    let has = |words: &[u64], bit: i128| {
        bit >= 0
            && bit < words.len() as i128 * 64
            && words[bit as usize / 64] >> (bit as usize % 64) & 1 == 1
    };
    match (predicate, value) {
        (ColumnPredicate::Null, value) => value.is_none(),
        (_, None) => false,
        (ColumnPredicate::NotNull, _) => true,
        (ColumnPredicate::Never, _) => false,
        (ColumnPredicate::Integers { low, high }, Some(v)) => *low <= v && v <= *high,
        (ColumnPredicate::NotIntegers { low, high }, Some(v)) => v < *low || v > *high,
        (ColumnPredicate::IntegerBitmap { first, words }, Some(v)) => {
            has(words, v as i128 - *first as i128)
        }
        (ColumnPredicate::Codes(words), Some(v)) => has(words, v as i128),
        (ColumnPredicate::IntegerSet(set), Some(v)) => set.contains(&v),
        (other, _) => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn on_integers(shape in shapes(), bits in 0u32..=64, narrow in any::<bool>()) {
        let types = [
            (DataType::Int64, i64::MIN as i128, i64::MAX as i128),
            (DataType::UInt64, 0, u64::MAX as i128),
            (DataType::Boolean, 0, 1),
        ];
        let bits = if narrow { bits % 20 } else { bits };
        for (data_type, low, high) in types {
            let values = integers(&shape, low, high, bits);
            let chunk = encode(&integer_array(&data_type, &values), None);
            let values: Vec<_> =
                values.iter().map(|v| v.map(|v| to_integer(&data_type, v))).collect();
            for predicate in predicates(&values, &mut Random(shape.seed ^ 2)) {
                check(&chunk, &predicate, &shape, |row| integer_passes(&predicate, values[row]))?;
            }
        }
    }

    #[test]
    fn on_codes(shape in shapes()) {
        let values = shape.values(string);
        let array = string_array(&values);
        let before = shape.seed as usize % 300;
        let others: Vec<_> = (0..before).map(|number| format!("other {number}")).collect();
        let dictionary = Dictionary::new().extend(others.iter().map(String::as_str));
        let missing = unknown(&dictionary, &array);
        let dictionary = dictionary.extend(missing.iter().map(String::as_str));
        let chunk = encode(&array, Some(&dictionary));
        let codes: Vec<Option<i64>> = values
            .iter()
            .map(|value| value.as_ref().map(|value| dictionary.code(value).unwrap().0 as i64))
            .collect();
        let mut random = Random(shape.seed ^ 3);
        for share in [0, 1, 30, 500, 999, 1000] {
            let all = 0..dictionary.len() as i64;
            let some: Vec<i64> = all.filter(|_| random.below(1000) < share).collect();
            let predicate = ColumnPredicate::Codes(bitmap(&some, 0, dictionary.len()));
            check(&chunk, &predicate, &shape, |row| integer_passes(&predicate, codes[row]))?;
        }
        for code in [0, dictionary.len() / 2, dictionary.len()] {
            let predicate = ColumnPredicate::Codes(bitmap(&[code as i64], 0, code + 1));
            check(&chunk, &predicate, &shape, |row| integer_passes(&predicate, codes[row]))?;
        }
        for predicate in [ColumnPredicate::Null, ColumnPredicate::NotNull] {
            check(&chunk, &predicate, &shape, |row| integer_passes(&predicate, codes[row]))?;
        }
    }

    #[test]
    fn on_floats(shape in shapes()) {
        let doubles = shape.values(float);
        let singles = shape.values(single);
        let chunks = [
            (encode(&Float64Array::from(doubles.clone()), None), doubles.clone()),
            (
                encode(&Float32Array::from(singles.clone()), None),
                singles.iter().map(|value| value.map(wide)).collect(),
            ),
        ];
        let mut random = Random(shape.seed ^ 4);
        for (chunk, values) in chunks {
            let known: Vec<f64> = values.iter().flatten().copied().take(300).collect();
            for _ in 0..12 {
                let mut bound = || {
                    let at = match random.below(3) {
                        0 if !known.is_empty() => random.pick(&known),
                        1 => random.pick(&[0.0, -0.0, 0.1, -0.1, 1e300, f64::NAN, -f64::NAN]),
                        _ => float(&mut random),
                    };
                    random.pick(&[Bound::Unbounded, Bound::Included(at), Bound::Excluded(at)])
                };
                let (low, high) = (bound(), bound());
                let predicate = ColumnPredicate::Floats { low, high };
                let keys = (low.map(Total), high.map(Total));
                check(&chunk, &predicate, &shape, |row| {
                    values[row].is_some_and(|value| keys.contains(&Total(value)))
                })?;
            }
        }
    }

    #[test]
    fn on_plain_text(shape in shapes()) {
        let values = shape.values(string);
        let chunk = encode(&string_array(&values), None);
        let test: StringTest = Arc::new(|strings: &StringViewArray| {
            // NULL, instead of false, for the empty string.
            let answer = |text: &str| (!text.is_empty()).then_some(text.contains('1'));
            strings.iter().map(|text| answer(text.unwrap_or("1"))).collect::<BooleanArray>()
        });
        let contains = |text: &String| text.contains('1');
        let predicate = ColumnPredicate::StringTest(test);
        check(&chunk, &predicate, &shape, |row| values[row].as_ref().is_some_and(contains))?;
        check(&chunk, &ColumnPredicate::Null, &shape, |row| values[row].is_none())?;
        check(&chunk, &ColumnPredicate::NotNull, &shape, |row| values[row].is_some())?;
    }
}

/// A single-precision float in double precision; unlike a cast, this keeps the bits of a signalling NaN.
fn wide(value: f32) -> f64 {
    if !value.is_nan() {
        return value as f64;
    }
    let bits = value.to_bits() as u64;
    f64::from_bits((bits & 0x8000_0000) << 32 | 0x7ff << 52 | (bits & 0x7f_ffff) << 29)
}

/// Compares in total order.
#[derive(Clone, Copy)]
struct Total(f64);

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.0.total_cmp(&other.0))
    }
}

#[test]
fn zones_decide_what_they_can() {
    let zone = |nulls, range| Zone { nulls, range };
    let integers = zone(0, ZoneRange::Integer(10, 20));
    let within = |low, high| ColumnPredicate::Integers { low, high };
    assert!(within(21, 90).excludes(&integers));
    assert!(within(-5, 9).excludes(&integers));
    assert!(!within(20, 90).excludes(&integers));
    assert!(within(10, 20).covers(&integers, 5));
    assert!(!within(11, 20).covers(&integers, 5));
    assert!(!within(10, 20).covers(&zone(1, ZoneRange::Integer(10, 20)), 5));
    let set = ColumnPredicate::IntegerSet([1, 9, 21, 400].into());
    assert!(set.excludes(&integers));
    let all = ColumnPredicate::IntegerSet((0..30).collect());
    assert!(all.covers(&integers, 5));
    let codes = ColumnPredicate::Codes([0b1100].into());
    assert!(codes.excludes(&zone(0, ZoneRange::Codes(4, 700))));
    assert!(codes.covers(&zone(0, ZoneRange::Codes(2, 3)), 5));
    let positive = ColumnPredicate::Floats {
        low: Bound::Excluded(0.0),
        high: Bound::Unbounded,
    };
    assert!(positive.covers(&zone(0, ZoneRange::Float(0.5, f64::NAN)), 5));
    assert!(positive.excludes(&zone(0, ZoneRange::Float(-1.0, 0.0))));
    let empty = zone(5, ZoneRange::Empty);
    assert!(within(i64::MIN, i64::MAX).excludes(&empty));
    assert!(ColumnPredicate::NotNull.excludes(&empty));
    assert!(ColumnPredicate::Null.covers(&empty, 5));
    assert!(ColumnPredicate::Null.excludes(&integers));
    assert!(ColumnPredicate::NotNull.covers(&integers, 5));
}
