//! Each operation takes effect at one moment between its call and its return: what threads have seen of a key can be
//! put in an order in which a map would have answered so (Wing and Gong, *Testing and verifying concurrent objects*,
//! JPDC 1993).

use eris_blink::Tree;
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::{BTreeMap, HashSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

const THREADS: usize = 4;
const KEYS: u64 = 6;

/// What somebody has asked and heard.
#[derive(Clone, Copy, Debug)]
struct Event {
    asked: Asked,
    heard: Option<u64>,
    begun: u64,
    ended: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    Get,
    Put(u64),
    Remove,
}

impl Event {
    /// The key's value afterwards, if this is what a map with this value would have answered.
    fn apply(&self, value: Option<u64>) -> Option<Option<u64>> {
        (self.heard == value).then_some(match self.asked {
            Asked::Get => value,
            Asked::Put(new) => Some(new),
            Asked::Remove => None,
        })
    }
}

/// Whether the events of some threads, each in its order, are those of one map.
fn is_linearizable(threads: &[Vec<Event>]) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![(vec![0; threads.len()], None)];
    while let Some((at, value)) = open.pop() {
        if !seen.insert((at.clone(), value)) {
            continue;
        }
        let next: Vec<Option<&Event>> = threads
            .iter()
            .zip(&at)
            .map(|(events, at)| events.get(*at))
            .collect();
        // What begins behind the end of another one comes behind it.
        let Some(first_end) = next.iter().flatten().map(|event| event.ended).min() else {
            return true;
        };
        for (thread, event) in next.iter().enumerate() {
            let possible =
                event.filter(|event| event.begun < first_end || event.ended == first_end);
            if let Some(value) = possible.and_then(|event| event.apply(value)) {
                let mut at = at.clone();
                at[thread] += 1;
                open.push((at, value));
            }
        }
    }
    false
}

/// A tree, for which keys are numbers.
trait Map: Sync {
    fn put(&self, key: u64, value: u64) -> Option<u64>;
    fn get(&self, key: u64) -> Option<u64>;
    fn get_in_batch(&self, key: u64) -> Option<u64>;
    fn remove(&self, key: u64) -> Option<u64>;
}

impl Map for Tree {
    fn put(&self, key: u64, value: u64) -> Option<u64> {
        self.put(key, value).unwrap()
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.get(key)
    }

    fn get_in_batch(&self, key: u64) -> Option<u64> {
        let mut values = [None];
        self.get_many(&[key], &mut values);
        values[0]
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.remove(key)
    }
}

/// So long that few have room in a node, and some with a common beginning.
fn string(key: u64) -> Vec<u8> {
    let fill = vec![0; (key % 5 * 100) as usize];
    [&(key >> 4).to_be_bytes()[..], &fill, &key.to_be_bytes()].concat()
}

impl Map for Tree<[u8]> {
    fn put(&self, key: u64, value: u64) -> Option<u64> {
        self.put(&string(key), value).unwrap()
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.get(&string(key))
    }

    fn get_in_batch(&self, key: u64) -> Option<u64> {
        let mut values = [None];
        self.get_many(&[&string(key)], &mut values);
        values[0]
    }

    fn remove(&self, key: u64) -> Option<u64> {
        self.remove(&string(key))
    }
}

/// A number that looks random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % limit
    }
}

/// One thread's operations on keys that all have, between others of its own that split and merge their leaves.
fn work(tree: &dyn Map, clock: &AtomicU64, thread: u64, random: &mut Random) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    for round in 0..40 {
        let own = |number: u64| ((number % KEYS) << 20) + 16 * number + 1 + thread;
        let fills = random.below(2) == 0;
        for number in 0..60 {
            match fills {
                true => drop(tree.put(own(number), number).is_some()),
                false => drop(tree.remove(own(number)).is_some()),
            }
            if number % 6 > 0 {
                continue;
            }
            let key = random.below(KEYS) << 20;
            let asked = match random.below(4) {
                0 => Asked::Remove,
                1 => Asked::Get,
                _ => Asked::Put(round << 20 | number << 4 | thread),
            };
            let begun = clock.fetch_add(1, SeqCst);
            let heard = match asked {
                Asked::Get if number % 12 == 0 => tree.get_in_batch(key),
                Asked::Get => tree.get(key),
                Asked::Put(value) => tree.put(key, value),
                Asked::Remove => tree.remove(key),
            };
            let ended = clock.fetch_add(1, SeqCst);
            events.push((
                key,
                Event {
                    asked,
                    heard,
                    begun,
                    ended,
                },
            ));
        }
    }
    events
}

#[test]
fn what_threads_see_has_an_order() {
    has_an_order(|memory| Tree::new(memory, ObjectId(1)).unwrap());
}

#[test]
fn what_threads_see_of_strings_has_an_order() {
    has_an_order(|memory| Tree::of_bytes(memory, ObjectId(1)).unwrap());
}

fn has_an_order<T: Map + Send>(new: impl Fn(NodeMemory) -> T) {
    let histories =
        std::env::var("ERIS_SEEDS").map_or(30, |seeds| seeds.parse().expect("a number"));
    for seed in 0..histories {
        println!("seed {seed}");
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
        let tree = new(memory.node(NodeId(0)));
        let (clock, start) = (AtomicU64::new(0), Barrier::new(THREADS));
        let of_threads: Vec<Vec<(u64, Event)>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS as u64)
                .map(|thread| {
                    let (tree, clock, start) = (&tree, &clock, &start);
                    scope.spawn(move || {
                        let mut random = Random(seed * 1000 + thread);
                        start.wait();
                        work(tree, clock, thread, &mut random)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut by_key: BTreeMap<u64, Vec<Vec<Event>>> = BTreeMap::new();
        for (thread, events) in of_threads.into_iter().enumerate() {
            for (key, event) in events {
                by_key
                    .entry(key)
                    .or_insert_with(|| vec![Vec::new(); THREADS])[thread]
                    .push(event);
            }
        }
        for (key, threads) in by_key {
            assert!(
                is_linearizable(&threads),
                "seed {seed}, key {key}: {threads:#?}"
            );
        }
    }
}

#[test]
fn the_check_finds_what_no_map_would_answer() {
    let event = |asked, heard, begun, ended| Event {
        asked,
        heard,
        begun,
        ended,
    };
    // Both hear that nothing was there.
    let twice = [
        vec![event(Asked::Put(1), None, 0, 2)],
        vec![event(Asked::Put(2), None, 1, 3)],
    ];
    assert!(!is_linearizable(&twice));
    // Somebody hears the old value behind the end of who has put the new one.
    let late = [
        vec![
            event(Asked::Put(1), None, 0, 1),
            event(Asked::Put(2), Some(1), 2, 3),
        ],
        vec![event(Asked::Get, Some(1), 4, 5)],
    ];
    assert!(!is_linearizable(&late));
    let meanwhile = [
        vec![
            event(Asked::Put(1), None, 0, 1),
            event(Asked::Put(2), Some(1), 2, 5),
        ],
        vec![event(Asked::Get, Some(1), 3, 4)],
    ];
    assert!(is_linearizable(&meanwhile));
}
