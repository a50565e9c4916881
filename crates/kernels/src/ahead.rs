//! Memory that will be needed soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the cache lines of a value, without waiting for them: a pointer that leads from here to there is followed
/// later, when they have come.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = std::ptr::from_ref(value).cast::<i8>();
        for at in (0..size_of_val(value)).step_by(LINE) {
            // SAFETY: a hint, which reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(at)) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}
