//! Statements, and the values of a result.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use eris_sql::{Outcome, Session, SqlError};

/// Creates a table, fills it and reads it: orders by city.
pub async fn query(session: &Session) -> Result<Vec<(String, i64)>, SqlError> {
    // A script is split first: one statement is executed at a time.
    let script = "
        CREATE TABLE orders (city VARCHAR, pieces BIGINT);
        INSERT INTO orders VALUES ('Bonn', 3), ('Wien', 2), ('Bonn', 4)";
    for statement in Session::split(script)? {
        match session.execute(statement).await? {
            Outcome::Rows(rows) => drop(rows),
            Outcome::Count { rows, tag } => println!("{tag}: {rows} rows"),
            Outcome::Done { tag } => println!("{tag}"),
        }
    }
    let query = "SELECT city, sum(pieces)::BIGINT FROM orders GROUP BY city ORDER BY city";
    let Outcome::Rows(rows) = session.execute(query).await? else {
        unreachable!("a query has rows");
    };
    let mut sums = Vec::new();
    // A result is a stream of Arrow's record batches; this one is small.
    for batch in rows.collect().await? {
        let cities = batch.column(0).as_string_view();
        let pieces = batch.column(1).as_primitive::<Int64Type>().values();
        sums.extend(
            cities
                .iter()
                .flatten()
                .map(str::to_owned)
                .zip(pieces.iter().copied()),
        );
    }
    // What is wrong with a statement is told with its place and a hint.
    let error = session
        .execute("SELECT town FROM orders")
        .await
        .unwrap_err();
    println!(
        "{error} (at {:?}, hint: {:?})",
        error.position(),
        error.hint()
    );
    Ok(sums)
}

/// For the test.
#[cfg(test)]
pub fn owned((city, pieces): (&str, i64)) -> (String, i64) {
    (city.to_owned(), pieces)
}
