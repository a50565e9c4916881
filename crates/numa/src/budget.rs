//! One limit on bytes for the whole process, shared by all node memory managers and by who else holds memory.

use crate::bytes::Bytes;
use eris_types::NodeId;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on bytes and how many of them are in use. Cheap to clone; clones share the counter.
///
/// Buffers count with the bytes they really occupy (rounded up to their slot, run or mapping), so that [`Budget::used`]
/// is zero again when everything has been dropped.
#[derive(Clone, Debug)]
pub struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// Written by whoever changes the setting. Relaxed: a reader that still sees the old limit came before the change.
    limit: AtomicU64,
    /// Written by every thread that takes or gives back bytes. Relaxed: the number guards no other memory; the
    /// read-modify-write alone keeps the sum under the limit.
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes, nothing used.
    pub fn new(limit: u64) -> Self {
        Budget(Arc::new(BudgetState {
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
        }))
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit for what is asked for from now on. Nothing is taken away from anybody: below what is in use,
    /// it denies everything until enough has been given back.
    pub fn set_limit(&self, limit: u64) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes that may still be taken; none if the limit was lowered below what is in use.
    pub fn free(&self) -> u64 {
        self.limit().saturating_sub(self.used())
    }

    /// Bytes in use now. Exceeds the limit only through [`Reservation::grow`] and after [`Budget::set_limit`].
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` out of the budget until the reservation is dropped.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they do not fit under the limit; nothing is taken then.
    pub fn try_reserve(&self, bytes: u64) -> Result<Reservation, OutOfMemory> {
        self.take(bytes)?;
        Ok(Reservation {
            budget: self.clone(),
            bytes,
        })
    }

    pub(crate) fn take(&self, bytes: u64) -> Result<(), OutOfMemory> {
        let limit = self.limit();
        self.0
            .used
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                // Who asks for nothing gets it, also beyond the limit.
                used.checked_add(bytes)
                    .filter(|&sum| sum <= limit || bytes == 0)
            })
            .map(|_| ())
            .map_err(|used| OutOfMemory {
                asked: bytes,
                used,
                limit,
                node: None,
                cause: Cause::Budget,
            })
    }

    pub(crate) fn give(&self, bytes: u64) {
        let before = self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes given back of {before}");
    }
}

/// Bytes taken out of a [`Budget`]; dropping it gives them back.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

impl Reservation {
    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `more` bytes in addition.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they do not fit; what is held stays held.
    pub fn try_grow(&mut self, more: u64) -> Result<(), OutOfMemory> {
        self.budget.take(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Takes `more` bytes even beyond the limit: for a holder that has already allocated them and can only report it.
    pub fn grow(&mut self, more: u64) {
        self.budget.0.used.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
    }

    /// Gives back `less` bytes.
    ///
    /// # Panics
    /// If fewer are held.
    pub fn shrink(&mut self, less: u64) {
        assert!(
            less <= self.bytes,
            "{less} bytes given back of {} held",
            self.bytes
        );
        self.bytes -= less;
        self.budget.give(less);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// Why memory was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The bytes do not fit under the budget's limit.
    Budget,
    /// The operating system denied a mapping, with this error number.
    System(i32),
}

/// Memory was denied; nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for, rounded up to what they would occupy.
    pub asked: u64,
    /// Bytes in use when they were denied.
    pub used: u64,
    /// The budget's limit in bytes.
    pub limit: u64,
    /// The node that was asked; `None` if the budget was asked directly.
    pub node: Option<NodeId>,
    /// Who denied.
    pub cause: Cause,
}

impl std::error::Error for OutOfMemory {}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory {
            asked,
            used,
            limit,
            node,
            cause,
        } = self;
        write!(f, "out of memory: {} asked", Bytes(*asked))?;
        if let Some(node) = node {
            write!(f, " on {node}")?;
        }
        write!(f, ", {} of {} in use", Bytes(*used), Bytes(*limit))?;
        match cause {
            Cause::Budget => Ok(()),
            Cause::System(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "; the operating system denied it: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_reservation_takes_nothing() {
        let budget = Budget::new(100);
        let mut held = budget.try_reserve(60).unwrap();
        let denied = budget.try_reserve(41).unwrap_err();
        assert_eq!((denied.asked, denied.used, denied.limit), (41, 60, 100));
        assert_eq!(
            denied.to_string(),
            "out of memory: 41 bytes asked, 60 bytes of 100 bytes in use"
        );
        assert!(held.try_grow(41).is_err());
        assert_eq!((held.bytes(), budget.used()), (60, 60));
        held.try_grow(40).unwrap();
        held.shrink(90);
        assert_eq!(budget.used(), 10);
        held.grow(200);
        assert_eq!(budget.used(), 210);
        drop(held);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_lower_limit_takes_nothing_away() {
        let budget = Budget::new(100);
        let mut held = budget.try_reserve(60).unwrap();
        budget.set_limit(50);
        assert_eq!((budget.limit(), budget.used(), budget.free()), (50, 60, 0));
        assert!(budget.try_reserve(1).is_err());
        assert!(budget.try_reserve(0).is_ok());
        held.shrink(20);
        assert_eq!(budget.free(), 10);
        budget.set_limit(200);
        held.try_grow(160).unwrap();
    }

    #[test]
    fn a_sum_beyond_the_numbers_is_denied_not_wrapped() {
        let budget = Budget::new(u64::MAX);
        let _held = budget.try_reserve(u64::MAX - 1).unwrap();
        assert!(budget.try_reserve(2).is_err());
    }

    #[test]
    fn threads_together_never_pass_the_limit() {
        let budget = Budget::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for step in 0..if cfg!(miri) { 50 } else { 5000 } {
                        let held = budget.try_reserve(1 + step % 600);
                        assert!(budget.used() <= 1000);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
