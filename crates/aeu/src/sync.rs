//! The primitives that the model checker replaces; see `eris_route`'s module of the same name.

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::{Thread, current, park, park_timeout},
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::{Thread, current, park},
};

/// There is no time in the model: what a thread does when its time has come, others do there.
#[cfg(loom)]
pub(crate) fn park_timeout(_: std::time::Duration) {
    park();
}
