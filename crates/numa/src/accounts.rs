//! Bytes per data object on one node: of buffers, and of what else its holder says lies there.

use crate::budget::{Budget, OutOfMemory, Reservation};
use eris_types::{NodeId, ObjectId};
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

/// One data object's account on one node, for memory that lies in no buffer: who allocates it says how much it is.
/// Cheap to clone; clones are the same account.
#[derive(Clone, Debug)]
pub struct NodeAccount {
    account: Arc<Account>,
    budget: Budget,
    node: NodeId,
}

impl NodeAccount {
    pub(crate) fn new(account: Arc<Account>, budget: Budget, node: NodeId) -> Self {
        NodeAccount {
            account,
            budget,
            node,
        }
    }

    /// The budget that it counts in.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes `bytes` out of the budget and notes them on the node, until what this returns is dropped.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they do not fit under the limit; nothing is taken then.
    pub fn try_reserve(&self, bytes: u64) -> Result<NodeReservation, OutOfMemory> {
        let reserved = self
            .budget
            .try_reserve(bytes)
            .map_err(|denied| OutOfMemory {
                node: Some(self.node),
                ..denied
            })?;
        self.account.add(bytes);
        Ok(NodeReservation {
            account: self.account.clone(),
            reserved,
        })
    }
}

/// Bytes of one data object on one node that lie in no buffer.
#[derive(Debug)]
pub struct NodeReservation {
    account: Arc<Account>,
    reserved: Reservation,
}

impl NodeReservation {
    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        self.reserved.bytes()
    }
}

impl Drop for NodeReservation {
    fn drop(&mut self) {
        self.account.subtract(self.reserved.bytes());
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
