//! Where blocks begin.
//!
//! mimalloc's sizes are four to a doubling: of 256 KiB come 320, 384 and 448. To place a block that is larger than a
//! page of the system at a multiple of anything but such a page it takes a larger size, so that there is a place in it,
//! and a block of 256 KiB is one of 320:
//!
//! ```text
//! asked for at a multiple of 8        ░░░░░░░░░░░░░░░░▒▒▒▒   ░ used   ▒ not
//! asked for at any place              ░░░░░░░░░░░░░░░░       which is a multiple of 16
//! ```

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

/// mimalloc, which is asked for no alignment that blocks have anyway.
pub(crate) struct Allocator;

/// `MI_MAX_ALIGN_SIZE` of mimalloc's types.h: blocks begin at multiples of it, and shorter ones at those of 8.
const NATURAL: usize = 16;
/// Blocks of this size and more, of any of mimalloc's sizes, can begin at multiples of a page without being larger. So
/// can shorter ones that are multiples of it.
const LONG: usize = 16 << 10;
const PAGE: usize = 4 << 10;

/// What has to be asked for, if blocks are not so anyway.
const fn alignment(layout: Layout) -> Option<usize> {
    match layout.align() {
        align if align <= NATURAL && align <= layout.size() => None,
        align if align <= PAGE && (layout.size() >= LONG || layout.size().is_multiple_of(PAGE)) => {
            Some(PAGE)
        }
        align => Some(align),
    }
}

// SAFETY: blocks are mimalloc's, which are as large as was asked for, and begin where `alignment` says: at its
// multiple, or at any place if blocks of this size begin at multiples of the layout's alignment. It does not unwind,
// and allocates nothing by Rust's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = match alignment(layout) {
            // SAFETY: may be called with any size.
            None => unsafe { mi_malloc(layout.size()) },
            // SAFETY: with any size and any power of two.
            Some(align) => unsafe { mi_malloc_aligned(layout.size(), align) },
        };
        block.cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = match alignment(layout) {
            // SAFETY: as above.
            None => unsafe { mi_zalloc(layout.size()) },
            // SAFETY: as above.
            Some(align) => unsafe { mi_zalloc_aligned(layout.size(), align) },
        };
        block.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller says that it is a block of this allocator, and used no more.
        unsafe { mi_free(block.cast::<c_void>()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size is one that a layout can have.
        let layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let block = block.cast::<c_void>();
        let block = match alignment(layout) {
            // SAFETY: the caller says that it is a block of this allocator, which mimalloc moves if it has to.
            None => unsafe { mi_realloc(block, size) },
            // SAFETY: the same.
            Some(align) => unsafe { mi_realloc_aligned(block, size, align) },
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_usable_size;

    fn layouts() -> impl Iterator<Item = Layout> {
        let sizes = (0..24).flat_map(|power| [-1, 0, 1].map(|more| (1i64 << power) + more));
        let sizes = sizes
            .chain([3 << 15, 17 << 13, 24, 40, 139_264])
            .filter(|size| *size > 0);
        sizes.flat_map(|size| {
            let aligns = (0..=13).map(|power| 1 << power);
            aligns.map(move |align| Layout::from_size_align(size as usize, align).unwrap())
        })
    }

    /// What there is at a place before and behind a change of size.
    fn stamp(block: *mut u8, size: usize) {
        for at in [0, size / 2, size - 1] {
            // SAFETY: within the block.
            unsafe { block.add(at).write(at as u8 ^ 0xA5) }
        }
    }

    #[test]
    fn blocks_begin_where_they_should_and_keep_what_is_in_them() {
        for layout in layouts() {
            for larger in [
                layout.size(),
                layout.size() * 3,
                layout.size() + 70_000,
                8,
                20_000,
            ] {
                // SAFETY: the size is not zero; blocks are given back with what they were asked for with.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert_eq!(block.addr() % layout.align(), 0, "{layout:?}");
                    let all = std::slice::from_raw_parts(block, layout.size());
                    assert!(all.iter().all(|byte| *byte == 0), "{layout:?}");
                    stamp(block, layout.size());
                    let block = Allocator.realloc(block, layout, larger);
                    assert_eq!(block.addr() % layout.align(), 0, "{layout:?} of {larger}");
                    let kept = layout.size().min(larger);
                    for at in [0, layout.size() / 2, layout.size() - 1]
                        .into_iter()
                        .filter(|at| *at < kept)
                    {
                        assert_eq!(*block.add(at), at as u8 ^ 0xA5, "{layout:?} of {larger}");
                    }
                    let larger = Layout::from_size_align(larger, layout.align()).unwrap();
                    Allocator.dealloc(block, larger);
                    let block = Allocator.alloc(larger);
                    assert_eq!(block.addr() % larger.align(), 0, "{larger:?}");
                    stamp(block, larger.size());
                    Allocator.dealloc(block, larger);
                }
            }
        }
    }

    #[test]
    fn powers_of_two_take_no_more() {
        for layout in layouts().filter(|layout| layout.size().is_power_of_two()) {
            let (size, align) = (layout.size(), layout.align());
            // Those that are, and of a size of mimalloc's.
            let is_natural = align <= NATURAL && align <= size;
            if size < 16 || !(is_natural || align <= PAGE && size >= PAGE) || size > 512 << 10 {
                continue;
            }
            // SAFETY: as above.
            unsafe {
                let block = Allocator.alloc(layout);
                assert_eq!(mi_usable_size(block.cast()), size, "{layout:?}");
                Allocator.dealloc(block, layout);
            }
        }
    }
}
