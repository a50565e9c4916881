//! Columns that tables are joined by, stored by the order of the other table's rows: a condition on that one becomes a range.
//!
//! ```text
//! a star join has been executed ── saw ───▶┐ worth it, and not done yet? ──▶ the side's table is read · its keys are put in order
//! rows of a table have come ────── wrote ─▶┘                              engine: the fact's column is stored by that order
//! CALL eris.recode('t') ─────────────────────────────────────────────────▶
//! ```
//!
//! Foreign keys are joins that will be: columns with one are stored so once a table has enough rows, before anybody has asked.
//!
//! Nothing waits for it: the fact is read and written meanwhile, and every answer is the same before, in between and afterwards. Rows that come
//! later are stored as usual, until so many have come that it is worth it again.

mod known;
mod order;
#[cfg(test)]
mod tests;

use crate::catalog::{Contents, Table};
use crate::error::SqlError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use eris_engine::{Engine, KeyOrder};
use eris_fragment::{Executor, Expr, Fragment, FragmentError, Output};
use eris_types::{ColumnId, ObjectId};
use futures::TryStreamExt;
use known::Known;
use order::Ordered;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Rows of a fact that make it worth the while.
const WORTH_ROWS: u64 = 1 << 20;
/// The fact has so many times the rows of the other table, at least.
const LARGER: u64 = 4;

/// A column of a fact that a table's key has been joined to, or that refers to it.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub fact: ObjectId,
    pub column: usize,
    pub dimension: Arc<Table>,
    pub key: usize,
    pub sizes: Sizes,
}

/// How large the tables of a join are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub fact_rows: u64,
    pub dimension_rows: u64,
}

/// A data object and its column.
type Place = (ObjectId, usize);

/// The joins that have been seen, and what has become of them.
#[derive(Debug)]
pub(crate) struct Recodings {
    engine: Engine,
    worth_rows: u64,
    known: Mutex<HashMap<Place, Known>>,
    /// Columns that are being stored anew.
    under_way: watch::Sender<usize>,
}

/// What has become of a column.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The keys have an order already in which all lies together, or none at all.
    AsItIs,
    /// It is stored by the order of these attributes, the coarsest first, and then of the key.
    Stored(Vec<String>),
}

/// A column that tables are joined by, for those who look.
#[derive(Clone, Debug)]
pub(crate) struct Recoding {
    pub fact: ObjectId,
    pub column: usize,
    pub dimension: Arc<Table>,
    pub key: usize,
    pub under_way: bool,
    pub outcome: Option<Outcome>,
}

impl Recodings {
    pub fn new(engine: Engine) -> Self {
        Recodings {
            engine,
            worth_rows: WORTH_ROWS,
            known: Mutex::default(),
            under_way: watch::Sender::new(0),
        }
    }

    /// The same for facts of so many rows.
    #[cfg(test)]
    pub fn worth(self, rows: u64) -> Self {
        Recodings {
            worth_rows: rows,
            ..self
        }
    }

