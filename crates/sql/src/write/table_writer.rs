//! Writing rows of a table, and with them the keys of its UNIQUE constraints; foreign keys are checked on the way.
//!
//! ```text
//!            ┌─ rows ───────────────────────────▶ the table's data object  ┐
//! new rows ──┤                                                             ├─ checked everywhere, then one timestamp
//!            └─ their columns a, b, if no NULL ─▶ the data object of (a, b)┘
//! old rows ──── their columns a, b ─▶ looked up there ─▶ end there, too
//! ```
//!
//! Each UNIQUE constraint has a data object of its own, of its columns alone and with these as key, so that rows with
//! the same values have one owner, who can tell. One statement of the home writes to all of them.

use crate::cancel::{self, CancelToken};
use crate::catalog::{Table, Unique};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::write::locks::Writable;
use crate::write::references::{Affected, References};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use eris_fragment::Fragment;
use eris_home::{Appending, Home, HomeError, Newest, Write};
use eris_types::{ObjectId, RowId};
use std::sync::Arc;

/// The rows of one statement on their way into a table.
pub(crate) struct TableWriter {
    home: Arc<dyn Home>,
    table: Arc<Table>,
    write: Box<dyn Write>,
    uniques: Vec<KeyColumns>,
    references: References,
    /// The columns whose old values come with rows that end.
    old_columns: Vec<usize>,
}

/// A UNIQUE constraint of the table.
struct KeyColumns {
    columns: Vec<usize>,
    object: ObjectId,
}

impl KeyColumns {
    fn of(unique: &Unique, table: &Table) -> Self {
        KeyColumns {
            columns: unique.positions(table),
            object: unique.object(),
        }
    }

    async fn append(&self, rows: &RecordBatch, write: &mut dyn Write) -> Result<(), SqlError> {
        let keys = rows.project(&self.columns)?;
        Ok(write.append(self.object, without_nulls(keys)?).await?)
    }
}

impl TableWriter {
    /// For a statement that only adds rows.
    pub fn adding(context: &StatementContext, table: &Writable) -> Result<Self, SqlError> {
        let write = context.home.add(&objects(table))?;
        Self::new(context, table, table.affected(), write, Vec::new())
    }

    /// For a statement that only adds rows, has made sure that what they refer to is there, and holds the locks.
    pub fn without_references(
        context: &StatementContext,
        table: &Arc<Table>,
    ) -> Result<Self, SqlError> {
        let write = context.home.add(&objects(table))?;
        Self::new(context, table, &Affected::default(), write, Vec::new())
    }

    /// For a statement that also ends rows, once it has the write locks.
    pub async fn changing(context: &StatementContext, table: &Writable) -> Result<Self, SqlError> {
        let write = context.home.change(&objects(table)).await?;
        let old_columns = Self::old_columns(table, table.affected());
        Self::new(context, table, table.affected(), write, old_columns)
    }

    fn new(
        context: &StatementContext,
        table: &Arc<Table>,
        affected: &Affected,
        write: Box<dyn Write>,
        old_columns: Vec<usize>,
    ) -> Result<Self, SqlError> {
        let uniques = table.uniques.iter();
        Ok(TableWriter {
            home: Arc::clone(&context.home),
            table: Arc::clone(table),
            write,
            uniques: uniques
                .map(|unique| KeyColumns::of(unique, table))
                .collect(),
            references: References::new(context, table, affected)?,
            old_columns,
        })
    }

