//! An engine whose AEUs are slow cores, an index in it, and what balances it.

use super::seen::{Seen, cycles, throughput};
use super::{BalanceOptions, TICKS};
use eris_engine::{
    Algorithm, Balancer, Balancing, Engine, EngineError, KeyIndex, SegmentLoad, Settings,
};
use futures::executor::block_on;
use indicatif::ProgressBar;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Entries that are put in together.
const LOADED: u64 = 100_000;

pub(super) struct Contender {
    index: KeyIndex,
    balancer: Balancer,
    has_algorithm: bool,
    aeus: usize,
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
        let share = options.share * cores as f64 / aeus as f64;
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
            index,
            has_algorithm: algorithm.is_some(),
            aeus,
        })
    }

    /// What happens while clients ask for these keys for so long.
    pub fn run(
        &self,
        options: &BalanceOptions,
        keys: &Range<u64>,
        time: Duration,
        bar: &ProgressBar,
    ) -> Result<Seen, EngineError> {
        if !self.has_algorithm {
            // Forgets what was asked for before.
            block_on(self.index.measure())?;
        }
        let tick = options.time / TICKS;
        let ticks = (time.as_secs_f64() / tick.as_secs_f64()).round() as u32;
        let is_over = AtomicBool::new(false);
        let (began, began_at) = (Instant::now(), SystemTime::now());
        let batches = thread::scope(|scope| {
            let clients = (0..options.clients).map(|client| {
                let (index, is_over) = (&self.index, &is_over);
                // Others in each phase.
                let seed = keys.start * options.clients as u64 + client as u64;
                scope.spawn(move || ask(index, seed, options.batch, keys, is_over))
            });
            let clients: Vec<_> = clients.collect();
            for number in 1..=ticks {
                thread::sleep((began + tick * number).saturating_duration_since(Instant::now()));
                bar.inc(tick.as_millis() as u64);
            }
            is_over.store(true, Ordering::Relaxed);
            let ended = clients.into_iter();
            let ended = ended.map(|client| client.join().expect("clients do not panic"));
            ended.collect::<Result<Vec<_>, _>>()
        })?;
        let moved = self.balancer.history().into_iter();
        let moved: Vec<_> = moved.filter(|one| one.at >= began_at).collect();
        let keys_moved = moved.iter().flat_map(|one| &one.result);
        Ok(Seen {
            ticks: throughput(
                &batches.concat(),
                options.batch,
                began,
                tick,
                ticks as usize,
            ),
            tick,
            began: began_at,
            imbalance: match self.has_algorithm {
                true => moved.first().map_or(1.0, |first| first.imbalance),
                false => imbalance(&block_on(self.index.measure())?, self.aeus),
            },
            keys_moved: keys_moved.map(|moved| moved.keys).sum(),
            seconds_moving: moved.iter().map(|one| one.time.as_secs_f64()).sum(),
            cycles: cycles(&moved),
        })
    }

    pub fn end(self) -> Result<(), EngineError> {
        drop(self.balancer);
        block_on(self.index.drop())
    }
}

/// What the busiest AEU was asked for, as so many times the mean.
fn imbalance(segments: &[SegmentLoad], aeus: usize) -> f64 {
    let mut loads = vec![0.0; aeus];
    for segment in segments {
        loads[segment.aeu.index()] += segment.asked as f64;
    }
    loads.iter().fold(0.0, |a: f64, b| a.max(*b)) * aeus as f64
        / loads.iter().sum::<f64>().max(1e-9)
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
    asked: &Range<u64>,
    is_over: &AtomicBool,
) -> Result<Vec<Range<Instant>>, EngineError> {
    let mut client = index.client()?;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut keys = vec![0; batch];
    let mut values = vec![None; batch];
    let mut batches = Vec::new();
    let width = asked.end - asked.start;
    while !is_over.load(Ordering::Relaxed) {
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
