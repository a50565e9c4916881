//! The allocator of everything that is not column data, and when it gives memory back to the system.
//!
//! ```text
//! freed ──▶ kept for reuse ──DELAY──▶ given back, by the next thread that allocates a page
//!                                     or, if none does, by the caretaker
//! ```
//! Reading files, exchanging and sorting free and allocate buffers of some 100 KiB all the time. Given back at once,
//! each would be zeroed and mapped anew, which takes the system longer than all work on its content.

#![allow(unsafe_code)]

mod blocks;

use std::ffi::{c_int, c_long};
use std::time::Duration;

/// Results pass through many small allocations on the way to text, and DataFusion's operators through more.
#[global_allocator]
static ALLOCATOR: blocks::Allocator = blocks::Allocator;

/// `mi_option_purge_delay` of mimalloc.h.
const PURGE_DELAY: c_int = 15;

/// How long freed memory is kept for reuse. A quarter of a second spares a load of a file most of its page faults, 10
/// ms every second one. It is not longer because the memory may be wanted for column data, and because a statement that
/// was cancelled gives its memory back within a second.
const DELAY: Duration = Duration::from_millis(250);

/// How often the caretaker looks. If nothing waits to be given back, it reads one number.
const ROUND: Duration = DELAY;

/// `mi_option_allow_large_os_pages` of mimalloc.h.
const LARGE_PAGES: c_int = 6;

/// Asks for huge pages for what is allocated from now on, as far as it needs new memory of the system. For benchmarks:
/// small allocations of all kinds would otherwise hold on to huge pages.
pub fn use_huge_pages() {
    // SAFETY: sets one of the allocator's options, which may be done at any time from any thread.
    unsafe { libmimalloc_sys::mi_option_set(LARGE_PAGES, 1) }
}

/// Bytes that a statement frees in a second, at most.
const FREED: u64 = 2_000_000_000;
/// The share of the memory that may be kept for reuse.
const KEPT: u64 = 16;

/// How long freed memory is kept beside such a limit of memory.
fn delay(memory: Option<u64>) -> Duration {
    let until_full = memory.map(|limit| Duration::from_millis(1000 * (limit / KEPT) / FREED));
    until_full.map_or(DELAY, |until_full| until_full.min(DELAY))
}

/// Sets the delay, and starts the caretaker: threads that have nothing to do after a large query would keep its memory.
///
/// # Errors
/// No thread can be started.
pub fn give_back_soon(memory: Option<u64>) -> std::io::Result<()> {
    let delay = delay(memory).as_millis() as c_long;
    // SAFETY: sets one of the allocator's options, which may be done at any time from any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, delay) }
    let caretaker = || loop {
        std::thread::sleep(ROUND);
        // SAFETY: gives back what is due, which may be done at any time from any thread.
        unsafe { libmimalloc_sys::mi_collect(false) }
    };
    let thread = std::thread::Builder::new().name("eris-memory".to_owned());
    thread.spawn(caretaker).map(drop)
}
