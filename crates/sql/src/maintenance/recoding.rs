//! Columns that tables are joined by, stored by the order of the other table's rows: a condition on that one becomes a
//! range.
//!
//! ```text
//! a star join has been executed ── saw ───▶┐ worth it, not done yet? ──▶ the dimension is read · its keys are ordered
//! rows of a table have come ────── wrote ─▶┘                             the fact's column is stored by that order
//! CALL eris.recode('t') ─────────────────────────────────────────────────▶
//! ```
//!
//! Foreign keys are joins that will be: columns with one are stored so once a table has enough rows, before anybody has
//! asked.
//!
//! Nothing waits for it: the fact is read and written meanwhile, and every answer is the same before, in between and
//! afterwards. Rows that come later are stored as usual, until so many have come that it is worth it again: then keys
//! that have come since get places at the order's end, and only what is not stored by it is. When the other table has
//! become another one, all is done anew.
//!
//! Which order, when, and what it saves: docs/decisions/0017.

mod known;
mod order;
#[cfg(test)]
mod tests;

use crate::catalog::{Contents, Table};
use crate::error::SqlError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use eris_atomics::{Lock, LockGuard};
use eris_fragment::{Expr, Fragment, FragmentError, Output, ScanOptions};
use eris_home::{Home, KeyOrder, KeyOrders, OutOfMemory, WeakKeyOrder};
use eris_numa::Reservation;
use eris_types::{ColumnId, ObjectId};
use futures::TryStreamExt;
use known::{Due, KnownJoin};
use order::Ordered;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

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
    /// Those that could be stored by an order of keys, and are not.
    pub late_rows: u64,
    pub dimension_rows: u64,
}

/// A data object and its column.
type JoinColumn = (ObjectId, usize);

/// The joins that have been seen, and what has become of them.
#[derive(Debug)]
pub(crate) struct Recodings {
    home: Arc<dyn Home>,
    worth_rows: u64,
    known: Lock<HashMap<JoinColumn, KnownJoin>>,
    /// Columns that are being stored anew, or wait for it.
    under_way: watch::Sender<usize>,
    permits: Semaphore,
}

/// What has become of a column.
#[derive(Clone, Debug)]
pub(crate) enum RecodingOutcome {
    /// The keys have an order already in which all lies together, or none at all.
    AsItIs,
    /// It is stored by an order.
    Stored(Stored),
}

/// The order that a column is stored by.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The other table's columns by which its keys were ordered, the coarsest first, and then by themselves.
    pub attributes: Vec<String>,
    /// As long as something is stored by it.
    pub order: WeakKeyOrder,
}

/// A column that tables are joined by, for those who look.
#[derive(Clone, Debug)]
pub(crate) struct Recoding {
    pub fact: ObjectId,
    pub column: usize,
    pub dimension: Arc<Table>,
    pub key: usize,
    pub under_way: bool,
    pub outcome: Option<RecodingOutcome>,
}

