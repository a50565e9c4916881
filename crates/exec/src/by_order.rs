//! What has to be known of an order of keys, found out once for each.

use eris_column::KeyOrder;
use std::sync::{Arc, Mutex, PoisonError};

/// Something per order of keys. A column's chunks are stored by one order, or by two while they are being changed.
#[derive(Debug)]
pub(crate) struct ByOrder<T>(Mutex<Vec<(Arc<KeyOrder>, Arc<T>)>>);

impl<T> Default for ByOrder<T> {
    fn default() -> Self {
        ByOrder(Mutex::default())
    }
}

impl<T> ByOrder<T> {
    /// What is known of this order. Whoever asks first makes it, and the others wait.
    pub(crate) fn get(
        &self,
        order: &Arc<KeyOrder>,
        make: impl FnOnce(&Arc<KeyOrder>) -> T,
    ) -> Arc<T> {
        // A panic in `make` leaves the list as it was.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = known.iter().find(|(other, _)| Arc::ptr_eq(other, order)) {
            return known.clone();
        }
        let made = Arc::new(make(order));
        known.push((order.clone(), made.clone()));
        made
    }
}
