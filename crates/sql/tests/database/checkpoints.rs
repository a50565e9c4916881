//! CHECKPOINT and BACKUP DATABASE of a database on a disk, beside sessions that write.

use crate::common::{block_on_threads, database, kept_in, must, open, try_open, values};
use crate::keeping_home::dump::{assert_same, dump, lines};
use eris_engine::DatabaseSettings;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the files of a directory below that of the database.
fn bytes(database: &Path, directory: &str) -> u64 {
    let entries = fs::read_dir(database.join(directory)).unwrap();
    entries
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum()
}

const SCHEMA: [&str; 8] = [
    "CREATE SEQUENCE numbers",
    "CREATE TABLE account (id BIGINT PRIMARY KEY, n BIGINT, note VARCHAR UNIQUE)",
    "INSERT INTO account SELECT i, 0, 'note ' || i FROM range(1000) r(i)",
    "CREATE TABLE event (id BIGINT DEFAULT nextval('numbers'), at TIMESTAMP, kind VARCHAR, v DOUBLE) ORDER BY (at)",
    "INSERT INTO event (at, kind, v) SELECT TIMESTAMP '2024-01-01' + i * INTERVAL '1 minute', 'kind ' || i % 7, i / 3.0 FROM range(200000) r(i)",
    "CREATE INDEX ON account (n)",
    "CREATE VIEW kinds AS SELECT kind, count(*) AS n FROM event GROUP BY kind",
    "COMMENT ON TABLE event IS 'what happened'",
];

#[test]
fn a_checkpoint_takes_the_place_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    block_on_threads(async {
        let database = open(path, (1, 2));
        let session = database.session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        for _ in 0..20 {
            must(&session, "UPDATE account SET n = n + 1").await;
        }
        let log = bytes(path, "log");
        must(&session, "CHECKPOINT").await;
        must(&session, "DELETE FROM event WHERE kind = 'kind 3'").await;
        let before = dump(&session).await;
        drop((session, database));
        let after = bytes(path, "log");
        assert!(after * 2 < log, "{after} of {log} bytes are left");
        let database = open(path, (2, 2));
        let session = database.session();
        assert_same(&before, &dump(&session).await, "opened again");
        // What nobody refers to any more gives its room back.
        let chunks = bytes(path, "chunks");
        must(&session, "TRUNCATE event").await;
        must(&session, "CHECKPOINT").await;
        assert!(bytes(path, "chunks") * 4 < chunks);
        let before = dump(&session).await;
        drop((session, database));
        let database = open(path, (1, 1));
        assert_same(
            &before,
            &dump(&database.session()).await,
            "opened once more",
        );
    });
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let backup = format!("BACKUP DATABASE TO '{}'", copy.display());
    block_on_threads(async {
        let database = open(&path, (2, 2));
        let session = database.session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        must(&session, "CREATE TEMPORARY TABLE mine (k INTEGER)").await;
        must(&session, &backup).await;
        let before = dump(&database.session()).await;
        let error = values(&session, &backup).await.unwrap_err().to_string();
        assert!(error.contains("copy"), "{error}");
        // It is changed for itself.
        let other = open(&copy, (1, 2));
        let of_other = other.session();
        // It gives none of the numbers that the other may give.
        let is_no_sequence = |line: &String| !line.starts_with("SELECT * FROM eris.sequences");
        let but_sequences = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(is_no_sequence).collect()
        };
        let copied = but_sequences(dump(&of_other).await);
        assert_same(&but_sequences(before.clone()), &copied, "the copy");
        must(&of_other, "DELETE FROM event").await;
        must(&of_other, "CHECKPOINT").await;
        assert_same(&before, &dump(&database.session()).await, "the database");
    });
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn who_only_reads_may_back_up_and_nobody_into_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    block_on_threads(async {
        let database = open(&path, (1, 2));
        for sql in SCHEMA {
            must(&database.session(), sql).await;
        }
        for within in [
            path.clone(),
            path.join("new"),
            path.join("chunks"),
            path.join("x/../y"),
        ] {
            let backup = format!("BACKUP DATABASE TO '{}'", within.display());
            let error = values(&database.session(), &backup).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("directory of the database itself"), "{text}");
        }
        drop(database);
        let only_read = DatabaseSettings {
            read_only: true,
            ..kept_in(&path)
        };
        let database = try_open((1, 2), only_read).unwrap();
        let before = dump(&database.session()).await;
        let backup = format!("BACKUP DATABASE TO '{}'", copy.display());
        must(&database.session(), &backup).await;
        let other = open(&copy, (2, 1));
        let of_sequences = |line: &String| line.starts_with("SELECT * FROM eris.sequences");
        let but_sequences = |lines: Vec<String>| -> Vec<String> {
            lines
                .into_iter()
                .filter(|line| !of_sequences(line))
                .collect()
        };
        let after = dump(&other.session()).await;
        assert_same(&but_sequences(before), &but_sequences(after), "the copy");
    });
}

#[test]
fn a_backup_beside_writers_has_whole_statements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    block_on_threads(async {
        let database = open(&path, (1, 2));
        let session = database.session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..3 {
            let (session, stop) = (database.session(), Arc::clone(&stop));
            writers.spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let sql = match writer {
                        0 => "UPDATE account SET n = n + 1".to_owned(),
                        1 => "INSERT INTO event (kind) SELECT 'many' FROM range(1000) r(i)"
                            .to_owned(),
                        _ if number % 2 == 0 => "DROP TABLE some".to_owned(),
                        _ => "CREATE TABLE some AS SELECT i FROM range(500) r(i)".to_owned(),
                    };
                    must(&session, &sql).await;
                    if writer == 2 {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    }
                }
                if writer == 2 && number % 2 == 1 {
                    must(&session, "DROP TABLE some").await;
                }
            });
        }
        for round in 0..5 {
            let copy = directory.path().join(format!("copy {round}"));
            must(
                &session,
                &format!("BACKUP DATABASE TO '{}'", copy.display()),
            )
            .await;
            let copy = open(&copy, (1, 1)).session();
            let spread = "SELECT count(*), max(n) - min(n), count(DISTINCT note) FROM account";
            assert_eq!(
                values(&copy, spread).await.unwrap(),
                [["1000", "0", "1000"]]
            );
            let many = "SELECT count(*) % 1000, count(*) = count(DISTINCT id) FROM event";
            assert_eq!(values(&copy, many).await.unwrap(), [["0", "true"]]);
            if let Ok(rows) = lines(&copy, "SELECT count(*) FROM some").await {
                assert_eq!(rows, ["500"]);
            }
        }
        stop.store(true, Ordering::Relaxed);
        while let Some(writer) = writers.join_next().await {
            writer.unwrap();
        }
    });
}

#[test]
fn without_a_directory_there_is_nothing_to_be_copied() {
    let directory = tempfile::tempdir().unwrap();
    block_on_threads(async {
        let session = database(1, 1).session();
        must(&session, "CHECKPOINT").await;
        let sql = format!("BACKUP DATABASE TO '{}'", directory.path().display());
        let error = values(&session, &sql).await.unwrap_err();
        assert!(
            error.to_string().contains("ends with its process"),
            "{error}"
        );
    });
}
