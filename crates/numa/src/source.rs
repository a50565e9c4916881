//! Where node managers take memory from: a seam, so that their bookkeeping can run over an ordinary allocator (Miri).

use serde::{Deserialize, Serialize};
use std::ptr::NonNull;

/// Size and alignment of what is taken from the operating system: one huge page.
pub(crate) const HUGE: usize = 2 << 20;

/// Whether memory is backed with huge pages (2 MiB). They save most of the cost of address translation; they also make
/// a small data object occupy whole ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HugePages {
    /// Asked for wherever a whole one fits; the rest of a large buffer is made of small pages.
    #[default]
    Auto,
    /// Large buffers are also rounded up to whole huge pages.
    Always,
    /// Rejected.
    Never,
}

/// A supplier of zeroed memory.
pub(crate) trait MemorySource: Send + Sync {
    /// `bytes` (not zero) zeroed bytes, aligned to [`HUGE`], or the system's error number.
    fn map(&self, bytes: usize) -> Result<NonNull<u8>, i32>;

    /// Gives back what [`MemorySource::map`] gave.
    ///
    /// # Safety
    /// `start` and `bytes` are those of one call of `map` on this source, given back once; nobody uses the memory.
    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize);

    /// Gives back the pages of a part of a mapping but keeps its addresses, which read as zero from now on.
    /// `false` if that is impossible; the content is unchanged then.
    ///
    /// # Safety
    /// The part lies in one live mapping of this source and nobody uses it.
    unsafe fn discard(&self, start: NonNull<u8>, bytes: usize) -> bool;

    /// Whether it asks for huge pages.
    fn asks_for_huge_pages(&self) -> bool {
        false
    }
}

/// The Rust allocator as a source: for tests, and for every crate's tests under Miri, which knows no `mmap` flags.
#[cfg(any(test, miri))]
pub(crate) struct HeapSource;

#[cfg(any(test, miri))]
impl HeapSource {
    fn layout(bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(bytes, HUGE).expect("a mapping's size")
    }
}

#[cfg(any(test, miri))]
impl MemorySource for HeapSource {
    fn map(&self, bytes: usize) -> Result<NonNull<u8>, i32> {
        assert!(bytes > 0);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(bytes)) };
        NonNull::new(start).ok_or(libc::ENOMEM)
    }

    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: by contract allocated by `map` with this layout, and freed once.
        unsafe { std::alloc::dealloc(start.as_ptr(), Self::layout(bytes)) }
    }

    unsafe fn discard(&self, start: NonNull<u8>, bytes: usize) -> bool {
        // SAFETY: by contract a part of a live allocation that nobody else uses.
        unsafe { start.write_bytes(0, bytes) };
        true
    }
}
