//! A bare index as clients share it.

use super::transfers::Transfers;
use crate::key_index::object::KeyObject;
use std::sync::Arc;
use tokio::sync::Mutex;

/// What the clients of an index share.
pub(crate) struct RegisteredIndex {
    pub object: Arc<KeyObject>,
    /// Held while keys change their owners, and by whoever drops the index.
    pub cycle: Mutex<Option<Transfers>>,
}
