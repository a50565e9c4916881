//! INSERT … ON CONFLICT DO NOTHING, or DO UPDATE SET …: MERGE by the key, with the rows that were to be inserted as source.
//!
//! ```text
//! INSERT INTO t VALUES (1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s
//! MERGE INTO t USING (VALUES (1, 'x')) AS excluded ON t.k = excluded.k
//!   WHEN MATCHED THEN UPDATE SET s = excluded.s WHEN NOT MATCHED THEN INSERT …
//! ```

use super::target;
use super::{Change, merge};
use crate::catalog::Table;
use crate::core::{Core, last_name, normalize};
use crate::error::SqlError;
use crate::insert;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, ConflictTarget, Distinct, Expr, Ident, Merge, MergeAction, MergeClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, OnConflict,
    OnConflictAction, OnInsert, Parens, Query, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, Value, Values,
    helpers::attached_token::AttachedToken,
};
use std::sync::Arc;

/// The rows that were to be inserted.
const EXCLUDED: &str = "excluded";

/// These rows as they were given.
const GIVEN: &str = "given(";

/// `source` are the rows to be inserted, with values of these columns.
pub(super) fn change(
    core: &Core,
    table: &Arc<Table>,
    insert: ast::Insert,
    source: Query,
    columns: &[usize],
) -> Result<Change, SqlError> {
    let Some(OnInsert::OnConflict(conflict)) = insert.on else {
        return Err(SqlError::not_supported("INSERT … ON DUPLICATE KEY")
            .with_hint(Some("ON CONFLICT (key) DO UPDATE SET … does the same")));
    };
    let key = conflicting(table, &conflict)?;
    if let SetExpr::Values(values) = source.body.as_ref()
        && let Some(row) = values.rows.first()
        && row.content.len() != columns.len()
    {
        return Err(SqlError::invalid(format!(
            "INSERT INTO \"{}\": {} columns, but {} values",
            table.name,
            columns.len(),
            row.content.len()
        )));
    }
    let alias = match insert.table_alias {
        Some(alias) => alias.alias,
        None => Ident::with_quote('"', table.name.name.as_str()),
    };
    let nothing = matches!(conflict.action, OnConflictAction::DoNothing);
    let excluded = excluded(table, source, columns, nothing.then_some(key));
    let on = key.iter().map(|column| Expr::BinaryOp {
        left: Box::new(target::column(&alias, column)),
        op: BinaryOperator::Eq,
        right: Box::new(target::column(&Ident::new(EXCLUDED), column)),
    });
    let on = on.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    let mut clauses = Vec::new();
    if let OnConflictAction::DoUpdate(update) = conflict.action {
        clauses.push(MergeClause {
            when_token: AttachedToken::empty(),
            clause_kind: MergeClauseKind::Matched,
            predicate: update.selection,
            action: MergeAction::Update(MergeUpdateExpr {
                update_token: AttachedToken::empty(),
                assignments: update.assignments,
                update_predicate: None,
                delete_predicate: None,
            }),
        });
    }
    let values = table.column_names();
    let values = values.map(|name| target::column(&Ident::new(EXCLUDED), name));
    clauses.push(MergeClause {
        when_token: AttachedToken::empty(),
        clause_kind: MergeClauseKind::NotMatched,
        predicate: None,
        action: MergeAction::Insert(MergeInsertExpr {
            insert_token: AttachedToken::empty(),
            columns: Vec::new(),
            kind_token: AttachedToken::empty(),
            kind: MergeInsertKind::Values(Values {
                explicit_row: false,
                value_keyword: false,
                rows: vec![Parens::with_empty_span(values.collect())],
            }),
            insert_predicate: None,
        }),
    });
    let merge = Merge {
        merge_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        into: true,
        table: target::called(alias),
        source: excluded,
        on: Box::new(on.expect("a key has columns")),
        clauses,
        output: None,
    };
    let change = merge::change(core, table, merge)?;
    Ok(Change {
        returning: insert.returning,
        tag: "INSERT",
        ..change
    })
}

/// The columns of the key that ON CONFLICT speaks of.
pub(crate) fn conflicting<'a>(
    table: &'a Table,
    conflict: &OnConflict,
) -> Result<&'a [String], SqlError> {
    let Some(key) = &table.key else {
        return Err(SqlError::invalid(format!(
            "INSERT … ON CONFLICT: table \"{}\" has no PRIMARY KEY",
            table.name
        )));
    };
    let other = |what: String| {
        SqlError::invalid(format!(
            "INSERT … ON CONFLICT: no two rows can conflict in {what}"
        ))
        .with_hint(Some(format!(
            "the PRIMARY KEY of table \"{}\" is ({})",
            table.name,
            key.columns.join(", ")
        )))
    };
    match &conflict.conflict_target {
        None => {}
        Some(ConflictTarget::Columns(columns)) => {
            let mut named: Vec<String> = columns.iter().map(normalize).collect();
            let mut wanted = key.columns.clone();
            named.sort_unstable();
            wanted.sort_unstable();
            if named != wanted {
                return Err(other(format!("({})", named.join(", "))));
            }
        }
        Some(ConflictTarget::OnConstraint(name))
            if last_name(name).as_deref() == Some(&key.name) => {}
        Some(ConflictTarget::OnConstraint(name)) => {
            return Err(other(format!("constraint {name}")));
        }
    }
    Ok(&key.columns)
}

/// The rows that are to be inserted, with all columns of the table; with `once` only one row of each key.
fn excluded(
    table: &Table,
    source: Query,
    columns: &[usize],
    once: Option<&[String]>,
) -> TableFactor {
    let given = |number: usize| Ident::with_quote('"', format!("given({number}"));
    let alias = |name: Ident, columns: usize| TableAlias {
        explicit: true,
        name,
        columns: (0..columns)
            .map(|number| TableAliasColumnDef {
                name: given(number),
                data_type: None,
            })
            .collect(),
        at: None,
    };
    let rows = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(source),
        alias: Some(alias(Ident::with_quote('"', GIVEN), columns.len())),
        sample: None,
    };
    let fields = table.schema.fields().iter().enumerate();
    let items = fields.map(|(position, field)| {
        let value = match columns.iter().position(|column| *column == position) {
            Some(number) => Expr::Identifier(given(number)),
            None => match &table.rules[position].default {
                Some(default) => default.expr.clone(),
                None => Expr::value(Value::Null),
            },
        };
        SelectItem::ExprWithAlias {
            expr: insert::cast_to(value, field.data_type()),
            alias: Ident::with_quote('"', field.name().as_str()),
        }
    });
    let from = TableWithJoins {
        relation: rows,
        joins: Vec::new(),
    };
    let mut query = target::select(items.collect(), vec![from], None);
    if let (Some(key), SetExpr::Select(select)) = (once, query.body.as_mut()) {
        // The key as it was given: the columns of the select list have no names yet.
        let key = key.iter().filter_map(|name| {
            let position = table.schema.index_of(name).ok()?;
            let number = columns.iter().position(|column| *column == position)?;
            Some(insert::cast_to(
                Expr::Identifier(given(number)),
                table.schema.field(position).data_type(),
            ))
        });
        let key: Vec<Expr> = key.collect();
        select.distinct = (!key.is_empty()).then_some(Distinct::On(key));
    }
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias(Ident::new(EXCLUDED), 0)),
        sample: None,
    }
}
