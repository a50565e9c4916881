//! Operations on an index while its keys change owners without pause, in one thread under a seeded schedule: every key
//! has the value that was put last, whoever has it.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::key_index`.

mod faults;

use crate::clients::key_index::ranges::RangeReading;
use crate::error::EngineError;
use crate::key_index::batch::{KeyBatch, KeyOperation};
use crate::key_index::denials::DENIALS;
use crate::simulations::simulated::{Simulated, for_seeds};
use crate::{KeyClient, KeyIndex};
use crate::{Shift, Shifted};
use eris_aeu::{Faults, Random};
use eris_numa::Topology;
use eris_types::AeuId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Keys are below this number. Each client has its own, those of one remainder.
const KEYS: u64 = 60_000;
const CLIENTS: u64 = 3;

/// A client, and what its keys must have.
struct Person {
    number: u64,
    client: KeyClient,
    entries: BTreeMap<u64, u64>,
    random: Random,
    next: u64,
}

impl KeyClient {
    /// As the operations that block a thread.
    async fn operate(
        &mut self,
        operation: KeyOperation,
        keys: &[u64],
        add: impl Fn(&mut KeyBatch, u32),
    ) -> Result<Vec<Option<u64>>, EngineError> {
        self.split_by_owner(operation, keys, |batch, positions| {
            positions.iter().for_each(|&position| add(batch, position));
        });
        self.exchange.begin(&self.index.engine, &mut self.client);
        self.exchange.answered(&mut self.client).await;
        let mut values = vec![None; keys.len()];
        let parts = self.executed()?;
        self.gather(parts, &mut values)?;
        Ok(values)
    }
}

impl Person {
    async fn operations(mut self) {
        for _ in 0..25 {
            match self.random.below(8) {
                0..3 => self.put().await,
                3 => self.remove().await,
                4 => self.range().await,
                _ => self.get().await,
            }
        }
        // In the end all of them.
        let own: Vec<u64> = (0..KEYS)
            .filter(|key| key % CLIENTS == self.number)
            .collect();
        self.check(&own).await;
    }

    /// Some of the client's keys: a few anywhere, or many side by side.
    fn keys(&mut self) -> Vec<u64> {
        let own = KEYS / CLIENTS;
        let count = [1, 3, 40, 3_000][self.random.below(4)];
        let first = self.random.below(own as usize) as u64;
        let is_run = self.random.one_in(2);
        let key = |at: u64| (first + at) % own * CLIENTS + self.number;
        let mut keys: Vec<u64> = match is_run {
            true => (0..count).map(key).collect(),
            false => (0..count).map(|at| key(at * 7919)).collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        if self.random.one_in(2) {
            keys.reverse();
        }
        keys
    }

    async fn put(&mut self) {
        let keys = self.keys();
        self.next += 1;
        let entries: Vec<_> = keys
            .iter()
            .map(|key| (*key, self.next * KEYS + key))
            .collect();
        let put = self.client.operate(KeyOperation::Put, &keys, |batch, at| {
            batch.entries.push(entries[at as usize]);
        });
        // Panics are of transfers' slices alone.
        let before = put.await.unwrap();
        for ((key, value), before) in entries.into_iter().zip(before) {
            assert_eq!(before, self.entries.insert(key, value), "key {key}");
        }
    }

    async fn remove(&mut self) {
        let keys = self.keys();
        let removed = self
            .client
            .operate(KeyOperation::Remove, &keys, |batch, at| {
                batch.keys.push(keys[at as usize]);
            });
        for (key, before) in keys.iter().zip(removed.await.unwrap()) {
            assert_eq!(before, self.entries.remove(key), "key {key}");
        }
    }

    async fn get(&mut self) {
        let keys = self.keys();
        self.check(&keys).await;
    }

    async fn check(&mut self, keys: &[u64]) {
        let values = self.values(keys).await.unwrap();
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(value, self.entries.get(key).copied(), "key {key}");
        }
    }

    async fn values(&mut self, keys: &[u64]) -> Result<Vec<Option<u64>>, EngineError> {
        let get = self.client.operate(KeyOperation::Get, keys, |batch, at| {
            batch.keys.push(keys[at as usize]);
        });
        get.await
    }

