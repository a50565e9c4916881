//! What other databases' users write and DataFusion knows under another name, or as a longer expression.
//!
//! ```text
//! year(d)                    date_part('year', d)
//! if(c, a, b)                CASE WHEN c THEN a ELSE b END
//! x LIKE 'a!%' ESCAPE '!'    x LIKE 'a\%'
//! FETCH FIRST 3 ROWS ONLY    LIMIT 3
//! ```
//!
//! The names of the query's columns are taken before, so they stay as written.

mod aggregates;
mod functions;

use crate::text::identifier::{last_name, normalize};
use crate::text::intervals;
use crate::text::named_windows;
use crate::text::parse::STRUCT;
use crate::text::values;
use aggregates::{
    ANY, aggregate_of_list, is_sorted, with_comma, without_constant_keys, without_null,
};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, DateTimeField, ExcludeSelectItem, Expr, Fetch, Function,
    FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, LimitClause, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Value,
    ValueWithSpan, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_exact::REPLACED;
use eris_syntax::{ErisDialect, expressions, expressions_mut, walk_mut};
use functions::{EXPRESSIONS, NAMES, OF_LISTS, SAME};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// Whether a function is one under another name, or an expression over others.
pub(crate) fn knows(name: &str) -> bool {
    let others = NAMES.iter().chain(&SAME).chain(&EXPRESSIONS);
    let mut names = others.map(|(other, _)| *other).chain(AGGREGATED);
    names.any(|other| other == name) || LISTED.contains_key(name)
}

static TEMPLATES: LazyLock<HashMap<(&str, usize), Expr>> = LazyLock::new(|| {
    let parsed = EXPRESSIONS.iter().map(|(name, text)| {
        let arguments = (1..=6)
            .rev()
            .find(|number| text.contains(&format!("${number}")));
        ((*name, arguments.unwrap_or(0)), template(text))
    });
    parsed.collect()
});

/// Aggregates of a list's elements as queries over them.
static LISTED: LazyLock<HashMap<String, Expr>> = LazyLock::new(|| {
    let aggregates = OF_LISTS.iter().map(|aggregate| {
        let known = renamed(aggregate).unwrap_or(aggregate);
        let query = template(&format!(
            "CASE WHEN $1 IS NOT NULL THEN (SELECT {known}(x) FROM unnest($1) AS t (x)) END"
        ));
        (format!("list_{aggregate}"), query)
    });
    aggregates.collect()
});

static REPLACEMENT: LazyLock<Expr> = LazyLock::new(|| template(&format!("{REPLACED}($1, $2)")));

fn template(text: &str) -> Expr {
    let parser = Parser::new(&ErisDialect).try_with_sql(text);
    let expr = parser.and_then(|mut parser| parser.parse_expr());
    expr.expect("a template is an expression")
}

/// Makes `* REPLACE (value AS column)` name the column. Columns of USING may have several tables, so this comes before
/// they are written out.
pub(crate) fn name_replaced(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Replacing);
}

struct Replacing;

impl VisitorMut for Replacing {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(replace);
        ControlFlow::Continue(())
    }
}

/// Writes a query's shorthands out.
pub(crate) fn write_out(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Shorthands);
}

struct Shorthands;

impl VisitorMut for Shorthands {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        fetch_first(query);
        values::write_out(&mut query.body);
        ControlFlow::Continue(())
    }

    /// The planner compares names of table functions as they are.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name,
            args: Some(_),
            ..
        } = factor
            && let [ObjectNamePart::Identifier(name)] = &mut name.0[..]
        {
            name.value = normalize(name);
        }
        ControlFlow::Continue(())
    }

    /// Behind the queries within, whose windows may have the same names.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        named_windows::inline(select);
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by
            && !keys.is_empty()
        {
            *keys = std::mem::take(keys).into_iter().flat_map(parts).collect();
            // `GROUP BY ()`: all rows are one group.
            if keys.is_empty() {
                keys.push(Expr::GroupingSets(vec![Vec::new()]));
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let longer = match expr {
            Expr::Function(function) => call(function),
            Expr::CompoundFieldAccess { access_chain, .. } => {
                access_chain.iter_mut().for_each(field_of_struct);
                None
            }
            Expr::Extract { field, expr, .. } => extract(field, expr),
            Expr::Interval(interval) => intervals::written_out(interval),
            Expr::Like {
                pattern,
                escape_char,
                ..
            }
            | Expr::ILike {
                pattern,
                escape_char,
                ..
            } => {
                escape(pattern, escape_char);
                None
            }
            _ => None,
        };
        if let Some(longer) = longer {
            *expr = longer;
        }
        ControlFlow::Continue(())
    }
}

