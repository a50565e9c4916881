//! One cycle for a table.

use super::cycle::Cycle;
use super::decide::FEW_ASKED;
use super::experience::Experience;
use super::keys::{self, BusyRange, shift};
use super::rows::{self, Holding, RowMove, everything};
use super::{BalancerState, Balancing};
use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::load::Load;
use crate::object::ranges::Assignment;
use crate::object::statistics::PartitionStatistics;
use eris_atomics::{Lock, LockGuard};
use eris_column::{CHUNK_ROWS, ZoneRange};
use eris_types::{AeuId, ObjectId};
use futures::channel::oneshot;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Fewer keys per AEU differ by chance alone.
const FEW_EACH: u64 = 200;
/// How long a move waits until nobody writes rows with a key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(20);
/// So many rows are copied without a pause, by one statement; of those without a key, which are moved by the chunk,
/// some more.
const AT_ONCE: u64 = CHUNK_ROWS as u64 / 2;
const CHUNKS_AT_ONCE: u64 = 4 * CHUNK_ROWS as u64;
/// So many times as long as a statement has taken others change rows, and owners do what else they are asked for.
const PACE: u32 = 2;

/// What is known of tables. Whoever has a table's is in a cycle for it: there is one at a time for each.
#[derive(Default)]
pub(super) struct Tables(Lock<HashMap<ObjectId, Arc<Known>>>);

type Known = tokio::sync::Mutex<KnownTable>;

struct KnownTable {
    /// When somebody looked last, and what he saw.
    looked: Option<(Instant, Vec<Load>)>,
    experience: Experience,
}

impl Tables {
    fn lock(&self) -> LockGuard<'_, HashMap<ObjectId, Arc<Known>>> {
        self.0.lock()
    }

    /// What is known of a table.
    fn of(&self, object: &DataObject) -> Arc<Known> {
        let mut all = self.lock();
        let known = all.entry(object.id).or_insert_with(|| {
            Arc::new(Known::new(KnownTable {
                looked: None,
                experience: Experience::of(match object.is_ranged_by_key() {
                    true => keys::FIRST_RATE,
                    false => rows::FIRST_RATE,
                }),
            }))
        });
        known.clone()
    }
}

/// What is to be moved.
enum Moves {
    Keys(Vec<BusyRange>),
    RowMove(Vec<RowMove>),
}

impl BalancerState {
    /// Forgets tables that are no more.
    pub fn forget_others(&self, engine: &Engine) {
        // Asked now: what was listed before may lack a table that has got a way of its own since.
        let exists = |id: &ObjectId| engine.object(*id).is_ok();
        self.lock().own.retain(|id, _| exists(id));
        self.tables.lock().retain(|id, _| exists(id));
    }

    /// One cycle; how many rows have moved. With `must`, all that is uneven moves, once a cycle for this table that is
    /// under way is over; without, that one is enough.
    pub async fn balance_table(
        &self,
        engine: &Engine,
        object: &Arc<DataObject>,
        balancing: Balancing,
        must: bool,
    ) -> u64 {
        let known = self.tables.of(object);
        let mut table = match must {
            true => known.lock().await,
            false => match known.try_lock() {
                Ok(table) => table,
                Err(_) => return 0,
            },
        };
        let table = &mut *table;
        let aeus = engine.topology().aeus().len();
        let Some(seen) = table.look(object, aeus, must) else {
            return 0;
        };
        let is_keyed = object.is_ranged_by_key();
        let assignment = object.ranges.get().filter(|_| is_keyed);
        let experience = &mut table.experience;
        let limits = Limits { balancing, must };
        let decided = match assignment.as_ref().filter(|_| seen.is_asked) {
            Some(assignment) => {
                self.decide_keys(engine, object, assignment, &seen, limits, experience)
            }
            None => self.decide_rows(engine, object, &seen, limits, experience),
        };
        let Some((moves, imbalance)) = decided else {
            return 0;
        };
        let mut cycle = Cycle::new(&self.history, object, assignment, imbalance);
        let moving = Moving {
            engine,
            object,
            goes_on: &|| self.goes_on(object.id, must),
        };
        moving.carry_out(moves, aeus, &mut cycle).await;
        let node = |aeu| engine.topology().node_of(aeu);
        experience.learn(&cycle.shifted, |one| {
            !is_keyed && node(one.from) == node(one.shift.to)
        });
        // What was asked for meanwhile tells little of what comes.
        table.looked = Some((Instant::now(), object.loads.all()));
        let moved = cycle.shifted.iter().flat_map(|one| &one.result);
        moved.map(|moved| moved.keys).sum()
    }

