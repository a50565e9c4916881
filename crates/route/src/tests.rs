//! Delivery as a whole: what is sent arrives, once, in order, whatever the sizes; and nothing leaks.

use crate::{BufferSizes, Endpoint, FlushState, Header, Piece, Port, Rank, RouteError, Router};
use eris_types::{AeuId, ObjectId};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::thread;

const SMALL: BufferSizes = BufferSizes {
    outgoing: 16,
    aeu_inbox: 40,
    session_inbox: 32,
};

fn header<P>(from: &Port<P>, rank: Rank, callback: u64) -> Header {
    Header {
        kind: 3,
        rank,
        object: ObjectId(9),
        sender: from.endpoint(),
        callback,
    }
}

fn send<P>(
    from: &mut Port<P>,
    to: Endpoint,
    rank: Rank,
    callback: u64,
    words: &[u64],
    parcel: Option<Box<P>>,
) {
    let header = header(from, rank, callback);
    from.outgoing().send(to, header, words, parcel);
}

/// What makes no parcel of a multicast.
const NO_PARCEL: Option<fn()> = None;

fn aeu(id: u16) -> Endpoint {
    Endpoint::aeu(AeuId(id))
}

fn callbacks(port: &mut Port) -> Vec<u64> {
    port.receive()
        .into_iter()
        .flatten()
        .map(|command| command.header.callback)
        .collect()
}

#[derive(Clone, Default)]
struct Live(Arc<AtomicUsize>);

struct Counted(Live);

/// A parcel of one receiver, or what several share.
enum Either {
    Own(#[expect(dead_code, reason = "counted until it is dropped")] Counted),
    Shared(#[expect(dead_code, reason = "counted until it is dropped")] Arc<Counted>),
}

impl Live {
    fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "dropped twice");
    }
}

/// Remembers that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_sender_hears_of_an_aeu_that_opens() {
    let router = Router::new(1, SMALL);
    let mut session = router.session().unwrap();
    let woken = Arc::new(Woken::default());
    send(&mut session, aeu(0), Rank::Client, 8, &[], None);
    session.wake_by(&woken.clone().into());
    assert_eq!(session.flush(), FlushState::Held, "nobody is there yet");
    assert!(!woken.0.load(Ordering::Relaxed));
    let mut one = router.aeu_port(AeuId(0));
    assert!(woken.0.load(Ordering::Relaxed));
    assert_eq!(session.flush(), FlushState::Empty);
    assert_eq!(callbacks(&mut one), [8]);
}

#[test]
fn the_header_survives_the_trip() {
    let router = Router::new(2, SMALL);
    let (mut one, mut two) = (router.aeu_port(AeuId(0)), router.aeu_port(AeuId(1)));
    for rank in Rank::ALL {
        let header = Header {
            kind: u16::MAX,
            rank,
            object: ObjectId(u32::MAX - 1),
            sender: one.endpoint(),
            callback: u64::MAX,
        };
        one.outgoing()
            .send(two.endpoint(), header, &[1, 2], Some(Box::new("parcel")));
        assert_eq!(one.flush(), FlushState::Empty);
        let command = two.receive().unwrap().next().unwrap();
        assert_eq!((command.header, command.words), (header, &[1, 2][..]));
        assert_eq!(*command.parcel.unwrap(), "parcel");
        assert!(two.receive().is_none());
    }
}

#[test]
fn a_command_larger_than_every_buffer_arrives() {
    let router = Router::new(2, SMALL);
    let (mut one, mut two) = (router.aeu_port(AeuId(0)), router.aeu_port(AeuId(1)));
    let words: Vec<u64> = (0..1000).collect();
    let header = header(&one, Rank::Client, 0);
    one.outgoing()
        .send(aeu(1), header, &words, Some(Box::new(5u8)));
    one.outgoing()
        .multicast([AeuId(1), AeuId(0)], header, &words, Some(|| 6u8));
    one.flush();
    let seen: Vec<_> = two
        .receive()
        .unwrap()
        .map(|command| (command.words.to_vec(), command.parcel))
        .collect();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|(seen, parcel)| *seen == words && parcel.is_some())
    );
    assert_eq!(one.receive().unwrap().next().unwrap().words, words);
}

