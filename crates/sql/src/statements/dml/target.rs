//! The table that a statement changes, as the query in its place names it.

use crate::catalog::Table;
use crate::error::SqlError;
use crate::text::identifier::last_name;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

/// The name under which the query knows the table. No table has it, for nothing closes its bracket.
pub(crate) const TARGET: &str = "target(";

/// The name of the table, and nothing but it and an alias.
pub(super) fn name(factor: &TableFactor) -> Result<&ObjectName, SqlError> {
    match factor {
        TableFactor::Table {
            name,
            args: None,
            version: None,
            sample: None,
            json_path: None,
            with_ordinality: false,
            with_hints,
            partitions,
            index_hints,
            alias,
        } if with_hints.is_empty()
            && partitions.is_empty()
            && index_hints.is_empty()
            && alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
        {
            Ok(name)
        }
        _ => Err(SqlError::not_supported(
            "changing the rows of anything but a table",
        )),
    }
}

/// What the statement calls the table.
pub(super) fn alias(factor: &TableFactor) -> Result<Ident, SqlError> {
    let name = name(factor)?;
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        } => Ok(alias.name.clone()),
        _ => Ok(Ident::with_quote('"', last_name(name).unwrap_or_default())),
    }
}

/// The same table with its rows' ids.
pub(super) fn with_row_ids(factor: &TableFactor) -> Result<TableFactor, SqlError> {
    Ok(called(alias(factor)?))
}

/// What [`TARGET`] leads to under another name.
pub(super) fn called(alias: Ident) -> TableFactor {
    TableFactor::Table {
        name: ObjectName::from(vec![Ident::with_quote('"', TARGET)]),
        alias: Some(TableAlias {
            explicit: true,
            name: alias,
            columns: Vec::new(),
            at: None,
        }),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// A column of the table.
pub(super) fn column(alias: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![alias.clone(), Ident::with_quote('"', name)])
}

/// The values of columns at these positions as output columns from `first` on.
pub(super) fn columns<'a>(
    table: &'a Table,
    positions: &'a [usize],
    alias: &'a Ident,
    first: usize,
) -> impl Iterator<Item = SelectItem> + 'a {
    let columns = positions.iter().enumerate();
    columns.map(move |(number, &position)| {
        let name = table.schema.field(position).name();
        named(column(alias, name), first + number)
    })
}

/// An output column under a name of its own.
pub(super) fn named(expr: Expr, number: usize) -> SelectItem {
    SelectItem::ExprWithAlias {
        expr,
        alias: Ident::with_quote('"', format!("set({number}")),
    }
}

/// SELECT items FROM tables WHERE condition.
pub(super) fn select(
    items: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> ast::Query {
    let Ok(ast::Statement::Query(mut query)) = parse(&Statement::from("SELECT 1")) else {
        unreachable!("it is a query");
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
        select.from = from;
        select.selection = selection;
    }
    *query
}
