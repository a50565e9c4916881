//! PIVOT and UNPIVOT, written out as groups and as lists.
//!
//! ```text
//! t PIVOT (sum(n) FOR year IN (2000, 2010) GROUP BY land)
//!
//! SELECT "g1" AS land, first_value("v1") FILTER (WHERE "o1" = 2000) AS "2000", … AS "2010"
//! FROM (SELECT land AS "g1", year AS "o1", sum(n) AS "v1" FROM t GROUP BY land, year) GROUP BY "g1"
//!
//! t UNPIVOT (n FOR month IN (jan, feb))
//!
//! SELECT t.id, unnest(['jan', 'feb']) AS month, unnest([jan, feb]) AS n FROM t      without NULLs
//! ```
//!
//! The statements, and what the parser does not know of the clauses, arrive as calls of functions with names that
//! nobody else uses: see [`pivot_tokens`](super::pivot_tokens).

mod unpivot;

use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::own::query_of;
use crate::text::questions::{Answer, KnownColumn, Question};
use datafusion::sql::sqlparser::ast::{
    Expr, ExprWithAlias, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArguments, Ident, PivotValueSource, Query, TableAlias, TableFactor, Value, Visitor,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, walk, walk_mut};
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use unpivot::unpivoted;

/// The values of a column of which those follow that become columns.
pub(super) const ON: &str = "pivot on(";
/// What is computed for each of them.
pub(super) const USING: &str = "pivot using(";
/// What the rows that remain are grouped by.
pub(super) const GROUP: &str = "pivot group(";

/// More columns are no table that anybody reads.
const MOST: usize = 1_000;

/// Counts of no rows are 0.
const COUNTS: [&str; 4] = ["count", "count_if", "countif", "approx_count_distinct"];

/// What has to be known of a table first.
pub(super) fn question(table: &TableFactor) -> Result<Option<Question>, SqlError> {
    match table {
        TableFactor::Pivot { table, .. } if !is_named(table) => Err(unnamed("PIVOT")),
        TableFactor::Unpivot { table, .. } if !is_named(table) => Err(unnamed("UNPIVOT")),
        TableFactor::Pivot {
            table: source,
            default_on_null,
            ..
        } => {
            if default_on_null.is_some() {
                return Err(SqlError::not_supported("PIVOT … DEFAULT ON NULL"));
            }
            let pivot = Pivot::of(table)?;
            Ok(Some(match pivot.on.iter().find(|on| on.values.is_none()) {
                Some(on) => Question::Values(values_of(&on.expr, source)),
                None => Question::Columns(columns_of(source)),
            }))
        }
        TableFactor::Unpivot { table, .. } => Ok(Some(Question::Columns(columns_of(table)))),
        _ => Ok(None),
    }
}

/// Writes it out.
pub(super) fn settle(table: &mut TableFactor, answer: Answer) -> Result<(), SqlError> {
    match (&mut *table, answer) {
        (TableFactor::Pivot { value_source, .. }, Answer::Values(values)) => {
            give_values(value_source, values)
        }
        (TableFactor::Pivot { .. }, Answer::Columns(columns)) => {
            let pivot = Pivot::of(table)?;
            *table = pivot.written_out(table, &columns)?;
            Ok(())
        }
        (TableFactor::Unpivot { .. }, Answer::Columns(columns)) => {
            *table = unpivoted(table, &columns)?;
            Ok(())
        }
        _ => unreachable!("it asked for something else"),
    }
}

