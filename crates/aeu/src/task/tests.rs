//! Tasks under a seeded schedule and on threads: every task is run once, as the only one where it says so, and
//! answered.

use super::*;
use crate::{Faults, Random, Simulation, Turn};
use eris_numa::Topology;
use eris_route::{BufferSizes, Port, Rank};
use eris_types::AeuId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Words: what to add. Answers the sum.
const ADD: u16 = 1;
/// Answers both words.
const GET: u16 = 2;
/// Like `ADD`, at the home.
const ADD_AT_HOME: u16 = 3;
/// Spawns an `ADD` of another resource while it holds its own, and that answers. Words: that, what to add.
const PASS_ON: u16 = 4;
/// Panics while it holds the latch.
const PANIC: u16 = 5;
/// Moves the home. Words: AEU.
const MOVE: u16 = 6;
/// Nobody can say what it will touch: a panic. It answers nevertheless.
const UNKNOWN: u16 = 7;

#[derive(Debug)]
struct Pair {
    latch: TaskLatch,
    home: Home,
    /// Two words that are equal whenever nobody is at work; two more that are touched at home.
    words: [AtomicU64; 2],
    at_home: [AtomicU64; 2],
    /// Somebody is at work.
    is_used: AtomicBool,
}

struct Pairs {
    pairs: Vec<Pair>,
    /// How long a writer is at work.
    turns: usize,
}

impl Pairs {
    fn new(pairs: usize, aeus: usize, turns: usize) -> Self {
        let pair = |at: usize| Pair {
            latch: TaskLatch::new(),
            home: Home::new(AeuId((at % aeus) as u16)),
            words: Default::default(),
            at_home: Default::default(),
            is_used: AtomicBool::new(false),
        };
        let pairs = (0..pairs).map(pair).collect();
        Pairs { pairs, turns }
    }

    fn pair(&self, task: &Task<'_>) -> &Pair {
        &self.pairs[task.resource.number() as usize]
    }

    fn add(&self, pair: &Pair, words: &[AtomicU64; 2], number: u64) -> u64 {
        assert!(
            !pair.is_used.swap(true, Relaxed),
            "somebody else is at work"
        );
        let sum = words[0].load(Relaxed) + number;
        words[0].store(sum, Relaxed);
        for _ in 0..self.turns {
            std::hint::spin_loop();
        }
        assert_eq!(words[1].load(Relaxed) + number, sum, "nobody else adds");
        words[1].store(sum, Relaxed);
        pair.is_used.store(false, Relaxed);
        sum
    }
}

impl Work for Pairs {
    type Seen = [u64; 2];

    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        if task.kind == UNKNOWN {
            std::panic::resume_unwind(Box::new("nobody knows"));
        }
        &self.pair(task).words
    }

    fn access(&self, task: &Task<'_>) -> Access<'_> {
        let pair = self.pair(task);
        match task.kind {
            ADD | PANIC | PASS_ON => Access::Write(&pair.latch),
            GET => Access::Read(&pair.latch),
            ADD_AT_HOME | MOVE => Access::Mapped(&pair.home),
            _ => Access::Free,
        }
    }

    fn read(&self, task: &Task<'_>) -> [u64; 2] {
        let words = &self.pair(task).words;
        [words[0].load(Relaxed), words[1].load(Relaxed)]
    }

    fn run(&self, task: &Task<'_>, seen: Option<[u64; 2]>, cx: &mut TaskContext<'_, '_>) {
        let pair = self.pair(task);
        match task.kind {
            ADD => cx.answer(task, &[self.add(pair, &pair.words, task.words[0])]),
            GET => cx.answer(task, &seen.expect("a reader has read")),
            // The two groups of words have a flag together: a pair is used in one of both ways.
            ADD_AT_HOME => cx.answer(task, &[self.add(pair, &pair.at_home, task.words[0])]),
            PASS_ON => cx.spawn(Task {
                kind: ADD,
                resource: Resource::new(task.words[0]),
                words: &task.words[1..],
                ..*task
            }),
            PANIC => std::panic::resume_unwind(Box::new(format!("{} panics", task.callback))),
            MOVE => {
                cx.move_resource(AeuId(task.words[0] as u16));
                cx.answer(task, &[]);
            }
            UNKNOWN => cx.answer(task, &[]),
            other => unreachable!("{other} is no kind"),
        }
    }
}

