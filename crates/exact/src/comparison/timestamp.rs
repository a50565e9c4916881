//! Comparisons of a timestamp with a constant that has more digits of a second than its type, and of a date with one
//! that has a time of day.
//!
//! **Stands for** DataFusion's type coercion, which cuts the constant to the type of the column: `t = TIMESTAMP '…
//! 00:00:00.5'` would find the second before, and `t < now()` miss the one that has begun. So, before DataFusion
//! makes types equal, the column gets more digits by a function that it does not look through. Constants that the
//! column can have are compared as they are:
//!
//! ```text
//!  t TIMESTAMP(0)    t < '… 00:00:00.5'    finer(t) < TIMESTAMP '… 00:00:00.5'    then  t < TIMESTAMP(0) '… 00:00:01'
//!                    t < now()             finer(t) < now()                       then  the same, once now() is known
//!                    t < '… 00:00:00.0'    t < TIMESTAMP(0) '… 00:00:00'
//!  d DATE            d < day + interval    finer(d) < day + interval              then  d < DATE '…'
//! ```
//!
//! In a fragment the function is a cast. Intervals, and differences of timestamps beside them, are compared by
//! [how long they are](super::interval). A date or timestamp against a number is rejected: DataFusion would count days.

use super::interval;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Cast, InList};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::mem::take;

/// A comparison with a timestamp in which no digit is lost. Comes before the types of operands are made equal.
///
/// # Errors
/// It is compared with a number.
pub(crate) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operation, operands): (_, Vec<&mut Expr>) = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            (op.to_string(), vec![left, right])
        }
        Expr::Between(Between {
            expr, low, high, ..
        }) => ("BETWEEN".to_owned(), vec![expr, low, high]),
        Expr::InList(InList { expr, list, .. }) => {
            let operands = std::iter::once(&mut **expr).chain(list);
            ("IN".to_owned(), operands.collect())
        }
        _ => return Ok(Transformed::no(expr)),
    };
    // What has no type, such as a parameter, gets one later.
    let types = operands.iter().map(|operand| operand.get_type(schema));
    let types: Vec<_> = types.map(|found| found.unwrap_or(DataType::Null)).collect();
    let Some(timestamp) = types.iter().position(DataType::is_temporal) else {
        return Ok(Transformed::no(expr));
    };
    if let Some(number) = types.iter().position(DataType::is_numeric) {
        let (left, right) = (&types[timestamp.min(number)], &types[timestamp.max(number)]);
        return plan_err!(
            "Cannot infer common argument type for comparison operation {left} {operation} {right}"
        );
    }
    if interval::are_intervals(&types) {
        for (operand, data_type) in operands.into_iter().zip(&types) {
            *operand = interval::nanoseconds(take(operand), data_type);
        }
        return Ok(Transformed::yes(expr));
    }
    let changed = refine(operands, &types);
    Ok(Transformed::new_transformed(expr, changed))
}

/// Gives the timestamps among operands that vary the digits of the constants beside them. Whether they lacked any.
fn refine(operands: Vec<&mut Expr>, types: &[DataType]) -> bool {
    let operands = operands.into_iter().zip(types);
    let (mut varying, constants): (Vec<_>, Vec<_>) =
        operands.partition(|(operand, _)| operand.any_column_refs() || operand.contains_outer());
    varying.retain(|(_, data_type)| per_day(data_type).is_some());
    let units = || {
        varying
            .iter()
            .filter_map(|(_, data_type)| per_day(data_type))
    };
    let (Some(coarsest), Some(mut finest)) = (units().min(), units().max()) else {
        return false;
    };
    let mut lacking = false;
    for (constant, data_type) in constants {
        let needed = match finer_string(constant, varying[0].1, coarsest) {
            Some(finer) => {
                let needed = per_day(&finer.data_type());
                *constant = Expr::Literal(finer, None);
                needed
            }
            None => per_day(data_type).filter(|_| !has_unit(constant, coarsest)),
        };
        if let Some(needed) = needed.filter(|needed| *needed > coarsest) {
            lacking = true;
            finest = finest.max(needed);
        }
    }
    if lacking {
        for (operand, _) in varying {
            let finer = ScalarUDF::from(Finer::new(unit(finest)));
            *operand = finer.call(vec![take(operand)]);
        }
    }
    lacking
}

