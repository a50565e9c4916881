//! Asking for memory before it is needed.

use std::ptr::NonNull;

/// Asks for the cache line of an address, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch(address: NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; it touches no memory and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.as_ptr().cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
