//! One cycle for a table.

use super::decide::{Experience, FEW_ASKED};
use super::keys::{self, KeyRange, shift};
use super::rows::{self, Holding, Rows, everything};
use super::{Balancing, Shared};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::key_index::{Moved, Shift, Shifted};
use crate::load::Load;
use crate::object::DataObject;
use crate::ranges::Dealing;
use eris_column::{CHUNK_ROWS, ZoneRange};
use eris_types::{AeuId, ObjectId};
use futures::channel::oneshot;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Fewer keys per AEU differ by chance alone.
const FEW_EACH: u64 = 200;
/// How long a move waits until nobody stages rows with a key.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(20);
/// So many rows are moved without a pause, by one statement; of those without a key, which are moved by the chunk, some more.
const AT_ONCE: u64 = CHUNK_ROWS as u64 / 2;
const CHUNKS_AT_ONCE: u64 = 4 * CHUNK_ROWS as u64;
/// So many times as long as a statement has taken others have their turn, and owners do what else they are asked for.
const PACE: u32 = 2;

/// What is known of tables. Whoever has it is in a cycle: there is one at a time.
#[derive(Default)]
pub(super) struct Tables(Mutex<HashMap<ObjectId, Table>>);

struct Table {
    /// When somebody looked last, and what he saw.
    looked: (Instant, Vec<Load>),
    experience: Experience,
}

/// What is to be moved.
enum Moves {
    Keys(Vec<KeyRange>),
    Rows(Vec<Rows>),
}

impl Shared {
    /// Forgets tables that are no more.
    pub fn forget_others(&self, tables: &[Arc<DataObject>]) {
        let exists = |id: &ObjectId| tables.iter().any(|table| table.id == *id);
        self.lock().own.retain(|id, _| exists(id));
        if let Ok(mut known) = self.tables.0.try_lock() {
            known.retain(|id, _| exists(id));
        }
    }

    /// One cycle. With `must`, all that is uneven moves.
    pub async fn balance_table(
        &self,
        engine: &Engine,
        object: &Arc<DataObject>,
        balancing: Balancing,
        must: bool,
    ) {
        let mut tables = self.tables.0.lock().await;
        let topology = engine.topology();
        let aeus = topology.aeus().len();
        let is_keyed = object.is_ranged_by_key();
        let is_new = !tables.contains_key(&object.id);
        let table = tables.entry(object.id).or_insert_with(|| Table {
            looked: (Instant::now(), vec![Load::default(); aeus]),
            experience: Experience::of(match is_keyed {
                true => keys::FIRST_RATE,
                false => rows::FIRST_RATE,
            }),
        });
        let now = (Instant::now(), object.loads.all());
        let before = std::mem::replace(&mut table.looked, now.clone());
        let time = now.0 - before.0;
        let loads = now.1.iter().zip(&before.1);
        let loads: Vec<Load> = loads.map(|(now, before)| now.since(before)).collect();
        // Of a table that is seen for the first time nobody knows how long that took.
        if !must && (is_new || loads.iter().all(Load::is_nothing)) {
            return;
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
            return;
        }
        let goes_on = || self.goes_on(object.id, must);
        let experience = &mut table.experience;
        let dealing = object.ranges.get().filter(|_| is_keyed);
        let decided = if let Some(dealing) = dealing.as_ref().filter(|_| is_asked) {
            // Keys are counted, and time is not: one operation that happens to be timed may take as long as a thousand others.
            let each = asking.as_secs_f64() / asked as f64;
            let busy: Vec<f64> = loads.iter().map(|load| load.keys as f64 * each).collect();
            self.history.note_effect(object.id, &busy);
            let ranges = ranges(dealing, &busy, &samples);
            let extent = extent(object, &samples);
            let rows = (0..aeus).map(|aeu| object.partition_rows(AeuId(aeu as u16)));
            let rows: Vec<u64> = rows.collect();
            let decided = keys::decide(
                ranges, &rows, extent, time, topology, balancing, must, experience,
            );
            decided.map(|(pieces, imbalance)| (Moves::Keys(pieces), imbalance))
        } else {
            let holdings = loads.iter().enumerate();
            let holdings: Vec<Holding> = holdings
                .map(|(aeu, load)| Holding::of(object, AeuId(aeu as u16), *load))
                .collect();
            let bytes: Vec<f64> = holdings.iter().map(|one| one.bytes as f64).collect();
            self.history.note_effect(object.id, &bytes);
            let links = !is_keyed;
            let decided = rows::decide(
                &holdings, time, topology, balancing, must, links, experience,
            );
            decided.map(|(moves, imbalance)| (Moves::Rows(moves), imbalance))
        };
        let Some((moves, imbalance)) = decided else {
            return;
        };
        let mut shifted = Vec::new();
        match moves {
            Moves::Keys(pieces) => {
                for piece in pieces {
                    let moved = move_keys(engine, object, &piece, u64::MAX, &goes_on);
                    shifted.extend(moved.await);
                }
            }
            Moves::Rows(moves) if is_keyed => {
                for one in moves {
                    shifted.extend(move_keyed_rows(engine, object, &one, &goes_on).await);
                }
            }
            Moves::Rows(moves) => {
                // By how many rows chunks were too large or too small.
                let mut rest = vec![0i64; aeus];
                for one in moves {
                    let began = Instant::now();
                    let rest = &mut rest[one.from.index()];
                    let rows = one.rows.saturating_add_signed(*rest);
                    let one = Rows { rows, ..one };
                    let moved = move_rows(engine, object, &one, &goes_on).await;
                    if let Ok(moved) = &moved {
                        *rest = rows as i64 - moved.keys as i64;
                    }
                    shifted.push(came_of(everything(one.to), one.from, moved, began));
                }
            }
        }
        let node = |aeu| topology.node_of(aeu);
        experience.learn(&shifted, |one| {
            !is_keyed && node(one.from) == node(one.shift.to)
        });
        let named = (object.id, &object.name[..]);
        self.history.add(named, imbalance, shifted, |shift| {
            let dealing = dealing.as_ref()?;
            let number = |word: u64| (word ^ 1 << 63) as i64;
            let low = Some(number(shift.low)).filter(|low| *low > i64::MIN);
            let next = number(shift.high).checked_add(1);
            Some(object.shown_range(dealing, low, next))
        });
        // What was asked for meanwhile tells little of what comes.
        table.looked = (Instant::now(), object.loads.all());
    }
}

