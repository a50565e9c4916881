//! What an owner holds: its partitions, with their rows, keys and indexes, and the dictionaries that it numbers.
//!
//! It knows of no command and of no other owner: [tasks](crate::tasks) work on it.

pub(crate) mod bulk;
pub(crate) mod deleted;
pub(crate) mod dictionaries;
pub(crate) mod entered;
pub(crate) mod index_part;
pub(crate) mod located;
pub(crate) mod partition;
pub(crate) mod primary;
pub(crate) mod reorganize;
pub(crate) mod secondary;
pub(crate) mod segment_view;
pub(crate) mod superseded;
pub(crate) mod unique;
pub(crate) mod walk;
