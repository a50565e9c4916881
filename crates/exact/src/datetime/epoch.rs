//! `date_part('epoch', interval)`: its seconds, a year of 365¼ days, and a month of 30 beside years.
//!
//! **Stands for** DataFusion's answer, for which a year has 360 days. So is it in PostgreSQL and DuckDB.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use std::sync::{Arc, LazyLock};

const DAY: f64 = 86_400.0;
const MONTH: f64 = 30.0 * DAY;
const YEAR: f64 = 365.25 * DAY;

static EPOCH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let seconds = |intervals: &ArrayRef| Ok(Arc::new(seconds(intervals)) as ArrayRef);
    let function = ColumnFunction::scalar("interval_epoch", |_| DataType::Float64, seconds);
    Arc::new(function)
});

fn seconds(intervals: &ArrayRef) -> Float64Array {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    intervals.unary::<_, Float64Type>(|interval| {
        let years = f64::from(interval.months / 12) * YEAR;
        let months = f64::from(interval.months % 12) * MONTH;
        let days = f64::from(interval.days) * DAY;
        years + months + days + interval.nanoseconds as f64 / 1e9
    })
}

/// The seconds, if this is the call that asks for them.
pub(crate) fn of_interval(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [Expr::Literal(part, _), interval] = &call.args[..] else {
        return None;
    };
    let is_epoch = |name: &str| name.eq_ignore_ascii_case("epoch");
    let interval_type = DataType::Interval(IntervalUnit::MonthDayNano);
    let asks = call.func.name() == "date_part"
        && part.try_as_str().flatten().is_some_and(is_epoch)
        && interval
            .get_type(schema)
            .is_ok_and(|of| of == interval_type);
    asks.then(|| EPOCH.call(vec![interval.clone()]))
}
