//! One execution of a write.

use super::super::NotShort;
use super::at_home::AtHome;
use super::{CellSource, Conflict, Program, Write, WriteAction, WriteResult};
use crate::cancel::CancelToken;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::functions::session_state;
use crate::write::coerce::Target;
use crate::write::row_rules::{ComputedDefault, RowRules};
use crate::write::table_writer::TableWriter;
use crate::write::targets;
use crate::write::unique_keys::KeyChange;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use eris_exact::scalar::to_column;
use eris_home::{Computed, HomeError, Newest, RowChanges, RowClient, SingleRows};
use eris_types::ColumnId;
use std::any::Any;
use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;

/// How often somebody else may come in between before the statement takes the general path.
const TRIES: usize = 16;

/// The same for a row that cannot be told from one whose values another row has by a UNIQUE constraint.
const REJECTED: usize = 3;

/// Why nothing was written.
pub(super) enum Stop {
    /// The statement has to go the general path, which also tells what is wrong with it.
    NotShort(NotShort),
    Error(SqlError),
}

type Tried<T> = Result<T, Stop>;

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Stop::Error(error)
    }
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        Stop::Error(error.into())
    }
}

impl From<HomeError> for Stop {
    fn from(error: HomeError) -> Self {
        Stop::Error(error.into())
    }
}

/// What a write works with.
pub(super) struct Execution<'a> {
    write: &'a Arc<Write>,
    context: &'a StatementContext,
    values: &'a Arc<[ScalarValue]>,
    token: &'a CancelToken,
    rules: Cow<'a, RowRules>,
    /// The locks of tables.
    held: Arc<dyn Any + Send + Sync>,
}

impl<'a> Execution<'a> {
    pub fn new(
        write: &'a Arc<Write>,
        context: &'a StatementContext,
        values: &'a Arc<[ScalarValue]>,
        token: &'a CancelToken,
        held: Arc<dyn Any + Send + Sync>,
    ) -> Tried<Self> {
        let rules = match &write.rules {
            Some(rules) => Cow::Borrowed(rules),
            None => Cow::Owned(general(RowRules::new(context, &write.table))?),
        };
        Ok(Execution {
            write,
            context,
            values,
            token,
            rules,
            held,
        })
    }

    pub async fn run(&self) -> Tried<WriteResult> {
        match &self.write.action {
            WriteAction::Insert {
                rows,
                computed,
                conflict,
            } => {
                if self.write.table.key.is_some() {
                    // Before a default takes a number of a sequence for nothing.
                    self.single_rows()?;
                }
                let new = self.new_rows(rows, computed)?;
                self.insert(new, conflict).await
            }
            WriteAction::Update(key, program) => {
                let key = self.key(key)?;
                let mut rows = self.rows()?;
                self.change(&mut *rows, &key, program, None).await
            }
            WriteAction::Delete(key, program) => {
                let key = self.key(key)?;
                self.delete(&key, program.as_ref()).await
            }
        }
    }

    async fn insert(&self, new: RecordBatch, conflict: &Conflict) -> Tried<WriteResult> {
        if let Conflict::Update(program) = conflict {
            let mut rows = self.rows()?;
            let key = self.key_of(&new);
            return self.change(&mut *rows, &key, program, Some(&new)).await;
        }
        let written = self.about_to_add(&new).await?;
        if self.write.table.key.is_none() {
            self.append(new).await?;
            return Ok(written);
        }
        let mut rows = self.rows()?;
        let keys = self.write.uniques.changes(None, Some(&new))?;
        if keys.is_empty() {
            self.begin_change(&mut *rows).await?;
            return match (
                self.committed(rows.insert(new, self.held()).await)?,
                conflict,
            ) {
                (true, _) => Ok(written),
                (false, Conflict::Nothing) => Ok(self.nothing()),
                (false, _) => Err(Stop::NotShort(NotShort::InTheWay)),
            };
        }
        let mut changes = self.single_rows()?.changes()?;
        changes.insert(self.write.table.object, new.clone())?;
        if self.commit_with(changes, keys).await? {
            return Ok(written);
        }
        // Which of the keys another row has decides.
        let key = self.key_of(&new);
        let found = rows.get(&key, Arc::default(), Newest::Applied).await?;
        match (found.of.is_empty(), conflict) {
            (false, Conflict::Nothing) => Ok(self.nothing()),
            _ => Err(Stop::NotShort(NotShort::InTheWay)),
        }
    }

    /// Adds rows to a table without a key.
    async fn append(&self, new: RecordBatch) -> Tried<()> {
        let table = &self.write.table;
        let mut writer = TableWriter::without_references(self.context, table)?;
        writer.append(new).await?;
        let wrong = |error| table.write_error(error);
        Ok(writer.commit(self.context, self.token, wrong).await?)
    }

