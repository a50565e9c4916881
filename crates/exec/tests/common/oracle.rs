//! A naive evaluator: one row, one value at a time, written from the definition of each operator.

use eris_fragment::*;
use std::cmp::Ordering;

/// The row cannot be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed;

type Result<T> = std::result::Result<T, Failed>;

pub struct Oracle<'a> {
    pub types: &'a [Type],
    pub row: &'a [Value],
}

pub fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => (left + 0.0).total_cmp(&(right + 0.0)),
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        _ => panic!("{left:?} against {right:?}"),
    }
}

impl Oracle<'_> {
    pub fn truth(&self, expr: &Expr) -> Result<Option<bool>> {
        match self.value(expr)? {
            Value::Null => Ok(None),
            Value::Boolean(value) => Ok(Some(value)),
            other => panic!("{other:?} as a condition"),
        }
    }

    pub fn value(&self, expr: &Expr) -> Result<Value> {
        let boolean = |value: Option<bool>| value.map_or(Value::Null, Value::Boolean);
        Ok(match expr {
            Expr::Column(column) => self.row[*column].clone(),
            Expr::Literal(scalar) => scalar.value.clone(),
            Expr::Binary {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
            } => {
                let decided = *op == BinaryOp::Or;
                let left = self.truth(left)?;
                if left == Some(decided) {
                    return Ok(Value::Boolean(decided));
                }
                match (left, self.truth(right)?) {
                    (_, Some(right)) if right == decided => Value::Boolean(decided),
                    (Some(_), Some(_)) => Value::Boolean(!decided),
                    _ => Value::Null,
                }
            }
            Expr::Binary { op, left, right } if op.is_comparison() => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                if left == Value::Null || right == Value::Null {
                    return Ok(Value::Null);
                }
                let order = compare(&left, &right);
                Value::Boolean(match op {
                    BinaryOp::Eq => order.is_eq(),
                    BinaryOp::NotEq => order.is_ne(),
                    BinaryOp::Lt => order.is_lt(),
                    BinaryOp::LtEq => order.is_le(),
                    BinaryOp::Gt => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Expr::Binary { op, left, right } => {
                let types = (
                    left.data_type(self.types).unwrap(),
                    right.data_type(self.types).unwrap(),
                );
                let result = expr.data_type(self.types).unwrap();
                match (self.value(left)?, self.value(right)?) {
                    (Value::Null, _) | (_, Value::Null) => Value::Null,
                    (Value::Integer(left), Value::Integer(right)) => {
                        Value::Integer(arithmetic(*op, left, right, types, &result)?)
                    }
                    (Value::Float(left), Value::Float(right)) => {
                        Value::Float(one_nan(match result {
                            Type::Float32 => float(*op, left as f32, right as f32) as f64,
                            _ => float(*op, left, right),
                        }))
                    }
                    other => panic!("arithmetic on {other:?}"),
                }
            }
            Expr::Not(operand) => boolean(self.truth(operand)?.map(|value| !value)),
            Expr::Negate(operand) => match self.value(operand)? {
                Value::Null => Value::Null,
                Value::Float(value) => Value::Float(one_nan(-value)),
                Value::Integer(value) => {
                    Value::Integer(in_range(-value, &operand.data_type(self.types).unwrap())?)
                }
                other => panic!("-{other:?}"),
            },
            Expr::IsNull(operand) => Value::Boolean(self.value(operand)? == Value::Null),
            Expr::IsNotNull(operand) => Value::Boolean(self.value(operand)? != Value::Null),
            Expr::InList {
                operand,
                list,
                negated,
            } => {
                let value = self.value(operand)?;
                if value == Value::Null {
                    return Ok(Value::Null);
                }
                let mut constants = list.iter().filter(|constant| !constant.is_null());
                let found = constants.any(|constant| compare(&value, &constant.value).is_eq());
                let unknown = !found && list.iter().any(Scalar::is_null);
                boolean((!unknown).then_some(found != *negated))
            }
            Expr::Like {
                operand,
                pattern,
                negated,
                case_insensitive,
            } => match self.value(operand)? {
                Value::String(text) => {
                    let fold = |text: &str| match case_insensitive {
                        true => text.to_lowercase().chars().collect::<Vec<_>>(),
                        false => text.chars().collect(),
                    };
                    Value::Boolean(like(&fold(&text), &fold(pattern)) != *negated)
                }
                _ => Value::Null,
            },
            Expr::Case {
                branches,
                otherwise,
            } => {
                for (condition, then) in branches {
                    if self.truth(condition)? == Some(true) {
                        return self.value(then);
                    }
                }
                match otherwise {
                    Some(otherwise) => self.value(otherwise)?,
                    None => Value::Null,
                }
            }
            Expr::Cast { operand, to } => {
                let from = operand.data_type(self.types).unwrap();
                cast(self.value(operand)?, &from, to)?
            }
        })
    }
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        (['%', rest @ ..], _) => (0..=text.len()).any(|skip| like(&text[skip..], rest)),
        (['_', rest @ ..], [_, text @ ..]) => like(text, rest),
        (['\\', escaped, rest @ ..], [first, text @ ..]) => first == escaped && like(text, rest),
        ([literal, rest @ ..], [first, text @ ..]) => first == literal && like(text, rest),
        _ => false,
    }
}

/// There is one NaN.
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

