//! USING where DataFusion's join does not do: a RIGHT or FULL join, whose column may be the right table's, and a column
//! that several joins share. There the joins become ON, and the joined column is written out where it is meant:
//!
//! ```text
//!  SELECT k, a, b FROM l FULL JOIN r USING (k)
//!  SELECT coalesce(l.k, r.k) AS k, a, b FROM l FULL JOIN r ON l.k = r.k
//!
//!  SELECT * …          SELECT l.* REPLACE (coalesce(l.k, r.k) AS k), r.* EXCLUDE (k) …
//! ```

use crate::error::SqlError;
use crate::text::asof;
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderBy,
    OrderByKind, Query, ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::ErisDialect;
use eris_syntax::{are_equal, own_expressions_mut, walk_mut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Writes out such joins anywhere in a query.
///
/// # Errors
/// Joins whose columns cannot be told without the tables.
pub(crate) fn write_out(query: &mut Query) -> Result<(), SqlError> {
    match walk_mut(query, &mut Queries) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<SqlError>> {
        match body(&mut query.body, query.order_by.as_mut()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn body(expr: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<(), SqlError> {
    match expr {
        SetExpr::Select(select) => list(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            body(left, None)?;
            body(right, None)
        }
        _ => Ok(()),
    }
}

/// The tables of one item of FROM, and the columns that its joins share.
#[derive(Default)]
struct FromItem {
    /// What qualifies the columns of each; `None` where nothing can.
    names: Vec<Option<Vec<Ident>>>,
    shared: BTreeMap<String, SharedColumn>,
    /// Columns that `*` does not repeat, by table.
    hidden: Vec<(usize, Ident)>,
}

/// A column that tables share.
struct SharedColumn {
    name: Ident,
    /// The table at whose place `*` shows it.
    table: usize,
    value: Expr,
}

fn list(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<(), SqlError> {
    if !select.from.iter().any(|from| needs_it(&from.joins)) {
        return Ok(());
    }
    let tables = select.from.iter_mut().map(tables);
    let tables: Vec<FromItem> = tables.collect::<Result<_, _>>()?;

    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options)
                if are_equal(&options, &WildcardAdditionalOptions::default()) =>
            {
                for tables in &tables {
                    tables.all_columns(&mut items)?;
                }
            }
            SelectItem::Wildcard(_) => return Err(rejected("a * with further words")),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                items.push(SelectItem::ExprWithAlias {
                    expr: Expr::Identifier(name.clone()),
                    alias: name,
                });
            }
            other => items.push(other),
        }
    }
    select.projection = items;
    // Names in subqueries are left alone. The visitor never breaks off.
    let _ = own_expressions_mut(select, |expr| put_shared(expr, &tables));
    if let Some(order_by) = order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        // A name alone is that of a result's column first.
        let keys = keys.iter_mut().filter(|key| match &key.expr {
            Expr::Identifier(name) => !shows(&select.projection, name),
            _ => true,
        });
        keys.for_each(|key| {
            let _ = own_expressions_mut(key, |expr| put_shared(expr, &tables));
        });
    }
    Ok(())
}

fn shows(items: &[SelectItem], name: &Ident) -> bool {
    items.iter().any(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => normalize(alias) == normalize(name),
        SelectItem::QualifiedWildcard(..) => true,
        _ => false,
    })
}

/// Whether DataFusion would take another column than the one that is meant, or could not tell it.
fn needs_it(joins: &[Join]) -> bool {
    let mut seen: Vec<String> = Vec::new();
    joins
        .iter()
        .any(|join| match constraint_and_side(&join.join_operator) {
            Some((_, JoinConstraint::Using(_))) if join.global => true,
            Some((side, JoinConstraint::Using(columns))) => {
                let names = columns.iter().filter_map(column_name).map(normalize);
                let names: Vec<String> = names.collect();
                let again = names.iter().any(|name| seen.contains(name));
                seen.extend(names);
                again || side.shows_right()
            }
            Some((side, JoinConstraint::Natural)) => side.shows_right(),
            _ => false,
        })
}

/// Which tables' rows a join keeps in any case.
#[derive(Clone, Copy, PartialEq)]
enum JoinSide {
    LeftOrNone,
    Right,
    Both,
}

impl JoinSide {
    fn shows_right(self) -> bool {
        self != JoinSide::LeftOrNone
    }
}

/// What a join compares.
pub(super) fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    constraint_and_side(operator).map(|(_, constraint)| constraint)
}

fn constraint_and_side(operator: &JoinOperator) -> Option<(JoinSide, &JoinConstraint)> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::CrossJoin(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on) => Some((JoinSide::LeftOrNone, on)),
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) => Some((JoinSide::Right, on)),
        JoinOperator::FullOuter(on) => Some((JoinSide::Both, on)),
        _ => None,
    }
}

fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::CrossJoin(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on) => Some(on),
        _ => None,
    }
}

