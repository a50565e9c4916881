//! An engine whose AEUs are slow cores, an index in it, and what balances it.

use super::seen::{Observation, throughput};
use super::{BalanceOptions, TICKS};
use eris_engine::{Algorithm, Balancer, Balancing, Engine, EngineError, KeyIndex, Settings};
use futures::executor::block_on;
use indicatif::ProgressBar;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Entries that are put in together.
const LOADED: u64 = 100_000;

/// Ticks before each phase, of the one before it.
const WARM_UP: u32 = 4;

pub(super) struct Contender {
    index: KeyIndex,
    balancer: Balancer,
    balancing: Balancing,
    aeus: usize,
}

/// What clients ask for: first these keys, then those.
struct AskedKeys<'a> {
    keys: [&'a Range<u64>; 2],
    is_changed: AtomicBool,
    is_over: AtomicBool,
}

impl Contender {
    /// With these keys, of which every AEU gets as many.
    pub fn start(
        settings: &Settings,
        options: &BalanceOptions,
        keys: Range<u64>,
        algorithm: Option<Algorithm>,
    ) -> Result<Self, EngineError> {
        let aeus = settings.topology.aeus().len();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let share = (options.share * cores as f64 / aeus as f64).min(1.0);
        let engine = Engine::start_with_share(settings.clone(), Some(share))?;
        let index = engine.create_key_index("balance", keys.start..=keys.end - 1);
        load(&index, keys)?;
        let balancing = Balancing {
            algorithm,
            period: options.period,
            threshold: options.threshold,
        };
        Ok(Contender {
            balancer: Balancer::start(&engine, balancing)?,
            balancing,
            index,
            aeus,
        })
    }

    /// What happens once clients ask for other keys than before, for so long. Before that they ask for the old ones a
    /// little, so that the change meets AEUs at work; balancing goes on only meanwhile.
    pub fn run(
        &self,
        options: &BalanceOptions,
        keys: [&Range<u64>; 2],
        time: Duration,
        bar: &ProgressBar,
    ) -> Result<Observation, EngineError> {
        let tick = options.time / TICKS;
        let ticks = (time.as_secs_f64() / tick.as_secs_f64()).round() as u32;
        let asked = AskedKeys {
            keys,
            is_changed: false.into(),
            is_over: false.into(),
        };
        let mut seen = Observation::new(tick);
        let mut forgotten = Ok(());
        self.balancer.set(self.balancing);
        let (batches, began) = thread::scope(|scope| {
            let clients = (0..options.clients).map(|client| {
                // Others in each phase.
                let seed = keys[1].start * options.clients as u64 + client as u64;
                let (index, asked) = (&self.index, &asked);
                scope.spawn(move || ask(index, seed, options.batch, asked))
            });
            let clients: Vec<_> = clients.collect();
            thread::sleep(tick * WARM_UP);
            let mut newest = self.balancer.history().last().map(|one| one.at);
            if self.balancing.algorithm.is_none() {
                // Forgets what was asked for before.
                forgotten = block_on(self.index.measure()).map(drop);
            }
            let began = Instant::now();
            seen.began = SystemTime::now();
            asked.is_changed.store(true, Ordering::Relaxed);
            for number in 1..=ticks {
                thread::sleep((began + tick * number).saturating_duration_since(Instant::now()));
                bar.inc(tick.as_millis() as u64);
                let moved = self.balancer.history().into_iter();
                let moved: Vec<_> = moved.filter(|one| Some(one.at) > newest).collect();
                newest = moved.last().map(|one| one.at).or(newest);
                seen.note(&moved);
            }
            self.balancer.set(Balancing {
                algorithm: None,
                ..self.balancing
            });
            asked.is_over.store(true, Ordering::Relaxed);
            let ended = clients.into_iter();
            let ended = ended.map(|client| client.join().expect("clients do not panic"));
            ended.collect::<Result<Vec<_>, _>>().map(|all| (all, began))
        })?;
        seen.ticks = throughput(
            &batches.concat(),
            options.batch,
            began,
            tick,
            ticks as usize,
        );
        forgotten.map(|()| seen)
    }

    /// What the busiest AEU has been asked for since the change, as so many times the mean. For one without an
    /// algorithm, which would ask for itself.
    pub fn imbalance(&self) -> Result<f64, EngineError> {
        let mut loads = vec![0.0; self.aeus];
        for segment in block_on(self.index.measure())? {
            loads[segment.aeu.index()] += segment.asked as f64;
        }
        let all: f64 = loads.iter().sum();
        Ok(loads.into_iter().fold(0.0, f64::max) * self.aeus as f64 / all.max(1e-9))
    }

    pub fn end(self) -> Result<(), EngineError> {
        drop(self.balancer);
        block_on(self.index.drop())
    }
}

fn load(index: &KeyIndex, keys: Range<u64>) -> Result<(), EngineError> {
    let mut client = index.client()?;
    let mut before = vec![None; LOADED as usize];
    for first in keys.clone().step_by(LOADED as usize) {
        let keys = first..keys.end.min(first + LOADED);
        let entries: Vec<_> = keys.map(|key| (key, key)).collect();
        client.put(&entries, &mut before[..entries.len()])?;
    }
    Ok(())
}

/// Looks keys up until it is over; from when to when each batch took.
fn ask(
    index: &KeyIndex,
    seed: u64,
    batch: usize,
    asked: &AskedKeys,
) -> Result<Vec<Range<Instant>>, EngineError> {
    let mut client = index.client()?;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut keys = vec![0; batch];
    let mut values = vec![None; batch];
    let mut batches = Vec::new();
    while !asked.is_over.load(Ordering::Relaxed) {
        let asked = asked.keys[usize::from(asked.is_changed.load(Ordering::Relaxed))];
        let width = asked.end - asked.start;
        for key in &mut keys {
            // xorshift64*, its high half scaled to the width.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            *key = asked.start + ((u128::from(random) * u128::from(width)) >> 64) as u64;
        }
        let began = Instant::now();
        client.get(&keys, &mut values)?;
        batches.push(began..Instant::now());
        assert!(
            keys.iter()
                .zip(&values)
                .all(|(key, value)| *value == Some(*key)),
            "every key has its value"
        );
    }
    Ok(batches)
}
