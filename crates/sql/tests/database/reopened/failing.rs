//! Changes that cannot be stored: the statement fails, and nothing has changed.

use super::{SCHEMA, fails, open, reopened, until_clean};
use crate::common::{block_on_threads, must};
use crate::keeping_home::KeepingHome;
use crate::keeping_home::dump::{assert_same, dump};

/// Statements that change what [`SCHEMA`] has made, in many ways.
const CHANGES: [&str; 41] = [
    "ALTER TABLE p ADD COLUMN x INTEGER DEFAULT 3",
    "ALTER TABLE p RENAME COLUMN x TO z",
    "ALTER TABLE p ALTER COLUMN z TYPE BIGINT",
    "ALTER TABLE p ALTER COLUMN z SET DEFAULT 5",
    "ALTER TABLE p ALTER COLUMN z SET NOT NULL",
    "ALTER TABLE p ADD CONSTRAINT again UNIQUE (a)",
    "ALTER TABLE p RENAME CONSTRAINT again TO \"Again; and again\"",
    "ALTER TABLE p DROP CONSTRAINT \"Again; and again\"",
    "ALTER TABLE p ADD CHECK (a >= 0)",
    "ALTER TABLE p DROP COLUMN z",
    "ALTER TABLE copied ADD PRIMARY KEY (k)",
    "ALTER TABLE copied RENAME TO \"Copied\"",
    "ALTER TABLE \"Copied\" DROP CONSTRAINT copied_pkey",
    "CREATE OR REPLACE TABLE \"Copied\" (a INTEGER UNIQUE, id SERIAL)",
    "CREATE OR REPLACE TABLE \"Copied\" (a INTEGER UNIQUE, id BIGSERIAL)",
    "CREATE OR REPLACE TABLE \"Copied\" AS SELECT k, b FROM p",
    "CREATE OR REPLACE VIEW constant AS SELECT * FROM p",
    "CREATE OR REPLACE MACRO abs(x) AS x",
    "CREATE UNIQUE INDEX unique_b ON p (b)",
    "CREATE INDEX plain_b ON p (b)",
    "DROP INDEX unique_b, plain_b",
    "TRUNCATE self, ranged",
    "DELETE FROM \"Copied\"",
    "COMMENT ON TABLE p IS NULL",
    "COMMENT ON COLUMN c.p IS 'a parent'",
    "COMMENT ON VIEW v IS NULL",
    "COMMENT ON MACRO abs IS 'x'",
    "COMMENT ON SCHEMA s IS NULL",
    "CALL eris.balance('p', 'off')",
    "CALL eris.balance('p', 'moving_average', neighbours => 2, threshold => 7)",
    "TRUNCATE \"Odd schema\".\"A table; with 'all'\"",
    "CALL eris.balance('\"Odd schema\".\"A table; with ''all''\"', 'one_shot')",
    "CALL eris.balance('p', 'default')",
    "SET balancing = 'off'",
    "SET balancing_threshold = 55",
    "SELECT nextval('down')",
    "SELECT setval('down', -20, false)",
    "DROP MACRO abs",
    "DROP VIEW v CASCADE",
    "DROP TABLE one CASCADE",
    "DROP TABLE c",
];

#[test]
fn nothing_changes_that_cannot_be_stored() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let mut database = open(&home);
        for (number, sql) in SCHEMA.iter().chain(&CHANGES).enumerate() {
            let session = database.session();
            let durable = home.durable();
            let before = dump(&session).await;
            let calls = home.calls();
            home.fail_behind(Some(0));
            let begun = session.execute(*sql).await;
            let failed = match begun {
                Ok(eris_sql::Outcome::Rows(rows)) => rows.collect().await.err(),
                Ok(_) => None,
                Err(error) => Some(error),
            };
            home.fail_behind(None);
            match failed {
                Some(error) => {
                    assert!(error.to_string().contains("no room"), "{sql}: {error}");
                    assert_eq!(error.sqlstate().code(), "53100");
                    assert_same(&before, &dump(&session).await, sql);
                    assert_eq!(home.durable(), durable, "{sql}");
                    until_clean(&home, sql).await;
                    must(&session, sql).await;
                }
                None => {
                    assert_eq!(home.calls(), calls, "{sql} succeeds");
                    let is_change = !sql.starts_with("INSERT") && !sql.starts_with("UPDATE");
                    assert!(!is_change || sql.contains("TEMP"), "{sql} stores nothing");
                }
            }
            drop(session);
            if number % 10 == 0 {
                database = reopened(&home, database).await;
            }
        }
        until_clean(&home, "at the end").await;
        let stored = home.durable();
        let text = |name: &str| stored.get(name).map(|definition| &*definition.text);
        assert_eq!(text("setting balancing"), Some("SET balancing = 'off'"));
        let database = reopened(&home, database).await;
        let session = database.session();
        let kept = super::lines(&session, "SELECT name, value FROM eris.settings").await;
        let kept = kept.unwrap();
        for expected in ["balancing|off", "balancing_threshold|55"] {
            assert!(
                kept.iter().any(|line| line.starts_with(expected)),
                "{kept:?}"
            );
        }
        must(&session, "RESET balancing").await;
        assert!(!home.durable().contains_key("setting balancing"));
        let own = "SELECT balancing FROM eris.tables WHERE \"schema\" = 'Odd schema'";
        let own = super::lines(&session, own).await.unwrap();
        assert!(own[0].contains("one_shot"), "{own:?}");
        // One that cannot be noted is not given.
        home.fail_behind(Some(0));
        fails(
            &session,
            "INSERT INTO \"Odd schema\".\"A table; with 'all'\" SELECT nextval('down')",
        )
        .await;
        home.fail_behind(None);
    });
}

#[test]
fn an_import_is_one_change() {
    block_on_threads(async {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export").display().to_string();
        let from = KeepingHome::new(1, 2);
        let session = open(&from).session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        must(&session, &format!("EXPORT DATABASE '{target}'")).await;

        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let session = database.session();
        must(&session, "CREATE SCHEMA s").await;
        must(&session, "CREATE TABLE other (k BIGINT PRIMARY KEY)").await;
        let before = dump(&session).await;
        let import = format!("IMPORT DATABASE '{target}'");
        home.fail_behind(Some(0));
        let message = fails(&session, &import).await;
        assert!(message.contains("no room"), "{message}");
        home.fail_behind(None);
        assert_same(&before, &dump(&session).await, "an import that failed");
        until_clean(&home, "an import that failed").await;
        // A table with a foreign key to one that was there before, as nobody exports it.
        let file = format!("{target}/load.sql");
        let load = std::fs::read_to_string(&file).unwrap();
        let more = "ALTER TABLE copied ADD FOREIGN KEY (k) REFERENCES other (k);";
        std::fs::write(&file, format!("{load}\n{more}")).unwrap();
        let message = fails(&session, &import).await;
        assert!(message.contains("FOREIGN KEY"), "{message}");
        must(&session, "INSERT INTO other SELECT * FROM range(30)").await;
        let calls = home.calls();
        must(&session, &import).await;
        assert_eq!(home.calls(), calls + 1, "one change is stored");
        assert!(
            fails(&session, "DELETE FROM other WHERE k = 5")
                .await
                .contains("FOREIGN KEY")
        );
        until_clean(&home, "an import").await;
        drop(session);
        reopened(&home, database).await;
    });
}
