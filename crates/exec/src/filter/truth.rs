//! Conditions on one column, solved instead of evaluated: for which values of the column is the condition true, for
//! which is it false, and what is it for NULL?
//!
//! ```text
//! a < 5 OR a IN (7, 8) OR a IS NULL      yes = [MIN,4] ∪ [7,8]   no = [5,6] ∪ [9,MAX]   null = TRUE
//! NOT (CAST(a AS BIGINT) = 7)            yes = [MIN,6] ∪ [8,MAX] no = [7,7]             null = NULL
//! ```
//!
//! What is in neither set makes the condition NULL. AND, OR, NOT are then set operations, exact in three-valued logic.
//! Values are those of the column's stored domain (`eris_column::Domain`); floats go through [`float_key`], so
//! that one algebra serves both.

use super::interval::IntervalSet;
use crate::bounds::{domain_offset, lossless_factor};
use crate::columns::FragmentColumns;
use eris_column::Domain;
use eris_fragment::{BinaryOp, Expr, Scalar, Type, Value};

/// The solution of a condition on one column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Truth {
    /// The values for which it is true.
    pub(crate) yes: IntervalSet,
    /// The values for which it is false.
    no: IntervalSet,
    /// What it is where the column is NULL.
    pub(crate) null: Option<bool>,
}

impl Truth {
    /// The same for every value and NULL.
    fn constant(value: Option<bool>) -> Self {
        let set = |member: bool| match member {
            true => IntervalSet::all(),
            false => IntervalSet::empty(),
        };
        Truth {
            yes: set(value == Some(true)),
            no: set(value == Some(false)),
            null: value,
        }
    }

    /// True for the members, false for all other values, NULL for NULL.
    pub(super) fn member(yes: IntervalSet) -> Self {
        Truth {
            no: yes.complement(),
            yes,
            null: None,
        }
    }

    fn not(self) -> Self {
        Truth {
            yes: self.no,
            no: self.yes,
            null: self.null.map(|value| !value),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Truth {
            yes: self.yes.intersection(&other.yes),
            no: self.no.union(&other.no),
            null: match (self.null, other.null) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
        }
    }

    /// `IS NULL` of the condition itself.
    fn unknown(self) -> Self {
        let known = self.yes.union(&self.no);
        Truth {
            yes: known.complement(),
            no: known,
            null: Some(self.null.is_none()),
        }
    }
}

/// Solves `condition`, whose only column is `column`; `None` if it has a part that this algebra does not cover.
pub(crate) fn solve(condition: &Expr, column: usize, columns: &FragmentColumns) -> Option<Truth> {
    Solver { column, columns }.solve(condition)
}

struct Solver<'a> {
    column: usize,
    columns: &'a FragmentColumns,
}

/// The column, behind casts that change no value: what a comparison sees is `(stored + offset) * factor`.
struct ComparedColumn {
    offset: i128,
    factor: i128,
}

impl ComparedColumn {
    /// The stored values that a comparison sees as something from `low` to `high`.
    fn preimage(&self, low: i128, high: i128) -> IntervalSet {
        let floor = high.div_euclid(self.factor) - self.offset;
        let ceiling = -(low.saturating_neg().div_euclid(self.factor)) - self.offset;
        let stored = i64::MIN as i128..=i64::MAX as i128;
        if floor < *stored.start() || ceiling > *stored.end() {
            return IntervalSet::empty();
        }
        IntervalSet::range(
            ceiling.max(*stored.start()) as i64,
            floor.min(*stored.end()) as i64,
        )
    }
}