/// The columns of `GROUP BY (a, b)`, which the planner takes for one value.
fn parts(key: Expr) -> Vec<Expr> {
    match key {
        Expr::Tuple(parts) => parts,
        other => vec![other],
    }
}

fn replace(item: &mut SelectItem) {
    let (table, options) = match item {
        SelectItem::Wildcard(options) => (Vec::new(), options),
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(name),
            options,
        ) => {
            let parts = name.0.iter().filter_map(|part| part.as_ident());
            (parts.cloned().collect(), options)
        }
        _ => return,
    };
    // The planner compares names as they are.
    match &mut options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => fold(name),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().for_each(fold),
        None => {}
    }
    let replaced = options.opt_replace.iter_mut();
    for element in replaced.flat_map(|replace| &mut replace.items) {
        let name = folded(&element.column_name);
        element.column_name = name.clone();
        let column = match table.is_empty() {
            true => Expr::Identifier(name),
            false => Expr::CompoundIdentifier(table.iter().cloned().chain([name]).collect()),
        };
        let value = std::mem::replace(&mut element.expr, column.clone());
        element.expr = fill(&REPLACEMENT, &[value, column]);
    }
}

/// A name of one part in the case that it means.
fn fold(name: &mut ObjectName) {
    if let [part] = &name.0[..]
        && let Some(part) = part.as_ident()
    {
        *name = ObjectName::from(vec![folded(part)]);
    }
}

fn folded(name: &Ident) -> Ident {
    Ident {
        value: normalize(name),
        quote_style: Some('"'),
        span: name.span,
    }
}

