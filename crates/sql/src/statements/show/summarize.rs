//! SUMMARIZE table, SUMMARIZE query: what is in each column, computed in one pass.
//!
//! ```text
//! SUMMARIZE q  ──▶  SELECT count(*), min(c0), max(c0), approx_distinct(c0), … min(c1), … FROM (q) AS q (c0, c1, …)
//!                   one row of all figures  ──▶  one row per column
//! ```
//!
//! Quartiles and numbers of distinct values are estimates: within one percent of the ranks, and of the numbers.

use super::{batch_of, text};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::planning;
use crate::running::outcome::Begun;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{self, SetExpr, TableFactor};
use eris_exact::text::{has_own_text, strings};
use eris_exact::types::sql_name;
use futures::StreamExt;
use std::fmt::Write;
use std::sync::Arc;

/// Figures per column, in the order of [`figures`].
const FIGURES: usize = 9;

/// Runs SUMMARIZE.
pub(crate) async fn summarize(
    context: &StatementContext,
    query: ast::Query,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let plan = planning::plan(context, query.clone(), statement).await?;
    let schema = plan.columns();
    let types: Vec<&DataType> = (schema.fields().iter())
        .map(|field| field.data_type())
        .collect();
    let plan = planning::plan(context, over(query, &types)?, statement).await?;
    let mut stream = plan.run()?;
    let mut row = None;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        row = row.or_else(|| (batch.num_rows() > 0).then_some(batch));
    }
    let row = row.expect("an aggregate without groups has one row");
    let rows = integer(row.column(0));
    let figure = |column: usize, figure: usize| row.column(1 + column * FIGURES + figure);
    let texts = |number: usize| -> Result<ArrayRef, SqlError> {
        let values = (0..types.len()).map(|column| as_text(figure(column, number)));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(text(values.into_iter()))
    };
    let nulls = (0..types.len()).map(|column| {
        let share = (rows - integer(figure(column, 0))) as i128 * 1_000_000;
        // Rounded to two digits after the point of a percentage.
        (rows > 0).then(|| (share / rows as i128 + 50) / 100)
    });
    let nulls = nulls.collect::<Decimal128Array>();
    let nulls = nulls
        .with_precision_and_scale(9, 2)
        .expect("at most 100.00");
    let unique = (0..types.len()).map(|column| integer(figure(column, 3)));
    let names = schema
        .fields()
        .iter()
        .map(|field| Some(field.name().clone()));
    let type_names = types.iter().map(|known| Some(sql_name(known, None)));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("column_name", text(names), true),
        ("column_type", text(type_names), true),
        ("min", texts(1)?, true),
        ("max", texts(2)?, true),
        (
            "approx_unique",
            Arc::new(Int64Array::from_iter_values(unique)),
            true,
        ),
        ("avg", texts(4)?, true),
        ("std", texts(5)?, true),
        ("q25", texts(6)?, true),
        ("q50", texts(7)?, true),
        ("q75", texts(8)?, true),
        (
            "count",
            Arc::new(Int64Array::from_value(rows, types.len())),
            true,
        ),
        ("null_percentage", Arc::new(nulls), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns);
    batch_of(batch.map_err(|error| SqlError::from_datafusion(error.into()))?)
}

/// The query that computes all figures of all columns.
fn over(query: ast::Query, types: &[&DataType]) -> Result<ast::Query, SqlError> {
    let mut sql = "SELECT count(*)".to_owned();
    let mut names = Vec::new();
    for (position, data_type) in types.iter().enumerate() {
        let name = format!("c{position}");
        for (number, figure) in figures(&name, data_type).into_iter().enumerate() {
            let _ = write!(sql, ", {figure} AS f{position}_{number}");
        }
        names.push(name);
    }
    let _ = write!(sql, " FROM (SELECT 1) AS summarized ({})", names.join(", "));
    let ast::Statement::Query(mut outer) = parse(&Statement::from(sql))? else {
        unreachable!("it begins with SELECT");
    };
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        **subquery = query;
    }
    Ok(*outer)
}

/// The figures of a column as SQL: values, least, greatest, distinct, mean, standard deviation, quartiles.
fn figures(name: &str, data_type: &DataType) -> [String; FIGURES] {
    let null = || "NULL".to_owned();
    let count = format!("count({name})");
    let ends = || [format!("min({name})"), format!("max({name})")];
    let distinct = |of: &str| format!("approx_distinct({of})");
    let (ends, distinct) = match data_type {
        DataType::Null => ([null(), null()], "0".to_owned()),
        data_type if data_type.is_floating() || has_own_text(data_type) => {
            (ends(), distinct(&format!("CAST({name} AS VARCHAR)")))
        }
        data_type if data_type.is_nested() => ([null(), null()], distinct(name)),
        _ => (ends(), distinct(name)),
    };
    let [least, greatest] = ends;
    let quartiles = |value: &str, to: &dyn Fn(String) -> String| {
        ["0.25", "0.5", "0.75"].map(|share| to(format!("approx_percentile_cont({value}, {share})")))
    };
    let (mean, deviation, [first, second, third]) = match data_type {
        data_type if data_type.is_numeric() => {
            let double = format!("CAST({name} AS DOUBLE)");
            let back = |value: String| match data_type {
                DataType::Float32 | DataType::Float64 => value,
                DataType::Decimal128(precision, scale) => {
                    format!("CAST({value} AS DECIMAL({precision},{scale}))")
                }
                _ => format!("CAST(round({value}) AS DECIMAL(20,0))"),
            };
            let quartiles = quartiles(&double, &back);
            (
                format!("avg({double})"),
                format!("stddev({double})"),
                quartiles,
            )
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let micros = format!("CAST(epoch_us(CAST({name} AS TIMESTAMP)) AS DOUBLE)");
            let time = |value: String| {
                let micros = format!("CAST(round({value}) AS BIGINT)");
                format!("arrow_cast({micros}, 'Timestamp(Microsecond, None)')")
            };
            let back = |value: String| match data_type {
                DataType::Date32 => format!("CAST({} AS DATE)", time(value)),
                _ => time(value),
            };
            let quartiles = quartiles(&micros, &back);
            (time(format!("avg({micros})")), null(), quartiles)
        }
        _ => (null(), null(), [null(), null(), null()]),
    };
    [
        count, least, greatest, distinct, mean, deviation, first, second, third,
    ]
}

fn integer(array: &ArrayRef) -> i64 {
    let array = cast(array, &DataType::Int64).expect("counts are integers");
    match array.is_valid(0) {
        true => array.as_primitive::<Int64Type>().value(0),
        false => 0,
    }
}

fn as_text(array: &ArrayRef) -> Result<Option<String>, SqlError> {
    let texts = match has_own_text(array.data_type()) {
        true => strings(array),
        false => cast(array, &DataType::Utf8View),
    };
    let texts = texts.map_err(|error| SqlError::from_datafusion(error.into()))?;
    let texts = texts.as_string_view();
    Ok(texts.is_valid(0).then(|| texts.value(0).to_owned()))
}
