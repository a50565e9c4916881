//! Model-checked schedules: `RUSTFLAGS="--cfg loom" cargo test --release -p eris-atomics --lib model`.

use crate::latch::{ENTER, GRANTED, LEFT};
use crate::sequence::ANSWER;
use crate::sync::{AtomicU64, Ordering::SeqCst, write_then_read};
use crate::{CommitOrder, Latch, Record, Sequence, Sharers, Shown, Snapshots, Waiting, Way};
use eris_types::NodeId;
use loom::thread;
use std::sync::Arc;
use std::task::{Wake, Waker};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Readers hold while somebody moves the newest snapshot and gathers twice. No horizon gets beyond what is held.
fn readers_and_a_horizon(slots: usize, readers: usize) {
    check(3, move || {
        let snapshots = Arc::new((Snapshots::new(slots), AtomicU64::new(1)));
        let reading = (0..readers).map(|_| {
            let snapshots = snapshots.clone();
            thread::spawn(move || {
                let (snapshots, newest) = &*snapshots;
                let hold = snapshots.hold(|| newest.load(SeqCst));
                assert!(snapshots.horizon() <= hold.at(), "held, but passed");
                let _ = snapshots.release(hold);
            })
        });
        let reading: Vec<_> = reading.collect();
        for next in [2, 3] {
            let (snapshots, newest) = &*snapshots;
            newest.store(next, SeqCst);
            snapshots.gather(|| newest.load(SeqCst));
        }
        reading
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let (snapshots, newest) = &*snapshots;
        assert_eq!(snapshots.gather(|| newest.load(SeqCst)), 3);
    });
}

#[test]
fn a_reader_and_a_horizon() {
    readers_and_a_horizon(1, 1);
}

#[test]
fn two_readers_of_which_one_finds_no_slot() {
    readers_and_a_horizon(1, 2);
}

#[test]
fn readers_without_slots() {
    readers_and_a_horizon(0, 2);
}

/// Garbage that waits for the last reader is collected by whoever deletes, or by the reader.
#[test]
fn garbage_is_collected_when_the_last_reader_leaves() {
    check(3, || {
        let state = Arc::new((
            Snapshots::new(2),
            AtomicU64::new(1),
            AtomicU64::new(0),
            AtomicU64::new(0),
        ));
        let reader = {
            let state = state.clone();
            thread::spawn(move || {
                let (snapshots, newest, awaited, collected) = &*state;
                let hold = snapshots.hold(|| newest.load(SeqCst));
                let since = snapshots.release(hold);
                let awaited = awaited.load(SeqCst);
                if since < awaited && snapshots.gather(|| newest.load(SeqCst)) >= awaited {
                    collected.fetch_add(1, SeqCst);
                }
            })
        };
        let (snapshots, newest, awaited, collected) = &*state;
        newest.store(2, SeqCst);
        awaited.store(2, SeqCst);
        write_then_read();
        if snapshots.gather(|| newest.load(SeqCst)) >= 2 {
            collected.fetch_add(1, SeqCst);
        }
        reader.join().unwrap();
        assert!(collected.load(SeqCst) > 0, "nobody collects it");
    });
}

fn numbers_finish(open: u64, count: u64) {
    check(3, move || {
        let order = Arc::new(CommitOrder::new(open));
        let finishing = (1..count).map(|number| {
            let order = order.clone();
            thread::spawn(move || order.finish(number))
        });
        let finishing: Vec<_> = finishing.collect();
        order.finish(count);
        finishing
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(order.visible(), count, "one was left behind");
    });
}

#[test]
fn numbers_that_finish_at_a_time_leave_none_behind() {
    numbers_finish(4, 2);
    numbers_finish(4, 3);
}

#[test]
fn numbers_without_slots_leave_none_behind() {
    numbers_finish(1, 2);
    numbers_finish(1, 3);
}

