//! Rows of a table by its key, for programs: batches in, batches out, and no SQL in between.

mod alone;

use crate::cancel::{CancelToken, STATEMENT};
use crate::catalog::{Contents, Table, TableOrView};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::query::Task;
use crate::session::database::Database;
use crate::session::{Canceller, Session};
use crate::write::coerce::Target;
use crate::write::locks::SharedLocks;
use crate::write::references::{Affected, Effect, Parents};
use crate::write::row_rules::RowRules;
use crate::write::targets;
use crate::write::unique_keys::UniqueKeys;
use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use eris_home::{Found, KeyBounds, Newest, RowClient};
use eris_types::{ColumnId, RowId};
use futures::future::BoxFuture;
use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::ops::Bound;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// A way to the rows of one table with a PRIMARY KEY. Made by [`Session::rows`](crate::Session::rows).
///
/// Keys are given as one array per column of the key, in its order; values of other types are cast if they fit. What is
/// read is at one snapshot, what is written is all visible at once or not at all, and keeps the table's rules.
///
/// ```
/// # use eris_sql::Database;
/// # use eris_engine::Settings;
/// # use eris_numa::{HugePages, Topology};
/// # use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
/// # use datafusion::arrow::datatypes::Int64Type;
/// # use std::ops::Bound;
/// # use std::sync::Arc;
/// # let topology = Topology::fake(1, 2);
/// # let settings = Settings { topology, huge_pages: HugePages::Never, memory_limit: Some(256 << 20), database: None };
/// # let database = Database::open(eris_engine::Engine::home(settings)?)?;
/// # futures::executor::block_on(async {
/// let session = database.session();
/// session.execute("CREATE TABLE stock (item VARCHAR PRIMARY KEY, pieces BIGINT DEFAULT 0)").await?;
/// let mut stock = session.rows("stock")?;
///
/// let items = || Arc::new(StringArray::from(vec!["nail", "screw", "hammer"])) as ArrayRef;
/// let pieces = Arc::new(Int64Array::from(vec![500, 300, 2])) as ArrayRef;
/// stock.put(&RecordBatch::try_from_iter([("item", items()), ("pieces", pieces)]).unwrap()).await?;
///
/// let found = stock.get(&[items()], &["pieces"]).await?;
/// assert_eq!(found.of, [0, 1, 2]);
/// assert_eq!(found.rows.column(0).as_primitive::<Int64Type>().values(), &[500, 300, 2]);
///
/// // From a bound to a bound, in the order of the keys.
/// let bound = [Arc::new(StringArray::from(vec!["n"])) as ArrayRef];
/// let halves = [(Bound::Unbounded, Bound::Excluded(&bound[..])), (Bound::Included(&bound[..]), Bound::Unbounded)];
/// let found = stock.ranges(&halves, 10, &["pieces"]).await?;
/// assert_eq!(found[0].column(0).as_primitive::<Int64Type>().values(), &[2]);
/// assert_eq!(found[1].column(0).as_primitive::<Int64Type>().values(), &[500, 300]);
/// # Ok::<(), eris_sql::SqlError>(())
/// # })?;
/// # Ok::<(), eris_sql::SqlError>(())
/// ```
pub struct TableRows {
    database: Database,
    context: StatementContext,
    table: Arc<Table>,
    uniques: UniqueKeys,
    /// None where the home has no way to single rows.
    rows: Option<Box<dyn RowClient>>,
    /// Of the next call, if somebody may cancel it.
    next: Option<CancelToken>,
    /// The contents of the catalogue in which it was last seen that the table is what its name leads to.
    seen: Weak<Contents>,
}

impl Session {
    /// A way to the rows of a table by its PRIMARY KEY, for programs that need no SQL. The name is as it is stored,
    /// perhaps with its schema and a point before it.
    ///
    /// # Errors
    /// There is no such table, or it has no key.
    pub fn rows(&self, table: &str) -> Result<TableRows, SqlError> {
        let context = self.context();
        TableRows::new(self.database().clone(), context, table)
    }
}

/// The right to write to a table beside others.
struct SharedRight {
    held: Arc<dyn Any + Send + Sync>,
    affected: Affected,
}

