//! The interface of `sql` for programs, a file for each thing one can do: `cargo run --release --workspace --example
//! api`.
//!
//! ```text
//! open      a database in this process, and sessions of it
//! query     statements and their outcomes; values of a result
//! stream    a large result, batch by batch
//! prepare   a statement that is executed many times with other values
//! rows      rows of a table by its key, without SQL
//! cancel    a statement that takes too long
//! ```
//! The tests of the workspace run all of them.

mod cancel;
mod open;
mod prepare;
mod query;
mod rows;
mod stream;

use std::error::Error;

/// All examples, one after the other, on one database.
async fn all() -> Result<(), Box<dyn Error>> {
    let database = open::open()?;
    let session = database.session();
    query::query(&session).await?;
    println!("large orders: {}", stream::stream(&session).await?);
    println!("cities: {:?}", prepare::prepare(&session).await?);
    println!("pieces: {:?}", rows::rows(&session).await?);
    println!("cancelled in time: {}", cancel::cancel(&session).await?);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Any executor of futures will do: the work happens on the database's own threads.
    futures::executor::block_on(all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_sql::SqlError;

    #[test]
    fn every_example_does_what_it_says() -> Result<(), SqlError> {
        futures::executor::block_on(async {
            let database = open::open().expect("a database");
            let session = database.session();
            assert_eq!(
                query::query(&session).await?,
                [("Bonn", 7), ("Wien", 2)].map(query::owned)
            );
            assert_eq!(stream::stream(&session).await?, 100_000);
            assert_eq!(prepare::prepare(&session).await?, ["Bonn", "Wien"]);
            assert_eq!(rows::rows(&session).await?, [500, 2]);
            assert!(cancel::cancel(&session).await?);
            Ok(())
        })
    }
}