/// Whether a table can be put into another query.
fn is_named(table: &TableFactor) -> bool {
    matches!(
        table,
        TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::Function { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
    )
}

fn unnamed(what: &str) -> SqlError {
    SqlError::not_supported(format!("{what} of a join")).with_hint(Some(format!(
        "put the join into a query: FROM (SELECT … FROM … JOIN …) {what} …"
    )))
}

/// A column whose values become columns.
struct On {
    expr: Expr,
    /// Each with the name that it gives a column; `None` if they are to be found.
    values: Option<Vec<(Expr, String)>>,
}

struct Pivot {
    on: Vec<On>,
    /// Each with its alias.
    using: Vec<(Expr, Option<String>)>,
    group: Option<Vec<Expr>>,
}

impl Pivot {
    fn of(table: &TableFactor) -> Result<Self, SqlError> {
        let TableFactor::Pivot {
            aggregate_functions,
            value_column,
            value_source,
            ..
        } = table
        else {
            unreachable!("it is a PIVOT");
        };
        let PivotValueSource::List(items) = value_source else {
            return Err(SqlError::not_supported("PIVOT … IN (ANY) or (SELECT …)")
                .with_hint(Some("PIVOT t ON a USING sum(b) finds the values by itself")));
        };
        let mut pivot = Pivot {
            on: Vec::new(),
            using: Vec::new(),
            group: None,
        };
        for item in items {
            let Some((name, arguments)) = marked(&item.expr) else {
                continue;
            };
            match name {
                ON => {
                    let mut arguments = arguments.into_iter();
                    let (expr, _) = arguments.next().ok_or_else(nothing_on)?;
                    let values = arguments.map(|(expr, alias)| {
                        let name = alias.unwrap_or_else(|| written(&expr));
                        (expr, name)
                    });
                    let values: Vec<_> = values.collect();
                    pivot.on.push(On {
                        expr,
                        values: (!values.is_empty()).then_some(values),
                    });
                }
                USING => pivot.using.extend(arguments),
                _ => {
                    let group = arguments.into_iter().map(|(expr, _)| expr);
                    pivot.group = Some(group.collect());
                }
            }
        }
        // The clause as the parser knows it.
        if pivot.on.is_empty() {
            let [column] = &value_column[..] else {
                return Err(SqlError::not_supported("PIVOT … FOR (several columns)"));
            };
            let values = items.iter().map(|item| {
                let alias = item.alias.as_ref().map(normalize);
                (
                    item.expr.clone(),
                    alias.unwrap_or_else(|| written(&item.expr)),
                )
            });
            pivot.on.push(On {
                expr: column.clone(),
                values: Some(values.collect()),
            });
        }
        if pivot.using.is_empty() {
            let given = aggregate_functions.iter();
            let given = given.map(|item| (item.expr.clone(), item.alias.as_ref().map(normalize)));
            pivot.using.extend(given);
        }
        Ok(pivot)
    }

    fn written_out(
        &self,
        table: &TableFactor,
        columns: &[KnownColumn],
    ) -> Result<TableFactor, SqlError> {
        let TableFactor::Pivot {
            table: source,
            alias,
            ..
        } = table
        else {
            unreachable!("it is a PIVOT");
        };
        let group: Vec<(String, String)> = match &self.group {
            Some(exprs) => exprs
                .iter()
                .map(|expr| (expr.to_string(), name_of(expr)))
                .collect(),
            None => {
                let mut used = HashSet::new();
                self.on.iter().for_each(|on| mention(&on.expr, &mut used));
                self.using
                    .iter()
                    .for_each(|(expr, _)| mention(expr, &mut used));
                let rest = columns.iter().filter(|column| !used.contains(&column.name));
                rest.map(|column| (column.reference().to_string(), column.name.clone()))
                    .collect()
            }
        };
        let mut inner = Vec::new();
        let mut keys = Vec::new();
        let mut outer = Vec::new();
        for (number, (expr, name)) in group.iter().enumerate() {
            inner.push(format!("{expr} AS \"group({number}\""));
            keys.push(expr.clone());
            outer.push(format!("\"group({number}\" AS {}", quoted(name)));
        }
        for (number, on) in self.on.iter().enumerate() {
            inner.push(format!("{} AS \"on({number}\"", on.expr));
            keys.push(on.expr.to_string());
        }
        for (number, (expr, _)) in self.using.iter().enumerate() {
            inner.push(format!("{expr} AS \"value({number}\""));
        }
        let combinations = self.combinations()?;
        for (conditions, name) in &combinations {
            for (number, (expr, alias)) in self.using.iter().enumerate() {
                let value = format!("first_value(\"value({number}\") FILTER (WHERE {conditions})");
                let value = match expr {
                    expr if is_count(expr) => format!("coalesce({value}, 0)"),
                    Expr::Function(function) if !is_scalar(function) => value,
                    // Of no rows, it need not be NULL.
                    expr => {
                        format!("coalesce({value}, (SELECT {expr} FROM {SOURCE} WHERE FALSE))")
                    }
                };
                let name = match alias {
                    Some(alias) => format!("{name}_{alias}"),
                    None if self.using.len() > 1 => format!("{name}_{expr}"),
                    None => name.clone(),
                };
                outer.push(format!("{value} AS {}", quoted(&name)));
            }
        }
        if outer.is_empty() {
            let message = "PIVOT finds no value, and no column is left".to_owned();
            return Err(SqlError::invalid(Mistake::UndefinedColumn, message));
        }
        let groups: Vec<_> = (0..group.len()).map(|n| format!("\"group({n}\"")).collect();
        let mut text = format!(
            "SELECT {} FROM (SELECT {} FROM {SOURCE} GROUP BY {}) AS \"groups(\"",
            outer.join(", "),
            inner.join(", "),
            keys.join(", "),
        );
        if !groups.is_empty() {
            let _ = write!(text, " GROUP BY {}", groups.join(", "));
        }
        Ok(derived(&text, source, alias.clone()))
    }

    /// Conditions that tell the values of a column, and its name.
    fn combinations(&self) -> Result<Vec<(String, String)>, SqlError> {
        let mut all = vec![(String::new(), String::new())];
        for (number, on) in self.on.iter().enumerate() {
            let values = on.values.as_deref().unwrap_or_default();
            if all.len() * values.len() > MOST {
                let message = format!("PIVOT makes more than {MOST} columns");
                return Err(SqlError::invalid(Mistake::TooComplex, message)
                    .with_hint(Some("name the values: ON a IN ('x', 'y')")));
            }
            let longer = all.iter().flat_map(|(conditions, name)| {
                values.iter().map(move |(value, of_value)| {
                    let column = format!("\"on({number}\"");
                    let condition = match value {
                        Expr::Value(null) if null.value == Value::Null => {
                            format!("{column} IS NULL")
                        }
                        value => match found(value) {
                            Some(text) => format!("CAST({column} AS VARCHAR) = {text}"),
                            None => format!("{column} = {value}"),
                        },
                    };
                    match number {
                        0 => (condition, of_value.clone()),
                        _ => (
                            format!("{conditions} AND {condition}"),
                            format!("{name}_{of_value}"),
                        ),
                    }
                })
            });
            all = longer.collect();
        }
        Ok(all)
    }
}

/// Values that were found are told apart from those that are written by a sign before them.
const FOUND: &str = "pivot found(";

fn found(value: &Expr) -> Option<Expr> {
    match marked(value) {
        Some((FOUND, arguments)) => arguments.into_iter().next().map(|(text, _)| text),
        _ => None,
    }
}

/// Gives the first column without values those that were found.
fn give_values(source: &mut PivotValueSource, values: Vec<String>) -> Result<(), SqlError> {
    let PivotValueSource::List(items) = source else {
        unreachable!("it has a list of calls");
    };
    if values.len() > MOST {
        let message = format!("PIVOT finds more than {MOST} values");
        return Err(SqlError::invalid(Mistake::TooComplex, message)
            .with_hint(Some("name the values: ON a IN ('x', 'y')")));
    }
    let without = |item: &&mut ExprWithAlias| {
        marked(&item.expr).is_some_and(|(name, arguments)| name == ON && arguments.len() == 1)
    };
    let item = items.iter_mut().find(without);
    if let Some(item) = item
        && let Expr::Function(Function {
            args: FunctionArguments::List(list),
            ..
        }) = &mut item.expr
    {
        let text = |text: &String| Expr::value(Value::SingleQuotedString(text.clone()));
        if values.is_empty() {
            let message = "PIVOT finds no value in the column that it is ON".to_owned();
            return Err(SqlError::invalid(Mistake::UndefinedColumn, message)
                .with_hint(Some("name the values: ON a IN ('x', 'y')")));
        }
        let named = values.iter().map(|value| FunctionArg::Named {
            name: Ident::with_quote('"', value.clone()),
            arg: FunctionArgExpr::Expr(call(FOUND, text(value))),
            operator: FunctionArgOperator::Assignment,
        });
        list.args.extend(named);
    }
    Ok(())
}

fn call(name: &str, argument: Expr) -> Expr {
    let text = format!("\"{name}\"({argument})");
    let parser = Parser::new(&ErisDialect).try_with_sql(&text);
    let parsed = parser.and_then(|mut parser| parser.parse_expr());
    parsed.expect("it is a call")
}

/// An argument of a call, and its name.
type Argument = (Expr, Option<String>);

/// The name and the arguments of a call that only this module knows.
fn marked(expr: &Expr) -> Option<(&'static str, Vec<Argument>)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let [name] = &function.name.0[..] else {
        return None;
    };
    let name = name.as_ident()?;
    let known = [ON, USING, GROUP, FOUND];
    let name = known.into_iter().find(|known| *known == name.value)?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let arguments = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some((expr.clone(), None)),
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(expr),
            ..
        } => Some((expr.clone(), Some(normalize(name)))),
        _ => None,
    });
    Some((name, arguments.collect()))
}

