//! Every instruction set against the obvious loop, on plain arrays.

use eris_kernels::{Isa, MASK_WORDS, VECTOR, and, and_not, not, or, popcount};
use proptest::prelude::*;
use std::cmp::Ordering;

fn bit(masks: &[u64], i: usize) -> bool {
    masks[i / 64] >> (i % 64) & 1 == 1
}

/// Rows 0 to `values.len()`, and nothing beyond.
fn mask_of<T: Copy>(values: &[T], keep: impl Fn(T) -> bool) -> Vec<u64> {
    let mut masks = vec![0; values.len().div_ceil(64)];
    for (i, &value) in values.iter().enumerate() {
        masks[i / 64] |= (keep(value) as u64) << (i % 64);
    }
    masks
}

fn integers() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MIN), Just(i64::MAX), -3..3i64, any::<i64>()]
}

fn floats() -> impl Strategy<Value = f64> {
    let edges = vec![
        f64::NAN,
        -f64::NAN,
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1.0,
        -1.0,
    ];
    prop_oneof![prop::sample::select(edges), any::<f64>()]
}

/// The order of PostgreSQL: zeros are equal, NaN is equal to itself and greatest.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()))
}

fn mask() -> impl Strategy<Value = [u64; MASK_WORDS]> {
    let word = prop_oneof![
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
        (0..64u32).prop_map(|b| 1 << b)
    ];
    prop::array::uniform16(word)
}

