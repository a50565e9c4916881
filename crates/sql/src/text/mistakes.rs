//! Mistakes that a statement's tree shows. DataFusion tells them as text alone, so they are looked for here.
//!
//! The planner comes first: the tree is read again only if planning has failed. So a right statement costs nothing, and
//! nothing that DataFusion understands is rejected here.
//!
//! ```text
//! statement ── parse ── plan ── fails ── find ──► what is wrong, where, and what to do
//! ```

mod functions;
mod types;
mod windows;

pub(crate) use types::unknown_type;

use crate::error::position::Position;
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::parse::{parse, place_of, place_of_expr, position};
use crate::text::statement::Statement;
use datafusion::execution::FunctionRegistry;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LimitClause, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Values, Visitor,
};
use eris_syntax::{expressions, walk};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The first mistake of a statement, if its tree shows one.
pub(crate) fn find(statement: &Statement, registry: &dyn FunctionRegistry) -> Option<SqlError> {
    if statement.calls_macros() {
        // To the registry a macro is a function that does not exist.
        return None;
    }
    let tree = parse(statement).ok()?;
    match walk(&tree, &mut Mistakes { registry }) {
        ControlFlow::Continue(()) => None,
        ControlFlow::Break(found) => {
            let place = found.place.map(|place| statement.excerpt(place));
            Some(found.error.at(place))
        }
    }
}

/// Whether a statement calls a table function of this name in FROM.
pub(crate) fn is_table_function(statement: &Statement, name: &ObjectName) -> bool {
    parse(statement).is_ok_and(|tree| walk(&tree, &mut TableFunction(name)).is_break())
}

struct TableFunction<'a>(&'a ObjectName);

impl Visitor for TableFunction<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            } if name == self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A mistake with the place of what is wrong.
struct Found {
    error: SqlError,
    place: Option<Position>,
}

type Search = ControlFlow<Box<Found>>;

fn found(error: SqlError, place: Option<Position>) -> Search {
    ControlFlow::Break(Box::new(Found { error, place }))
}

struct Mistakes<'a> {
    registry: &'a dyn FunctionRegistry,
}

impl Visitor for Mistakes<'_> {
    type Break = Box<Found>;

    fn pre_visit_query(&mut self, query: &Query) -> Search {
        if let Some(with) = &query.with {
            let names = with.cte_tables.iter().map(|cte| &cte.alias.name);
            if let Some(name) = repeated(names) {
                let message = format!("WITH has two queries \"{}\"", normalize(name));
                let error = SqlError::invalid(Mistake::DuplicateAlias, message);
                return found(error, place_of_ident(name));
            }
        }
        limit_without_columns(query)?;
        match &*query.body {
            SetExpr::Values(values) => rows_of_one_length(values),
            _ => Search::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> Search {
        qualifiers_in_from(select)?;
        functions::no_aggregate_in_joins(select, self.registry)?;
        functions::no_aggregate_in_where(select, self.registry)?;
        windows::in_place(select)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Search {
        if let Expr::Cast { data_type, .. } = expr {
            types::known(data_type)?;
        }
        let Expr::Function(function) = expr else {
            return Search::Continue(());
        };
        functions::known(function, self.registry)?;
        functions::no_nested_aggregate(function, self.registry)?;
        windows::right_frame(function)
    }
}

/// Each row of VALUES has as many values as the first one.
fn rows_of_one_length(values: &Values) -> Search {
    let Some(first) = values.rows.first() else {
        return Search::Continue(());
    };
    let expected = first.content.len();
    match values.rows.iter().find(|row| row.content.len() != expected) {
        None => Search::Continue(()),
        Some(row) => {
            let length = row.content.len();
            let message = format!("VALUES has a row of {length} values beside one of {expected}");
            let error = SqlError::invalid(Mistake::Syntax, message);
            found(error, row.content.first().and_then(place_of_expr))
        }
    }
}

/// LIMIT and OFFSET are the same for all rows. Names are not looked up there: one that leads to nothing is told as a
/// column, too.
fn limit_without_columns(query: &Query) -> Search {
    let counts = match &query.limit_clause {
        None => [None, None],
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            [limit.as_ref(), offset.as_ref().map(|offset| &offset.value)]
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
    };
    for count in counts.into_iter().flatten() {
        let column = expressions(count, |expr| match expr {
            Expr::Subquery(_) => ControlFlow::Break(None),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                ControlFlow::Break(Some(expr.clone()))
            }
            _ => ControlFlow::Continue(()),
        });
        if let ControlFlow::Break(Some(column)) = column {
            let message = format!("LIMIT and OFFSET take no column, such as {column}");
            let error = SqlError::invalid(Mistake::InvalidColumnReference, message);
            return found(error, place_of_expr(&column));
        }
    }
    Search::Continue(())
}

/// The table of `table.*` is in FROM.
fn qualifiers_in_from(select: &Select) -> Search {
    for item in &select.projection {
        let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
        else {
            continue;
        };
        let Some(last) = name.0.last().and_then(|part| part.as_ident()) else {
            continue;
        };
        if !tables(select).any(|table| normalize(table) == normalize(last)) {
            let message = format!("there is no \"{name}\" in FROM");
            let error = SqlError::invalid(Mistake::UndefinedTable, message)
                .with_hint(Some("an alias takes the place of its table's name"));
            return found(error, place_of(name));
        }
    }
    Search::Continue(())
}

/// The names by which the tables in FROM are known.
fn tables(select: &Select) -> impl Iterator<Item = &Ident> {
    fn of(from: &TableWithJoins) -> Box<dyn Iterator<Item = &Ident> + '_> {
        let joined = from.joins.iter().map(|join| &join.relation);
        Box::new(std::iter::once(&from.relation).chain(joined).flat_map(name))
    }
    fn name(table: &TableFactor) -> Box<dyn Iterator<Item = &Ident> + '_> {
        let (alias, own) = match table {
            TableFactor::Table { alias, name, .. } => {
                (alias, name.0.last().and_then(|part| part.as_ident()))
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. } => (alias, None),
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return of(table_with_joins),
            TableFactor::NestedJoin { alias, .. } => (alias, None),
            _ => (&None, None),
        };
        Box::new(alias.as_ref().map(|alias| &alias.name).or(own).into_iter())
    }
    select.from.iter().flat_map(of)
}

/// The first name that stands before it, too.
fn repeated<'a>(names: impl Iterator<Item = &'a Ident>) -> Option<&'a Ident> {
    let mut seen = HashSet::new();
    let mut names = names;
    names.find(|name| !seen.insert(normalize(name)))
}

fn place_of_ident(name: &Ident) -> Option<Position> {
    (name.span.start.line > 0).then(|| position(name.span.start))
}
