//! Columns of keys that are stored by an order, where a home can do that.
//!
//! ```text
//! sql: keys of a dimension, by region, nation, key ─▶ KeyOrders::order ─▶ KeyOrder
//!                                                     KeyOrders::recode ◀─┘  a fact's column is stored by it
//! ```

use crate::{HomeError, OutOfMemory};
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

/// Stores columns by orders of keys.
pub trait KeyOrders: Send + Sync {
    /// The order of these keys; `None` if one occurs twice, or if they are too many.
    ///
    /// # Errors
    /// There is no memory for it.
    fn order(&self, keys: Vec<i64>) -> Result<Option<KeyOrder>, OutOfMemory>;

    /// The same order with late keys behind all others; `None` as for [`KeyOrders::order`]. What is stored by the
    /// shorter order is stored by the longer one, too.
    ///
    /// # Errors
    /// There is no memory for it.
    fn extended(&self, order: &KeyOrder, late: &[i64]) -> Result<Option<KeyOrder>, OutOfMemory>;

    /// Whether an order has a key.
    fn has(&self, order: &KeyOrder, key: i64) -> bool;

    /// Stores a column of integers by an order of keys, and waits until that is done. Rows may be read and written
    /// meanwhile. Returns how many stay as they are: for a key that the order does not have, or since they would take
    /// more room. Dropping the future leaves it to the home to finish.
    ///
    /// # Errors
    /// There is no such object, or memory is exhausted; what has been exchanged by then stays.
    fn recode(
        &self,
        object: ObjectId,
        column: ColumnId,
        order: KeyOrder,
    ) -> BoxFuture<'_, Result<u64, HomeError>>;
}

/// An order of distinct keys, in its home's own form. It is kept while somebody has it, or something is stored by it.
#[derive(Clone)]
pub struct KeyOrder {
    own: Arc<dyn Any + Send + Sync>,
    size: OrderSize,
}

/// How large an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderSize {
    /// Keys.
    pub keys: usize,
    /// Those of them that have come since it was made.
    pub late: usize,
}

impl KeyOrder {
    /// The order that a home has made.
    pub fn new(own: Arc<dyn Any + Send + Sync>, size: OrderSize) -> Self {
        KeyOrder { own, size }
    }

    /// What its home has made.
    pub fn own(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.own
    }

    /// How large it is.
    pub fn size(&self) -> OrderSize {
        self.size
    }

    /// The same without keeping it.
    pub fn downgrade(&self) -> WeakKeyOrder {
        WeakKeyOrder {
            own: Arc::downgrade(&self.own),
            size: self.size,
        }
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({} keys)", self.size.keys)
    }
}

/// An order of keys as long as something is stored by it.
#[derive(Clone)]
pub struct WeakKeyOrder {
    own: Weak<dyn Any + Send + Sync>,
    size: OrderSize,
}

impl WeakKeyOrder {
    /// The order, unless it is gone.
    pub fn upgrade(&self) -> Option<KeyOrder> {
        let own = self.own.upgrade()?;
        let size = self.size;
        Some(KeyOrder { own, size })
    }
}

impl fmt::Debug for WeakKeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakKeyOrder({} keys)", self.size.keys)
    }
}