impl Solver<'_> {
    fn solve(&self, condition: &Expr) -> Option<Truth> {
        match condition {
            Expr::Literal(scalar) => match scalar.value {
                Value::Boolean(value) => Some(Truth::constant(Some(value))),
                Value::Null => Some(Truth::constant(None)),
                _ => None,
            },
            Expr::Column(_) if self.columns.types[self.column] == Type::Boolean => {
                Some(Truth::member(IntervalSet::range(1, 1)))
            }
            Expr::Not(operand) => Some(self.solve(operand)?.not()),
            Expr::Binary {
                op: BinaryOp::And,
                left,
                right,
            } => Some(self.solve(left)?.and(self.solve(right)?)),
            Expr::Binary {
                op: BinaryOp::Or,
                left,
                right,
            } => Some(self.solve(left)?.not().and(self.solve(right)?.not()).not()),
            Expr::Binary { op, left, right } if op.is_comparison() => match (&**left, &**right) {
                (operand, Expr::Literal(scalar)) => self.compare(*op, operand, scalar),
                (Expr::Literal(scalar), operand) => self.compare(mirrored(*op), operand, scalar),
                _ => None,
            },
            Expr::InList {
                operand,
                list,
                negated,
            } => {
                let members = self.members(operand, list)?;
                Some(if *negated { members.not() } else { members })
            }
            Expr::IsNull(operand) => self.is_null(operand),
            Expr::IsNotNull(operand) => Some(self.is_null(operand)?.not()),
            _ => None,
        }
    }

    fn is_null(&self, operand: &Expr) -> Option<Truth> {
        if self.is_column(operand) {
            return Some(Truth {
                yes: IntervalSet::empty(),
                no: IntervalSet::all(),
                null: Some(true),
            });
        }
        Some(self.solve(operand)?.unknown())
    }

    /// Whether the operand is the column, NULL exactly where the column is.
    fn is_column(&self, operand: &Expr) -> bool {
        self.integer_operand(operand).is_some() || self.is_float(operand)
    }

    fn compare(&self, op: BinaryOp, operand: &Expr, constant: &Scalar) -> Option<Truth> {
        if !self.is_column(operand) {
            return None;
        }
        if constant.is_null() {
            return Some(Truth::constant(None));
        }
        let equal = |set: IntervalSet| Truth::member(set);
        Some(match op {
            BinaryOp::Eq => equal(self.between(operand, Some(constant), Some(constant))?),
            BinaryOp::NotEq => equal(self.between(operand, Some(constant), Some(constant))?).not(),
            BinaryOp::LtEq => equal(self.between(operand, None, Some(constant))?),
            BinaryOp::Gt => equal(self.between(operand, None, Some(constant))?).not(),
            BinaryOp::GtEq => equal(self.between(operand, Some(constant), None)?),
            BinaryOp::Lt => equal(self.between(operand, Some(constant), None)?).not(),
            _ => return None,
        })
    }

    fn members(&self, operand: &Expr, list: &[Scalar]) -> Option<Truth> {
        if !self.is_column(operand) {
            return None;
        }
        let mut points = Vec::with_capacity(list.len());
        let mut unknown = false;
        for scalar in list {
            if scalar.is_null() {
                unknown = true;
                continue;
            }
            let set = self.between(operand, Some(scalar), Some(scalar))?;
            points.extend(set.ranges().iter().map(|&(value, _)| value));
        }
        let mut truth = Truth::member(IntervalSet::points(points));
        if unknown {
            truth.no = IntervalSet::empty();
        }
        Some(truth)
    }

    /// The stored values between two constants, both included.
    fn between(
        &self,
        operand: &Expr,
        low: Option<&Scalar>,
        high: Option<&Scalar>,
    ) -> Option<IntervalSet> {
        if self.is_float(operand) {
            let low = low.map_or(Some(i64::MIN), float_constant)?;
            let high = high.map_or(Some(i64::MAX), float_constant)?;
            return Some(IntervalSet::range(low, high));
        }
        let view = self.integer_operand(operand)?;
        // Far beyond every column, yet safe to divide and shift.
        let low = low.map_or(Some(-(i128::MAX / 4)), integer_constant)?;
        let high = high.map_or(Some(i128::MAX / 4), integer_constant)?;
        Some(view.preimage(low, high))
    }

    fn is_float(&self, operand: &Expr) -> bool {
        match operand {
            Expr::Column(_) => matches!(
                self.columns.domains[self.column],
                Domain::Float32 | Domain::Float64
            ),
            // Each REAL is a DOUBLE.
            Expr::Cast { operand, to } => {
                matches!(to, Type::Float32 | Type::Float64)
                    && self.is_float(operand)
                    && !(*to == Type::Float32 && self.columns.types[self.column] == Type::Float64)
            }
            _ => false,
        }
    }

    fn integer_operand(&self, operand: &Expr) -> Option<ComparedColumn> {
        match operand {
            Expr::Column(_) => {
                (self.columns.domains[self.column] == Domain::Integer).then(|| ComparedColumn {
                    offset: domain_offset(&self.columns.types[self.column]),
                    factor: 1,
                })
            }
            Expr::Cast { operand, to } => {
                let inner = self.integer_operand(operand)?;
                let from = operand.data_type(&self.columns.types).ok()?;
                Some(ComparedColumn {
                    factor: inner.factor.checked_mul(lossless_factor(&from, to)?)?,
                    ..inner
                })
            }
            _ => None,
        }
    }
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::LtEq => BinaryOp::GtEq,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::GtEq => BinaryOp::LtEq,
        symmetric => symmetric,
    }
}

fn integer_constant(scalar: &Scalar) -> Option<i128> {
    match scalar.value {
        // Beyond this lie only decimals that no column of integers reaches; they are left to evaluation.
        Value::Integer(value) if value.unsigned_abs() <= 1 << 120 => Some(value),
        Value::Boolean(value) => Some(value as i128),
        _ => None,
    }
}

fn float_constant(scalar: &Scalar) -> Option<i64> {
    match scalar.value {
        Value::Float(value) => Some(float_key(value)),
        _ => None,
    }
}

/// A number whose order as an integer is the order in which comparisons see floats: IEEE 754's total order, but with
/// both zeros equal.
pub(crate) fn float_key(value: f64) -> i64 {
    // Adding +0.0 turns -0.0 into +0.0 and changes nothing else.
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The float of a [`float_key`].
pub(crate) fn float_of_key(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}
