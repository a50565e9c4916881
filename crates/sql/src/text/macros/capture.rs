//! An argument means what it means where it is written.
//!
//! ```text
//! CREATE MACRO best(k) AS (SELECT max(x) FROM item WHERE item.key = k)
//! SELECT best(key) FROM sale      put in as it is, `key` would be item's      so it becomes sale.key
//! ```
//!
//! A column without a table gets the table's name, where FROM tells which one it is. What may still mean another column
//! within the macro is rejected.

use super::definition::{Body, Definition, Form};
use super::expand::Macros;
use super::parse::lambda_parameters;
use crate::error::{Mistake, SqlError};
use crate::text::identifier::{last_name, normalize};
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins, UpdateTableFromKind, Visitor,
};
use eris_syntax::{Tree, expressions, own_expressions, own_expressions_mut, walk};
use std::collections::HashSet;
use std::ops::ControlFlow;

impl Body {
    /// Whether names in an argument can mean something else within: there are tables, or lambdas.
    pub(super) fn can_capture(&self) -> bool {
        match self {
            Body::Scalar(expr) => Tables::of(&**expr).any || !lambda_parameters(&**expr).is_empty(),
            Body::Table(_) => true,
        }
    }
}

/// The tables around a call.
#[derive(Default)]
pub(super) struct Around {
    /// Of each SELECT, outermost first: what its tables are called, and which they are; `None` for what is no table.
    selects: Vec<Vec<Option<(Ident, ObjectName)>>>,
    /// The names of queries in WITH, which hide tables.
    with: HashSet<String>,
}

impl Around {
    pub fn enter_query(&mut self, query: &Query) {
        let names = query.with.iter().flat_map(|with| &with.cte_tables);
        self.with
            .extend(names.map(|table| normalize(&table.alias.name)));
        // For ORDER BY, which stands outside of the SELECT.
        match &*query.body {
            SetExpr::Select(select) => self.enter_select(select),
            _ => self.selects.push(Vec::new()),
        }
    }

    /// The table that UPDATE or DELETE changes, and what it reads beside.
    pub fn enter_statement(&mut self, statement: &Statement) {
        let tables: Vec<&TableWithJoins> = match statement {
            Statement::Update(update) => {
                let from = match &update.from {
                    Some(
                        UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                    ) => &from[..],
                    None => &[],
                };
                from.iter().chain([&update.table]).collect()
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                from.iter().chain(delete.using.iter().flatten()).collect()
            }
            _ => return,
        };
        self.enter(tables.into_iter());
    }

    pub fn leave(&mut self) {
        self.selects.pop();
    }

    pub fn enter_select(&mut self, select: &Select) {
        self.enter(select.from.iter());
    }

    fn enter<'a>(&mut self, from: impl Iterator<Item = &'a TableWithJoins>) {
        let tables = from.flat_map(|from| {
            let joined = from.joins.iter().map(|join| &join.relation);
            std::iter::once(&from.relation).chain(joined)
        });
        let tables = tables.map(|table| self.named(table)).collect();
        self.selects.push(tables);
    }

    fn named(&self, table: &TableFactor) -> Option<(Ident, ObjectName)> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = table
        else {
            return None;
        };
        if name.0.len() == 1 && self.with.contains(&last_name(name)?) {
            return None;
        }
        let called = match alias {
            Some(alias) if alias.columns.is_empty() => alias.name.clone(),
            Some(_) => return None,
            None => name.0.last()?.as_ident()?.clone(),
        };
        Some((called, name.clone()))
    }

    /// Gives the columns of an argument the names of their tables, as far as these can be told.
    pub fn qualify(
        &self,
        arg: &mut Expr,
        columns: impl Fn(&ObjectName) -> Option<HashSet<String>>,
    ) {
        if !lambda_parameters(arg).is_empty() {
            return;
        }
        // The visitor never breaks off.
        let _ = own_expressions_mut(arg, |expr| {
            if let Expr::Identifier(name) = expr
                && let Some(table) = self.table_of(name, &columns)
            {
                *expr = Expr::CompoundIdentifier(vec![table, name.clone()]);
            }
            ControlFlow::<()>::Continue(())
        });
    }

    fn table_of(
        &self,
        column: &Ident,
        columns: impl Fn(&ObjectName) -> Option<HashSet<String>>,
    ) -> Option<Ident> {
        let column = normalize(column);
        for tables in self.selects.iter().rev() {
            let mut found = None;
            for table in tables {
                let (called, name) = table.as_ref()?;
                if columns(name)?.contains(&column) && found.replace(called).is_some() {
                    return None;
                }
            }
            if found.is_some() {
                return found.cloned();
            }
        }
        None
    }
}

