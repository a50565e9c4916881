//! Positions of set bits, 64 at a time: the bytes 0 to 63, of which the mask keeps some.

use super::registers::{load, store};
use std::arch::x86_64::*;

static BYTES: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn positions(masks: &[u64], out: &mut [u32]) {
    let bytes = load(&BYTES);
    let mut n = 0;
    let mut add = |word: usize, mask: u64| {
        let positions = _mm512_maskz_compress_epi8(mask, bytes);
        let first = _mm512_set1_epi32(word as i32 * 64);
        let wide = |part| _mm512_add_epi32(_mm512_cvtepu8_epi32(part), first);
        let count = mask.count_ones() as usize;
        store(&mut out[n..], wide(_mm512_castsi512_si128(positions)));
        if count > 16 {
            // There is room for 64 more than there are positions.
            store(
                &mut out[n + 16..],
                wide(_mm512_extracti32x4_epi32::<1>(positions)),
            );
            store(
                &mut out[n + 32..],
                wide(_mm512_extracti32x4_epi32::<2>(positions)),
            );
            store(
                &mut out[n + 48..],
                wide(_mm512_extracti32x4_epi32::<3>(positions)),
            );
        }
        n += count;
    };
    // Where few bits are set most words have none: these are passed over, eight at a time.
    let (blocks, rest) = masks.as_chunks::<8>();
    for (block, masks) in blocks.iter().enumerate() {
        let words = load(&masks[..]);
        let mut left = _mm512_test_epi64_mask(words, words);
        while left != 0 {
            let word = left.trailing_zeros() as usize;
            add(block * 8 + word, masks[word]);
            left &= left - 1;
        }
    }
    for (word, &mask) in rest.iter().enumerate() {
        add(blocks.len() * 8 + word, mask);
    }
}
