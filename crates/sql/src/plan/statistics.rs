//! What the planner knows of a scan: sizes and extremes of its table, and how much of it a filter may leave.
//!
//! ```text
//! filter ─▶ the table's sample ─▶ 0 rows pass of n │ few │ many
//!     └───▶ extremes, distinct values ────▶ a guess, between what the few allow
//!                                          many: what the sample says
//! ```
//!
//! A sample knows what no formula does: which values are frequent, which conditions go together, what a pattern finds.
//! But what is rarer than one of its rows it does not tell.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use eris_atomics::Lock;
use eris_exact::scalar;
use eris_fragment::{BinaryOp, Expr, Scalar, Value};
use eris_home::{Home, ObjectStatistics, SampledRows};
use eris_types::{ObjectId, Timestamp};
use std::fmt;
use std::sync::Arc;

/// A table's statistics as seen by one statement.
#[derive(Debug)]
pub(crate) struct TableStatistics {
    object: ObjectStatistics,
    /// Whether they describe exactly the statement's snapshot.
    exact: bool,
    sample: Option<Sample>,
}

/// A sample of the table's rows.
struct Sample {
    home: Arc<dyn Home>,
    object: ObjectId,
    /// What filters have found. The same are asked for again and again while a statement is planned.
    found: Lock<Vec<(Vec<Expr>, Option<SampledRows>)>>,
}

/// What is joined to the rows of a scan.
#[derive(Debug)]
pub(crate) struct JoinedRows {
    /// How many of them a row of the scan finds, on average.
    pub per_row: f64,
    /// The number of their first column.
    pub first_column: usize,
    pub columns: Vec<ColumnStatistics>,
}

/// Share of rows that a predicate leaves of which nothing is known.
const UNKNOWN: f64 = 0.25;
/// Share of strings that are like a pattern: people look for what is rare.
const LIKE: f64 = 0.1;
/// From this share on, distinct values that were counted are taken for all that are possible.
const NEARLY_ALL: f64 = 0.9;
/// Rows of a sample that tell more than a guess does: their number is off by a third.
const ENOUGH: f64 = 8.0;

impl TableStatistics {
    pub fn new(object: ObjectStatistics, snapshot: Timestamp) -> Self {
        let exact = object.newest <= snapshot;
        TableStatistics {
            object,
            exact,
            sample: None,
        }
    }

