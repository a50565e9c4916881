//! One execution of a write.

use super::{Action, Cell, Conflict, Program, Write, Written};
use crate::cancel::CancelToken;
use crate::coerce::{self, Target};
use crate::core::Core;
use crate::error::SqlError;
use crate::insert;
use crate::row_rules::{ComputedDefault, RowRules};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::common::ScalarValue;
use eris_engine::{EngineError, RowClient};
use eris_types::ColumnId;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// How often somebody else may come in between before the statement waits for its turn.
const TRIES: usize = 16;

/// Why nothing was written.
pub(super) enum Stop {
    /// The statement has to go its own way, which also words what is wrong with it.
    OwnWay,
    Error(SqlError),
}

type Tried<T> = Result<T, Stop>;

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Stop::Error(error)
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Stop::Error(error.into())
    }
}

/// What a write works with.
pub(super) struct Execution<'a> {
    write: &'a Write,
    core: &'a Core,
    values: &'a [ScalarValue],
    token: &'a CancelToken,
    rules: Cow<'a, RowRules>,
    /// The locks of tables.
    held: Arc<dyn Any + Send + Sync>,
}

impl<'a> Execution<'a> {
    pub fn new(
        write: &'a Write,
        core: &'a Core,
        values: &'a [ScalarValue],
        token: &'a CancelToken,
        held: Arc<dyn Any + Send + Sync>,
    ) -> Tried<Self> {
        let rules = match &write.rules {
            Some(rules) => Cow::Borrowed(rules),
            None => Cow::Owned(own_way(RowRules::new(core, &write.table))?),
        };
        Ok(Execution {
            write,
            core,
            values,
            token,
            rules,
            held,
        })
    }

    pub async fn run(&self) -> Tried<Written> {
        match &self.write.action {
            Action::Insert {
                rows,
                computed,
                conflict,
            } => {
                let new = self.new_rows(rows, computed)?;
                self.insert(new, conflict).await
            }
            Action::Update(key, program) => {
                let key = self.key(key)?;
                let mut rows = self.rows()?;
                self.change(&mut rows, &key, program, None).await
            }
            Action::Delete(key, program) => {
                let key = self.key(key)?;
                self.delete(&key, program.as_ref()).await
            }
        }
    }

    async fn insert(&self, new: RecordBatch, conflict: &Conflict) -> Tried<Written> {
        if let Conflict::Update(program) = conflict {
            let key: Vec<ArrayRef> = self
                .key_columns()
                .map(|column| Arc::clone(new.column(column)))
                .collect();
            let mut rows = self.rows()?;
            return self.change(&mut rows, &key, program, Some(&new)).await;
        }
        let written = self.about_to_add(&new).await?;
        if self.write.table.key.is_none() {
            let mut writer = self.core.engine.writer(self.write.table.object)?;
            writer.append(new).await?;
            self.token.begin_commit()?;
            self.committed(writer.commit().await)?;
            return Ok(written);
        }
        let mut rows = self.rows()?;
        self.token.begin_commit()?;
        match (self.committed(rows.insert(new).await)?, conflict) {
            (true, _) => Ok(written),
            (false, Conflict::Nothing) => Ok(self.nothing()),
            (false, _) => Err(Stop::OwnWay),
        }
    }

    /// Has the program compute what becomes of the row with a key, or takes `new` if there is none.
    async fn change(
        &self,
        rows: &mut RowClient,
        key: &[ArrayRef],
        program: &Program,
        new: Option<&RecordBatch>,
    ) -> Tried<Written> {
        for _ in 0..TRIES {
            let found = rows.get(key, &program.reads).await?;
            let changed = match (found.rows.num_rows(), new) {
                (0, None) => return Ok(self.nothing()),
                (0, Some(new)) => new.clone(),
                (1, _) => {
                    let computed = own_way(program.run(&found.rows, new, self.values))?;
                    if computed.num_rows() == 0 {
                        return Ok(self.nothing());
                    }
                    let table = &self.write.table;
                    let changed = coerce::rows(&computed, table, &program.targets, 1);
                    self.ruled(own_way(changed)?)?
                }
                _ => return Err(Stop::OwnWay),
            };
            let written = self.about_to_add(&changed).await?;
            self.token.begin_commit()?;
            if self.committed(rows.put_if_unchanged(&found, changed).await)? {
                return Ok(written);
            }
            self.token.end_commit();
        }
        Err(Stop::OwnWay)
    }

