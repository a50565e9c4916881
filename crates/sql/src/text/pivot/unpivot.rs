//! UNPIVOT: a row of each row and column.

use super::{SOURCE, derived, mention, name_of, quoted};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::questions::KnownColumn;
use crate::text::wildcards::chosen_by;
use datafusion::sql::sqlparser::ast::{Expr, ExprWithAlias, NullInclusion, TableFactor, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// An UNPIVOT of a table with these columns, written out.
pub(super) fn unpivoted(
    table: &TableFactor,
    columns: &[KnownColumn],
) -> Result<TableFactor, SqlError> {
    let TableFactor::Unpivot {
        table: source,
        value,
        name,
        columns: given,
        null_inclusion,
        alias,
    } = table
    else {
        unreachable!("it is an UNPIVOT");
    };
    let values: Vec<String> = parts(value).iter().map(|value| name_of(value)).collect();
    let mut used = HashSet::new();
    // The names of the rows, and for each value what it is in each row.
    let mut names = Vec::new();
    let mut lists = vec![Vec::new(); values.len()];
    for ExprWithAlias { expr, alias } in given {
        mention(expr, &mut used);
        if let Some(chosen) = chosen_by(expr, columns)? {
            for column in chosen {
                used.insert(column.name.clone());
                names.push(column.name.clone());
                lists[0].push(column.reference().to_string());
            }
            if values.len() != 1 {
                return Err(wrong_count(values.len()));
            }
            continue;
        }
        if let Expr::Cast { expr: inner, .. } = expr
            && chosen_by(inner, columns)?.is_some()
        {
            let error = SqlError::not_supported("a cast of COLUMNS in UNPIVOT");
            let hint = "cast the columns in a subquery: SELECT CAST(COLUMNS(*) AS …)";
            return Err(error.with_hint(Some(hint)));
        }
        let parts = parts(expr);
        if parts.len() != values.len() {
            return Err(wrong_count(values.len()));
        }
        let own = parts.iter().map(|part| name_of(part));
        names.push(match alias {
            Some(alias) => normalize(alias),
            None => own.collect::<Vec<_>>().join("_"),
        });
        for (list, part) in lists.iter_mut().zip(parts) {
            list.push(part.to_string());
        }
    }
    let name = normalize(name);
    let rest = columns.iter().filter(|column| !used.contains(&column.name));
    let mut shown: Vec<String> = Vec::new();
    let mut inner: Vec<String> = Vec::new();
    for column in rest {
        let own = quoted(&column.name);
        inner.push(format!("{} AS {own}", column.reference()));
        shown.push(own);
    }
    let texts = names
        .iter()
        .map(|name| Value::SingleQuotedString(name.clone()).to_string());
    let texts: Vec<_> = texts.collect();
    inner.push(format!(
        "unnest([{}]) AS {}",
        texts.join(", "),
        quoted(&name)
    ));
    shown.push(quoted(&name));
    for (value, list) in values.iter().zip(&lists) {
        inner.push(format!(
            "unnest([{}]) AS {}",
            list.join(", "),
            quoted(value)
        ));
        shown.push(quoted(value));
    }
    let mut text = format!(
        "SELECT {} FROM (SELECT {} FROM {SOURCE}) AS \"rows(\"",
        shown.join(", "),
        inner.join(", ")
    );
    if !matches!(null_inclusion, Some(NullInclusion::IncludeNulls)) {
        let present = values
            .iter()
            .map(|value| format!("{} IS NOT NULL", quoted(value)));
        let present: Vec<_> = present.collect();
        let _ = write!(text, " WHERE {}", present.join(" AND "));
    }
    Ok(derived(&text, source, alias.clone()))
}

fn wrong_count(values: usize) -> SqlError {
    let message = format!("UNPIVOT into {values} values takes {values} columns for each row");
    SqlError::invalid(Mistake::Syntax, message)
}

/// The parts of `(a, b)`, or the expression itself.
fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Tuple(parts) => parts.iter().collect(),
        Expr::Nested(inner) => parts(inner),
        other => vec![other],
    }
}
