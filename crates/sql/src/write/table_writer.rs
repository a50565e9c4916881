//! Writing rows of a table, and with them the keys of its UNIQUE constraints; foreign keys are checked on the way.
//!
//! ```text
//!            ┌─ rows ───────────────────────────▶ the table's data object  ┐
//! new rows ──┤                                                             ├─ checked everywhere, then one timestamp
//!            └─ their columns a, b, if no NULL ─▶ the data object of (a, b)┘
//! old rows ──── their columns a, b ─▶ looked up there ─▶ end there, too
//! ```
//!
//! Each UNIQUE constraint has a data object of its own, of its columns alone and with these as key, so that rows with the same
//! values have one owner, who can tell. All objects of a table are written by one statement in the order of their numbers.

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
use eris_engine::{Engine, EngineError, RowClient, Writer};
use eris_types::RowId;
use std::sync::Arc;

/// The rows of one statement on their way into a table.
pub(crate) struct TableWriter {
    table: Arc<Table>,
    rows: Writer,
    uniques: Vec<UniqueWriter>,
    references: References,
    /// The columns whose old values come with rows that end.
    old_columns: Vec<usize>,
}

struct UniqueWriter {
    columns: Vec<usize>,
    keys: Writer,
    /// Where old rows are found, if the statement ends rows.
    known: Option<RowClient>,
}

impl TableWriter {
    /// For a statement that only adds rows.
    pub fn adding(context: &StatementContext, table: &Writable) -> Result<Self, SqlError> {
        let engine = &context.engine;
        let rows = engine.writer(table.object)?;
        let uniques = table.uniques.iter().map(|unique| {
            Ok(UniqueWriter {
                columns: unique.positions(table),
                keys: engine.writer(unique.object())?,
                known: None,
            })
        });
        let uniques = uniques.collect::<Result<_, SqlError>>()?;
        Ok(TableWriter {
            table: Arc::clone(table),
            rows,
            uniques,
            references: References::new(context, table, table.affected())?,
            old_columns: Vec::new(),
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

    /// For a statement that also ends rows, once it has its turn.
    pub async fn changing(context: &StatementContext, table: &Writable) -> Result<Self, SqlError> {
        let engine = &context.engine;
        let rows = engine.changer(table.object).await?;
        let mut in_order: Vec<&Unique> = table.uniques.iter().collect();
        in_order.sort_by_key(|unique| unique.object());
        let mut uniques = Vec::with_capacity(in_order.len());
        for unique in in_order {
            uniques.push(UniqueWriter {
                columns: unique.positions(table),
                keys: engine.changer(unique.object()).await?,
                known: Some(engine.rows(unique.object())?),
            });
        }
        Ok(TableWriter {
            table: Arc::clone(table),
            rows,
            uniques,
            references: References::new(context, table, table.affected())?,
            old_columns: Self::old_columns(table, table.affected()),
        })
    }

    /// For the keys of one UNIQUE constraint alone, whose rows are there already.
    pub fn keys_only(
        engine: &Engine,
        table: &Table,
        unique: &Unique,
    ) -> Result<KeyWriter, SqlError> {
        Ok(KeyWriter(UniqueWriter {
            columns: unique.positions(table),
            keys: engine.writer(unique.object())?,
            known: None,
        }))
    }

    /// Adds rows with the table's columns.
    pub async fn append(&mut self, rows: RecordBatch) -> Result<(), SqlError> {
        for unique in &mut self.uniques {
            unique.append(&rows).await?;
        }
        if !self.references.is_empty() {
            // Most statements have none: theirs shall not be larger for it.
            Box::pin(self.references.add(&rows)).await?;
        }
        Ok(self.rows.append(rows).await?)
    }

    /// Ends the rows whose ids are in the first column. From column `old` on come their values of
    /// [`TableWriter::old_columns`].
    pub async fn delete(&mut self, batch: &RecordBatch, old: usize) -> Result<(), SqlError> {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        self.rows.delete(ids.iter().map(|&id| RowId(id as u64)))?;
        let all = &self.old_columns;
        let place = |column: usize| {
            let place = all.iter().position(|other| *other == column);
            old + place.expect("the list has every column")
        };
        self.references.end(batch, place)?;
        for unique in &mut self.uniques {
            let columns = unique.columns.iter();
            let columns = columns.map(|&column| batch.column(place(column)).clone());
            let columns: Vec<ArrayRef> = columns.collect();
            let known = unique.known.as_mut();
            let known = known.expect("the statement is one that ends rows");
            let found = known.get(&columns, &[]).await?;
            let ids: Vec<RowId> = found.row_ids().collect();
            unique.keys.delete(ids.into_iter())?;
        }
        Ok(())
    }

    /// All rows have come: makes all of it visible at once, if every foreign key would hold then. Up to the commit itself the
    /// statement can be stopped. `word` says what an error of the engine means for the table.
    pub async fn finish(
        mut self,
        context: &StatementContext,
        word: impl Fn(EngineError) -> SqlError,
    ) -> Result<(), SqlError> {
        if !self.references.is_empty() {
            Box::pin(self.references.check(context)).await?;
        }
        let mut writers = vec![self.rows];
        writers.extend(self.uniques.into_iter().map(|unique| unique.keys));
        Writer::make_ready(&mut writers).await.map_err(&word)?;
        crate::cancel::begin_commit()?;
        Writer::commit_all(writers).await.map_err(word)?;
        context.wrote(&self.table);
        Ok(())
    }
}

/// See [`TableWriter::keys_only`].
pub(crate) struct KeyWriter(UniqueWriter);

impl KeyWriter {
    /// Adds the keys of rows with the table's columns.
    pub async fn append(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        self.0.append(rows).await
    }

    /// Makes them all visible at once.
    pub async fn commit(self) -> Result<(), EngineError> {
        Writer::commit_all(vec![self.0.keys]).await
    }
}

impl UniqueWriter {
    async fn append(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        let keys = rows.project(&self.columns)?;
        Ok(self.keys.append(without_nulls(keys)?).await?)
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
