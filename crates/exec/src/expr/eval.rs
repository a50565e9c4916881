//! Evaluation of nodes on gathered rows.

use super::cast::cast;
use super::compile::{Expression, ExpressionNode};
use super::error::{kernel, unexpected};
use arrow_arith::boolean::{and_kleene, is_not_null, is_null, not, or_kleene};
use arrow_arith::numeric;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, Scalar, UInt32Array, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DECIMAL128_MAX_PRECISION, DataType};
use arrow_select::take::take;
use eris_fragment::{BinaryOp, FragmentError};
use std::sync::Arc;

/// Some rows of the columns that an expression reads.
pub(crate) struct Frame {
    pub(crate) rows: usize,
    /// By the fragment's column positions; `None` where nothing reads the column.
    pub(crate) columns: Vec<Option<ArrayRef>>,
}

/// A column of a frame's rows, or one value for all of them.
pub(crate) enum Evaluated {
    Rows(ArrayRef),
    /// One row.
    Constant(Scalar<ArrayRef>),
}

impl Datum for Evaluated {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            Evaluated::Rows(array) => (array.as_ref(), false),
            Evaluated::Constant(scalar) => scalar.get(),
        }
    }
}

impl Evaluated {
    /// Applies a function of single arrays that is the same for every row.
    fn map<E>(self, function: impl FnOnce(&ArrayRef) -> Result<ArrayRef, E>) -> Result<Self, E> {
        Ok(match self {
            Evaluated::Rows(array) => Evaluated::Rows(function(&array)?),
            Evaluated::Constant(scalar) => {
                Evaluated::Constant(Scalar::new(function(&scalar.into_inner())?))
            }
        })
    }

    /// One value per row.
    fn into_rows(self, rows: usize) -> Result<ArrayRef, ArrowError> {
        match self {
            Evaluated::Rows(array) => Ok(array),
            Evaluated::Constant(scalar) => {
                let indices = UInt32Array::from_value(0, rows);
                take(scalar.get().0, &indices, None)
            }
        }
    }
}

impl Expression {
    /// One value per row of the frame.
    pub(crate) fn evaluate(&self, frame: &Frame) -> Result<ArrayRef, FragmentError> {
        let value = self.node.evaluate(frame)?;
        value.into_rows(frame.rows).map_err(unexpected)
    }

    /// One value per row of the frame, of which only those that are set in `needed` are to be used: where they might
    /// fail, the others are not evaluated.
    pub(crate) fn evaluate_where(
        &self,
        frame: &Frame,
        needed: Option<&BooleanBuffer>,
    ) -> Result<ArrayRef, FragmentError> {
        let Some(needed) =
            needed.filter(|needed| !self.infallible && needed.count_set_bits() < frame.rows)
        else {
            return self.evaluate(frame);
        };
        let kept: UInt32Array = needed
            .set_indices()
            .map(|row| row as u32)
            .collect::<Vec<_>>()
            .into();
        if kept.is_empty() {
            return Ok(new_null_array(&self.data_type, frame.rows));
        }
        let values = self.evaluate(&frame.narrow(&kept, self)?)?;
        // The others read any of the values.
        let mut places = vec![0; frame.rows];
        for (place, &row) in kept.values().iter().enumerate() {
            places[row as usize] = place as u32;
        }
        take(&values, &UInt32Array::from(places), None).map_err(unexpected)
    }

    /// The rows of the frame for which this condition is true.
    pub(crate) fn holds(&self, frame: &Frame) -> Result<BooleanBuffer, FragmentError> {
        let array = self.evaluate(frame)?;
        Ok(truth(array.as_boolean()))
    }
}

/// Where a condition is true.
pub(super) fn truth(condition: &BooleanArray) -> BooleanBuffer {
    match condition.nulls() {
        Some(nulls) => condition.values() & nulls.inner(),
        None => condition.values().clone(),
    }
}

impl Frame {
    /// The given rows of those columns that `expression` reads.
    pub(super) fn narrow(
        &self,
        rows: &UInt32Array,
        expression: &Expression,
    ) -> Result<Frame, FragmentError> {
        let mut columns = vec![None; self.columns.len()];
        for &column in &expression.columns {
            let array = self.columns[column].as_ref();
            let array = array.expect("a frame has the columns that its expressions read");
            columns[column] = Some(match rows.len() == self.rows {
                true => array.clone(),
                false => take(array, rows, None).map_err(unexpected)?,
            });
        }
        let rows = rows.len();
        Ok(Frame { rows, columns })
    }
}

/// DECIMAL has at most 38 digits, the number that holds it a few more.
fn within_digits(array: ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) = array.data_type() {
        let numbers = array.as_primitive::<Decimal128Type>();
        numbers
            .validate_decimal_precision(DECIMAL128_MAX_PRECISION)
            .map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))?;
    }
    Ok(array)
}

/// All NaN are one value. x86 computes one with a sign, which would be less than any number.
fn one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value };
            Arc::new(
                array
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(one),
            )
        }
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value };
            Arc::new(
                array
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(one),
            )
        }
        _ => array,
    }
}

