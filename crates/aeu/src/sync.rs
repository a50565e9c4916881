//! The primitives that the model checker replaces; see `eris_route`'s module of the same name.

#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::{Thread, current, park},
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::{Thread, current, park},
};
