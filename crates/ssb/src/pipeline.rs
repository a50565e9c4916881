//! Units made by many threads, taken by one in order.
//!
//! ```text
//! thread 0: unit 0, n, 2n …   ──▶ [one unit] ──┐
//! thread 1: unit 1, n+1 …     ──▶ [one unit] ──┼──▶ consumer takes 0, 1, 2 … in turn
//! …                                             │
//! ```
//!
//! Giving the units out in turn keeps them in order without a buffer to sort them; each thread is at most one
//! finished unit ahead, which bounds memory.

use std::sync::mpsc::sync_channel;
use std::thread;

/// Calls `consume` with `produce(0)`, `produce(1)`, … `produce(units - 1)`, produced on `threads` threads; stops at the
/// first error of either.
pub(crate) fn in_order<T: Send, E: Send>(
    units: usize,
    threads: usize,
    produce: impl Fn(usize) -> Result<T, E> + Sync,
    mut consume: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.clamp(1, units.max(1));
    let produce = &produce;
    thread::scope(|scope| {
        let receivers: Vec<_> = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(1);
                scope.spawn(move || {
                    for unit in (first..units).step_by(threads) {
                        // The consumer has gone: it met an error and reports it.
                        if sender.send(produce(unit)).is_err() {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        for unit in 0..units {
            match receivers[unit % threads].recv() {
                Ok(item) => consume(item?)?,
                // The producer panicked; leaving the scope passes the panic on.
                Err(_) => break,
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_for_any_number_of_threads() {
        for threads in [1, 2, 3, 8, 64] {
            let mut seen = Vec::new();
            let result = in_order::<_, ()>(17, threads, Ok, |unit| {
                seen.push(unit);
                Ok(())
            });
            assert_eq!(result, Ok(()));
            assert_eq!(seen, (0..17).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_stops_all() {
        let produced = in_order(1_000_000_000, 2, Err::<(), _>, |()| Ok(()));
        assert_eq!(produced, Err(0));
        let consumed = in_order(1_000_000_000, 2, Ok, |unit| {
            if unit == 5 { Err("full") } else { Ok(()) }
        });
        assert_eq!(consumed, Err("full"));
    }
}