fn nothing_on() -> SqlError {
    SqlError::invalid(Mistake::Syntax, "PIVOT is ON no column")
}

/// Functions whose value of no rows is not NULL, although that of an aggregate in them is.
const SCALAR: [&str; 5] = ["coalesce", "ifnull", "nvl", "if", "concat"];

/// The values of a column, as strings, in the order of the column.
fn values_of(on: &Expr, source: &TableFactor) -> Query {
    let text = format!(
        "SELECT CAST(\"on(\" AS VARCHAR) FROM (SELECT DISTINCT {on} AS \"on(\" FROM {SOURCE} \
         WHERE {on} IS NOT NULL) AS \"values(\" ORDER BY \"on(\" LIMIT {}",
        MOST + 1
    );
    let mut query = query_of(&text);
    put_source(&mut query, source);
    query
}

/// The query of all columns of a table.
pub(super) fn columns_of(source: &TableFactor) -> Query {
    let mut query = query_of(&format!("SELECT * FROM {SOURCE}"));
    put_source(&mut query, source);
    query
}

/// Where the table stands in the texts above.
const SOURCE: &str = "\"source(\"";

/// A query with the table in its place, as a table.
fn derived(text: &str, source: &TableFactor, alias: Option<TableAlias>) -> TableFactor {
    let mut query = query_of(text);
    put_source(&mut query, source);
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias,
        sample: None,
    }
}

