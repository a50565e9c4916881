//! Which constants of a query may become parameters of its plan: those that its WHERE compares a column with.

use super::NotShort;
use super::constant::is_comparable;
use super::literal::{LiteralSource, literal_value};
use super::mask::Masked;
use crate::catalog::{Table, TableOrView};
use crate::context::StatementContext;
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan, Visitor,
};
use eris_fragment::Type;
use eris_syntax::walk;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Puts `$1`, `$2` … in the places of constants.
///
/// # Errors
/// This query can have no template.
pub(super) fn parameterize(
    context: &StatementContext,
    query: &mut ast::Query,
    masked: &Masked<'_>,
) -> Result<(Vec<Arc<Table>>, Vec<LiteralSource>), NotShort> {
    let (tables, condition) = tables(context, query)?;
    let mut sources = Vec::new();
    for_each_operand(condition, &tables, &mut |operand, data_type| {
        let Some((value, written)) = literal_value(operand) else {
            return match operand {
                Expr::Value(_) => Err(NotShort::UnusualText),
                _ => Ok(()),
            };
        };
        let start = value.span.start;
        let literal = masked.literal_at(start.line, start.column);
        sources.push(LiteralSource {
            literal: literal.ok_or(NotShort::UnusualText)?,
            written,
            data_type: data_type.clone(),
        });
        *operand = Expr::value(Value::Placeholder(format!("${}", sources.len())));
        Ok(())
    })?;
    match sources.is_empty() {
        true => Err(NotShort::NoComparison),
        false => Ok((tables.into_all(), sources)),
    }
}

/// The types of the parameters `$1`, `$2` … that a query has in the places of such constants.
///
/// # Errors
/// It can have no template, because it has others.
pub(super) fn parameter_types(
    context: &StatementContext,
    query: &mut ast::Query,
    parameters: usize,
) -> Result<(Vec<Arc<Table>>, Vec<Type>), NotShort> {
    let all = count_parameters(query);
    let (tables, condition) = tables(context, query)?;
    let mut types = vec![None; parameters];
    let mut found = 0;
    for_each_operand(condition, &tables, &mut |operand, data_type| {
        if let Expr::Value(value) = &*operand
            && let Value::Placeholder(name) = &value.value
        {
            let number = name
                .strip_prefix('$')
                .and_then(|digits| digits.parse::<usize>().ok());
            let slot = number.and_then(|number| types.get_mut(number.checked_sub(1)?));
            let slot = slot.ok_or(NotShort::OtherParameters)?;
            found += 1;
            // One that is compared with several columns has one type for all.
            match slot {
                None => *slot = Some(data_type.clone()),
                Some(known) if known == data_type => {}
                Some(_) => return Err(NotShort::OtherParameters),
            }
        }
        Ok(())
    })?;
    let types: Option<Vec<Type>> = types.into_iter().collect();
    match types {
        _ if all == 0 => Err(NotShort::NoComparison),
        Some(types) if found == all => Ok((tables.into_all(), types)),
        _ => Err(NotShort::OtherParameters),
    }
}

/// The tables that a query joins, and what columns are called by.
struct JoinedTables(Vec<(String, Arc<Table>)>);

impl JoinedTables {
    /// All of them, each once.
    fn into_all(self) -> Vec<Arc<Table>> {
        let mut all: Vec<Arc<Table>> = Vec::with_capacity(self.0.len());
        for (_, table) in self.0 {
            if !all.iter().any(|other| Arc::ptr_eq(other, &table)) {
                all.push(table);
            }
        }
        all
    }

    /// The type of a column, if it is one and constants can be compared with it.
    fn type_of(&self, expr: &Expr) -> Option<&Type> {
        let (qualifier, name) = match expr {
            Expr::Identifier(name) => (None, name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [qualifier, name] => (Some(normalize(qualifier)), name),
                _ => return None,
            },
            _ => return None,
        };
        let name = normalize(name);
        let is_meant = |called: &str| qualifier.as_deref().is_none_or(|meant| meant == called);
        let mut found = (self.0.iter())
            .filter(|(called, _)| is_meant(called))
            .filter_map(|(_, table)| Some(&table.types[table.schema.index_of(&name).ok()?]));
        let data_type = found.next()?;
        (found.next().is_none() && is_comparable(data_type)).then_some(data_type)
    }
}

/// The tables and the condition of a query over tables that are joined, each row with all that it matches.
fn tables<'a>(
    context: &StatementContext,
    query: &'a mut ast::Query,
) -> Result<(JoinedTables, &'a mut Expr), NotShort> {
    if query.with.is_some() || !query.locks.is_empty() || has_query_within(query) {
        return Err(NotShort::QueryWithin);
    }
    let is_first_rows =
        query.order_by.is_some() && (query.limit_clause.is_some() || query.fetch.is_some());
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(NotShort::NotOneSelect);
    };
    let mut tables = Vec::new();
    for from in &select.from {
        tables.push(table(context, &from.relation).ok_or(NotShort::NotTables)?);
        for join in &from.joins {
            use ast::JoinOperator::{CrossJoin, Inner, Join};
            if !matches!(join.join_operator, Join(_) | Inner(_) | CrossJoin(_)) {
                return Err(NotShort::OuterJoin);
            }
            tables.push(table(context, &join.relation).ok_or(NotShort::NotTables)?);
        }
    }
    // The first of joined rows are found by a sort that remembers what it has seen.
    if is_first_rows && tables.len() > 1 {
        return Err(NotShort::FirstOfJoined);
    }
    let condition = select.selection.as_mut().ok_or(NotShort::NoComparison)?;
    Ok((JoinedTables(tables), condition))
}

/// A table and what its columns are called by.
fn table(context: &StatementContext, factor: &TableFactor) -> Option<(String, Arc<Table>)> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        ..
    } = factor
    else {
        return None;
    };
    let name = context.full_name(name)?;
    let called = match alias {
        // Columns are called otherwise, too.
        Some(alias) if !alias.columns.is_empty() => return None,
        Some(alias) => normalize(&alias.name),
        None => name.name.clone(),
    };
    match context.catalog.contents().get(&name)? {
        TableOrView::Table(table) => Some((called, Arc::clone(table))),
        TableOrView::View(_) => None,
    }
}

/// Calls `visit` with what a condition compares columns with, and the column's type, until that fails.
fn for_each_operand(
    condition: &mut Expr,
    tables: &JoinedTables,
    visit: &mut impl FnMut(&mut Expr, &Type) -> Result<(), NotShort>,
) -> Result<(), NotShort> {
    match condition {
        Expr::Nested(inner) => for_each_operand(inner, tables, visit),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => for_each_operand(expr, tables, visit),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            for_each_operand(left, tables, visit)?;
            for_each_operand(right, tables, visit)
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            match (tables.type_of(left), tables.type_of(right)) {
                (Some(data_type), None) => visit(right, data_type),
                (None, Some(data_type)) => visit(left, data_type),
                _ => Ok(()),
            }
        }
        Expr::Between {
            expr, low, high, ..
        } => match tables.type_of(expr) {
            Some(data_type) => {
                visit(low, data_type)?;
                visit(high, data_type)
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn has_query_within(query: &ast::Query) -> bool {
    struct Count(usize);
    impl Visitor for Count {
        type Break = ();
        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _ = walk(query, &mut count);
    count.0 > 1
}

fn count_parameters(query: &ast::Query) -> usize {
    struct Count(usize);
    impl Visitor for Count {
        type Break = ();
        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            self.0 += usize::from(matches!(value.value, Value::Placeholder(_)));
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _ = walk(query, &mut count);
    count.0
}
