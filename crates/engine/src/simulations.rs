//! Engines whose AEUs are stepped by hand, in an order that a seed decides, and compared with models.

mod appends;
mod changes;
mod crashes;
mod damage;
mod fragments;
mod full;
mod indexes;
pub(crate) mod key_index;
mod keys;
mod routed;
mod rows;
mod sharing;
mod short;
pub(crate) mod simulated;
mod together;
mod unflushed;
mod unique;