/// A task by chance: kind, resource, words. The lower half of the pairs is touched with latches, the other at home.
fn task(random: &mut Random, pairs: usize, aeus: usize) -> (u16, u64, Vec<u64>) {
    let half = pairs / 2;
    let number = 1 + random.below(9) as u64;
    let (latched, at_home) = (
        random.below(half) as u64,
        (half + random.below(half)) as u64,
    );
    match random.below(11) {
        0..4 => (ADD, latched, vec![number]),
        4..6 => (GET, latched, vec![]),
        6 => (PASS_ON, random.below(half) as u64, vec![latched, number]),
        7 => (ADD_AT_HOME, at_home, vec![number]),
        8 => (MOVE, at_home, vec![random.below(aeus) as u64]),
        9 => (UNKNOWN, latched, vec![]),
        _ => (PANIC, latched, vec![]),
    }
}

/// What was asked, and what is to be true in the end.
#[derive(Default)]
struct Asked {
    sums: HashMap<u64, u64>,
    kinds: HashMap<u64, u16>,
}

impl Asked {
    fn note(&mut self, callback: u64, (kind, resource, words): &(u16, u64, Vec<u64>)) {
        self.kinds.insert(callback, *kind);
        match *kind {
            ADD | ADD_AT_HOME => *self.sums.entry(*resource).or_default() += words[0],
            PASS_ON => *self.sums.entry(words[0]).or_default() += words[1],
            _ => {}
        }
    }

    /// An answer has come.
    fn check(&mut self, reply: &Reply) {
        let kind = self.kinds.remove(&reply.callback);
        let kind = kind.expect("each task is answered once");
        match (kind, &reply.words) {
            (PANIC, Err(failed)) => {
                assert_eq!(failed.message, format!("{} panics", reply.callback));
            }
            (GET, Ok(words)) => assert!(words.len() == 2 && words[0] == words[1], "{words:?}"),
            (ADD | ADD_AT_HOME | PASS_ON, Ok(words)) => assert_eq!(words.len(), 1),
            (MOVE | UNKNOWN, Ok(words)) => assert!(words.is_empty()),
            (kind, words) => panic!("{kind} is answered {words:?}"),
        }
    }

    fn check_end(&self, work: &Pairs) {
        assert!(self.kinds.is_empty(), "without an answer: {:?}", self.kinds);
        for (at, pair) in work.pairs.iter().enumerate() {
            let expected = self.sums.get(&(at as u64)).copied().unwrap_or_default();
            let words = if at < work.pairs.len() / 2 {
                &pair.words
            } else {
                &pair.at_home
            };
            assert_eq!(
                words.each_ref().map(|word| word.load(Relaxed)),
                [expected; 2],
                "{at}"
            );
            assert!(!pair.latch.is_held(), "nobody is there any more");
        }
    }
}