#[test]
fn multicast_and_unicast_keep_their_order() {
    let router = Router::new(3, SMALL);
    let mut one = router.aeu_port(AeuId(0));
    let mut others = [router.aeu_port(AeuId(1)), router.aeu_port(AeuId(2))];
    let mut expected = Vec::new();
    for callback in 0..50 {
        let header = header(&one, Rank::Scan, callback);
        if callback % 3 == 0 {
            one.outgoing()
                .multicast([AeuId(1), AeuId(2)], header, &[callback; 2], NO_PARCEL);
            expected.push(callback);
        } else {
            one.outgoing().send(aeu(1), header, &[], None);
        }
    }
    let (mut at_one, mut at_two) = (Vec::new(), Vec::new());
    while one.flush() == FlushState::Held || !others[0].is_empty() || !others[1].is_empty() {
        at_one.extend(callbacks(&mut others[0]));
        at_two.extend(callbacks(&mut others[1]));
    }
    assert_eq!(at_one, (0..50).collect::<Vec<_>>());
    assert_eq!(at_two, expected);
}

#[test]
fn higher_ranks_get_through_when_lower_ones_are_full() {
    let router = Router::<()>::new(2, SMALL);
    let (mut one, mut two) = (router.aeu_port(AeuId(0)), router.aeu_port(AeuId(1)));
    let mut sent = [0; 4];
    for &rank in &Rank::ALL {
        for _ in 0..20 {
            send(&mut one, aeu(1), rank, 0, &[0], None);
        }
        assert_eq!(one.flush(), FlushState::Held);
    }
    let mut seen = [0; 4];
    for command in two.receive().unwrap() {
        seen[command.header.rank as usize] += 1;
        sent[command.header.rank as usize] += 4;
    }
    assert_eq!(
        sent,
        [20, 8, 8, 4],
        "40 words: 20, 30, 36 and 40 may be taken"
    );
    assert!(seen.iter().all(|&count| count > 0));
    assert_eq!(one.split().0.congested(), Some(Rank::Control));
    // Nothing is lost, and the pressure goes away.
    while one.flush() == FlushState::Held || !two.is_empty() {
        for command in two.receive().into_iter().flatten() {
            seen[command.header.rank as usize] += 1;
        }
    }
    assert_eq!(seen, [20; 4]);
    assert_eq!(one.split().0.congested(), None);
    assert_eq!(one.pending(aeu(1)), 0);
}

#[test]
fn ranks_that_are_not_admitted_wait_at_their_sender() {
    let router = Router::new(2, SMALL);
    let (mut one, mut two) = (router.aeu_port(AeuId(0)), router.aeu_port(AeuId(1)));
    two.admit_from(Rank::Reply);
    send(&mut one, aeu(1), Rank::Scan, 1, &[], None);
    send(&mut one, aeu(1), Rank::Reply, 2, &[], None);
    assert_eq!(one.flush(), FlushState::Held);
    assert_eq!(callbacks(&mut two), [2]);
    two.admit_from(Rank::Client);
    assert_eq!(one.flush(), FlushState::Empty);
    assert_eq!(callbacks(&mut two), [1]);
}

#[test]
fn commands_to_an_aeu_not_yet_there_wait_for_it() {
    let router = Router::new(1, SMALL);
    let mut session = router.session().unwrap();
    send(&mut session, aeu(0), Rank::Client, 4, &[], None);
    assert_eq!(session.flush(), FlushState::Held);
    let mut late = router.aeu_port(AeuId(0));
    assert_eq!(session.flush(), FlushState::Empty);
    assert_eq!(callbacks(&mut late), [4]);
}

