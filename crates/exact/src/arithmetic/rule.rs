//! Arithmetic that fails rather than wrapping, and casts that round rather than cutting off, everywhere.
//!
//! **Stands for** DataFusion's `+`, `-` and `*`, which wrap around silently, and its casts of fractions to integers,
//! which drop the fraction. Fragments do neither. So that it does not matter where an expression is evaluated, this
//! rule puts functions in the place of those operators, once the operands' types are known:
//!
//! ```text
//!  a + b                    add(a, b)              integers and DECIMAL: an error if the result does not fit its type
//!  -a                       subtract(0, a)         integers: only the least has no counterpart in its type
//!  CAST(x AS INTEGER)       CAST(round_half_even(x) AS INTEGER)          x DOUBLE or REAL: 2.5 → 2, 3.5 → 4
//!  CAST(d AS INTEGER)       CAST(CAST(d AS DECIMAL(…, 0)) AS INTEGER)    d DECIMAL: 2.5 → 3
//!  CAST(t AS VARCHAR)       timestamp_text(t)      t TIMESTAMP: a blank between day and time, not a T
//!  CAST(t AS VARCHAR)       value_text(t)          t TIME and the like: see [`text`](crate::text)
//!  CAST(d AS DOUBLE)        nearest_double(d)      d DECIMAL with more than 18 digits
//!  round(x, n)              digits_of(round(x, n), x, n)               x DOUBLE or REAL: x, if it has fewer digits
//!  date_part('epoch', i)    interval_epoch(i)      i INTERVAL
//!  CAST(s AS TIMESTAMP)     CAST(with_seconds(s) AS TIMESTAMP)           s a string: '2024-01-01 10:00'; AS DATE, too
//!  a || b                   string_concat(a, b)    strings: an error if there is no room for the result
//!  last(x ORDER BY y, y)    last(x ORDER BY y)     its accumulators count on each expression being there once
//! ```
//!
//! In a fragment they become the plain operators again.

use super::checked::CheckedArithmetic;
use super::digits;
use super::double::{DOUBLE, rounds_twice};
use super::real::{self, REAL_OR_NULL, WITHIN_REAL};
use super::rounding::{ROUND, ROUND_HALF_EVEN, Rounding};
use super::timestamp_string::STRING;
use crate::comparison::nan;
use crate::datetime::epoch;
use crate::datetime::with_seconds::{SECONDS, WITH_SECONDS};
use crate::memory::concatenation::Concatenation;
use crate::memory::growth::{self, Bounded};
use crate::text;
use crate::walk::rewrite_all;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, cast, lit};
use datafusion::optimizer::analyzer::AnalyzerRule;
use eris_numa::Budget;
use std::sync::{Arc, LazyLock};

/// The rule. Runs after DataFusion has made the types of operands equal.
#[derive(Debug)]
pub(crate) struct ExactArithmetic {
    concatenation: ScalarUDF,
}

impl ExactArithmetic {
    /// What functions make has room in this budget.
    pub fn new(budget: &Budget) -> Self {
        let concatenation = ScalarUDF::from(Concatenation::default());
        ExactArithmetic {
            concatenation: Bounded::scalar(&concatenation, growth::sum, budget),
        }
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let expr = text::rewrite(expr, schema)?;
        if expr.transformed {
            return Ok(expr);
        }
        match expr.data {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::StringConcat,
                right,
            }) if left.get_type(schema).is_ok_and(|of| of.is_string()) => {
                let whole = self.concatenation.call(vec![*left, *right]);
                Ok(Transformed::yes(whole))
            }
            other => rewritten(other, schema).transform_data(|expr| Ok(nan::rewrite(expr, schema))),
        }
    }
}

impl AnalyzerRule for ExactArithmetic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_all(plan, &|expr, schema| self.rewrite(expr, schema))
    }

    fn name(&self) -> &str {
        "exact_arithmetic"
    }
}

static ADD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Plus));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Minus));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Multiply));