/// Makes ON of the USING of an item's joins.
fn tables(from: &mut TableWithJoins) -> Result<FromItem, SqlError> {
    let mut tables = FromItem::default();
    tables.names.push(qualifier(&from.relation));
    for join in &mut from.joins {
        let right = qualifier(&join.relation);
        let on = match constraint_and_side(&join.join_operator) {
            Some((side, JoinConstraint::Using(columns))) => {
                let on = tables.join(side, columns, &right, join.global)?;
                if join.global && on.is_none() {
                    return Err(rejected("ASOF … USING"));
                }
                on.map(|on| match std::mem::take(&mut join.global) {
                    true => asof::marked(on),
                    false => on,
                })
            }
            Some((_, JoinConstraint::Natural)) => return Err(rejected("NATURAL")),
            Some(_) => None,
            None => return Err(rejected("this kind of join")),
        };
        if let (Some(on), Some(constraint)) = (on, constraint_mut(&mut join.join_operator)) {
            *constraint = JoinConstraint::On(on);
        }
        tables.names.push(right);
    }
    Ok(tables)
}

impl FromItem {
    /// The condition of the next join with the table `right`; `None` if DataFusion finds its columns.
    fn join(
        &mut self,
        side: JoinSide,
        columns: &[ObjectName],
        right: &Option<Vec<Ident>>,
        is_asof: bool,
    ) -> Result<Option<Expr>, SqlError> {
        let mut conditions = Vec::new();
        for (number, column) in columns.iter().filter_map(column_name).enumerate() {
            self.hidden.push((self.names.len(), column.clone()));
            let known = match (self.shared.get(&normalize(column)), &self.names[..]) {
                (Some(shared), _) => Some((shared.table, shared.value.clone())),
                (None, [Some(only)]) => Some((0, qualified(only, column))),
                _ => None,
            };
            let (Some((table, left)), Some(right)) = (known, right) else {
                if side.shows_right() || self.shared.contains_key(&normalize(column)) {
                    return Err(rejected(&format!("USING ({column})")));
                }
                continue;
            };
            let right = qualified(right, column);
            // The last column of an ASOF join is the one that goes on.
            let operator = match is_asof && number + 1 == columns.len() {
                true => ">=",
                false => "=",
            };
            conditions.push(format!("{left} {operator} {right}"));
            let value = match side {
                JoinSide::LeftOrNone => left,
                JoinSide::Right => right,
                JoinSide::Both => parsed(&format!("coalesce({left}, {right})")),
            };
            let name = column.clone();
            self.shared
                .insert(normalize(column), SharedColumn { name, table, value });
        }
        match conditions.len() {
            0 => Ok(None),
            all if all == columns.len() => Ok(Some(parsed(&conditions.join(" AND ")))),
            _ => Err(rejected("USING of columns of several tables")),
        }
    }

    /// What `*` stands for.
    fn all_columns(&self, items: &mut Vec<SelectItem>) -> Result<(), SqlError> {
        for (number, name) in self.names.iter().enumerate() {
            let Some(name) = name else {
                return Err(rejected("* over a table without a name"));
            };
            let hidden = self.hidden.iter().filter(|(table, _)| *table == number);
            let hidden: Vec<_> = hidden
                .map(|(_, column)| ObjectName::from(vec![column.clone()]))
                .collect();
            let shared = self.shared.values().filter(|shared| shared.table == number);
            let replaced: Vec<_> = shared
                .map(|shared| {
                    Box::new(ReplaceSelectElement {
                        expr: shared.value.clone(),
                        column_name: shared.name.clone(),
                        as_keyword: true,
                    })
                })
                .collect();
            let options = WildcardAdditionalOptions {
                opt_exclude: (!hidden.is_empty()).then_some(ExcludeSelectItem::Multiple(hidden)),
                opt_replace: (!replaced.is_empty())
                    .then_some(ReplaceSelectItem { items: replaced }),
                ..Default::default()
            };
            let table = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(name.clone()));
            items.push(SelectItem::QualifiedWildcard(table, options));
        }
        Ok(())
    }
}

/// Puts what it stands for in the place of a shared column.
fn put_shared(expr: &mut Expr, tables: &[FromItem]) -> ControlFlow<()> {
    if let Expr::Identifier(name) = expr {
        let name = normalize(name);
        let mut shared = tables.iter().filter_map(|tables| tables.shared.get(&name));
        if let Some(shared) = shared.next() {
            *expr = shared.value.clone();
        }
    }
    ControlFlow::Continue(())
}

/// What qualifies the columns of a table in FROM.
fn qualifier(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        }
        | TableFactor::Function {
            alias: Some(alias), ..
        } => Some(vec![alias.name.clone()]),
        TableFactor::Table {
            name, args: None, ..
        } => {
            let parts = name.0.iter().map(|part| part.as_ident().cloned());
            parts.collect()
        }
        _ => None,
    }
}

fn column_name(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

fn qualified(table: &[Ident], column: &Ident) -> Expr {
    let mut parts = table.to_vec();
    parts.push(column.clone());
    Expr::CompoundIdentifier(parts)
}

fn parsed(text: &str) -> Expr {
    let parser = Parser::new(&ErisDialect).try_with_sql(text);
    parser
        .and_then(|mut parser| parser.parse_expr())
        .expect("the text is an expression")
}

fn rejected(what: &str) -> SqlError {
    SqlError::not_supported(format!("{what}, in joins that share a column")).with_hint(Some(
        "join them by ON, and say coalesce(a.k, b.k) for the column",
    ))
}