    /// Which keys are to move, of a table that is asked for keys.
    fn decide_keys(
        &self,
        engine: &Engine,
        object: &DataObject,
        assignment: &Assignment,
        seen: &Activity,
        Limits { balancing, must }: Limits,
        experience: &mut Experience,
    ) -> Option<(Moves, f64)> {
        // Keys are counted, and time is not: one operation that happens to be timed may take as long as a thousand
        // others.
        let each = seen.asking.as_secs_f64() / seen.asked as f64;
        let loads = seen.loads.iter();
        let busy: Vec<f64> = loads.map(|load| load.keys as f64 * each).collect();
        self.history.note_effect(object.id, &busy);
        let ranges = ranges(assignment, &busy, &seen.samples);
        let extent = extent(object, &seen.samples);
        let rows = (0..busy.len()).map(|aeu| object.partition_rows(AeuId(aeu as u16)));
        let rows: Vec<u64> = rows.collect();
        let (time, topology) = (seen.time, engine.topology());
        let looked = keys::Looked {
            ranges,
            rows: &rows,
            extent,
            links: object.indexes().is_empty(),
        };
        let decided = keys::decide(looked, time, topology, balancing, must, experience);
        decided.map(|(pieces, imbalance)| (Moves::Keys(pieces), imbalance))
    }

    /// Which rows are to move, of a table that is scanned.
    fn decide_rows(
        &self,
        engine: &Engine,
        object: &DataObject,
        seen: &Activity,
        Limits { balancing, must }: Limits,
        experience: &mut Experience,
    ) -> Option<(Moves, f64)> {
        let holdings = holdings(object, &seen.loads);
        let weights: Vec<f64> = holdings.iter().map(Holding::weight).collect();
        self.history.note_effect(object.id, &weights);
        let links = !object.is_ranged_by_key() || object.indexes().is_empty();
        let (time, topology) = (seen.time, engine.topology());
        let decided = rows::decide(
            &holdings, time, topology, balancing, must, links, experience,
        );
        decided.map(|(moves, imbalance)| (Moves::RowMove(moves), imbalance))
    }
}

/// How far a cycle goes, and whether it has to.
#[derive(Clone, Copy)]
struct Limits {
    balancing: Balancing,
    must: bool,
}

/// What a table was asked for since somebody looked last.
struct Activity {
    time: Duration,
    /// By owner.
    loads: Vec<Load>,
    /// Some of the keys, by owner.
    samples: Vec<Vec<i64>>,
    /// How many keys, and what that took.
    asked: u64,
    asking: Duration,
    /// Whether these are enough to tell, and took more than scans.
    is_asked: bool,
}

impl KnownTable {
    /// What was asked for since the last look; `None` if that is too little for a cycle that need not be.
    fn look(&mut self, object: &DataObject, aeus: usize, must: bool) -> Option<Activity> {
        let now = (Instant::now(), object.loads.all());
        let before = self.looked.replace(now.clone());
        let is_new = before.is_none();
        let before = before.unwrap_or_else(|| (now.0, vec![Load::default(); aeus]));
        let time = now.0 - before.0;
        let loads = now.1.iter().zip(&before.1);
        let loads: Vec<Load> = loads.map(|(now, before)| now.since(before)).collect();
        // Of a table that is seen for the first time nobody knows how long that took.
        if !must && (is_new || loads.iter().all(Load::is_nothing)) {
            return None;
        }
        let sum = |of: fn(&Load) -> Duration| loads.iter().map(of).sum::<Duration>();
        let asked: u64 = loads.iter().map(|load| load.keys).sum();
        let asking = sum(|load| load.asking);
        let is_told = asked >= FEW_ASKED.max(FEW_EACH * aeus as u64);
        let is_asked = is_told && asking >= sum(|load| load.scanning);
        let samples = (0..aeus).map(|aeu| object.loads.take_samples(AeuId(aeu as u16)));
        let samples: Vec<Vec<i64>> = samples.collect();
        let mut sampled = loads.iter().zip(&samples);
        if is_asked && !must && sampled.any(|(load, samples)| load.keys > 0 && samples.is_empty()) {
            // Whoever was asked for few large batches seems to have had nothing to do.
            return None;
        }
        Some(Activity {
            time,
            loads,
            samples,
            asked,
            asking,
            is_asked,
        })
    }
}

