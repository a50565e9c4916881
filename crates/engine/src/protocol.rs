//! What travels between clients and owners: the commands, and what a run's participants share.

pub(crate) mod commands;
pub(crate) mod routed;
pub(crate) mod run;
