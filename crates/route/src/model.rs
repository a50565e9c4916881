//! Model-checked schedules of the inbox: `RUSTFLAGS="--cfg loom" cargo test --release -p eris-route --lib model`.
//!
//! Buffers are so small that every run wraps, fills and swaps.

use crate::{BufferSizes, Endpoint, FlushState, Header, Outgoing, Port, Rank, Router};
use eris_types::{AeuId, ObjectId};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

const TARGET: Endpoint = Endpoint::aeu(AeuId(0));

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn router<P: Send + 'static>() -> Arc<Router<P>> {
    router_of(1)
}

/// An inbox has room for two small commands of rank `Control`, or one of rank `Client`.
fn router_of<P: Send + 'static>(aeus: usize) -> Arc<Router<P>> {
    Router::new(
        aeus,
        BufferSizes {
            outgoing: 6,
            aeu_inbox: 12,
            session_inbox: 12,
        },
    )
}

fn header(sender: u16, callback: u64) -> Header {
    let sender = Endpoint::aeu(AeuId(sender));
    Header {
        kind: 1,
        rank: Rank::Control,
        object: ObjectId(1),
        sender,
        callback,
    }
}

/// Counts how often it is dropped. Not a loom type: it observes, it does not synchronise.
struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Receives `count` commands of three data words each, which must be whole; says in which order the callbacks came.
fn receive_all(port: &mut Port, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        for command in port.receive().into_iter().flatten() {
            assert_eq!(
                command.words, [command.header.callback; 3],
                "a torn command"
            );
            seen.push(command.header.callback);
        }
        thread::yield_now();
    }
    seen
}

fn send_all(mut outgoing: Outgoing, sender: u16, callbacks: std::ops::Range<u64>) {
    for callback in callbacks {
        outgoing.send(TARGET, header(sender, callback), &[callback; 3], None);
    }
    while outgoing.flush() == FlushState::Held {
        thread::yield_now();
    }
}

