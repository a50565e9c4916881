//! Which constants of a query may become parameters of its plan: those that its WHERE compares a column with.

use super::constant::is_comparable;
use super::mask::Masked;
use crate::catalog::{Relation, RelationName, Table};
use crate::core::{Core, normalize};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, SetExpr, TableFactor, UnaryOperator, Value, ValueWithSpan, Visit,
    Visitor,
};
use eris_fragment::Type;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A parameter's place in the text.
#[derive(Debug)]
pub(super) struct Source {
    /// Which of the text's constants it is.
    pub literal: usize,
    pub written: Written,
    /// That of the column.
    pub data_type: Type,
}

/// How a constant is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    Number {
        negative: bool,
    },
    Text,
    /// `DATE '…'`
    Date,
}

/// Puts `$1`, `$2` … in the places of constants. `None`: this query can have no template.
pub(super) fn parameterize(
    core: &Core,
    query: &mut ast::Query,
    masked: &Masked<'_>,
) -> Option<(Arc<Table>, Vec<Source>)> {
    let (table, condition) = one_table(core, query)?;
    let mut sources = Vec::new();
    for_each_operand(condition, &table, &mut |operand, data_type| {
        let (value, written) = match &*operand {
            Expr::Value(value) => (value, written(value, false)?),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match expr.as_ref() {
                Expr::Value(value) => (value, written(value, true)?),
                _ => return Some(()),
            },
            Expr::TypedString(typed) if typed.data_type == ast::DataType::Date => {
                (&typed.value, Written::Date)
            }
            _ => return Some(()),
        };
        let start = value.span.start;
        sources.push(Source {
            literal: masked.literal_at(start.line, start.column)?,
            written,
            data_type: data_type.clone(),
        });
        *operand = Expr::value(Value::Placeholder(format!("${}", sources.len())));
        Some(())
    })?;
    (!sources.is_empty()).then_some((table, sources))
}

/// The types of the parameters `$1`, `$2` … that a query has in the places of such constants. `None`: it can have no
/// template, because it has others.
pub(super) fn parameter_types(
    core: &Core,
    query: &mut ast::Query,
    parameters: usize,
) -> Option<(Arc<Table>, Vec<Type>)> {
    let all = count_parameters(query);
    let (table, condition) = one_table(core, query)?;
    let mut types = vec![None; parameters];
    let mut found = 0;
    for_each_operand(condition, &table, &mut |operand, data_type| {
        if let Expr::Value(value) = &*operand
            && let Value::Placeholder(name) = &value.value
        {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            let slot = types.get_mut(number.checked_sub(1)?)?;
            found += 1;
            // One that is compared with several columns has one type for all.
            match slot {
                None => *slot = Some(data_type.clone()),
                Some(known) if known == data_type => {}
                Some(_) => return None,
            }
        }
        Some(())
    })?;
    let types: Option<Vec<Type>> = types.into_iter().collect();
    (found == all).then_some((table, types?))
}

/// The table and the condition of a query over one table.
fn one_table<'a>(core: &Core, query: &'a mut ast::Query) -> Option<(Arc<Table>, &'a mut Expr)> {
    if query.with.is_some() || !query.locks.is_empty() || has_query_within(query) {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let [from] = select.from.as_slice() else {
        return None;
    };
    let TableFactor::Table {
        name,
        alias,
        args: None,
        ..
    } = &from.relation
    else {
        return None;
    };
    // Columns may be called otherwise, too.
    let has_other_names = (alias.as_ref()).is_some_and(|alias| !alias.columns.is_empty());
    if has_other_names || !from.joins.is_empty() {
        return None;
    }
    let parts = name.0.iter().map(|part| part.as_ident().map(normalize));
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    let name = match parts.as_slice() {
        [name] => RelationName::new(&*core.current_schema, name.as_str()),
        [schema, name] => RelationName::new(schema.as_str(), name.as_str()),
        _ => return None,
    };
    let table = match core.catalog.contents().get(&name)? {
        Relation::Table(table) => Arc::clone(table),
        Relation::View(_) => return None,
    };
    Some((table, select.selection.as_mut()?))
}

/// Calls `visit` with what a condition compares columns with, and the column's type, until it returns `None`.
fn for_each_operand(
    condition: &mut Expr,
    table: &Table,
    visit: &mut impl FnMut(&mut Expr, &Type) -> Option<()>,
) -> Option<()> {
    match condition {
        Expr::Nested(inner) => for_each_operand(inner, table, visit),
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => for_each_operand(expr, table, visit),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            for_each_operand(left, table, visit)?;
            for_each_operand(right, table, visit)
        }
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            match (column_type(left, table), column_type(right, table)) {
                (Some(data_type), None) => visit(right, data_type),
                (None, Some(data_type)) => visit(left, data_type),
                _ => Some(()),
            }
        }
        Expr::Between {
            expr, low, high, ..
        } => match column_type(expr, table) {
            Some(data_type) => {
                visit(low, data_type)?;
                visit(high, data_type)
            }
            None => Some(()),
        },
        _ => Some(()),
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The type of a column, if constants can be compared with it.
fn column_type<'a>(expr: &Expr, table: &'a Table) -> Option<&'a Type> {
    let name = match expr {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(parts) => parts.last()?,
        _ => return None,
    };
    let position = table.schema.index_of(&normalize(name)).ok()?;
    Some(&table.types[position]).filter(|data_type| is_comparable(data_type))
}

fn written(value: &ValueWithSpan, negative: bool) -> Option<Written> {
    match &value.value {
        Value::Number(_, false) => Some(Written::Number { negative }),
        Value::SingleQuotedString(_) if !negative => Some(Written::Text),
        _ => None,
    }
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
    let _ = Visit::visit(query, &mut count);
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
    let _ = Visit::visit(query, &mut count);
    count.0
}
