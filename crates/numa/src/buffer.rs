//! Bytes with a home.

use crate::accounts::Account;
use crate::classes::{ALIGN, Class};
use crate::heap::UnitRun;
use crate::local;
use crate::node::NodeState;
use crate::placement::{Extent, Placement};
use eris_types::{NodeId, ObjectId};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of one data object on one node: zeroed when allocated, aligned to 64, of fixed length. Dropping it, on
/// whatever thread, gives the bytes back to their home.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// Bytes taken from budget and account; of [`BufferPlace::Mapping`] also the mapping's size.
    occupied: usize,
    home: BufferPlace,
    state: Arc<NodeState>,
    account: Arc<Account>,
}

/// What kind of place a buffer has.
pub(crate) enum BufferPlace {
    /// None: it has no bytes.
    Nowhere,
    /// A slot in a slab.
    Slot(Class),
    /// A run in a region.
    UnitRun(UnitRun),
    /// A mapping of its own.
    Mapping,
    /// A part of another buffer, which is kept as long as there are parts of it. It accounts for their bytes.
    Part(#[expect(dead_code, reason = "it is kept, not used")] Arc<Buffer>),
}

// SAFETY: a buffer owns its bytes alone, and gives out `&` and `&mut` to them only as itself is borrowed; its home can
// be reached from any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above; a shared buffer only lends shared slices of plain numbers.
unsafe impl Sync for Buffer {}

/// Numbers of which every bit pattern is a value and no byte is padding.
///
/// ```compile_fail
/// fn plain<T: eris_numa::Plain>() {}
/// plain::<bool>();
/// ```
pub trait Plain: Copy + Send + Sync + sealed::Sealed + 'static {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}
        impl Plain for $number {}
        const _: () = assert!(align_of::<$number>() <= ALIGN);
    )*};
}
plain!(u8 u16 u32 u64 i32 i64 i128 u128 f32 f64);

impl Buffer {
    /// Takes possession of `occupied` accounted bytes at `start`.
    pub(crate) fn new(
        start: NonNull<u8>,
        len: usize,
        occupied: usize,
        home: BufferPlace,
        state: Arc<NodeState>,
        account: Arc<Account>,
    ) -> Self {
        Buffer {
            start,
            len,
            occupied,
            home,
            state,
            account,
        }
    }

    /// The `len` bytes of `whole` from `offset` on, as a buffer of its own.
    ///
    /// # Safety
    /// They are in bounds, `offset` is a multiple of [`ALIGN`], and no other part has any of them.
    pub(crate) unsafe fn part(whole: &Arc<Buffer>, offset: usize, len: usize) -> Self {
        debug_assert!(offset.is_multiple_of(ALIGN) && offset + len <= whole.len);
        Buffer {
            // SAFETY: in bounds, by the caller.
            start: unsafe { whole.start.add(offset) },
            len,
            occupied: 0,
            home: BufferPlace::Part(whole.clone()),
            state: whole.state.clone(),
            account: whole.account.clone(),
        }
    }

    /// Where its bytes begin.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where a buffer without bytes lies.
    pub(crate) fn nowhere() -> NonNull<u8> {
        NonNull::without_provenance(const { std::num::NonZero::new(ALIGN).unwrap() })
    }

    /// Length in bytes, as asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The node it was allocated on.
    pub fn node(&self) -> NodeId {
        self.state.node
    }

    /// The data object it is accounted to.
    pub fn object(&self) -> ObjectId {
        self.account.object
    }

    /// The bytes as `len / size_of::<T>()` numbers; bytes at the end that make no whole number are left out.
    pub fn as_slice<T: Plain>(&self) -> &[T] {
        // SAFETY: `start` is aligned to 64, no less than T, and followed by `len` initialised bytes (zeroed, and only
        // ever written as plain numbers) that live as long as self; each pattern of them is a T.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// As [`Buffer::as_slice`], to write.
    pub fn as_mut_slice<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; the exclusive borrow makes it the only view, and each T leaves its bytes
        // initialised.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / size_of::<T>())
        }
    }

    /// Its memory, as numbers.
    pub fn extent(&self) -> Extent {
        Extent::new(self.start.addr().get(), self.len)
    }

    /// [`Placement::of`] this buffer.
    pub fn placement(&self) -> Option<Placement> {
        Placement::of([self.extent()])
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.home {
            // Before anything else: nothing here is its own.
            BufferPlace::Part(_) => return,
            BufferPlace::Nowhere => {}
            BufferPlace::Slot(class) => local::give(&self.state, *class, self.start),
            BufferPlace::UnitRun(run) => self.state.give_run(self.start, *run),
            BufferPlace::Mapping => self.state.give_mapping(self.start, self.occupied),
        }
        // Last, so that the budget never counts less than there is.
        self.account.subtract(self.occupied as u64);
        self.state.budget.give(self.occupied as u64);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Buffer({} bytes of {} on {})",
            self.len,
            self.object(),
            self.node()
        )
    }
}