fn put_source(query: &mut Query, source: &TableFactor) {
    struct Put<'a>(&'a TableFactor);
    impl VisitorMut for Put<'_> {
        type Break = ();

        fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
            let is_source = match &*table {
                TableFactor::Table { name, .. } => name.to_string() == SOURCE,
                _ => false,
            };
            if is_source {
                *table = self.0.clone();
            }
            ControlFlow::Continue(())
        }
    }
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Put(source));
}

/// The names of columns in an expression.
fn mention(expr: &Expr, names: &mut HashSet<String>) {
    struct Mentioned<'a>(&'a mut HashSet<String>);
    impl Visitor for Mentioned<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(name) => {
                    self.0.insert(normalize(name));
                }
                Expr::CompoundIdentifier(parts) => self.0.extend(parts.last().map(normalize)),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let _ = walk(expr, &mut Mentioned(names));
}

/// What a column is called that shows an expression.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => normalize(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(normalize).unwrap_or_default(),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => name_of(inner),
        other => other.to_string(),
    }
}

/// What a column is called that a value becomes.
fn written(value: &Expr) -> String {
    match value {
        Expr::Value(constant) => match &constant.value {
            Value::SingleQuotedString(text) => text.clone(),
            Value::Null => "NULL".to_owned(),
            Value::Number(digits, _) => digits.clone(),
            Value::Boolean(value) => value.to_string(),
            other => other.to_string(),
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

/// Whether a function is one of those that are written around aggregates.
fn is_scalar(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    SCALAR.contains(&name.as_str())
}

fn is_count(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            COUNTS.contains(&name.as_str())
        }
        _ => false,
    }
}

fn quoted(name: &str) -> String {
    Ident::with_quote('"', name).to_string()
}