impl ExpressionNode {
    fn evaluate(&self, frame: &Frame) -> Result<Evaluated, FragmentError> {
        Ok(match self {
            ExpressionNode::Column(column) => Evaluated::Rows(
                frame.columns[*column]
                    .clone()
                    .expect("a frame has the columns that its expressions read"),
            ),
            ExpressionNode::Literal(array) => Evaluated::Constant(Scalar::new(array.clone())),
            ExpressionNode::Arithmetic {
                op,
                left,
                right,
                text,
            } => {
                let (left, right) = (left.evaluate(frame)?, right.evaluate(frame)?);
                let result = match op {
                    BinaryOp::Add => numeric::add(&left, &right),
                    BinaryOp::Subtract => numeric::sub(&left, &right),
                    BinaryOp::Multiply => numeric::mul(&left, &right),
                    BinaryOp::Divide => numeric::div(&left, &right),
                    BinaryOp::Modulo => numeric::rem(&left, &right),
                    _ => unreachable!("{op:?} is no arithmetic"),
                };
                let result = result.and_then(within_digits).map(one_nan);
                combine(left, right, result.map_err(|error| kernel(error, text))?)
            }
            ExpressionNode::Compare { op, left, right } => {
                let left = left.evaluate(frame)?.map(one_zero)?;
                let right = right.evaluate(frame)?.map(one_zero)?;
                let result = match op {
                    BinaryOp::Eq => cmp::eq(&left, &right),
                    BinaryOp::NotEq => cmp::neq(&left, &right),
                    BinaryOp::Lt => cmp::lt(&left, &right),
                    BinaryOp::LtEq => cmp::lt_eq(&left, &right),
                    BinaryOp::Gt => cmp::gt(&left, &right),
                    BinaryOp::GtEq => cmp::gt_eq(&left, &right),
                    _ => unreachable!("{op:?} is no comparison"),
                };
                combine(left, right, Arc::new(result.map_err(unexpected)?))
            }
            ExpressionNode::Logic {
                and,
                left,
                right,
                guarded,
            } => {
                let left = left
                    .evaluate(frame)?
                    .into_rows(frame.rows)
                    .map_err(unexpected)?;
                Evaluated::Rows(logic(*and, left.as_boolean(), right, *guarded, frame)?)
            }
            ExpressionNode::Not(operand) => operand
                .evaluate(frame)?
                .map(|array| Ok(Arc::new(not(array.as_boolean())?) as _))
                .map_err(unexpected)?,
            ExpressionNode::Negate(operand, text) => operand
                .evaluate(frame)?
                .map(|array| numeric::neg(array).map(one_nan))
                .map_err(|error| kernel(error, text))?,
            ExpressionNode::IsNull(operand) => operand
                .evaluate(frame)?
                .map(|array| Ok(Arc::new(is_null(array)?) as _))
                .map_err(unexpected)?,
            ExpressionNode::IsNotNull(operand) => operand
                .evaluate(frame)?
                .map(|array| Ok(Arc::new(is_not_null(array)?) as _))
                .map_err(unexpected)?,
            ExpressionNode::InList {
                operand,
                members,
                negated,
            } => operand
                .evaluate(frame)?
                .map(|array| Ok(Arc::new(members.contains(array, *negated)) as _))
                .map_err(unexpected)?,
            ExpressionNode::Like {
                operand,
                pattern,
                negated,
                text,
            } => operand
                .evaluate(frame)?
                .map(|array| Ok(Arc::new(pattern.test(array, *negated)?) as _))
                .map_err(|error| kernel(error, text))?,
            ExpressionNode::Case {
                branches,
                otherwise,
                data_type,
            } => Evaluated::Rows(super::case::evaluate(
                branches,
                otherwise.as_deref(),
                data_type,
                frame,
            )?),
            ExpressionNode::Cast { operand, to, text } => operand
                .evaluate(frame)?
                .map(|array| cast(array, to))
                .map_err(|error| kernel(error, text))?,
        })
    }
}

/// The result of a kernel over two operands is constant if both are.
fn combine(left: Evaluated, right: Evaluated, result: ArrayRef) -> Evaluated {
    match (left, right) {
        (Evaluated::Constant(_), Evaluated::Constant(_)) => {
            Evaluated::Constant(Scalar::new(result))
        }
        _ => Evaluated::Rows(result),
    }
}

/// Floats with -0.0 turned into +0.0: SQL compares them as equal, Arrow's total order does not.
fn one_zero(array: &ArrayRef) -> Result<ArrayRef, FragmentError> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|value| value + 0.0))
        }
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|value| value + 0.0))
        }
        _ => array.clone(),
    })
}

/// AND and OR in three-valued logic. A right side that may fail is evaluated only where the left side does not decide.
fn logic(
    and: bool,
    left: &BooleanArray,
    right: &Expression,
    guarded: bool,
    frame: &Frame,
) -> Result<ArrayRef, FragmentError> {
    let combine = if and { and_kleene } else { or_kleene };
    let decided = match and {
        true => truth(&not(left).map_err(unexpected)?),
        false => truth(left),
    };
    if decided.count_set_bits() == left.len() {
        return Ok(Arc::new(left.clone()));
    }
    // Decided rows may read anything: the left side outweighs it.
    let open = guarded.then(|| !&decided);
    let right = right.evaluate_where(frame, open.as_ref())?;
    let result = combine(left, right.as_boolean()).map_err(unexpected)?;
    Ok(Arc::new(result))
}
