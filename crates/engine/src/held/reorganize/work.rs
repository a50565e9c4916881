//! A reorganisation from the samples to its effect, in units of one key each.
//!
//! ```text
//! samples ─► counting ─► measuring ─┬─► moving ─► measuring ─► effect
//!            how often   pages and  │   hottest    the same
//!            each        misses     │   first      again
//!                        before     └─► not worth it
//! ```

use super::policy::{Policy, Spread};
use super::{ReorganizationCause, ReorganizationEffect};
use eris_index::model::{Model, Pages, ZEN4};
use eris_index::{Art, IndexError, Key, Reorganization};
use eris_numa::Reservation;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What a unit of work does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReorganizationPhase {
    /// Counts a sample.
    Counting,
    /// Follows a lookup through the model.
    Measuring,
    /// Moves what leads to a key.
    Moving,
}

pub(super) const PHASES: usize = 3;

/// A reorganisation under way.
pub(super) struct ReorganizationWork<K: Key + ?Sized> {
    stage: Stage<K>,
    /// The samples, the oldest first.
    asked: Vec<K::Owned>,
    /// So many of them are counted.
    counted: usize,
    /// The keys that were sampled more than once, hottest first; all if there is none.
    hot: Vec<K::Owned>,
    effect: ReorganizationEffect,
    _reserved: Reservation,
}

enum Stage<K: Key + ?Sized> {
    Counting(BTreeMap<K::Owned, u32>),
    /// All keys, hottest first.
    Before(Gauge, Vec<K::Owned>),
    Moving(Reorganization<K>),
    After(Gauge),
    Done,
}

impl<K: Key + ?Sized> ReorganizationWork<K> {
    /// `reserved` is the memory that this takes.
    pub fn new(cause: ReorganizationCause, asked: Vec<K::Owned>, reserved: Reservation) -> Self {
        ReorganizationWork {
            stage: Stage::Counting(BTreeMap::new()),
            effect: ReorganizationEffect::new(cause, asked.len() as u64),
            asked,
            counted: 0,
            hot: Vec::new(),
            _reserved: reserved,
        }
    }

    pub fn phase(&self) -> ReorganizationPhase {
        match &self.stage {
            Stage::Counting(_) => ReorganizationPhase::Counting,
            Stage::Before(..) | Stage::After(_) | Stage::Done => ReorganizationPhase::Measuring,
            Stage::Moving(_) => ReorganizationPhase::Moving,
        }
    }

    /// What it has done so far.
    pub fn effect(&self) -> ReorganizationEffect {
        self.effect.clone()
    }

    /// Does so many units; says whether everything is done.
    ///
    /// # Errors
    /// No memory to move something to; the tree is sound.
    pub fn step(
        &mut self,
        tree: &mut Art<K>,
        units: usize,
        policy: &Policy,
    ) -> Result<bool, IndexError> {
        match &mut self.stage {
            Stage::Counting(counts) => {
                let from = self.counted;
                let to = self.asked.len().min(from + units);
                for key in &self.asked[from..to] {
                    *counts.entry(key.clone()).or_default() += 1;
                }
                self.counted = to;
                if to == self.asked.len() {
                    let counts = std::mem::take(counts);
                    self.stage = self.counted(counts, tree, policy);
                }
            }
            Stage::Before(gauge, keys) => {
                if gauge.step(tree, &self.hot, newest(&self.asked), units) {
                    let (spread, walks) = gauge.result();
                    self.effect.hot_bytes = spread.bytes;
                    self.effect.pages_before = Some(spread.pages);
                    self.effect.modelled_walks_before = Some(walks);
                    self.stage = match self.effect.cause {
                        ReorganizationCause::Policy if !policy.is_scattered(&spread, walks) => {
                            Stage::Done
                        }
                        _ => Stage::Moving(Reorganization::begin(tree, std::mem::take(keys))),
                    };
                }
            }
            Stage::Moving(reorganization) => {
                let done = reorganization.step(tree, units);
                self.effect.keys_done = reorganization.progress().0 as u64;
                self.effect.nodes_moved = reorganization.moved() as u64;
                self.effect.bytes_moved = reorganization.bytes() as u64;
                if done? {
                    self.stage = Stage::After(Gauge::new(tree));
                }
            }
            Stage::After(gauge) => {
                if gauge.step(tree, &self.hot, newest(&self.asked), units) {
                    let (spread, walks) = gauge.result();
                    self.effect.pages_after = Some(spread.pages);
                    self.effect.modelled_walks_after = Some(walks);
                    self.stage = Stage::Done;
                }
            }
            Stage::Done => {}
        }
        Ok(matches!(self.stage, Stage::Done))
    }

