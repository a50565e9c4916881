//! Predicates together against the same ones one by one.

mod common;

use arrow_array::{Array, Float64Array, StringViewArray};
use arrow_schema::DataType;
use common::*;
use eris_column::{
    ColumnChunk, ColumnPredicate, ColumnTest, Dictionary, KeyOrder, PassedRows, Selection,
};
use eris_kernels::Isa;
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;

fn encode(array: &dyn Array, dictionary: Option<&Dictionary>) -> ColumnChunk {
    ColumnChunk::encode(array, dictionary, home()).expect("the array can be encoded")
}

/// Some rows, all rows, none.
fn selection(rows: usize, random: &mut Random) -> Selection {
    let mut selection = Selection::all(rows);
    let share = random.pick(&[0, 0, 1, 500, 999, 1000]);
    for row in 0..rows {
        if random.below(1000) < share {
            selection.remove(row);
        }
    }
    selection
}

fn check(
    chunk: &ColumnChunk,
    predicates: &[ColumnPredicate],
    random: &mut Random,
) -> Result<(), TestCaseError> {
    for isa in Isa::supported() {
        let mut results: Vec<(&ColumnPredicate, Option<u64>, Selection)> = Vec::new();
        for _ in 0..random.below(12) {
            let predicate = &predicates[random.below(predicates.len() as u64) as usize];
            let count = (random.below(3) == 0).then_some(77);
            results.push((predicate, count, selection(chunk.rows(), random)));
        }
        let expected: Vec<_> = results
            .iter()
            .map(|(predicate, count, selection)| {
                let mut kept = selection.clone();
                if count.is_none() {
                    chunk.filter(isa, predicate, &mut kept);
                }
                (count.map(|_| chunk.count(isa, predicate) as u64), kept)
            })
            .collect();
        let tests = results.iter_mut().map(|(predicate, count, selection)| {
            let passed = match count {
                Some(count) => PassedRows::Counted(count),
                None => PassedRows::Kept(selection),
            };
            ColumnTest { predicate, passed }
        });
        chunk.filter_together(isa, &mut tests.collect::<Vec<_>>());
        for ((predicate, count, selection), (expected, kept)) in results.iter().zip(&expected) {
            let what = format!("{predicate:?} on {} {}", chunk.encoding(), isa.name());
            prop_assert_eq!(count, expected, "{}", what);
            prop_assert_eq!(selection, kept, "{}", what);
        }
    }
    Ok(())
}

/// Mostly ranges near the values.
fn predicates(values: &[i64], random: &mut Random) -> Vec<ColumnPredicate> {
    let mut predicates = vec![
        ColumnPredicate::Null,
        ColumnPredicate::NotNull,
        ColumnPredicate::Never,
    ];
    for _ in 0..8 {
        let mut near = || match random.below(4) {
            _ if values.is_empty() => 5,
            0 => random.pick(&[i64::MIN, i64::MAX, 0]),
            step => random.pick(values).saturating_add(step as i64 - 2),
        };
        let (a, b) = (near(), near());
        let (low, high) = (a.min(b), a.max(b));
        predicates.push(ColumnPredicate::Integers { low, high });
        predicates.push(ColumnPredicate::NotIntegers { low, high });
        predicates.push(ColumnPredicate::IntegerBitmap {
            first: a.saturating_sub(70),
            words: [random.next(), 0, random.next()].into(),
        });
        let mut set = [a, b, a.wrapping_add(2), b.wrapping_sub(2)].to_vec();
        set.sort_unstable();
        set.dedup();
        predicates.push(ColumnPredicate::IntegerSet(set.into()));
    }
    predicates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn on_integers(shape in shapes(), bits in 0u32..=64, narrow in any::<bool>()) {
        let bits = if narrow { bits % 20 } else { bits };
        let values = integers(&shape, i64::MIN as i128, i64::MAX as i128, bits);
        let chunk = encode(&integer_array(&DataType::Int64, &values), None);
        let mut random = Random(shape.seed ^ 5);
        let mut known: Vec<i64> = values.iter().flatten().map(|&value| value as i64).collect();
        known.truncate(300);
        let predicates = predicates(&known, &mut random);
        check(&chunk, &predicates, &mut random)?;
    }

    #[test]
    fn on_ordinals(shape in shapes(), bits in 0u32..=12) {
        let values = integers(&shape, -2000, 2000, bits);
        let chunk = encode(&integer_array(&DataType::Int64, &values), None);
        let mut random = Random(shape.seed ^ 6);
        let mut keys: Vec<i64> = (-2000..=2000).collect();
        for place in (1..keys.len()).rev() {
            keys.swap(place, random.below(place as u64 + 1) as usize);
        }
        let order = Arc::new(KeyOrder::new(keys).unwrap());
        let Some(chunk) = chunk.stored_by(&order, home()).unwrap() else {
            return Ok(());
        };
        let known: Vec<i64> = values.iter().flatten().map(|&value| value as i64).take(300).collect();
        let of_integers = predicates(&known, &mut random);
        let mut predicates: Vec<_> = of_integers.iter().map(|one| one.by_order(&order)).collect();
        predicates.extend(of_integers);
        check(&chunk, &predicates, &mut random)?;
    }

    #[test]
    fn on_codes(shape in shapes()) {
        let values = shape.values(|random| format!("text {}", random.below(200)));
        let array: StringViewArray = values.iter().map(Option::as_deref).collect();
        let texts: Vec<String> = (0..200).map(|number| format!("text {number}")).collect();
        let dictionary = Dictionary::new().extend(texts.iter().map(String::as_str));
        let chunk = encode(&array, Some(&dictionary));
        let mut random = Random(shape.seed ^ 7);
        let codes = |random: &mut Random| {
            let (from, to) = (random.below(200), random.below(200));
            let mut words = vec![0u64; 4];
            (from..to).for_each(|code| words[code as usize / 64] |= 1 << (code % 64));
            words[0] ^= random.pick(&[0, 0, 0x11]);
            ColumnPredicate::Codes(words.into())
        };
        let mut predicates: Vec<_> = (0..8).map(|_| codes(&mut random)).collect();
        predicates.extend([ColumnPredicate::Null, ColumnPredicate::NotNull]);
        check(&chunk, &predicates, &mut random)?;
    }

    #[test]
    fn on_floats(shape in shapes()) {
        let values = shape.values(|random| random.below(1000) as f64 / 8.0 - 60.0);
        let chunk = encode(&Float64Array::from(values), None);
        let mut random = Random(shape.seed ^ 8);
        let mut bound = || Bound::Included(random.below(1000) as f64 / 8.0 - 60.0);
        let predicates: Vec<_> = (0..8)
            .map(|_| ColumnPredicate::Floats { low: bound(), high: bound() })
            .collect();
        check(&chunk, &predicates, &mut random)?;
    }
}
