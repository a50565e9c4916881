//! AEUs on threads.
#![cfg(not(loom))]

mod common;

use common::*;
use eris_aeu::{Header, Rank, Runtime, Session};
use eris_numa::Topology;
use eris_route::{BufferSizes, Endpoint};
use eris_types::{AeuId, ObjectId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const SMALL: BufferSizes = BufferSizes {
    outgoing: 32,
    aeu_inbox: 128,
    session_inbox: 4096,
};

fn start(aeus: u16, sizes: BufferSizes) -> Runtime<Numbers> {
    Runtime::start(&Topology::fake(1, aeus), sizes, |_| Numbers::default()).unwrap()
}

fn receive(session: &mut Session<Arc<()>>) -> Vec<(u16, u64)> {
    let received = session.receive(PATIENCE).expect("an answer in time");
    received
        .map(|command| (command.header.kind, command.header.callback))
        .collect()
}

/// Waits until all AEUs sleep, and sleep on.
fn asleep(runtime: &Runtime<Numbers>) {
    let steps = || -> Vec<u64> {
        let snapshot = runtime.telemetry().snapshot();
        snapshot
            .aeus
            .iter()
            .map(|aeu| aeu.steps_busy + aeu.steps_idle)
            .collect()
    };
    let given_up = Instant::now() + PATIENCE;
    loop {
        let before = steps();
        thread::sleep(Duration::from_millis(20));
        if steps() == before {
            return;
        }
        assert!(Instant::now() < given_up, "an idle AEU keeps stepping");
    }
}

#[test]
fn many_clients_are_all_answered() {
    let runtime = start(3, SMALL);
    thread::scope(|scope| {
        for client in 0..4u64 {
            let runtime = &runtime;
            scope.spawn(move || {
                let mut session = runtime.session().unwrap();
                let mut open: BTreeSet<u64> = BTreeSet::new();
                for callback in 0..2000 {
                    let to = (callback + client) % 3;
                    let (kind, words) = if callback % 5 == 0 {
                        (COUNT, [3, 0])
                    } else {
                        (FORWARD, [(to + 1) % 3, 7])
                    };
                    ask(session.port(), to as u16, 1, kind, callback, &words);
                    open.insert(callback);
                    if callback % 64 == 63 {
                        assert!(session.flush_blocking(PATIENCE));
                        while open.len() > 32 {
                            for (kind, callback) in receive(&mut session) {
                                assert!(kind == DONE && open.remove(&callback), "answered once");
                            }
                        }
                    }
                }
                while !open.is_empty() {
                    for (kind, callback) in receive(&mut session) {
                        assert!(kind == DONE && open.remove(&callback));
                    }
                }
            });
        }
    });
    runtime.shutdown();
}

#[test]
fn an_idle_engine_sleeps_and_wakes_on_delivery() {
    let runtime = start(2, SMALL);
    let mut session = runtime.session().unwrap();
    for callback in 0..20 {
        asleep(&runtime);
        ask(
            session.port(),
            (callback % 2) as u16,
            1,
            NOTE,
            callback,
            &[],
        );
        session.flush();
        assert_eq!(receive(&mut session), [(DONE, callback)]);
    }
    let snapshot = runtime.telemetry().snapshot();
    assert!(
        snapshot
            .aeus
            .iter()
            .all(|aeu| aeu.parks >= 5 && aeu.wakes >= 5),
        "{snapshot:?}"
    );
}

#[test]
fn clients_in_place_and_from_outside_share_an_aeu() {
    let runtime = start(1, SMALL);
    let answered: u64 = thread::scope(|scope| {
        let clients: Vec<_> = (0..4u64)
            .map(|client| {
                let runtime = &runtime;
                scope.spawn(move || {
                    let mut session = runtime.session().unwrap();
                    let (sender, mut in_place) = (session.endpoint(), 0);
                    for callback in 0..300 {
                        let header = Header {
                            kind: NOTE,
                            rank: Rank::Client,
                            object: ObjectId(client as u32),
                            sender,
                            callback,
                        };
                        let visit = |aeu: &mut eris_aeu::Aeu<Numbers>| {
                            aeu.execute_in_place(header, &[], None)
                        };
                        if client % 2 == 0 && runtime.try_run_in_place(AeuId(0), visit).is_some() {
                            in_place += 1;
                            let answer: Vec<_> = session.try_receive().expect("at once").collect();
                            assert_eq!(answer[0].header.callback, callback);
                        } else {
                            session.port().outgoing().send(
                                Endpoint::aeu(AeuId(0)),
                                header,
                                &[],
                                None,
                            );
                            session.flush();
                            assert_eq!(receive(&mut session), [(DONE, callback)]);
                        }
                        if callback % 50 == 0 {
                            thread::sleep(Duration::from_millis(1));
                        }
                    }
                    in_place
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    assert!(answered > 0, "no client ever found the AEU parked");
    asleep(&runtime);
    let noted = runtime.try_run_in_place(AeuId(0), |aeu| {
        aeu.handler()
            .groups
            .iter()
            .map(|(_, _, callbacks)| callbacks.len())
            .sum::<usize>()
    });
    assert_eq!(noted, Some(1200));
}

#[test]
fn a_client_that_panics_in_place_gives_the_aeu_back() {
    let runtime = start(1, SMALL);
    asleep(&runtime);
    let panicking = std::panic::AssertUnwindSafe(|| {
        runtime.try_run_in_place(AeuId(0), |_| {
            std::panic::resume_unwind(Box::new("a client's fault"))
        })
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    let mut session = runtime.session().unwrap();
    ask(session.port(), 0, 1, NOTE, 1, &[]);
    session.flush();
    assert_eq!(receive(&mut session), [(DONE, 1)]);
}

#[test]
fn who_rests_goes_on_in_time() {
    let runtime = start(2, SMALL);
    let mut session = runtime.session().unwrap();
    let began = Instant::now();
    // Two at once, of which one has shorter rests.
    ask(session.port(), 0, 1, REST, 1, &[11, 2_000]);
    ask(session.port(), 0, 1, REST, 2, &[11, 500]);
    session.flush();
    assert_eq!(receive(&mut session), [(DONE, 2)]);
    assert!(began.elapsed() >= Duration::from_millis(5));
    assert_eq!(receive(&mut session), [(DONE, 1)]);
    assert!(began.elapsed() >= Duration::from_millis(20));
    let parks = runtime.telemetry().snapshot().aeus[0].parks;
    assert!(parks > 5, "it slept {parks} times");
}

#[test]
fn clients_in_place_do_not_keep_a_task_from_its_time() {
    let runtime = start(1, SMALL);
    let mut session = runtime.session().unwrap();
    ask(session.port(), 0, 1, REST, 1, &[2, 3_600_000_000]);
    ask(session.port(), 0, 1, REST, 2, &[50, 200]);
    session.flush();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut visits = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        visits += u64::from(runtime.try_run_in_place(AeuId(0), |_| {}).is_some());
                    }
                    visits
                })
            })
            .collect();
        assert_eq!(receive(&mut session), [(DONE, 2)]);
        is_over.store(true, Ordering::Relaxed);
        let visits: u64 = visitors.into_iter().map(|one| one.join().unwrap()).sum();
        assert!(visits > 0, "they never found it asleep");
    });
    // The other one would rest for an hour.
    runtime.shutdown();
    assert_eq!(receive(&mut session), [(DONE, 1)]);
}

/// The thread sleeps and knows of no time.
#[test]
fn a_task_that_first_rests_in_place_goes_on_in_time() {
    let runtime = start(1, SMALL);
    let mut session = runtime.session().unwrap();
    asleep(&runtime);
    let header = Header {
        kind: REST,
        rank: Rank::Client,
        object: ObjectId(1),
        sender: session.endpoint(),
        callback: 1,
    };
    let visit = |aeu: &mut eris_aeu::Aeu<Numbers>| {
        aeu.execute_in_place(header, &[3, 1_000], None);
        assert!(!aeu.work(), "it rests");
    };
    assert!(runtime.try_run_in_place(AeuId(0), visit).is_some());
    assert_eq!(receive(&mut session), [(DONE, 1)]);
}

#[test]
fn shutdown_finishes_what_has_arrived() {
    let runtime = start(2, SMALL);
    let mut session = runtime.session().unwrap();
    for callback in 0..5 {
        ask(session.port(), 0, 1, COUNT, callback, &[500]);
        ask(session.port(), 1, 1, FORWARD, 10 + callback, &[0]);
    }
    assert!(session.flush_blocking(PATIENCE));
    runtime.shutdown();
    let mut done: Vec<u64> = session
        .try_receive()
        .unwrap()
        .map(|command| command.header.callback)
        .collect();
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
    ask(session.port(), 0, 1, NOTE, 99, &[]);
    session.flush();
    assert_eq!(
        session.port().traffic().rejected,
        1,
        "nobody is there any more"
    );
}

#[test]
fn a_session_can_be_awaited() {
    let runtime = start(2, SMALL);
    let mut session = runtime.session().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(session.poll_ready(&mut cx).is_pending());
    let (finished, result) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            ask(session.port(), 1, 1, COUNT, 4, &[100]);
            let callbacks = block_on(async {
                session.flushed().await;
                session
                    .next()
                    .await
                    .map(|command| command.header.callback)
                    .collect::<Vec<_>>()
            });
            finished.send(callbacks).unwrap();
        });
        assert_eq!(result.recv_timeout(PATIENCE), Ok(vec![4]));
    });
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_timeout_is_kept() {
    let runtime = start(1, SMALL);
    let mut session = runtime.session().unwrap();
    let began = Instant::now();
    assert!(session.receive(Duration::from_millis(5)).is_none());
    assert!(began.elapsed() >= Duration::from_millis(5));
}