/// `FETCH FIRST n ROWS ONLY` as LIMIT; with PERCENT or TIES it is left, to be rejected.
fn fetch_first(query: &mut Query) {
    let rows = match &query.fetch {
        Some(Fetch {
            with_ties: false,
            percent: false,
            quantity,
        }) => match quantity {
            Some(quantity) => quantity.clone(),
            None => Expr::value(Value::Number("1".into(), false)),
        },
        _ => return,
    };
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset {
            limit: limit @ None,
            ..
        }) => *limit = Some(rows),
        clause @ None => {
            *clause = Some(LimitClause::LimitOffset {
                limit: Some(rows),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        _ => return,
    }
    query.fetch = None;
}

/// A function under its own name, or the expression that it stands for.
fn call(function: &mut Function) -> Option<Expr> {
    without_constant_keys(function);
    let [part] = &function.name.0[..] else {
        return None;
    };
    let name = part.as_ident().filter(|name| name.quote_style.is_none())?;
    let span = name.span;
    let mut name = name.value.to_lowercase();
    if AGGREGATED.contains(&name.as_str())
        && let Some(of_list) = aggregate_of_list(function)
    {
        name = of_list;
    }
    if name == ANY && is_sorted(function) {
        name = "first".to_owned();
        without_null(function);
    }
    if let Some(rename) = renamed(&name) {
        let mut known = Ident::new(rename);
        known.span = span;
        function.name = ObjectName::from(vec![known]);
        if rename == STRINGS {
            with_comma(function);
        }
        return None;
    }
    if let Some((_, same)) = SAME.iter().find(|(other, _)| *other == name) {
        name = (*same).to_owned();
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return None;
    };
    if name == STRUCT {
        list.args = std::mem::take(&mut list.args)
            .into_iter()
            .flat_map(named)
            .collect();
        function.name = ObjectName::from(vec![Ident::new("named_struct")]);
        return None;
    }
    let is_plain = list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty();
    if !is_plain {
        return None;
    }
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let arguments = arguments.collect::<Option<Vec<_>>>()?;
    if QUANTILES.contains(&name.as_str())
        && let [value, Expr::Array(fractions)] = &arguments[..]
    {
        return Some(quantiles(function, &name, value, fractions));
    }
    let template = TEMPLATES
        .get(&(name.as_str(), arguments.len()))
        .or_else(|| LISTED.get(name.as_str()).filter(|_| arguments.len() == 1))?;
    Some(fill(template, &arguments))
}

/// The name of a function in whose place its argument would stand twice, though it has another value each time.
pub(super) fn repeats(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let name = last_name(&function.name)?;
    let same = SAME.iter().find(|(other, _)| *other == name);
    let name = same.map_or(name.as_str(), |(_, name)| name);
    let template = TEMPLATES
        .get(&(name, list.args.len()))
        .or_else(|| LISTED.get(name))?;
    let is_repeated = |number: usize| {
        let mut times = 0;
        let found = expressions(template, |part| {
            times += usize::from(argument_of(part) == Some(number));
            match times {
                0 | 1 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        found.is_break()
    };
    let mut arguments = (1..).zip(&list.args);
    let found = arguments.any(|(number, argument)| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
            is_volatile(expr) && is_repeated(number)
        }
        _ => false,
    });
    found.then(|| name.to_owned())
}

/// Whether an expression has another value each time, as far as its text tells.
fn is_volatile(expr: &Expr) -> bool {
    let found = expressions(expr, |part| match part {
        Expr::Function(function) => match last_name(&function.name) {
            Some(name) if VOLATILE.contains(&name.as_str()) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

const VOLATILE: [&str; 6] = [
    "gen_random_uuid",
    "nextval",
    "random",
    "setval",
    "uuid",
    "uuidv4",
];

/// Aggregates of strings, which stand beside each other with a comma unless something else is said.
const STRINGS: &str = "string_agg";

/// Functions of a list and the name of an aggregate.
const AGGREGATED: [&str; 4] = [
    "list_aggregate",
    "list_aggr",
    "array_aggregate",
    "array_aggr",
];

/// Aggregates that take one fraction or several.
const QUANTILES: [&str; 3] = ["quantile_disc", "quantile_cont", "approx_percentile_cont"];

fn renamed(name: &str) -> Option<&'static str> {
    match name {
        STRINGS => Some(STRINGS),
        name => NAMES
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, known)| *known),
    }
}

/// One quantile for each fraction of a list.
fn quantiles(function: &Function, name: &str, value: &Expr, fractions: &Array) -> Expr {
    let each = fractions.elem.iter().map(|fraction| {
        let arguments = [value.clone(), fraction.clone()];
        if let Some(template) = TEMPLATES.get(&(name, 2)) {
            return fill(template, &arguments);
        }
        let mut one = function.clone();
        if let FunctionArguments::List(list) = &mut one.args {
            let arguments = arguments.map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
            list.args = arguments.into();
        }
        Expr::Function(one)
    });
    Expr::Array(Array {
        elem: each.collect(),
        named: fractions.named,
    })
}

/// The field in `{'a': 1}.a` as a string, which the planner wants.
pub(super) fn field_of_struct(access: &mut AccessExpr) {
    if let AccessExpr::Dot(field) = access
        && let Expr::Identifier(name) = field
    {
        *field = Expr::value(Value::SingleQuotedString(normalize(name)));
    }
}

/// `name := value`, which the parser takes for an operator, as a name and a value. `'name', value`, which
/// `{'name': value}` became, as it is.
pub(crate) fn named(argument: FunctionArg) -> Vec<FunctionArg> {
    let unnamed = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    let string = |name: &Ident| Expr::value(Value::SingleQuotedString(normalize(name)));
    let expr = match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => expr,
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(value),
            ..
        } => return vec![unnamed(string(&name)), unnamed(value)],
        other => return vec![other],
    };
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        } => {
            let name = match *left {
                Expr::Identifier(name) => string(&name),
                other => Expr::value(Value::SingleQuotedString(other.to_string())),
            };
            vec![unnamed(name), unnamed(*right)]
        }
        other => vec![unnamed(other)],
    }
}

