//! What has to be known of an order of keys, found out once for each.

use eris_column::KeyOrder;
use std::sync::{Arc, OnceLock};

/// Something per order of keys. A column's chunks are stored by one order, or by two while they are being changed.
///
/// A list that only grows: who finds an order takes no lock.
#[derive(Debug)]
pub(crate) struct ByOrder<T> {
    known: OnceLock<(Arc<KeyOrder>, Arc<T>)>,
    next: OnceLock<Box<ByOrder<T>>>,
}

impl<T> Default for ByOrder<T> {
    fn default() -> Self {
        ByOrder {
            known: OnceLock::new(),
            next: OnceLock::new(),
        }
    }
}

impl<T> ByOrder<T> {
    /// What is known of this order. Whoever asks first makes it, and the others wait.
    pub(crate) fn get(
        &self,
        order: &Arc<KeyOrder>,
        make: impl FnOnce(&Arc<KeyOrder>) -> T,
    ) -> Arc<T> {
        let mut place = self;
        let mut make = Some(make);
        loop {
            // A panic in `make` leaves the place empty.
            let (other, known) = place.known.get_or_init(|| {
                let make = make.take().expect("each order has one place");
                (order.clone(), Arc::new(make(order)))
            });
            if Arc::ptr_eq(other, order) {
                return known.clone();
            }
            place = place.next.get_or_init(Box::default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_order_is_found_out_once_whoever_asks() {
        let orders = [0, 1, 2].map(|first| Arc::new(KeyOrder::new(vec![first, 7, 5]).unwrap()));
        let (by_order, made) = (ByOrder::default(), AtomicUsize::new(0));
        let find_out = |order: &Arc<KeyOrder>| {
            made.fetch_add(1, Ordering::Relaxed);
            order.keys()[0]
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            by_order.get(&orders[0], |_| -> i64 { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        std::thread::scope(|scope| {
            for first in 0..4 {
                let (by_order, orders, find_out) = (&by_order, &orders, &find_out);
                scope.spawn(move || {
                    for ask in first..first + 30 {
                        let order = &orders[ask % 3];
                        assert_eq!(*by_order.get(order, find_out), order.keys()[0]);
                    }
                });
            }
        });
        assert_eq!(made.into_inner(), 3);
    }
}
