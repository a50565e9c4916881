//! Writes of single rows by their keys: what the statement computes is planned once, and a row is looked up, computed and put back
//! where it is.
//!
//! ```text
//! INSERT INTO t VALUES (7, 1) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n
//!    │ values of the text, or of the prepared statement
//!    ▼
//! key 7 ─▶ the row that has it ──┬─ none ──▶ (7, 1) ────────────────┐
//!                                └─ (7, 41) ─▶ steps ─▶ (7, 42) ─▶ coerce ─▶ put, if nobody has changed it meanwhile
//! ```
//!
//! Whatever is more than that – several rows, RETURNING, CHECK, a foreign key, a value that is none of the column's type, an error – is left to the
//! statement's own way, before anything was written.

mod compile;
mod operand;
mod program;
#[cfg(test)]
mod tests;

pub(super) use compile::{Origin, compile};
pub(super) use operand::{Given, Operand};

use crate::cancel::CancelToken;
use crate::catalog::{Contents, Table};
use crate::coerce::{self, Target};
use crate::core::Core;
use crate::error::SqlError;
use crate::settings::Variables;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::common::ScalarValue;
use eris_engine::RowClient;
use program::Program;
use std::sync::{Arc, Weak};

/// How often somebody else may come in between before the statement waits for its turn.
const TRIES: usize = 16;

/// A write that is ready for other values.
#[derive(Debug)]
pub(super) struct Write {
    /// The contents of the catalogue that own it.
    contents: Weak<Contents>,
    variables: Variables,
    table: Arc<Table>,
    /// What changes from time to time.
    operands: Vec<Operand>,
    action: Action,
    tag: &'static str,
}

#[derive(Debug)]
enum Action {
    Insert {
        rows: Vec<Cell>,
        conflict: Conflict,
    },
    /// The operands that are the key's values.
    Update(Vec<usize>, Program),
    Delete(Vec<usize>, Option<Program>),
}

/// Where the value of a new row's column comes from.
#[derive(Debug)]
enum Cell {
    Operand(usize),
    Constant(ScalarValue),
}

/// What becomes of a new row whose key another row has.
#[derive(Debug)]
enum Conflict {
    Refuse,
    Nothing,
    Update(Program),
}

impl Write {
    /// The contents of the catalogue that it was planned with, if they are still there.
    pub fn contents(&self) -> Option<Arc<Contents>> {
        self.contents.upgrade()
    }

