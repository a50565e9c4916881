//! What a database on a disk tells of its log, snapshots and files, beside what the directory has.

use crate::common::{block_on, database, kept_in, must, try_open, values};
use eris_engine::{DatabaseSettings, Synchronous};
use eris_sql::{Database, Session};
use std::path::Path;

fn open(directory: &Path, synchronous: Option<Synchronous>) -> Database {
    let database = DatabaseSettings {
        synchronous,
        ..kept_in(directory)
    };
    try_open((1, 2), database).unwrap()
}

async fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let rows = values(session, sql).await;
    rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The only row.
async fn row(session: &Session, sql: &str) -> Vec<String> {
    let mut rows = rows(session, sql).await;
    assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
    rows.pop().unwrap()
}

async fn number(session: &Session, sql: &str) -> u64 {
    row(session, sql).await[0].parse().unwrap()
}

/// The files below a directory with their lengths, as the system has them; without the lock.
fn on_disk(directory: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        match kind.is_dir() {
            true => found.extend(on_disk(&path)),
            false if entry.file_name() == "lock" => {}
            false => found.push((path.display().to_string(), entry.metadata().unwrap().len())),
        }
    }
    found.sort();
    found
}

#[test]
fn what_ends_with_the_process_has_no_log_and_no_files() {
    block_on(async {
        let session = database(1, 1).session();
        for view in ["log", "snapshots", "files"] {
            let sql = format!("SELECT * FROM eris.{view}");
            assert!(rows(&session, &sql).await.is_empty(), "{view}");
        }
    });
}

#[test]
fn files_are_those_of_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let database = open(&path, None);
    block_on(async {
        let session = database.session();
        must(
            &session,
            "CREATE TABLE t AS SELECT i, i * 7919 % 100003 AS v FROM range(300000) AS q(i)",
        )
        .await;
        must(&session, "DELETE FROM t WHERE i < 200000").await;
        for round in 0..2 {
            let listed = rows(&session, "SELECT path, bytes FROM eris.files ORDER BY path").await;
            let listed: Vec<(String, u64)> = listed
                .into_iter()
                .map(|row| (row[0].clone(), row[1].parse().unwrap()))
                .collect();
            assert_eq!(listed, on_disk(&path), "round {round}");
            let kinds = "SELECT DISTINCT kind FROM eris.files ORDER BY 1";
            let kinds = rows(&session, kinds).await.concat();
            match round {
                0 => assert_eq!(kinds, ["ballast", "chunks", "log", "manifest"]),
                _ => assert_eq!(kinds, ["ballast", "chunks", "log", "manifest", "snapshot"]),
            }
            let wrong = "SELECT * FROM eris.files WHERE path NOT LIKE '%' || CASE kind \
                 WHEN 'manifest' THEN 'eris.db' \
                 WHEN 'ballast' THEN 'ballast' \
                 WHEN 'snapshot' THEN 'snapshots/' || lpad(number::VARCHAR, 12, '0') || '.snapshot' \
                 ELSE kind || '/' || lpad(number::VARCHAR, 12, '0') || '.' || kind END \
                 OR (live_bytes IS NULL) <> (kind <> 'chunks') OR live_bytes > bytes";
            assert_eq!(rows(&session, wrong).await, Vec::<Vec<String>>::new());
            let live = "SELECT sum(live_bytes) FROM eris.files";
            assert!(number(&session, live).await > 0);
            let of_log = "SELECT files - (SELECT count(*) FROM eris.files WHERE kind = 'log'), \
                 file_bytes - (SELECT sum(bytes) FROM eris.files WHERE kind = 'log') FROM eris.log";
            assert_eq!(row(&session, of_log).await, ["0", "0"]);
            must(&session, "CHECKPOINT").await;
        }
    });
}

