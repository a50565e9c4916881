//! What one command costs among many: sent by one thread, received by another.

use eris_route::{BufferSizes, Endpoint, FlushState, Header, Rank, Router};
use eris_types::{AeuId, ObjectId};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Words of a command beside its header.
const WORDS: usize = 2;
/// Commands between two looks at the inbox.
const BURST: u64 = 512;

/// Nanoseconds of a command between two threads that both send and receive, as AEUs do. `begin` is called on each with
/// its number, to pin it.
pub fn message(time: Duration, begin: impl Fn(usize) + Sync) -> f64 {
    let router = Router::<()>::new(2, BufferSizes::default());
    let barrier = Barrier::new(2);
    let work = |number: u16| {
        begin(number.into());
        let mut port = router.aeu_port(AeuId(number));
        let header = Header {
            kind: 1,
            rank: Rank::Scan,
            object: ObjectId(1),
            sender: Endpoint::aeu(AeuId(number)),
            callback: 0,
        };
        let other = Endpoint::aeu(AeuId(1 - number));
        let (mut received, mut sum) = (0u64, 0u64);
        barrier.wait();
        let began = Instant::now();
        while began.elapsed() < time {
            if port.flush() != FlushState::Held {
                let (outgoing, _) = port.split();
                (0..BURST).for_each(|word| outgoing.send(other, header, &[word; WORDS], None));
            }
            for command in port.receive().into_iter().flatten() {
                received += 1;
                sum = sum.wrapping_add(command.words[0]);
            }
        }
        black_box(sum);
        (received, began.elapsed())
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|number| scope.spawn(move || work(number)));
        let joined = threads.map(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let received: u64 = joined.iter().map(|(received, _)| received).sum();
        let thread_time: Duration = joined.iter().map(|(_, took)| *took).sum();
        thread_time.as_nanos() as f64 / received.max(1) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_some_time() {
        let nanoseconds = message(Duration::from_millis(100), |_| {});
        assert!(nanoseconds > 0.0 && nanoseconds.is_finite());
    }
}