    async fn range(&mut self) {
        let count = [1, 1, 7, 40][self.random.below(4)];
        let range = || {
            let low = self.random.below(KEYS as usize) as u64;
            low..=(low + self.random.below(2_000) as u64).min(KEYS)
        };
        let ranges: Vec<_> = std::iter::repeat_with(range).take(count).collect();
        let limit = [5, 10_000][self.random.below(2)];
        let all = self.client.read(&ranges, limit).await.unwrap();
        assert_eq!(all.len(), count);
        for (keys, found) in ranges.into_iter().zip(all) {
            assert!(found.is_sorted() && found.len() <= limit);
            let end = match found.len() == limit {
                true => found.last().map_or(*keys.end(), |(key, _)| *key),
                false => *keys.end(),
            };
            let own = found
                .into_iter()
                .filter(|(key, _)| key % CLIENTS == self.number);
            let expected = self
                .entries
                .range(*keys.start()..=end)
                .map(|(key, value)| (*key, *value));
            assert!(own.eq(expected), "{keys:?}, {limit}");
        }
    }
}

impl KeyClient {
    /// As [`KeyClient::ranges`], which blocks a thread.
    async fn read(
        &mut self,
        ranges: &[RangeInclusive<u64>],
        limit: usize,
    ) -> Result<Vec<Vec<(u64, u64)>>, EngineError> {
        let mut reading = RangeReading::new(self.newest_table(), ranges, limit);
        while self.push_next(&mut reading) {
            self.exchange.begin(&self.index.engine, &mut self.client);
            self.exchange.answered(&mut self.client).await;
            let parts = self.executed()?;
            self.gather_ranges(parts, &mut reading);
        }
        Ok(reading.found())
    }
}

/// Some shifts of one cycle, which do not overlap.
fn random_shifts(random: &mut Random, aeus: usize) -> Vec<Shift> {
    let shifts = (0..1 + random.below(3)).map(|_| {
        let low = random.below(KEYS as usize) as u64;
        let width = [100, 5_000, KEYS as usize][random.below(3)];
        let to = AeuId(random.below(aeus) as u16);
        (low, low.saturating_add(random.below(width) as u64), to)
    });
    let mut shifts: Vec<_> = shifts.collect();
    shifts.sort_unstable();
    shifts.dedup_by(|next, last| next.0 <= last.1);
    let shifts = shifts.into_iter();
    shifts
        .map(|(low, high, to)| Shift { low, high, to })
        .collect()
}

