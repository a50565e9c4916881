//! What the files of the x86 instruction sets have in common: functions of the same text that are compiled for the
//! features of each. They are macros because a function's features are part of its declaration.

/// Plain code of `portable`, compiled for these features. The calls are inlined, and with them the features apply.
macro_rules! plain_code {
    ($features:literal: $(fn $name:ident($($argument:ident: $t:ty),* $(,)?) $(-> $result:ty)?;)*) => {$(
        #[target_feature(enable = $features)]
        pub(crate) fn $name($($argument: $t),*) $(-> $result)? {
            portable::$name($($argument),*)
        }
    )*};
}
pub(crate) use plain_code;

/// Kernels that choose the function for the lane of a width.
macro_rules! kernels_by_lane {
    ($features:literal: $(fn $name:ident($($argument:ident: $t:ty),* $(,)?) $(-> $result:ty)? = $of_lane:ident;)*) => {$(
        #[target_feature(enable = $features)]
        pub(crate) fn $name(width: u8, $($argument: $t),*) $(-> $result)? {
            $crate::layout::by_lane!(width, $of_lane($($argument),*))
        }
    )*};
}
pub(crate) use kernels_by_lane;

/// Kernels that need nothing but one instruction beside plain code.
macro_rules! one_instruction_kernels {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub(crate) fn select_bits(
            bits: &[u64; MASK_WORDS],
            mask: &[u64; MASK_WORDS],
            out: &mut [u64; MASK_WORDS],
        ) -> usize {
            portable::select_bits_with(bits, mask, out, |bits, mask| _pext_u64(bits, mask))
        }

        #[target_feature(enable = $features)]
        pub(crate) fn runs_and(starts: &[u64], runs: &[u64], masks: &mut [u64]) -> usize {
            portable::runs_and_with(starts, runs, masks, |bits, places| _pdep_u64(bits, places))
        }

        #[target_feature(enable = $features)]
        pub(crate) fn take_packed(
            width: u8,
            words: &[u64],
            base: i64,
            positions: &[u32],
            out: &mut [i64],
        ) {
            portable::take_packed_with(width, words, base, positions, out, |word| {
                _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast());
            });
        }
    };
}
pub(crate) use one_instruction_kernels;

/// Comparison of plain values: a register of so many bytes at a time, the ragged end in plain code. `load` reads
/// register `i` of 64 values.
macro_rules! between_plain {
    (
        $features:literal, $bytes:literal:
        $(fn $name:ident($t:ty) = $splat:ident, |$v:ident, $lo:ident, $hi:ident| $inside:expr;)*
    ) => {$(
        #[target_feature(enable = $features)]
        pub(crate) fn $name(values: &[$t], lo: $t, hi: $t, masks: &mut [u64]) {
            const STEP: usize = $bytes / size_of::<$t>();
            let ($lo, $hi) = ($splat(lo), $splat(hi));
            let (whole, end) = values.as_chunks::<64>();
            for (mask, values) in masks.iter_mut().zip(whole) {
                let mut bits = 0;
                for i in (0..64 / STEP).rev() {
                    let $v = load(&values[i * STEP..]);
                    bits = bits << STEP | $inside as u64;
                }
                *mask = bits;
            }
            portable::$name(end, lo, hi, &mut masks[whole.len()..]);
        }
    )*};
}
pub(crate) use between_plain;
