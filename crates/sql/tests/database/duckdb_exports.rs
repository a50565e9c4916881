//! What DuckDB 2.0 has exported, as `tests/duckdb_exports/make.py` asks it to: it is imported as it is.

use crate::common::{block_on, database, must, values};
use eris_sql::Session;
use std::path::Path;

fn directory(name: &str) -> String {
    // Below the folder that cargo runs tests in.
    let path = Path::new("tests/duckdb_exports").join(name);
    path.display().to_string()
}

async fn shown(session: &Session, sql: &str) -> Vec<String> {
    let rows = values(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.join("|")).collect()
}

#[test]
fn everything_is_there() {
    for name in ["csv", "gzip", "parquet"] {
        block_on(async {
            let database = database(1, 2);
            let session = database.session();
            must(&session, &format!("IMPORT DATABASE '{}'", directory(name))).await;
            let sales = shown(&session, "SELECT * FROM sale ORDER BY id").await;
            assert_eq!(
                sales,
                [
                    "5|Lyon|2024-01-01|2024-01-01T10:30:00.500|12.50|1250|a \"quoted\", one|0.1|true",
                    "7|Kyoto|2024-02-29||7.00|700||-1e300|false",
                    "9||||||||",
                ],
                "{name}"
            );
            let notes = "SELECT id FROM sale WHERE note IS NULL";
            assert_eq!(
                shown(&session, notes).await,
                ["9"],
                "the empty string is none"
            );
            let past = shown(
                &session,
                "SELECT id, \"Odd name\" FROM past.sale ORDER BY id",
            )
            .await;
            assert_eq!(past, ["1|x", "2|"]);
            assert_eq!(shown(&session, "SELECT g FROM grand").await, ["19.50"]);
            // Rules, defaults, sequences and indexes go on.
            must(&session, "INSERT INTO city (name) VALUES ('Oslo')").await;
            let region = shown(&session, "SELECT region FROM city WHERE name = 'Oslo'").await;
            assert_eq!(region, ["it's new"]);
            let insert = "INSERT INTO sale (city, amount) VALUES ('Oslo', 3) RETURNING id, cents";
            assert_eq!(shown(&session, insert).await, ["11|300"]);
            for wrong in [
                "INSERT INTO sale (city) VALUES ('nowhere')",
                "INSERT INTO sale (amount) VALUES (-1)",
                "INSERT INTO sale (note) VALUES ('')",
                "INSERT INTO sale (city, day) VALUES ('Lyon', '2024-01-01')",
                "INSERT INTO sale (cents) VALUES (1)",
            ] {
                assert!(session.execute(wrong).await.is_err(), "{wrong}");
            }
            let indexes = "SELECT name, columns FROM eris.indexes ORDER BY name";
            let indexes = shown(&session, indexes).await;
            assert_eq!(indexes, ["by_day|day, city", "by_note|note"]);
        });
    }
}

#[test]
fn what_is_not_imported_is_told_by_its_name() {
    block_on(async {
        let database = database(1, 1);
        let session = database.session();
        for (more, expected) in [
            (
                "CREATE TYPE mood AS ENUM ( 'a', 'b' );",
                "IMPORT of CREATE TYPE",
            ),
            (
                "CREATE MACRO m(x) AS (SELECT max(id) FROM nosuch);",
                "table \"nosuch\" does not exist",
            ),
        ] {
            let copied = tempfile::tempdir().unwrap();
            for file in std::fs::read_dir(directory("csv")).unwrap() {
                let file = file.unwrap();
                std::fs::copy(file.path(), copied.path().join(file.file_name())).unwrap();
            }
            let schema = copied.path().join("schema.sql");
            let text = std::fs::read_to_string(&schema).unwrap();
            std::fs::write(&schema, format!("{text}{more}\n")).unwrap();
            let import = format!("IMPORT DATABASE '{}'", copied.path().display());
            let error = session.execute(import).await.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(must(&session, "SHOW TABLES").await, 0, "nothing stays");
            assert_eq!(must(&session, "FROM eris.macros").await, 0, "nothing stays");
        }
    });
}