/// The columns that an argument names.
#[derive(Default)]
pub(super) struct Mentioned {
    /// Those without a table.
    plain: HashSet<String>,
    /// The tables, or structs, of the others.
    tables: HashSet<String>,
}

impl Mentioned {
    /// Columns that a subquery of the argument has itself are none of the caller's.
    pub fn by(arg: &Expr, macros: &dyn Macros, schema: Option<&str>) -> Self {
        let mut mentioned = Mentioned::default();
        let own = Tables::of(arg);
        let lambdas = lambda_parameters(arg);
        // The visitors never break off.
        let _ = own_expressions(arg, |expr| mentioned.note(expr));
        let mut within = Mentioned::default();
        let _ = expressions(arg, |expr| within.note(expr));
        let columns = own.columns(macros, schema);
        within.plain.retain(|name| match &columns {
            Some(columns) => !columns.contains(name),
            None => true,
        });
        within.tables.retain(|name| !own.names.contains(name));
        mentioned.add(&within);
        mentioned.plain.retain(|name| !lambdas.contains(name));
        mentioned
    }

    fn note(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => drop(self.plain.insert(normalize(name))),
            Expr::CompoundIdentifier(path) => drop(self.tables.insert(normalize(&path[0]))),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Adds those of another argument, which is in this one.
    pub fn add(&mut self, other: &Mentioned) {
        self.plain.extend(other.plain.iter().cloned());
        self.tables.extend(other.tables.iter().cloned());
    }
}

/// Rejects arguments that may mean something else within a body.
pub(super) fn check<'a>(
    called: &Definition,
    body: &Body,
    arguments: impl Iterator<Item = &'a Mentioned>,
    macros: &dyn Macros,
) -> Result<(), SqlError> {
    let mut all = Mentioned::default();
    arguments.for_each(|argument| all.add(argument));
    if all.plain.is_empty() && all.tables.is_empty() {
        return Ok(());
    }
    let (tables, lambdas) = match body {
        Body::Scalar(expr) => (Tables::of(&**expr), lambda_parameters(&**expr)),
        Body::Table(query) => (Tables::of(&**query), lambda_parameters(&**query)),
    };
    if !tables.any && lambdas.is_empty() {
        return Ok(());
    }
    let columns = tables.columns(macros, Some(&called.schema));
    let is_within = |name: &String| match &columns {
        Some(columns) => columns.contains(name) || lambdas.contains(name),
        None => true,
    };
    let name = &called.name;
    if let Some(column) = first(&all.plain, is_within) {
        let message =
            format!("argument \"{column}\" of macro \"{name}\" may mean a column within the macro");
        let hint = format!("write it with its table: table.{column}");
        return Err(SqlError::invalid(Mistake::AmbiguousColumn, message).with_hint(Some(hint)));
    }
    if let Some(table) = first(&all.tables, |name| tables.names.contains(name)) {
        let message =
            format!("an argument of macro \"{name}\" names \"{table}\", a table within the macro");
        let hint = format!("give the table another name: FROM {table} AS other");
        return Err(SqlError::invalid(Mistake::DuplicateAlias, message).with_hint(Some(hint)));
    }
    Ok(())
}

/// The first name by the alphabet, so that the message is always the same.
fn first(names: &HashSet<String>, is_wrong: impl Fn(&String) -> bool) -> Option<&String> {
    names.iter().filter(|name| is_wrong(name)).min()
}

/// The first column within the subqueries of a form that neither these have nor a parameter names.
pub(crate) fn unknown_column(form: &Form, macros: &dyn Macros, schema: &str) -> Option<Ident> {
    match &form.body {
        Body::Scalar(expr) => unknown_in(&**expr, form, macros, schema),
        Body::Table(query) => unknown_in(&**query, form, macros, schema),
    }
}

