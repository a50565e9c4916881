//! The run token: who may step an AEU, and how a sleeping one is woken without losing a wake-up.
//!
//! ```text
//!                      doze                   park
//!            ┌──────────────────► Dozing ──────────────► Parked
//!            │                      │  ▲ the thread         │ ▲
//!         Running ◄─── ring, wake ──┘                take │ │ fall_asleep
//!       the thread ▲                                      ▼ │
//!            ▲     └──────────── ring (and unpark) ── Parked │
//!            │                                              │
//!            │ hand_over (and unpark)        doze           │
//!            └───────────────────────── Held ─────► Settling ┘
//!                              a client  ▲            │
//!                                        └─── ring ───┘
//! ```
//!
//! | state | who steps | a ring does |
//! |---|---|---|
//! | `Running` | the AEU's thread | nothing: the thread looks at its inbox before it sleeps |
//! | `Dozing` | the AEU's thread, a last time before it sleeps | back to `Running` |
//! | `Parked` | nobody | `Running`, and unparks the thread |
//! | `Held` | a client | nothing: the client lets it fall asleep before it leaves |
//! | `Settling` | a client, a last time before it leaves | back to `Held` |
//!
//! **No wake-up is lost.** Whoever is about to leave first announces it (`Dozing`, `Settling`), passes a `SeqCst`
//! fence, and then does one more ordinary step. A sender first delivers, passes a `SeqCst` fence, and then looks at the
//! state. Of the two fences one is first: either the step sees the delivery, or the sender sees the announcement and
//! takes it back, so that the following `park` or `fall_asleep` fails. The same holds for room that appears for a
//! sender who was rejected, and for the order to stop. Nothing outside the token is looked at without owning it.
//!
//! A *time* that has come, for a task that rests, is like a delivery of the thread to itself: it rings, and a client
//! that is there looks at the clock after its announcement.
//!
//! **Ownership.** Each transition to `Parked` is a release, each one from `Parked` an acquire, so that what one owner
//! wrote the next one sees. A ring that turns `Parked` into `Running` makes the *thread* the owner, which acquires when
//! it sees `Running`; the ringing sender gains nothing.
//!
//! The thread sleeps with `std::thread::park`. It is one futex word on Linux, safe code, and known to the model
//! checker.

use crate::sync::{AtomicU64, Ordering, Thread, current, fence, park, park_timeout};
use crossbeam_utils::CachePadded;
use eris_route::Bell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const RUNNING: u64 = 0;
const DOZING: u64 = 1;
const PARKED: u64 = 2;
const HELD: u64 = 3;
const SETTLING: u64 = 4;

/// After so long a thread whose time has come looks whether it has been given the token.
const AGAIN: Duration = Duration::from_micros(100);

pub(crate) struct Token {
    /// Looked at by every sender after every delivery, so on a line of its own.
    state: CachePadded<AtomicU64>,
    /// Set by the AEU's thread before it first dozes, so before anyone could need it.
    thread: OnceLock<Thread>,
}

impl Token {
    /// Owned by the thread that will call [`Token::adopt`].
    pub(crate) fn new() -> Self {
        Token {
            state: CachePadded::new(AtomicU64::new(RUNNING)),
            thread: OnceLock::new(),
        }
    }

    /// The calling thread is the AEU's.
    pub(crate) fn adopt(&self) {
        let first = self.thread.set(current()).is_ok();
        assert!(first, "an AEU has one thread");
    }

    // ---- the AEU's thread, while it owns the token ----

    /// Announces that the thread wants to sleep. It must step once more, then [`Token::park`] or [`Token::wake`].
    pub(crate) fn doze(&self) {
        self.announce(DOZING);
    }

    /// Takes the announcement back: the last step found work.
    pub(crate) fn wake(&self) {
        // Relaxed: the owner stays the owner. A ring may have been faster; both write the same.
        self.state.swap(RUNNING, Ordering::Relaxed);
    }

    /// Sleeps until the thread owns the token again. False if a ring came since [`Token::doze`], and there was no
    /// sleep. At the time given, if any, the thread rings itself.
    pub(crate) fn park(&self, until: Option<Instant>) -> bool {
        if !self.lie_down() {
            return false;
        }
        while !self.is_running() {
            let Some(until) = until else {
                park();
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                park_timeout(left);
                continue;
            }
            self.ring();
            if !self.is_running() {
                // A client has it, who will see that it is time.
                park_timeout(AGAIN);
            }
        }
        true
    }

    /// The first half of [`Token::park`]: from here on the thread does not own the token. False as there.
    pub(crate) fn lie_down(&self) -> bool {
        self.replace(DOZING, PARKED)
    }