/// Shifts keys until the clients are done.
async fn shift(index: KeyIndex, mut random: Random, left: Rc<Cell<u64>>, may_fail: bool) -> u64 {
    let aeus = index.engine().topology().aeus().len();
    let mut moved = 0;
    while left.get() > 0 {
        // With one AEU nothing is to be waited for.
        let mut is_others_turn = true;
        poll_fn(|_| match std::mem::take(&mut is_others_turn) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        let shifts = random_shifts(&mut random, aeus);
        if random.one_in(8) {
            // Nobody waits for what becomes of it.
            let given_up = index.shift(&shifts);
            let mut given_up = std::pin::pin!(given_up);
            let polls = random.below(6);
            let mut polled = 0;
            poll_fn(|cx| {
                polled += 1;
                match given_up.as_mut().poll(cx) {
                    Poll::Pending if polled <= polls => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            })
            .await;
            continue;
        }
        let shifted: Vec<Shifted> = index.shift(&shifts).await.unwrap();
        for one in shifted {
            match one.result {
                Ok(all) => moved += all.keys,
                Err(reason) => {
                    let all = ["an injected fault", "cannot have more keys"];
                    let is_known = all.iter().any(|text| reason.contains(text));
                    assert!(may_fail && is_known, "{reason}")
                }
            }
        }
    }
    // What was given up is still under way.
    index.shift(&[]).await.unwrap();
    let (table, segments) = (
        index.object().layout.newest(),
        index.measure().await.unwrap(),
    );
    let mut next = Some(0);
    for segment in segments {
        assert_eq!(Some(segment.low), next, "segments lie side by side");
        next = segment.high.checked_add(1);
        let mut owners = table.owners(segment.low, segment.high);
        assert!(
            owners.all(|(.., aeu)| aeu == segment.aeu),
            "the table says where"
        );
    }
    assert!(next.is_none() || next == Some(0), "all keys have an owner");
    moved
}

fn simulate(seed: u64) -> u64 {
    let random = &mut Random::new(seed);
    let (panics, denials) = ([0, 400][random.below(2)], [0, 0, 6, 40][random.below(4)]);
    DENIALS.set((denials, Random::new(random.bits())));
    let mut simulated = Simulated::by_chance(seed, random, panics);
    let index = simulated.engine.create_key_index("numbers", 0..=KEYS - 1);
    let left = Rc::new(Cell::new(CLIENTS));
    for number in 0..CLIENTS {
        let person = Person {
            number,
            client: index.client().unwrap(),
            entries: BTreeMap::new(),
            random: Random::new(random.below(1 << 30) as u64),
            next: 0,
        };
        let left = left.clone();
        simulated.client(async move {
            person.operations().await;
            left.set(left.get() - 1);
        });
    }
    let moved = Rc::new(Cell::new(0));
    let random = Random::new(random.below(1 << 30) as u64);
    let shifting = shift(index.clone(), random, left, panics + denials > 0);
    let all = moved.clone();
    simulated.client(async move { all.set(shifting.await) });
    simulated.run();
    assert!(simulated.owners().all(|owner| owner.rejected.is_empty()));
    let dropped = index.clone();
    simulated.client(async move { dropped.drop().await.unwrap() });
    simulated.run();
    drop(index);
    simulated.end();
    moved.get()
}

#[test]
fn keys_that_change_owners_keep_their_values() {
    let moved = Cell::new(0);
    for_seeds(150, |seed| moved.set(moved.get() + simulate(seed)));
    println!("{} keys changed their owner", moved.get());
    assert!(moved.get() > 0, "nothing was moved");
}

/// However much is written meanwhile: in a node, where a part gets a tree of its own, and between nodes. And not much
/// later than without.
#[test]
fn keys_are_given_though_they_are_written_without_pause() {
    const GIVEN: u64 = KEYS / 6;
    for (seed, (nodes, cores)) in [(1, (1, 2)), (2, (2, 1))] {
        let mut simulated = Simulated::new(seed, Topology::fake(nodes, cores), Faults::default());
        let index = simulated.engine.create_key_index("numbers", 0..=KEYS - 1);
        let (puts, is_over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let keys: Vec<u64> = (0..KEYS / 2).collect();
        let (mut client, done, over) = (index.client().unwrap(), puts.clone(), is_over.clone());
        simulated.client(async move {
            while !over.get() {
                // Now and then most of them are removed.
                let (count, is_put) = (done.get(), done.get() % 3 != 2);
                assert!(count < 30, "the owner does not catch up");
                let value = |key: u64| count * KEYS + key;
                let some: Vec<u64> = match is_put {
                    true => keys.clone(),
                    false => keys
                        .iter()
                        .copied()
                        .filter(|key| key % 7 != count % 7)
                        .collect(),
                };
                let operation = match is_put {
                    true => KeyOperation::Put,
                    false => KeyOperation::Remove,
                };
                let written = client.operate(operation, &some, |batch, at| {
                    let key = some[at as usize];
                    match is_put {
                        true => batch.entries.push((key, value(key))),
                        false => batch.keys.push(key),
                    }
                });
                written.await.unwrap();
                done.set(count + 1);
            }
            // What was written last, whoever has it.
            let last = done.get() - 1;
            let expected = |key: u64| match last % 3 {
                2 if key % 7 != last % 7 => None,
                2 => Some((last - 1) * KEYS + key),
                _ => Some(last * KEYS + key),
            };
            let values = client.operate(KeyOperation::Get, &keys, |batch, at| {
                batch.keys.push(keys[at as usize]);
            });
            let values = values.await.unwrap();
            for (key, value) in keys.iter().zip(values) {
                assert_eq!(value, expected(*key), "key {key}");
            }
        });
        let shifted = index.clone();
        simulated.client(async move {
            let is_filled = |_: &mut Context<'_>| match puts.get() {
                0 => Poll::Pending,
                _ => Poll::Ready(()),
            };
            poll_fn(is_filled).await;
            let shift = Shift {
                low: 0,
                high: GIVEN - 1,
                to: AeuId(1),
            };
            let shifted = shifted.shift(&[shift]).await.unwrap();
            let moved = shifted[0].result.as_ref().expect("nothing fails here");
            assert!(moved.keys > 0 && moved.keys <= GIVEN, "{moved:?}");
            println!("given while {} batches were written", puts.get());
            is_over.set(true);
        });
        simulated.run();
        drop(index);
        simulated.end();
    }
}