fn unknown_in(tree: &impl Tree, form: &Form, macros: &dyn Macros, schema: &str) -> Option<Ident> {
    let tables = Tables::of(tree);
    let lambdas = lambda_parameters(tree);
    let columns = tables.columns(macros, Some(schema))?;
    let is_known = |name: &Ident| {
        let plain = normalize(name);
        form.position(name).is_some()
            || columns.contains(&plain)
            || tables.names.contains(&plain)
            || lambdas.contains(&plain)
    };
    let found = expressions(tree, |expr| {
        let name = match expr {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(path) => &path[0],
            _ => return ControlFlow::Continue(()),
        };
        match is_known(name) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(name.clone()),
        }
    });
    found.break_value()
}

/// What the tables of a tree are called.
pub(super) fn relation_names(tree: &impl Tree) -> HashSet<String> {
    Tables::of(tree).names
}

/// The tables of a tree.
#[derive(Default)]
struct Tables {
    any: bool,
    /// What they are called.
    names: HashSet<String>,
    /// Names that lists and aliases give to columns.
    given: HashSet<String>,
    relations: Vec<ObjectName>,
    /// The names of queries in WITH.
    with: HashSet<String>,
    /// There is a function whose columns nobody knows here.
    unknown: bool,
}

impl Tables {
    fn of(tree: &impl Tree) -> Self {
        let mut tables = Tables::default();
        // The visitor never breaks off.
        let _ = walk(tree, &mut tables);
        tables
    }

    /// The names of all columns; `None` if they cannot be told.
    fn columns(&self, macros: &dyn Macros, schema: Option<&str>) -> Option<HashSet<String>> {
        let mut columns = self.given.clone();
        for relation in &self.relations {
            if relation.0.len() == 1 && self.with.contains(&last_name(relation)?) {
                continue;
            }
            columns.extend(macros.columns(relation, schema)?);
        }
        (!self.unknown).then_some(columns)
    }

    /// The columns that VALUES makes.
    fn values(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.content.len());
                let names = (1..=width).map(|number| format!("column{number}"));
                self.given.extend(names);
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.values(left);
                self.values(right);
            }
            _ => {}
        }
    }

    fn alias(&mut self, alias: Option<&TableAlias>) {
        if let Some(alias) = alias {
            self.names.insert(normalize(&alias.name));
            // A function's only column is called as the table.
            self.given.insert(normalize(&alias.name));
            let columns = alias.columns.iter();
            self.given
                .extend(columns.map(|column| normalize(&column.name)));
        }
    }
}

/// Functions in FROM whose column is called as they are.
const OF_ONE_COLUMN: [&str; 3] = ["generate_series", "range", "unnest"];

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.with.insert(normalize(&table.alias.name));
            self.alias(Some(&table.alias));
        }
        self.values(&query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    self.given.insert(normalize(alias));
                }
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
                    self.given.extend(path.last().map(normalize));
                }
                SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { .. }) => self.unknown = true,
                // A struct becomes the columns of its fields.
                SelectItem::UnnamedExpr(Expr::Function(function)) => {
                    let name = last_name(&function.name);
                    self.unknown |= name.as_deref() == Some("unnest");
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.any = true;
        match table {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                self.relations.push(name.clone());
                if alias.is_none() {
                    self.names.extend(last_name(name));
                }
                self.alias(alias.as_ref());
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                let function = last_name(name).unwrap_or_default();
                self.unknown |= !OF_ONE_COLUMN.contains(&function.as_str());
                self.names.insert(function.clone());
                self.given.insert(function);
                self.alias(alias.as_ref());
            }
            TableFactor::Derived { alias, .. } => self.alias(alias.as_ref()),
            TableFactor::UNNEST { alias, .. } => {
                self.names.insert("unnest".into());
                self.given.insert("unnest".into());
                self.alias(alias.as_ref());
            }
            TableFactor::NestedJoin { alias, .. } => self.alias(alias.as_ref()),
            // PIVOT and others make columns of values.
            _ => self.unknown = true,
        }
        ControlFlow::Continue(())
    }
}
