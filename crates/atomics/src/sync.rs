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