/// How often somebody else may come in between before a change of several data objects waits for the
/// write lock alone.
const TRIES: usize = 3;

impl TableRows {
    pub(crate) fn new(
        database: Database,
        context: StatementContext,
        table: &str,
    ) -> Result<Self, SqlError> {
        let name = match table.split_once('.') {
            Some((schema, name)) => context.name_in(Some(schema), name),
            None => context.name_in(None, table),
        };
        let table = match context.catalog.contents().get(&name) {
            Some(TableOrView::Table(table)) => Arc::clone(table),
            Some(TableOrView::View(_)) => {
                return Err(SqlError::invalid(
                    Mistake::WrongObjectType,
                    format!("\"{name}\" is a view: only tables have rows by a key"),
                ));
            }
            None => {
                return Err(SqlError::invalid(
                    Mistake::UndefinedTable,
                    format!("there is no table \"{name}\""),
                ));
            }
        };
        if table.key.is_none() {
            return Err(SqlError::invalid(
                Mistake::WrongObjectType,
                format!("table \"{name}\" has no PRIMARY KEY"),
            )
            .with_hint(Some("CREATE TABLE … (…, PRIMARY KEY (…))")));
        }
        let rows = context.home.single_rows();
        let rows = rows.map(|rows| rows.client(table.object)).transpose()?;
        Ok(TableRows {
            database,
            context,
            uniques: UniqueKeys::of(&table),
            table,
            rows,
            next: None,
            seen: Weak::new(),
        })
    }

