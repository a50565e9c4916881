//! The few words that all threads share, and how they do so without locks.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//!           [atomics: under the engine, knows none of them]
//! ```
//!
//! | what | who waits for whom |
//! |---|---|
//! | [`Snapshots`]: which ones readers hold | nobody; whoever needs the horizon gathers them |
//! | [`CommitOrder`]: timestamps that have finished, made visible in order | nobody |
//! | [`Waiting`]: who waits until a timestamp is visible | those alone |
//! | [`Sharers`]: who shares something | who closes it, for those who are in it |
//! | [`Sequence`]: numbers in a row | nobody, or for whoever serves: three ways |
//! | [`Latch`]: the right to be the only one | for who has it: three ways |
//! | [`Pool`]: what is kept for the next statement | nobody |
//! | [`Shown`]: what many show and one at a time looks at | who looks, for others who look |
//! | [`WriteLock`]: the right to change, shared or alone | who is alone, for those who share it |
//! | [`Record`]: words that are read together | readers for the one writer |
//! | [`Lock`], [`SharedLock`]: what is not on the way of a short statement | everybody; acquisitions are counted |
//!
//! What this is worth: docs/decisions/0030. Each protocol is checked by Loom in the module `model`. Loom takes a
//! `SeqCst` access for acquire and release only, but knows `SeqCst` fences. So where two threads each write one word
//! and then read the other's, the accesses are
//! `SeqCst`, which is enough on a machine, and the model has a fence between them.
//!
//! # What this crate must not know
//!
//! What a number or a latch stands for, who executes anything, and what is kept in a pool.

#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod choose;
mod latch;
mod lock;
mod order;
mod place;
mod pool;
mod record;
mod sequence;
mod sharers;
mod shown;
mod slots;
mod snapshots;
mod sync;
mod waiting;
mod way;
#[cfg(not(loom))]
mod write_lock;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub use choose::{Cost, calibrate, cheapest, estimate};
pub use latch::{Latch, LatchGuard};
pub use lock::{Lock, LockGuard, SharedLock, acquisitions};
pub use order::CommitOrder;
pub use pool::Pool;
pub use record::Record;
pub use sequence::Sequence;
pub use sharers::Sharers;
pub use shown::Shown;
pub use snapshots::{Hold, Snapshots};
pub use waiting::Waiting;
pub use way::Way;
#[cfg(not(loom))]
pub use write_lock::{ExclusiveWrite, SharedWrite, WriteLock};
