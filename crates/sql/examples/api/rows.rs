//! Rows of a table by its key, without SQL: batches in, batches out.

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use eris_sql::{Session, SqlError};
use std::sync::Arc;

/// Puts rows, looks up others, removes one.
pub async fn rows(session: &Session) -> Result<Vec<i64>, SqlError> {
    session
        .execute("CREATE TABLE stock (item VARCHAR PRIMARY KEY, pieces BIGINT)")
        .await?;
    let mut stock = session.rows("stock")?;
    let items = |items: &[&str]| Arc::new(StringArray::from(items.to_vec())) as ArrayRef;
    let pieces = Arc::new(Int64Array::from(vec![500, 300, 2])) as ArrayRef;
    let columns = [
        ("item", items(&["nail", "screw", "hammer"])),
        ("pieces", pieces),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    // All of these rows become visible at once. A row with the same key would be replaced.
    stock.put(&batch).await?;
    stock.remove(&[items(&["screw"])]).await?;
    let found = stock
        .get(&[items(&["nail", "saw", "hammer"])], &["pieces"])
        .await?;
    // Each row with the place of its key: there is no saw.
    assert_eq!(found.of, [0, 2]);
    Ok(found
        .rows
        .column(0)
        .as_primitive::<Int64Type>()
        .values()
        .to_vec())
}
