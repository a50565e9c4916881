//! Every instruction set against the values that were packed, on every width.

use eris_kernels::{Isa, MASK_WORDS, PassedValues, RangeTest, VECTOR, pack, popcount};
use proptest::prelude::*;
use std::fmt;

/// Vectors of a width, reproducible from the seed.
#[derive(Clone)]
struct Packed {
    width: u8,
    seed: u64,
    values: Vec<u64>,
    words: Vec<u64>,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, seed) = (self.width, self.seed);
        write!(f, "packed({width}, {}, {seed})", self.values.len() / VECTOR)
    }
}

fn max(width: u8) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width)
    }
}

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

fn packed(width: u8, vectors: usize, seed: u64) -> Packed {
    let mut next = numbers(seed);
    let mut value = || match next() % 8 {
        0 => 0,
        1 => max(width),
        2 => next() & max(width) & 0xff,
        _ => next() & max(width),
    };
    let values: Vec<u64> = (0..vectors * VECTOR).map(|_| value()).collect();
    let per_vector = 16 * width as usize;
    let mut words = vec![u64::MAX; vectors * per_vector];
    for (v, values) in values.chunks_exact(VECTOR).enumerate() {
        let out = &mut words[v * per_vector..][..per_vector];
        pack(values.try_into().unwrap(), width, out);
    }
    Packed {
        width,
        seed,
        values,
        words,
    }
}

fn random_masks(vectors: usize, density: u64, seed: u64) -> Vec<u64> {
    let mut next = numbers(!seed);
    let mut words = Vec::new();
    for _ in 0..vectors {
        let density = if density == 9 { next() % 9 } else { density };
        words.extend((0..MASK_WORDS).map(|_| match density {
            0 => 0,
            1 => next().is_multiple_of(4) as u64 * (1 << (next() % 64)),
            2 => next() & next() & next(),
            3..=6 => next(),
            7 => next() | next() | next(),
            _ => u64::MAX,
        }));
    }
    words
}

fn bit(masks: &[u64], i: usize) -> bool {
    masks[i / 64] >> (i % 64) & 1 == 1
}

fn mask_of(values: &[u64], keep: impl Fn(usize, u64) -> bool) -> Vec<u64> {
    let mut masks = vec![0; values.len() / 64];
    for (i, &value) in values.iter().enumerate() {
        masks[i / 64] |= (keep(i, value) as u64) << (i % 64);
    }
    masks
}

fn any_packed() -> impl Strategy<Value = Packed> {
    (0..=64u8, 0..4usize, any::<u64>())
        .prop_map(|(width, vectors, seed)| packed(width, vectors, seed))
}

/// A packed input with a bound that often is a value of it, its neighbour, or an end of the value range.
fn with_bounds() -> impl Strategy<Value = (Packed, u64, u64)> {
    let pick = (0..8u8, any::<prop::sample::Index>(), any::<u64>());
    (any_packed(), pick.clone(), pick).prop_map(|(packed, lo, hi)| {
        let bound = |(kind, index, random): (u8, prop::sample::Index, u64)| match kind {
            0 => 0,
            1 => max(packed.width),
            2 => u64::MAX,
            3 => random,
            4 => random & max(packed.width),
            _ if packed.values.is_empty() => 1,
            5 => packed.values[index.index(packed.values.len())].wrapping_add(1),
            _ => packed.values[index.index(packed.values.len())],
        };
        let (lo, hi) = (bound(lo), bound(hi));
        (packed, lo, hi)
    })
}

fn between_agrees(packed: &Packed, lo: u64, hi: u64, before: &[u64]) {
    let Packed {
        width,
        values,
        words,
        ..
    } = packed;
    let expected = mask_of(values, |_, value| lo <= value && value <= hi);
    for isa in Isa::supported() {
        let what = format!("{isa:?}, width {width}, {lo}..={hi}");
        let mut masks = before.to_vec();
        isa.between(*width, words, lo, hi, &mut masks);
        assert_eq!(masks, expected, "between, {what}");
        let mut masks = before.to_vec();
        isa.between_and(*width, words, lo, hi, &mut masks);
        let both: Vec<u64> = expected.iter().zip(before).map(|(a, b)| a & b).collect();
        assert_eq!(masks, both, "between_and, {what}");
        if *width > 0 {
            let count = isa.count_between(*width, words, lo, hi);
            assert_eq!(count, popcount(&expected), "count_between, {what}");
        }
    }
}

