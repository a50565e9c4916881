//! Everything that a database says of itself, as lines of text.

use datafusion::arrow::util::display::array_value_to_string;
use eris_sql::{Outcome, RelationKind, Session, SqlError};
use std::collections::BTreeSet;

/// What there is, and all rows.
const QUERIES: [&str; 12] = [
    "SELECT * FROM eris.schemas",
    "SELECT * FROM eris.sequences",
    "SELECT * FROM eris.views",
    "SELECT * FROM eris.macros",
    "SELECT \"schema\", \"table\", columns, partitioned_by, balancing, comment FROM eris.tables",
    "SELECT \"schema\", \"table\", \"column\", position, type, nullable, comment FROM eris.columns",
    "SELECT \"schema\", \"table\", name, columns, kind, \"unique\" FROM eris.indexes",
    "SELECT * FROM information_schema.columns WHERE table_schema NOT IN ('eris', 'information_schema', 'pg_catalog')",
    "SELECT * FROM information_schema.table_constraints",
    "SELECT * FROM information_schema.check_constraints",
    "SELECT * FROM information_schema.referential_constraints",
    "SELECT * FROM information_schema.key_column_usage",
];

/// The rows of a query, each as one line, in order.
pub async fn lines(session: &Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let Outcome::Rows(rows) = session.execute(sql).await? else {
        return Ok(Vec::new());
    };
    let batches = rows.collect().await?;
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(move |row| {
            let columns = batch.columns().iter();
            let values = columns.map(|column| array_value_to_string(column, row).unwrap());
            values.collect::<Vec<_>>().join("|")
        })
    });
    let mut lines: Vec<String> = rows.collect();
    lines.sort_unstable();
    Ok(lines)
}

/// What a session sees that has no temporary tables.
pub async fn dump(session: &Session) -> Vec<String> {
    let relations = session.relations().into_iter();
    let mut all: Vec<String> = relations.map(|relation| relation.definition).collect();
    for query in QUERIES {
        let rows = lines(session, query).await;
        let rows = rows.unwrap_or_else(|error| panic!("{query}: {error}"));
        all.extend(rows.iter().map(|row| format!("{query}: {row}")));
    }
    let relations = session.relations().into_iter();
    for relation in relations.filter(|relation| relation.kind != RelationKind::System) {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let (schema, name) = (quoted(&relation.schema), quoted(&relation.name));
        let query = format!("SELECT * FROM {schema}.{name}");
        match lines(session, &query).await {
            Ok(rows) => all.extend(rows.iter().map(|row| format!("{query}: {row}"))),
            Err(error) => all.push(format!("{query}: {error}")),
        }
    }
    all
}

/// Fails with the first lines that differ.
pub fn assert_same(before: &[String], after: &[String], when: &str) {
    let sets: [BTreeSet<&String>; 2] = [before, after].map(|lines| lines.iter().collect());
    let [before_set, after_set] = &sets;
    let lost: Vec<_> = before_set.difference(after_set).take(5).collect();
    let new: Vec<_> = after_set.difference(before_set).take(5).collect();
    assert!(
        lost.is_empty() && new.is_empty(),
        "{when}\nbefore: {lost:#?}\nafter: {new:#?}"
    );
    assert_eq!(before.len(), after.len(), "{when}");
}
