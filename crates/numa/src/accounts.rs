//! Bytes per data object on one node.

use eris_types::ObjectId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The accounts of one node, by data object.
#[derive(Default)]
pub(crate) struct Accounts(RwLock<HashMap<ObjectId, Arc<Account>>>);

/// Bytes that one data object holds on one node.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) object: ObjectId,
    /// Written by every thread that allocates or drops; read for reports. Relaxed: it guards no other memory.
    bytes: AtomicU64,
}

impl Account {
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Accounts {
    pub(crate) fn of(&self, object: ObjectId) -> Arc<Account> {
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = read.get(&object) {
            return account.clone();
        }
        drop(read);
        let mut write = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Identifiers are never reused, so accounts of dropped objects would pile up: an account that no buffer knows
        // goes when another comes.
        write.retain(|_, account| Arc::strong_count(account) > 1);
        let open = || {
            Arc::new(Account {
                object,
                bytes: AtomicU64::new(0),
            })
        };
        write.entry(object).or_insert_with(open).clone()
    }

    /// Every object that holds bytes, in no order.
    pub(crate) fn list(&self) -> Vec<(ObjectId, u64)> {
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let held = read
            .values()
            .map(|account| (account.object, account.bytes.load(Ordering::Relaxed)));
        held.filter(|&(_, bytes)| bytes > 0).collect()
    }
}