    /// All samples are counted.
    fn counted(
        &mut self,
        counts: BTreeMap<K::Owned, u32>,
        tree: &Art<K>,
        policy: &Policy,
    ) -> Stage<K> {
        let mut counts: Vec<(K::Owned, u32)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(_, count)| Reverse(*count));
        let hot = counts.partition_point(|(_, count)| *count > 1);
        let repeated: usize = counts[..hot].iter().map(|(_, count)| *count as usize).sum();
        self.effect.keys_all = counts.len() as u64;
        let is_worth_it = tree.footprint().used >= policy.least_bytes
            && policy.is_skewed(repeated, self.asked.len());
        if self.effect.cause == ReorganizationCause::Policy && !is_worth_it {
            return Stage::Done;
        }
        let keys: Vec<K::Owned> = counts.into_iter().map(|(key, _)| key).collect();
        let hot = if hot == 0 { keys.len() } else { hot };
        self.hot = keys[..hot].to_vec();
        Stage::Before(Gauge::new(tree), keys)
    }
}

/// The newer half of the samples: enough to fill the model and to count.
fn newest<T>(asked: &[T]) -> &[T] {
    &asked[asked.len() / 2..]
}

/// Looks where the hot keys lie, and lets a model repeat what was asked for: the first half fills it, the second
/// counts.
struct Gauge {
    pages: Pages,
    model: Model,
    /// Units done: first the hot keys, then the samples.
    done: usize,
    nodes: BTreeSet<usize>,
    touched: BTreeSet<usize>,
    spread: Spread,
    walks: u64,
    lookups: u64,
}

impl Gauge {
    fn new<K: Key + ?Sized>(tree: &Art<K>) -> Self {
        let pages = match tree.memory().asks_for_huge_pages() {
            true => Pages::Huge,
            false => Pages::Small,
        };
        Gauge {
            pages,
            model: Model::of_translations(&ZEN4, pages),
            done: 0,
            nodes: BTreeSet::new(),
            touched: BTreeSet::new(),
            spread: Spread {
                page_bits: pages.bits(),
                ..Spread::default()
            },
            walks: 0,
            lookups: 0,
        }
    }

    /// Does so many units; says whether it is done.
    fn step<K: Key + ?Sized>(
        &mut self,
        tree: &Art<K>,
        hot: &[K::Owned],
        asked: &[K::Owned],
        units: usize,
    ) -> bool {
        let end = (self.done + units).min(hot.len() + asked.len());
        for unit in self.done..end {
            match hot.get(unit) {
                Some(key) => self.locate(tree, key),
                None => self.follow(tree, asked, unit - hot.len()),
            }
        }
        self.done = end;
        end == hot.len() + asked.len()
    }

    fn locate<K: Key + ?Sized>(&mut self, tree: &Art<K>, key: &K::Owned) {
        tree.trace(K::view(key), |visit| {
            let mut lines = visit.reads.map(|address| address / 64);
            lines.sort_unstable();
            let read = if lines[0] == lines[1] { 64 } else { 128 };
            if self.nodes.insert(visit.address) {
                self.spread.bytes += visit.bytes as u64;
                self.spread.read_bytes += visit.bytes.min(read) as u64;
            }
            self.touched.extend(lines);
        });
    }

    fn follow<K: Key + ?Sized>(&mut self, tree: &Art<K>, asked: &[K::Owned], at: usize) {
        tree.trace(K::view(&asked[at]), |visit| self.model.visit(&visit));
        let counts = self.model.take_counts();
        if at >= asked.len() / 2 {
            self.walks += counts.walks;
            self.lookups += 1;
        }
    }

    /// Where the hot keys lie, and walks per lookup.
    fn result(&self) -> (Spread, f64) {
        let page_of = |line: &usize| (line * 64) >> self.pages.bits();
        let pages: BTreeSet<usize> = self.touched.iter().map(page_of).collect();
        let spread = Spread {
            pages: pages.len() as u64,
            lines: self.touched.len() as u64,
            ..self.spread
        };
        (spread, self.walks as f64 / self.lookups.max(1) as f64)
    }
}
