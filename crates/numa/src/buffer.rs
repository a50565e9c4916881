//! Bytes with a home.

use crate::accounts::Account;
use crate::classes::{ALIGN, Class};
use crate::heap::Run;
use crate::local;
use crate::node::NodeState;
use crate::os;
use eris_types::{NodeId, ObjectId};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of one data object on one node: zeroed when allocated, aligned to 64, of fixed length. Dropping it, on whatever
/// thread, gives the bytes back to their home.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// Bytes taken from budget and account; of [`Home::Mapping`] also the mapping's size.
    occupied: usize,
    home: Home,
    state: Arc<NodeState>,
    account: Arc<Account>,
}

/// What kind of place a buffer has.
#[derive(Clone, Copy)]
pub(crate) enum Home {
    /// None: it has no bytes.
    Nowhere,
    /// A slot in a slab.
    Slot(Class),
    /// A run in a region.
    Run(Run),
    /// A mapping of its own.
    Mapping,
}

// SAFETY: a buffer owns its bytes alone, and gives out `&` and `&mut` to them only as itself is borrowed; its home can be
// reached from any thread.
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
        home: Home,
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
        // SAFETY: `start` is aligned to 64, no less than T, and followed by `len` initialised bytes (zeroed, and only ever
        // written as plain numbers) that live as long as self; each pattern of them is a T.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// As [`Buffer::as_slice`], to write.
    pub fn as_mut_slice<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`; the exclusive borrow makes it the only view, and each T leaves its bytes initialised.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.len / size_of::<T>())
        }
    }

    /// Asks the operating system on which of its nodes the pages are, looking at no more than 4,096 pages, evenly spread.
    /// `None` where it does not tell.
    ///
    /// The system prefers the home node but takes pages elsewhere when that is full; this is the check.
    pub fn placement(&self) -> Option<Placement> {
        const MOST: usize = 4096;
        let page = os::page_bytes();
        let pages = self.len.div_ceil(page);
        let step = pages.div_ceil(MOST).max(1);
        let address = |index: usize| self.start.as_ptr().wrapping_add(index * page).cast_const();
        let looked_at: Vec<*const u8> = (0..pages).step_by(step).map(address).collect();
        let mut placement = Placement::default();
        for status in os::nodes_of_pages(&looked_at)? {
            match u32::try_from(status) {
                Err(_) => placement.untouched += 1,
                Ok(node) => match placement.pages.iter_mut().find(|(other, _)| *other == node) {
                    Some((_, count)) => *count += 1,
                    None => placement.pages.push((node, 1)),
                },
            }
        }
        placement.pages.sort_unstable();
        Some(placement)
    }
}

/// Where a buffer's pages are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Pages looked at, by the operating system's node, ascending.
    pub pages: Vec<(u32, usize)>,
    /// Pages looked at that are nowhere yet, because nothing has been written to them.
    pub untouched: usize,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.home {
            Home::Nowhere => {}
            Home::Slot(class) => local::give(&self.state, class, self.start),
            Home::Run(run) => self.state.give_run(self.start, run),
            Home::Mapping => self.state.give_mapping(self.start, self.occupied),
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
