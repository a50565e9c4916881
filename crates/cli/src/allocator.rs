//! The allocator of everything that is not column data, and its one setting.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};

/// Results pass through many small allocations on the way to text, and DataFusion's operators through more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h.
const PURGE_DELAY: c_int = 15;

/// Has freed memory given back to the system at once. By default the allocator waits for the freeing thread to allocate
/// again; threads that have nothing to do after a large query would keep its memory.
pub fn give_back_at_once() {
    // SAFETY: sets one of the allocator's options, which may be done at any time from any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, c_long::from(0i32)) }
}
