//! Queries and their answers.

use super::error::SsbError;
use arrow_array::RecordBatch;
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{ArrowError, SchemaRef};
use eris_sql::{Outcome, Session, SqlError};
use eris_ssb::Query;

/// A query's answer.
#[derive(Debug)]
pub struct Sample {
    /// Which query.
    pub id: &'static str,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl Sample {
    pub(super) fn rows(&self) -> u64 {
        let batches = self.batches.iter();
        batches.map(|batch| batch.num_rows() as u64).sum()
    }

    /// All rows, sorted: rows that a query's order does not tell apart may come either way.
    pub(super) fn sorted_rows(&self) -> Result<Vec<OwnedRow>, ArrowError> {
        let fields = self.schema.fields().iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let mut all = Vec::new();
        for batch in &self.batches {
            let rows = converter.convert_columns(batch.columns())?;
            all.extend(rows.iter().map(|row| row.owned()));
        }
        all.sort_unstable();
        Ok(all)
    }
}

pub fn failed(query: &Query, source: SqlError) -> SsbError {
    SsbError::Statement {
        what: format!("query {}", query.id),
        source,
    }
}

/// A query's answer, all of it.
pub async fn answer(session: &Session, sql: &str) -> Result<Sample, SqlError> {
    let Outcome::Rows(stream) = session.execute(sql).await? else {
        unreachable!("the benchmark's queries are SELECTs");
    };
    let schema = stream.schema().clone();
    Ok(Sample {
        id: "",
        schema,
        batches: stream.collect().await?,
    })
}
