//! `* RENAME`, `COLUMNS(…)`, and `* EXCLUDE` and `* REPLACE` over joins, written out as columns.
//!
//! ```text
//! SELECT * RENAME (a AS z) FROM t               SELECT t.a AS z, t.b FROM t
//! SELECT min(COLUMNS('^p')) FROM t              SELECT min(t.p1) AS p1, min(t.p2) AS p2 FROM t
//! SELECT * EXCLUDE (k) FROM t JOIN u USING (k)  SELECT t.a, u.b FROM t JOIN u USING (k)
//! ```
//!
//! The planner does the first of them not at all, and the last one wrong. What it does well it keeps: see
//! [`is_planned`].

pub(super) mod call;
mod pattern;

use crate::error::{Mistake, SqlError};
use crate::text::identifier::{last_name, normalize};
use crate::text::questions::{Answer, KnownColumn, Question, of_body};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, GroupByExpr, Ident, ObjectName, Query,
    RenameSelectItem, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    WildcardAdditionalOptions,
};
use eris_syntax::{are_equal, own_expressions_mut};
pub(super) use pattern::chosen_by;
use pattern::{Chosen, Pattern, only_call};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Columns that one place stands for.
enum Place {
    /// An item of the list that is a wildcard.
    Wildcard(usize),
    /// An item with `COLUMNS(…)` in it.
    Item(usize, Expr),
    /// `WHERE` with `COLUMNS(…)`, which all of them have to fulfil.
    Condition(Expr),
}

/// What a list has to know first.
pub(super) fn question(select: &Select) -> Result<Option<Question>, SqlError> {
    let Some(place) = place(select)? else {
        return Ok(None);
    };
    let wildcard = match &place {
        Place::Wildcard(item) => bare(&select.projection[*item]),
        Place::Item(_, call) | Place::Condition(call) => Pattern::of(call)?.wildcard(),
    };
    Ok(Some(Question::Columns(all_of(select, wildcard))))
}

/// The query for the columns of a list's tables.
fn all_of(select: &Select, wildcard: SelectItem) -> Query {
    let mut asked = select.clone();
    asked.projection = vec![wildcard];
    asked.distinct = None;
    asked.selection = None;
    asked.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    asked.having = None;
    asked.qualify = None;
    asked.named_window = Vec::new();
    asked.into = None;
    of_body(SetExpr::Select(Box::new(asked)))
}

/// Puts the columns in the place that asked for them.
pub(super) fn settle(select: &mut Select, answer: Answer) -> Result<(), SqlError> {
    let Answer::Columns(columns) = answer else {
        unreachable!("it asked for columns");
    };
    match place(select)? {
        Some(Place::Wildcard(item)) => {
            let items = written_out(&select.projection[item], &columns)?;
            select.projection.splice(item..=item, items);
        }
        Some(Place::Item(item, call)) => {
            let chosen = Pattern::of(&call)?.choose(&columns)?;
            let items = chosen
                .iter()
                .map(|chosen| of_column(&select.projection[item], &call, chosen));
            let items: Vec<_> = items.collect();
            select.projection.splice(item..=item, items);
        }
        Some(Place::Condition(call)) => {
            let chosen = Pattern::of(&call)?.choose(&columns)?;
            let condition = select.selection.take().expect("it has COLUMNS in it");
            let all = chosen.iter().map(|chosen| {
                let mut each = condition.clone();
                put(&mut each, &call, &chosen.column.reference());
                Expr::Nested(Box::new(each))
            });
            select.selection = all.reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::And,
                right: Box::new(right),
            });
        }
        None => {}
    }
    Ok(())
}

fn place(select: &Select) -> Result<Option<Place>, SqlError> {
    for (number, item) in select.projection.iter().enumerate() {
        let expr = match item {
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                match is_planned(options, select) && !may_repeat(number, &select.projection) {
                    true => continue,
                    false => return Ok(Some(Place::Wildcard(number))),
                }
            }
            SelectItem::UnnamedExpr(expr)
            | SelectItem::ExprWithAlias { expr, .. }
            | SelectItem::ExprWithAliases { expr, .. } => expr,
        };
        if let Some(call) = only_call(expr)? {
            return Ok(Some(Place::Item(number, call)));
        }
    }
    let condition = match &select.selection {
        Some(condition) => only_call(condition)?,
        None => None,
    };
    Ok(condition.map(Place::Condition))
}

/// Whether the planner knows what a wildcard stands for.
fn is_planned(options: &WildcardAdditionalOptions, select: &Select) -> bool {
    let one_table = match &select.from[..] {
        [from] => from.joins.is_empty(),
        _ => false,
    };
    options.opt_rename.is_none()
        && (one_table || options.opt_exclude.is_none() && options.opt_replace.is_none())
}

