//! The general path: a statement by its syntax tree.

use super::{explain, prepare};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::statements::{analyze, ddl, dml, insert, set, show};
use crate::text::statement::Statement;
use crate::text::transaction;
use datafusion::sql::sqlparser::ast;
use futures::future::BoxFuture;

/// Begins a statement that has been parsed.
pub(crate) fn begin_tree<'a>(
    context: &'a StatementContext,
    tree: ast::Statement,
    statement: &'a Statement,
) -> BoxFuture<'a, Result<Begun, SqlError>> {
    Box::pin(dispatch(context, tree, statement))
}

async fn dispatch(
    context: &StatementContext,
    mut tree: ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if let ast::Statement::Prepare {
        name,
        data_types,
        statement: prepared,
    } = tree
    {
        return prepare::prepare(context, &name, &data_types, *prepared, statement).await;
    }
    prepare::reject_parameters(&tree)?;
    transaction::reject(&tree)?;
    match tree {
        ast::Statement::Query(query) => dml::run_query(context, query, statement).await,
        ast::Statement::Insert(insert) => insert::insert(context, insert, statement).await,
        ast::Statement::Delete(delete) if !ddl::is_delete_of_all(&delete) => {
            dml::run(context, ast::Statement::Delete(delete), None, statement).await
        }
        tree @ (ast::Statement::Update(_) | ast::Statement::Merge(_)) => {
            dml::run(context, tree, None, statement).await
        }
        ast::Statement::Explain {
            statement: ref mut explained,
            ..
        } => {
            let mut executed = None;
            if let ast::Statement::Execute { .. } = **explained {
                let (prepared, values) = prepare::executed(context, explained, statement).await?;
                **explained = prepared.bind(&values)?;
                executed = Some((prepared, values));
            }
            match show::described_query(&tree)? {
                Some(query) => show::describe_query(context, query, statement).await,
                None => explain::explain(context, tree, executed, statement).await,
            }
        }
        ast::Statement::ExplainTable { table_name, .. } => {
            show::describe(context, &table_name, statement).await
        }
        tree @ ast::Statement::Execute { .. } => prepare::execute(context, &tree, statement).await,
        ast::Statement::Deallocate { name, .. } => prepare::deallocate(context, &name),
        ast::Statement::Set(set) => set::set(context, &set).await,
        ast::Statement::Reset(which) => set::reset(context, &which.reset).await,
        ast::Statement::Use(which) => set::use_schema(context, &which).await,
        ast::Statement::Analyze(tables) => analyze::analyze(context, &tables, statement).await,
        ast::Statement::Kill { id, .. } => show::kill(context, id),
        ast::Statement::Call(call) => show::call(context, &call, statement).await,
        ast::Statement::ShowCreate { obj_type, obj_name } => {
            show::create_statement(context, &obj_type, &obj_name, statement)
        }
        tree => match show::list(context, &tree, statement).await? {
            Some(shown) => Ok(shown),
            None if let ast::Statement::ShowVariable { variable } = &tree => {
                set::show(context, variable)
            }
            None => match ddl::run(context, tree, statement).await? {
                Some(begun) => Ok(begun),
                None => Err(SqlError::not_supported(keywords(statement.text()))),
            },
        },
    }
}

/// The words by which a statement is known, such as `UPDATE` or `ALTER TABLE`.
fn keywords(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    let mut words = words.map(str::to_uppercase);
    let first = words.next().unwrap_or_default();
    match first.as_str() {
        "CREATE" | "DROP" | "ALTER" | "SHOW" | "START" | "SET" => match words.next() {
            Some(second) => format!("{first} {second}"),
            None => first,
        },
        _ => first,
    }
}
