//! One cycle for a table.

use super::decide::Experience;
use super::rows::{self, FIRST_RATE, Holding, everything};
use super::{Balancing, Shared};
use crate::engine::Engine;
use crate::key_index::Shifted;
use crate::load::Load;
use crate::object::DataObject;
use eris_types::{AeuId, ObjectId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;

/// What is known of tables. Whoever has it is in a cycle: there is one at a time.
#[derive(Default)]
pub(super) struct Tables(Mutex<HashMap<ObjectId, Table>>);

struct Table {
    /// When somebody looked last, and what he saw.
    looked: (Instant, Vec<Load>),
    experience: Experience,
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
        let aeus = engine.topology().aeus().len();
        let table = tables.entry(object.id).or_insert_with(|| Table {
            looked: (Instant::now(), vec![Load::default(); aeus]),
            experience: Experience::of(FIRST_RATE),
        });
        let now = (Instant::now(), object.loads.all());
        let before = std::mem::replace(&mut table.looked, now.clone());
        if object.is_ranged_by_key() {
            return;
        }
        let holdings = now.1.iter().zip(&before.1).enumerate();
        let holdings: Vec<Holding> = holdings
            .map(|(aeu, (now, before))| Holding::of(object, AeuId(aeu as u16), now.since(before)))
            .collect();
        let bytes: Vec<f64> = holdings.iter().map(|one| one.bytes as f64).collect();
        self.history.note_effect(object.id, &bytes);
        let topology = engine.topology();
        let time = now.0 - before.0;
        let experience = &mut table.experience;
        let decided = rows::decide(&holdings, time, topology, balancing, must, experience);
        let Some((moves, imbalance)) = decided else {
            return;
        };
        let mut shifted = Vec::with_capacity(moves.len());
        for one in moves {
            let began = Instant::now();
            let moved = engine.move_rows(object.id, one.from, one.to, one.rows);
            let result = moved.await.map_err(|error| error.to_string());
            shifted.push(Shifted {
                shift: everything(one.to),
                from: one.from,
                result,
                time: began.elapsed(),
            });
        }
        experience.learn(&shifted, topology);
        let named = (object.id, &object.name[..]);
        self.history.add(named, imbalance, shifted, |_| None);
        // What was read meanwhile tells little of what comes.
        table.looked = (Instant::now(), object.loads.all());
    }
}

impl Holding {
    /// What an AEU has of a table without a key.
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