impl Recodings {
    pub fn new(home: Arc<dyn Home>) -> Self {
        Recodings {
            home,
            worth_rows: WORTH_ROWS,
            known: Lock::default(),
            under_way: watch::Sender::new(0),
            permits: Semaphore::new(1),
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

    fn known(&self) -> LockGuard<'_, HashMap<JoinColumn, KnownJoin>> {
        self.known.lock()
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
                known.retain(|(object, _), _| self.home.statistics(*object).is_ok());
                known.insert(place, KnownJoin::new(&join));
            }
        }
        drop(known);
        self.begin_if_due(join);
    }

    /// Rows of a table have come or gone: begins with what is worth it then, for its foreign keys, for its columns that
    /// joins have been seen of, and for columns of other tables that are joined to it.
    pub fn wrote(self: &Arc<Self>, table: &Arc<Table>, contents: &Contents) {
        let mut joins: Vec<(JoinColumn, Arc<Table>, usize)> = Vec::new();
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
            let Ok(sizes) = self.sizes((fact, column), dimension.object) else {
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

    /// How large two tables are now, of which the one is joined by a column.
    ///
    /// # Errors
    /// One of them is gone.
    pub fn sizes(&self, place: JoinColumn, dimension: ObjectId) -> Result<Sizes, SqlError> {
        let fact = self.home.statistics(place.0)?;
        Ok(Sizes {
            fact_rows: fact.rows,
            late_rows: fact.unordered(place.1),
            dimension_rows: self.home.statistics(dimension)?.rows,
        })
    }

    fn begin_if_due(self: &Arc<Self>, join: Join) {
        let Sizes {
            fact_rows,
            dimension_rows,
            ..
        } = join.sizes;
        if fact_rows < self.worth_rows || dimension_rows * LARGER > fact_rows {
            return;
        }
        if self.home.key_orders().is_none() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let Some(begun) = self.begin(&join, KnownJoin::due) else {
            return;
        };
        runtime.spawn(async move {
            // Nobody waits for it: what cannot be done, for want of memory or of the table, is left.
            let place = (join.fact, join.column);
            let recodings = Arc::clone(&begun.recodings);
            // Rows may have come behind the owners' backs meanwhile, and whoever brought them has found this under way.
            if begun.run(&join).await.is_ok()
                && let Ok(sizes) = recodings.sizes(place, join.dimension.object)
            {
                recodings.begin_if_due(Join { sizes, ..join });
            }
        });
    }

    /// Notes that the work on a column begins, if something is to be done: what is known of it decides.
    fn begin(
        self: &Arc<Self>,
        join: &Join,
        decide: impl FnOnce(&mut KnownJoin, &Join) -> Option<Due>,
    ) -> Option<RunningRecoding> {
        let place = (join.fact, join.column);
        let mut known = self.known();
        let entry = known.entry(place);
        let entry = entry.or_insert_with(|| KnownJoin::new(join));
        let due = decide(entry, join)?;
        entry.begins(join, &due);
        self.under_way.send_modify(|count| *count += 1);
        Some(RunningRecoding {
            recodings: Arc::clone(self),
            place,
            due,
            done: None,
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
    pub async fn finished(&self) {
        let mut under_way = self.under_way.subscribe();
        let finished = under_way.wait_for(|count| *count == 0).await;
        finished.expect("the sender is here");
    }

    /// Stores the fact's column by the order of the other table's rows, and waits until that is done.
    ///
    /// # Errors
    /// Memory is exhausted, or a table is gone.
    pub async fn recode(self: &Arc<Self>, join: &Join) -> Result<(), SqlError> {
        let begun = self.begin(join, |_, _| Some(Due::Anew));
        begun.expect("it is to be done").run(join).await
    }
}

/// Work on a column; the end of it is noted however it ends.
struct RunningRecoding {
    recodings: Arc<Recodings>,
    place: JoinColumn,
    due: Due,
    /// What has become of the column, and the rows of it that could not be stored by the order.
    done: Option<(RecodingOutcome, u64)>,
}

impl RunningRecoding {
    async fn run(mut self, join: &Join) -> Result<(), SqlError> {
        let recodings = &self.recodings;
        // One at a time: each reads the whole of a table.
        let permit = recodings.permits.acquire().await;
        let permit = permit.expect("it is never closed");
        let (outcome, left) = match &self.due {
            Due::Anew => recodings.store_anew(join).await?,
            Due::Late(attributes, order) => recodings.store_late(join, attributes, order).await?,
        };
        drop(permit);
        self.done = Some((outcome, left));
        Ok(())
    }
}

impl Drop for RunningRecoding {
    fn drop(&mut self) {
        if let Some(known) = self.recodings.known().get_mut(&self.place) {
            known.ends(self.done.take());
        }
        self.recodings.under_way.send_modify(|count| *count -= 1);
    }
}

impl Recodings {
    /// Stores a column by a new order. With the outcome, here and below, the rows that could not be stored.
    async fn store_anew(&self, join: &Join) -> Result<(RecodingOutcome, u64), SqlError> {
        let (rows, _reserved) = self.read(join, 0..join.dimension.types.len()).await?;
        let key = join.key;
        let names = join.dimension.row_order.iter();
        let declared = names.filter_map(|name| join.dimension.schema.index_of(name).ok());
        let declared: Vec<usize> = declared.collect();
        let Some(Ordered { keys, attributes }) =
            blocking(move || order::of(&rows, key, &declared)).await?
        else {
            return Ok((RecodingOutcome::AsItIs, 0));
        };
        let name = |&column: &usize| join.dimension.schema.field(column).name().clone();
        let attributes = attributes.iter().map(name).collect();
        match self.orders()?.order(keys).map_err(out_of_memory)? {
            Some(order) => self.store(join, attributes, order).await,
            None => Ok((RecodingOutcome::AsItIs, 0)),
        }
    }

    /// Stores by an order what is not stored by it yet. Keys that it does not have get places at its end, in the order
    /// of the same attributes.
    async fn store_late(
        &self,
        join: &Join,
        attributes: &[String],
        order: &KeyOrder,
    ) -> Result<(RecodingOutcome, u64), SqlError> {
        let names = attributes.iter();
        let columns = names.map(|name| join.dimension.schema.index_of(name).ok());
        let Some(columns) = columns.collect::<Option<Vec<usize>>>() else {
            // They are called otherwise by now.
            return self.store_anew(join).await;
        };
        let columns = std::iter::once(join.key).chain(columns);
        let (rows, _reserved) = self.read(join, columns).await?;
        let (home, known) = (Arc::clone(&self.home), order.clone());
        let extended = blocking(move || {
            let orders = orders(&*home)?;
            let Some(late) = order::late(&rows, |key| orders.has(&known, key)) else {
                return Ok::<_, SqlError>(None);
            };
            match late.is_empty() {
                true => Ok(Some(known)),
                false => Ok(orders.extended(&known, &late).map_err(out_of_memory)?),
            }
        });
        let Some(order) = extended.await?? else {
            return self.store_anew(join).await;
        };
        self.store(join, attributes.to_vec(), order).await
    }

    async fn store(
        &self,
        join: &Join,
        attributes: Vec<String>,
        order: KeyOrder,
    ) -> Result<(RecodingOutcome, u64), SqlError> {
        let column = ColumnId(join.column as u32);
        let stored = Stored {
            attributes,
            order: order.downgrade(),
        };
        let left = self.orders()?.recode(join.fact, column, order).await?;
        Ok((RecodingOutcome::Stored(stored), left))
    }

    fn orders(&self) -> Result<&dyn KeyOrders, SqlError> {
        orders(&*self.home)
    }

    /// Columns of the other table, in this order; and memory for them, and for as much again to order them.
    async fn read(
        &self,
        join: &Join,
        columns: impl Iterator<Item = usize>,
    ) -> Result<(Vec<RecordBatch>, Reservation), SqlError> {
        let columns: Vec<ColumnId> = columns.map(|column| ColumnId(column as u32)).collect();
        // Let go of when they are read: what comes then takes a while, and is none of theirs.
        let snapshot = self.home.hold();
        let fragment = Fragment {
            object: join.dimension.object,
            snapshot: snapshot.at(),
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: (0..columns.len()).map(Expr::Column).collect(),
                limit: None,
            },
            columns,
            order: None,
            options: ScanOptions::default(),
        };
        let mut execution = self.home.execute(Arc::new(fragment), 1)?;
        let mut stream = execution.streams.pop().expect("one was asked for");
        let reserved = self.home.budget().try_reserve(0);
        let mut reserved = reserved.map_err(out_of_memory)?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            let bytes = 2 * batch.get_array_memory_size() as u64;
            reserved.try_grow(bytes).map_err(out_of_memory)?;
            rows.push(batch);
        }
        Ok((rows, reserved))
    }
}

fn orders(home: &dyn Home) -> Result<&dyn KeyOrders, SqlError> {
    let orders = home.key_orders();
    orders.ok_or_else(|| SqlError::not_supported("storing columns by an order of keys"))
}

fn out_of_memory(error: OutOfMemory) -> SqlError {
    FragmentError::OutOfMemory(error.to_string()).into()
}

/// Computes something that may take a while.
async fn blocking<T: Send + 'static>(
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SqlError> {
    let computed = tokio::task::spawn_blocking(compute).await;
    let computed = computed.map_err(|error| DataFusionError::External(Box::new(error)));
    computed.map_err(SqlError::from_datafusion)
}