fn came_of(
    shift: Shift,
    from: AeuId,
    moved: Result<Moved, EngineError>,
    began: Instant,
) -> Shifted {
    Shifted {
        shift,
        from,
        result: moved.map_err(|error| error.to_string()),
        time: began.elapsed(),
    }
}

/// Moves so many rows of a piece, the least keys first, as soon as nobody stages others; what came of it.
async fn move_keys(
    engine: &Engine,
    object: &DataObject,
    piece: &KeyRange,
    rows: u64,
    goes_on: &impl Fn() -> bool,
) -> Option<Shifted> {
    let dealing = object.ranges.get()?;
    let from = dealing.get(piece.low);
    let began = Instant::now();
    let (mut all, mut next) = (Moved::default(), piece.low);
    let result = loop {
        let began_some = Instant::now();
        let (numbers, left) = ((next, piece.high), (rows - all.keys).min(AT_ONCE));
        match engine
            .move_first_keys(object.id, numbers, piece.aeu, left)
            .await
        {
            Ok((moved, last)) => {
                all.keys += moved.keys;
                all.copied += moved.copied;
                if last == piece.high || all.keys >= rows || !goes_on() {
                    break Ok((all, last));
                }
                next = last + 1;
                pause(PACE * began_some.elapsed()).await;
            }
            Err(EngineError::InUse { .. }) if began.elapsed() < PATIENCE => pause(PAUSE).await,
            Err(error) => break Err(error),
        }
    };
    let high = result.as_ref().map_or(piece.high, |(_, last)| *last);
    let piece = KeyRange {
        high,
        ..piece.clone()
    };
    let result = result.map(|(moved, _)| moved);
    Some(came_of(shift(&piece), from, result, began))
}

/// Moves about so many rows of a table without a key.
async fn move_rows(
    engine: &Engine,
    object: &DataObject,
    rows: &Rows,
    goes_on: &impl Fn() -> bool,
) -> Result<Moved, EngineError> {
    let mut all = Moved::default();
    while all.keys < rows.rows && goes_on() {
        let began = Instant::now();
        let left = (rows.rows - all.keys).min(CHUNKS_AT_ONCE);
        let moved = engine
            .move_rows(object.id, rows.from, rows.to, left)
            .await?;
        if moved.keys == 0 {
            break;
        }
        all.keys += moved.keys;
        all.linked += moved.linked;
        all.copied += moved.copied;
        pause(PACE * began.elapsed()).await;
    }
    Ok(all)
}

/// Moves rows of whichever keys an owner has; first of those that lie behind keys of the new owner.
async fn move_keyed_rows(
    engine: &Engine,
    object: &DataObject,
    rows: &Rows,
    goes_on: &impl Fn() -> bool,
) -> Vec<Shifted> {
    let mut shifted: Vec<Shifted> = Vec::new();
    let Some(dealing) = object.ranges.get() else {
        return shifted;
    };
    let all: Vec<_> = dealing.ranges().collect();
    let own = (0..all.len()).filter(|&at| all[at].2 == rows.from);
    let mut own: Vec<usize> = own.collect();
    own.sort_by_key(|&at| at == 0 || all[at - 1].2 != rows.to);
    let mut left = rows.rows;
    for at in own {
        let (low, next, _) = all[at];
        let range = KeyRange {
            low: low.unwrap_or(i64::MIN),
            high: next.map_or(i64::MAX, |next| next - 1),
            aeu: rows.to,
            weight: 0.0,
            samples: Vec::new(),
        };
        let Some(one) = move_keys(engine, object, &range, left, goes_on).await else {
            break;
        };
        left = left.saturating_sub(one.result.as_ref().map_or(left, |moved| moved.keys));
        shifted.push(one);
        if left == 0 || !goes_on() {
            break;
        }
    }
    shifted
}

/// The ranges of a table's keys, and how busy their owners were with each.
fn ranges(dealing: &Dealing, busy: &[f64], samples: &[Vec<i64>]) -> Vec<KeyRange> {
    let ranges = dealing.ranges().map(|(low, next, aeu)| {
        let (low, high) = (
            low.unwrap_or(i64::MIN),
            next.map_or(i64::MAX, |next| next - 1),
        );
        let all = &samples[aeu.index()];
        let own = all.partition_point(|one| *one < low)..all.partition_point(|one| *one <= high);
        let share = own.len() as f64 / all.len().max(1) as f64;
        KeyRange {
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

impl Holding {
    /// What an AEU has of a table.
    fn of(object: &DataObject, aeu: AeuId, load: Load) -> Self {
        let has = object.partition_statistics(aeu);
        let living = has.rows.saturating_sub(has.deleted);
        let share = living as f64 / has.rows.max(1) as f64;
        Holding {
            rows: living,
            bytes: (has.bytes as f64 * share) as u64,
            load,
        }
    }
}
