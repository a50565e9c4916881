//! Expressions of fragments over whole arrays, by Arrow's kernels. Slow and plain: each node yields one value per row.

use datafusion::arrow::array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array,
    StringViewArray, UInt32Array, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::kernels::{boolean, cast, cmp, numeric};
use datafusion::arrow::compute::{self, CastOptions, interleave, take};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::arrow::error::ArrowError;
use eris_exact::one_nan;
use eris_exact::scalar::to_datafusion;
use eris_fragment::{BinaryOp, Expr, FragmentError, Scalar, Value};
use std::sync::Arc;

/// Some rows of a fragment's columns.
pub struct Rows<'a> {
    pub columns: Vec<ArrayRef>,
    pub count: usize,
    /// The names of the columns, for messages.
    pub names: &'a [String],
}

impl<'a> Rows<'a> {
    /// The rows at these places.
    pub fn pick(&self, places: &UInt32Array) -> Result<Rows<'a>, FragmentError> {
        let columns = self.columns.iter().map(|column| take(column, places, None));
        Ok(Rows {
            columns: columns.collect::<Result<_, _>>().map_err(unexpected)?,
            count: places.len(),
            names: self.names,
        })
    }

    /// The rows for which a condition is true.
    pub fn filter(&self, condition: &Expr) -> Result<Rows<'a>, FragmentError> {
        self.pick(&places(&self.truth(condition)?))
    }

    /// For which rows a condition is true.
    pub fn truth(&self, condition: &Expr) -> Result<BooleanBuffer, FragmentError> {
        Ok(truth(self.evaluate(condition)?.as_boolean()))
    }

    /// A value for each row.
    pub fn evaluate(&self, expr: &Expr) -> Result<ArrayRef, FragmentError> {
        match expr {
            Expr::Column(column) => Ok(Arc::clone(&self.columns[*column])),
            Expr::Literal(scalar) => self.literal(scalar).map_err(unexpected),
            Expr::Binary {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
            } => self.logic(*op == BinaryOp::And, left, right),
            Expr::Binary { op, left, right } => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                let value = match op.is_comparison() {
                    true => compare(*op, &left, &right),
                    false => arithmetic(*op, &left, &right),
                };
                value.map_err(|error| self.failed(error, expr))
            }
            Expr::Not(operand) => {
                let operand = self.evaluate(operand)?;
                let not = boolean::not(operand.as_boolean()).map_err(unexpected)?;
                Ok(Arc::new(not))
            }
            Expr::Negate(operand) => {
                let operand = self.evaluate(operand)?;
                let negative = numeric::neg(&operand);
                negative
                    .map(|array| one_nan(&array))
                    .map_err(|error| self.failed(error, expr))
            }
            Expr::IsNull(operand) => {
                let is_null = boolean::is_null(&self.evaluate(operand)?).map_err(unexpected)?;
                Ok(Arc::new(is_null))
            }
            Expr::IsNotNull(operand) => {
                let is_some = boolean::is_not_null(&self.evaluate(operand)?).map_err(unexpected)?;
                Ok(Arc::new(is_some))
            }
            Expr::InList {
                operand,
                list,
                negated,
            } => {
                let operand = self.evaluate(operand)?;
                let mut found = BooleanArray::from(vec![false; self.count]);
                for scalar in list {
                    let equal = self
                        .literal(scalar)
                        .and_then(|value| compare(BinaryOp::Eq, &operand, &value));
                    let equal = equal.map_err(unexpected)?;
                    found = boolean::or_kleene(&found, equal.as_boolean()).map_err(unexpected)?;
                }
                if *negated {
                    found = boolean::not(&found).map_err(unexpected)?;
                }
                Ok(Arc::new(found))
            }
            Expr::Like {
                operand,
                pattern,
                negated,
                case_insensitive,
            } => {
                let like = match (negated, case_insensitive) {
                    (false, false) => compute::like,
                    (true, false) => compute::nlike,
                    (false, true) => compute::ilike,
                    (true, true) => compute::nilike,
                };
                let pattern = StringViewArray::new_scalar(pattern);
                let like = like(&self.evaluate(operand)?, &pattern);
                Ok(Arc::new(like.map_err(|error| self.failed(error, expr))?))
            }
            Expr::Case {
                branches,
                otherwise,
            } => self.case(branches, otherwise.as_deref()),
            Expr::Cast { operand, to } => {
                let operand = self.evaluate(operand)?;
                convert(&operand, &DataType::from(to)).map_err(|error| self.failed(error, expr))
            }
        }
    }

    /// The right side is looked at only where the left one does not decide: there it may fail.
    fn logic(&self, and: bool, left: &Expr, right: &Expr) -> Result<ArrayRef, FragmentError> {
        let left = self.evaluate(left)?;
        let decided = match and {
            true => truth(&boolean::not(left.as_boolean()).map_err(unexpected)?),
            false => truth(left.as_boolean()),
        };
        let open = places(&!&decided);
        let of_open = self.pick(&open)?.evaluate(right)?;
        let right = scatter(&[(of_open, open)], &DataType::Boolean, self.count)?;
        let combine = if and {
            boolean::and_kleene
        } else {
            boolean::or_kleene
        };
        let combined = combine(left.as_boolean(), right.as_boolean()).map_err(unexpected)?;
        Ok(Arc::new(combined))
    }

    /// Conditions and results are looked at only for the rows that reach them.
    fn case(
        &self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<ArrayRef, FragmentError> {
        let mut pieces = Vec::new();
        let mut open = UInt32Array::from_iter_values(0..self.count as u32);
        for (condition, result) in branches {
            let rows = self.pick(&open)?;
            let taken = rows.truth(condition)?;
            let of = |keep: &BooleanBuffer| take(&open, &places(keep), None).map_err(unexpected);
            let (here, rest) = (of(&taken)?, of(&!&taken)?);
            let here = here.as_primitive().clone();
            pieces.push((self.pick(&here)?.evaluate(result)?, here));
            open = rest.as_primitive().clone();
        }
        if let Some(otherwise) = otherwise {
            pieces.push((self.pick(&open)?.evaluate(otherwise)?, open));
        }
        let data_type = pieces[0].0.data_type().clone();
        scatter(&pieces, &data_type, self.count)
    }

    fn literal(&self, scalar: &Scalar) -> Result<ArrayRef, ArrowError> {
        let one = one(scalar)?;
        take(&one, &UInt32Array::from(vec![0; self.count]), None)
    }

    /// What a kernel's failure means to the user.
    fn failed(&self, error: ArrowError, expr: &Expr) -> FragmentError {
        let name = |column: usize| self.names[column].clone();
        let expression = expr.named(&name).to_string();
        let reason = match error {
            ArrowError::ArithmeticOverflow(_) => {
                return FragmentError::Overflow { what: expression };
            }
            ArrowError::DivideByZero => "division by zero".to_owned(),
            ArrowError::CastError(reason)
            | ArrowError::ParseError(reason)
            | ArrowError::ComputeError(reason)
            | ArrowError::InvalidArgumentError(reason) => reason,
            other => other.to_string(),
        };
        FragmentError::Evaluation(format!("{reason} in {expression}").into_boxed_error())
    }
}