    /// The same, with the sample that this home has of the object.
    pub fn sampled(self, home: &Arc<dyn Home>, object: ObjectId) -> Self {
        let sample = Sample {
            home: Arc::clone(home),
            object,
            found: Lock::default(),
        };
        TableStatistics {
            sample: Some(sample),
            ..self
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.object.rows
    }

    /// Rows whose values of a column could be stored by a key order, and are not.
    pub fn unordered(&self, column: usize) -> u64 {
        self.object.unordered(column)
    }

    /// The least and greatest value of an integer-like column: no row lies outside, though there may be none at an end.
    pub fn range(&self, column: usize) -> Option<(i64, i64)> {
        if !self.exact {
            return None;
        }
        let column = self.object.columns.get(column)?;
        match (integer(column.min.as_ref()?), integer(column.max.as_ref()?)) {
            (Some(min), Some(max)) => Some((i64::try_from(min).ok()?, i64::try_from(max).ok()?)),
            _ => None,
        }
    }

    /// Statistics of rows of these expressions that pass these conjuncts and find what is joined.
    pub fn rows_out(
        &self,
        output: &[Expr],
        filter: &[Expr],
        limit: Option<u64>,
        joined: Option<&JoinedRows>,
    ) -> Statistics {
        let share = self.share(filter) * joined.map_or(1.0, |joined| joined.per_row);
        let all = filter.is_empty() && joined.is_none();
        let mut rows = if all {
            self.object.rows
        } else {
            (self.object.rows as f64 * share).ceil() as u64
        };
        let exact = self.exact && all && limit.is_none();
        rows = rows.min(limit.unwrap_or(u64::MAX));
        let columns: Vec<_> = output
            .iter()
            .map(|expr| self.column(expr, rows, exact, joined))
            .collect();
        let width: usize = columns.iter().map(|(_, width)| width).sum();
        Statistics {
            num_rows: precision(rows as usize, exact),
            total_byte_size: Precision::Inexact(width.saturating_mul(rows as usize)),
            column_statistics: columns.into_iter().map(|(column, _)| column).collect(),
        }
    }

    /// A column's statistics and the bytes of one of its values.
    fn column(
        &self,
        expr: &Expr,
        rows: u64,
        exact: bool,
        joined: Option<&JoinedRows>,
    ) -> (ColumnStatistics, usize) {
        let mut statistics = ColumnStatistics::new_unknown();
        let Expr::Column(position) = expr else {
            return (statistics, 16);
        };
        if let Some(joined) = joined
            && let Some(position) = position.checked_sub(joined.first_column)
        {
            let known = joined.columns.get(position).cloned().unwrap_or_default();
            return (fewer(known, rows), 16);
        }
        let Some(column) = self.object.columns.get(*position) else {
            return (statistics, 16);
        };
        // Extremes come from zone maps, which may be wider than the values.
        let extreme = |value: &Option<Scalar>| match value.as_ref().and_then(scalar::to_datafusion)
        {
            Some(value) => Precision::Inexact(value),
            None => Precision::<ScalarValue>::Absent,
        };
        statistics.min_value = extreme(&column.min);
        statistics.max_value = extreme(&column.max);
        // Zones count the NULLs of deleted rows, too.
        let living = exact && self.object.deleted == 0;
        statistics.null_count = precision(column.nulls.min(rows) as usize, living);
        if let Some(distinct) = self.distinct(*position) {
            statistics.distinct_count = Precision::Inexact(distinct.min(rows as f64) as usize);
        }
        let width = match column.min.as_ref().map(|min| &min.value) {
            Some(Value::Integer(_)) | Some(Value::Float(_)) => 8,
            Some(Value::Boolean(_)) => 1,
            _ => 24,
        };
        (statistics, width)
    }

    /// About how many distinct values a column has.
    pub fn distinct(&self, position: usize) -> Option<f64> {
        let column = self.object.columns.get(position)?;
        let span = || {
            let (min, max) = (
                integer(column.min.as_ref()?)?,
                integer(column.max.as_ref()?)?,
            );
            // UUIDs are wider than their difference.
            Some(max.checked_sub(min)? as f64 + 1.0)
        };
        let rows = (self.object.rows as f64).max(1.0);
        let most = span().map_or(rows, |span| span.min(rows));
        let distinct = match column.distinct.map(|distinct| distinct as f64) {
            // Counts are not exact. So many are all that there can be.
            Some(counted) if counted >= NEARLY_ALL * most => most,
            Some(counted) => counted,
            None => span()?.min(rows),
        };
        Some(distinct.clamp(1.0, rows))
    }

    /// The share of rows that pass a filter.
    fn share(&self, filter: &[Expr]) -> f64 {
        let guess = |conjuncts: &[Expr]| -> f64 {
            let shares = conjuncts.iter().map(|conjunct| self.selectivity(conjunct));
            shares.product()
        };
        let sample = self.sample.as_ref().filter(|_| !filter.is_empty());
        let Some(sample) = sample else {
            return guess(filter);
        };
        if let Some(found) = sample.find(filter) {
            return self.told(found, guess(filter));
        }
        // Some conjuncts cannot be answered: they have parameters, or read what is not sampled.
        let answered = |conjunct: &Expr| sample.find(std::slice::from_ref(conjunct)).is_some();
        let (answered, others): (Vec<_>, Vec<_>) = filter.iter().cloned().partition(answered);
        match sample.find(&answered) {
            Some(found) => self.told(found, guess(&answered)) * guess(&others),
            None => guess(filter),
        }
    }

    /// The share of rows that pass, by what a sample has found, and what is guessed without one.
    fn told(&self, found: SampledRows, guess: f64) -> f64 {
        let (rows, passed) = (found.rows as f64, found.passed as f64);
        let told = if found.rows >= found.of || passed >= ENOUGH {
            passed / rows
        } else {
            guess.clamp(passed / 4.0 / rows, (2.0 * passed + 3.0) / rows)
        };
        // Rows that were written since may be others.
        let known = found.of as f64 / (self.object.rows as f64).max(1.0);
        let known = known.min(1.0);
        told * known + guess * (1.0 - known)
    }

    /// The share of rows for which a predicate is true, as far as extremes and numbers of distinct values tell; values
    /// are taken to be evenly spread and columns independent.
    fn selectivity(&self, predicate: &Expr) -> f64 {
        let share = match predicate {
            Expr::Literal(Scalar {
                value: Value::Boolean(true),
                ..
            }) => 1.0,
            Expr::Literal(_) => 0.0,
            Expr::Not(operand) => 1.0 - self.selectivity(operand),
            Expr::Binary {
                op: BinaryOp::And,
                left,
                right,
            } => self.selectivity(left) * self.selectivity(right),
            Expr::Binary {
                op: BinaryOp::Or,
                left,
                right,
            } => {
                let (left, right) = (self.selectivity(left), self.selectivity(right));
                left + right - left * right
            }
            Expr::Binary { op, left, right } => match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), Expr::Literal(value)) => self.compare(*op, *column, value),
                (Expr::Literal(value), Expr::Column(column)) => {
                    self.compare(op.mirrored(), *column, value)
                }
                _ => UNKNOWN,
            },
            Expr::InList {
                operand,
                list,
                negated,
            } => {
                let Expr::Column(column) = operand.as_ref() else {
                    return UNKNOWN;
                };
                let Some(distinct) = self.distinct(*column) else {
                    return UNKNOWN;
                };
                let share = (list.len() as f64 / distinct).min(1.0);
                if *negated { 1.0 - share } else { share }
            }
            Expr::IsNull(_) => self.null_share(predicate),
            Expr::IsNotNull(operand) => 1.0 - self.null_share(&Expr::IsNull(operand.clone())),
            Expr::Like { negated, .. } => match negated {
                true => 1.0 - LIKE,
                false => LIKE,
            },
            _ => UNKNOWN,
        };
        share.clamp(0.0, 1.0)
    }

    fn null_share(&self, is_null: &Expr) -> f64 {
        let Expr::IsNull(operand) = is_null else {
            return UNKNOWN;
        };
        let Expr::Column(column) = operand.as_ref() else {
            return UNKNOWN;
        };
        self.object.columns.get(*column).map_or(UNKNOWN, |column| {
            column.nulls as f64 / (self.object.rows as f64).max(1.0)
        })
    }

    fn compare(&self, op: BinaryOp, column: usize, value: &Scalar) -> f64 {
        let equal = self
            .distinct(column)
            .map_or(UNKNOWN, |distinct| 1.0 / distinct);
        let below = || {
            let column = self.object.columns.get(column)?;
            let (min, max) = (number(column.min.as_ref()?)?, number(column.max.as_ref()?)?);
            let value = number(value)?;
            Some(((value - min) / (max - min).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0))
        };
        match op {
            BinaryOp::Eq => equal,
            BinaryOp::NotEq => 1.0 - equal,
            BinaryOp::Lt | BinaryOp::LtEq => below().unwrap_or(UNKNOWN).max(equal),
            BinaryOp::Gt | BinaryOp::GtEq => {
                below().map_or(UNKNOWN, |below| 1.0 - below).max(equal)
            }
            _ => UNKNOWN,
        }
    }
}