/// AEUs in one thread; somebody who is none of them holds latches for a while, so that tasks wait there.
fn simulate(seed: u64) -> u64 {
    const AEUS: usize = 3;
    const PAIRS: usize = 8;
    let sizes = BufferSizes {
        outgoing: 64,
        aeu_inbox: 256,
        session_inbox: 1024,
    };
    let ahead = Prefetch::Fixed(seed as usize % 5);
    let runners = Runner::several(Pairs::new(PAIRS, AEUS, 0), AEUS, ahead);
    let shared = runners[0].shared().clone();
    let mut runners = runners.into_iter();
    let faults = Faults {
        partial_flushes: 4,
        ..Faults::default()
    };
    let topology = Topology::fake(1, AEUS as u16);
    let mut simulation = Simulation::new(seed, &topology, sizes, faults, |_| {
        runners.next().expect("one for each AEU")
    });
    let asked = Arc::new(Mutex::new(Asked::default()));
    for session in 0..3_u64 {
        let (asked, mut left) = (asked.clone(), 150);
        let mut waiting = 0_usize;
        let script = move |port: &mut Port<()>, random: &mut Random| {
            let mut asked = asked.lock().unwrap();
            if let Some(received) = port.receive() {
                for command in received {
                    asked.check(&Reply::of(&command));
                    waiting -= 1;
                }
            }
            for _ in 0..random.below(12).min(left) {
                left -= 1;
                waiting += 1;
                let callback = session << 32 | left as u64;
                let chosen = task(random, PAIRS, AEUS);
                asked.note(callback, &chosen);
                let (kind, resource, words) = chosen;
                let task = Task::new(kind, Resource::new(resource), &words).callback(callback);
                let rank = [Rank::Client, Rank::Scan, Rank::Control][random.below(3)];
                let task = Task { rank, ..task };
                task.send(port, AeuId(random.below(AEUS) as u16));
            }
            port.flush();
            if left == 0 && waiting == 0 {
                Turn::Done
            } else {
                Turn::More
            }
        };
        simulation.session(script).unwrap();
    }
    // Whoever waits where this one was is run by an AEU.
    let (holder, mut held, mut turns) = (shared.clone(), None, 400);
    let script = move |port: &mut Port<()>, random: &mut Random| {
        turns -= 1;
        match held.take() {
            None if turns > 0 => {
                let pair = random.below(PAIRS / 2);
                held = holder.work.pairs[pair].latch.try_enter().then_some(pair);
            }
            Some(pair) if turns <= 0 || random.one_in(6) => {
                let latch = &holder.work.pairs[pair].latch;
                if let Some(last) = latch.leave(true) {
                    let first = holder.reverse(last);
                    context::send_resume(port, AeuId(random.below(AEUS) as u16), first);
                    port.flush();
                }
            }
            still => held = still,
        }
        if turns <= 0 && held.is_none() {
            Turn::Done
        } else {
            Turn::More
        }
    };
    simulation.session(script).unwrap();
    simulation.run(1_000_000);
    asked.lock().unwrap().check_end(&shared.work);
    (0..AEUS)
        .map(|aeu| shared.counters(AeuId(aeu as u16)).read().waited)
        .sum()
}

#[test]
fn every_task_is_run_once_whoever_holds_its_resource() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds = match (number("ERIS_SEED"), number("ERIS_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(200),
    };
    let many = seeds.end - seeds.start > 10;
    let waited: u64 = seeds.map(simulate).sum();
    assert!(waited > 0 || !many, "tasks have waited at latches");
}

/// Threads: more AEUs than cores, few resources.
#[test]
fn tasks_of_many_aeus_meet_at_few_resources() {
    const AEUS: usize = 4;
    const PAIRS: usize = 4;
    let topology = Topology::fake(2, 2);
    let work = Pairs::new(PAIRS, AEUS, 200);
    let runtime = TaskRuntime::start(&topology, Options::default(), work).unwrap();
    let asked = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..3_u64)
            .map(|client| {
                let mut session = runtime.session().unwrap();
                scope.spawn(move || {
                    let (mut random, mut asked) = (Random::new(client), Asked::default());
                    for round in 0..40_u64 {
                        for number in 0..100 {
                            let callback = client << 32 | round << 16 | number;
                            let chosen = task(&mut random, PAIRS, AEUS);
                            asked.note(callback, &chosen);
                            let (kind, resource, words) = chosen;
                            let task = Task::new(kind, Resource::new(resource), &words);
                            let rank = [Rank::Client, Rank::Control][random.below(2)];
                            session.spawn(Task {
                                rank,
                                callback,
                                ..task
                            });
                        }
                        while !asked.kinds.is_empty() {
                            let replies = session.receive(Duration::from_secs(60));
                            replies
                                .expect("answers")
                                .for_each(|reply| asked.check(&reply));
                        }
                    }
                    asked
                })
            })
            .collect();
        let mut all = Asked::default();
        for session in sessions {
            for (resource, sum) in session.join().unwrap().sums {
                *all.sums.entry(resource).or_default() += sum;
            }
        }
        all
    });
    asked.check_end(runtime.work());
    let statistics = runtime.statistics();
    let of = |count: fn(&TaskStatistics) -> u64| statistics.iter().map(count).sum::<u64>();
    assert!(of(|one| one.run) >= 12_000 && of(|one| one.panics) > 0);
    assert!(of(|one| one.spawned) > 0 && of(|one| one.sent_on) > 0);
    runtime.shutdown();
}