    /// Commits the changes of a table, and of its constraints' keys with them.
    async fn commit_with(
        &self,
        mut changes: Box<dyn RowChanges>,
        keys: Vec<KeyChange>,
    ) -> Tried<bool> {
        for key in keys {
            key.add_to(&mut *changes)?;
        }
        changes.wait_for_write_locks().await;
        self.token.begin_commit()?;
        self.committed(changes.commit().await)
    }

    /// The statement can be stopped while it waits for the write lock, and no more after that.
    async fn begin_change(&self, rows: &mut dyn RowClient) -> Tried<()> {
        poll_fn(|cx| rows.poll_write_lock(cx)).await;
        Ok(self.token.begin_commit()?)
    }

    /// Has the program compute what becomes of the row with a key, or takes `new` if there is none.
    async fn change(
        &self,
        rows: &mut dyn RowClient,
        key: &[ArrayRef],
        program: &Program,
        new: Option<&RecordBatch>,
    ) -> Tried<WriteResult> {
        if let Some(written) = self.change_at_home(rows, key, new).await? {
            return Ok(written);
        }
        let reads: Arc<[ColumnId]> = (program.reads.iter().copied())
            .chain(self.write.uniques.reads())
            .collect();
        let mut rejected = 0;
        for _ in 0..TRIES {
            let found = rows.get(key, Arc::clone(&reads), Newest::Applied).await?;
            let old = (found.rows.num_rows() > 0).then(|| behind(&found.rows, program.reads.len()));
            let changed = match (found.rows.num_rows(), new) {
                (0, None) => return Ok(self.nothing()),
                (0, Some(new)) => new.clone(),
                (1, _) => {
                    let (rules, row) = (&self.rules, found.rows.columns());
                    let changed = (self.write).changed(program, rules, row, new, self.values);
                    match general(changed)? {
                        Some(changed) => changed,
                        None => return Ok(self.nothing()),
                    }
                }
                _ => return Err(Stop::NotShort(NotShort::InTheWay)),
            };
            let written = self.about_to_add(&changed).await?;
            let old = old.transpose()?;
            let keys = self.write.uniques.changes(old.as_ref(), Some(&changed))?;
            let done = if keys.is_empty() {
                self.begin_change(rows).await?;
                let put = rows.put_if_unchanged(&found, changed, self.held());
                self.committed(put.await)?
            } else {
                let mut changes = self.single_rows()?.changes()?;
                changes.replace(self.write.table.object, &found, Some(changed))?;
                rejected += 1;
                self.commit_with(changes, keys).await?
            };
            if done {
                return Ok(written);
            }
            self.token.end_commit();
            if rejected == REJECTED {
                break;
            }
        }
        Err(Stop::NotShort(NotShort::InTheWay))
    }

    /// The same by the row's owner. `None`: it cannot do that, or not now.
    async fn change_at_home(
        &self,
        rows: &mut dyn RowClient,
        key: &[ArrayRef],
        new: Option<&RecordBatch>,
    ) -> Tried<Option<WriteResult>> {
        if !self.write.is_at_home {
            return Ok(None);
        }
        let compute = Arc::new(AtHome {
            write: Arc::clone(self.write),
            values: Arc::clone(self.values),
            new: new.cloned(),
        });
        self.begin_change(rows).await?;
        let computed = rows.compute(key, compute, self.held()).await;
        Ok(match self.committed(computed)? {
            Computed::Put => Some(WriteResult {
                rows: 1,
                answer: None,
            }),
            Computed::Same => Some(self.nothing()),
            Computed::Rejected => {
                self.token.end_commit();
                None
            }
        })
    }

    async fn delete(&self, key: &[ArrayRef], program: Option<&Program>) -> Tried<WriteResult> {
        let mut rows = self.rows()?;
        let answer = self.write.answer.as_ref();
        let uniques = &self.write.uniques;
        if program.is_none() && answer.is_none() && uniques.is_empty() {
            self.begin_change(&mut *rows).await?;
            let rows = rows.remove(key, self.held()).await?;
            return Ok(WriteResult { rows, answer: None });
        }
        let of_program = program.map_or(&[][..], |program| &program.reads);
        let of_answer = answer.map_or(&[][..], |answer| &answer.reads);
        let mut reads: Vec<ColumnId> = [of_program, of_answer].concat();
        let answered = of_program.len()..reads.len();
        reads.extend(uniques.reads());
        let reads: Arc<[ColumnId]> = reads.into();
        for _ in 0..TRIES {
            let found = rows.get(key, Arc::clone(&reads), Newest::Applied).await?;
            if found.rows.num_rows() == 0 {
                return Ok(self.nothing());
            }
            if let Some(program) = program {
                let left = general(program.run(found.rows.columns(), None, self.values))?;
                if left.num_rows() == 0 {
                    return Ok(self.nothing());
                }
            }
            let said = answer.map(|answer| {
                let read: Vec<usize> = answered.clone().collect();
                answer.of_read(found.rows.project(&read)?)
            });
            let answer = general(said.transpose())?;
            let old = behind(&found.rows, answered.end)?;
            let keys = uniques.changes(Some(&old), None)?;
            let done = if keys.is_empty() {
                self.begin_change(&mut *rows).await?;
                rows.remove_if_unchanged(&found, self.held()).await?
            } else {
                let mut changes = self.single_rows()?.changes()?;
                changes.replace(self.write.table.object, &found, None)?;
                self.commit_with(changes, keys).await?
            };
            if done {
                return Ok(WriteResult { rows: 1, answer });
            }
            self.token.end_commit();
        }
        Err(Stop::NotShort(NotShort::InTheWay))
    }