/// A call that is this value, and has this name.
pub(super) fn with_name(value: Expr, name: String) -> Expr {
    let name = Expr::Value(Value::SingleQuotedString(name).into());
    fill(&REPLACEMENT, &[value, name])
}

fn fill(template: &Expr, arguments: &[Expr]) -> Expr {
    let mut filled = template.clone();
    let _ = expressions_mut(&mut filled, |expr| {
        if let Some(argument) = argument_of(expr).and_then(|number| arguments.get(number - 1)) {
            *expr = Expr::Nested(Box::new(argument.clone()));
        }
        ControlFlow::<()>::Continue(())
    });
    Expr::Nested(Box::new(filled))
}

/// The number of the argument that stands at this place of a template.
fn argument_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(ValueWithSpan {
            value: Value::Placeholder(number),
            ..
        }) => number.trim_start_matches('$').parse().ok(),
        _ => None,
    }
}

/// Parts of a date that DataFusion does not know.
fn extract(field: &DateTimeField, expr: &Expr) -> Option<Expr> {
    let name = match field {
        DateTimeField::Decade => "decade",
        DateTimeField::Century => "century",
        DateTimeField::Millennium | DateTimeField::Millenium => "millennium",
        _ => return None,
    };
    let template = TEMPLATES.get(&(name, 1))?;
    Some(fill(template, std::slice::from_ref(expr)))
}

/// A constant pattern with another escape character as one with a backslash.
fn escape(pattern: &mut Expr, escape_char: &mut Option<ValueWithSpan>) {
    let character = match escape_char.as_ref().map(|value| &value.value) {
        Some(Value::SingleQuotedString(text)) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some('\\'), _) | (_, Some(_)) => return,
                (character, None) => character,
            }
        }
        _ => return,
    };
    let Some(written) = text(pattern) else {
        return;
    };
    let mut out = String::with_capacity(written.len() + 4);
    let mut characters = written.chars();
    while let Some(c) = characters.next() {
        match c {
            c if Some(c) == character => {
                out.push('\\');
                match characters.next() {
                    Some(next) => out.push(next),
                    // Nothing to escape: left as it is, to be rejected.
                    None => return,
                }
            }
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    *pattern = Expr::value(Value::SingleQuotedString(out));
    *escape_char = None;
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::ast::Statement;

    #[test]
    fn shorthands_are_written_out() {
        for (sql, expected) in [
            ("SELECT year(d)", "SELECT (date_part('year', (d)))"),
            (
                "SELECT \"year\"(d), sign(-1)",
                "SELECT \"year\"(d), signum(-1)",
            ),
            (
                "SELECT x LIKE 'a!%\\' ESCAPE '!'",
                "SELECT x LIKE 'a\\%\\\\'",
            ),
            (
                "SELECT x LIKE 'a!' ESCAPE '!'",
                "SELECT x LIKE 'a!' ESCAPE '!'",
            ),
            (
                "SELECT a FROM t OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
                "SELECT a FROM t LIMIT 2 OFFSET 1 ROWS",
            ),
            (
                "SELECT any_value(a ORDER BY b) FROM RANGE(3) GROUP BY (a, b)",
                "SELECT first_value(a ORDER BY b) FILTER (WHERE (a) IS NOT NULL) FROM range(3) GROUP BY a, b",
            ),
            (
                "SELECT last(x ORDER BY y) FROM t",
                "SELECT last_value(x ORDER BY y) FROM t",
            ),
        ] {
            let mut trees = Parser::parse_sql(&ErisDialect, sql).unwrap();
            let Statement::Query(mut query) = trees.remove(0) else {
                panic!("{sql} is a query")
            };
            write_out(&mut query);
            assert_eq!(query.to_string(), expected);
        }
    }

    #[test]
    fn every_template_is_an_expression() {
        assert_eq!(TEMPLATES.len(), EXPRESSIONS.len());
    }
}