    /// The columns of a table whose old values a statement needs that ends rows of it.
    pub fn old_columns(table: &Table, affected: &Affected) -> Vec<usize> {
        let mut columns = table.unique_columns();
        columns.extend(References::old_columns(table, affected));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// For the keys of one UNIQUE constraint alone, whose rows are there already.
    pub fn keys_only(
        home: &dyn Home,
        table: &Table,
        unique: &Unique,
    ) -> Result<KeyWriter, SqlError> {
        Ok(KeyWriter {
            keys: KeyColumns::of(unique, table),
            write: home.add(&[unique.object()])?,
        })
    }

    /// Adds rows with the table's columns.
    pub async fn append(&mut self, rows: RecordBatch) -> Result<(), SqlError> {
        for unique in &self.uniques {
            unique.append(&rows, &mut *self.write).await?;
        }
        if !self.references.is_empty() {
            // Most statements have none: theirs shall not be larger for it.
            Box::pin(self.references.add(&rows)).await?;
        }
        Ok(self.write.append(self.table.object, rows).await?)
    }

    /// Adds the rows of a fragment with the table's columns where they are found; `None`: that is not possible, or not
    /// good. Nobody looks at these rows: nothing may be left to be checked, or to be written beside them.
    pub fn append_from(&mut self, fragment: &Fragment) -> Result<Option<Appending<'_>>, SqlError> {
        Ok(self.write.append_from(self.table.object, fragment)?)
    }

    /// Ends the rows whose ids are in the first column. From column `old` on come their values of
    /// [`TableWriter::old_columns`].
    pub async fn delete(&mut self, batch: &RecordBatch, old: usize) -> Result<(), SqlError> {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let mut ids = ids.iter().map(|&id| RowId(id as u64));
        self.write.delete(self.table.object, &mut ids)?;
        let all = &self.old_columns;
        let place = |column: usize| {
            let place = all.iter().position(|other| *other == column);
            old + place.expect("the list has every column")
        };
        self.references.end(batch, place)?;
        for unique in &self.uniques {
            let columns = unique.columns.iter();
            let columns = columns.map(|&column| batch.column(place(column)).clone());
            let columns: Vec<ArrayRef> = columns.collect();
            let found = self
                .home
                .lookup(unique.object, &columns, Arc::default(), Newest::Applied)
                .await?;
            let ids: Vec<RowId> = found.row_ids().collect();
            self.write.delete(unique.object, &mut ids.into_iter())?;
        }
        Ok(())
    }

    /// [Commits](TableWriter::commit) as the statement of the current task, and looks whether the table is to be stored
    /// anew.
    pub async fn finish(
        self,
        context: &StatementContext,
        word: impl Fn(HomeError) -> SqlError,
    ) -> Result<(), SqlError> {
        let table = Arc::clone(&self.table);
        self.commit(context, &cancel::current(), word).await?;
        context.look_at(&table);
        Ok(())
    }

    /// All rows have come: makes all of it visible at once, if every foreign key would hold then. Up to the commit
    /// itself the statement can be stopped. `word` says what an error of the home means for the table.
    pub async fn commit(
        mut self,
        context: &StatementContext,
        token: &CancelToken,
        word: impl Fn(HomeError) -> SqlError,
    ) -> Result<(), SqlError> {
        if !self.references.is_empty() {
            Box::pin(self.references.check(context)).await?;
        }
        self.write.check().await.map_err(&word)?;
        token.begin_commit()?;
        self.write.commit().await.map_err(word)
    }
}

/// The data objects of a table: of its rows, and of the keys of its UNIQUE constraints.
pub(crate) fn objects(table: &Table) -> Vec<ObjectId> {
    let uniques = table.uniques.iter().map(Unique::object);
    std::iter::once(table.object).chain(uniques).collect()
}

/// See [`TableWriter::keys_only`].
pub(crate) struct KeyWriter {
    keys: KeyColumns,
    write: Box<dyn Write>,
}

impl KeyWriter {
    /// Adds the keys of rows with the table's columns.
    pub async fn append(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        self.keys.append(rows, &mut *self.write).await
    }

    /// Makes them all visible at once.
    pub async fn commit(self) -> Result<(), HomeError> {
        self.write.commit().await
    }
}

/// The rows without a NULL: a NULL is different from all values.
pub(crate) fn without_nulls(rows: RecordBatch) -> Result<RecordBatch, SqlError> {
    let nulls = rows.columns().iter().fold(None, |nulls, column| {
        NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
    });
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => Ok(filter_record_batch(
            &rows,
            &BooleanArray::new(nulls.into_inner(), None),
        )?),
        None => Ok(rows),
    }
}
