//! The primitives that the model checker replaces; see `eris_route`'s module of the same name.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::yield_now,
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::yield_now,
};

/// A model has no time: who waits lets others go on.
#[cfg(loom)]
pub(crate) fn spin_loop() {
    yield_now();
}
