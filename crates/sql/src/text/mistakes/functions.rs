//! Functions: whether there is one of this name, and whether aggregates stand where they may.

use super::{Search, found};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::parse::{STRUCT, place_of, place_of_expr};
use crate::text::shorthand;
use crate::text::using::constraint;
use crate::text::wildcards::call::COLUMNS;
use datafusion::execution::FunctionRegistry;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, JoinConstraint, Query, Select, Visitor,
};
use eris_syntax::{Tree, walk};
use eris_types::most_similar;
use std::ops::ControlFlow;

/// What the planner itself makes of a call, so that no function has the name.
const PLANNED: [&str; 5] = ["unnest", "map", "make_map", "struct", STRUCT];

/// Functions that make rows.
const TABLE_FUNCTIONS: [&str; 3] = ["generate_series", "glob", "range"];

/// There is a function of this name.
pub(super) fn known(function: &Function, registry: &dyn FunctionRegistry) -> Search {
    let name = name(function);
    let is_known = match function.over {
        Some(_) => registry.udwf(&name).is_ok() || registry.udaf(&name).is_ok(),
        None => {
            registry.udf(&name).is_ok()
                || registry.udaf(&name).is_ok()
                || registry.higher_order_function(&name).is_ok()
                || shorthand::knows(&name)
        }
    };
    // A name without arguments, such as CURRENT_USER, may be a column.
    let is_call = !matches!(function.args, FunctionArguments::None);
    if is_known || !is_call || PLANNED.contains(&name.as_str()) {
        return Search::Continue(());
    }
    // It has been written out where it may stand.
    if name == COLUMNS {
        return Search::Continue(());
    }
    if name == "values" {
        let error = SqlError::not_supported("VALUES as an expression");
        let hint = "write it as a subquery: (SELECT …)";
        return found(error.with_hint(Some(hint)), place_of(&function.name));
    }
    let (mistake, message, hint) = match function.over {
        None if registry.udwf(&name).is_ok() => (
            Mistake::WrongObjectType,
            format!("window function \"{name}\" needs OVER"),
            format!("{name}(…) OVER (…)"),
        ),
        _ => (
            Mistake::UndefinedFunction,
            format!("there is no function \"{name}\""),
            instead_of(&name, function, registry),
        ),
    };
    let error = SqlError::invalid(mistake, message).with_hint(Some(hint));
    found(error, place_of(&function.name))
}

/// What may have been meant.
fn instead_of(name: &str, function: &Function, registry: &dyn FunctionRegistry) -> String {
    if name.starts_with("read_") || name.starts_with("parquet_") || TABLE_FUNCTIONS.contains(&name)
    {
        return format!("it is a table function: SELECT * FROM {name}(…)");
    }
    let mut names: Vec<String> = match function.over {
        Some(_) => registry.udwfs().into_iter().collect(),
        None => registry.udfs().into_iter().collect(),
    };
    names.extend(registry.udafs());
    names.sort_unstable();
    match most_similar(name, names.iter().map(String::as_str)) {
        Some(similar) => format!("did you mean \"{similar}\"?"),
        None => "see SELECT * FROM eris.functions for all functions".to_owned(),
    }
}

/// Rows are joined before there are groups.
pub(super) fn no_aggregate_in_joins(select: &Select, registry: &dyn FunctionRegistry) -> Search {
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let Some(JoinConstraint::On(condition)) = constraint(&join.join_operator)
            && let Some(inner) = aggregate_in(condition, registry)
        {
            let error = SqlError::invalid(Mistake::Grouping, "JOIN … ON contains an aggregate");
            let hint = "rows are joined before they are grouped; HAVING filters groups";
            return found(error.with_hint(Some(hint)), place_of_expr(&inner));
        }
    }
    Search::Continue(())
}

/// WHERE filters rows before there are groups.
pub(super) fn no_aggregate_in_where(select: &Select, registry: &dyn FunctionRegistry) -> Search {
    let Some(condition) = &select.selection else {
        return Search::Continue(());
    };
    match aggregate_in(condition, registry) {
        None => Search::Continue(()),
        Some(inner) => {
            let error = SqlError::invalid(Mistake::Grouping, "WHERE contains an aggregate");
            let hint = "WHERE filters rows before they are grouped; HAVING filters groups";
            found(error.with_hint(Some(hint)), place_of_expr(&inner))
        }
    }
}

/// An aggregate is computed of rows, not of other aggregates.
pub(super) fn no_nested_aggregate(function: &Function, registry: &dyn FunctionRegistry) -> Search {
    // With OVER it is computed of groups, which may have aggregates.
    if function.over.is_some() || registry.udaf(&name(function)).is_err() {
        return Search::Continue(());
    }
    match aggregate_in(&function.args, registry) {
        None => Search::Continue(()),
        Some(inner) => {
            let message = format!("an aggregate of an aggregate: {inner} in {function}");
            let error = SqlError::invalid(Mistake::Grouping, message)
                .with_hint(Some("compute the inner one in a subquery"));
            found(error, place_of_expr(&inner))
        }
    }
}

/// The first aggregate in a part of a statement, outside of subqueries.
fn aggregate_in(part: &impl Tree, registry: &dyn FunctionRegistry) -> Option<Expr> {
    let mut aggregates = Aggregates {
        registry,
        subqueries: 0,
    };
    match walk(part, &mut aggregates) {
        ControlFlow::Break(expr) => Some(*expr),
        ControlFlow::Continue(()) => None,
    }
}

struct Aggregates<'a> {
    registry: &'a dyn FunctionRegistry,
    subqueries: usize,
}

impl Visitor for Aggregates<'_> {
    type Break = Box<Expr>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Expr>> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Expr>> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Expr>> {
        match expr {
            Expr::Function(function)
                if self.subqueries == 0
                    && function.over.is_none()
                    && self.registry.udaf(&name(function)).is_ok() =>
            {
                ControlFlow::Break(Box::new(expr.clone()))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A function's name as it is known.
fn name(function: &Function) -> String {
    match function.name.0.as_slice() {
        [part] => part.as_ident().map(normalize).unwrap_or_default(),
        _ => function.name.to_string(),
    }
}