    /// Every entry is complete whenever the lock is let go.
    fn known(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A join has been executed: begins with the work if it is worth it, in the background.
    pub fn saw(self: &Arc<Self>, join: Join) {
        let mut known = self.known();
        let place = (join.fact, join.column);
        let entry = known.get_mut(&place);
        match entry {
            Some(entry) if !entry.gives_way(&join) => return,
            Some(entry) => entry.is_seen(&join),
            None => {
                // Tables that are no more are forgotten on such occasions.
                known.retain(|(object, _), _| self.engine.statistics(*object).is_ok());
                known.insert(place, Known::new(&join));
            }
        }
        drop(known);
        self.begin_if_due(join);
    }

    /// Rows of a table have come or gone: begins with what is worth it then, for its foreign keys, for its columns that joins
    /// have been seen of, and for columns of other tables that are joined to it.
    pub fn wrote(self: &Arc<Self>, table: &Arc<Table>, contents: &Contents) {
        let mut joins: Vec<(Place, Arc<Table>, usize)> = Vec::new();
        for (place, known) in self.known().iter() {
            if place.0 == table.object || known.dimension == table.object {
                joins.extend(
                    known
                        .table
                        .upgrade()
                        .map(|other| (*place, other, known.key)),
                );
            }
        }
        for (column, other, key) in table.references(contents) {
            let place = (table.object, column);
            if !joins.iter().any(|(known, ..)| *known == place) {
                joins.push((place, other, key));
            }
        }
        for ((fact, column), dimension, key) in joins {
            // Whose table is gone by now is of no interest.
            let Ok(sizes) = self.sizes(fact, dimension.object) else {
                continue;
            };
            self.begin_if_due(Join {
                fact,
                column,
                dimension,
                key,
                sizes,
            });
        }
    }

    /// How large two tables are now.
    ///
    /// # Errors
    /// One of them is gone.
    pub fn sizes(&self, fact: ObjectId, dimension: ObjectId) -> Result<Sizes, SqlError> {
        Ok(Sizes {
            fact_rows: self.engine.statistics(fact)?.rows,
            dimension_rows: self.engine.statistics(dimension)?.rows,
        })
    }

    fn begin_if_due(self: &Arc<Self>, join: Join) {
        let Sizes {
            fact_rows,
            dimension_rows,
        } = join.sizes;
        if fact_rows < self.worth_rows || dimension_rows * LARGER > fact_rows {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let Some(begun) = self.begin(&join, Known::is_due) else {
            return;
        };
        runtime.spawn(async move {
            // Nobody waits for it: what cannot be done, for want of memory or of the table, is left.
            let _ = begun.run(&join).await;
        });
    }

    /// Notes that the work on a column begins, if it is to: what is known of it decides.
    fn begin(
        self: &Arc<Self>,
        join: &Join,
        is_to: impl FnOnce(&Known, &Join) -> bool,
    ) -> Option<Begun> {
        let place = (join.fact, join.column);
        let mut known = self.known();
        let entry = known.entry(place);
        let entry = entry.or_insert_with(|| Known::new(join));
        if !is_to(entry, join) {
            return None;
        }
        entry.begins(join);
        self.under_way.send_modify(|count| *count += 1);
        Some(Begun {
            recodings: Arc::clone(self),
            place,
            outcome: None,
        })
    }

    /// The tables that columns of a fact have been joined to: the column, the other table and its key.
    pub fn joins_of(&self, fact: ObjectId) -> Vec<(usize, Arc<Table>, usize)> {
        let known = self.known();
        let joins = known.iter().filter(|((object, _), _)| *object == fact);
        let joins = joins
            .filter_map(|((_, column), known)| Some((*column, known.table.upgrade()?, known.key)));
        joins.collect()
    }

    /// All that is known, without tables that are gone.
    pub fn all(&self) -> Vec<Recoding> {
        let known = self.known();
        let all = known.iter().filter_map(|((fact, column), known)| {
            Some(Recoding {
                fact: *fact,
                column: *column,
                dimension: known.table.upgrade()?,
                key: known.key,
                under_way: known.under_way > 0,
                outcome: known.outcome.clone(),
            })
        });
        all.collect()
    }

    /// Waits until nothing is being stored anew.
    pub async fn settled(&self) {
        let mut under_way = self.under_way.subscribe();
        let settled = under_way.wait_for(|count| *count == 0).await;
        settled.expect("the sender is here");
    }

    /// Stores the fact's column by the order of the other table's rows, and waits until that is done.
    ///
    /// # Errors
    /// Memory is exhausted, or a table is gone.
    pub async fn recode(self: &Arc<Self>, join: &Join) -> Result<(), SqlError> {
        let begun = self.begin(join, |_, _| true);
        begun.expect("it is to").run(join).await
    }
}

/// Work on a column; the end of it is noted however it ends.
struct Begun {
    recodings: Arc<Recodings>,
    place: Place,
    outcome: Option<Outcome>,
}

impl Begun {
    async fn run(mut self, join: &Join) -> Result<(), SqlError> {
        self.outcome = Some(self.recodings.try_recode(join).await?);
        Ok(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(known) = self.recodings.known().get_mut(&self.place) {
            known.ends(self.outcome.take());
        }
        self.recodings.under_way.send_modify(|count| *count -= 1);
    }
}

impl Recodings {
    async fn try_recode(&self, join: &Join) -> Result<Outcome, SqlError> {
        let rows = self.read(join).await?;
        let key = join.key;
        let names = join.dimension.row_order.iter();
        let declared = names.filter_map(|name| join.dimension.schema.index_of(name).ok());
        let declared: Vec<usize> = declared.collect();
        let order = tokio::task::spawn_blocking(move || order::of(&rows, key, &declared)).await;
        let order = order.map_err(|error| DataFusionError::External(Box::new(error)));
        let Some(Ordered { keys, attributes }) = order.map_err(SqlError::from_datafusion)? else {
            return Ok(Outcome::AsItIs);
        };
        let Some(order) = KeyOrder::new(keys) else {
            return Ok(Outcome::AsItIs);
        };
        let budget = self.engine.memory().budget();
        let order = order
            .accounted(budget)
            .map_err(|error| FragmentError::OutOfMemory(error.to_string()))?;
        let column = ColumnId(join.column as u32);
        let recoded = self.engine.recode(join.fact, column, Arc::new(order));
        recoded.await?;
        let name = |&column: &usize| join.dimension.schema.field(column).name().clone();
        Ok(Outcome::Stored(attributes.iter().map(name).collect()))
    }

    /// The columns of the other table by which its rows may be put in order, its key among them.
    async fn read(&self, join: &Join) -> Result<Vec<RecordBatch>, SqlError> {
        let columns = 0..join.dimension.types.len();
        // Let go of when they are read: what comes then takes a while, and is none of theirs.
        let snapshot = self.engine.hold();
        let fragment = Fragment {
            object: join.dimension.object,
            snapshot: snapshot.at(),
            columns: columns
                .clone()
                .map(|column| ColumnId(column as u32))
                .collect(),
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: columns.map(Expr::Column).collect(),
                limit: None,
            },
            order: None,
        };
        let mut execution = self.engine.execute(Arc::new(fragment), 1)?;
        let lane = execution.lanes.pop().expect("one was asked for");
        Ok(lane.try_collect().await?)
    }
}