/// Whether another item of the list may be one of the wildcard's columns: the planner wants each of them once.
fn may_repeat(wildcard: usize, items: &[SelectItem]) -> bool {
    let table = |item: &SelectItem| match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            last_name(name)
        }
        _ => None,
    };
    let own = table(&items[wildcard]);
    let others = items.iter().enumerate();
    let mut others = others.filter(|(number, _)| *number != wildcard);
    others.any(|(_, item)| {
        let other = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(_)) | SelectItem::Wildcard(_) => None,
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
                let table = path.iter().rev().nth(1);
                table.map(normalize)
            }
            SelectItem::QualifiedWildcard(..) => table(item),
            _ => return false,
        };
        own.is_none() || other.is_none() || own == other
    })
}

/// A wildcard without its further words.
fn bare(item: &SelectItem) -> SelectItem {
    let options = WildcardAdditionalOptions::default();
    match item {
        SelectItem::QualifiedWildcard(kind, _) => {
            SelectItem::QualifiedWildcard(kind.clone(), options)
        }
        _ => SelectItem::Wildcard(options),
    }
}

/// The columns of a wildcard with further words.
fn written_out(item: &SelectItem, columns: &[KnownColumn]) -> Result<Vec<SelectItem>, SqlError> {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        unreachable!("it is a wildcard");
    };
    let Words {
        excluded,
        mut replaced,
        renamed,
    } = Words::of(options)?;
    for name in &excluded {
        if !columns.iter().any(|column| column.is(name)) {
            return Err(unknown("EXCLUDE", &name.to_string()));
        }
    }
    for (name, _) in &renamed {
        if !columns.iter().any(|column| column.name == *name) {
            return Err(unknown("RENAME", name));
        }
    }
    let mut items = Vec::with_capacity(columns.len());
    // A value stands for all columns of its name.
    let mut done = HashSet::new();
    for column in columns {
        if excluded.iter().any(|name| column.is(name)) || done.contains(&column.name) {
            continue;
        }
        let replacement = replaced
            .iter()
            .position(|(name, _)| *name == column.name)
            .map(|place| replaced.remove(place).1);
        if replacement.is_some() {
            done.insert(column.name.clone());
        }
        let renamed = renamed.iter().find(|(name, _)| *name == column.name);
        let alias = match (renamed, &replacement) {
            (Some((_, alias)), _) => Some(alias.clone()),
            (None, Some(_)) => Some(column.name.clone()),
            (None, None) => None,
        };
        let expr = replacement.unwrap_or_else(|| column.reference());
        items.push(match alias {
            Some(alias) => SelectItem::ExprWithAlias {
                expr,
                alias: Ident::with_quote('"', alias),
            },
            None => SelectItem::UnnamedExpr(expr),
        });
    }
    if let Some((name, _)) = replaced.first() {
        return Err(unknown("REPLACE", name));
    }
    match items.is_empty() {
        true => Err(no_columns("* EXCLUDE leaves no column")),
        false => Ok(items),
    }
}

/// The words behind a wildcard.
struct Words {
    excluded: Vec<ObjectName>,
    replaced: Vec<(String, Expr)>,
    renamed: Vec<(String, String)>,
}

impl Words {
    fn of(options: &WildcardAdditionalOptions) -> Result<Self, SqlError> {
        let excluded = match &options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => vec![name.clone()],
            Some(ExcludeSelectItem::Multiple(names)) => names.clone(),
            None => Vec::new(),
        };
        let replaced = options
            .opt_replace
            .iter()
            .flat_map(|replace| &replace.items);
        let replaced = replaced.map(|item| (normalize(&item.column_name), item.expr.clone()));
        let renamed = match &options.opt_rename {
            Some(RenameSelectItem::Single(one)) => vec![one.clone()],
            Some(RenameSelectItem::Multiple(several)) => several.clone(),
            None => Vec::new(),
        };
        let renamed = renamed
            .iter()
            .map(|item| (normalize(&item.ident), normalize(&item.alias)));
        let words = Words {
            excluded,
            replaced: replaced.collect(),
            renamed: renamed.collect(),
        };
        let twice = |name: &String| {
            let excluded = words.excluded.iter().filter_map(last_name);
            let replaced = words.replaced.iter().map(|(name, _)| name.clone());
            let renamed = words.renamed.iter().map(|(name, _)| name.clone());
            let all = excluded.chain(replaced).chain(renamed);
            all.filter(|other| other == name).count() > 1
        };
        let named = words.replaced.iter().map(|(name, _)| name);
        let mut named = named.chain(words.renamed.iter().map(|(name, _)| name));
        if let Some(name) = named.find(|name| twice(name)) {
            let message = format!("column \"{name}\" is named twice behind *");
            return Err(SqlError::invalid(Mistake::Syntax, message));
        }
        Ok(words)
    }
}

impl KnownColumn {
    /// How it is written.
    pub fn reference(&self) -> Expr {
        match &self.path[..] {
            [name] => Expr::Identifier(name.clone()),
            path => Expr::CompoundIdentifier(path.to_vec()),
        }
    }