/// A waker on which a loom thread can wait.
struct Alarm(loom::sync::Notify);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Loom reports a deadlock if somebody is forgotten.
#[test]
fn who_waits_is_woken() {
    check(3, || {
        let state = Arc::new((Waiting::new(), AtomicU64::new(0)));
        let moving = [1, 2].map(|to| {
            let state = state.clone();
            thread::spawn(move || {
                let (waiting, number) = &*state;
                number.fetch_max(to, SeqCst);
                waiting.wake(|| number.load(SeqCst));
            })
        });
        let alarm = Arc::new(Alarm(loom::sync::Notify::new()));
        let waker = Waker::from(alarm.clone());
        let (waiting, number) = &*state;
        if number.load(SeqCst) < 2 {
            waiting.add(2, &waker);
            while number.load(SeqCst) < 2 {
                alarm.0.wait();
            }
        }
        moving.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Loom says if somebody is in it beside the one who has closed it, and reports a deadlock if that one is forgotten.
#[test]
fn who_closes_is_alone() {
    check(3, || {
        let state = Arc::new((Sharers::new(), loom::cell::UnsafeCell::new(())));
        let sharing = [(); 2].map(|()| {
            let state = state.clone();
            thread::spawn(move || {
                if state.0.try_enter() {
                    state.1.with(|_| ());
                    state.0.leave();
                }
            })
        });
        let alarm = Arc::new(Alarm(loom::sync::Notify::new()));
        let waker = Waker::from(alarm.clone());
        state.0.close();
        while !state.0.poll_empty(&waker) {
            alarm.0.wait();
        }
        state.1.with_mut(|_| ());
        state.0.open();
        sharing
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert!(state.0.try_enter());
    });
}

#[test]
fn words_are_read_as_they_were_at_one_time() {
    check(3, || {
        let record = Arc::new(Record::new(2));
        let writer = {
            let record = record.clone();
            thread::spawn(move || [1, 2].map(|value| record.write([value, value])))
        };
        let words = record.read();
        assert_eq!(words[0], words[1], "torn");
        writer.join().unwrap();
        assert_eq!(record.read(), [2, 2]);
    });
}

const NODE: NodeId = NodeId(0);

/// A thread and the main one draw, in ways of their own, some several numbers. The home comes and goes.
///
/// Loom explores schedules in which two threads wait for a third that never gets on. So there are only two that wait.
fn numbers_are_drawn(ways: [(Way, u64); 2], senders: usize, is_home: bool) {
    check(3, move || {
        let sequence = Arc::new(Sequence::new(0, Way::Cpu, 1, senders));
        sequence.set_home(is_home);
        let draw = |sequence: &Sequence, (way, count): (Way, u64)| {
            let first = sequence.draw_by(way, count, NODE);
            first..first + count
        };
        let other = {
            let sequence = sequence.clone();
            thread::spawn(move || draw(&sequence, ways[1]))
        };
        if is_home {
            sequence.serve();
            sequence.set_home(false);
        }
        let drawn = [draw(&sequence, ways[0]), other.join().unwrap()];
        let mut drawn: Vec<u64> = drawn.into_iter().flatten().collect();
        drawn.sort_unstable();
        assert!(drawn.iter().copied().eq(0..sequence.next()), "{drawn:?}");
        assert_eq!(drawn.len() as u64, ways[0].1 + ways[1].1);
    });
}

#[test]
fn numbers_that_are_delegated_have_no_gap() {
    numbers_are_drawn([(Way::Delegated, 1), (Way::Delegated, 3)], 4, true);
    numbers_are_drawn([(Way::Delegated, 2), (Way::Delegated, 1)], 4, false);
}

#[test]
fn numbers_of_a_node_have_no_gap() {
    numbers_are_drawn([(Way::Hierarchical, 1), (Way::Hierarchical, 3)], 4, false);
}

#[test]
fn ways_can_be_mixed() {
    numbers_are_drawn([(Way::Cpu, 1), (Way::Delegated, 2)], 4, true);
    numbers_are_drawn([(Way::Hierarchical, 2), (Way::Delegated, 1)], 4, false);
}

#[test]
fn who_finds_no_slot_draws_all_the_same() {
    numbers_are_drawn([(Way::Delegated, 1), (Way::Delegated, 3)], 1, true);
}

#[test]
fn a_way_can_be_changed_while_others_draw() {
    check(3, || {
        let sequence = Arc::new(Sequence::new(5, Way::Delegated, 1, 2));
        sequence.set_home(true);
        let other = {
            let sequence = sequence.clone();
            thread::spawn(move || sequence.draw(1, NODE))
        };
        sequence.serve();
        sequence.set_way(Way::Hierarchical);
        sequence.set_home(false);
        let mut drawn = [sequence.draw(1, NODE), other.join().unwrap()];
        drawn.sort_unstable();
        assert_eq!(drawn, [5, 6]);
    });
}

/// Two senders and a server, of which nobody waits: all requests are answered by whoever serves last.
#[test]
fn requests_are_answered_once() {
    check(3, || {
        let sequence = Arc::new(Sequence::new(0, Way::Delegated, 1, 4));
        let asking = [1, 3].map(|count| {
            let sequence = sequence.clone();
            thread::spawn(move || {
                let slot = sequence.home.ask(count).unwrap();
                sequence.serve_slots(&sequence.home);
                (slot, count)
            })
        });
        sequence.serve();
        let asked = asking.map(|thread| thread.join().unwrap());
        sequence.serve();
        let drawn = asked.map(|(slot, count)| {
            let value = sequence.home.read(slot);
            assert!(value & ANSWER != 0, "not answered");
            let first = value & !ANSWER;
            first..first + count
        });
        let mut drawn: Vec<u64> = drawn.into_iter().flatten().collect();
        drawn.sort_unstable();
        assert_eq!(drawn, [0, 1, 2, 3]);
        assert_eq!(sequence.next(), 4);
    });
}

/// A latch, and what it guards: loom says if two are in it at a time, or do not see what the other has done.
type Guarded = (Latch, loom::cell::UnsafeCell<()>);

/// A thread and the main one enter, in ways of their own. The home comes and goes.
fn a_latch_is_entered(ways: [Way; 2], senders: usize, is_home: bool) {
    check(2, move || {
        let state: Arc<Guarded> = Arc::new((Latch::new(Way::Cpu, 1, senders), Default::default()));
        state.0.set_home(is_home);
        let other = {
            let state = state.clone();
            thread::spawn(move || {
                let _guard = state.0.lock_by(ways[1], NODE);
                state.1.with_mut(|_| ());
            })
        };
        if is_home {
            state.0.serve();
            state.0.set_home(false);
        }
        let guard = state.0.lock_by(ways[0], NODE);
        state.1.with_mut(|_| ());
        drop(guard);
        if let Some(_guard) = state.0.try_lock_by(ways[0], NODE) {
            state.1.with_mut(|_| ());
        }
        other.join().unwrap();
        let last = state.0.try_lock_by(Way::Cpu, NODE);
        assert!(last.is_some(), "nobody has it any more");
    });
}

#[test]
fn one_at_a_time_has_a_latch() {
    a_latch_is_entered([Way::Cpu, Way::Cpu], 2, false);
    a_latch_is_entered([Way::Hierarchical, Way::Hierarchical], 2, false);
    a_latch_is_entered([Way::Delegated, Way::Delegated], 2, true);
}

#[test]
fn two_ways_to_a_latch_can_be_mixed() {
    a_latch_is_entered([Way::Cpu, Way::Delegated], 2, true);
    a_latch_is_entered([Way::Delegated, Way::Hierarchical], 2, false);
}

#[test]
fn who_finds_no_slot_enters_all_the_same() {
    a_latch_is_entered([Way::Hierarchical, Way::Hierarchical], 1, false);
}

/// Two senders and a server, of which nobody waits: both have had the latch once all have been served often enough.
#[test]
fn a_latch_goes_from_slot_to_slot() {
    check(2, || {
        let state: Arc<Guarded> = Arc::new((Latch::new(Way::Delegated, 1, 4), Default::default()));
        let has_entered = |state: &Guarded, slot: usize| {
            let slots = &state.0.home.slots;
            let is_granted = slots.read(slot) == GRANTED;
            if is_granted {
                state.1.with_mut(|_| ());
                slots.write(slot, LEFT);
            }
            is_granted
        };
        let entering = [(); 2].map(|()| {
            let state = state.clone();
            thread::spawn(move || {
                let slot = state.0.home.slots.ask(ENTER).unwrap();
                state.0.home.serve(&state.0.word);
                let has_entered = has_entered(&state, slot);
                state.0.home.serve(&state.0.word);
                (slot, has_entered)
            })
        });
        let mut entered = entering.map(|thread| thread.join().unwrap());
        for _ in 0..3 {
            state.0.serve();
            for (slot, has) in &mut entered {
                // Whose slot it was before may have gone.
                *has = *has || has_entered(&state, *slot);
            }
        }
        assert!(entered.iter().all(|(_, has)| *has), "forgotten");
        state.0.serve();
        assert!(state.0.try_lock_by(Way::Cpu, NODE).is_some());
    });
}

/// One shows three things in one place, and two look: what was shown last is there in the end, and nobody sees anything
/// older after something newer.
#[test]
fn what_is_shown_while_somebody_looks() {
    check(2, || {
        let shown = Arc::new(Shown::new(1));
        shown.show(0, Arc::new(0));
        let look = |shown: Arc<Shown<u64>>| {
            thread::spawn(move || {
                let first = *shown.all()[0];
                let second = *shown.all()[0];
                assert!(second >= first, "{second} after {first}");
            })
        };
        let looks = [look(shown.clone()), look(shown.clone())];
        (1..=3).for_each(|number| drop(shown.show(0, Arc::new(number))));
        looks.into_iter().for_each(|looks| looks.join().unwrap());
        assert_eq!(*shown.all()[0], 3);
    });
}

/// Two take the one place, show themselves there, and leave it. Each is there for who looks while he has it.
#[test]
fn a_place_that_two_take() {
    check(3, || {
        let shown = Arc::new(Shown::new(1));
        let take = |shown: Arc<Shown<u64>>, own: u64| {
            thread::spawn(move || {
                if let Some(place) = shown.take(0..1, &Arc::new(own)) {
                    let seen = shown.all();
                    assert_eq!(*seen[0], own, "whose place it is");
                    shown.leave(place);
                }
            })
        };
        let taken = [take(shown.clone(), 1), take(shown.clone(), 2)];
        taken.into_iter().for_each(|taken| taken.join().unwrap());
        assert!(shown.take(0..1, &Arc::new(3)).is_some(), "nobody has it");
        assert_eq!(*shown.all()[0], 3);
    });
}

/// One ends: it is shown among the recent ones, and then says so. Who looks at those that run first finds it.
#[test]
fn who_ends_is_shown_at_one_place_at_least() {
    check(3, || {
        let (running, recent) = (Shown::new(1), Shown::new(1));
        let state = Arc::new((running, recent, AtomicU64::new(0)));
        let place = state.0.take(0..1, &Arc::new(7u64)).unwrap();
        let ends = {
            let state = state.clone();
            thread::spawn(move || {
                let (running, recent, has_ended) = &*state;
                recent.show(0, Arc::new(7));
                has_ended.store(1, SeqCst);
                running.leave(place);
            })
        };
        let (running, recent, has_ended) = &*state;
        let runs = !running.all().is_empty() && has_ended.load(SeqCst) == 0;
        assert!(runs || !recent.all().is_empty(), "it is nowhere");
        ends.join().unwrap();
    });
}
