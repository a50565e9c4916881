//! `eris check` as its users meet it: findings, and the exit status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn eris(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eris"));
    let command = command.args(arguments).env("ERIS_TOPOLOGY", "2x1");
    command.output().expect("eris starts")
}

/// What was printed, by a run with this exit status; and its errors.
fn printed(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    (text(&output.stdout), errors)
}

#[test]
fn a_check_tells_damage_from_a_whole_database_and_from_none() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check");
    let _ = fs::remove_dir_all(&directory);
    let path = directory.to_str().expect("UTF-8");
    let (_, errors) = printed(&eris(&["check", path]), 2);
    assert!(errors.contains("has no Eris database"), "{errors}");
    let script = "CREATE TABLE t AS SELECT i FROM generate_series(1, 1000) s(i);
        CREATE TABLE u (a INTEGER UNIQUE, b INTEGER PRIMARY KEY); CREATE UNIQUE INDEX b ON u (b);
        INSERT INTO u VALUES (1, 2), (3, 4); CHECKPOINT;";
    printed(&eris(&["--db", path, "-c", script]), 0);
    let (whole, _) = printed(&eris(&["check", path]), 0);
    assert!(whole.contains("2 tables, 1,002 rows"), "{whole}");
    // A copy has no lock, and may be where nothing can be written.
    fs::remove_file(directory.join("lock")).expect("a process has made it");
    printed(&eris(&["check", path]), 0);
    let count = ["--db", path, "--read-only", "-c", "SELECT count(*) FROM t"];
    let (rows, _) = printed(&eris(&count), 0);
    assert!(rows.contains("1000"), "{rows}");
    assert!(!directory.join("lock").exists(), "nothing was made");
    assert!(whole.ends_with("is whole\n"), "{whole}");
    let mut snapshots = fs::read_dir(directory.join("snapshots")).expect("it is there");
    let snapshot = snapshots.next().expect("a checkpoint was made");
    let snapshot = snapshot.expect("readable").path();
    let mut bytes = fs::read(&snapshot).expect("readable");
    bytes[100] ^= 1;
    fs::write(&snapshot, bytes).expect("writable");
    let (text, errors) = printed(&eris(&["check", path]), 1);
    let place = format!("{}, byte 64: ", snapshot.display());
    assert!(text.starts_with(&place), "{text}");
    assert!(errors.contains("is damaged: "), "{errors}");
    let (json, _) = printed(&eris(&["check", path, "--json"]), 1);
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(found["findings"][0]["byte"], 64);
    assert_eq!(found["is_whole"], false);
}
