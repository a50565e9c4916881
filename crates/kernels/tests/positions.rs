//! Every instruction set against the obvious loop: rows by their numbers.

use eris_kernels::{Isa, MASK_WORDS, SPARE_POSITIONS, VECTOR, pack};
use proptest::prelude::*;

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Of one row in `sparse` some, in all of the words.
fn masks(words: usize, sparse: u64, seed: u64) -> Vec<u64> {
    let mut next = numbers(seed);
    let mut bit = |bit| u64::from(next().is_multiple_of(sparse)) << bit;
    (0..words)
        .map(|_| (0..64).fold(0, |word, at| word | bit(at)))
        .collect()
}

fn positions_of(masks: &[u64]) -> Vec<u32> {
    let bits = 0..masks.len() * 64;
    bits.filter(|bit| masks[bit / 64] >> (bit % 64) & 1 == 1)
        .map(|bit| bit as u32)
        .collect()
}

fn positions_agree(masks: &[u64]) {
    let expected = positions_of(masks);
    for isa in Isa::supported() {
        let mut found = vec![7; expected.len() + SPARE_POSITIONS];
        let count = isa.positions(masks, &mut found);
        assert_eq!(&found[..count], expected, "{isa:?}");
    }
}

fn take_agrees(width: u8, vectors: usize, positions: &[u32], base: i64, seed: u64) {
    let mut next = numbers(seed);
    let max = if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width)
    };
    let values: Vec<u64> = (0..vectors * VECTOR).map(|_| next() & max).collect();
    let per_vector = MASK_WORDS * width as usize;
    let mut words = vec![0; vectors * per_vector];
    for (vector, values) in values.chunks_exact(VECTOR).enumerate() {
        let out = &mut words[vector * per_vector..][..per_vector];
        pack(values.try_into().unwrap(), width, out);
    }
    let value = |&position: &u32| base.wrapping_add(values[position as usize] as i64);
    let expected: Vec<i64> = positions.iter().map(value).collect();
    for isa in Isa::supported() {
        let mut found = vec![-1; positions.len()];
        isa.take_packed(width, &words, base, positions, &mut found);
        assert_eq!(found, expected, "{isa:?}, width {width}");
    }
}

/// Under Miri there are no files to keep failures in, and little time.
fn config() -> ProptestConfig {
    match cfg!(miri) {
        true => ProptestConfig {
            cases: 2,
            failure_persistence: None,
            ..Default::default()
        },
        false => ProptestConfig::with_cases(500),
    }
}

fn sparse() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![1, 2, 3, 6, 20, 100, 500, 5_000])
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn positions_are_the_set_bits(words in 0..80usize, sparse in sparse(), seed: u64) {
        positions_agree(&masks(words, sparse, seed));
    }

    #[test]
    fn values_are_those_at_the_positions(
        width in 0..=64u8, vectors in 1..9usize, sparse in sparse(), base: i64, seed: u64,
        shuffled: bool,
    ) {
        let mut positions = positions_of(&masks(vectors * MASK_WORDS, sparse, !seed));
        if shuffled {
            let mut next = numbers(seed ^ 5);
            positions.sort_by_cached_key(|_| next());
        }
        take_agrees(width, vectors, &positions, base, seed);
    }

    #[test]
    fn runs_are_counted_by_their_starts(
        words in 1..200usize, of_starts in sparse(), of_rows in sparse(), seed: u64,
    ) {
        let mut starts = masks(words, of_starts, seed);
        starts[0] |= 1;
        let rows = positions_of(&masks(words, of_rows, !seed));
        let started = positions_of(&starts);
        let run = |row: &u32| started.partition_point(|start| start <= row) as u32 - 1;
        let expected: Vec<u32> = rows.iter().map(run).collect();
        for isa in Isa::supported() {
            let mut found = vec![7; rows.len()];
            isa.runs_of(&starts, &rows, &mut found);
            prop_assert_eq!(&found, &expected, "{:?}", isa);
        }
    }
}

/// Chance may leave a width out; this does not.
#[test]
fn every_width() {
    let miri = |width| !cfg!(miri) || matches!(width, 0 | 7 | 13 | 27 | 59 | 64);
    for width in (0..=64).filter(|&width| miri(width)) {
        let vectors = if cfg!(miri) { 1 } else { 7 };
        for sparse in [1, 30] {
            let positions = positions_of(&masks(vectors * MASK_WORDS, sparse, width.into()));
            take_agrees(width, vectors, &positions, i64::MAX, width.into());
        }
    }
}

#[test]
fn full_masks_need_no_more_room_than_said() {
    positions_agree(&[u64::MAX; 2 * MASK_WORDS]);
    positions_agree(&[]);
}

#[test]
#[should_panic(expected = "position 1024 of 1 vectors")]
fn positions_beyond_the_words_are_rejected() {
    Isa::best().take_packed(3, &[0; 48], 0, &[1023, 1024, 5], &mut [0; 3]);
}

#[test]
#[should_panic(expected = "room for 1 positions")]
fn too_little_room_is_rejected() {
    Isa::best().positions(&[8], &mut [0; SPARE_POSITIONS]);
}

#[test]
#[should_panic]
fn rows_beyond_the_starts_are_rejected() {
    Isa::best().runs_of(&[1], &[64], &mut [0]);
}
