//! Columns that tables are joined by, stored by the order of the other table's rows: a condition on that one becomes a range.
//!
//! ```text
//! a star join has been executed ── saw ──▶ worth it, and not done yet? ──▶ the side's table is read · its keys are put in order
//! CALL eris.recode('t') ───────────────────────────────────────────────▶ engine: the fact's column is stored by that order
//! ```
//!
//! Nothing waits for it: the fact is read and written meanwhile, and every answer is the same before, in between and afterwards. Rows that come
//! later are stored as usual, until so many have come that it is worth it again.

mod order;

use crate::catalog::Table;
use crate::error::SqlError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use eris_engine::{Engine, HeldSnapshot, KeyOrder};
use eris_fragment::{Executor, Expr, Fragment, FragmentError, Output};
use eris_types::{ColumnId, ObjectId};
use futures::TryStreamExt;
use order::Ordered;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::runtime::Handle;

/// Rows of a fact that make it worth the while.
const WORTH_ROWS: u64 = 1 << 20;
/// The fact has so many times the rows of the other table, at least.
const LARGER: u64 = 4;
/// Another time when one of the tables has grown or shrunk by one row in so many.
const CHANGED: u64 = 8;

/// A column of a fact that a table's key has been joined to.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub fact: Arc<Table>,
    pub column: usize,
    pub fact_rows: u64,
    pub dimension: Arc<Table>,
    pub key: usize,
    pub dimension_rows: u64,
    /// At which the other table is read.
    pub snapshot: HeldSnapshot,
}

/// The joins that have been seen, and what has become of them.
#[derive(Debug)]
pub(crate) struct Recodings {
    engine: Engine,
    known: Mutex<HashMap<(ObjectId, usize), Known>>,
}

#[derive(Debug)]
struct Known {
    dimension: ObjectId,
    /// While it is a table.
    table: Weak<Table>,
    key: usize,
    dimension_rows: u64,
    fact_rows: u64,
    /// Not only remembered.
    begun: bool,
    under_way: bool,
    outcome: Option<Outcome>,
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
            known: Mutex::default(),
        }
    }

    /// Every entry is complete whenever the lock is let go.
    fn known(&self) -> MutexGuard<'_, HashMap<(ObjectId, usize), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A join has been executed: begins with the work if it is worth it, in the background.
    pub fn saw(self: &Arc<Self>, join: Join) {
        let worth = join.fact_rows >= WORTH_ROWS && join.dimension_rows * LARGER <= join.fact_rows;
        let runtime = Handle::try_current().ok().filter(|_| worth);
        let is_due = self.is_due(&join, runtime.is_some());
        let Some(runtime) = runtime.filter(|_| is_due) else {
            return;
        };
        let recodings = Arc::clone(self);
        runtime.spawn(async move {
            // Nobody waits for it: what cannot be done, for want of memory or of the table, is left.
            let _ = recodings.recode(&join).await;
        });
    }

    /// Whether nobody has done it for as many rows, or is about to; if so, the caller is, or else only remembers the join.
    fn is_due(&self, join: &Join, at_once: bool) -> bool {
        let mut known = self.known();
        let changed = |now: u64, then: u64| now.abs_diff(then) > then / CHANGED;
        let place = (join.fact.object, join.column);
        if let Some(known) = known.get(&place) {
            let same = known.dimension == join.dimension.object
                && !changed(join.fact_rows, known.fact_rows)
                && !changed(join.dimension_rows, known.dimension_rows);
            // A column that several tables are joined to is not stored by the one and the other in turns.
            let other = known.dimension != join.dimension.object && known.table.strong_count() > 0;
            let is_done = (same || other) && (known.begun || !at_once);
            if known.under_way || is_done {
                return false;
            }
        }
        let now = Known {
            dimension: join.dimension.object,
            table: Arc::downgrade(&join.dimension),
            key: join.key,
            dimension_rows: join.dimension_rows,
            fact_rows: join.fact_rows,
            begun: at_once,
            under_way: at_once,
            outcome: None,
        };
        known.insert(place, now);
        // Tables that are no more are forgotten on such occasions.
        known.retain(|(object, _), _| self.engine.statistics(*object).is_ok());
        true
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
                under_way: known.under_way,
                outcome: known.outcome.clone(),
            })
        });
        all.collect()
    }

    /// Stores the fact's column by the order of the other table's rows, and waits until that is done.
    ///
    /// # Errors
    /// Memory is exhausted, or a table is gone.
    pub async fn recode(&self, join: &Join) -> Result<(), SqlError> {
        let done = self.try_recode(join).await;
        let mut known = self.known();
        // Who asks for it by name need not have joined the tables.
        let known = known
            .entry((join.fact.object, join.column))
            .or_insert_with(|| Known {
                dimension: join.dimension.object,
                table: Arc::downgrade(&join.dimension),
                key: join.key,
                dimension_rows: join.dimension_rows,
                fact_rows: join.fact_rows,
                begun: done.is_ok(),
                under_way: false,
                outcome: None,
            });
        known.under_way = false;
        known.outcome = Some(done?);
        Ok(())
    }

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
        let object = join.fact.object;
        self.engine.recode(object, column, Arc::new(order)).await?;
        let name = |&column: &usize| join.dimension.schema.field(column).name().clone();
        Ok(Outcome::Stored(attributes.iter().map(name).collect()))
    }

    /// The columns of the other table by which its rows may be put in order, its key among them.
    async fn read(&self, join: &Join) -> Result<Vec<RecordBatch>, SqlError> {
        let columns = 0..join.dimension.types.len();
        let fragment = Fragment {
            object: join.dimension.object,
            snapshot: join.snapshot.at(),
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