#[test]
fn two_senders_and_the_swap() {
    check(3, || {
        let router = router();
        let mut owner = router.aeu_port(AeuId(0));
        let senders = [1u16, 2].map(|sender| {
            let outgoing = Outgoing::new(router.clone());
            let first = sender as u64 * 10;
            thread::spawn(move || send_all(outgoing, sender, first..first + 1))
        });
        let mut seen = receive_all(&mut owner, 2);
        seen.sort_unstable();
        assert_eq!(seen, [10, 20]);
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn a_sender_fills_the_buffer_and_keeps_its_order() {
    check(3, || {
        let router = router();
        let mut owner = router.aeu_port(AeuId(0));
        let outgoing = Outgoing::new(router.clone());
        let sender = thread::spawn(move || send_all(outgoing, 1, 0..4));
        assert_eq!(receive_all(&mut owner, 4), [0, 1, 2, 3]);
        sender.join().unwrap();
    });
}

#[test]
fn a_parcel_to_a_session_that_closes_is_dropped_once() {
    check(3, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let router = router();
        let session = router.session().unwrap();
        let to = session.endpoint();
        let mut outgoing = Outgoing::new(router.clone());
        let parcel = Box::new(DropCounter(dropped.clone()));
        let sender = thread::spawn(move || {
            outgoing.send(to, header(1, 0), &[0; 2], Some(parcel));
            assert_eq!(outgoing.flush(), FlushState::Empty, "delivered or rejected");
        });
        drop(session);
        sender.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_late_reply_never_reaches_the_successor() {
    check(3, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let router = router();
        let session = router.session().unwrap();
        let to = session.endpoint();
        let mut outgoing = Outgoing::new(router.clone());
        let parcel = Box::new(DropCounter(dropped.clone()));
        let sender = thread::spawn(move || {
            outgoing.send(to, header(1, 0), &[0; 2], Some(parcel));
            assert_eq!(outgoing.flush(), FlushState::Empty);
        });
        drop(session);
        let mut successor = router.session().unwrap();
        assert_eq!(successor.endpoint().slot(), to.slot());
        assert!(successor.receive().into_iter().flatten().next().is_none());
        sender.join().unwrap();
        while !successor.is_empty() {
            assert!(successor.receive().into_iter().flatten().next().is_none());
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

/// The life of multicast commands: written once, read once by each target, and gone from the sender's buffer with the
/// last target. Later commands find no room at first where nobody has read the earlier ones. The third target does
/// not exist.
#[test]
fn a_multicast_is_read_once_by_each_target_and_then_forgotten() {
    check(2, || {
        let router = router_of(2);
        let mut owners = [0, 1].map(|id| router.aeu_port(AeuId(id)));
        let mut outgoing = Outgoing::new(router.clone());
        let sender = thread::spawn(move || {
            for callback in 0..3 {
                let targets = [0, 1, 2].map(AeuId);
                let parcel: Option<fn()> = None;
                outgoing.multicast(targets, header(3, callback), &[callback; 3], parcel);
            }
            while outgoing.flush() == FlushState::Held {
                thread::yield_now();
            }
            assert!(outgoing.has_no_multicast(), "commands are kept for nobody");
            assert_eq!(outgoing.traffic().rejected, 3);
        });
        for owner in &mut owners {
            assert_eq!(receive_all(owner, 3), [0, 1, 2]);
        }
        sender.join().unwrap();
    });
}

/// What is too large to be inline is copied for each target. A target that closes drops its copy, the other one reads
/// its own.
#[test]
fn a_target_that_goes_leaves_the_multicast_to_the_others() {
    check(2, || {
        let router = router_of(2);
        let mut stays = router.aeu_port(AeuId(0));
        let goes = router.aeu_port(AeuId(1));
        let mut outgoing = Outgoing::new(router.clone());
        let sender = thread::spawn(move || {
            let parcel: Option<fn()> = None;
            outgoing.multicast([AeuId(0), AeuId(1)], header(3, 7), &[7; 20], parcel);
            assert_eq!(outgoing.flush(), FlushState::Empty, "delivered or rejected");
            assert!(outgoing.has_no_multicast(), "commands are kept for nobody");
        });
        drop(goes);
        let mut seen = 0;
        while seen == 0 {
            for command in stays.receive().into_iter().flatten() {
                assert_eq!(command.words, [7; 20]);
                seen += 1;
            }
            thread::yield_now();
        }
        assert_eq!(seen, 1);
        sender.join().unwrap();
    });
}

/// A waker on which a loom thread can wait.
struct Alarm(loom::sync::Notify);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Loom reports a deadlock if the session sleeps on a reply.
#[test]
fn a_session_hears_of_its_reply() {
    check(3, || {
        let router = router();
        let mut session = router.session().unwrap();
        let to = session.endpoint();
        let mut outgoing = Outgoing::new(router.clone());
        let sender = thread::spawn(move || {
            outgoing.send(to, header(1, 7), &[7; 3], None);
            outgoing.flush();
        });
        let alarm = Arc::new(Alarm(loom::sync::Notify::new()));
        let waker = Waker::from(alarm.clone());
        loop {
            session.wake_by(&waker);
            if session.ready() {
                break;
            }
            alarm.0.wait();
        }
        assert_eq!(receive_all(&mut session, 1), [7]);
        sender.join().unwrap();
    });
}

/// Loom reports a deadlock if the session sleeps although the AEU has made room.
#[test]
fn a_rejected_sender_hears_of_room() {
    check(3, || {
        let router = router();
        let mut owner = router.aeu_port(AeuId(0));
        let mut session = router.session().unwrap();
        let sender = thread::spawn(move || {
            let alarm = Arc::new(Alarm(loom::sync::Notify::new()));
            let waker = Waker::from(alarm.clone());
            for callback in 0..3 {
                session
                    .outgoing()
                    .send(TARGET, header(1, callback), &[callback; 3], None);
            }
            loop {
                session.wake_by(&waker);
                if session.flush() == FlushState::Empty {
                    break;
                }
                alarm.0.wait();
            }
        });
        assert_eq!(receive_all(&mut owner, 3), [0, 1, 2]);
        sender.join().unwrap();
    });
}
