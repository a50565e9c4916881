//! MERGE INTO table USING source ON condition WHEN … [RETURNING …]
//!
//! ```text
//! source ⟕ target       row id   branch   values of branch 0   values of branch 1 …
//!                          7        0        a = 1                 –               WHEN MATCHED THEN UPDATE
//!                        NULL       1        –                     (5, 'x')        WHEN NOT MATCHED THEN INSERT
//! ```
//!
//! One query finds for every pair the first branch whose condition holds, and computes its values only.

use super::per_row;
use super::target;
use super::update::{assigned, values};
use super::{Action, Change};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::resolve::ROW;
use crate::statements::insert::values;
use crate::system::functions::session_state;
use crate::text::identifier::last_name;
use crate::write::coerce;
use crate::write::targets;
use crate::write::targets::{default_target, is_word_default};
use datafusion::arrow::array::{AsArray, BooleanArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, Join, JoinConstraint, JoinOperator, Merge, MergeAction,
    MergeClause, MergeClauseKind, MergeInsertKind, OutputClause, Query, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins, Value, VisitorMut,
    WildcardAdditionalOptions, helpers::attached_token::AttachedToken,
};
use eris_syntax::walk_mut;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// A column that says of a row that there is one of the source.
const SOURCE: &str = "source(";

/// A WHEN.
pub(super) struct MergeBranch {
    /// The row of the table ends.
    pub ends_row: bool,
    /// A row is added, with these values.
    pub targets: Option<Vec<coerce::Target>>,
    /// The columns of the query with a row that ends without a successor, for RETURNING.
    pub deleted: Option<Range<usize>>,
}

impl MergeBranch {
    /// What it is called in RETURNING.
    pub fn name(&self) -> &'static str {
        match (self.ends_row, &self.targets) {
            (true, None) => "DELETE",
            (true, Some(_)) => "UPDATE",
            (false, _) => "INSERT",
        }
    }
}

pub(super) fn change(
    context: &StatementContext,
    table: &Arc<Table>,
    merge: Merge,
    old_columns: &[usize],
) -> Result<Change, SqlError> {
    let returning = match merge.output {
        Some(OutputClause::Returning { select_items, .. }) => Some(select_items),
        Some(OutputClause::Output { .. }) => {
            return Err(SqlError::not_supported("MERGE … OUTPUT")
                .with_hint(Some("RETURNING merge_action, *")));
        }
        None => None,
    };
    if !merge.optimizer_hints.is_empty() {
        return Err(SqlError::not_supported("MERGE with hints"));
    }
    let alias = target::alias(&merge.table)?;
    let has = |kind: MergeClauseKind| {
        merge
            .clauses
            .iter()
            .any(|clause| clause.clause_kind == kind)
    };
    let some_add = has(MergeClauseKind::NotMatched) || has(MergeClauseKind::NotMatchedByTarget);
    let lonely = has(MergeClauseKind::NotMatchedBySource);
    let on = JoinConstraint::On(*merge.on);
    let operator = match (some_add, lonely) {
        (false, false) => JoinOperator::Inner(on),
        (true, false) => JoinOperator::LeftOuter(on),
        (false, true) => JoinOperator::RightOuter(on),
        (true, true) => JoinOperator::FullOuter(on),
    };
    let (source, source_alias) = marked(merge.source)?;
    let target_row = || target::column(&alias, ROW);
    let source_row = || target::column(&source_alias, SOURCE);
    let mut whens = Vec::new();
    for (number, clause) in merge.clauses.iter().enumerate() {
        let met = match clause.clause_kind {
            MergeClauseKind::Matched => and(not_null(target_row()), not_null(source_row())),
            MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => {
                Expr::IsNull(Box::new(target_row()))
            }
            MergeClauseKind::NotMatchedBySource => Expr::IsNull(Box::new(source_row())),
        };
        let condition = match &clause.predicate {
            Some(predicate) => {
                per_row::check_repeatable(context, predicate)?;
                let mut predicate = predicate.clone();
                if adds(clause) {
                    of_source(&mut predicate, &source_alias);
                }
                and(met, Expr::Nested(Box::new(predicate)))
            }
            None => met,
        };
        whens.push(CaseWhen {
            condition,
            result: integer(number),
        });
    }
    let branch = case(None, whens);
    let mut items = vec![
        target::named(target_row(), 0),
        target::named(branch.clone(), 1),
    ];
    let mut branches = Vec::new();
    for (number, clause) in merge.clauses.into_iter().enumerate() {
        let first = items.len();
        let names = (&alias, &source_alias);
        let mut deleted = None;
        if returning.is_some() && matches!(clause.action, MergeAction::Delete { .. }) {
            let columns: Vec<usize> = (0..table.types.len()).collect();
            deleted = Some(first..first + columns.len());
            items.extend(target::columns(table, &columns, &alias, first));
        }
        branches.push(MergeBranch {
            deleted,
            ..of_clause(context, table, names, clause, &mut items)?
        });
        for item in &mut items[first..] {
            let SelectItem::ExprWithAlias { expr, .. } = item else {
                continue;
            };
            let when = CaseWhen {
                condition: integer(number),
                result: expr.clone(),
            };
            *expr = case(Some(branch.clone()), vec![when]);
        }
    }
    let old = items.len();
    items.extend(target::columns(table, old_columns, &alias, old));
    let target = Join {
        relation: target::with_row_ids(&merge.table)?,
        global: false,
        join_operator: operator,
    };
    let from = TableWithJoins {
        relation: source,
        joins: vec![target],
    };
    Ok(Change {
        table: Arc::clone(table),
        query: target::select(items, vec![from], None),
        alias,
        action: Action::Merge(branches),
        old,
        inserted_once: None,
        returning,
        tag: "MERGE",
    })
}

