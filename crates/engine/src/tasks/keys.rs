//! Bare indexes at their owners: batches of operations, and keys on their way to other owners.

pub(crate) mod acknowledged;
pub(crate) mod compact;
pub(crate) mod execute;
pub(crate) mod measure;
pub(crate) mod move_out;
pub(crate) mod moving;
pub(crate) mod pace;
pub(crate) mod take_in;
