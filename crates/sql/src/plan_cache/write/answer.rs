//! RETURNING of a write that is kept: what it says of the rows that were written, or have ended.
//!
//! ```text
//! RETURNING k, n * 2        row as it is stored ─▶ columns k, n ─▶ steps ─▶ answer
//! ```
//!
//! As on [the general path](crate::statements::dml), it is computed before the rows take effect, for it may fail, and
//! handed out after.

use super::super::NotShort;
use super::super::steps::{Steps, with_schema};
use super::program::over_given;
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::statements::dml;
use crate::text::parameter::placeholder;
use crate::text::statement::Statement;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{Ident, SelectItem};
use eris_syntax::expressions;
use eris_types::ColumnId;
use std::ops::ControlFlow;

/// What RETURNING computes.
#[derive(Debug)]
pub(super) struct Answer {
    /// The columns of the table that it reads.
    pub reads: Vec<ColumnId>,
    read: SchemaRef,
    steps: Steps,
    /// Its columns as the user is to see them.
    pub schema: SchemaRef,
}

impl Answer {
    /// # Errors
    /// It is more than steps over a row, or has an error, which the general path tells.
    pub async fn plan(
        context: &StatementContext,
        table: &Table,
        alias: &Ident,
        items: &[SelectItem],
        statement: &Statement,
    ) -> Result<Answer, NotShort> {
        let parameter = items.iter().try_for_each(|item| {
            expressions(item, |expr| match placeholder(expr) {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        });
        if parameter.is_break() {
            return Err(NotShort::ParameterType);
        }
        let query = dml::returning(context, alias, items.to_vec()).map_err(|_| NotShort::Fails)?;
        let fields = table.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Schema::new(fields.collect::<Vec<Field>>());
        let planned = over_given(context, schema, query, statement).await?;
        let reads = planned.columns.iter();
        Ok(Answer {
            reads: reads.map(|&column| ColumnId(column as u32)).collect(),
            read: planned.read,
            steps: planned.steps,
            schema: planned.schema,
        })
    }

    /// What it says of rows with all columns of the table.
    pub fn of(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<usize> = self.reads.iter().map(|column| column.index()).collect();
        self.of_read(rows.project(&columns)?)
    }

    /// What it says of rows with the columns that it reads.
    pub fn of_read(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let computed = self.steps.apply(with_schema(&self.read, rows)?)?;
        with_schema(&self.schema, computed)
    }
}
