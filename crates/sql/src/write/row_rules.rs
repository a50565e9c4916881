//! The rules of a table's rows, ready to be applied to batches: the one place through which every row goes on its way
//! into a table, wherever it comes from. It is [`RowRules::apply`].
//!
//! ```text
//! batch of a source ──▶ coerce: defaults, casts ──▶ NOT NULL ──▶ CHECK ──▶ engine's writer
//! ```

use crate::catalog::{DefaultValue, Table};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError, Violation};
use crate::system::functions::sequence::is_of_sequence;
use crate::system::functions::session_state;
use crate::write::coerce::{self, Target, shown};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Volatility,
};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{self, ExprWithAlias};
use std::cell::LazyCell;
use std::sync::Arc;

/// NOT NULL and CHECK of one table.
#[derive(Clone, Debug)]
pub(crate) struct RowRules {
    /// For each CHECK of the table.
    checks: Vec<Compiled>,
    /// For each generated column its position, in the order in which they are computed.
    generated: Vec<(usize, Compiled)>,
}

impl RowRules {
    /// For one statement: its time is that of all of them.
    pub fn new(context: &StatementContext, table: &Table) -> Result<Self, SqlError> {
        // Most tables need none.
        let state = LazyCell::new(|| session_state(context));
        let checks = table.checks.iter().map(|check| {
            let compiled = compile(&state, &check.expr, &table.names);
            compiled.map_err(SqlError::from_datafusion)
        });
        let checks = checks.collect::<Result<_, SqlError>>()?;
        let generated = table.rules.iter().enumerate();
        let generated = generated.filter_map(|(at, rules)| Some((at, rules.generated.as_ref()?)));
        let mut generated: Vec<_> = generated.collect();
        generated.sort_by_key(|(_, generated)| generated.order);
        let generated = generated.into_iter().map(|(at, generated)| {
            let compiled = compile(&state, &generated.expr, &table.names);
            Ok((at, compiled.map_err(SqlError::from_datafusion)?))
        });
        let generated = generated.collect::<Result<_, SqlError>>()?;
        Ok(RowRules { checks, generated })
    }

    /// Whether they hold for later statements with the same settings, too: no CHECK asks what time it is.
    pub fn is_lasting(&self) -> bool {
        self.checks.iter().all(|check| check.lasting)
    }

    /// Whether all of them are [quick](crate::write::quick::is_quick), for rows of this schema.
    pub fn are_quick(&self, schema: &Schema) -> bool {
        self.generated.is_empty()
            && (self.checks.iter()).all(|check| crate::write::quick::is_quick(&check.expr, schema))
    }

    /// Rows of a source as rows of the table. `targets` says where each column's values come from. The first row counts
    /// as `first_row`, from 1 on.
    ///
    /// # Errors
    /// A value does not fit its column, or a row breaks a rule.
    pub fn apply(
        &self,
        table: &Table,
        batch: &RecordBatch,
        targets: &[Target],
        first_row: u64,
    ) -> Result<RecordBatch, SqlError> {
        let mut rows = coerce::rows(batch, table, targets, first_row)?;
        for (position, compiled) in &self.generated {
            rows = generate(table, rows, *position, compiled, first_row)?;
        }
        self.check(table, &rows, first_row)?;
        Ok(rows)
    }