/// The source with a column that no missing row has; also its name.
fn marked(source: TableFactor) -> Result<(TableFactor, Ident), SqlError> {
    let alias = match &source {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => alias.name.clone(),
        TableFactor::Table { name, .. } => {
            Ident::with_quote('"', last_name(name).unwrap_or_default())
        }
        _ => {
            return Err(
                SqlError::invalid(Mistake::Syntax, "the source of MERGE needs a name")
                    .with_hint(Some("USING (…) AS name")),
            );
        }
    };
    let all = SelectItem::QualifiedWildcard(
        SelectItemQualifiedWildcardKind::ObjectName(vec![alias.clone()].into()),
        WildcardAdditionalOptions::default(),
    );
    let mark = SelectItem::ExprWithAlias {
        expr: Expr::value(Value::Boolean(true)),
        alias: Ident::with_quote('"', SOURCE),
    };
    let from = TableWithJoins {
        relation: source,
        joins: Vec::new(),
    };
    let marked = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(target::select(vec![all, mark], vec![from], None)),
        alias: Some(TableAlias {
            explicit: true,
            name: alias.clone(),
            columns: Vec::new(),
            at: None,
        }),
        sample: None,
    };
    Ok((marked, alias))
}

/// Rejects rows to be inserted that give values to columns which always get their own.
pub(super) fn check_given(table: &Table, merge: &Merge) -> Result<(), SqlError> {
    for clause in &merge.clauses {
        if let MergeAction::Insert(added) = &clause.action
            && let MergeInsertKind::Values(given) = &added.kind
            && let [row] = &given.rows[..]
        {
            let columns = targets::columns(table, &added.columns)?;
            for (column, value) in columns.into_iter().zip(&row.content) {
                targets::check_given(table, column, Some(value))?;
            }
        }
    }
    Ok(())
}

