//! A large result, batch by batch: no more than a few batches are in memory at a time.

use eris_sql::{Outcome, Session, SqlError};
use futures::StreamExt;

/// Counts rows as they come.
pub async fn stream(session: &Session) -> Result<u64, SqlError> {
    let query = "SELECT i, i * i AS square FROM generate_series(1, 100000) AS g(i)";
    let Outcome::Rows(mut rows) = session.execute(query).await? else {
        unreachable!("a query has rows");
    };
    println!(
        "columns: {:?}",
        rows.schema()
            .fields()
            .iter()
            .map(|field| field.name())
            .collect::<Vec<_>>()
    );
    let mut count = 0;
    while let Some(batch) = rows.next().await {
        // An error is the last item. What came before it is then only a part.
        count += batch?.num_rows() as u64;
    }
    Ok(count)
}
