//! What runs at an owner: the handler of its commands, and the tasks that these begin.

pub(crate) mod adopt;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod copies;
pub(crate) mod handler;
pub(crate) mod insert;
pub(crate) mod keys;
pub(crate) mod offer_keys;
pub(crate) mod owner;
pub(crate) mod panics;
pub(crate) mod questions;
pub(crate) mod recode;
pub(crate) mod reorganize;
pub(crate) mod repartition;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod statements;
pub(crate) mod unshare;