    /// Rows are to be added that keep the table's rules: what will have been written then. What they refer to is there.
    async fn about_to_add(&self, rows: &RecordBatch) -> Tried<WriteResult> {
        let parents = &self.write.parents;
        if !parents.is_empty() && !parents.are_there(self.context, rows).await? {
            return Err(Stop::NotShort(NotShort::NoParent));
        }
        let answer = self.write.answer.as_ref().map(|answer| answer.of(rows));
        Ok(WriteResult {
            rows: rows.num_rows() as u64,
            answer: general(answer.transpose())?,
        })
    }

    /// What is written if no row is.
    fn nothing(&self) -> WriteResult {
        WriteResult {
            rows: 0,
            answer: None,
        }
    }

    /// The rows to be inserted.
    fn new_rows(
        &self,
        cells: &'a [CellSource],
        computed: &[(usize, Option<ComputedDefault>)],
    ) -> Tried<RecordBatch> {
        let table = &self.write.table;
        let width = table.types.len();
        let value = |cell: &'a CellSource| match cell {
            CellSource::Operand(operand) => &self.values[*operand],
            CellSource::Constant(value) => value,
        };
        let columns = (0..width).map(|column| {
            if cells.len() == width {
                return value(&cells[column]).to_array();
            }
            let of_column = cells.iter().skip(column).step_by(width);
            to_column(of_column.map(|cell| value(cell).clone()).collect())
        });
        let columns = general(columns.collect::<Result<Vec<_>, _>>())?;
        let schema = Arc::clone(&table.unruled);
        let options = RecordBatchOptions::new().with_row_count(Some(cells.len() / width));
        let rows = general(RecordBatch::try_new_with_options(schema, columns, &options))?;
        let mut targets: Vec<Target> = (0..width).map(Target::Source).collect();
        let needs_state = computed.iter().any(|(_, default)| default.is_none());
        let state = needs_state.then(|| session_state(self.context));
        for (column, default) in computed {
            targets[*column] = match (default, &state) {
                (None, Some(state)) => general(targets::default_target(state, table, *column))?,
                (default, _) => Target::Computed(default.clone().expect("it needs no state")),
            };
        }
        general(self.rules.apply(table, &rows, &targets, 1))
    }

    /// The arrays of a key. That a part of it is NULL, so that no row has it, is rare enough.
    fn key(&self, operands: &[usize]) -> Tried<Vec<ArrayRef>> {
        let parts = operands.iter().map(|&operand| &self.values[operand]);
        let parts = parts.map(|value| match value.is_null() {
            true => Err(Stop::NotShort(NotShort::NullKey)),
            false => general(value.to_array()),
        });
        parts.collect()
    }

    /// The keys of rows.
    fn key_of(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        let table = &self.write.table;
        let names = table.key.iter().flat_map(|key| &key.columns);
        let columns = names.map(|name| rows.column_by_name(name).expect("a key is of the table"));
        columns.cloned().collect()
    }

    fn rows(&self) -> Tried<Box<dyn RowClient>> {
        Ok(self.single_rows()?.client(self.write.table.object)?)
    }

    fn single_rows(&self) -> Tried<&dyn SingleRows> {
        self.context
            .home
            .single_rows()
            .ok_or(Stop::NotShort(NotShort::NoSingleRows))
    }

    /// The locks, for a change that depends on them.
    fn held(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.held)
    }

    fn committed<T>(&self, done: Result<T, HomeError>) -> Tried<T> {
        done.map_err(|error| Stop::Error(self.write.table.write_error(error)))
    }
}

/// The columns from one on.
fn behind(rows: &RecordBatch, first: usize) -> Result<RecordBatch, SqlError> {
    let columns: Vec<usize> = (first..rows.num_columns()).collect();
    Ok(rows.project(&columns)?)
}

/// Whatever is wrong before anything was written is told by the general path.
fn general<T, E>(result: Result<T, E>) -> Tried<T> {
    result.map_err(|_| Stop::NotShort(NotShort::Fails))
}