/// What moves in a cycle.
struct Moving<'a, G> {
    engine: &'a Engine,
    object: &'a DataObject,
    /// Whether there is to be another statement.
    goes_on: &'a G,
}

impl<G: Fn() -> bool> Moving<'_, G> {
    /// Moves what is to be moved, one after the other.
    async fn carry_out(&self, moves: Moves, aeus: usize, cycle: &mut Cycle<'_>) {
        match moves {
            Moves::Keys(pieces) => {
                for piece in pieces {
                    self.keys(&piece, u64::MAX, cycle).await;
                }
            }
            Moves::RowMove(moves) if self.object.is_ranged_by_key() => {
                for one in moves {
                    self.keyed_rows(&one, cycle).await;
                }
            }
            Moves::RowMove(moves) => {
                // By how many rows chunks were too large or too small.
                let mut rest = vec![0i64; aeus];
                for one in moves {
                    let rest = &mut rest[one.from.index()];
                    let rows = one.rows.saturating_add_signed(*rest);
                    let one = RowMove { rows, ..one };
                    if let Some(moved) = self.rows(&one, cycle).await {
                        *rest = rows as i64 - moved as i64;
                    }
                }
            }
        }
    }

    /// Moves so many rows of a piece, the least keys first, as soon as nobody writes others; how many have moved,
    /// `None` if not all that should.
    async fn keys(&self, piece: &BusyRange, rows: u64, cycle: &mut Cycle<'_>) -> Option<u64> {
        let from = self.object.ranges.get()?.get(piece.low);
        let of = |low, high| {
            let piece = piece.clone();
            shift(&BusyRange { low, high, ..piece })
        };
        let began = Instant::now();
        let (mut all, mut next) = (0, piece.low);
        // Since when others are writing.
        let mut waiting = None;
        loop {
            let began_some = Instant::now();
            let most = match self.engine.can_link(self.object, from, piece.aeu) {
                true => u64::MAX,
                false => AT_ONCE,
            };
            let (numbers, left) = ((next, piece.high), (rows - all).min(most));
            let id = self.object.id;
            let some = self.engine.move_first_keys(id, numbers, piece.aeu, left);
            match some.await {
                Ok((moved, last)) => {
                    waiting = None;
                    all += moved.keys;
                    let is_more = next > piece.low;
                    cycle.moved(of(next, last), from, moved, began.elapsed(), is_more);
                    // Of rows that are linked it is not counted how many have which keys.
                    let close = if most == AT_ONCE { 0 } else { rows / 32 };
                    if last == piece.high || all >= rows - close || !(self.goes_on)() {
                        return Some(all);
                    }
                    next = last + 1;
                    pause(PACE * began_some.elapsed()).await;
                }
                Err(EngineError::InUse { .. })
                    if waiting.get_or_insert_with(Instant::now).elapsed() < PATIENCE =>
                {
                    pause(PAUSE).await;
                }
                Err(error) => {
                    cycle.failed(of(next, piece.high), from, &error, began.elapsed());
                    return None;
                }
            }
        }
    }

    /// Moves about so many rows of a table without a key; how many, `None` if it failed.
    async fn rows(&self, rows: &RowMove, cycle: &mut Cycle<'_>) -> Option<u64> {
        let (began, of) = (Instant::now(), everything(rows.to));
        let mut all = 0;
        while all < rows.rows && (self.goes_on)() {
            let began_some = Instant::now();
            let (id, left) = (self.object.id, (rows.rows - all).min(CHUNKS_AT_ONCE));
            match self.engine.move_some(id, rows.from, rows.to, left).await {
                Ok(moved) if moved.keys == 0 => break,
                Ok(moved) => {
                    cycle.moved(of, rows.from, moved, began.elapsed(), all > 0);
                    all += moved.keys;
                }
                Err(error) => {
                    cycle.failed(of, rows.from, &error, began.elapsed());
                    return None;
                }
            }
            pause(PACE * began_some.elapsed()).await;
        }
        Some(all)
    }

    /// Moves rows of whichever keys an owner has; first of those that lie behind keys of the new owner.
    async fn keyed_rows(&self, rows: &RowMove, cycle: &mut Cycle<'_>) {
        let Some(assignment) = self.object.ranges.get() else {
            return;
        };
        let all: Vec<_> = assignment.ranges().collect();
        let own = (0..all.len()).filter(|&at| all[at].2 == rows.from);
        let mut own: Vec<usize> = own.collect();
        own.sort_by_key(|&at| at == 0 || all[at - 1].2 != rows.to);
        let mut left = rows.rows;
        for at in own {
            let (low, next, _) = all[at];
            let range = BusyRange {
                low: low.unwrap_or(i64::MIN),
                high: next.map_or(i64::MAX, |next| next - 1),
                aeu: rows.to,
                weight: 0.0,
                samples: Vec::new(),
            };
            let Some(moved) = self.keys(&range, left, cycle).await else {
                return;
            };
            left = left.saturating_sub(moved);
            if left == 0 || !(self.goes_on)() {
                return;
            }
        }
    }
}

