//! The rows of an altered table: left where they are, looked at, or written anew.

use super::operations::{Altered, ColumnSource};
use crate::catalog::{Table, retire};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::plan::resolve::NameScope;
use crate::statements::insert::write_plan;
use crate::system::functions::session_state;
use crate::text::parse::planning_error;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use crate::write::locks::Writable;
use crate::write::row_rules::{RowRules, logical};
use crate::write::table_writer::{KeyWriter, TableWriter};
use crate::write::targets::default_target;
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use futures::StreamExt;
use std::sync::Arc;

/// The new table, with its rows, not published yet. The old one is locked.
pub(super) async fn run(
    context: &StatementContext,
    old: &Arc<Table>,
    mut altered: Altered,
    statement: &Statement,
) -> Result<Table, SqlError> {
    // A cancelled INSERT may have let go of the lock while its commit was under way.
    context.home.settle().await;
    if !altered.needs_rewrite(old) {
        let recheck = altered.recheck;
        altered.definition.make_keys(&context.data_source()).await?;
        let new = old.redefined(altered.definition)?;
        if recheck {
            let source = old_rows(context, old, &altered.sources, statement).await?;
            look_at(context, old, &new, &source).await?;
        }
        return Ok(new);
    }
    let source = old_rows(context, old, &altered.sources, statement).await?;
    let mut new = old
        .successor(&context.data_source(), altered.definition)
        .await?;
    let place = |column: usize| {
        let kept = altered
            .sources
            .iter()
            .position(|source| matches!(source, ColumnSource::Old(old) if *old == column));
        kept.or_else(|| new.schema.index_of(old.schema.field(column).name()).ok())
    };
    let places: Vec<Option<usize>> = (0..old.types.len()).map(place).collect();
    new.take_over_indexes(&context.home, old, |column| places[column], altered.cascade)
        .await?;
    context
        .services
        .balance
        .take_over(&*context.home, old.object, new.object);
    let new = Arc::new(new);
    let written = async {
        let state = session_state(context);
        let mut given = 0..;
        let targets = altered.sources.iter().enumerate();
        let targets = targets.map(|(position, from)| match from {
            ColumnSource::Default => default_target(&state, &new, position),
            ColumnSource::Old(_) | ColumnSource::Using(_) => {
                Ok(Target::Source(given.next().expect("numbers do not end")))
            }
        });
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        write_plan(context, &Writable::unpublished(&new), source, targets).await
    };
    match written.await {
        Ok(_) => Ok(Arc::into_inner(new).expect("nobody else has it")),
        Err(error) => {
            retire([new]).await?;
            Err(error)
        }
    }
}

/// A query for those columns of the new table that come from the old one, over all rows of it.
async fn old_rows(
    context: &StatementContext,
    old: &Arc<Table>,
    sources: &[ColumnSource],
    statement: &Statement,
) -> Result<Plan, SqlError> {
    let names = NameScope::now(context);
    let mut state = names.state();
    state.mark_start_execution();
    let mut columns: Vec<Expr> = Vec::new();
    for (position, source) in sources.iter().enumerate() {
        let column = match source {
            ColumnSource::Old(old_position) => {
                let name = old.schema.field(*old_position).name();
                Expr::Column(Column::new_unqualified(name))
            }
            ColumnSource::Using(using) => {
                let schema =
                    DFSchema::try_from_qualified_schema(old.name.name.as_str(), &old.schema)
                        .map_err(SqlError::from_datafusion)?;
                logical(&state, using, &schema)
                    .map_err(|error| planning_error(error, statement, &state))?
            }
            ColumnSource::Default => continue,
        };
        columns.push(column.alias(format!("column {position}")));
    }
    let provider = names.table_provider(old)?;
    let plan = LogicalPlanBuilder::scan(old.name.name.as_str(), provider, None)
        .and_then(|scan| scan.project(columns)?.build())
        .map_err(SqlError::from_datafusion)?;
    planning::plan_logical(context, plan, &state, statement).await
}

/// Rejects rows that break the rules of the table as it is to be; fills UNIQUE constraints that are new.
async fn look_at(
    context: &StatementContext,
    old: &Table,
    new: &Table,
    rows: &Plan,
) -> Result<(), SqlError> {
    let rules = RowRules::new(context, new)?;
    let added = new.uniques.iter();
    let added = added.filter(|unique| !old.uniques.iter().any(|other| other.is_same(unique)));
    let writers = added.map(|unique| TableWriter::keys_only(&*context.home, new, unique));
    let mut writers: Vec<KeyWriter> = writers.collect::<Result<_, _>>()?;
    let targets: Vec<Target> = (0..new.types.len()).map(Target::Source).collect();
    let mut rows = rows.run()?;
    let mut first_row = 1;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        let batch = rules.apply(new, &batch, &targets, first_row)?;
        first_row += batch.num_rows() as u64;
        for writer in &mut writers {
            writer.append(&batch).await?;
        }
    }
    for writer in writers {
        let committed = writer.commit().await;
        committed.map_err(|error| new.write_error(error))?;
    }
    Ok(())
}
