//! The primitives that the model checker replaces; see `eris_route`'s module of the same name.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};

#[cfg(not(loom))]
pub(crate) use crossbeam_utils::atomic::AtomicCell;

/// What is exchanged as a whole, one exchange after the other.
#[cfg(loom)]
pub(crate) struct AtomicCell<T>(Mutex<T>);

#[cfg(loom)]
impl<T: Default> AtomicCell<T> {
    pub fn new(value: T) -> Self {
        AtomicCell(Mutex::new(value))
    }

    pub fn swap(&self, value: T) -> T {
        std::mem::replace(&mut self.0.lock().unwrap(), value)
    }

    pub fn take(&self) -> T {
        self.swap(T::default())
    }
}

/// A model has no time: who waits lets others go on.
#[cfg(loom)]
pub(crate) fn spin_loop() {}

/// Stands between a `SeqCst` write of one word and a `SeqCst` read of another. A machine keeps their order without it;
/// the model does not.
#[inline(always)]
pub(crate) fn write_then_read() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}