#[test]
fn a_resource_has_a_number_and_perhaps_a_home() {
    let resource = Resource::new((1 << 48) - 1);
    assert_eq!((resource.number(), resource.home()), ((1 << 48) - 1, None));
    let at = resource.at(AeuId(0));
    assert_eq!((at.number(), at.home()), ((1 << 48) - 1, Some(AeuId(0))));
    assert_eq!(at.at(AeuId(65_534)).home(), Some(AeuId(65_534)));
}

/// An AEU with much to do gives resources to one that has nothing to do.
#[test]
fn resources_move_to_an_idle_aeu() {
    const AEUS: usize = 2;
    let runners = Runner::several(Pairs::new(64, 1, 0), AEUS, Prefetch::Off);
    let shared = runners[0].shared().clone();
    let mut runners = runners.into_iter();
    let topology = Topology::fake(1, AEUS as u16);
    let sizes = BufferSizes::default();
    let mut simulation = Simulation::new(1, &topology, sizes, Faults::default(), |_| {
        runners.next().expect("one for each AEU")
    });
    let mut left = 100_000_u64;
    let mut answers = 0;
    let script = move |port: &mut Port<()>, random: &mut Random| {
        answers += port.receive().into_iter().flatten().count() as u64;
        for _ in 0..left.min(200) {
            left -= 1;
            let resource = Resource::new(random.below(64) as u64);
            Task::new(ADD_AT_HOME, resource, &[1]).send(port, AeuId(0));
        }
        port.flush();
        if answers == 100_000 {
            Turn::Done
        } else {
            Turn::More
        }
    };
    simulation.session(script).unwrap();
    simulation.run(10_000_000);
    let moved = shared.counters(AeuId(0)).read().moved;
    assert!(moved > 0, "nothing has moved");
    let run = |aeu| shared.counters(AeuId(aeu)).read().run;
    assert!(run(1) > 1000, "{} and {}", run(0), run(1));
}

/// What has the higher rank runs first.
#[test]
fn a_rank_is_a_priority() {
    let runners = Runner::several(Pairs::new(2, 1, 0), 1, Prefetch::Off);
    let mut runners = runners.into_iter();
    let topology = Topology::fake(1, 1);
    let sizes = BufferSizes::default();
    let mut simulation = Simulation::new(1, &topology, sizes, Faults::default(), |_| {
        runners.next().expect("one AEU")
    });
    let mut seen = Vec::new();
    let mut is_sent = false;
    let script = move |port: &mut Port<()>, _: &mut Random| {
        if !is_sent {
            for (callback, rank) in [Rank::Client, Rank::Scan, Rank::Control]
                .into_iter()
                .enumerate()
            {
                let task = Task::new(ADD, Resource::new(0), &[1]).callback(callback as u64);
                Task { rank, ..task }.send(port, AeuId(0));
            }
            port.flush();
            is_sent = true;
        }
        for command in port.receive().into_iter().flatten() {
            let sum = Reply::of(&command).words.expect("a sum")[0];
            seen.push((sum, command.header.callback));
        }
        seen.sort();
        if seen.len() < 3 {
            return Turn::More;
        }
        assert_eq!(seen, [(1, 2), (2, 1), (3, 0)]);
        Turn::Done
    };
    simulation.session(script).unwrap();
    simulation.run(10_000);
}