fn float<T>(op: BinaryOp, left: T, right: T) -> T
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>
        + std::ops::Rem<Output = T>,
{
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::Multiply => left * right,
        BinaryOp::Divide => left / right,
        _ => left % right,
    }
}

/// The range of an integer type; arithmetic on decimals may use all of 128 bits.
pub fn in_range(value: i128, data_type: &Type) -> Result<i128> {
    let (low, high) = match data_type {
        Type::Int8 => (i8::MIN as i128, i8::MAX as i128),
        Type::Int16 => (i16::MIN as i128, i16::MAX as i128),
        Type::Int32 => (i32::MIN as i128, i32::MAX as i128),
        Type::Int64 => (i64::MIN as i128, i64::MAX as i128),
        Type::UInt8 => (0, u8::MAX as i128),
        Type::UInt16 => (0, u16::MAX as i128),
        Type::UInt32 => (0, u32::MAX as i128),
        Type::UInt64 => (0, u64::MAX as i128),
        _ => return Ok(value),
    };
    if value < low || value > high {
        Err(Failed)
    } else {
        Ok(value)
    }
}

fn power(digits: i32) -> i128 {
    10i128.pow(digits as u32)
}

fn arithmetic(
    op: BinaryOp,
    left: i128,
    right: i128,
    (left_type, right_type): (Type, Type),
    result: &Type,
) -> Result<i128> {
    let scale = |data_type: &Type| match data_type {
        Type::Decimal { scale, .. } => *scale as i32,
        _ => 0,
    };
    let (s1, s2, s) = (scale(&left_type), scale(&right_type), scale(result));
    let aligned = || {
        let left = left.checked_mul(power(s - s1)).ok_or(Failed)?;
        Ok((left, right.checked_mul(power(s - s2)).ok_or(Failed)?))
    };
    let value = match op {
        BinaryOp::Add => aligned()?.0.checked_add(aligned()?.1),
        BinaryOp::Subtract => aligned()?.0.checked_sub(aligned()?.1),
        BinaryOp::Multiply => left.checked_mul(right),
        BinaryOp::Divide => left
            .checked_mul(power(s - s1 + s2))
            .ok_or(Failed)?
            .checked_div(right),
        _ => aligned()?.0.checked_rem(aligned()?.1),
    };
    in_range(value.ok_or(Failed)?, result)
}

pub fn fits_decimal(value: i128, precision: u8) -> Result<i128> {
    match value.unsigned_abs() < 10u128.pow(precision as u32) {
        true => Ok(value),
        false => Err(Failed),
    }
}

fn cast(value: Value, from: &Type, to: &Type) -> Result<Value> {
    let scale = |data_type: &Type| match data_type {
        Type::Decimal { scale, .. } => *scale as i32,
        _ => 0,
    };
    Ok(match (value, to) {
        (Value::Null, _) => Value::Null,
        (value, to) if from == to => value,
        (Value::Integer(days), Type::Timestamp { .. }) => Value::Integer(days * 86_400_000_000),
        (Value::Integer(value), Type::Decimal { precision, .. }) => {
            let digits = scale(to) - scale(from);
            let value = match digits >= 0 {
                true => value.checked_mul(power(digits)).ok_or(Failed)?,
                false => {
                    let unit = power(-digits);
                    // Half away from zero.
                    (value + value.signum() * unit / 2) / unit
                }
            };
            Value::Integer(fits_decimal(value, *precision)?)
        }
        (Value::Integer(value), Type::Float64) => Value::Float(value as f64),
        (Value::Integer(value), to) => Value::Integer(in_range(value, to)?),
        (Value::Float(value), Type::Float64) => Value::Float(value),
        (Value::String(text), Type::Int64) => {
            Value::Integer(text.parse::<i64>().map_err(|_| Failed)? as i128)
        }
        other => panic!("CAST of {other:?} from {from}"),
    })
}

/// What aggregating comes to.
pub fn aggregate(
    aggregate: &Aggregate,
    argument_type: Option<&Type>,
    values: &[Value],
) -> Result<Value> {
    let values = values.iter().filter(|value| **value != Value::Null);
    let order = |left: &&Value, right: &&Value| match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.total_cmp(right),
        _ => compare(left, right),
    };
    let best = match aggregate.function {
        AggregateFunction::Count => return Ok(Value::Integer(values.count() as i128)),
        AggregateFunction::Min => values.min_by(order),
        AggregateFunction::Max => values.max_by(order),
        AggregateFunction::Sum => {
            let mut sum = None;
            for value in values {
                sum = Some(match (sum, value) {
                    (None, value) => value.clone(),
                    (Some(Value::Integer(sum)), Value::Integer(value)) => {
                        Value::Integer(i128::checked_add(sum, *value).ok_or(Failed)?)
                    }
                    (Some(Value::Float(sum)), Value::Float(value)) => Value::Float(sum + value),
                    other => panic!("a sum of {other:?} in {argument_type:?}"),
                });
            }
            return Ok(match (sum, &aggregate.state) {
                (None, _) => Value::Null,
                (Some(Value::Integer(sum)), Type::Decimal { precision, .. }) => {
                    Value::Integer(fits_decimal(sum, *precision)?)
                }
                (Some(Value::Integer(sum)), state) => Value::Integer(in_range(sum, state)?),
                (Some(sum), _) => sum,
            });
        }
    };
    Ok(best.cloned().unwrap_or(Value::Null))
}