/// A message as an error that fragments carry.
trait IntoBoxedError {
    fn into_boxed_error(self) -> Arc<dyn std::error::Error + Send + Sync>;
}

impl IntoBoxedError for String {
    fn into_boxed_error(self) -> Arc<dyn std::error::Error + Send + Sync> {
        Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(self))
    }
}

/// What types rule out.
pub fn unexpected(error: ArrowError) -> FragmentError {
    FragmentError::Evaluation(Arc::new(error))
}

/// Where bits are set.
pub fn places(bits: &BooleanBuffer) -> UInt32Array {
    UInt32Array::from_iter_values(bits.set_indices().map(|row| row as u32))
}

fn truth(condition: &BooleanArray) -> BooleanBuffer {
    match condition.nulls() {
        Some(nulls) => condition.values() & nulls.inner(),
        None => condition.values().clone(),
    }
}

/// Values at their places; NULL elsewhere.
fn scatter(
    pieces: &[(ArrayRef, UInt32Array)],
    data_type: &DataType,
    rows: usize,
) -> Result<ArrayRef, FragmentError> {
    let null = new_null_array(data_type, 1);
    let mut source = vec![(0, 0); rows];
    for (number, (_, places)) in pieces.iter().enumerate() {
        for (at, place) in places.values().iter().enumerate() {
            source[*place as usize] = (number + 1, at);
        }
    }
    let mut arrays: Vec<&dyn Array> = vec![&null];
    arrays.extend(pieces.iter().map(|(values, _)| values.as_ref()));
    interleave(&arrays, &source).map_err(unexpected)
}