    /// What changes from time to time.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The tag of the statement.
    pub fn tag(&self) -> &'static str {
        self.tag
    }

    /// Executes it with these values of its operands; returns how many rows were written. `None`: nothing was written, and it
    /// has to go its own way.
    pub async fn run(
        &self,
        core: &Core,
        values: &[ScalarValue],
        token: &CancelToken,
    ) -> Result<Option<u64>, SqlError> {
        if *core.variables() != self.variables {
            return Ok(None);
        }
        let _shared = match self.table.lock.try_read() {
            Ok(shared) => shared,
            Err(_) => self.table.lock.read().await,
        };
        // Now nobody changes the table.
        let contents = core.catalog.contents();
        if !std::ptr::eq(Arc::as_ptr(&contents), self.contents.as_ptr()) {
            return Ok(None);
        }
        let written = match &self.action {
            Action::Insert { rows, conflict } => {
                let Some(new) = self.new_rows(rows, values) else {
                    return Ok(None);
                };
                self.insert(core, new, conflict, values, token).await
            }
            Action::Update(key, program) => {
                let Some(key) = self.key(key, values) else {
                    return Ok(None);
                };
                let mut rows = core.engine.rows(self.table.object)?;
                self.change(&mut rows, &key, program, None, values, token)
                    .await
            }
            Action::Delete(key, program) => {
                let Some(key) = self.key(key, values) else {
                    return Ok(None);
                };
                self.delete(core, &key, program.as_ref(), values, token)
                    .await
            }
        }?;
        if written.is_none() {
            token.end_commit();
        }
        Ok(written)
    }

    async fn insert(
        &self,
        core: &Core,
        new: RecordBatch,
        conflict: &Conflict,
        values: &[ScalarValue],
        token: &CancelToken,
    ) -> Result<Option<u64>, SqlError> {
        let count = new.num_rows() as u64;
        if self.table.key.is_none() {
            let mut writer = core.engine.writer(self.table.object)?;
            writer.append(new).await?;
            token.begin_commit()?;
            let written = writer.commit().await;
            return written
                .map(Some)
                .map_err(|error| self.table.write_error(error));
        }
        let mut rows = core.engine.rows(self.table.object)?;
        let wrong = |error| self.table.write_error(error);
        match conflict {
            Conflict::Refuse => {
                token.begin_commit()?;
                let inserted = rows.insert(new).await.map_err(wrong)?;
                // Why not is told by the statement's own way.
                Ok(inserted.then_some(count))
            }
            Conflict::Nothing => {
                token.begin_commit()?;
                let inserted = rows.insert(new).await.map_err(wrong)?;
                Ok(Some(if inserted { count } else { 0 }))
            }
            Conflict::Update(program) => {
                let key: Vec<ArrayRef> = self
                    .key_columns()
                    .map(|column| Arc::clone(new.column(column)))
                    .collect();
                self.change(&mut rows, &key, program, Some(&new), values, token)
                    .await
            }
        }
    }

    /// Has the program compute what becomes of the row with a key, or takes `new` if there is none.
    async fn change(
        &self,
        rows: &mut RowClient,
        key: &[ArrayRef],
        program: &Program,
        new: Option<&RecordBatch>,
        values: &[ScalarValue],
        token: &CancelToken,
    ) -> Result<Option<u64>, SqlError> {
        let wrong = |error| self.table.write_error(error);
        for _ in 0..TRIES {
            let found = rows.get(key, &program.reads).await?;
            let changed = match (found.rows.num_rows(), new) {
                (0, None) => return Ok(Some(0)),
                (0, Some(new)) => new.clone(),
                (1, _) => {
                    // Errors are worded by the statement's own way.
                    let Ok(computed) = program.run(&found.rows, new, values) else {
                        return Ok(None);
                    };
                    if computed.num_rows() == 0 {
                        return Ok(Some(0));
                    }
                    let changed = coerce::rows(&computed, &self.table, &program.targets, 1);
                    let Some(changed) = changed.ok().filter(|rows| self.keeps_rules(rows)) else {
                        return Ok(None);
                    };
                    changed
                }
                _ => return Ok(None),
            };
            token.begin_commit()?;
            let put = rows.put_if_unchanged(&found, changed).await;
            if put.map_err(wrong)? {
                return Ok(Some(1));
            }
            token.end_commit();
        }
        Ok(None)
    }

    async fn delete(
        &self,
        core: &Core,
        key: &[ArrayRef],
        program: Option<&Program>,
        values: &[ScalarValue],
        token: &CancelToken,
    ) -> Result<Option<u64>, SqlError> {
        let mut rows = core.engine.rows(self.table.object)?;
        let Some(program) = program else {
            token.begin_commit()?;
            return Ok(Some(rows.remove(key).await?));
        };
        for _ in 0..TRIES {
            let found = rows.get(key, &program.reads).await?;
            if found.rows.num_rows() == 0 {
                return Ok(Some(0));
            }
            match program.run(&found.rows, None, values) {
                Ok(left) if left.num_rows() == 0 => return Ok(Some(0)),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
            token.begin_commit()?;
            if rows.remove_if_unchanged(&found).await? {
                return Ok(Some(1));
            }
            token.end_commit();
        }
        Ok(None)
    }

    /// The rows to be inserted; `None` if they break a rule, which the statement's own way words.
    fn new_rows<'a>(&self, cells: &'a [Cell], values: &'a [ScalarValue]) -> Option<RecordBatch> {
        let width = self.table.types.len();
        let columns = (0..width).map(|column| {
            let value = |cell: &'a Cell| match cell {
                Cell::Operand(operand) => &values[*operand],
                Cell::Constant(value) => value,
            };
            if cells.len() == width {
                return value(&cells[column]).to_array().ok();
            }
            let of_column = cells.iter().skip(column).step_by(width);
            ScalarValue::iter_to_array(of_column.map(|cell| value(cell).clone())).ok()
        });
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let schema = Arc::clone(&self.table.unruled);
        let options = RecordBatchOptions::new().with_row_count(Some(cells.len() / width));
        let rows = RecordBatch::try_new_with_options(schema, columns, &options).ok()?;
        let targets: Vec<Target> = (0..width).map(Target::Source).collect();
        let rows = coerce::rows(&rows, &self.table, &targets, 1).ok()?;
        self.keeps_rules(&rows).then_some(rows)
    }

    /// Whether there is no NULL where none may be.
    fn keeps_rules(&self, rows: &RecordBatch) -> bool {
        let mut fields = self.table.schema.fields().iter().zip(rows.columns());
        fields.all(|(field, column)| field.is_nullable() || column.null_count() == 0)
    }

    /// The arrays of a key; `None` if a part of it is NULL: no row has it, which is rare enough.
    fn key(&self, operands: &[usize], values: &[ScalarValue]) -> Option<Vec<ArrayRef>> {
        let parts = operands.iter().map(|&operand| &values[operand]);
        parts
            .map(|value| (!value.is_null()).then(|| value.to_array().ok())?)
            .collect()
    }

    fn key_columns(&self) -> impl Iterator<Item = usize> + '_ {
        let names = self.table.key.iter().flat_map(|key| &key.columns);
        names.map(|name| {
            self.table
                .schema
                .index_of(name)
                .expect("a key is of the table")
        })
    }
}
