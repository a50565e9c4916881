//! Rows in the order of their keys: by what a join would make of them.

use super::build::{on_threads, table_of, union};
use super::keys::{BatchKeys, Coding, integers};
use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::compute::take;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use eris_join::Spread;
use std::sync::Arc;

/// Rows whose codes are made at once.
const ROWS: usize = 1 << 16;

/// The rows of a batch in the order of its first column, which has integers and no NULL, by so many threads. Rows with
/// the same key keep their order. If the keys lie too far apart, nothing is changed.
///
/// Needs memory for the rows once more, and 16 bytes for each.
///
/// # Errors
/// None but those of Arrow.
pub async fn in_key_order(rows: RecordBatch, threads: usize) -> Result<RecordBatch> {
    match integers(rows.column(0)) {
        Some(keys) if !keys.is_sorted() => {}
        _ => return Ok(rows),
    }
    let pieces = (0..rows.num_rows()).step_by(ROWS).map(|first| {
        let len = ROWS.min(rows.num_rows() - first);
        BatchKeys {
            arrays: vec![rows.column(0).slice(first, len)],
            rows: len,
        }
    });
    let keys: Vec<BatchKeys> = pieces.collect();
    let coding = Coding::new(union(keys.iter().map(BatchKeys::ranges), 1));
    let is_close = |span| Spread::new(rows.num_rows(), 0, span, threads).is_dense();
    if !coding.span().is_some_and(is_close) {
        return Ok(rows);
    }
    let (table, _) = table_of(Arc::new(keys), Arc::new(coding), threads).await?;
    let Some(order) = table.rows_by_code() else {
        return Ok(rows);
    };
    drop(table);
    let order = UInt32Array::from(order);
    let columns = rows.columns().to_vec();
    let taken = move |column: usize| Ok(take(&columns[column], &order, None)?);
    let columns = on_threads(rows.num_columns(), threads, taken).await?;
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}