/// Several ranges at a time, of which some are outside, and some only count.
fn between_each_agrees(packed: &Packed, ranges: &[(u64, u64)], density: u64, seed: u64) {
    let Packed {
        width,
        values,
        words,
        ..
    } = packed;
    let vectors = values.len() / VECTOR;
    let mut next = numbers(seed);
    let tests = ranges.iter().map(|&(lo, hi)| {
        let (kind, before) = (next(), random_masks(vectors, density, next()));
        let (outside, counts) = (kind & 1 == 1, kind >> 1 & 3 == 0);
        let inside = |value| lo <= value && value <= hi;
        let passes = mask_of(values, |i, value| {
            (counts || bit(&before, i)) && inside(value) != outside
        });
        (lo, hi, outside, counts, before, passes)
    });
    let tests: Vec<_> = tests.collect();
    for isa in Isa::supported() {
        let mut results: Vec<_> = tests.iter().map(|test| (test.4.clone(), 7)).collect();
        let of = tests.iter().zip(&mut results);
        let of = of.map(
            |(&(lo, hi, outside, counts, ..), (masks, count))| RangeTest {
                lo,
                hi,
                outside,
                passed: match counts {
                    true => PassedValues::Counted(count),
                    false => PassedValues::Kept(masks),
                },
            },
        );
        let mut of: Vec<_> = of.collect();
        isa.between_each(*width, words, vectors, &mut of);
        for ((lo, hi, outside, counts, _, passes), (masks, count)) in tests.iter().zip(&results) {
            let what = format!("{isa:?}, width {width}, {lo}..={hi}, outside: {outside}");
            match counts {
                true => assert_eq!(*count, 7 + popcount(passes), "{what}"),
                false => assert_eq!(masks, passes, "{what}"),
            }
        }
    }
}

fn unpack_agrees(packed: &Packed, base: i64, masks: &[u64]) {
    let Packed {
        width,
        values,
        words,
        ..
    } = packed;
    let per_vector = 16 * *width as usize;
    for (v, values) in values.chunks_exact(VECTOR).enumerate() {
        let words = &words[v * per_vector..][..per_vector];
        let mask: &[u64; MASK_WORDS] = masks[v * MASK_WORDS..][..MASK_WORDS].try_into().unwrap();
        let expected: Vec<i64> = values
            .iter()
            .map(|&v| base.wrapping_add(v as i64))
            .collect();
        let rows = (0..VECTOR).filter(|&i| bit(mask, i));
        let selected: Vec<i64> = rows.map(|i| expected[i]).collect();
        for isa in Isa::supported() {
            let mut out = [-1; VECTOR];
            isa.unpack(*width, words, base, &mut out);
            assert_eq!(out[..], expected, "unpack, {isa:?}, width {width}");
            let n = isa.gather_packed(*width, words, base, mask, &mut out);
            assert_eq!(out[..n], selected, "gather_packed, {isa:?}, width {width}");
            if *width <= 32 {
                let mut out = [1; VECTOR];
                isa.unpack_u32(*width, words, &mut out);
                let equal = out.iter().zip(values).all(|(&a, &b)| a as u64 == b);
                assert!(equal, "unpack_u32, {isa:?}, width {width}");
            }
        }
    }
    for (i, &value) in values.iter().enumerate() {
        assert_eq!(
            Isa::unpack_one(*width, words, i),
            value,
            "unpack_one, width {width}"
        );
    }
}

fn probe_agrees(packed: &Packed, bitmap: &[u64], first: u64, before: &[u64]) {
    let Packed {
        width,
        values,
        words,
        ..
    } = packed;
    let expected = mask_of(values, |i, value| {
        let held = value
            .checked_sub(first)
            .is_some_and(|b| b < 64 * bitmap.len() as u64 && bit(bitmap, b as usize));
        held && bit(before, i)
    });
    for isa in Isa::supported() {
        let mut masks = before.to_vec();
        isa.probe_and(*width, words, bitmap, first, &mut masks);
        let what = format!(
            "{isa:?}, width {width}, {} words from {first}",
            bitmap.len()
        );
        assert_eq!(masks, expected, "probe_and, {what}");
    }
}

