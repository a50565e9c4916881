//! The operating system as a source of memory: aligned mappings, bound to a node, with or without huge pages.
//!
//! ```text
//! mmap, over-reserved:  ····[======== bytes ========]·········
//!                       ^   ^ 2 MiB-aligned          ^ both ends are unmapped again
//! ```
//! The lowest aligned place is kept, so that the next mapping fits exactly below it, is aligned by itself, and the
//! kernel can merge the two.

use crate::source::{HUGE, HugePages, MemorySource};
use std::ptr::NonNull;

/// The base page in bytes.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no arguments beyond a constant; the call has no side effect.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("a page size")
}

/// Private anonymous mappings of one node.
pub(crate) struct OsSource {
    /// The node that pages come from; `None`: from wherever the kernel takes them.
    pub(crate) home: Option<u32>,
    pub(crate) huge: HugePages,
    pub(crate) page_bytes: usize,
}

impl MemorySource for OsSource {
    fn map(&self, bytes: usize) -> Result<NonNull<u8>, i32> {
        let start = map_aligned(bytes)?;
        if let Some(home) = self.home {
            prefer_node(start, bytes, home);
        }
        let advice = match self.huge {
            HugePages::Never => libc::MADV_NOHUGEPAGE,
            HugePages::Auto | HugePages::Always => libc::MADV_HUGEPAGE,
        };
        // Advice alone: a kernel without transparent huge pages denies it, and the memory is good all the same.
        // SAFETY: exactly the range just mapped, which nobody else knows yet.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
        Ok(start)
    }

    unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize) {
        unmap(start.as_ptr(), bytes);
    }

    unsafe fn discard(&self, start: NonNull<u8>, bytes: usize) -> bool {
        let whole_pages = start.as_ptr().addr().is_multiple_of(self.page_bytes)
            && bytes.is_multiple_of(self.page_bytes);
        // SAFETY: by contract a part of a live private anonymous mapping that nobody uses; such pages read as zero
        // after MADV_DONTNEED.
        whole_pages
            && unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) } == 0
    }

    fn asks_for_huge_pages(&self) -> bool {
        self.huge != HugePages::Never
    }
}

fn map_aligned(bytes: usize) -> Result<NonNull<u8>, i32> {
    if bytes.is_multiple_of(HUGE) {
        let start = map_anywhere(bytes)?;
        if start.addr().get().is_multiple_of(HUGE) {
            return Ok(start);
        }
        unmap(start.as_ptr(), bytes);
    }
    let reserved = bytes.checked_add(HUGE).ok_or(libc::ENOMEM)?;
    let start = map_anywhere(reserved)?.as_ptr();
    let before = start.addr().next_multiple_of(HUGE) - start.addr();
    let aligned = start.wrapping_add(before);
    if before > 0 {
        unmap(start, before);
    }
    let after = reserved - before - bytes;
    if after > 0 {
        unmap(aligned.wrapping_add(bytes), after);
    }
    NonNull::new(aligned).ok_or(libc::ENOMEM)
}

fn map_anywhere(bytes: usize) -> Result<NonNull<u8>, i32> {
    // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(errno());
    }
    NonNull::new(start.cast()).ok_or(libc::ENOMEM)
}

/// Callers pass ranges of their own mappings that nobody uses any more.
fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: as said above; only the functions of this file call it.
    let status = unsafe { libc::munmap(start.cast(), bytes) };
    // Splitting a mapping can fail when the process has too many; the range then stays mapped, which is a leak of
    // addresses but never unsound.
    debug_assert_eq!(status, 0, "munmap of {bytes} bytes: error {}", errno());
}

/// Asks for pages of `home`, of another node when that is full. `MPOL_BIND` would have the process killed then.
///
/// Sandboxes may forbid the call. Memory is then placed by the thread that touches it first: mostly an AEU of the same
/// node, so that nothing breaks; [`crate::Placement`] tells where pages really are.
fn prefer_node(start: NonNull<u8>, bytes: usize, home: u32) {
    let mut mask = vec![0u64; home as usize / 64 + 1];
    mask[home as usize / 64] = 1 << (home % 64);
    // The kernel reads one bit less than it is told.
    let bits = mask.len() * 64 + 1;
    // SAFETY: the range was just mapped; the mask holds as many bits as said, rounded down by the kernel to whole
    // words.
    unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start.as_ptr(),
            bytes,
            libc::MPOL_PREFERRED,
            mask.as_ptr(),
            bits,
            0,
        );
    }
}

/// The operating system's node of the page at each address, or the negated error number; `None` if the kernel does not
/// tell.
pub(crate) fn nodes_of_pages(pages: &[usize]) -> Option<Vec<i32>> {
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: both arrays have the length given, and an address is as wide as a number; without target nodes the call
    // moves nothing, reads no page and writes `status` only.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    };
    (result == 0).then_some(status)
}

fn errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::ENOMEM)
}