impl Sample {
    fn find(&self, filter: &[Expr]) -> Option<SampledRows> {
        let mut found = self.found.lock();
        if let Some((_, rows)) = found.iter().find(|(known, _)| known == filter) {
            return *rows;
        }
        let rows = self.home.samples()?.find(self.object, filter);
        let rows = rows.filter(|found| found.rows > 0);
        found.push((filter.to_vec(), rows));
        rows
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({})", self.object)
    }
}

/// What is known of a column of which there are so many rows now.
fn fewer(column: ColumnStatistics, rows: u64) -> ColumnStatistics {
    let column = column.to_inexact();
    let most = |count: usize| count.min(rows as usize);
    ColumnStatistics {
        null_count: column.null_count.map(most),
        distinct_count: column.distinct_count.map(most),
        sum_value: Precision::Absent,
        ..column
    }
}

fn precision(value: usize, exact: bool) -> Precision<usize> {
    if exact {
        Precision::Exact(value)
    } else {
        Precision::Inexact(value)
    }
}

fn integer(scalar: &Scalar) -> Option<i128> {
    match scalar.value {
        Value::Integer(value) => Some(value),
        _ => None,
    }
}

fn number(scalar: &Scalar) -> Option<f64> {
    match scalar.value {
        Value::Integer(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_fragment::Type;
    use eris_home::ColumnStatistics as Column;

    fn scalar(value: i128) -> Scalar {
        Scalar {
            data_type: Type::Int32,
            value: Value::Integer(value),
        }
    }

    fn table() -> TableStatistics {
        let column = Column {
            nulls: 10,
            min: Some(scalar(1)),
            max: Some(scalar(100)),
            ..Column::default()
        };
        let object = ObjectStatistics {
            rows: 1000,
            bytes: 4000,
            newest: Timestamp(5),
            columns: vec![column],
            ..ObjectStatistics::default()
        };
        TableStatistics::new(object, Timestamp(5))
    }

    fn compare(op: BinaryOp, value: i128) -> Expr {
        Expr::Binary {
            op,
            left: Box::new(Expr::Column(0)),
            right: Box::new(Expr::Literal(scalar(value))),
        }
    }

    #[test]
    fn an_unfiltered_scan_is_exact_at_its_snapshot_only() {
        let statistics = table().rows_out(&[Expr::Column(0)], &[], None, None);
        assert_eq!(statistics.num_rows, Precision::Exact(1000));
        assert_eq!(
            statistics.column_statistics[0].null_count,
            Precision::Exact(10)
        );
        let later = TableStatistics::new(table().object, Timestamp(4));
        assert_eq!(
            later.rows_out(&[], &[], None, None).num_rows,
            Precision::Inexact(1000)
        );
    }

    #[test]
    fn limits() {
        assert_eq!(
            table().rows_out(&[], &[], Some(7), None).num_rows,
            Precision::Inexact(7)
        );
        assert_eq!(
            table().rows_out(&[], &[], Some(2000), None).num_rows,
            Precision::Inexact(1000)
        );
        let filter = [compare(BinaryOp::Eq, 5)];
        assert_eq!(
            table().rows_out(&[], &filter, Some(7), None).num_rows,
            Precision::Inexact(7)
        );
    }

    #[test]
    fn joined_rows_are_counted_for_each_row() {
        let key = ColumnStatistics {
            distinct_count: Precision::Exact(500),
            ..ColumnStatistics::new_unknown()
        };
        let joined = JoinedRows {
            per_row: 0.1,
            first_column: 3,
            columns: vec![key],
        };
        let output = [Expr::Column(3), Expr::Column(0)];
        let statistics = table().rows_out(&output, &[], None, Some(&joined));
        assert_eq!(statistics.num_rows, Precision::Inexact(100));
        let columns = &statistics.column_statistics;
        assert_eq!(columns[0].distinct_count, Precision::Inexact(100));
        assert_eq!(
            columns[1].min_value,
            Precision::Inexact(ScalarValue::Int32(Some(1)))
        );
    }

    #[test]
    fn predicates_leave_their_share() {
        for (op, value, share) in [
            (BinaryOp::Eq, 5, 0.01),
            (BinaryOp::LtEq, 100, 1.0),
            (BinaryOp::Gt, 100, 0.01),
            (BinaryOp::Lt, 50, 0.495),
        ] {
            let estimate = table().selectivity(&compare(op, value));
            assert!(
                (estimate - share).abs() < 0.01,
                "{op:?} {value}: {estimate}"
            );
        }
    }
}
