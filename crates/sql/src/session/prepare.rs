//! Prepared statements: PREPARE, EXECUTE, DEALLOCATE, and the same for programs.
//!
//! ```text
//! PREPARE: text ── parse ── tree with $1, $2 … ── types of the parameters, from where they stand
//! EXECUTE:         values ── checked against the types ─┬─ a plan that is kept, if there is one
//!                                                       └─ tree with constants ── planned as if it had been written so
//! ```
//!
//! What is kept is the syntax tree, and of queries over one table and writes of single rows also the plan (see
//! [`plan_cache`](crate::plan_cache)). Everything else is planned with its values, which planning decides by. Each
//! execution has a snapshot of its own.

use super::pipeline::{self, Request};
use super::prepared::Prepared;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::insert;
use crate::text::identifier::normalize;
use crate::text::parameter::{Parameter, placeholder};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{self, Expr, ExprWithAlias};
use eris_syntax::expressions;
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

/// PREPARE name [(types)] AS statement.
pub(crate) async fn prepare(
    context: &StatementContext,
    name: &ast::Ident,
    types: &[ast::DataType],
    tree: ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = normalize(name);
    let exists = || {
        SqlError::invalid(
            Mistake::DuplicatePreparedStatement,
            format!("prepared statement \"{name}\" exists already"),
        )
        .with_hint(Some(format!("DEALLOCATE {name}")))
    };
    if context.session.prepared().contains_key(&name) {
        return Err(exists());
    }
    let prepared = Prepared::of_tree(context, tree, types, statement).await?;
    // Another statement of the session may have been faster.
    match context.session.prepared().entry(name.clone()) {
        std::collections::btree_map::Entry::Occupied(_) => Err(exists()),
        std::collections::btree_map::Entry::Vacant(place) => {
            place.insert(Arc::new(prepared));
            Ok(Begun::Done { tag: "PREPARE" })
        }
    }
}

/// What EXECUTE name [(values)], or EXECUTE name USING values, means: the prepared statement and its values.
pub(crate) async fn executed(
    context: &StatementContext,
    tree: &ast::Statement,
    statement: &Statement,
) -> Result<(Arc<Prepared>, Vec<Parameter>), SqlError> {
    let ast::Statement::Execute {
        name: Some(name),
        parameters,
        has_parentheses: _,
        immediate: false,
        into,
        using,
        output: false,
        default: false,
    } = tree
    else {
        return Err(SqlError::not_supported("EXECUTE with these clauses"));
    };
    if !into.is_empty() || (!parameters.is_empty() && !using.is_empty()) {
        return Err(SqlError::not_supported("EXECUTE with these clauses"));
    }
    let name = crate::text::identifier::last_name(name).unwrap_or_default();
    let prepared = context.session.prepared().get(&name).cloned();
    let prepared: Arc<dyn Any + Send + Sync> = prepared.ok_or_else(|| unknown(context, &name))?;
    let prepared: Arc<Prepared> = prepared.downcast().expect("PREPARE notes nothing else");
    let given: Vec<(Option<String>, &Expr)> = match using.as_slice() {
        [] => parameters.iter().map(|value| (None, value)).collect(),
        using => (using.iter())
            .map(|ExprWithAlias { expr, alias }| (alias.as_ref().map(normalize), expr))
            .collect(),
    };
    let mut values = vec![None; prepared.parameter_count().max(given.len())];
    for (position, (alias, expr)) in given.into_iter().enumerate() {
        let place = match alias {
            None => position,
            Some(alias) => {
                let found = prepared.position(&alias);
                found.ok_or_else(|| {
                    SqlError::invalid(
                        Mistake::UndefinedParameter,
                        format!("\"{name}\" has no parameter ${alias}"),
                    )
                })?
            }
        };
        values[place] = Some(match Parameter::of_constant(expr) {
            Some(value) => value,
            None => {
                let (array, _) = insert::collect_one(context, expr, statement).await?;
                Parameter::of_array(&array, 0)?
            }
        });
    }
    Ok((prepared, values.into_iter().flatten().collect()))
}

/// DEALLOCATE name, DEALLOCATE ALL.
pub(crate) fn deallocate(context: &StatementContext, name: &ast::Ident) -> Result<Begun, SqlError> {
    let plain = normalize(name);
    let mut prepared = context.session.prepared();
    if name.quote_style.is_none() && plain == "all" {
        prepared.clear();
    } else if prepared.remove(&plain).is_none() {
        drop(prepared);
        return Err(unknown(context, &plain));
    }
    Ok(Begun::Done { tag: "DEALLOCATE" })
}

fn unknown(context: &StatementContext, name: &str) -> SqlError {
    let known = context.session.prepared();
    let similar = eris_types::most_similar(name, known.keys().map(String::as_str));
    SqlError::invalid(
        Mistake::UndefinedPreparedStatement,
        format!("there is no prepared statement \"{name}\""),
    )
    .with_hint(similar.map(|similar| format!("did you mean \"{similar}\"?")))
}

/// Begins what EXECUTE means.
pub(crate) async fn execute(
    context: &StatementContext,
    tree: &ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let (prepared, values) = executed(context, tree, statement).await?;
    let request = Request::Prepared { prepared, values };
    let found = request.lookup(context);
    pipeline::begin(context, &request, found).await
}

/// Rejects parameters in a statement that is not prepared.
pub(crate) fn reject_parameters(tree: &ast::Statement) -> Result<(), SqlError> {
    let found = expressions(tree, |expr| match placeholder(expr) {
        Some(name) => ControlFlow::Break(name.to_owned()),
        None => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => Err(SqlError::invalid(
            Mistake::UndefinedParameter,
            format!("parameter {name} has no value"),
        )
        .with_hint(Some(
            "PREPARE name AS the statement, then EXECUTE name (values)",
        ))),
    }
}