/// Under Miri there are no files to keep failures in, and little time.
fn config() -> ProptestConfig {
    match cfg!(miri) {
        true => ProptestConfig {
            cases: 2,
            failure_persistence: None,
            ..Default::default()
        },
        false => ProptestConfig::with_cases(2000),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn between_i64(
        values in prop::collection::vec(integers(), 0..300), lo in integers(), hi in integers(),
    ) {
        let expected = mask_of(&values, |v| lo <= v && v <= hi);
        for isa in Isa::supported() {
            let mut masks = vec![u64::MAX; expected.len()];
            isa.between_i64(&values, lo, hi, &mut masks);
            prop_assert_eq!(&masks, &expected, "{:?}", isa);
        }
    }

    #[test]
    fn between_floats(
        values in prop::collection::vec(floats(), 0..300), lo in floats(), hi in floats(),
    ) {
        let inside = |v: f64, lo, hi| compare(lo, v).is_le() && compare(v, hi).is_le();
        let expected = mask_of(&values, |v| inside(v, lo, hi));
        let narrow: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        let (lo32, hi32) = (lo as f32, hi as f32);
        let expected32 = mask_of(&narrow, |v| inside(v as f64, lo32 as f64, hi32 as f64));
        for isa in Isa::supported() {
            let mut masks = vec![u64::MAX; expected.len()];
            isa.between_f64(&values, lo, hi, &mut masks);
            prop_assert_eq!(&masks, &expected, "f64, {:?}", isa);
            isa.between_f32(&narrow, lo32, hi32, &mut masks);
            prop_assert_eq!(&masks, &expected32, "f32, {:?}", isa);
        }
    }

    #[test]
    fn selecting_and_expanding(mask in mask(), bits in mask(), fill: i64) {
        let rows: Vec<usize> = (0..VECTOR).filter(|&i| bit(&mask, i)).collect();
        let values: [i64; VECTOR] = std::array::from_fn(|i| (i as i64) << 33 | i as i64);
        let narrow: [u32; VECTOR] = std::array::from_fn(|i| (i as u32) << 20 | i as u32);
        for isa in Isa::supported() {
            let mut out = [-1; VECTOR];
            let n = isa.select_i64(&values, &mask, &mut out);
            prop_assert!(out[..n].iter().eq(rows.iter().map(|&i| &values[i])), "i64, {:?}", isa);

            let mut back = [-1; VECTOR];
            prop_assert_eq!(isa.expand_i64(&out[..n], &mask, fill, &mut back), n);
            let expected: [i64; VECTOR] =
                std::array::from_fn(|i| if bit(&mask, i) { values[i] } else { fill });
            prop_assert_eq!(back, expected, "expand, {:?}", isa);

            let mut out = [u32::MAX; VECTOR];
            let n = isa.select_u32(&narrow, &mask, &mut out);
            prop_assert!(out[..n].iter().eq(rows.iter().map(|&i| &narrow[i])), "u32, {:?}", isa);

            let mut out = [u64::MAX; MASK_WORDS];
            prop_assert_eq!(isa.select_bits(&bits, &mask, &mut out), rows.len());
            for i in 0..VECTOR {
                let expected = rows.get(i).is_some_and(|&row| bit(&bits, row));
                prop_assert_eq!(bit(&out, i), expected, "bit {}, {:?}", i, isa);
            }
        }
    }

    #[test]
    fn aggregates(values in prop::collection::vec(integers(), 0..300)) {
        let sum: i128 = values.iter().map(|&v| v as i128).sum();
        let ends = values.iter().min().copied().zip(values.iter().max().copied());
        for isa in Isa::supported() {
            prop_assert_eq!(isa.sum_i64(&values), sum, "{:?}", isa);
            prop_assert_eq!(isa.min_max_i64(&values), ends, "{:?}", isa);
        }
    }

    #[test]
    fn sum_f64_has_the_documented_order(values in prop::collection::vec(floats(), 0..300)) {
        let mut sums: Vec<f64> =
            (0..32).map(|i| values.iter().skip(i).step_by(32).fold(0.0, |a, b| a + b)).collect();
        while sums.len() > 1 {
            let half = sums.split_off(sums.len() / 2);
            sums.iter_mut().zip(half).for_each(|(a, b)| *a += b);
        }
        for isa in Isa::supported() {
            let sum = isa.sum_f64(&values);
            let same = sum.to_bits() == sums[0].to_bits() || sum.is_nan() && sums[0].is_nan();
            prop_assert!(same, "{} is not {}, {:?}", sum, sums[0], isa);
        }
    }

    #[test]
    fn masks_are_sets(a in prop::collection::vec(any::<u64>(), 0..80), seed: u64) {
        let b: Vec<u64> = a.iter().map(|word| word.rotate_left(7).wrapping_mul(seed | 1)).collect();
        let ones = |f: &dyn Fn(bool, bool) -> bool| {
            (0..a.len() * 64).filter(|&i| f(bit(&a, i), bit(&b, i))).count() as u64
        };
        for isa in Isa::supported() {
            prop_assert_eq!(isa.popcount(&a), ones(&|a, _| a), "{:?}", isa);
        }
        let combined = |f: &dyn Fn(&mut [u64], &[u64])| {
            let mut masks = a.clone();
            f(&mut masks, &b);
            masks
        };
        let (both, either) = (combined(&and), combined(&or));
        let (only_a, not_a) = (combined(&and_not), combined(&|masks, _| not(masks)));
        prop_assert_eq!(popcount(&both), ones(&|a, b| a && b));
        prop_assert_eq!(popcount(&either), ones(&|a, b| a || b));
        prop_assert_eq!(popcount(&only_a), ones(&|a, b| a && !b));
        prop_assert_eq!(popcount(&not_a), ones(&|a, _| !a));
        prop_assert!(a.iter().zip(&not_a).all(|(a, n)| a & n == 0));
        prop_assert!(both.iter().zip(&only_a).zip(&a).all(|((b, o), a)| b | o == *a));
    }
}

/// More values than any loop takes at once, with a remainder, at the ends of the range.
#[test]
fn sums_do_not_overflow() {
    for (value, n) in [
        (i64::MAX, 5003),
        (i64::MIN, 5003),
        (-1, 5003),
        (1 << 32, 5003),
    ] {
        for isa in Isa::supported() {
            assert_eq!(
                isa.sum_i64(&vec![value; n]),
                value as i128 * n as i128,
                "{isa:?}"
            );
        }
    }
}