    fn check(&self, table: &Table, batch: &RecordBatch, first_row: u64) -> Result<(), SqlError> {
        for (field, column) in table.schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.null_count() > 0 {
                let row = (0..column.len()).find(|&row| column.is_null(row));
                let row = row.expect("the column has a NULL");
                return Err(SqlError::constraint(
                    Violation::NotNull,
                    format!(
                        "table \"{}\", row {}: column \"{}\" is NOT NULL, the row is {}",
                        table.name,
                        first_row + row as u64,
                        field.name(),
                        whole_row(batch, row)
                    ),
                ));
            }
        }
        for (check, compiled) in table.checks.iter().zip(&self.checks) {
            let passed = compiled
                .expr
                .evaluate(batch)
                .and_then(|value| value.into_array(batch.num_rows()))
                .map_err(|error| {
                    SqlError::from_datafusion(error)
                        .within(&format!("CHECK constraint \"{}\"", check.name))
                })?;
            // NULL is neither true nor false, and passes.
            let passed = passed.as_boolean_opt();
            let broken = passed.and_then(|passed| {
                (0..passed.len()).find(|&row| passed.is_valid(row) && !passed.value(row))
            });
            if let Some(row) = broken {
                return Err(SqlError::constraint(
                    Violation::Check,
                    format!(
                        "table \"{}\", row {}: CHECK constraint \"{}\" does not hold: {}, the row is {}",
                        table.name,
                        first_row + row as u64,
                        check.name,
                        check.expr,
                        whole_row(batch, row)
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The same rows with the values of a generated column.
fn generate(
    table: &Table,
    rows: RecordBatch,
    position: usize,
    compiled: &Compiled,
    first_row: u64,
) -> Result<RecordBatch, SqlError> {
    let field = table.schema.field(position);
    let values = compiled.expr.evaluate(&rows);
    let values = values.and_then(|values| values.into_array(rows.num_rows()));
    let values = values.map_err(|error| {
        let part = format!("generated column \"{}\"", field.name());
        SqlError::from_datafusion(error).within(&part)
    })?;
    let rules = &table.rules[position];
    let mut columns = rows.columns().to_vec();
    columns[position] = coerce::column(&values, field, rules, &table.name, first_row)?;
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}

/// Most values of a row that a message shows.
const SHOWN: usize = 12;

/// The values of a row, shortened.
fn whole_row(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(batch.columns());
    let values = fields.take(SHOWN).map(|(field, column)| {
        let value = match column.is_null(row) {
            true => "NULL".to_owned(),
            false => shown(column, row),
        };
        format!("{} = {value}", field.name())
    });
    let mut text = values.collect::<Vec<_>>().join(", ");
    if batch.num_columns() > SHOWN {
        text.push_str(", …");
    }
    format!("({text})")
}

/// The values of a default for as many rows, of whatever type its expression has.
#[derive(Clone, Debug)]
pub(crate) struct ComputedDefault(Compiled);

impl ComputedDefault {
    /// `state` is the statement's: the same time for all columns.
    pub fn new(state: &SessionState, default: &DefaultValue) -> Result<Self> {
        compile(state, default.evaluated(), &DFSchema::empty()).map(ComputedDefault)
    }

    /// Whether it serves later statements, too.
    pub fn is_lasting(&self) -> bool {
        self.0.lasting
    }

    pub fn values(&self, rows: usize) -> Result<ArrayRef> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::try_new_with_options(schema, Vec::new(), &options)?;
        self.0.expr.evaluate(&batch)?.into_array(rows)
    }
}

/// An expression, for execution.
#[derive(Clone, Debug)]
struct Compiled {
    expr: Arc<dyn PhysicalExpr>,
    /// It holds for later statements, too: nothing in it has one value for all of a statement.
    lasting: bool,
}

/// An expression over the columns of `schema`, for execution.
fn compile(state: &SessionState, expr: &ast::Expr, schema: &DFSchema) -> Result<Compiled> {
    let expr = logical(state, expr, schema)?;
    let of_statement = |expr: &Expr| match expr {
        Expr::ScalarFunction(function) => {
            function.func.signature().volatility == Volatility::Stable
                || is_of_sequence(function.func.name())
        }
        expr => matches!(expr, Expr::ScalarVariable(..)),
    };
    let lasting = !expr.exists(|expr| Ok(of_statement(expr)))?;
    // now() and its like have a value only behind the simplifier.
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let expr = ExprSimplifier::new(context).simplify(expr)?;
    let expr = state.create_physical_expr(expr, schema)?;
    Ok(Compiled { expr, lasting })
}

/// An expression over the columns of `schema`. Types are found as in a query's select list.
///
/// # Errors
/// What planning says; and an expression that needs more than one row: a subquery, an aggregate, a window function.
pub(crate) fn logical(state: &SessionState, expr: &ast::Expr, schema: &DFSchema) -> Result<Expr> {
    let planned = state.create_logical_expr_from_sql_expr(
        ExprWithAlias {
            expr: expr.clone(),
            alias: None,
        },
        schema,
    )?;
    planned.apply(|part| {
        let error = match part {
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(Exists { .. }) => {
                SqlError::not_supported(format!("{expr}: a subquery for each row"))
            }
            Expr::AggregateFunction(_) => SqlError::invalid(
                Mistake::Grouping,
                format!("{expr}: an aggregate cannot be evaluated for a single row"),
            ),
            Expr::WindowFunction(_) => SqlError::invalid(
                Mistake::Windowing,
                format!("{expr}: a window function cannot be evaluated for a single row"),
            ),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Err(error.into_datafusion())
    })?;
    let rows = LogicalPlan::EmptyRelation(EmptyRelation {
        produce_one_row: false,
        schema: Arc::new(schema.clone()),
    });
    let plan = LogicalPlanBuilder::from(rows).project([planned])?.build()?;
    let options = state.config_options();
    let plan = state
        .analyzer()
        .execute_and_check(plan, options, |_, _| {})?;
    match plan {
        LogicalPlan::Projection(mut projection) => Ok(projection.expr.remove(0).unalias()),
        _ => unreachable!("a projection stays one"),
    }
}

/// The expression of a CHECK over the columns of `schema`, if it is one.
///
/// # Errors
/// What planning says; an expression that is neither true nor false.
pub(crate) fn check_condition(
    state: &SessionState,
    expr: &ast::Expr,
    schema: &DFSchema,
) -> Result<()> {
    let data_type = logical(state, expr, schema)?.get_type(schema)?;
    if !matches!(data_type, DataType::Boolean | DataType::Null) {
        let message = format!(
            "CHECK ({expr}): {} is not a condition",
            eris_exact::types::sql_name(&data_type, None)
        );
        return Err(SqlError::invalid(Mistake::DatatypeMismatch, message).into_datafusion());
    }
    Ok(())
}