fn function(op: Operator) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(CheckedArithmetic::new(op)))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if can_overflow(&left, schema) && can_overflow(&right, schema) =>
        {
            let function = match op {
                Operator::Plus => &ADD,
                Operator::Minus => &SUBTRACT,
                Operator::Multiply => &MULTIPLY,
                _ => return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
            Transformed::yes(function.call(vec![*left, *right]))
        }
        Expr::AggregateFunction(mut function) if function.params.order_by.len() > 1 => {
            let order = &mut function.params.order_by;
            let before = order.len();
            let mut seen = Vec::with_capacity(before);
            order.retain(|sort| {
                let is_new = !seen.contains(&sort.expr);
                if is_new {
                    seen.push(sort.expr.clone());
                }
                is_new
            });
            let changed = order.len() < before;
            let expr = Expr::AggregateFunction(function);
            Transformed::new_transformed(expr, changed)
        }
        Expr::Negative(operand) => match zero_beside(&operand, schema) {
            Some(zero) => Transformed::yes(SUBTRACT.call(vec![zero, *operand])),
            None => Transformed::no(Expr::Negative(operand)),
        },
        Expr::IsTrue(expr) => Transformed::yes(compared(expr, Operator::IsNotDistinctFrom, true)),
        Expr::IsFalse(expr) => Transformed::yes(compared(expr, Operator::IsNotDistinctFrom, false)),
        Expr::IsNotTrue(expr) => Transformed::yes(compared(expr, Operator::IsDistinctFrom, true)),
        Expr::IsNotFalse(expr) => Transformed::yes(compared(expr, Operator::IsDistinctFrom, false)),
        Expr::Cast(Cast { expr, field })
            if is_timestamp_as_string(&expr, field.data_type(), schema) =>
        {
            let string = STRING.call(vec![*expr]);
            Transformed::yes(match field.data_type() {
                DataType::Utf8View => string,
                other => cast(string, other.clone()),
            })
        }
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })
            if (expr.get_type(schema)).is_ok_and(|from| rounds_twice(&from, field.data_type())) =>
        {
            Transformed::yes(DOUBLE.call(vec![*expr]))
        }
        Expr::ScalarFunction(ref call) if call.func.name() == "date_part" => {
            match epoch::of_interval(call, schema) {
                Some(seconds) => Transformed::yes(seconds),
                None => Transformed::no(expr),
            }
        }
        Expr::ScalarFunction(ref call) if digits::rounds(call) => {
            let of = expr.get_type(schema).ok();
            match digits::repaired(&expr, of.as_ref()) {
                Some(repaired) => Transformed::yes(repaired),
                None => Transformed::no(expr),
            }
        }
        Expr::Cast(Cast { expr, field }) if is_real(&expr, field.data_type(), schema) => {
            let expr = Box::new(WITHIN_REAL.call(vec![*expr]));
            Transformed::yes(Expr::Cast(Cast { expr, field }))
        }
        Expr::TryCast(TryCast { expr, field }) if is_real(&expr, field.data_type(), schema) => {
            let expr = Box::new(REAL_OR_NULL.call(vec![*expr]));
            Transformed::yes(Expr::TryCast(TryCast { expr, field }))
        }
        Expr::Cast(Cast { expr, field }) => match rounded(&expr, field.data_type(), schema) {
            Some(rounded) => Transformed::yes(Expr::Cast(Cast {
                expr: Box::new(rounded),
                field,
            })),
            None => Transformed::no(Expr::Cast(Cast { expr, field })),
        },
        Expr::TryCast(TryCast { expr, field }) => match rounded(&expr, field.data_type(), schema) {
            Some(rounded) => Transformed::yes(Expr::TryCast(TryCast {
                expr: Box::new(rounded),
                field,
            })),
            None => Transformed::no(Expr::TryCast(TryCast { expr, field })),
        },
        other => Transformed::no(other),
    }
}

/// Whether it is a DOUBLE that is cast to REAL, and nothing has been done about it.
fn is_real(expr: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let is_done = matches!(expr, Expr::ScalarFunction(call)
        if [&*WITHIN_REAL, &*REAL_OR_NULL].contains(&&call.func));
    !is_done
        && expr
            .get_type(schema)
            .is_ok_and(|from| real::is_cast(&from, to))
}

fn is_timestamp_as_string(expr: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    to.is_string()
        && expr
            .get_type(schema)
            .is_ok_and(|data_type| matches!(data_type, DataType::Timestamp(..)))
}

fn can_overflow(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|data_type| {
        data_type.is_integer() || matches!(data_type, DataType::Decimal128(..))
    })
}

/// `x IS TRUE` and its like, as they are executed. DataFusion plans them as what is never NULL, executes them as what
/// may be, and then finds that the plans differ.
fn compared(expr: Box<Expr>, op: Operator, value: bool) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(expr, op, Box::new(lit(value))))
}

/// The zero of an integer's type; none for a literal, whose sign belongs to it.
fn zero_beside(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    if matches!(expr, Expr::Literal(..)) {
        return None;
    }
    let data_type = expr.get_type(schema).ok()?;
    let zero = data_type
        .is_signed_integer()
        .then(|| ScalarValue::new_zero(&data_type));
    Some(Expr::Literal(zero?.ok()?, None))
}

/// The operand of a cast to this type without its fraction, if it can have one, or with its seconds, if it may lack
/// them.
fn rounded(expr: &Expr, to: &DataType, schema: &DFSchema) -> Option<Expr> {
    if matches!(to, DataType::Timestamp(..) | DataType::Date32) {
        let is_string = expr.get_type(schema).is_ok_and(|of| of.is_string());
        let is_new = !matches!(expr, Expr::ScalarFunction(call) if call.name() == WITH_SECONDS);
        return (is_string && is_new).then(|| SECONDS.call(vec![expr.clone()]));
    }
    if is_rounded(expr) {
        return None;
    }
    Some(match Rounding::of(&expr.get_type(schema).ok()?, to)? {
        Rounding::HalfEven => ROUND.call(vec![expr.clone()]),
        Rounding::To(whole) => cast(expr.clone(), whole),
    })
}

fn is_rounded(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.name() == ROUND_HALF_EVEN)
}
