//! Bare indexes as their owners have them: trees of 64-bit keys, what is asked of them, and keys on their way to
//! another owner.
//!
//! It knows of no command: [tasks](crate::tasks::keys) execute what [clients](crate::clients::key_index) ask for.

pub(crate) mod batch;
pub(crate) mod compact;
#[cfg(test)]
pub(crate) mod denials;
pub(crate) mod layout;
pub(crate) mod measure;
mod measurement;
pub(crate) mod object;
pub(crate) mod owned;
pub(crate) mod segment;
pub(crate) mod shift;
pub(crate) mod transfer;