fn one(scalar: &Scalar) -> Result<ArrayRef, ArrowError> {
    let data_type = DataType::from(&scalar.data_type);
    let array: ArrayRef = match (&scalar.value, &data_type) {
        (Value::Null, _) => new_null_array(&data_type, 1),
        (Value::Boolean(value), _) => Arc::new(BooleanArray::from(vec![*value])),
        (Value::Float(value), _) => Arc::new(Float64Array::from(vec![*value])),
        (Value::String(value), _) => Arc::new(StringViewArray::from(vec![value.as_str()])),
        (Value::Integer(value), DataType::Decimal128(precision, scale)) => {
            let array = Decimal128Array::from(vec![*value]);
            Arc::new(array.with_precision_and_scale(*precision, *scale)?)
        }
        (Value::Bytes(_), _)
        | (Value::Integer(_), DataType::FixedSizeBinary(_) | DataType::Interval(_)) => {
            let value = to_datafusion(scalar).expect("a value of its own type");
            value
                .to_array()
                .map_err(|error| ArrowError::from_external_error(Box::new(error)))?
        }
        (Value::Integer(value), DataType::UInt64) => {
            Arc::new(UInt64Array::from(vec![*value as u64]))
        }
        (Value::Integer(value), _) => Arc::new(Int64Array::from(vec![*value as i64])),
    };
    compute::cast(&array, &data_type)
}

/// SQL takes -0.0 and 0.0 for equal, Arrow's total order does not.
pub fn one_zero(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            Arc::new(floats.unary::<_, Float32Type>(|value| value + 0.0))
        }
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            Arc::new(floats.unary::<_, Float64Type>(|value| value + 0.0))
        }
        _ => Arc::clone(array),
    }
}

fn compare(op: BinaryOp, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let compare = match op {
        BinaryOp::Eq => cmp::eq,
        BinaryOp::NotEq => cmp::neq,
        BinaryOp::Lt => cmp::lt,
        BinaryOp::LtEq => cmp::lt_eq,
        BinaryOp::Gt => cmp::gt,
        _ => cmp::gt_eq,
    };
    Ok(Arc::new(compare(&one_zero(left), &one_zero(right))?))
}

fn arithmetic(op: BinaryOp, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let array = match op {
        BinaryOp::Add => numeric::add(left, right),
        BinaryOp::Subtract => numeric::sub(left, right),
        BinaryOp::Multiply => numeric::mul(left, right),
        BinaryOp::Divide => numeric::div(left, right),
        _ => numeric::rem(left, right),
    }?;
    // DECIMAL has at most 38 digits, the number that holds it a few more.
    if let DataType::Decimal128(38, _) = array.data_type() {
        let numbers = array.as_primitive::<Decimal128Type>();
        let checked = numbers.validate_decimal_precision(38);
        checked.map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))?;
    }
    Ok(one_nan(&array))
}

/// Arrow multiplies unchecked when it casts dates and timestamps to a finer unit.
fn check_time(array: &ArrayRef, to: &DataType) -> Result<(), ArrowError> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let factor = match (array.data_type(), to) {
        (DataType::Date32, DataType::Timestamp(unit, _)) => 86_400 * per_second(unit),
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => {
            per_second(to) / per_second(from)
        }
        _ => return Ok(()),
    };
    let units = compute::cast(array, &DataType::Int64)?;
    let mut units = units.as_primitive::<Int64Type>().iter().flatten();
    match units.all(|value| value.checked_mul(factor).is_some()) {
        true => Ok(()),
        false => Err(ArrowError::CastError(format!(
            "a value of type {} lies outside the range of {to}",
            array.data_type()
        ))),
    }
}

/// CAST: what goes into an integer is rounded, floating-point numbers half to even, DECIMAL half away from 0.
pub fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    check_time(array, to)?;
    let rounded: ArrayRef = match array.data_type() {
        _ if !to.is_integer() => Arc::clone(array),
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            Arc::new(numbers.unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            Arc::new(numbers.unary::<_, Float64Type>(f64::round_ties_even))
        }
        DataType::Decimal128(precision, scale @ 1..) => {
            let digits = (precision + 1).saturating_sub(*scale as u8).max(1);
            compute::cast(array, &DataType::Decimal128(digits, 0))?
        }
        _ => Arc::clone(array),
    };
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast::cast_with_options(&rounded, to, &options)
}