    /// Whether a name, perhaps with its table's, leads to it.
    fn is(&self, name: &ObjectName) -> bool {
        let parts = name.0.iter().filter_map(|part| part.as_ident());
        let parts: Vec<_> = parts.map(normalize).collect();
        let path = self.path.iter().map(|part| part.value.as_str());
        let path: Vec<_> = path.collect();
        path.len() >= parts.len() && path[path.len() - parts.len()..] == parts[..]
    }
}

/// The item for one of the columns.
fn of_column(item: &SelectItem, call: &Expr, chosen: &Chosen<'_>) -> SelectItem {
    let (expr, alias) = match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            let mut name = normalize(alias);
            for (number, group) in chosen.groups.iter().enumerate() {
                name = name.replace(&format!("\\{number}"), group);
            }
            (expr, name)
        }
        SelectItem::UnnamedExpr(expr) => (expr, chosen.column.name.clone()),
        _ => unreachable!("only expressions have COLUMNS in them"),
    };
    let mut expr = expr.clone();
    put(&mut expr, call, &chosen.column.reference());
    SelectItem::ExprWithAlias {
        expr,
        alias: Ident::with_quote('"', alias),
    }
}

/// Puts a column in the place of the calls.
fn put(expr: &mut Expr, call: &Expr, column: &Expr) {
    // The visitor never breaks off.
    let _ = own_expressions_mut(expr, |part| -> ControlFlow<()> {
        if are_equal(&*part, call) {
            *part = column.clone();
        }
        ControlFlow::Continue(())
    });
}

fn unknown(word: &str, name: &str) -> SqlError {
    let message = format!("column \"{name}\" behind {word} does not exist");
    SqlError::invalid(Mistake::UndefinedColumn, message)
}

fn no_columns(message: &str) -> SqlError {
    SqlError::invalid(Mistake::UndefinedColumn, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    /// A query over `t` with the columns a, b and ab, written out.
    fn over_t(sql: &str) -> Result<String, String> {
        let mut trees = Parser::parse_sql(&ErisDialect, sql).unwrap();
        let Statement::Query(mut query) = trees.remove(0) else {
            panic!("{sql} is a query")
        };
        let SetExpr::Select(select) = &mut *query.body else {
            panic!("{sql} is one list")
        };
        while question(select).map_err(|error| error.message())?.is_some() {
            let columns = ["a", "b", "ab"].map(|name| KnownColumn {
                path: vec![Ident::new("t"), Ident::new(name)],
                name: name.to_owned(),
            });
            let answer = Answer::Columns(columns.into());
            settle(select, answer).map_err(|error| error.message())?;
        }
        Ok(query.to_string())
    }

    #[test]
    fn places_become_columns() {
        for (sql, expected) in [
            (
                "SELECT * RENAME (a AS z) FROM t",
                "SELECT t.a AS \"z\", t.b, t.ab FROM t",
            ),
            (
                "SELECT min(COLUMNS('^a')) + 1 FROM t",
                "SELECT min(t.a) + 1 AS \"a\", min(t.ab) + 1 AS \"ab\" FROM t",
            ),
            (
                "SELECT COLUMNS('^a(.?)') AS 'x_\\1' FROM t",
                "SELECT t.a AS \"x_\", t.ab AS \"x_b\" FROM t",
            ),
            (
                "SELECT COLUMNS(['b', 'a']), 1 FROM t",
                "SELECT t.a AS \"a\", t.b AS \"b\", 1 FROM t",
            ),
            (
                "SELECT * EXCLUDE (b) REPLACE (1 AS ab) FROM t, u",
                "SELECT t.a, 1 AS \"ab\" FROM t, u",
            ),
            (
                "SELECT 1 FROM t WHERE COLUMNS(* EXCLUDE (a)) > 0",
                "SELECT 1 FROM t WHERE (t.b > 0) AND (t.ab > 0)",
            ),
            ("SELECT * EXCLUDE (b) FROM t", "SELECT * EXCLUDE (b) FROM t"),
        ] {
            assert_eq!(over_t(sql).as_deref(), Ok(expected), "{sql}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (sql, part) in [
            ("SELECT * RENAME (z AS y) FROM t", "\"z\" behind RENAME"),
            ("SELECT COLUMNS('z') FROM t", "matches no column"),
            ("SELECT COLUMNS('(') FROM t", "COLUMNS('(')"),
            ("SELECT COLUMNS(1) FROM t", "anything but"),
            (
                "SELECT * REPLACE (1 AS a) RENAME (a AS b) FROM t",
                "named twice",
            ),
            ("SELECT COLUMNS('a') + COLUMNS('b') FROM t", "different"),
        ] {
            let message = over_t(sql).unwrap_err();
            assert!(message.contains(part), "{sql}: {message}");
        }
    }
}