fn of_clause(
    context: &StatementContext,
    table: &Table,
    (alias, source_alias): (&Ident, &Ident),
    clause: MergeClause,
    items: &mut Vec<SelectItem>,
) -> Result<MergeBranch, SqlError> {
    let adds = adds(&clause);
    let misplaced = |what: &str| {
        SqlError::invalid(Mistake::Syntax, format!("MERGE: WHEN {} THEN {what}", clause.clause_kind)).with_hint(Some(
            "rows that match, or that the source does not have, can be updated or deleted; those that the table does \
             not have can be inserted",
        ))
    };
    match clause.action {
        MergeAction::Delete { .. } if !adds => Ok(MergeBranch {
            ends_row: true,
            targets: None,
            deleted: None,
        }),
        MergeAction::Update(update) if !adds => {
            if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                return Err(SqlError::not_supported("MERGE … UPDATE … WHERE")
                    .with_hint(Some("put the condition after WHEN MATCHED AND")));
            }
            let set = assigned(context, table, update.assignments)?;
            Ok(MergeBranch {
                ends_row: true,
                targets: Some(values(context, table, alias, set, items)?),
                deleted: None,
            })
        }
        MergeAction::Insert(added) if adds => {
            if added.insert_predicate.is_some() {
                return Err(SqlError::not_supported("MERGE … INSERT … WHERE")
                    .with_hint(Some("put the condition after WHEN NOT MATCHED AND")));
            }
            let MergeInsertKind::Values(given) = added.kind else {
                return Err(SqlError::not_supported("MERGE … INSERT ROW"));
            };
            let [row] = <[_; 1]>::try_from(given.rows).map_err(|_| {
                SqlError::invalid(Mistake::Syntax, "MERGE … INSERT takes one row of VALUES")
            })?;
            let columns = targets::columns(table, &added.columns)?;
            if columns.len() != row.content.len() {
                return Err(SqlError::invalid(
                    Mistake::Syntax,
                    format!(
                        "MERGE … INSERT: {} columns, but {} values",
                        columns.len(),
                        row.content.len()
                    ),
                ));
            }
            let state = session_state(context);
            let mut given: Vec<Option<Expr>> = vec![None; table.types.len()];
            for (column, value) in columns.into_iter().zip(row.content) {
                let mut value = value;
                if !is_word_default(&value) {
                    of_source(&mut value, source_alias);
                }
                given[column] = Some(value);
            }
            let targets = given.into_iter().enumerate().map(|(position, value)| {
                match value.filter(|value| !is_word_default(value)) {
                    Some(value) => {
                        let data_type = table.schema.field(position).data_type();
                        let value = values::for_column(value, data_type);
                        items.push(target::named(value, items.len()));
                        Ok(coerce::Target::Source(items.len() - 1))
                    }
                    None => default_target(&state, table, position),
                }
            });
            Ok(MergeBranch {
                ends_row: false,
                targets: Some(targets.collect::<Result<_, _>>()?),
                deleted: None,
            })
        }
        MergeAction::Delete { .. } => Err(misplaced("DELETE")),
        MergeAction::Update(_) => Err(misplaced("UPDATE")),
        MergeAction::Insert(_) => Err(misplaced("INSERT")),
    }
}

/// Whether a WHEN is about rows that the table does not have.
fn adds(clause: &MergeClause) -> bool {
    matches!(
        clause.clause_kind,
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget
    )
}

/// Says of columns without a table that they are the source's: there is no row of the table. Subqueries have names of
/// their own and are left alone.
fn of_source(expr: &mut Expr, source: &Ident) {
    struct Qualifier<'a> {
        source: &'a Ident,
        subqueries: usize,
    }
    impl VisitorMut for Qualifier<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.subqueries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.subqueries -= 1;
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let (0, Expr::Identifier(name)) = (self.subqueries, &expr) {
                *expr = Expr::CompoundIdentifier(vec![self.source.clone(), name.clone()]);
            }
            ControlFlow::Continue(())
        }
    }
    let mut qualifier = Qualifier {
        source,
        subqueries: 0,
    };
    let _ = walk_mut(expr, &mut qualifier);
}

/// The rows of each branch.
pub(super) fn split<'a>(
    batch: &RecordBatch,
    branches: &'a [MergeBranch],
) -> Result<Vec<(&'a MergeBranch, RecordBatch)>, SqlError> {
    let chosen = batch.column(1).as_primitive::<Int64Type>();
    let parts = branches.iter().enumerate().map(|(number, branch)| {
        let here: BooleanArray = chosen
            .iter()
            .map(|chosen| Some(chosen == Some(number as i64)))
            .collect();
        Ok((branch, filter_record_batch(batch, &here)?))
    });
    let parts = parts.filter(|part| {
        part.as_ref()
            .map_or(true, |(_, rows): &(_, RecordBatch)| rows.num_rows() > 0)
    });
    parts.collect()
}

fn integer(number: usize) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

fn not_null(expr: Expr) -> Expr {
    Expr::IsNotNull(Box::new(expr))
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    }
}

pub(super) fn case(operand: Option<Expr>, conditions: Vec<CaseWhen>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: operand.map(Box::new),
        conditions,
        else_result: None,
    }
}
