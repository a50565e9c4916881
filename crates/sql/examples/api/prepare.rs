//! A statement that is parsed and resolved once, and executed with other values each time.

use datafusion::arrow::array::AsArray;
use eris_sql::{Outcome, Parameter, Session, SqlError};

/// Inserts and looks up by parameters.
pub async fn prepare(session: &Session) -> Result<Vec<String>, SqlError> {
    session
        .execute("CREATE TABLE cities (id BIGINT PRIMARY KEY, name VARCHAR)")
        .await?;
    let insert = session
        .prepare("INSERT INTO cities VALUES ($1, $2)")
        .await?;
    for (id, name) in [(1, "Bonn"), (2, "Wien")] {
        insert
            .execute(&[Parameter::from(id), Parameter::from(name)])
            .await?;
    }
    let lookup = session
        .prepare("SELECT name FROM cities WHERE id = $1")
        .await?;
    let mut names = Vec::new();
    for id in [1, 2, 3] {
        let Outcome::Rows(rows) = lookup.execute(&[Parameter::from(id)]).await? else {
            unreachable!("a query has rows");
        };
        for batch in rows.collect().await? {
            let found = batch.column(0).as_string_view().iter().flatten();
            names.extend(found.map(str::to_owned));
        }
    }
    Ok(names)
}
