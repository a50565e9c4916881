//! Every instruction set against the obvious loop: runs and sums.

use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use proptest::prelude::*;

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        any::<u64>(),
        (0..64u32).prop_map(|b| 1 << b),
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(a, b, c)| a & b & c),
    ]
}

/// Under Miri there are no files to keep failures in, and little time.
fn config() -> ProptestConfig {
    match cfg!(miri) {
        true => ProptestConfig {
            cases: 2,
            failure_persistence: None,
            ..Default::default()
        },
        false => ProptestConfig::with_cases(1000),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn runs_and(
        starts in prop::collection::vec(word(), 1..40),
        runs in prop::collection::vec(word(), 40),
        masks in prop::collection::vec(word(), 40),
    ) {
        let mut starts = starts;
        starts[0] |= 1;
        let masks = &masks[..starts.len()];
        let mut expected = masks.to_vec();
        let mut run = usize::MAX;
        for row in 0..starts.len() * 64 {
            run = run.wrapping_add((starts[row / 64] >> (row % 64) & 1) as usize);
            let passed = runs[run / 64] >> (run % 64) & 1;
            expected[row / 64] &= !((1 - passed) << (row % 64));
        }
        // No more words than hold the runs.
        let runs = &runs[..run / 64 + 1];
        for isa in Isa::supported() {
            let mut found = masks.to_vec();
            isa.runs_and(&starts, runs, &mut found);
            prop_assert_eq!(&found, &expected, "{:?}", isa);
        }
    }

    #[test]
    fn repeat(
        starts in prop::array::uniform16(word()),
        values in prop::collection::vec(any::<i64>(), VECTOR),
        spare in 0usize..9,
    ) {
        let starts: [u64; MASK_WORDS] = starts;
        let mut at = 0;
        let expected: Vec<i64> = (0..VECTOR).map(|row| {
            at += if row > 0 { (starts[row / 64] >> (row % 64) & 1) as usize } else { 0 };
            values[at]
        }).collect();
        let values = &values[..(at + 1 + spare).min(VECTOR)];
        for isa in Isa::supported() {
            let mut found = [0; VECTOR];
            isa.repeat_i64(values, &starts, &mut found);
            prop_assert_eq!(&found[..], &expected[..], "{:?}", isa);
        }
    }

    #[test]
    fn running_sums(start in any::<i64>(), values in prop::collection::vec(any::<i64>(), VECTOR)) {
        let mut sum = start;
        let expected: Vec<i64> = values.iter().map(|value| {
            sum = sum.wrapping_add(*value);
            sum
        }).collect();
        for isa in Isa::supported() {
            let mut found: [i64; VECTOR] = values.as_slice().try_into().unwrap();
            isa.running_sums(start, &mut found);
            prop_assert_eq!(&found[..], &expected[..], "{:?}", isa);
        }
    }
}

#[test]
#[should_panic(expected = "bits of 3 runs")]
fn every_run_has_a_bit() {
    Isa::portable().runs_and(&[0b111], &[], &mut [0]);
}

#[test]
#[should_panic(expected = "3 values")]
fn every_run_has_a_value() {
    let mut starts = [0; MASK_WORDS];
    starts[0] = 0b111;
    Isa::portable().repeat_i64(&[1, 2], &starts, &mut [0; VECTOR]);
}