#[test]
fn the_log_tells_what_it_has_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let database = open(&path, None);
    block_on(async {
        let session = database.session();
        must(&session, "CREATE TABLE t (i INTEGER PRIMARY KEY)").await;
        let at_first = row(
            &session,
            "SELECT directory, synchronous, error, groups, bytes, durable_commit FROM eris.log",
        )
        .await;
        assert_eq!(at_first[..3], [&path.display().to_string(), "on", ""]);
        for i in 0..50 {
            must(&session, &format!("INSERT INTO t VALUES ({i})")).await;
        }
        // One after the other: each is a group of its own.
        let grown = format!(
            "SELECT groups - {} >= 50, bytes - {} >= 50 * 20, durable_commit - {} >= 50, \
             applied_commit = durable_commit, bytes_since_checkpoint >= bytes, \
             0 < flush_p50_us AND flush_p50_us <= flush_p99_us AND flush_p99_us <= flush_max_us FROM eris.log",
            at_first[3], at_first[4], at_first[5]
        );
        assert_eq!(row(&session, &grown).await, ["true"; 6]);
        let since = "SELECT bytes_since_checkpoint FROM eris.log";
        let before = number(&session, since).await;
        must(&session, "CHECKPOINT").await;
        assert!(number(&session, since).await < before);
        database.close().unwrap();
        let closed = "SELECT error, files FROM eris.log";
        assert_eq!(
            row(&session, closed).await,
            ["the database was closed", "0"]
        );
    });
    drop(database);
    for (synchronous, shown) in [
        (
            Synchronous::Interval(std::time::Duration::from_millis(200)),
            "200ms",
        ),
        (
            Synchronous::Interval(std::time::Duration::from_secs(60)),
            "1min",
        ),
        (Synchronous::Off, "off"),
    ] {
        block_on(async {
            let session = open(&path, Some(synchronous)).session();
            let sql = "SELECT synchronous, applied_commit = durable_commit FROM eris.log";
            assert_eq!(row(&session, sql).await, [shown, "true"]);
        });
    }
}

#[test]
fn snapshots_are_shown_and_why_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let all = "SELECT state, snapshot, rows, error, made IS NULL, elapsed_ms IS NULL FROM eris.snapshots ORDER BY state";
    let database = open(&path, None);
    block_on(async {
        let session = database.session();
        must(
            &session,
            "CREATE TABLE t AS SELECT i FROM range(100000) AS q(i)",
        )
        .await;
        assert!(rows(&session, all).await.is_empty());
        // Where snapshots should be is something else.
        std::fs::write(path.join("snapshots"), "in the way").unwrap();
        let error = values(&session, "CHECKPOINT").await.unwrap_err();
        let failed = row(&session, all).await;
        assert_eq!(failed[..3], ["failed", "", ""]);
        assert_eq!(failed[3..], [error.message().as_str(), "false", "false"]);
        assert_eq!(error.sqlstate().to_string(), "58030");
        let error = values(&session, "FROM eris.files").await.unwrap_err();
        assert!(error.to_string().contains("cannot be listed"), "{error}");
        assert_eq!(
            row(&session, "SELECT files, error FROM eris.log").await,
            ["", ""]
        );
        std::fs::remove_file(path.join("snapshots")).unwrap();
        must(&session, "CHECKPOINT").await;
        assert_eq!(
            row(&session, all).await[2..],
            ["100000", "", "false", "false"]
        );
        let wrong = "SELECT * FROM eris.snapshots WHERE newest_commit <> (SELECT durable_commit FROM eris.log) \
             OR chunk_bytes IS NULL OR made > now() OR bytes <> (SELECT bytes FROM eris.files WHERE kind = 'snapshot')";
        assert_eq!(rows(&session, wrong).await, Vec::<Vec<String>>::new());
        // One that fails later stands beside the one that is in place.
        let snapshots = path.join("snapshots");
        std::fs::rename(&snapshots, path.join("kept")).unwrap();
        std::fs::write(&snapshots, "in the way").unwrap();
        values(&session, "CHECKPOINT").await.unwrap_err();
        let states = rows(&session, all).await;
        assert_eq!((&*states[0][0], &*states[1][0]), ("failed", "in place"));
        std::fs::remove_file(&snapshots).unwrap();
        std::fs::rename(path.join("kept"), &snapshots).unwrap();
    });
    drop(database);
    block_on(async {
        let session = open(&path, None).session();
        let found = row(&session, all).await;
        assert_eq!(found[0], "in place");
        assert_eq!(
            found[2..],
            ["", "", "true", "true"],
            "another process has made it"
        );
    });
}

/// What commits wait for, as the setting and the log say.
async fn waits_for(session: &Session) -> Vec<String> {
    row(
        session,
        "SELECT current_setting('synchronous'), synchronous FROM eris.log",
    )
    .await
}

