//! Databases in every format that there was: opened, read and written.
//!
//! ```text
//! formats/1.sql ──▶ in memory ──────────────────▶ dump ─┐
//!         1/    ──▶ a copy, on other topologies ─▶ dump ─┴▶ the same
//! ```
//!
//! A directory is made once, by the first version that has its format: `eris --aeus 2 --db 1 -f 1.sql`. Then nobody
//! changes it. Whoever changes a format adds the next one.

use crate::common::{
    TOPOLOGIES, block_on_threads, copy, count, database, kept_in, must, open, try_open,
};
use crate::keeping_home::dump::{assert_same, dump};
use eris_engine::DatabaseSettings;
use eris_sql::{Database, Session};
use std::fs;
use std::path::{Path, PathBuf};

/// The formats, oldest first, each with its directory and what that was made of.
fn formats() -> Vec<(u32, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/database/formats");
    let of = |script: PathBuf| {
        let format = script.file_stem()?.to_str()?.parse().ok()?;
        Some((
            format,
            script.with_extension(""),
            fs::read_to_string(script).ok()?,
        ))
    };
    let scripts = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let scripts = scripts.filter(|path| path.extension().is_some_and(|kind| kind == "sql"));
    let mut formats: Vec<_> = scripts
        .map(|script| of(script).expect("a number"))
        .collect();
    formats.sort();
    formats
}

/// The format that a database's manifest names.
fn format_of(database: &Path) -> u32 {
    let manifest = fs::read(database.join("eris.db")).unwrap();
    u32::from_le_bytes(manifest[8..12].try_into().unwrap())
}

/// What a script makes, in memory.
async fn made_by(script: &str) -> Database {
    let database = database(1, 2);
    let session = database.session();
    for statement in Session::split(script).unwrap() {
        // In memory there is none.
        if statement.text().trim_end_matches(';') != "CHECKPOINT" {
            must(&session, statement.text()).await;
        }
    }
    database
}

/// All that there is. Where sequences go on is not the same: each opening leaves some numbers out.
async fn all_of(database: &Database) -> Vec<String> {
    let mut all = dump(&database.session()).await;
    all.retain(|line| !line.contains("eris.sequences: "));
    all
}

#[test]
fn databases_of_every_format_are_opened() {
    for (format, directory, script) in formats() {
        assert_eq!(format_of(&directory), format, "{}", directory.display());
        block_on_threads(async {
            let expected = all_of(&made_by(&script).await).await;
            assert!(expected.len() > 60_000, "{}", expected.len());
            for topology in TOPOLOGIES {
                let what = format!("format {format} on {topology:?}");
                let temporary = tempfile::tempdir().unwrap();
                let path = temporary.path().join("db");
                copy(&directory, &path);
                let read_only = DatabaseSettings {
                    read_only: true,
                    ..kept_in(&path)
                };
                let read = try_open(topology, read_only).unwrap();
                assert_same(
                    &expected,
                    &all_of(&read).await,
                    &format!("{what}, only read"),
                );
                drop(read);
                let database = open(&path, topology);
                assert_same(&expected, &all_of(&database).await, &what);
                // It goes on from there, with what follows from rows.
                let session = database.session();
                for wrong in [
                    "INSERT INTO keyed VALUES (1, 1, 'new')",
                    "INSERT INTO keyed VALUES (1000, 1, 'b1')",
                    "INSERT INTO children (k) VALUES (123456)",
                    "INSERT INTO children (k, n) VALUES (7, -1)",
                    "INSERT INTO texts (\"The key\") VALUES ('x')",
                ] {
                    assert!(session.execute(wrong).await.is_err(), "{what}: {wrong}");
                }
                must(&session, "INSERT INTO children (k) VALUES (1)").await;
                must(
                    &session,
                    "UPDATE many SET name = 'one of today' WHERE small = -150",
                )
                .await;
                let after = all_of(&database).await;
                must(&session, "CHECKPOINT").await;
                drop((session, database));
                let database = open(&path, topology);
                assert_same(
                    &after,
                    &all_of(&database).await,
                    &format!("{what}, gone on"),
                );
                let twice = "SELECT n FROM children GROUP BY n HAVING count(*) > 1";
                assert_eq!(
                    count(&database.session(), twice).await.unwrap(),
                    0,
                    "{what}: numbers come twice"
                );
            }
        });
    }
}

#[test]
fn the_format_of_today_is_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("db");
    drop(open(&path, (1, 1)));
    let formats: Vec<u32> = formats().into_iter().map(|(format, ..)| format).collect();
    let newest = format_of(&path);
    assert_eq!(formats, (1..=newest).collect::<Vec<_>>());
}
