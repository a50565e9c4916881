//! Rows of a query that its table takes in where they are found, for nothing is left to be done to them.
//!
//! ```text
//! SELECT a, b + 1 FROM s WHERE …  ── one fragment, exactly the table's types ──▶ each worker writes what it finds
//!    └── a join above it, a cast, a CHECK, a key … ──▶ batches ──▶ row_rules ──▶ table_writer
//! ```
//!
//! Why, and what it saves: docs/decisions/0031.

use super::coerce::Target;
use super::locks::Writable;
use super::table_writer::TableWriter;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::fragment_exec::FragmentExec;
use crate::plan::planning::Plan;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::physical_plan::ExecutionPlan;
use eris_exact::scalar;
use eris_fragment::Expr;
use eris_home::Appending;
use std::sync::Arc;

/// Of fewer rows, build sides are not read before the home is asked: it would rather have these rows sent.
const LEAST_JOINED: u64 = 1 << 19;

/// What became of a query whose rows go into a table.
pub(crate) enum Written {
    /// So many rows are there, and have yet to be committed.
    AtSource(TableWriter, u64),
    /// Nothing was written: the plan is to be run.
    NotYet(Plan),
}

/// Has the rows of a plan written where they are found, if that is all there is to be done.
pub(crate) async fn write(
    context: &StatementContext,
    table: &Writable,
    plan: Plan,
    targets: &[Target],
) -> Result<Written, SqlError> {
    let fragment = FragmentExec::all_of(&plan.physical);
    let columns = fragment.and_then(|fragment| columns(fragment, table, targets));
    let (Some(fragment), Some(columns)) = (fragment, columns) else {
        return Ok(Written::NotYet(plan));
    };
    if fragment.is_joined() && fragment.scan().statistics.rows() < LEAST_JOINED {
        return Ok(Written::NotYet(plan));
    }
    let schema = Arc::clone(&table.unruled);
    let bound = fragment.bind(columns, schema, &plan.context).await?;
    let Some(bound) = bound else {
        return Ok(Written::NotYet(plan.reset()?));
    };
    let mut writer = TableWriter::adding(context, table)?;
    let Some(Appending { report, done }) = writer.append_from(&bound.fragment)? else {
        return Ok(Written::NotYet(plan.reset()?));
    };
    let scan = fragment.scan();
    let scanning = scan.progress.expect_scan(scan.statistics.rows());
    scanning.began(report);
    let rows = done.await?;
    scan.progress.wrote(rows);
    Ok(Written::AtSource(writer, rows))
}

/// What the fragment has to yield to yield rows of the table; `None` if these have to be looked at.
fn columns(fragment: &FragmentExec, table: &Writable, targets: &[Target]) -> Option<Vec<Expr>> {
    let has_rules = table.key.is_some()
        || !table.uniques.is_empty()
        || !table.checks.is_empty()
        || !table.foreign_keys.is_empty()
        || !table.affected().is_empty();
    if has_rules {
        return None;
    }
    let schema = fragment.schema();
    let found = fragment.open_rows()?;
    let columns = table.schema.fields().iter().zip(&table.rules).zip(targets);
    let columns = columns.map(|((field, rules), target)| {
        if rules.max_characters.is_some() || rules.generated.is_some() {
            return None;
        }
        match target {
            Target::Source(position) => {
                let (expr, from) = (&found[*position], schema.field(*position));
                let is_as_stored = from.data_type() == field.data_type()
                    && (field.is_nullable() || !from.is_nullable())
                    && is_usual(fragment, expr, field);
                is_as_stored.then(|| expr.clone())
            }
            Target::Constant(value) => {
                let is_as_stored = value.data_type() == *field.data_type()
                    && (field.is_nullable() || !value.is_null());
                let literal = || scalar::to_fragment(value).map(Expr::Literal);
                is_as_stored.then(literal).flatten()
            }
            Target::Sources(_) | Target::Computed(_) => None,
        }
    });
    columns.collect()
}

/// Whether values have the form in which they are stored: there are many NaNs, and times of no day.
fn is_usual(fragment: &FragmentExec, expr: &Expr, field: &Field) -> bool {
    match field.data_type() {
        data_type if data_type.is_floating() => fragment.has_one_nan(expr),
        DataType::Time64(_) => fragment.is_stored(expr),
        _ => true,
    }
}