/// How many values of the type a day has.
fn per_day(data_type: &DataType) -> Option<i64> {
    match data_type {
        DataType::Date32 => Some(1),
        DataType::Timestamp(unit, _) => Some(of_unit(*unit)),
        _ => None,
    }
}

/// The unit of which a day has so many, or the coarsest.
fn unit(per_day: i64) -> TimeUnit {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let units = [Nanosecond, Microsecond, Millisecond, Second];
    let found = units.into_iter().find(|unit| of_unit(*unit) <= per_day);
    found.unwrap_or(Second)
}

/// A string that is a timestamp with more digits than the unit has. As one with microseconds, which a timestamp has
/// whose type says nothing else, and in the zone of the type `beside` it.
fn finer_string(constant: &Expr, beside: &DataType, per_day: i64) -> Option<ScalarValue> {
    let (Expr::Literal(string, _), DataType::Timestamp(_, zone)) = (constant, beside) else {
        return None;
    };
    string.data_type().is_string().then_some(())?;
    let with_microseconds = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let exact = string.cast_to(&with_microseconds).ok()?;
    let constant = Expr::Literal(exact.clone(), None);
    (!exact.is_null() && !has_unit(&constant, per_day)).then_some(exact)
}

/// Whether a constant is known to be the same as a timestamp of which a day has so many.
fn has_unit(constant: &Expr, per_day: i64) -> bool {
    if per_day == 1 {
        // A date is no timestamp.
        return false;
    }
    let value = match constant {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => match &**expr {
            Expr::Literal(value, _) => value.cast_to(field.data_type()).ok(),
            _ => None,
        },
        _ => None,
    };
    value
        .as_ref()
        .and_then(ticks_of)
        .is_some_and(|(ticks, of)| ticks % (of_unit(of) / per_day).max(1) == 0)
}

/// Ticks since 1970, and what they are.
fn ticks_of(value: &ScalarValue) -> Option<(i64, TimeUnit)> {
    Some(match value {
        ScalarValue::TimestampSecond(ticks, _) => ((*ticks)?, TimeUnit::Second),
        ScalarValue::TimestampMillisecond(ticks, _) => ((*ticks)?, TimeUnit::Millisecond),
        ScalarValue::TimestampMicrosecond(ticks, _) => ((*ticks)?, TimeUnit::Microsecond),
        ScalarValue::TimestampNanosecond(ticks, _) => ((*ticks)?, TimeUnit::Nanosecond),
        _ => return None,
    })
}

/// How many of them a day has.
fn of_unit(unit: TimeUnit) -> i64 {
    86_400
        * match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        }
}

/// `finer(t)`: the same timestamp with more digits of a second, or the midnight with which a date begins.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finer {
    unit: TimeUnit,
    signature: Signature,
}

impl Finer {
    fn new(unit: TimeUnit) -> Self {
        Finer {
            unit,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Finer {
    fn name(&self) -> &str {
        "finer"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match &types[0] {
            DataType::Timestamp(_, zone) => DataType::Timestamp(self.unit, zone.clone()),
            _ => DataType::Timestamp(self.unit, None),
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args[0].cast_to(args.return_type(), None)
    }

    /// The values that are no earlier than the constant, up to those that are later.
    fn preimage(
        &self,
        args: &[Expr],
        constant: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        let data_type = info.get_data_type(&args[0])?;
        let (Expr::Literal(constant, _), Some(per_day)) = (constant, per_day(&data_type)) else {
            return Ok(PreimageResult::None);
        };
        let Some((ticks, of)) = ticks_of(constant) else {
            return Ok(PreimageResult::None);
        };
        let each = of_unit(of) / per_day;
        let later = ticks.div_euclid(each) + 1;
        let first = later - i64::from(ticks.rem_euclid(each) == 0);
        let bound = |ticks| match data_type {
            DataType::Date32 => ScalarValue::Int32(i32::try_from(ticks).ok()).cast_to(&data_type),
            _ => ScalarValue::Int64(Some(ticks)).cast_to(&data_type),
        };
        let interval = Box::new(Interval::try_new(bound(first)?, bound(later)?)?);
        let expr = args[0].clone();
        Ok(PreimageResult::Range { expr, interval })
    }
}
