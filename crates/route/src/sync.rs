//! The primitives that the model checker replaces. Everything latch-free in this crate is written against this module:
//! `--cfg loom` swaps the standard library's atomics for loom's, and makes every access to a buffer word visible to
//! it.

use std::cell::UnsafeCell;

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence},
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence},
    thread::yield_now,
};

/// The words of an inbox buffer: written by many, each in its own reserved range; read by the owner when no writer is
/// left. Who may touch which range when is decided by the descriptor beside them.
pub(crate) struct Words {
    cells: Box<[UnsafeCell<u64>]>,
    #[cfg(loom)]
    watch: Box<[loom::cell::UnsafeCell<()>]>,
}

// SAFETY: plain words without thread affinity. Every access is unsafe, and its caller guarantees by the descriptor
// that no two accesses of one word race.
unsafe impl Sync for Words {}

impl Words {
    /// Zeroed words. The memory is not touched before first use, so that the first to touch decides its NUMA node.
    pub(crate) fn new(len: usize) -> Self {
        let zeroed = Box::into_raw(vec![0u64; len].into_boxed_slice());
        // SAFETY: `UnsafeCell<u64>` has the layout of `u64`, and the pointer was just given up by its box.
        let cells = unsafe { Box::from_raw(zeroed as *mut [UnsafeCell<u64>]) };
        Words {
            cells,
            #[cfg(loom)]
            watch: (0..len).map(|_| loom::cell::UnsafeCell::new(())).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Copies `words` to `at..`.
    ///
    /// # Safety
    /// The range is in bounds, and until the owner is told nobody else reads or writes it.
    #[inline]
    pub(crate) unsafe fn write(&self, at: usize, words: &[u64]) {
        debug_assert!(at + words.len() <= self.len());
        #[cfg(loom)]
        for watched in &self.watch[at..at + words.len()] {
            watched.with_mut(|_| ());
        }
        let to = UnsafeCell::raw_get(self.cells.as_ptr()).wrapping_add(at);
        // SAFETY: in bounds and unshared, by the caller; the source is a slice elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len()) };
    }

    /// The first `len` words.
    ///
    /// # Safety
    /// They are in bounds, their writers happened before, and nobody writes them while the slice lives.
    #[inline]
    pub(crate) unsafe fn read(&self, len: usize) -> &[u64] {
        debug_assert!(len <= self.len());
        #[cfg(loom)]
        for watched in &self.watch[..len] {
            watched.with(|_| ());
        }
        // SAFETY: initialised (zeroed at birth), in bounds and unwritten, by the caller.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(self.cells.as_ptr()), len) }
    }

    /// Writes one word of every page, so that the memory comes from the caller's node.
    ///
    /// # Safety
    /// Nobody else reads or writes any word.
    pub(crate) unsafe fn touch(&self) {
        const PAGE: usize = 4096 / size_of::<u64>();
        for cell in self.cells.iter().step_by(PAGE) {
            // SAFETY: a valid pointer, unshared by the caller. Volatile, or the zero stored into zeroed memory
            // would be optimised away and the page never touched.
            unsafe { cell.get().write_volatile(0) };
        }
    }
}
