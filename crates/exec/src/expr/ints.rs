//! Arithmetic on stored integers without Arrow arrays: `l_extendedprice * (1 - l_discount)` as two loops over `i64`.
//!
//! Whether a step can overflow is decided once per chunk: zone maps give each column's range, and interval arithmetic
//! the range of each step. If every step stays within its type and within 64 bits, the loops need no checks. If not,
//! Arrow's checked kernels evaluate the chunk. They tell a real overflow from a mere possibility.

use crate::bounds::{lossless_factor, value_bounds};
use crate::columns::FragmentColumns;
use eris_column::Domain;
use eris_fragment::{BinaryOp, Expr, Type, Value};
use std::borrow::Cow;

/// An expression over stored integers whose value is the (unscaled) number it stands for.
#[derive(Debug)]
pub(crate) enum Integers {
    Column(usize),
    Constant(i64),
    Negate(Box<Integers>, (i128, i128)),
    Binary {
        op: BinaryOp,
        left: Box<Integers>,
        right: Box<Integers>,
        /// What the step's type can hold.
        bounds: (i128, i128),
    },
}

impl Integers {
    /// Compiles an expression, if it is nothing but `+ - *` over columns and constants that are stored as integers.
    pub(crate) fn compile(expr: &Expr, columns: &FragmentColumns) -> Option<Self> {
        match expr {
            // The only type whose stored integers are not the values themselves.
            Expr::Column(column) if columns.types[*column] == Type::UInt64 => None,
            Expr::Column(column) => {
                (columns.domains[*column] == Domain::Integer).then_some(Integers::Column(*column))
            }
            Expr::Literal(scalar) => match scalar.value {
                Value::Integer(value) if scalar.data_type != Type::UInt64 => {
                    Some(Integers::Constant(value.try_into().ok()?))
                }
                _ => None,
            },
            Expr::Negate(operand) => {
                let bounds = bounds(&expr.data_type(&columns.types).ok()?)?;
                let operand = Self::compile(operand, columns)?;
                Some(Integers::Negate(Box::new(operand), bounds))
            }
            Expr::Cast { operand, to } => {
                let from = operand.data_type(&columns.types).ok()?;
                let factor = lossless_factor(&from, to)?;
                Self::compile(operand, columns)?.scaled(factor, bounds(to)?)
            }
            Expr::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply),
                left,
                right,
            } => {
                let to = expr.data_type(&columns.types).ok()?;
                let bounds = bounds(&to)?;
                let side = |side: &Expr| {
                    let integers = Self::compile(side, columns)?;
                    let from = side.data_type(&columns.types).ok()?;
                    let digits = match (*op, scale(&from), scale(&to)) {
                        (BinaryOp::Multiply, _, _) => 0,
                        (_, from, to) => u32::try_from(to.checked_sub(from)?).ok()?,
                    };
                    integers.scaled(10i128.checked_pow(digits)?, bounds)
                };
                Some(Integers::Binary {
                    op: *op,
                    left: Box::new(side(left)?),
                    right: Box::new(side(right)?),
                    bounds,
                })
            }
            _ => None,
        }
    }

    fn scaled(self, factor: i128, bounds: (i128, i128)) -> Option<Self> {
        Some(match factor {
            1 => self,
            _ => Integers::Binary {
                op: BinaryOp::Multiply,
                left: Box::new(self),
                right: Box::new(Integers::Constant(factor.try_into().ok()?)),
                bounds,
            },
        })
    }

    /// The range of the values, given the columns' ranges; `None` if some step might leave its type or 64 bits.
    pub(crate) fn range(&self, of: &impl Fn(usize) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
        let (low, high, bounds) = match self {
            Integers::Column(column) => return of(*column),
            Integers::Constant(value) => return Some((*value, *value)),
            Integers::Negate(operand, bounds) => {
                let (low, high) = operand.range(of)?;
                (-(high as i128), -(low as i128), bounds)
            }
            Integers::Binary {
                op,
                left,
                right,
                bounds,
            } => {
                let ((l0, l1), (r0, r1)) = (left.range(of)?, right.range(of)?);
                let [l0, l1, r0, r1] = [l0, l1, r0, r1].map(i128::from);
                let (low, high) = match op {
                    BinaryOp::Add => (l0 + r0, l1 + r1),
                    BinaryOp::Subtract => (l0 - r1, l1 - r0),
                    _ => {
                        let products = [l0 * r0, l0 * r1, l1 * r0, l1 * r1];
                        let low = products.into_iter().min();
                        (low?, products.into_iter().max()?)
                    }
                };
                (low, high, bounds)
            }
        };
        if low < bounds.0 || high > bounds.1 {
            return None;
        }
        Some((low.try_into().ok()?, high.try_into().ok()?))
    }

    /// The values, given those of the columns. Only valid after [`Integers::range`] gave a range.
    pub(crate) fn evaluate<'a>(
        &self,
        rows: usize,
        of: &impl Fn(usize) -> &'a [i64],
    ) -> Cow<'a, [i64]> {
        match self.operand(of) {
            IntOperand::Rows(values) => values,
            IntOperand::Constant(value) => Cow::Owned(vec![value; rows]),
        }
    }

    fn operand<'a>(&self, of: &impl Fn(usize) -> &'a [i64]) -> IntOperand<'a> {
        match self {
            Integers::Column(column) => IntOperand::Rows(Cow::Borrowed(of(*column))),
            Integers::Constant(value) => IntOperand::Constant(*value),
            Integers::Negate(operand, _) => apply(
                IntOperand::Constant(0),
                operand.operand(of),
                i64::wrapping_sub,
            ),
            Integers::Binary {
                op, left, right, ..
            } => {
                let (left, right) = (left.operand(of), right.operand(of));
                match op {
                    BinaryOp::Add => apply(left, right, i64::wrapping_add),
                    BinaryOp::Subtract => apply(left, right, i64::wrapping_sub),
                    _ => apply(left, right, i64::wrapping_mul),
                }
            }
        }
    }
}

enum IntOperand<'a> {
    Rows(Cow<'a, [i64]>),
    Constant(i64),
}

fn apply<'a>(
    left: IntOperand<'_>,
    right: IntOperand<'_>,
    f: impl Fn(i64, i64) -> i64,
) -> IntOperand<'a> {
    let values: Vec<i64> = match (left, right) {
        (IntOperand::Constant(left), IntOperand::Constant(right)) => {
            return IntOperand::Constant(f(left, right));
        }
        (IntOperand::Rows(left), IntOperand::Constant(right)) => {
            left.iter().map(|&left| f(left, right)).collect()
        }
        (IntOperand::Constant(left), IntOperand::Rows(right)) => {
            right.iter().map(|&right| f(left, right)).collect()
        }
        (IntOperand::Rows(left), IntOperand::Rows(right)) => {
            let pairs = left.iter().zip(right.iter());
            pairs.map(|(&left, &right)| f(left, right)).collect()
        }
    };
    IntOperand::Rows(Cow::Owned(values))
}

/// What arithmetic of the type may yield: an integer its range; a decimal any 128-bit number, as in Arrow.
fn bounds(data_type: &Type) -> Option<(i128, i128)> {
    match data_type {
        Type::Decimal { .. } => Some((i128::MIN, i128::MAX)),
        Type::UInt64 => None,
        other => value_bounds(other),
    }
}

fn scale(data_type: &Type) -> i8 {
    match data_type {
        Type::Decimal { scale, .. } => *scale,
        _ => 0,
    }
}