    /// Whether the thread owns the token (again): the second half of [`Token::park`] waits for it.
    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Ordering::Acquire) == RUNNING
    }

    // ---- a client ----

    /// Takes the token of a parked AEU by one CAS. The client then owns the AEU, and must [`Token::doze_held`] and so
    /// on.
    pub(crate) fn take(&self) -> bool {
        self.replace(PARKED, HELD)
    }

    /// Whether nobody owns the token: a hint, outdated when it is read.
    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == PARKED
    }

    /// Whether a client owns the token, and will soon give it back: a hint, too.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state.load(Ordering::Relaxed), HELD | SETTLING)
    }

    /// Announces that the client wants to leave. It must step once more, then [`Token::fall_asleep`] or
    /// [`Token::hand_over`].
    pub(crate) fn doze_held(&self) {
        self.announce(SETTLING);
    }

    /// Leaves the AEU parked. False if a ring came since [`Token::doze_held`]: the client still owns the token.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.replace(SETTLING, PARKED)
    }

    /// Gives the token to the AEU's thread and wakes it: there is work left.
    pub(crate) fn hand_over(&self) {
        // A swap, like the one in `wake`: it comes after a ring's exchange whatever the memory model makes of two
        // writers.
        self.state.swap(RUNNING, Ordering::AcqRel);
        self.unpark();
    }

    fn announce(&self, state: u64) {
        self.state.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Bell for Token {
    #[inline]
    fn ring(&self) {
        fence(Ordering::SeqCst);
        loop {
            let (from, to) = match self.state.load(Ordering::Relaxed) {
                DOZING => (DOZING, RUNNING),
                PARKED => (PARKED, RUNNING),
                SETTLING => (SETTLING, HELD),
                _ => return,
            };
            if self.replace(from, to) {
                if from == PARKED {
                    self.unpark();
                }
                return;
            }
        }
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test --release -p eris-aeu --lib model`
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    /// An AEU of one flag: mail. Owned as a real one is: a race on `owned` is a violation of the token.
    struct Toy {
        token: Token,
        mail: AtomicBool,
        owned: loom::cell::UnsafeCell<usize>,
    }

    impl Toy {
        fn new() -> Arc<Toy> {
            let (mail, owned) = (AtomicBool::new(false), loom::cell::UnsafeCell::new(0));
            Arc::new(Toy {
                token: Token::new(),
                mail,
                owned,
            })
        }

        /// One step of whoever owns the token; true if it found mail.
        fn step(&self) -> bool {
            let found =
                self.mail.load(Ordering::Relaxed) && self.mail.swap(false, Ordering::Acquire);
            self.owned.with_mut(|count| {
                // SAFETY: the caller owns the token; loom reports a race if two do.
                unsafe { *count += found as usize }
            });
            found
        }

        fn handled(&self) -> usize {
            // SAFETY: as above.
            self.owned.with(|count| unsafe { *count })
        }

        fn deliver(&self) {
            self.mail.store(true, Ordering::Release);
            self.token.ring();
        }

        /// The loop of the AEU's thread, until it has seen a mail. `false`: it slept through and another handled it.
        fn run_until_mail(&self) {
            loop {
                if self.step() || self.handled() > 0 {
                    return;
                }
                self.token.doze();
                if self.step() || self.handled() > 0 {
                    self.token.wake();
                    return;
                }
                self.token.park(None);
            }
        }

        /// A client's visit.
        fn visit(&self) {
            if !self.token.take() {
                return;
            }
            loop {
                self.token.doze_held();
                self.step();
                // Who handled the mail must let the thread see it.
                if self.handled() > 0 {
                    return self.token.hand_over();
                }
                if self.token.fall_asleep() {
                    return;
                }
            }
        }

        /// A client that leaves work behind.
        fn hurry(&self) {
            if self.token.take() {
                self.step();
                self.token.hand_over();
            }
        }
    }

    /// Runs the loop of an AEU's thread beside others that use its token. Loom reports a deadlock if the thread sleeps
    /// while the mail lies there. The thread is not the model's first one: that one joins, and in loom a late unpark
    /// disturbs a join.
    fn model(preemptions: usize, others: &'static [fn(&Toy)]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || {
            let toy = Toy::new();
            let aeu = {
                let toy = toy.clone();
                thread::spawn(move || {
                    toy.token.adopt();
                    let spawn = |other: &fn(&Toy)| {
                        let (toy, other) = (toy.clone(), *other);
                        thread::spawn(move || other(&toy))
                    };
                    let others: Vec<_> = others.iter().map(spawn).collect();
                    toy.run_until_mail();
                    others
                })
            };
            aeu.join()
                .unwrap()
                .into_iter()
                .for_each(|other| other.join().unwrap());
            assert!(toy.handled() > 0 || toy.mail.load(Ordering::Relaxed));
        });
    }

    #[test]
    fn a_delivery_wakes_a_thread_that_goes_to_sleep() {
        model(4, &[Toy::deliver]);
    }

    #[test]
    fn two_senders_and_one_sleep() {
        model(3, &[Toy::deliver, Toy::deliver]);
    }

    #[test]
    fn a_client_in_place_neither_races_nor_swallows_a_delivery() {
        model(3, &[Toy::visit, Toy::deliver]);
    }

    #[test]
    fn work_that_a_client_leaves_behind_is_the_threads() {
        model(3, &[Toy::hurry, Toy::deliver]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_a_parked_token_can_be_taken() {
        let token = Token::new();
        assert!(!token.take(), "running");
        token.doze();
        assert!(!token.take(), "dozing");
        token.state.store(PARKED, Ordering::Relaxed);
        assert!(token.take());
        assert!(!token.take(), "held");
        token.doze_held();
        assert!(!token.take(), "settling");
        assert!(token.fall_asleep());
        assert!(token.take());
    }

    #[test]
    fn a_ring_takes_an_announcement_back() {
        let token = Token::new();
        token.doze();
        token.ring();
        assert!(!token.park(None), "rung, so it does not sleep");
        token.state.store(HELD, Ordering::Relaxed);
        token.doze_held();
        token.ring();
        assert!(!token.fall_asleep());
        assert_eq!(token.state.load(Ordering::Relaxed), HELD);
    }
}
