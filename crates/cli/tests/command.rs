//! The command as its users meet it: output, errors, exit status, signals, closed pipes.

use eris_machine::{Identity, Kept};
use eris_numa::{Profile, Topology};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// `eris` on two small logical nodes, so that placement does not depend on the machine.
fn eris(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eris"));
    command
        .args(arguments)
        .env("ERIS_TOPOLOGY", "2x1")
        .stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    eris(arguments).output().expect("eris starts")
}

/// Runs with a script on standard input.
fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut command = eris(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("eris starts");
    // A failing script may end before it has read everything.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("eris ends")
}

fn stdout(output: &Output) -> &str {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

/// The message of a run that must have failed with this status.
fn failure(output: &Output, status: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{errors}");
    errors
}

#[test]
fn a_statement_becomes_a_result() {
    let output = run(&[
        "--format",
        "csv",
        "-c",
        "SELECT 1 + 1 AS two, 'a,b' AS text, NULL AS nothing",
    ]);
    assert_eq!(stdout(&output), "two,text,nothing\n2,\"a,b\",\n");
}

#[test]
fn sources_run_in_their_order_and_share_a_database() {
    let directory = tempfile::tempdir().expect("a place for files");
    let file = directory.path().join("fill.sql");
    std::fs::write(
        &file,
        "INSERT INTO t VALUES (1), (2);\n-- the rest\nINSERT INTO t VALUES (3)",
    )
    .expect("written");
    let file = file.to_str().expect("UTF-8");
    let output = run(&[
        "-c",
        "CREATE TABLE t (n INTEGER)",
        "-f",
        file,
        "-c",
        "SELECT sum(n) AS s FROM t",
        "--format",
        "jsonl",
    ]);
    assert_eq!(stdout(&output), "{\"s\":6}\n");
}

#[test]
fn numbers_survive_every_format_exactly() {
    let sql = "SELECT 9223372036854775807 AS big, CAST(1.10 AS DECIMAL(10,2)) AS price";
    for (format, expected) in [
        ("csv", "big,price\n9223372036854775807,1.10\n"),
        (
            "json",
            "[\n{\"big\":9223372036854775807,\"price\":1.10}\n]\n",
        ),
        ("jsonl", "{\"big\":9223372036854775807,\"price\":1.10}\n"),
        (
            "markdown",
            "| big | price |\n| ---: | ---: |\n| 9223372036854775807 | 1.10 |\n",
        ),
    ] {
        assert_eq!(stdout(&run(&["--format", format, "-c", sql])), expected);
    }
    let table = run(&["-c", sql]);
    assert!(
        stdout(&table).contains("│ 9223372036854775807 │  1.10 │"),
        "{}",
        stdout(&table)
    );
    assert!(
        !stdout(&table).contains("row"),
        "no footer where nobody reads along"
    );
}

#[test]
fn the_first_failing_statement_ends_the_script() {
    let script = "SELECT 1 AS a;\n\nSELECT nothing\nFROM nowhere;\nSELECT 2 AS b;\n";
    let output = run_with_input(&["--format", "csv"], script);
    let errors = failure(&output, 1);
    assert!(
        errors.contains("standard input") && errors.contains("4:6") && errors.contains("nowhere"),
        "{errors}"
    );
    assert!(errors.contains('^'), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n1\n");
}

#[test]
fn what_cannot_be_read_is_named() {
    let errors = failure(&run(&["-f", "/nowhere/script.sql"]), 1);
    assert!(errors.contains("/nowhere/script.sql"), "{errors}");
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for arguments in [
        &["--format", "yaml"][..],
        &["--aeus", "0"],
        &["ssb", "run", "--scale", "x"],
        &["nonsense"],
    ] {
        let errors = failure(&run(arguments), 2);
        assert!(errors.starts_with("error: "), "{errors}");
    }
    let errors = failure(&run(&["ssb", "run", "--query", "5.1"]), 1);
    assert!(
        errors.contains("there is no query 5.1") && errors.contains("4.3"),
        "{errors}"
    );
}

#[test]
fn wrong_options_and_surroundings_say_what_they_take() {
    for (arguments, expected) in [
        (
            &["--memory", "lots"][..],
            "'lots' is no number of bytes; write it like 2GB, 512MiB or 1.5 GB",
        ),
        (&["--memory", "1"], "must be 16 MB at least"),
        (&["--aeus", "x"], "invalid value 'x' for '--aeus <N>'"),
        (&["--format", "xml"], "possible values: table, csv, json"),
        (&["--file"], "a value is required for '--file <FILE>'"),
    ] {
        let errors = failure(&run(arguments), 2);
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
    for topology in ["x", "0x1", "2x", "1x1x1", "4x9999999", "-1x2", "1x1000"] {
        let mut command = eris(&["-c", "SELECT 1"]);
        let output = command.env("ERIS_TOPOLOGY", topology).output();
        let errors = failure(&output.expect("eris starts"), 1);
        let expected = format!(
            "error: ERIS_TOPOLOGY=\"{topology}\" is no topology: expected NODESxCORES, as in ERIS_TOPOLOGY=4x2"
        );
        assert!(errors.starts_with(&expected), "{errors}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn without_threads_it_does_not_start() {
    // Stacks of eight threads do not fit into this address space.
    let limited = format!(
        "ulimit -v 400000; exec {} -c 'SELECT 1'",
        env!("CARGO_BIN_EXE_eris")
    );
    let mut command = std::process::Command::new("sh");
    let command = command.args(["-c", &limited]).env("ERIS_TOPOLOGY", "1x8");
    let errors = failure(&command.output().expect("a shell starts"), 1);
    assert!(errors.contains("cannot start 8 threads"), "{errors}");
    assert!(errors.contains("ulimit -v"), "{errors}");
}

#[test]
fn help_has_examples_and_the_exit_status() {
    let output = run(&["--help"]);
    let help = stdout(&output);
    assert!(
        help.contains("Examples:") && help.contains("Exit status:") && help.contains("ssb"),
        "{help}"
    );
}

#[test]
fn statements_run_as_they_arrive() {
    let mut command = eris(&["--format", "csv"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("eris starts");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    for round in 0..3 {
        writeln!(input, "SELECT {round}\nAS n;").expect("it is listening");
        for expected in ["n\n", &format!("{round}\n")] {
            let mut line = String::new();
            output
                .read_line(&mut line)
                .expect("it answers before its input ends");
            assert_eq!(line, expected);
        }
    }
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// Many rows, more than any pipe or buffer holds.
const ENDLESS: &str = "\
    WITH d(n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) \
    SELECT a.n, 'some text to fill the pipe' AS t FROM d AS a, d AS b, d AS c, d AS e, d AS f, d AS g, d AS h, d AS i, d";

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for format in ["csv", "jsonl", "json", "markdown", "table"] {
        let mut command = eris(&["--format", format, "-c", ENDLESS]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("eris starts");
        let mut begin = [0; 100];
        child
            .stdout
            .take()
            .expect("piped")
            .read_exact(&mut begin)
            .expect("it begins to print at once");
        let output = child.wait_with_output().expect("eris ends");
        assert_eq!(failure(&output, 0), "", "{format}");
    }
}

#[test]
fn an_interrupt_cancels_and_is_told_apart() {
    let mut command = eris(&["--format", "csv", "-c", ENDLESS]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("eris starts");
    let mut output = child.stdout.take().expect("piped");
    // It runs once it prints.
    output
        .read_exact(&mut [0; 100])
        .expect("it begins to print at once");
    let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    let begun = std::time::Instant::now();
    let output = child.wait_with_output().expect("eris ends");
    assert!(failure(&output, 130).contains("interrupted"));
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    reader.join().expect("it reads").expect("it reads");
}

#[test]
fn the_benchmark_reads_what_it_generates_in_every_form() {
    let cache = tempfile::tempdir().expect("a place for files");
    let directory = |name: &str| cache.path().join(name).to_str().expect("UTF-8").to_owned();
    for format in ["parquet", "tbl"] {
        let out = directory(format);
        let output = run(&[
            "ssb", "generate", "--scale", "0.01", "--out", &out, "--format", format,
        ]);
        assert_eq!(stdout(&output).lines().count(), 5);
    }
    let mut answers = Vec::new();
    for data in [None, Some(directory("parquet")), Some(directory("tbl"))] {
        let mut command = eris(&["ssb", "run", "--scale", "0.01", "--runs", "2", "--json"]);
        command.env("XDG_CACHE_HOME", cache.path());
        if let Some(data) = &data {
            command.args(["--data", data]);
        }
        let output = command.output().expect("eris starts");
        let result: serde_json::Value =
            serde_json::from_str(stdout(&output)).expect("one JSON object");
        let keys = |value: &serde_json::Value| {
            value
                .as_object()
                .expect("an object")
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(&result), ["bytes", "load_s", "queries", "scale"]);
        let queries = result["queries"].as_array().expect("an array");
        assert_eq!(queries.len(), 13);
        for query in queries {
            assert_eq!(keys(query), ["id", "ms", "rows"]);
            assert_eq!(query["ms"].as_array().map(Vec::len), Some(2));
        }
        answers.push(
            queries
                .iter()
                .map(|query| query["rows"].clone())
                .collect::<Vec<_>>(),
        );
    }
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "{answers:?}"
    );
}

#[test]
fn the_benchmark_s_summary_shows_result_times_and_places() {
    let cache = tempfile::tempdir().expect("a place for files");
    let mut command = eris(&[
        "ssb",
        "run",
        "--scale",
        "0.05",
        "--runs",
        "1",
        "--query",
        "1.1",
        "--sessions",
        "3",
        "--breakdown",
    ]);
    let output = command
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .expect("eris starts");
    let text = stdout(&output);
    assert!(text.contains("in 3 at a time"), "{text}");
    for part in [
        "Result of query 1.1:",
        "revenue",
        "planned in",
        "AEU 1 on node 1",
        "geometric mean",
        "node 1  ",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

#[test]
fn scripts_may_contain_commands() {
    let directory = tempfile::tempdir().expect("a place for files");
    let path = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    std::fs::write(
        path("fill.sql"),
        "INSERT INTO t VALUES (1, NULL);\n.nullvalue none\n",
    )
    .expect("written");
    let script = format!(
        "CREATE TABLE t (n INTEGER NOT NULL, x VARCHAR);\n\\i {}\n.mode csv\nSELECT * FROM t;\n.headers off\n\
         \\o {}\nSELECT n + 1 FROM t;\n\\o\n\\d t\n\\watch 0 c=2\n\\q\nSELECT 'never';\n",
        path("fill.sql"),
        path("out.csv")
    );
    let output = run_with_input(&[], &script);
    assert_eq!(
        stdout(&output),
        "n,x\n1,none\nn,INTEGER,not null,\"\"\nx,VARCHAR,\"\",\"\"\n2\n2\n"
    );
    let out = std::fs::read_to_string(path("out.csv")).expect("written");
    assert_eq!(out, "2\n");
    let output = run(&["-c", "\\x on", "-c", "SELECT 1 AS one, NULL AS nothing"]);
    assert!(
        stdout(&output).contains("one     │ 1\nnothing │ NULL\n"),
        "{output:?}"
    );
    let output = run(&[
        "-c",
        "CREATE TABLE t (n INTEGER PRIMARY KEY, x VARCHAR UNIQUE)",
        "-c",
        "CREATE INDEX ON t USING hash (x, n)",
        "-c",
        "CREATE TABLE c (m INTEGER REFERENCES t)",
        "-c",
        "\\d c",
        "-c",
        "\\d t",
    ]);
    let reference = "c_m_fkey FOREIGN KEY (m) REFERENCES t (n)\n";
    let own = format!("foreign keys:\n    {reference}");
    assert!(stdout(&output).contains(&own), "{output:?}");
    let rest = format!(
        "indexes:\n    t_pkey PRIMARY KEY (n)\n    t_x_key UNIQUE (x)\n    t_x_n_idx hash (x, n)\n\
         referenced by:\n    c: {reference}"
    );
    assert!(stdout(&output).ends_with(&rest), "{output:?}");
    let output = run(&["-c", "CREATE TABLE \"T\" (n INTEGER)", "-c", ".schema"]);
    assert_eq!(stdout(&output), "CREATE TABLE \"T\" (\n    n INTEGER\n);\n");
}

#[test]
fn a_command_that_fails_ends_the_script() {
    let directory = tempfile::tempdir().expect("a place for files");
    let file = directory.path().join("inner.sql");
    std::fs::write(&file, "SELECT 1 AS n;\n.tabels\n").expect("written");
    let script = format!("\\i '{}'\nSELECT 2;\n", file.display());
    let output = run_with_input(&["--format", "csv"], &script);
    let errors = failure(&output, 1);
    assert!(
        errors.contains("inner.sql: line 2:1: unknown command .tabels")
            && errors.contains("did you mean .tables?"),
        "{errors}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n1\n");
    // A file that includes itself ends, too.
    std::fs::write(&file, format!("\\i {}\n", file.display())).expect("written");
    let errors = failure(&run(&["-f", file.to_str().expect("UTF-8")]), 1);
    assert!(errors.contains("too deep"), "{errors}");
    let errors = failure(&run(&["-c", "\\copy t from"]), 1);
    assert!(errors.contains("the file is missing"), "{errors}");
}

#[test]
fn who_asks_for_json_gets_errors_as_json() {
    let script = "SELECT 1 AS n;\nSELECT x FROM nowhere";
    let output = run(&["--format", "jsonl", "-c", script]);
    let errors = failure(&output, 1);
    assert_eq!(
        errors,
        "{\"error\":{\"sqlstate\":\"42P01\",\"message\":\"table \\\"nowhere\\\" does not exist\",\
         \"line\":2,\"column\":15,\"script\":\"-c\"}}\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"n\":1}\n");
    let errors = failure(&run(&["--format", "json", "-c", "\\nothing"]), 1);
    assert!(errors.starts_with("{\"error\":{\"message\":"), "{errors}");
}

#[test]
fn variables_are_written_out_in_statements_and_commands() {
    let script = r#"
CREATE TABLE "Odd name" (n INTEGER, s VARCHAR);
\set table 'Odd name'
\set who 'it''s'
\set more 40 ' + 2'
\set two 'SELECT 1 AS a; SELECT 2 AS b'
INSERT INTO :"table" VALUES (:more, :'who'), (1::INTEGER, ':who');
SELECT n, s FROM :"table" ORDER BY n DESC;
:two;
\echo :more :'who' :unknown
\unset more
SELECT ':more' AS m;
\set
"#;
    let output = run_with_input(&["--format", "csv"], script);
    assert_eq!(
        stdout(&output),
        "n,s\n42,it's\n1,:who\na\n1\nb\n2\n40 + 2 it's :unknown\nm\n:more\n\
         table = 'Odd name'\ntwo = 'SELECT 1 AS a; SELECT 2 AS b'\nwho = 'it's'\n"
    );
    let output = run(&["-c", "\\set a-b 1"]);
    assert!(failure(&output, 1).contains("\"a-b\" is no name of a variable"));
}

#[test]
fn one_result_goes_to_a_file_with_another_separator() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("once.csv");
    let script = format!(
        ".mode csv\n.separator ';'\n.once '{}'\nSELECT 1 AS a, 'x;y' AS b, 'p,q' AS c;\nSELECT 2 AS a, 3 AS b;\n\\pset fieldsep tab\nSELECT 4 AS a, 5 AS b;",
        file.display()
    );
    let output = run_with_input(&[], &script);
    assert_eq!(stdout(&output), "a;b\n2;3\na\tb\n4\t5\n");
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, "a;b;c\n1;\"x;y\";p,q\n");
    let output = run(&["-c", ".separator '\"'"]);
    assert!(failure(&output, 1).contains("cannot separate fields"));
}

#[test]
fn a_dump_makes_the_same_database() {
    let schema = r#"
CREATE SCHEMA past;
CREATE SEQUENCE s START 3;
CREATE TABLE z (id INTEGER PRIMARY KEY, self INTEGER REFERENCES z, "Odd name" VARCHAR DEFAULT 'x', n BIGINT DEFAULT nextval('s'));
CREATE TABLE a (z INTEGER REFERENCES z, twice INTEGER AS (z * 2), ok BOOLEAN, day DATE, at_time TIMESTAMP, zone TIMESTAMPTZ, price DECIMAL(20,3), f DOUBLE, r REAL, u UBIGINT);
CREATE TABLE past.b (id SERIAL, s VARCHAR UNIQUE);
INSERT INTO z (id, self, "Odd name") VALUES (2, 1, 'it''s'), (1, 2, E'two\nlines'), (3, NULL, NULL);
INSERT INTO z (id, self) SELECT i, i + 1 FROM range(10, 320) r(i);
INSERT INTO a VALUES (1, true, '2024-02-29', '2024-02-29 10:00:00.123456', '2024-02-29 10:00:00', -12345678901234567.125, 0.1, 1.5, 18446744073709551615),
    (2, false, NULL, NULL, NULL, NULL, 'NaN', '-Infinity', 0), (NULL, NULL, NULL, NULL, NULL, 0, 1e300, 1e-30, NULL);
INSERT INTO past.b (s) VALUES ('p'), ('q');
CREATE INDEX i ON a (day);
CREATE VIEW v AS SELECT count(*) AS n FROM w;
"#;
    let schema = schema.replace("FROM w;", "FROM a;").replace(
        "SELECT i, i + 1 FROM range(10, 320) r(i)",
        "SELECT i, 319 - i + 10 FROM range(10, 320) r(i)",
    );
    let asked = "SELECT * FROM z ORDER BY id; SELECT * FROM a ORDER BY z; SELECT * FROM past.b ORDER BY id; SELECT n FROM v;\n\
                 INSERT INTO past.b (s) VALUES ('r') RETURNING id; INSERT INTO z (id) VALUES (400) RETURNING n;\n";
    let before = run_with_input(&["--format", "csv"], &format!("{schema}{asked}"));
    let dumped = run_with_input(&[], &format!("{schema}.dump\n"));
    let script = stdout(&dumped);
    let after = run_with_input(&["--format", "csv"], &format!("{script}{asked}"));
    assert_eq!(stdout(&after), stdout(&before), "{script}");
    let hidden = "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1); CREATE TEMP TABLE t AS SELECT 2 AS n;\n.dump t\n";
    let expected = "CREATE TABLE t (\n    n INTEGER\n);\nINSERT INTO t (n) VALUES\n(1);\n";
    assert_eq!(stdout(&run_with_input(&[], hidden)), expected);
    let one = run_with_input(&[], &format!("{schema}.dump past.*\n"));
    let expected = "CREATE TABLE past.b (\n    id INTEGER NOT NULL GENERATED BY DEFAULT AS IDENTITY (START 3),\n    s VARCHAR,\n    CONSTRAINT b_s_key UNIQUE (s)\n);\nINSERT INTO past.b (id, s) VALUES\n(1, 'p'),\n(2, 'q');\n";
    assert_eq!(stdout(&one), expected);
}

#[test]
fn another_machine_s_links_are_told_and_shown() {
    let mut command = eris(&[
        "-c",
        "SELECT count(*) AS n FROM generate_series(1, 10)",
        "-c",
        "EXPLAIN ANALYZE SELECT 1",
    ]);
    let output = command.env("ERIS_MACHINE", "eris-intel").output();
    let output = output.expect("eris starts");
    let told = String::from_utf8_lossy(&output.stderr);
    let says = "chunks that are read on other nodes come as slowly as on Intel Xeon E7-4860, 4 nodes; nothing else";
    assert!(told.contains(says), "{told}");
    assert!(stdout(&output).contains(says));
    // So does a plan that programs read, and what they get beside it.
    for format in ["csv", "json", "jsonl", "markdown"] {
        let mut command = eris(&["-c", "EXPLAIN SELECT 1", "--format", format]);
        let output = command.env("ERIS_MACHINE", "eris-intel").output();
        let output = output.expect("eris starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(says), "{format}: {told}");
        assert!(stdout(&output).contains(says), "{format}");
    }
    // What is not slowed down does not say so.
    let mut command = eris(&[
        "-c",
        "CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2); INSERT INTO t VALUES (3), (4)",
        "-c",
        "SELECT count(*) > 0 AND bool_and(paced_as IS NULL) AS fast FROM eris.traffic WHERE kind NOT IN ('scan', 'move')",
        "--format",
        "csv",
    ]);
    let output = command.env("ERIS_MACHINE", "eris-intel").output();
    assert_eq!(stdout(&output.expect("eris starts")), "fast\ntrue\n");
    for (topology, machine, says) in [
        ("8x1", "eris-intel", "has 4 nodes, the topology 8"),
        ("2x1", "nowhere.toml", "known by name are eris-intel"),
    ] {
        let mut command = eris(&["-c", "SELECT 1"]);
        let output = command
            .env("ERIS_TOPOLOGY", topology)
            .env("ERIS_MACHINE", machine)
            .output()
            .expect("eris starts");
        let error = failure(&output, 1);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_is_kept_of_this_machine_is_shown_and_not_measured_anew() {
    let caches = tempfile::tempdir().expect("a place for files");
    let topology = Topology::described("2x1").expect("two nodes");
    let kept = Kept::within(&caches.path().join("eris"), &topology);
    let profile = Profile::known("eris-intel").expect("it comes along");
    let profile = profile.with_source(Identity::here(&topology).source());
    kept.store(&profile).expect("written");
    let machine = |arguments: &[&str]| {
        let mut command = eris(&[&["machine"], arguments].concat());
        command.env("XDG_CACHE_HOME", caches.path());
        command
    };
    let output = machine(&[]).output().expect("eris starts");
    let shown = stdout(&output);
    for says in ["seconds ago, kept in", "1 hop QPI  10.7  193", "--measure"] {
        assert!(shown.contains(says), "{says}: {shown}");
    }
    let output = machine(&["--json"]).output().expect("eris starts");
    let report: serde_json::Value = serde_json::from_str(stdout(&output)).expect("JSON");
    assert_eq!(report["rows"][2]["value"], 10.7);
    assert!(String::from_utf8_lossy(&output.stderr).contains("seconds ago"));
    let mut given = machine(&["--measure"]);
    let error = failure(
        &given
            .env("ERIS_MACHINE", "eris-intel")
            .output()
            .expect("eris starts"),
        1,
    );
    assert!(error.contains("nothing is measured"), "{error}");
}

#[test]
fn a_query_is_planned_for_a_machine_that_is_not_here() {
    let directory = tempfile::tempdir().expect("a place for files");
    let file = directory.path().join("load.sql");
    let load = "CREATE TABLE t AS SELECT i AS id, i * 7919 % 1000003 AS v FROM generate_series(1, 700000) AS s(i)";
    std::fs::write(&file, load).expect("written");
    let file = file.to_str().expect("UTF-8");
    let query = "SELECT sum(v) FROM t WHERE v > 5;";
    let plan = |machine: &str| run(&["plan", "--machine", machine, "-f", file, query]);
    let output = plan("eris-sgi");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("planned as for SGI UV 2000"),
        "{output:?}"
    );
    let shown = stdout(&output);
    assert!(shown.contains("FragmentExec: table=t"), "{shown}");
    // Eleven chunks on 64 nodes: most have nothing to do.
    assert!(shown.contains("from other nodes"), "{shown}");
    assert!(stdout(&plan("eris-intel")).contains("push"));
    for (query, says) in [
        ("", "0 statements were given"),
        ("SELECT 1; SELECT 2", "2 statements were given"),
        ("ANALYZE SELECT 1", "\"ANALYZE\" begins no query"),
        ("SELECT a FROM t", "\"a\""),
    ] {
        let output = run(&["plan", "--machine", "eris-intel", "-f", file, query]);
        let error = failure(&output, 1);
        assert!(error.contains(says), "{query}: {error}");
    }
    let error = failure(&plan("nowhere.toml"), 1);
    assert!(error.contains("known by name are"), "{error}");
}

#[test]
fn many_processes_read_a_database_or_one_writes() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = directory.path().join("sales");
    let db = db.to_str().expect("UTF-8");
    // Nothing is made where there is nothing to read.
    let error = failure(&run(&["--db", db, "--read-only", "-c", "SELECT 1"]), 1);
    assert!(error.contains("has no Eris database"), "{error}");
    assert!(!std::path::Path::new(db).exists());
    let made = "CREATE TABLE t (i INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)";
    stdout(&run(&["--db", db, "-c", made]));
    let sum = [
        "--db",
        db,
        "--format",
        "csv",
        "-c",
        "SELECT sum(i) AS s FROM t",
    ];
    let sum_only_read = [&["--read-only"], &sum[..]].concat();
    // Another process, which ends with its input. It has the database open once it has answered.
    let other = |arguments: &[&str]| {
        let mut command = eris(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("eris starts");
        let mut input = child.stdin.take().expect("piped");
        input
            .write_all(b"SELECT 'open' AS state;\n")
            .expect("it reads");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("open") {
            line.clear();
            assert_ne!(output.read_line(&mut line).expect("it writes"), 0);
        }
        (child, input, output)
    };
    let (mut reader, input, _output) = other(&["--db", db, "--read-only", "--format", "csv"]);
    assert_eq!(stdout(&run(&sum_only_read)), "s\n3\n");
    let error = failure(&run(&sum), 1);
    assert!(error.contains("open for reading"), "{error}");
    drop(input);
    assert!(reader.wait().expect("it ends").success());
    let write = ["--db", db, "--read-only", "-c", "DELETE FROM t WHERE i = 1"];
    let error = failure(&run(&write), 1);
    assert!(error.contains("open for reading only"), "{error}");
    assert!(error.contains("without --read-only"), "{error}");
    let (mut writer, input, _output) = other(&["--db", db, "--format", "csv"]);
    let error = failure(&run(&sum_only_read), 1);
    assert!(error.contains(&writer.id().to_string()), "{error}");
    drop(input);
    assert!(writer.wait().expect("it ends").success());
    assert_eq!(stdout(&run(&sum)), "s\n3\n");
}