#[test]
fn when_commits_are_durable_is_the_databases() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let count = "SELECT count(*), max(k) FROM t";
    let database = open(&path, None);
    block_on(async {
        let (session, other) = (database.session(), database.session());
        assert_eq!(waits_for(&session).await, ["on", "on"]);
        session
            .execute("CREATE TABLE t (k INT PRIMARY KEY)")
            .await
            .unwrap();
        for (set, is) in [
            ("off", "off"),
            ("'200ms'", "200ms"),
            ("'1 MIN'", "1min"),
            ("on", "on"),
            ("off", "off"),
        ] {
            session
                .execute(format!("SET synchronous = {set}"))
                .await
                .unwrap();
            assert_eq!(waits_for(&other).await, [is, is], "{set}");
            session
                .execute("INSERT INTO t SELECT coalesce(max(k), 0) + 1 FROM t")
                .await
                .unwrap();
            let durable = "SELECT durable_commit >= applied_commit FROM eris.log";
            if is == "on" {
                assert_eq!(row(&session, durable).await, ["true"]);
            }
        }
        for wrong in ["maybe", "0", "'0s'", "1", "'1.5s'", "-1"] {
            let error = session.execute(format!("SET synchronous = {wrong}")).await;
            let error = error.err().unwrap_or_else(|| panic!("{wrong} is taken"));
            assert_eq!(error.sqlstate().to_string(), "22023", "{error}");
        }
        assert_eq!(waits_for(&session).await, ["off", "off"]);
    });
    drop(database);
    // It was kept, and what commits did.
    let database = open(&path, None);
    block_on(async {
        let session = database.session();
        assert_eq!(waits_for(&session).await, ["off", "off"]);
        assert_eq!(row(&session, count).await, ["5", "5"]);
    });
    drop(database);
    // What a process is started with is for that process.
    let database = open(&path, Some(Synchronous::On));
    block_on(async {
        let session = database.session();
        assert_eq!(waits_for(&session).await, ["on", "on"]);
        session.execute("INSERT INTO t VALUES (6)").await.unwrap();
    });
    drop(database);
    block_on(async {
        let only_read = DatabaseSettings {
            read_only: true,
            ..kept_in(&path)
        };
        let session = try_open((1, 2), only_read).unwrap().session();
        assert_eq!(row(&session, "SHOW synchronous").await, ["off"]);
        assert_eq!(row(&session, count).await, ["6", "6"]);
        session.execute("SET synchronous = on").await.unwrap();
        assert_eq!(row(&session, "SHOW synchronous").await, ["on"]);
    });
    let database = open(&path, None);
    block_on(async {
        let session = database.session();
        assert_eq!(waits_for(&session).await, ["off", "off"]);
        session.execute("RESET synchronous").await.unwrap();
        assert_eq!(waits_for(&session).await, ["on", "on"]);
    });
    drop(database);
    block_on(async {
        let session = open(&path, None).session();
        assert_eq!(waits_for(&session).await, ["on", "on"]);
    });
}

#[test]
fn a_database_in_memory_has_nothing_to_wait_for() {
    block_on(async {
        let session = database(1, 1).session();
        assert_eq!(row(&session, "SHOW synchronous").await, ["on"]);
        session.execute("RESET ALL").await.unwrap();
        let error = session
            .execute("SET synchronous = off")
            .await
            .err()
            .unwrap();
        assert_eq!(error.sqlstate().to_string(), "55P02");
        assert!(
            error.to_string().contains("ends with its process"),
            "{error}"
        );
    });
}

#[test]
fn text_that_repeats_too_little_stays_without_codes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let add = async |session: &Session, from: usize, rows: usize| {
        for row in from..from + rows {
            let sql = format!("INSERT INTO t VALUES ({row}, 'no other is like {row}')");
            must(session, &sql).await;
        }
    };
    let entries =
        "SELECT dictionary_entries FROM eris.columns WHERE \"table\" = 't' AND \"column\" = 'note'";
    let pieces = "SELECT max(append_buffer_chunks) FROM eris.segments WHERE \"table\" = 't'";
    let database = open(&path, Some(Synchronous::Off));
    let known = block_on(async {
        let session = database.session();
        must(&session, "CREATE TABLE t (k INT PRIMARY KEY, note VARCHAR)").await;
        add(&session, 0, 6_000).await;
        number(&session, entries).await
    });
    assert!(known < 6_000, "{known}");
    drop(database);
    for round in 0..3 {
        let database = open(&path, Some(Synchronous::Off));
        block_on(async {
            let session = database.session();
            // A piece for each row would be read again and again.
            let pieces = number(&session, pieces).await;
            assert!(pieces < 1_000, "round {round}: {pieces}");
            add(&session, 6_000 + round * 500, 500).await;
            assert_eq!(number(&session, entries).await, known, "round {round}");
            let right = "SELECT count(*) FROM t WHERE note = 'no other is like ' || k";
            assert_eq!(number(&session, right).await, 6_500 + round as u64 * 500);
            if round == 1 {
                must(&session, "CHECKPOINT").await;
            }
        });
    }
}
