//! `COLUMNS(…)`: which columns it stands for.

use super::call::is_call;
use super::{Words, bare, no_columns, unknown};
use crate::error::{Mistake, SqlError};
use crate::text::questions::KnownColumn;
use datafusion::sql::sqlparser::ast::{
    Array, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem,
    SelectItemQualifiedWildcardKind, Value, WildcardAdditionalOptions,
};
use eris_syntax::{are_equal, own_expressions};
use regex::Regex;
use std::ops::ControlFlow;

/// Which columns `COLUMNS(…)` stands for.
pub(super) enum Pattern {
    /// `*` or `t.*`, with further words.
    Wildcard(Box<SelectItem>),
    Expression(Box<Regex>),
    Names(Vec<String>),
}

/// A column that was chosen, and the groups of the expression that found it.
pub(super) struct Chosen<'a> {
    pub column: &'a KnownColumn,
    pub groups: Vec<String>,
}

impl Pattern {
    pub fn of(call: &Expr) -> Result<Self, SqlError> {
        let argument = argument(call).ok_or_else(wrong_argument)?;
        let expr = match argument {
            FunctionArgExpr::Wildcard => {
                let options = WildcardAdditionalOptions::default();
                return Ok(Pattern::Wildcard(Box::new(SelectItem::Wildcard(options))));
            }
            FunctionArgExpr::WildcardWithOptions(options) => {
                let item = SelectItem::Wildcard(options.clone());
                return Ok(Pattern::Wildcard(Box::new(item)));
            }
            FunctionArgExpr::QualifiedWildcard(table) => {
                let table = SelectItemQualifiedWildcardKind::ObjectName(table.clone());
                let options = WildcardAdditionalOptions::default();
                let item = SelectItem::QualifiedWildcard(table, options);
                return Ok(Pattern::Wildcard(Box::new(item)));
            }
            FunctionArgExpr::Expr(expr) => expr,
            #[expect(
                unreachable_patterns,
                reason = "other versions of the parser have more"
            )]
            _ => return Err(wrong_argument()),
        };
        match expr {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(pattern) => {
                    let regex = Regex::new(pattern).map_err(|error| {
                        let message = format!("COLUMNS('{pattern}'): {error}");
                        SqlError::invalid(Mistake::InvalidParameterValue, message)
                    })?;
                    Ok(Pattern::Expression(Box::new(regex)))
                }
                _ => Err(wrong_argument()),
            },
            Expr::Array(Array { elem, .. }) => {
                let names = elem.iter().map(|name| match name {
                    Expr::Value(value) => match &value.value {
                        Value::SingleQuotedString(name) => Ok(name.clone()),
                        _ => Err(wrong_argument()),
                    },
                    _ => Err(wrong_argument()),
                });
                Ok(Pattern::Names(names.collect::<Result<_, _>>()?))
            }
            _ => Err(wrong_argument()),
        }
    }

    /// The wildcard whose columns are asked for.
    pub fn wildcard(&self) -> SelectItem {
        match self {
            Pattern::Wildcard(item) => bare(item),
            _ => SelectItem::Wildcard(WildcardAdditionalOptions::default()),
        }
    }

    pub fn choose<'a>(&self, columns: &'a [KnownColumn]) -> Result<Vec<Chosen<'a>>, SqlError> {
        let all = |column| Chosen {
            column,
            groups: Vec::new(),
        };
        let chosen: Vec<_> = match self {
            Pattern::Wildcard(item) => {
                let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) =
                    item.as_ref()
                else {
                    unreachable!("it is a wildcard");
                };
                let words = Words::of(options)?;
                if !words.replaced.is_empty() || !words.renamed.is_empty() {
                    return Err(SqlError::not_supported("COLUMNS(* REPLACE …) or RENAME"));
                }
                for name in &words.excluded {
                    if !columns.iter().any(|column| column.is(name)) {
                        return Err(unknown("EXCLUDE", &name.to_string()));
                    }
                }
                let is_left =
                    |column: &&KnownColumn| !words.excluded.iter().any(|name| column.is(name));
                columns.iter().filter(is_left).map(all).collect()
            }
            Pattern::Expression(regex) => {
                let found = columns.iter().filter_map(|column| {
                    let groups = regex.captures(&column.name)?;
                    let groups = groups.iter().map(|group| {
                        group
                            .map(|group| group.as_str().to_owned())
                            .unwrap_or_default()
                    });
                    Some(Chosen {
                        column,
                        groups: groups.collect(),
                    })
                });
                found.collect()
            }
            Pattern::Names(names) => {
                let is_known = |name: &&String| columns.iter().any(|column| column.name == **name);
                if let Some(name) = names.iter().find(|name| !is_known(name)) {
                    return Err(unknown("COLUMNS", name));
                }
                let found = columns.iter().filter(|column| names.contains(&column.name));
                found.map(all).collect()
            }
        };
        match (chosen.is_empty(), self) {
            (false, _) => Ok(chosen),
            (true, Pattern::Expression(regex)) => {
                let message = format!("COLUMNS('{regex}') matches no column");
                Err(SqlError::invalid(Mistake::UndefinedColumn, message))
            }
            (true, _) => Err(no_columns("COLUMNS leaves no column")),
        }
    }
}

/// The `COLUMNS(…)` of an expression, all of which are the same.
pub(super) fn only_call(expr: &Expr) -> Result<Option<Expr>, SqlError> {
    let mut calls = Vec::new();
    // The visitor never breaks off.
    let _ = own_expressions(expr, |part| -> ControlFlow<()> {
        if is_call(part) {
            calls.push(part.clone());
        }
        ControlFlow::Continue(())
    });
    let mut found = calls.into_iter();
    let Some(first) = found.next() else {
        return Ok(None);
    };
    match found.all(|other| are_equal(&other, &first)) {
        true => Ok(Some(first)),
        false => Err(SqlError::not_supported(
            "different COLUMNS in one expression",
        )),
    }
}

/// The columns that an expression of UNPIVOT stands for, if it is `COLUMNS(…)`.
pub(crate) fn chosen_by<'a>(
    expr: &Expr,
    columns: &'a [KnownColumn],
) -> Result<Option<Vec<&'a KnownColumn>>, SqlError> {
    if !is_call(expr) {
        return Ok(None);
    }
    let chosen = Pattern::of(expr)?.choose(columns)?;
    Ok(Some(chosen.iter().map(|chosen| chosen.column).collect()))
}

fn argument(call: &Expr) -> Option<&FunctionArgExpr> {
    let Expr::Function(function) = call else {
        return None;
    };
    match &function.args {
        FunctionArguments::List(list) if list.clauses.is_empty() => match &list.args[..] {
            [FunctionArg::Unnamed(argument)] => Some(argument),
            _ => None,
        },
        _ => None,
    }
}

fn wrong_argument() -> SqlError {
    let error = SqlError::not_supported("COLUMNS of anything but *, t.*, a string or names");
    error.with_hint(Some(
        "COLUMNS('^a') takes a regular expression, COLUMNS(['a', 'b']) names",
    ))
}
