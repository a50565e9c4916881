//! The scan as a user sees it: one table with a column per width, and a count in SQL.
//!
//! Value `i` of the column of width `w`, with two primes `p` and `q`:
//!
//! ```text
//! the upper w bits of 63, of which 31 are i × m modulo p, and 31 are i × n modulo q
//! ```
//!
//! The values are equally distributed over the width and the same on every run. The statement that fills the table and
//! the check of what it counts compute them alike, without overflow.

use super::ScanOptions;
use super::bandwidth::READING;
use super::error::ScanError;
use super::values::Predicate;
use crate::report::{BenchReport, median};
use arrow_array::{Array, Int64Array};
use eris_engine::{Engine, Settings};
use eris_numa::measure::LocalReads;
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::future::try_join_all;
use serde_json::json;
use std::time::Instant;

/// Widths of the table's columns; their values are BIGINT and never negative.
const WIDTHS: [u8; 7] = [4, 8, 12, 16, 32, 48, 63];

/// Numbers from 0 that four hexadecimal digits make; as many blocks of as many rows are the largest table.
const NUMBERS: u64 = 65_536;

/// Multiplier and prime of the upper bits. Row numbers have at most 32 bits, so the product fits into 63.
const UPPER: (i64, i64) = (1_327_217_885, 2_147_483_647);
/// The same of the lower bits.
const LOWER: (i64, i64) = (987_654_323, 2_147_483_629);

/// The value of row `i`, counted from 1.
fn value(i: i64, width: u8) -> i64 {
    let upper = i * UPPER.0 % UPPER.1;
    let lower = i * LOWER.0 % LOWER.1;
    ((upper << 32) + (lower << 1) + i % 2) >> (63 - width) & mask(width)
}

fn mask(width: u8) -> i64 {
    i64::MAX >> (63 - width)
}

/// Adds one row per width and predicate.
pub async fn run(
    settings: Settings,
    options: ScanOptions,
    reads: &LocalReads,
    report: &mut BenchReport,
) -> Result<(), ScanError> {
    let database = Database::open(Engine::home(settings).map_err(SqlError::from)?)?;
    let session = database.session();
    load(&session, options.rows).await?;
    let rows = options.rows as i64;
    for width in WIDTHS {
        for predicate in Predicate::of_width(width) {
            let Predicate { name, lo, hi } = predicate;
            let statement =
                format!("SELECT count(*) FROM scan WHERE c{width} BETWEEN {lo} AND {hi}");
            let expected = (1..=rows)
                .filter(|i| predicate.holds(value(*i, width) as u64))
                .count() as u64;
            let mut rates = Vec::new();
            let mut limits = Vec::new();
            for _ in 0..options.runs {
                limits.push(reads.measure(READING)?);
                // The read has emptied the caches of what a statement needs beside the column.
                count(&session, &statement).await?;
                let begun = Instant::now();
                let counted = count(&session, &statement).await?;
                let seconds = begun.elapsed().as_secs_f64();
                if counted != expected as i64 {
                    return Err(ScanError::WrongAnswer {
                        statement,
                        counted,
                        expected,
                    });
                }
                rates.push(options.rows as f64 / seconds / 1e6);
            }
            let params = [
                ("width", json!(width)),
                ("predicate", json!(name)),
                ("rows", json!(rows)),
            ];
            report.row(
                "sql",
                params,
                "million rows/s",
                rates,
                Some(median(&limits) * 8.0 / f64::from(width) / 1e6),
            );
        }
    }
    side_by_side(&session, options, reads, report).await
}

/// Statements on the widest column at the same time: more than the limit of one, where they share their passes over it.
async fn side_by_side(
    session: &Session,
    options: ScanOptions,
    reads: &LocalReads,
    report: &mut BenchReport,
) -> Result<(), ScanError> {
    let width = WIDTHS[WIDTHS.len() - 1];
    let hi = mask(width) / 2;
    for count_of in [1, 2, 4, 8] {
        let statements: Vec<String> = (0..count_of)
            .map(|lo| format!("SELECT count(*) FROM scan WHERE c{width} BETWEEN {lo} AND {hi}"))
            .collect();
        let mut rates = Vec::new();
        let mut limits = Vec::new();
        for _ in 0..options.runs {
            limits.push(reads.measure(READING)?);
            count(session, &statements[0]).await?;
            let begun = Instant::now();
            try_join_all(statements.iter().map(|one| count(session, one))).await?;
            let seconds = begun.elapsed().as_secs_f64();
            rates.push(f64::from(count_of) * options.rows as f64 / seconds / 1e6);
        }
        let params = [
            ("width", json!(width)),
            ("statements", json!(count_of)),
            ("rows", json!(options.rows)),
        ];
        report.row(
            "sql side by side",
            params,
            "million rows/s",
            rates,
            Some(median(&limits) * 8.0 / f64::from(width) / 1e6),
        );
    }
    Ok(())
}

/// Makes the table, in SQL: numbers from digits, rows from numbers.
async fn load(session: &Session, rows: u64) -> Result<(), SqlError> {
    let digits = (0..16)
        .map(|digit| format!("(CAST({digit} AS BIGINT))"))
        .collect::<Vec<_>>()
        .join(", ");
    let numbers = format!(
        "CREATE TABLE numbers AS WITH d(n) AS (VALUES {digits}) \
         SELECT ((a.n * 16 + b.n) * 16 + c.n) * 16 + d.n AS n FROM d AS a, d AS b, d AS c, d"
    );
    session.execute(&numbers).await?;
    let columns = WIDTHS
        .map(|w| format!("(v >> {}) & {} AS c{w}", 63 - w, mask(w)))
        .join(", ");
    let blocks = rows.div_ceil(NUMBERS);
    let bits = format!(
        "(i * {} % {}) * {} + (i * {} % {}) * 2 + i % 2",
        UPPER.0,
        UPPER.1,
        1_u64 << 32,
        LOWER.0,
        LOWER.1
    );
    let create = format!(
        "CREATE TABLE scan AS SELECT {columns} FROM (SELECT {bits} AS v FROM (SELECT a.n * {NUMBERS} + b.n + 1 AS i \
         FROM (SELECT n FROM numbers WHERE n < {blocks}) AS a, numbers AS b) AS rows WHERE i <= {rows}) AS bits"
    );
    session.execute(&create).await?;
    Ok(())
}

/// The single number that a statement answers with.
async fn count(session: &Session, statement: &str) -> Result<i64, SqlError> {
    let Outcome::Rows(stream) = session.execute(statement).await? else {
        unreachable!("a SELECT yields rows");
    };
    let batches = stream.collect().await?;
    let counts = batches.iter().map(|batch| {
        let counts = batch
            .column(0)
            .as_any()
            .downcast_ref::<Int64Array>()
            .expect("count(*) is BIGINT");
        counts.iter().flatten().sum::<i64>()
    });
    Ok(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equally_distributed() {
        for width in WIDTHS {
            let rows = 100_000;
            for predicate in Predicate::of_width(width) {
                let (lo, hi) = (predicate.lo as f64, predicate.hi as f64);
                let expected = (hi - lo + 1.0) / (mask(width) as f64 + 1.0) * rows as f64;
                let counted = (1..=rows)
                    .filter(|i| predicate.holds(value(*i, width) as u64))
                    .count() as f64;
                assert!(
                    (counted - expected).abs() < 100.0,
                    "{width} {predicate:?}: {counted}, {expected}"
                );
            }
        }
    }
}