/// The ranges of a table's keys, and how busy their owners were with each.
fn ranges(assignment: &Assignment, busy: &[f64], samples: &[Vec<i64>]) -> Vec<BusyRange> {
    let ranges = assignment.ranges().map(|(low, next, aeu)| {
        let (low, high) = (
            low.unwrap_or(i64::MIN),
            next.map_or(i64::MAX, |next| next - 1),
        );
        let all = &samples[aeu.index()];
        let own = all.partition_point(|one| *one < low)..all.partition_point(|one| *one <= high);
        let share = own.len() as f64 / all.len().max(1) as f64;
        BusyRange {
            low,
            high,
            aeu,
            weight: busy[aeu.index()] * share,
            samples: all[own].to_vec(),
        }
    });
    ranges.collect()
}

/// The numbers of the least and the greatest key, as far as they are known.
fn extent(object: &DataObject, samples: &[Vec<i64>]) -> (i64, i64) {
    if let [column] = *object.key
        && let Some(ZoneRange::Integer(least, greatest)) = object.column_range(column)
    {
        return (least, greatest);
    }
    let least = samples.iter().filter_map(|some| some.first()).min();
    let greatest = samples.iter().filter_map(|some| some.last()).max();
    least
        .zip(greatest)
        .map_or((0, 0), |(least, greatest)| (*least, *greatest))
}

/// Waits for a moment, on whatever runtime, if any.
async fn pause(time: Duration) {
    let (over, waiting) = oneshot::channel();
    let sleeper = thread::Builder::new().name("eris-pause".to_owned());
    let sleeps = sleeper.spawn(move || {
        thread::sleep(time);
        // Whoever has gone away does not wait.
        let _ = over.send(());
    });
    if sleeps.is_ok() {
        let _ = waiting.await;
    }
}

/// What AEUs have of a table. Rows in append buffers are encoded once they are sealed: until then they count as the
/// sealed ones of the table do.
fn holdings(object: &DataObject, loads: &[Load]) -> Vec<Holding> {
    let parts = (0..loads.len()).map(|aeu| object.partition_statistics(AeuId(aeu as u16)));
    let parts: Vec<_> = parts.collect();
    let sum = |of: fn(&PartitionStatistics) -> u64| parts.iter().map(of).sum::<u64>() as f64;
    let (sealed, encoded) = (sum(|part| part.sealed), sum(|part| part.sealed_bytes));
    let holding = |(part, load): (&PartitionStatistics, &Load)| {
        let buffered = part.rows.saturating_sub(part.sealed) as f64;
        let bytes = match sealed > 0.0 {
            true => part.sealed_bytes as f64 + buffered * encoded / sealed,
            false => part.bytes as f64,
        };
        let living = part.rows.saturating_sub(part.deleted);
        let share = living as f64 / part.rows.max(1) as f64;
        Holding {
            rows: living,
            bytes: (bytes * share) as u64,
            load: *load,
        }
    };
    parts.iter().zip(loads).map(holding).collect()
}
