//! A statement that takes too long. To drop its future, or its rows, cancels it, too; a
//! [`Canceller`](eris_sql::Canceller) also tells whether that came in time.

use eris_sql::{Outcome, Session, SqlError};
use futures::StreamExt;

/// Begins a query that would take hours, and cancels it; whether it had no effect.
pub async fn cancel(session: &Session) -> Result<bool, SqlError> {
    let pairs = "SELECT count(*) FROM generate_series(1, 10000000) AS a(i), generate_series(1, 10000000) AS b(i)
                 WHERE (a.i * b.i) % 1000 = 7";
    let running = session.execute(pairs);
    // It may be used from any thread, such as one that listens to the user.
    let canceller = running.canceller().clone();
    let Outcome::Rows(mut rows) = running.await? else {
        unreachable!("a query has rows");
    };
    let in_time = canceller.cancel();
    match rows.next().await {
        Some(Err(error)) => println!("cancelled: {}", error.is_cancelled()),
        other => println!("{other:?}"),
    }
    Ok(in_time)
}
