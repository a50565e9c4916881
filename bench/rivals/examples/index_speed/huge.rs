//! An allocator that gives all structures of the comparison huge pages, as the indexes of this crate have them:
//! otherwise the comparison would be one of page sizes. Simple, because one thread uses it: small blocks by size from
//! chunks of 64 MiB, freed ones in a list per size; everything else from the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::Mutex;

/// To be the global allocator.
pub struct Huge(Mutex<Chunks>);

struct Chunks {
    next: *mut u8,
    left: usize,
    /// By size in units of 16 bytes.
    free: [*mut u8; LARGEST_SMALL / 16 + 1],
}

// SAFETY: the pointers lead to memory that nobody else knows.
unsafe impl Send for Chunks {}

const LARGEST_SMALL: usize = 4 << 10;
const PAGE: usize = 2 << 20;
const CHUNK: usize = 32 * PAGE;

impl Huge {
    /// Without a chunk yet.
    pub const fn new() -> Self {
        Huge(Mutex::new(Chunks {
            next: null_mut(),
            left: 0,
            free: [null_mut(); _],
        }))
    }
}

fn is_small(layout: Layout) -> bool {
    layout.size() <= LARGEST_SMALL && layout.align() <= 64
}

/// Blocks of a multiple of 64 bytes are aligned to 64.
fn rounded(layout: Layout) -> usize {
    layout
        .size()
        .next_multiple_of(layout.align().max(16))
        .max(16)
}

/// From the system, in huge pages if it is large enough for them.
fn system(layout: Layout) -> *mut u8 {
    if layout.size() < PAGE {
        // SAFETY: the caller's layout.
        return unsafe { System.alloc(layout) };
    }
    // SAFETY: advice about memory just allocated.
    unsafe {
        let start = System.alloc(layout.align_to(PAGE).expect("an alignment"));
        libc::madvise(start.cast(), layout.size(), libc::MADV_HUGEPAGE);
        start
    }
}

// SAFETY: blocks are as large and aligned as asked for, and in use once; freed ones hold the next one's address.
unsafe impl GlobalAlloc for Huge {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_small(layout) {
            return system(layout);
        }
        let size = rounded(layout);
        let mut chunks = self.0.lock().expect("nothing panics with the lock");
        let head = &mut chunks.free[size / 16];
        if !head.is_null() {
            let block = *head;
            // SAFETY: a freed block begins with the address of the next.
            *head = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        let aligned = chunks.next.align_offset(layout.align().max(16));
        if chunks.left < size + aligned {
            chunks.next = system(Layout::from_size_align(CHUNK, PAGE).expect("a layout"));
            chunks.left = CHUNK;
        } else {
            chunks.next = chunks.next.wrapping_add(aligned);
            chunks.left -= aligned;
        }
        let block = chunks.next;
        chunks.next = block.wrapping_add(size);
        chunks.left -= size;
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_small(layout) {
            let mut chunks = self.0.lock().expect("nothing panics with the lock");
            let head = &mut chunks.free[rounded(layout) / 16];
            // SAFETY: by contract the block is free now; it has at least 16 bytes.
            unsafe { block.cast::<*mut u8>().write(*head) };
            *head = block;
            return;
        }
        let huge = layout.size() >= PAGE;
        let layout = if huge {
            layout.align_to(PAGE).expect("an alignment")
        } else {
            layout
        };
        // SAFETY: by contract from `alloc`, which took it from there with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}
