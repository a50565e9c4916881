//! DESCRIBE of a table or query, and SHOW COLUMNS.

use super::{batch_of, text};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::running::outcome::Begun;
use crate::system;
use crate::system::described::{DescribedColumn, describe_relation};
use crate::text::statement::Statement;
use datafusion::arrow::array::{Array, BooleanArray, Scalar, StringViewArray};
use datafusion::arrow::compute::{filter_record_batch, ilike, like};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    self, DescribeAlias, ObjectName, ShowStatementFilter, ShowStatementFilterPosition,
    ShowStatementOptions,
};
use eris_exact::types::sql_name;
use eris_files::is_file_name;
use std::sync::Arc;

/// The query of DESCRIBE query.
///
/// # Errors
/// DESCRIBE of another statement.
pub(crate) fn described_query(tree: &ast::Statement) -> Result<Option<ast::Query>, SqlError> {
    match tree {
        ast::Statement::Explain {
            describe_alias: DescribeAlias::Describe | DescribeAlias::Desc,
            statement,
            ..
        } => match statement.as_ref() {
            ast::Statement::Query(query) => Ok(Some(query.as_ref().clone())),
            _ => Err(SqlError::not_supported(
                "DESCRIBE of anything but a table or query",
            )),
        },
        _ => Ok(None),
    }
}

/// DESCRIBE query: the columns of its rows.
pub(crate) async fn describe_query(
    context: &StatementContext,
    query: ast::Query,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    batch_of(of_query(context, query, statement).await?)
}

/// DESCRIBE table: name, type, whether NULL is allowed, and the default of each column.
pub(crate) async fn describe(
    context: &StatementContext,
    name: &ObjectName,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    batch_of(of_relation(context, name, statement).await?)
}

/// SHOW COLUMNS FROM table [LIKE pattern].
pub(super) async fn columns(
    context: &StatementContext,
    options: &ShowStatementOptions,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let table = options.show_in.as_ref();
    let table = table.and_then(|from| from.parent_name.as_ref());
    let table = table.ok_or_else(|| {
        SqlError::invalid(Mistake::Syntax, "SHOW COLUMNS of which table?")
            .with_hint(Some("SHOW COLUMNS FROM table"))
    })?;
    let all = of_relation(context, table, statement).await?;
    let filter = match &options.filter_position {
        None => return batch_of(all),
        Some(
            ShowStatementFilterPosition::Infix(filter)
            | ShowStatementFilterPosition::Suffix(filter),
        ) => filter,
    };
    let names = all.column(0);
    let pattern = |pattern: &str| Scalar::new(StringViewArray::from(vec![pattern]));
    let wanted = match filter {
        ShowStatementFilter::Like(text) | ShowStatementFilter::NoKeyword(text) => {
            like(names, &pattern(text))
        }
        ShowStatementFilter::ILike(text) => ilike(names, &pattern(text)),
        ShowStatementFilter::Where(_) => {
            return Err(SqlError::not_supported("SHOW COLUMNS … WHERE")
                .with_hint(Some("SELECT … FROM information_schema.columns WHERE …")));
        }
    };
    let wanted = wanted.map_err(|error| SqlError::from_datafusion(error.into()))?;
    let shown = filter_record_batch(&all, &wanted);
    batch_of(shown.map_err(|error| SqlError::from_datafusion(error.into()))?)
}

async fn of_relation(
    context: &StatementContext,
    name: &ObjectName,
    statement: &Statement,
) -> Result<RecordBatch, SqlError> {
    let full = context.resolve(name, statement)?;
    let is_users = context.catalog.contents().get(&full).is_some();
    if !is_users && (system::has(&full.schema, &full.name) || is_file_name(&full.name)) {
        return of_query(context, super::list::everything_of(name)?, statement).await;
    }
    batch(&describe_relation(&context.relation(name, statement)?).columns)
}

async fn of_query(
    context: &StatementContext,
    query: ast::Query,
    statement: &Statement,
) -> Result<RecordBatch, SqlError> {
    let plan = planning::plan(context, query, statement).await?;
    let schema = plan.columns();
    let columns: Vec<DescribedColumn> = (schema.fields().iter())
        .map(|field| DescribedColumn {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            max_characters: None,
            nullable: field.is_nullable(),
            default: None,
            comment: None,
        })
        .collect();
    batch(&columns)
}

fn batch(columns: &[DescribedColumn]) -> Result<RecordBatch, SqlError> {
    let names = columns.iter().map(|column| Some(column.name.clone()));
    let types = columns
        .iter()
        .map(|column| Some(sql_name(&column.data_type, column.max_characters)));
    let nullable: BooleanArray = columns.iter().map(|column| Some(column.nullable)).collect();
    let defaults = columns.iter().map(|column| column.default.clone());
    RecordBatch::try_from_iter_with_nullable([
        ("column_name", text(names), true),
        ("column_type", text(types), true),
        ("nullable", Arc::new(nullable) as Arc<dyn Array>, true),
        ("default", text(defaults), true),
    ])
    .map_err(|error| SqlError::from_datafusion(error.into()))
}