#[test]
fn parcels_are_dropped_once_wherever_they_are() {
    let live = Live::default();
    let router = Router::new(2, SMALL);
    let (mut one, mut two) = (router.aeu_port(AeuId(0)), router.aeu_port(AeuId(1)));
    let parcel = || Some(Box::new(Either::Own(live.one())));
    let mut session = router.session().unwrap();
    let gone = session.endpoint();
    for callback in 0..4 {
        send(&mut one, gone, Rank::Reply, callback, &[0; 30], parcel());
    }
    one.flush();
    let first = session.receive().unwrap().next().unwrap().parcel;
    assert!(first.is_some());
    assert_eq!(
        live.count(),
        1,
        "the other three were dropped with the batch"
    );
    drop(first);
    send(&mut one, gone, Rank::Reply, 9, &[], parcel());
    one.flush();
    send(&mut one, gone, Rank::Reply, 9, &[], parcel());
    assert_eq!(live.count(), 2);
    drop(session);
    assert_eq!(live.count(), 1, "delivered and not read");
    assert_eq!(one.flush(), FlushState::Empty);
    assert_eq!((live.count(), one.traffic().rejected), (0, 1), "rejected");

    let shared: Arc<Counted> = Arc::new(live.one());
    let header = header(&one, Rank::Scan, 0);
    for _ in 0..40 {
        one.outgoing().multicast(
            [AeuId(0), AeuId(1), AeuId(77)],
            header,
            &[1; 5],
            Some(|| Either::Shared(shared.clone())),
        );
    }
    one.flush();
    two.receive().unwrap().next();
    drop((one, two));
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn a_slot_is_reused_by_a_stranger() {
    let router = Router::new(1, SMALL);
    let mut one = router.aeu_port(AeuId(0));
    let first = router.session().unwrap().endpoint();
    let mut sessions = Vec::new();
    let successor = loop {
        let session = router.session().unwrap();
        if session.endpoint().slot() == first.slot() {
            break session;
        }
        // Dropped at once, so that its slot rests behind the first one.
        sessions.push(session.endpoint());
        assert!(sessions.len() < 1000, "the slot never came back");
    };
    let mut successor = successor;
    assert!(sessions.len() >= 60, "it has rested");
    send(&mut one, successor.endpoint(), Rank::Reply, 1, &[], None);
    send(&mut one, first, Rank::Reply, 2, &[], None);
    one.flush();
    assert_eq!(callbacks(&mut successor), [1]);
    assert_eq!(one.traffic().rejected, 1);
}

#[test]
fn sessions_run_out() {
    let router = Router::new(
        1,
        BufferSizes {
            session_inbox: 32,
            ..SMALL
        },
    );
    let open: Vec<Port> = (0..Endpoint::MAX_SESSIONS)
        .map(|_| router.session().unwrap())
        .collect();
    let limit = Endpoint::MAX_SESSIONS;
    assert_eq!(
        router.session().err(),
        Some(RouteError::TooManySessions { limit })
    );
    drop(open);
    assert!(router.session().is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]
    /// Any mixture of commands, flushes and receives: per rank, target and sender everything arrives in order.
    #[test]
    fn whatever_is_sent_arrives_in_order(
        steps in prop::collection::vec((0u8..10, 0u16..3, 0usize..4, 0usize..30, any::<bool>()), 1..200),
        outgoing in 6usize..16,
    ) {
        let live = Live::default();
        let router = Router::new(3, BufferSizes { outgoing, ..SMALL });
        let mut ports: Vec<Port<Counted>> = (0..3).map(|id| router.aeu_port(AeuId(id))).collect();
        let mut sent: HashMap<(u16, Endpoint, Rank), Vec<u64>> = HashMap::new();
        let mut seen = sent.clone();
        let mut next = 0;
        let mut receive = |ports: &mut Vec<Port<Counted>>, at: u16| {
            for command in ports[at as usize].receive().into_iter().flatten() {
                let Header { sender, rank, callback, .. } = command.header;
                assert!(command.words.iter().all(|&word| word == callback));
                seen.entry((at, sender, rank)).or_default().push(callback);
            }
        };
        for (action, from, rank, words, with_parcel) in steps {
            let to = (from + words as u16) % 3;
            let port = &mut ports[from as usize];
            let (rank, data) = (Rank::ALL[rank], vec![next; words]);
            let header = Header { kind: 0, rank, object: ObjectId(0), sender: port.endpoint(), callback: next };
            match action {
                0..5 => {
                    port.outgoing().send(aeu(to), header, &data, with_parcel.then(|| Box::new(live.one())));
                    sent.entry((to, header.sender, rank)).or_default().push(next);
                }
                5..7 => {
                    let parcel = with_parcel.then_some(|| live.one());
                    port.outgoing().multicast([AeuId(to), AeuId(from)], header, &data, parcel);
                    sent.entry((to, header.sender, rank)).or_default().push(next);
                    sent.entry((from, header.sender, rank)).or_default().push(next);
                }
                7 => {
                    port.split().0.flush_some(words % 3);
                }
                _ => receive(&mut ports, from),
            }
            next += 1;
        }
        loop {
            let held = ports.iter_mut().fold(false, |held, port| held | (port.flush() == FlushState::Held));
            (0..3).for_each(|at| receive(&mut ports, at));
            if !held && ports.iter().all(Port::is_empty) {
                break;
            }
        }
        prop_assert_eq!(seen, sent);
        prop_assert!(ports.iter_mut().all(|port| port.outgoing().has_no_multicast()));
        drop(ports);
        prop_assert_eq!(live.count(), 0);
    }

    /// However a batch is taken, as commands or in pieces, it is the same; and a piece has as many as are alike.
    #[test]
    fn pieces_are_the_commands_as_they_were_sent(
        commands in prop::collection::vec((0u16..2, 0u32..2, 0usize..12, 0u8..5, any::<bool>()), 1..60),
        count in 0usize..4,
    ) {
        let live = Live::default();
        let sizes = BufferSizes { outgoing: 12, aeu_inbox: 1 << 12, session_inbox: 24 };
        let router = Router::new(1, sizes);
        let mut port: Port<Counted> = router.aeu_port(AeuId(0));
        let mut sent = Vec::new();
        for (at, (kind, object, words, repeat, with_parcel)) in commands.iter().enumerate() {
            for _ in 0..*repeat {
                let sender = port.endpoint();
                let (object, callback) = (ObjectId(*object), at as u64);
                let header = Header { kind: *kind, rank: Rank::Control, object, sender, callback };
                let with_parcel = *with_parcel && repeat % 2 == 0;
                let parcel = with_parcel.then(|| Box::new(live.one()));
                port.outgoing().send(sender, header, &vec![callback; *words], parcel);
                sent.push((header, *words, with_parcel));
            }
        }
        prop_assert_eq!(port.flush(), FlushState::Empty);
        let mut seen = Vec::new();
        if let Some(mut received) = port.receive() {
            // Some as commands, which may end within a stretch; then what is left in pieces.
            for command in received.by_ref().take(count) {
                prop_assert!(command.words.iter().all(|&word| word == command.header.callback));
                seen.push((command.header, command.words.len(), command.parcel.is_some()));
            }
            let mut before = None;
            while let Some(piece) = received.next_piece() {
                match piece {
                    Piece::Command(command) => {
                        // What owns nothing comes in stretches.
                        prop_assert!(command.parcel.is_some() || command.words.len() + 3 > 12);
                        seen.push((command.header, command.words.len(), command.parcel.is_some()));
                        before = None;
                    }
                    Piece::Stretch(stretch) => {
                        let first = *stretch.header().unwrap();
                        let mut like = None;
                        for (header, words) in stretch {
                            let is = (header.object, header.kind, words.len());
                            prop_assert_eq!(*like.get_or_insert(is), is);
                            prop_assert!(words.iter().all(|&word| word == header.callback));
                            seen.push((*header, words.len(), false));
                        }
                        prop_assert!(before != like, "{:?} is one stretch", first);
                        before = like;
                    }
                }
            }
        }
        prop_assert_eq!(seen, sent);
        drop(port);
        prop_assert_eq!(live.count(), 0);
    }
}

#[test]
fn threads_all_to_all() {
    const EACH: u64 = 20_000;
    let router = Router::<()>::new(
        3,
        BufferSizes {
            outgoing: 64,
            aeu_inbox: 256,
            session_inbox: 256,
        },
    );
    thread::scope(|scope| {
        for id in 0..3 {
            let router = router.clone();
            scope.spawn(move || {
                let mut port = router.aeu_port(AeuId(id));
                let mut next = [0u64; 3];
                let mut sent = 0;
                while sent < EACH
                    || port.flush() == FlushState::Held
                    || next.iter().any(|&seen| seen < EACH)
                {
                    for _ in 0..50.min(EACH - sent) {
                        for to in 0..3 {
                            send(&mut port, aeu(to), Rank::Scan, sent, &[sent; 2], None);
                        }
                        sent += 1;
                    }
                    for command in port.receive().into_iter().flatten() {
                        let from = command.header.sender.as_aeu().unwrap().index();
                        assert_eq!(
                            (command.header.callback, command.words),
                            (next[from], &[next[from]; 2][..])
                        );
                        next[from] += 1;
                    }
                }
            });
        }
    });
}