/// The sizes at which an implementation may change its way, and their neighbours.
fn bitmap_words() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]);
    prop_oneof![
        (edge, 0..3usize).prop_map(|(edge, near)| (edge + near).saturating_sub(1)),
        0..300usize
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
        false => ProptestConfig::with_cases(2000),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn between_is_a_comparison_of_each_value(
        (packed, lo, hi) in with_bounds(), density in 0..10u64, seed: u64,
    ) {
        let vectors = packed.values.len() / VECTOR;
        between_agrees(&packed, lo, hi, &random_masks(vectors, density, seed));
    }

    #[test]
    fn ranges_together_are_ranges_one_by_one(
        (packed, lo, hi) in with_bounds(), more in 0..20usize, density in 0..10u64, seed: u64,
    ) {
        let mut next = numbers(seed);
        let max = max(packed.width);
        let mut ranges: Vec<_> = (0..more).map(|_| (next() & max, next() & max)).collect();
        ranges.insert(next() as usize % (more + 1), (lo, hi));
        between_each_agrees(&packed, &ranges, density, seed);
    }

    #[test]
    fn unpacking_gives_what_was_packed(
        packed in any_packed(), base: i64, density in 0..10u64, seed: u64,
    ) {
        let vectors = packed.values.len() / VECTOR;
        unpack_agrees(&packed, base, &random_masks(vectors, density, seed));
    }

    #[test]
    fn probing_is_a_test_of_each_value(
        packed in any_packed(), bitmap in bitmap_words(), first in (0..5u8, any::<u64>()),
        density in 0..10u64, seed: u64,
    ) {
        let bitmap = random_masks(bitmap.div_ceil(MASK_WORDS), 4, seed ^ 1)[..bitmap].to_vec();
        let first = match first {
            (0, _) => 0,
            (1, random) => random & 0xff,
            (2, random) => max(packed.width) - (random & 0x3ff).min(max(packed.width)),
            (3, random) => random & max(packed.width),
            (_, random) => random,
        };
        let vectors = packed.values.len() / VECTOR;
        probe_agrees(&packed, &bitmap, first, &random_masks(vectors, density, seed));
    }
}

/// Chance may leave one of 65 widths out; this does not. Miri, which sees memory and not values, gets one of each
/// lane that crosses words, and the ends.
#[test]
fn every_width() {
    let miri = |width| !cfg!(miri) || matches!(width, 0 | 7 | 13 | 27 | 59 | 64);
    for width in (0..=64).filter(|&width| miri(width)) {
        let packed = packed(width, if cfg!(miri) { 1 } else { 2 }, width as u64);
        let masks = random_masks(packed.values.len() / VECTOR, 4, 1);
        unpack_agrees(&packed, i64::MIN, &masks);
        let max = max(width);
        between_agrees(&packed, max / 4, max / 2, &masks);
        probe_agrees(&packed, &[0x1248_5a5a_0001_8000; 70], max / 2, &masks);
        let ranges = [(0, max), (max / 3, max / 2), (1, 0), (max, max), (0, 0)];
        between_each_agrees(&packed, &ranges, 4, width as u64);
        if cfg!(miri) {
            continue;
        }
        for (lo, hi) in [(0, max), (0, max / 2), (max / 3, max), (1, 0), (max, max)] {
            between_agrees(&packed, lo, hi, &masks);
        }
        for bitmap in [&[][..], &[0xf731], &[0x8421; 70], &[0x8421; 3000]] {
            probe_agrees(&packed, bitmap, 0, &masks);
            probe_agrees(&packed, bitmap, max / 2, &masks);
        }
    }
}

#[test]
#[should_panic(expected = "wider than 3 bits")]
fn a_value_that_does_not_fit_is_rejected() {
    pack(&[8; VECTOR], 3, &mut [0; 48]);
}

#[test]
#[should_panic(expected = "words of 1 vectors at 3 bits")]
fn too_few_words_are_rejected() {
    Isa::best().between(3, &[0; 47], 0, 1, &mut [0; 16]);
}

#[test]
#[should_panic(expected = "masks of other vectors")]
fn masks_of_other_vectors_are_rejected() {
    let test = RangeTest {
        lo: 0,
        hi: 1,
        outside: false,
        passed: PassedValues::Kept(&mut [0; 16]),
    };
    Isa::best().between_each(3, &[0; 96], 2, &mut [test]);
}

#[test]
#[should_panic(expected = "values of 0 bits")]
fn vectors_without_words_cannot_be_counted() {
    Isa::best().count_between(0, &[], 0, 1);
}
