//! Conditions that a frame may look at before it makes rows: comparisons of one column with constants.
//!
//! A frame need not look at them, for they are tested again. All hold at once.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// A condition that every wanted row meets.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The column, by its name.
    pub column: String,
    /// What holds for its value.
    pub test: ConditionTest,
}

/// What holds for a value.
#[derive(Clone, Debug)]
pub enum ConditionTest {
    /// It compares so with the constant, an array of one value that is not NULL.
    Compare(Comparison, ArrayRef),
    /// It is one of these.
    OneOf(ArrayRef),
    /// It is NULL.
    IsNull,
    /// It is not NULL.
    IsNotNull,
}

/// How a value compares with a constant on its right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
}

/// Constants of IN that are handed on. A longer list is only tested where the rows arrive.
const MOST_CONSTANTS: usize = 1_000;

impl Condition {
    /// The filter as a condition; `None` if it is no comparison of a column with constants.
    pub(crate) fn of(filter: &Expr) -> Option<Condition> {
        match filter {
            // As DataFusion writes short lists of IN.
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Or, ..
            }) => one_of(filter),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => {
                    comparison(&column.name, *op, value)
                }
                (Expr::Literal(value, _), Expr::Column(column)) => {
                    comparison(&column.name, op.swap()?, value)
                }
                _ => None,
            },
            Expr::IsNull(of) => test(of, ConditionTest::IsNull),
            Expr::IsNotNull(of) => test(of, ConditionTest::IsNotNull),
            Expr::InList(list) if !list.negated && list.list.len() <= MOST_CONSTANTS => {
                let constants = list.list.iter().map(|constant| match constant {
                    Expr::Literal(value, _) if !value.is_null() => Some(value.clone()),
                    _ => None,
                });
                let constants = constants.collect::<Option<Vec<_>>>()?;
                let constants = ScalarValue::iter_to_array(constants).ok()?;
                test(&list.expr, ConditionTest::OneOf(constants))
            }
            _ => None,
        }
    }
}

/// Constants that one column is compared with.
fn one_of(filter: &Expr) -> Option<Condition> {
    let mut found: Option<(String, Vec<ScalarValue>)> = None;
    for part in split_binary(filter, Operator::Or) {
        let Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) = part
        else {
            return None;
        };
        let (Expr::Column(column), Expr::Literal(value, _)) = (&**left, &**right) else {
            return None;
        };
        let (name, values) = found.get_or_insert_with(|| (column.name.clone(), Vec::new()));
        if *name != column.name || value.is_null() || values.len() == MOST_CONSTANTS {
            return None;
        }
        values.push(value.clone());
    }
    let (column, values) = found?;
    let values = ScalarValue::iter_to_array(values).ok()?;
    Some(Condition {
        column,
        test: ConditionTest::OneOf(values),
    })
}

fn test(of: &Expr, test: ConditionTest) -> Option<Condition> {
    match of {
        Expr::Column(column) => Some(Condition {
            column: column.name.clone(),
            test,
        }),
        _ => None,
    }
}

fn comparison(column: &str, op: Operator, value: &ScalarValue) -> Option<Condition> {
    if value.is_null() {
        return None;
    }
    let comparison = match op {
        Operator::Eq => Comparison::Eq,
        Operator::NotEq => Comparison::NotEq,
        Operator::Lt => Comparison::Lt,
        Operator::LtEq => Comparison::LtEq,
        Operator::Gt => Comparison::Gt,
        Operator::GtEq => Comparison::GtEq,
        _ => return None,
    };
    Some(Condition {
        column: column.to_owned(),
        test: ConditionTest::Compare(comparison, value.to_array().ok()?),
    })
}
