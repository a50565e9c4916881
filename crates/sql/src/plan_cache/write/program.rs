//! What a statement computes of a row that is there.
//!
//! ```text
//! columns   those of the table │ excluded: those of the row that was to be inserted │ values that change
//!               ▼                          ▼                                            ▼
//! steps     SELECT a, excluded.b, n + $1 … WHERE … ─▶ one row, or none ─▶ targets: where each column is found
//! ```

use super::super::NotShort;
use super::super::given::{Given, GivenExec};
use super::super::steps::Steps;
use super::super::template::is_immutable;
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::files::StatementTables;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::statements::dml::TARGET;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, Ident};
use eris_types::ColumnId;
use std::sync::Arc;

/// Steps over a row.
#[derive(Debug)]
pub(super) struct Program {
    /// The columns of the table that the steps read.
    pub reads: Vec<ColumnId>,
    /// What the steps read: columns of the row, by their place in `reads`, or others.
    columns: Vec<StepColumn>,
    read: SchemaRef,
    steps: Steps,
    /// The operands that are columns behind the rows'.
    parameters: Vec<usize>,
    /// Where the new values of the table's columns are found.
    pub targets: Vec<Target>,
}

/// A column that steps read.
#[derive(Clone, Copy, Debug)]
enum StepColumn {
    Row(usize),
    /// The row's id, which nobody looks at.
    Id,
    Excluded(usize),
    Parameter(usize),
}

/// The name of the column for the excluded row's value of a column.
pub(super) fn excluded(name: &str) -> Ident {
    Ident::with_quote('"', format!("excluded({name}"))
}

/// The name of the column for a value that changes.
pub(super) fn parameter(number: usize) -> Ident {
    Ident::with_quote('"', format!("value({number}"))
}

/// A query over rows that are given, as steps.
pub(super) struct OverGiven {
    /// What the steps read: positions in the schema that was given.
    pub columns: Vec<usize>,
    /// The same as they find it.
    pub read: SchemaRef,
    pub steps: Steps,
    /// What comes out, named as the query says.
    pub schema: SchemaRef,
}

/// Plans a query over rows of a schema, which it calls [`TARGET`].
///
/// # Errors
/// It is more than steps, or means something else at another time, or has an error, which the general path tells.
pub(super) async fn over_given(
    context: &StatementContext,
    schema: Schema,
    query: ast::Query,
    statement: &Statement,
) -> Result<OverGiven, NotShort> {
    let given = Given(Arc::new(schema));
    let files = StatementTables::from([(TARGET.to_owned(), Arc::new(given) as _)]);
    let context = context.in_one_stream();
    let names = NameScope::now(&context).with_files(files);
    let planned = planning::logical_at(&context, query, &names, statement).await;
    let (state, logical, headers) = planned.map_err(|_| NotShort::Fails)?;
    if !is_immutable(&logical) {
        return Err(NotShort::Volatile);
    }
    let plan = planning::plan_logical(&context, logical, &state, statement).await;
    let plan = plan.map_err(|_| NotShort::Fails)?;
    let (steps, leaf) = Steps::above_leaf(&plan.physical).ok_or(NotShort::NotSteps)?;
    let given = leaf.downcast_ref::<GivenExec>().ok_or(NotShort::NotSteps)?;
    Ok(OverGiven {
        columns: given.columns.clone(),
        read: leaf.schema(),
        steps,
        schema: headers.name(&plan.physical.schema()),
    })
}

impl Program {
    /// Plans a query over the row. `parameters` are the operands that it names, with their types.
    ///
    /// # Errors
    /// As of [`over_given`].
    pub async fn plan(
        context: &StatementContext,
        table: &Table,
        query: ast::Query,
        has_excluded: bool,
        parameters: Vec<(usize, DataType)>,
        targets: Vec<Target>,
        statement: &Statement,
    ) -> Result<Program, NotShort> {
        let own = table.schema.fields().iter();
        let mut fields: Vec<Field> = own
            .clone()
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        fields.push(Field::new(crate::plan::resolve::ROW, DataType::Int64, true));
        if has_excluded {
            let renamed = own.map(|field| {
                let name = excluded(field.name()).value;
                Field::new(name, field.data_type().clone(), true)
            });
            fields.extend(renamed);
        }
        let values = parameters.iter();
        fields.extend(values.map(|(operand, data_type)| {
            Field::new(parameter(*operand).value, data_type.clone(), true)
        }));
        let planned = over_given(context, Schema::new(fields), query, statement).await?;
        let width = table.types.len();
        let behind = width + 1 + if has_excluded { width } else { 0 };
        let mut reads = Vec::new();
        let columns = planned.columns.iter().map(|&column| match column {
            column if column < width => {
                reads.push(ColumnId(column as u32));
                StepColumn::Row(reads.len() - 1)
            }
            column if column == width => StepColumn::Id,
            column if column < behind => StepColumn::Excluded(column - width - 1),
            column => StepColumn::Parameter(column - behind),
        });
        Ok(Program {
            columns: columns.collect(),
            read: planned.read,
            reads,
            steps: planned.steps,
            parameters: parameters.into_iter().map(|(operand, _)| operand).collect(),
            targets,
        })
    }

    /// Whether an owner may run it: all of it is quick.
    pub fn is_quick(&self) -> bool {
        let is_given = |target: &Target| !matches!(target, Target::Computed(_));
        self.steps.are_quick(&self.read) && self.targets.iter().all(is_given)
    }

    /// What becomes of a row of the table, of which there are the columns that are read: one row, or none.
    pub fn run(
        &self,
        row: &[ArrayRef],
        excluded: Option<&RecordBatch>,
        values: &[ScalarValue],
    ) -> Result<RecordBatch, SqlError> {
        let columns = self.columns.iter().map(|column| match column {
            StepColumn::Row(place) => Ok(Arc::clone(&row[*place])),
            StepColumn::Id => Ok(Arc::new(Int64Array::from(vec![0])) as ArrayRef),
            StepColumn::Excluded(column) => {
                let excluded = excluded.expect("only ON CONFLICT names it");
                Ok(Arc::clone(excluded.column(*column)))
            }
            StepColumn::Parameter(number) => values[self.parameters[*number]].to_array(),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>();
        let columns = columns.map_err(SqlError::from_datafusion)?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let read = Arc::clone(&self.read);
        let row = RecordBatch::try_new_with_options(read, columns, &options)?;
        self.steps.apply(row).map_err(SqlError::from_datafusion)
    }
}