    async fn delete(&self, key: &[ArrayRef], program: Option<&Program>) -> Tried<Written> {
        let mut rows = self.rows()?;
        let answer = self.write.answer.as_ref();
        if let (None, None) = (program, answer) {
            self.token.begin_commit()?;
            let rows = rows.remove(key).await?;
            return Ok(Written { rows, answer: None });
        }
        let of_program = program.map_or(&[][..], |program| &program.reads);
        let of_answer = answer.map_or(&[][..], |answer| &answer.reads);
        let reads: Vec<ColumnId> = [of_program, of_answer].concat();
        for _ in 0..TRIES {
            let found = rows.get(key, &reads).await?;
            if found.rows.num_rows() == 0 {
                return Ok(self.nothing());
            }
            if let Some(program) = program {
                let left = own_way(program.run(&found.rows, None, self.values))?;
                if left.num_rows() == 0 {
                    return Ok(self.nothing());
                }
            }
            let said = answer.map(|answer| {
                let read: Vec<usize> = (of_program.len()..reads.len()).collect();
                answer.of_read(found.rows.project(&read)?)
            });
            let answer = own_way(said.transpose())?;
            self.token.begin_commit()?;
            if rows.remove_if_unchanged(&found).await? {
                return Ok(Written { rows: 1, answer });
            }
            self.token.end_commit();
        }
        Err(Stop::OwnWay)
    }

    /// Rows are to be added that keep the table's rules: what will have been written then. What they refer to is there.
    async fn about_to_add(&self, rows: &RecordBatch) -> Tried<Written> {
        let parents = &self.write.parents;
        if !parents.is_empty() && !parents.are_there(self.core, rows).await? {
            return Err(Stop::OwnWay);
        }
        let answer = self.write.answer.as_ref().map(|answer| answer.of(rows));
        Ok(Written {
            rows: rows.num_rows() as u64,
            answer: own_way(answer.transpose())?,
        })
    }

    /// What is written if no row is.
    fn nothing(&self) -> Written {
        Written {
            rows: 0,
            answer: None,
        }
    }

    /// The rows to be inserted.
    fn new_rows(
        &self,
        cells: &'a [Cell],
        computed: &[(usize, Option<ComputedDefault>)],
    ) -> Tried<RecordBatch> {
        let table = &self.write.table;
        let width = table.types.len();
        let value = |cell: &'a Cell| match cell {
            Cell::Operand(operand) => &self.values[*operand],
            Cell::Constant(value) => value,
        };
        let columns = (0..width).map(|column| {
            if cells.len() == width {
                return value(&cells[column]).to_array();
            }
            let of_column = cells.iter().skip(column).step_by(width);
            ScalarValue::iter_to_array(of_column.map(|cell| value(cell).clone()))
        });
        let columns = own_way(columns.collect::<Result<Vec<_>, _>>())?;
        let schema = Arc::clone(&table.unruled);
        let options = RecordBatchOptions::new().with_row_count(Some(cells.len() / width));
        let rows = own_way(RecordBatch::try_new_with_options(schema, columns, &options))?;
        let mut targets: Vec<Target> = (0..width).map(Target::Source).collect();
        let needs_state = computed.iter().any(|(_, default)| default.is_none());
        let state = needs_state.then(|| self.core.bare_state());
        for (column, default) in computed {
            targets[*column] = match (default, &state) {
                (None, Some(state)) => own_way(insert::default_target(state, table, *column))?,
                (default, _) => Target::Computed(default.clone().expect("it needs no state")),
            };
        }
        self.ruled(own_way(coerce::rows(&rows, table, &targets, 1))?)
    }

    /// Rows that keep the table's rules.
    fn ruled(&self, rows: RecordBatch) -> Tried<RecordBatch> {
        own_way(self.rules.check(&self.write.table, &rows, 1))?;
        Ok(rows)
    }

    /// The arrays of a key. That a part of it is NULL, so that no row has it, is rare enough.
    fn key(&self, operands: &[usize]) -> Tried<Vec<ArrayRef>> {
        let parts = operands.iter().map(|&operand| &self.values[operand]);
        let parts = parts.map(|value| match value.is_null() {
            true => Err(Stop::OwnWay),
            false => own_way(value.to_array()),
        });
        parts.collect()
    }

    fn key_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let table = &self.write.table;
        let names = table.key.iter().flat_map(|key| &key.columns);
        names.map(|name| table.schema.index_of(name).expect("a key is of the table"))
    }

    fn rows(&self) -> Tried<RowClient> {
        let mut rows = self.core.engine.rows(self.write.table.object)?;
        rows.keep(Arc::clone(&self.held));
        Ok(rows)
    }

    fn committed<T>(&self, done: Result<T, EngineError>) -> Tried<T> {
        done.map_err(|error| Stop::Error(self.write.table.write_error(error)))
    }
}

/// Whatever is wrong before anything was written is told by the statement's own way.
fn own_way<T, E>(result: Result<T, E>) -> Tried<T> {
    result.map_err(|_| Stop::OwnWay)
}
