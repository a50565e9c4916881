//! Pipes as files, standard input and output in COPY, and scripts as editors write them.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn eris(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eris"));
    command
        .args(["--format", "csv"])
        .args(arguments)
        .env("ERIS_TOPOLOGY", "2x1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs with this on standard input.
fn piped(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = eris(arguments).spawn().expect("eris starts");
    let mut pipe = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // It may end before it has read everything.
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(&input);
    });
    let output = child.wait_with_output().expect("eris ends");
    writer.join().expect("it does not panic");
    output
}

fn stdout(output: &Output) -> &str {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

/// More than a sample, and more than a pipe holds.
fn rows() -> Vec<u8> {
    let mut text = b"a,b\n".to_vec();
    for row in 0..200_000 {
        writeln!(text, "{row},text {row}").expect("memory");
    }
    text
}

const SUM: &str = "200000,19999900000,text 99999\n";

#[test]
fn a_pipe_is_read_whole_and_once() {
    let query = "SELECT count(*), sum(a), max(b) FROM read_csv('/dev/stdin')";
    let output = piped(&["-c", query, "-c", ".headers off"], &rows());
    assert!(stdout(&output).ends_with(SUM), "{}", stdout(&output));

    let objects: String = (0..50_000)
        .map(|row| format!("{{\"a\": {row}}}\n"))
        .collect();
    let query = "SELECT count(*), sum(a) FROM read_json('/dev/stdin')";
    let output = piped(&["-c", query], objects.as_bytes());
    assert!(stdout(&output).ends_with("50000,1249975000\n"));

    let query = "SELECT count(*) FROM read_parquet('/dev/stdin')";
    let output = piped(&["-c", query], b"PAR1");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("not from a pipe"), "{error}");
}

#[test]
fn a_named_pipe_does_not_hang() {
    let directory = tempfile::tempdir().expect("a place for files");
    let pipe = directory.path().join("rows.csv");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo starts").success());
    let target = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(target, rows()));
    let query = format!(
        "CREATE TABLE t AS SELECT * FROM '{}'; SELECT count(*), sum(a), max(b) FROM t",
        pipe.display()
    );
    let output = piped(&["-c", &query], b"");
    assert!(stdout(&output).ends_with(SUM), "{}", stdout(&output));
    writer
        .join()
        .expect("it does not panic")
        .expect("all is read");
}

#[test]
fn rows_are_copied_through_standard_input_and_output() {
    let table = "CREATE TABLE t (a BIGINT, b VARCHAR)";
    for copy in [
        "COPY t FROM STDIN",
        "COPY t FROM '/dev/stdin'",
        "\\copy t from stdin",
    ] {
        let query =
            "COPY (SELECT count(*) AS n, sum(a) AS s, max(b) AS m FROM t) TO STDOUT (HEADER false)";
        let output = piped(&["-c", table, "-c", copy, "-c", query], &rows());
        assert_eq!(stdout(&output), SUM, "{copy}");
    }
    let output = piped(
        &[
            "-c",
            "SELECT 1 AS a",
            "-c",
            "COPY (SELECT 2 AS b) TO STDOUT (FORMAT json)",
        ],
        b"",
    );
    assert_eq!(stdout(&output), "a\n1\n{\"b\":2}\n");
}

#[test]
fn statements_do_not_read_the_script_as_rows() {
    let output = piped(
        &[],
        b"CREATE TABLE t (a INTEGER);\nCOPY t FROM STDIN;\n1\n2\n",
    );
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("it is no file unless"), "{error}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_script() {
    let script = "\u{feff}SELECT 1 AS a;\n";
    assert_eq!(stdout(&piped(&[], script.as_bytes())), "a\n1\n");
    let directory = tempfile::tempdir().expect("a place for files");
    let file = directory.path().join("script.sql");
    std::fs::write(&file, script).expect("written");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(stdout(&piped(&["-f", file], b"")), "a\n1\n");
}

#[test]
fn exit_and_quit_leave() {
    for word in ["exit", "quit;", "QUIT"] {
        let script = format!("SELECT 1 AS a;\n{word}\nSELECT 2;\n");
        assert_eq!(stdout(&piped(&[], script.as_bytes())), "a\n1\n", "{word}");
    }
}

#[test]
fn statements_are_edited_and_run() {
    let mut command = eris(&["-c", "SELECT 1 AS a", "-c", "\\e"]);
    let output = command
        .env_remove("VISUAL")
        .env("EDITOR", "sed -i s/1/42/")
        .output();
    assert_eq!(stdout(&output.expect("eris runs")), "a\n1\na\n42\n");
    let mut command = eris(&["-c", "SELECT 1 AS a", "-c", "\\e"]);
    let output = command.env("VISUAL", "false").output().expect("eris runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("nothing was run"), "{error}");
}

#[test]
fn a_pipe_has_one_reader() {
    let query = "SELECT count(*) FROM read_csv('/dev/stdin') AS a, read_csv('/dev/stdin') AS b";
    let output = piped(&["-c", query], &rows());
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("a pipe can be read only once"), "{error}");
}

#[test]
fn nobody_complains_when_the_reader_of_a_copy_has_gone() {
    let command = format!(
        "{} -c \"COPY (SELECT i FROM range(3000000) r(i)) TO STDOUT\" | head -n 2; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_eris")
    );
    let output = Command::new("bash")
        .args(["-c", &command])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*error), (Some(0), ""));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
}
