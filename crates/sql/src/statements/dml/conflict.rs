//! INSERT … ON CONFLICT DO NOTHING, or DO UPDATE SET …: MERGE by the key, with the rows that were to be inserted as
//! source.
//!
//! ```text
//! INSERT INTO t VALUES (1, 'x') ON CONFLICT (k) DO UPDATE SET s = excluded.s
//! MERGE INTO t USING (VALUES (1, 'x')) AS excluded ON t.k = excluded.k
//!   WHEN MATCHED THEN UPDATE SET s = excluded.s WHEN NOT MATCHED THEN INSERT …
//! ```

use super::target;
use super::{Change, merge};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::statements::insert::{self, values};
use crate::text::identifier::last_name;
use crate::text::identifier::normalize;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use crate::write::targets::default_expr;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, ConflictTarget, Distinct, Expr, Ident, Merge, MergeAction, MergeClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, OnConflict,
    OnConflictAction, OnInsert, Parens, Query, SelectItem, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, Values,
    helpers::attached_token::AttachedToken,
};
use std::sync::Arc;

/// The rows that were to be inserted.
const EXCLUDED: &str = "excluded";

/// These rows as they were given.
const GIVEN: &str = "given(";

/// `source` are the rows to be inserted, with values of these columns.
pub(super) fn change(
    context: &StatementContext,
    table: &Arc<Table>,
    insert: ast::Insert,
    source: Query,
    columns: &[usize],
    old: &[usize],
) -> Result<Change, SqlError> {
    let Some(OnInsert::OnConflict(conflict)) = &insert.on else {
        return Err(SqlError::not_supported("INSERT … ON DUPLICATE KEY")
            .with_hint(Some("ON CONFLICT (key) DO UPDATE SET … does the same")));
    };
    let key = conflicting(table, conflict)?;
    if let SetExpr::Values(values) = source.body.as_ref()
        && let Some(row) = values.rows.first()
        && row.content.len() != columns.len()
    {
        return Err(insert::wrong_width(table, columns.len(), row.content.len()));
    }
    let alias = insert::alias(table, &insert);
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
    let mut inserted_once = None;
    if let OnConflictAction::DoUpdate(update) = &conflict.action {
        let set = update
            .assignments
            .iter()
            .map(|assignment| assignment.target.to_string());
        let set: Vec<String> = set.collect();
        let is_set = |column: &String| set.iter().any(|set| set.contains(column.as_str()));
        inserted_once = (!key.iter().any(is_set)).then(|| key.to_vec());
        clauses.push(MergeClause {
            when_token: AttachedToken::empty(),
            clause_kind: MergeClauseKind::Matched,
            predicate: update.selection.clone(),
            action: MergeAction::Update(MergeUpdateExpr {
                update_token: AttachedToken::empty(),
                assignments: update.assignments.clone(),
                update_predicate: None,
                delete_predicate: None,
            }),
        });
    }
    let values = table.column_names().zip(&table.rules);
    let values = values.filter(|(_, rules)| rules.generated.is_none());
    let values = values
        .map(|(name, _)| name)
        .map(|name| target::column(&Ident::new(EXCLUDED), name));
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
    let change = merge::change(context, table, merge, old)?;
    Ok(Change {
        inserted_once,
        returning: insert.returning,
        tag: "INSERT",
        ..change
    })
}

/// The columns of the PRIMARY KEY or UNIQUE constraint that ON CONFLICT speaks of.
pub(crate) fn conflicting<'a>(
    table: &'a Table,
    conflict: &OnConflict,
) -> Result<&'a [String], SqlError> {
    let key = table.key.iter().map(|key| (&key.name, &key.columns));
    let uniques = table
        .uniques
        .iter()
        .map(|unique| (&unique.name, &unique.columns));
    let all: Vec<(&String, &Vec<String>)> = key.chain(uniques).collect();
    if all.is_empty() {
        return Err(SqlError::invalid(
            Mistake::InvalidColumnReference,
            format!(
                "INSERT … ON CONFLICT: table \"{}\" has no PRIMARY KEY or UNIQUE constraint",
                table.name
            ),
        ));
    }
    let shown: Vec<String> = (all.iter())
        .map(|(_, columns)| format!("({})", columns.join(", ")))
        .collect();
    let other = |what: String| {
        SqlError::invalid(
            Mistake::InvalidColumnReference,
            format!("INSERT … ON CONFLICT: no two rows can conflict in {what}"),
        )
        .with_hint(Some(format!(
            "table \"{}\" has no two rows with the same {}",
            table.name,
            shown.join(" or ")
        )))
    };
    match &conflict.conflict_target {
        None => match &all[..] {
            [(_, columns)] => Ok(columns),
            _ => Err(SqlError::not_supported(
                "INSERT … ON CONFLICT without columns into a table with several keys",
            )
            .with_hint(Some(format!(
                "say which: ON CONFLICT {}",
                shown.join(" or ")
            )))),
        },
        Some(ConflictTarget::Columns(columns)) => {
            let sorted = |mut columns: Vec<String>| {
                columns.sort_unstable();
                columns
            };
            let named = sorted(columns.iter().map(normalize).collect());
            let mut all = all.into_iter();
            let found = all.find(|(_, columns)| sorted((*columns).clone()) == named);
            let found = found.map(|(_, columns)| columns.as_slice());
            found.ok_or_else(|| other(format!("({})", named.join(", "))))
        }
        Some(ConflictTarget::OnConstraint(constraint)) => {
            let wanted = last_name(constraint);
            let mut all = all.into_iter();
            let found = all.find(|(name, _)| wanted.as_ref() == Some(*name));
            let found = found.map(|(_, columns)| columns.as_slice());
            found.ok_or_else(|| {
                let message = format!("table \"{}\" has no constraint {constraint}", table.name);
                SqlError::invalid(Mistake::UndefinedObject, message)
            })
        }
    }
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
            None => default_expr(table, position),
        };
        SelectItem::ExprWithAlias {
            expr: values::cast_to(value, field.data_type()),
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
            Some(values::cast_to(
                Expr::Identifier(given(number)),
                table.schema.field(position).data_type(),
            ))
        });
        let mut key: Vec<Expr> = key.collect();
        // A NULL is different from every other.
        let nullable = |name: &String| {
            let field = table.schema.field_with_name(name);
            field.is_ok_and(|field| field.is_nullable())
        };
        if once.iter().flat_map(|names| names.iter()).any(nullable) && !key.is_empty() {
            key.push(different_if_null(&key));
        }
        select.distinct = (!key.is_empty()).then_some(Distinct::On(key));
    }
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias(Ident::new(EXCLUDED), 0)),
        sample: None,
    }
}

/// NULL if no value is NULL, else something that no other row has.
fn different_if_null(values: &[Expr]) -> Expr {
    let nulls = values
        .iter()
        .map(|value| Expr::IsNull(Box::new(value.clone())));
    let any = nulls.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    });
    let unique = match parse(&Statement::from("SELECT uuid()")) {
        Ok(ast::Statement::Query(query)) => match *query.body {
            SetExpr::Select(mut select) => select.projection.pop(),
            _ => None,
        },
        _ => None,
    };
    let Some(SelectItem::UnnamedExpr(unique)) = unique else {
        unreachable!("it is an expression");
    };
    merge::case(
        None,
        vec![ast::CaseWhen {
            condition: any.expect("a key has columns"),
            result: unique,
        }],
    )
}
