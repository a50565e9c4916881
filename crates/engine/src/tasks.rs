//! What runs at an owner: the handler of its commands, and the tasks that these begin.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod owner;
pub(crate) mod recode;
pub(crate) mod reorganize;
pub(crate) mod scan;
pub(crate) mod stage;