    /// The table's columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.table.schema
    }

    /// The names of the key's columns, in its order.
    pub fn key(&self) -> &[String] {
        self.table.key.as_ref().map_or(&[], |key| &key.columns)
    }

    /// Cancels the next call from elsewhere, and tells whether that came in time. The call begins now, and may take as
    /// long as a statement of the session.
    pub fn canceller(&mut self) -> Canceller {
        let token = CancelToken::new(self.context.session.variables().statement_timeout);
        self.next = Some(token.clone());
        Canceller::new(token)
    }

    /// What the next call is stopped by.
    fn token(&mut self) -> CancelToken {
        let token = self.next.take();
        token
            .unwrap_or_else(|| CancelToken::new(self.context.session.variables().statement_timeout))
    }

    /// The rows that have keys: these columns of them, in the order of the keys.
    ///
    /// # Errors
    /// There are no such columns, a value fits no key, the table was changed or dropped, or the call was stopped.
    pub async fn get(&mut self, keys: &[ArrayRef], columns: &[&str]) -> Result<Found, SqlError> {
        let (token, runtime) = (self.token(), self.database.runtime().clone());
        let found = async {
            self.check_current()?;
            let (keys, columns) = (self.keys(keys)?, self.columns(columns)?);
            self.find(&keys, columns, Newest::Visible).await
        };
        token.guard_anywhere(&runtime, found).await
    }

    async fn find(
        &mut self,
        keys: &[ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> Result<Found, SqlError> {
        let home = &self.context.home;
        let found = match &mut self.rows {
            Some(rows) => rows.get(keys, columns, newest),
            None => home.lookup(self.table.object, keys, columns, newest),
        };
        Ok(found.await?)
    }

    /// The rows whose keys lie between two, at most `limit` of them, in the order of their keys. A bound is a whole
    /// key, in arrays of one value.
    ///
    /// # Errors
    /// As [`TableRows::get`].
    pub async fn range(
        &mut self,
        bounds: KeyBounds<'_>,
        limit: usize,
        columns: &[&str],
    ) -> Result<RecordBatch, SqlError> {
        let mut rows = self.ranges(&[bounds], limit, columns).await?;
        Ok(rows.pop().expect("as many answers as ranges"))
    }

    /// The same for many ranges at one snapshot: a batch for each, at most `limit` rows of each.
    ///
    /// # Errors
    /// As [`TableRows::get`].
    pub async fn ranges(
        &mut self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        columns: &[&str],
    ) -> Result<Vec<RecordBatch>, SqlError> {
        let (token, runtime) = (self.token(), self.database.runtime().clone());
        let found = async {
            self.check_current()?;
            let columns = self.columns(columns)?;
            let ranges = ranges.iter();
            let ranges = ranges.map(|(from, to)| Ok((self.bound(*from)?, self.bound(*to)?)));
            let ranges = ranges.collect::<Result<Vec<_>, SqlError>>()?;
            let ranges: Vec<KeyBounds<'_>> = (ranges.iter())
                .map(|(from, to)| {
                    let from = from.as_ref().map(Vec::as_slice);
                    (from, to.as_ref().map(Vec::as_slice))
                })
                .collect();
            let rows = self.rows.as_mut();
            let rows =
                rows.ok_or_else(|| SqlError::not_supported("ranges of keys where this table is"))?;
            Ok(rows.ranges(&ranges, limit, columns).await?)
        };
        token.guard_anywhere(&runtime, found).await
    }

    /// Puts rows in; each replaces the row that has its key, if there is one. Columns go by their names; one that is
    /// missing gets its default. Returns how many were replaced.
    ///
    /// # Errors
    /// A rule of the table does not hold, a value does not fit its column, two rows have the same key, there is no
    /// memory, or the table was changed or dropped.
    pub fn put<'a>(&'a mut self, rows: &'a RecordBatch) -> BoxFuture<'a, Result<u64, SqlError>> {
        // Boxed here, so that its code is made in this crate, not in each that calls it.
        Box::pin(async move {
            let (token, runtime) = (self.token(), self.database.runtime().clone());
            let put = self.put_rows(rows, &token);
            token.guard_anywhere(&runtime, put).await
        })
    }

    async fn put_rows(&mut self, rows: &RecordBatch, token: &CancelToken) -> Result<u64, SqlError> {
        let effect = Effect {
            adds: true,
            sets: self.others(),
            ..Effect::default()
        };
        let shared = self.shared(&effect).await?;
        let (context, table) = (self.context.clone(), Arc::clone(&self.table));
        let names = rows.schema();
        let names = names.fields().iter().map(|field| {
            table
                .schema
                .index_of(field.name())
                .map_err(|_| no_column(&table, field.name()))
        });
        let given = names.collect::<Result<Vec<_>, _>>()?;
        let targets: Vec<Target> = targets::targets(&context, &table, &given)?;
        let rows = RowRules::new(&context, &table)?.apply(&table, rows, &targets, 1)?;
        let wrong = |error| table.write_error(error);
        let given_rows = rows.num_rows() as u64;
        let keys: Vec<ArrayRef> = (self.key().iter())
            .map(|name| rows.column_by_name(name).expect("a key is of the table"))
            .cloned()
            .collect();
        if let Some(SharedRight { held, affected }) = shared
            && Parents::new(&table, &affected.outgoing)?
                .are_there(&context, &rows)
                .await?
        {
            let replaced = match self.rows.as_mut().filter(|_| self.uniques.is_empty()) {
                Some(client) => {
                    poll_fn(|cx| client.poll_write_lock(cx)).await;
                    token.begin_commit()?;
                    Some(client.put(rows.clone(), held).await.map_err(wrong)?)
                }
                None => self.change_together(&keys, Some(&rows), token).await?,
            };
            if let Some(replaced) = replaced {
                context.wrote(&table, given_rows);
                return Ok(replaced);
            }
        }
        self.change_alone(effect, keys, Some(rows), token).await
    }

    /// Removes the rows that have keys; returns how many there were.
    ///
    /// # Errors
    /// As [`TableRows::get`]; or a row of another table refers to one of them.
    pub fn remove<'a>(&'a mut self, keys: &'a [ArrayRef]) -> BoxFuture<'a, Result<u64, SqlError>> {
        Box::pin(async move {
            let (token, runtime) = (self.token(), self.database.runtime().clone());
            let removed = self.remove_rows(keys, &token);
            token.guard_anywhere(&runtime, removed).await
        })
    }

    async fn remove_rows(
        &mut self,
        keys: &[ArrayRef],
        token: &CancelToken,
    ) -> Result<u64, SqlError> {
        let effect = Effect::ending();
        let shared = self.shared(&effect).await?;
        let keys = self.keys(keys)?;
        if let Some(SharedRight { held, .. }) = shared {
            if let Some(client) = self.rows.as_mut().filter(|_| self.uniques.is_empty()) {
                poll_fn(|cx| client.poll_write_lock(cx)).await;
                token.begin_commit()?;
                let removed = client.remove(&keys, held).await;
                return removed.map_err(|error| self.table.write_error(error));
            }
            if let Some(removed) = self.change_together(&keys, None, token).await? {
                return Ok(removed);
            }
        }
        self.change_alone(effect, keys, None, token).await
    }

    /// Replaces or removes the rows that have keys, and the keys of UNIQUE constraints with them; how many there were.
    /// `None`: nothing was written, for a new row has the key of another one, or others come in between.
    async fn change_together(
        &mut self,
        keys: &[ArrayRef],
        new: Option<&RecordBatch>,
        token: &CancelToken,
    ) -> Result<Option<u64>, SqlError> {
        let reads: Arc<[ColumnId]> = self.uniques.reads().collect();
        for _ in 0..TRIES {
            let found = self.find(keys, Arc::clone(&reads), Newest::Applied).await?;
            let Some(rows) = self.context.home.single_rows() else {
                return Ok(None);
            };
            let mut changes = rows.changes()?;
            changes.replace(self.table.object, &found, new.cloned())?;
            for key in self.uniques.changes(Some(&found.rows), new)? {
                key.add_to(&mut *changes)?;
            }
            changes.wait_for_write_locks().await;
            token.begin_commit()?;
            let done = changes.commit().await;
            if done.map_err(|error| self.table.write_error(error))? {
                // A key that is named twice has one row.
                let ended: HashSet<RowId> = found.row_ids().collect();
                return Ok(Some(ended.len() as u64));
            }
            token.end_commit();
        }
        Ok(None)
    }

    /// The same under the exclusive write lock, on the database's threads.
    async fn change_alone(
        &mut self,
        effect: Effect,
        keys: Vec<ArrayRef>,
        new: Option<RecordBatch>,
        token: &CancelToken,
    ) -> Result<u64, SqlError> {
        let change = alone::change(
            self.context.clone(),
            Arc::clone(&self.table),
            effect,
            keys,
            new,
        );
        let (reply, done) = oneshot::channel();
        let token = token.clone();
        let work = STATEMENT.scope(token.clone(), async move {
            // Nobody is waiting if this fails.
            let _ = reply.send(change.await);
        });
        let mut task = Task::new(self.database.runtime().spawn(work), token);
        match done.await {
            Ok(done) => done,
            Err(_) => Err(task.failure().await.unwrap_or_else(|| self.changed())),
        }
    }

    /// The right to write to the table beside others, as long as it is what its name leads to. `None`: what a write
    /// with this effect may break needs the table alone.
    async fn shared(&mut self, effect: &Effect) -> Result<Option<SharedRight>, SqlError> {
        loop {
            let contents = self.check_current()?;
            let affected = effect.affected(&self.table, &contents);
            let Some(locks) = SharedLocks::of(&self.context, &self.table, &affected)? else {
                return Ok(None);
            };
            let held = locks.hold().await;
            // They may have changed while this waited.
            if Arc::ptr_eq(&contents, &self.context.catalog.look()) {
                if !affected.is_empty() {
                    self.context.home.settle().await;
                }
                return Ok(Some(SharedRight { held, affected }));
            }
        }
    }

    /// The contents of the catalogue, in which the table is what its name leads to. If that is another one of the same
    /// form, this goes on with it: whoever empties a table has a new one.
    ///
    /// # Errors
    /// It was dropped, or has other columns or another key.
    fn check_current(&mut self) -> Result<Arc<Contents>, SqlError> {
        let contents = self.context.catalog.contents();
        // Nearly always nothing has changed, and nothing is looked up.
        if self.seen.as_ptr() == Arc::as_ptr(&contents) {
            return Ok(contents);
        }
        match contents.get(&self.table.name) {
            Some(TableOrView::Table(now)) if Arc::ptr_eq(now, &self.table) => {}
            Some(TableOrView::Table(now)) if self.has_the_form_of(now) => {
                self.table = Arc::clone(now);
                self.uniques = UniqueKeys::of(now);
                let rows = self.context.home.single_rows();
                self.rows = rows.map(|rows| rows.client(now.object)).transpose()?;
            }
            _ => return Err(self.changed()),
        }
        self.seen = Arc::downgrade(&contents);
        Ok(contents)
    }

    /// Whether a table has the same columns and the same key, so that calls mean the same. It may be empty now, or have
    /// other rules and indexes.
    fn has_the_form_of(&self, now: &Table) -> bool {
        let columns = now.key.as_ref().map(|key| &key.columns);
        now.schema == self.table.schema && columns.is_some_and(|columns| columns == self.key())
    }

    fn changed(&self) -> SqlError {
        changed(&self.table)
    }

    /// The columns that are not of the key.
    fn others(&self) -> Vec<String> {
        let names = self.table.column_names().map(str::to_owned);
        names.filter(|name| !self.key().contains(name)).collect()
    }

    fn keys(&self, keys: &[ArrayRef]) -> Result<Vec<ArrayRef>, SqlError> {
        let names = self.key();
        let rows = keys.first().map_or(0, |column| column.len());
        if keys.len() != names.len() || keys.iter().any(|column| column.len() != rows) {
            return Err(SqlError::invalid(
                Mistake::DatatypeMismatch,
                format!(
                    "table \"{}\": a key is ({}), one array of the same length for each",
                    self.table.name,
                    names.join(", ")
                ),
            ));
        }
        let cast = keys.iter().zip(names).map(|(column, name)| {
            let (_, field) = self
                .table
                .schema
                .fields()
                .find(name)
                .expect("a key is of the table");
            if column.data_type() == field.data_type() {
                return Ok(Arc::clone(column));
            }
            // No keys, or NULLs, which are none.
            if *column.data_type() == DataType::Null {
                return Ok(new_null_array(field.data_type(), column.len()));
            }
            let key = cast(column, field.data_type())?;
            let back = cast(&key, column.data_type())?;
            match back.as_ref() == column.as_ref() {
                true => Ok(key),
                false => Err(SqlError::invalid(
                    Mistake::DatatypeMismatch,
                    format!(
                        "table \"{}\": a value does not fit the key's column \"{name}\"",
                        self.table.name
                    ),
                )),
            }
        });
        cast.collect()
    }

    fn bound(&self, bound: Bound<&[ArrayRef]>) -> Result<Bound<Vec<ArrayRef>>, SqlError> {
        let is_one = |key: &[ArrayRef]| key.iter().all(|part| part.len() == 1 && part.is_valid(0));
        if let Bound::Included(key) | Bound::Excluded(key) = bound
            && !is_one(key)
        {
            return Err(SqlError::invalid(
                Mistake::InvalidParameterValue,
                format!(
                    "table \"{}\": a bound is one key, without NULL",
                    self.table.name
                ),
            ));
        }
        Ok(match bound {
            Bound::Included(key) => Bound::Included(self.keys(key)?),
            Bound::Excluded(key) => Bound::Excluded(self.keys(key)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    }

    fn columns(&self, names: &[&str]) -> Result<Arc<[ColumnId]>, SqlError> {
        let columns = names
            .iter()
            .map(|name| match self.table.schema.index_of(name) {
                Ok(position) => Ok(ColumnId(position as u32)),
                Err(_) => Err(no_column(&self.table, name)),
            });
        columns.collect()
    }
}

fn changed(table: &Table) -> SqlError {
    SqlError::invalid(
        Mistake::NotReady,
        format!("table \"{}\" was changed or dropped", table.name),
    )
    .with_hint(Some("ask the session for its rows again"))
}

fn no_column(table: &Table, name: &str) -> SqlError {
    SqlError::invalid(
        Mistake::UndefinedColumn,
        format!("table \"{}\" has no column \"{name}\"", table.name),
    )
}

impl fmt::Debug for TableRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableRows({})", self.table.name)
    }
}
