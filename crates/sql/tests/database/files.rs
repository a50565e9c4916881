//! Files from the outside: every format there and back, faults told with their place, nothing left of what fails.

use crate::common::{block_on, database, database_with};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::StreamExt;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;
use tempfile::TempDir;

pub(crate) fn small() -> Database {
    database(1, 2)
}

pub(crate) async fn run(session: &Session, sql: &str) -> Result<(u64, Vec<RecordBatch>), SqlError> {
    match session.execute(sql).await? {
        Outcome::Rows(rows) => Ok((0, rows.collect().await?)),
        Outcome::Count { rows, .. } => Ok((rows, Vec::new())),
        Outcome::Done { .. } => Ok((0, Vec::new())),
    }
}

/// Runs statements that have to succeed; the rows of the last one, their values separated by `|`.
pub(crate) async fn lines(session: &Session, sql: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for statement in Session::split(sql).unwrap() {
        let done = run(session, statement.text()).await;
        let (_, batches) = done.unwrap_or_else(|error| panic!("{}: {error}", statement.text()));
        lines.clear();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let columns = batch.columns().iter();
                let values = columns.map(|column| match column.is_null(row) {
                    true => "NULL".to_owned(),
                    false => array_value_to_string(column, row).unwrap(),
                });
                lines.push(values.collect::<Vec<_>>().join("|"));
            }
        }
    }
    lines
}

/// The message and the hint of a statement that has to fail.
pub(crate) async fn failure(session: &Session, sql: &str) -> String {
    match run(session, sql).await {
        Ok(_) => panic!("{sql} has succeeded"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn write(directory: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = directory.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The names of all files in a directory.
fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A table with every type, NULLs, and texts that need care.
const ALL_TYPES: &str = "
    CREATE TABLE a (k INTEGER NOT NULL, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i64 BIGINT, u8 UTINYINT, u16 USMALLINT,
        u32 UINTEGER, u64 UBIGINT, r REAL, d DOUBLE, m DECIMAL(12,2), w DECIMAL(38,10), t VARCHAR DEFAULT 'it''s',
        v VARCHAR(9), day DATE DEFAULT DATE '2001-02-03', s TIMESTAMP(0), ms TIMESTAMP(3), us TIMESTAMP, ns TIMESTAMP(9),
        z TIMESTAMP WITH TIME ZONE);
    INSERT INTO a VALUES
        (1, true, -128, -32768, -9223372036854775808, 255, 65535, 4294967295, 18446744073709551615, 1.5, 0.1, -1234567890.12,
         1234567890123456789012345678.0123456789, 'plain', 'äöü', '1996-02-29', '2001-02-03 04:05:06',
         '2001-02-03 04:05:06.789', '1969-12-31 23:59:59.999999', '2001-02-03 04:05:06.123456789', '2001-02-03 04:05:06+00'),
        (2, false, 0, 0, 0, 0, 0, 0, 0, 0, -0.0, 0, 0, '', '', '0001-01-01', '1970-01-01', '1970-01-01', '1970-01-01',
         '1970-01-01', '1970-01-01 00:00:00+00'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    INSERT INTO a VALUES (4, true, 1, 1, 1, 1, 1, 1, 1, 1e30, 1e300, 0.01, 0.0000000001, 'a \"quoted\", text
of two lines | with; marks', 'NULL', '9999-12-31', '2001-02-03', '2001-02-03', '2001-02-03', '2001-02-03', '2001-02-03')";

#[test]
fn every_format_comes_back_as_it_went() {
    let directory = TempDir::new().unwrap();
    for (nodes, cores) in [(1, 1), (4, 2)] {
        let database = database(nodes, cores);
        let session = database.session();
        block_on(async {
            lines(&session, ALL_TYPES).await;
            let all = lines(&session, "SELECT * FROM a ORDER BY k").await;
            assert_eq!(all.len(), 4);
            for (name, options) in [
                ("x.csv", ""),
                ("x.csv.gz", "(DELIMITER '|', NULL 'n/a', HEADER false)"),
                ("x.tsv.zst", ""),
                (
                    "x",
                    "(FORMAT csv, QUOTE '''', ESCAPE '\\', COMPRESSION zstd, DELIM ';')",
                ),
                ("x.parquet", ""),
                ("y.parquet", "(COMPRESSION snappy, ROW_GROUP_SIZE 2)"),
                ("x.jsonl", ""),
                ("x.json.gz", ""),
                ("x.arrow", ""),
                ("x.arrows", ""),
            ] {
                let path = directory.path().join(name);
                let path = path.display();
                let (rows, _) = run(&session, &format!("COPY a TO '{path}' {options}"))
                    .await
                    .unwrap();
                assert_eq!(rows, 4, "{name}");
                let options = options
                    .replace(", ROW_GROUP_SIZE 2", "")
                    .replace("(COMPRESSION snappy)", "");
                lines(
                    &session,
                    "CREATE OR REPLACE TABLE back AS SELECT * FROM a LIMIT 0; DROP TABLE back",
                )
                .await;
                let empty = ALL_TYPES
                    .split("INSERT")
                    .next()
                    .unwrap()
                    .replace("TABLE a", "TABLE back");
                lines(&session, &empty).await;
                let copied = run(&session, &format!("COPY back FROM '{path}' {options}")).await;
                assert_eq!(
                    copied.unwrap_or_else(|error| panic!("{name}: {error}")).0,
                    4
                );
                assert_eq!(
                    lines(&session, "SELECT * FROM back ORDER BY k").await,
                    all,
                    "{name}"
                );
                lines(&session, "DROP TABLE back").await;
            }
        });
    }
    let left = files(directory.path());
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
}

#[test]
fn a_database_comes_back_with_defaults_and_rules() {
    let directory = TempDir::new().unwrap();
    let target = directory.path().join("export");
    let target = target.display();
    let database = small();
    let session = database.session();
    block_on(async {
        lines(&session, ALL_TYPES).await;
        lines(&session, "CREATE TABLE \"Select\" (\"a b\" INTEGER, \"from\" VARCHAR) WITH (partition_by = 'a b')").await;
        lines(&session, "INSERT INTO \"Select\" SELECT i, CASE WHEN i % 3 > 0 THEN i || 'x' END FROM generate_series(1, 70000) AS g(i)").await;
        lines(&session, "CREATE INDEX \"An index\" ON \"Select\" (\"from\", \"a b\"); CREATE INDEX ON \"Select\" USING hash (\"a b\")").await;
        let queries = [
            "SELECT name, columns, kind, entries, keys FROM eris.indexes ORDER BY name",
            "SELECT * FROM \"Select\" WHERE \"from\" = '4711x'",
            "SELECT * FROM a ORDER BY k",
            "DESCRIBE a",
            "DESCRIBE \"Select\"",
            "SELECT count(*), count(\"from\"), sum(\"a b\"), min(\"from\"), max(\"from\") FROM \"Select\"",
        ];
        let mut before = Vec::new();
        for query in queries {
            before.push(lines(&session, query).await);
        }
        lines(&session, &format!("EXPORT DATABASE '{target}'")).await;
        assert_eq!(files(directory.path()), ["export"]);
        let rejected = failure(&session, &format!("EXPORT DATABASE '{target}'")).await;
        assert!(rejected.contains("is not empty"), "{rejected}");
        let rejected = failure(&session, &format!("IMPORT DATABASE '{target}'")).await;
        assert!(rejected.contains("exists already"), "{rejected}");
        lines(&session, "DROP TABLE a; DROP TABLE \"Select\"").await;
        lines(&session, &format!("IMPORT DATABASE '{target}'")).await;
        for (query, before) in queries.into_iter().zip(before) {
            assert_eq!(lines(&session, query).await, before, "{query}");
        }
        // Half of an import fails: nothing of it stays.
        lines(&session, "DROP TABLE a; DROP TABLE \"Select\"").await;
        std::fs::write(directory.path().join("export/a.parquet"), "no Parquet").unwrap();
        let broken = failure(&session, &format!("IMPORT DATABASE '{target}'")).await;
        assert!(broken.contains("a.parquet"), "{broken}");
        assert!(lines(&session, "SHOW TABLES").await.is_empty());
        assert!(
            lines(&session, "SELECT * FROM eris.indexes")
                .await
                .is_empty()
        );
        // Nor may it touch a table that was there before.
        lines(&session, "CREATE TABLE other (a INTEGER)").await;
        let schema = directory.path().join("export/schema.sql");
        let made = std::fs::read_to_string(&schema).unwrap();
        std::fs::write(schema, made + "CREATE INDEX ON other (a);\n").unwrap();
        let rejected = failure(&session, &format!("IMPORT DATABASE '{target}'")).await;
        assert!(rejected.contains("an index of \"other\""), "{rejected}");
        let none = lines(&session, "SELECT * FROM eris.indexes").await;
        assert!(none.is_empty(), "{none:?}");
    });
}

#[test]
fn an_import_is_there_as_a_whole_or_not_at_all() {
    let directory = TempDir::new().unwrap();
    let target = directory.path().join("export");
    let (export, import) = (
        format!("EXPORT DATABASE '{}'", target.display()),
        format!("IMPORT DATABASE '{}'", target.display()),
    );
    block_on(async {
        let first = small();
        let session = first.session();
        lines(
            &session,
            "CREATE SCHEMA s; CREATE SCHEMA \"Two Words\"; CREATE SCHEMA kept",
        )
        .await;
        lines(&session, "CREATE TABLE t (a INTEGER DEFAULT 7, b VARCHAR CHECK (b <> 'no')); INSERT INTO t VALUES (1, 'x')").await;
        lines(
            &session,
            "CREATE TABLE s.t (z INTEGER); INSERT INTO s.t VALUES (42)",
        )
        .await;
        lines(
            &session,
            "CREATE TABLE \"Two Words\".\"T \"\"q\"\"\" (\"a.b\" INTEGER)",
        )
        .await;
        lines(&session, "CREATE VIEW z AS SELECT * FROM s.t; CREATE VIEW s.y (q) AS SELECT z + 1 FROM z; CREATE VIEW a AS SELECT q FROM s.y").await;
        // Another schema is current, in which the names mean other tables.
        lines(
            &session,
            &format!("SET schema = 's'; CREATE VIEW x AS SELECT z FROM t; {export}"),
        )
        .await;
        let queries = [
            "SELECT a, b FROM public.t",
            "SELECT * FROM public.a",
            "SELECT * FROM s.x",
            "SELECT count(*) FROM \"Two Words\".\"T \"\"q\"\"\"",
        ];
        let all = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN ('eris', 'information_schema') ORDER BY 1, 2";
        let second = small();
        let session = second.session();
        lines(
            &session,
            "CREATE SCHEMA s; CREATE SCHEMA kept; SET schema = 's'",
        )
        .await;
        let before = (
            lines(&session, all).await,
            lines(&session, "SHOW SCHEMAS").await,
        );
        let memory = second.home().budget().used();
        let load = std::fs::read_to_string(target.join("load.sql")).unwrap();
        let schema = std::fs::read_to_string(target.join("schema.sql")).unwrap();
        for (file, good, bad) in [
            (
                "load.sql",
                &load,
                format!("{load}COPY t FROM 'nowhere.parquet';"),
            ),
            (
                "schema.sql",
                &schema,
                format!("{schema}CREATE VIEW w AS SELECT nothing FROM t;"),
            ),
            ("schema.sql", &schema, format!("{schema}DROP TABLE t;")),
        ] {
            std::fs::write(target.join(file), bad).unwrap();
            let told = failure(&session, &import).await;
            assert!(
                told.contains("nothing") || told.contains("nowhere") || told.contains("DROP"),
                "{told}"
            );
            let after = (
                lines(&session, all).await,
                lines(&session, "SHOW SCHEMAS").await,
            );
            assert_eq!(after, before, "{told}");
            std::fs::write(target.join(file), good).unwrap();
        }
        let execution = session.execute(import.as_str());
        drop(tokio::time::timeout(std::time::Duration::from_millis(1), execution).await);
        loop {
            // What was given up goes in the background; an import that was quicker stays as a whole.
            let left = lines(&session, all).await;
            if left == before.0 {
                lines(&session, &import).await;
                break;
            }
            if left.len() == 7 {
                break;
            }
            tokio::task::yield_now().await;
        }
        for (query, expected) in queries.into_iter().zip(["1|x", "43", "42", "0"]) {
            assert_eq!(lines(&session, query).await, [expected], "{query}");
        }
        let rejected = failure(&session, &import).await;
        assert!(rejected.contains("exists already"), "{rejected}");
        assert!(
            failure(&session, "INSERT INTO public.t VALUES (1, 'no')")
                .await
                .contains("CHECK")
        );
        lines(&session, "DROP SCHEMA \"Two Words\" CASCADE; DROP SCHEMA s CASCADE; DROP TABLE IF EXISTS public.t CASCADE").await;
        assert!(second.home().budget().used() <= memory);
    });
}

#[test]
fn what_files_are_like_is_found_out() {
    let directory = TempDir::new().unwrap();
    let database = small();
    let session = database.session();
    let csv = "id;name;price;day;at;ok\n1;\"Smith; \"\"J\"\"\";1.5;2020-01-01;2020-01-01 10:00:00;true\n\n2;;2;2020-01-02;2020-01-02T11:30:00.25;f\n";
    let expected = [
        "1|Smith; \"J\"|1.5|2020-01-01|2020-01-01T10:00:00|true",
        "2|NULL|2.0|2020-01-02|2020-01-02T11:30:00.250|false",
    ];
    block_on(async {
        let path = write(&directory, "x.csv", csv.replace('\n', "\r\n"));
        assert_eq!(
            lines(&session, &format!("SELECT * FROM '{path}'")).await,
            expected
        );
        let path = write(&directory, "bom.csv", format!("\u{feff}{csv}"));
        assert_eq!(
            lines(
                &session,
                &format!("SELECT id + 1, length(name) FROM '{path}' WHERE id = 1")
            )
            .await,
            ["2|10"]
        );
        let path = write(&directory, "no_end.tbl", "1|a|2.5|\n2|b|3|");
        assert_eq!(
            lines(&session, &format!("SELECT * FROM '{path}'")).await,
            ["1|a|2.5", "2|b|3.0"]
        );
        for (seven, read) in [
            ("7", ["1|7.0", "2|9.223372036854776e18"]),
            ("007", ["1|007", "2|9223372036854775808"]),
        ] {
            let text = format!("1,{seven}\n2,9223372036854775808\n");
            let path = write(&directory, "numbers.csv", text);
            assert_eq!(
                lines(&session, &format!("SELECT column0, column1 FROM '{path}'")).await,
                read
            );
        }
        let path = write(&directory, "single.csv", "a\n1\n\n3\n");
        assert_eq!(
            lines(
                &session,
                &format!("SELECT count(*), count(a), sum(a) FROM '{path}'")
            )
            .await,
            ["3|2|4"]
        );
        let path = write(
            &directory,
            "comments.csv",
            "what it is\n# \" one\nx\ty\n# two\n1\t'a\tb'\n",
        );
        let sql =
            format!("SELECT * FROM read_csv('{path}', skip => 1, comment = '#', quote => '''')");
        assert_eq!(lines(&session, &sql).await, ["1|a\tb"]);
        let path = write(&directory, "twice.csv", "a,a,,b\n1,2,3,x\n");
        assert_eq!(
            lines(
                &session,
                &format!("SELECT a, a_1, column2, b FROM '{path}'")
            )
            .await,
            ["1|2|3|x"]
        );
        let sql = format!(
            "SELECT * FROM read_csv('{path}', names => ['p', 'q', 'r', 's'], types => {{'q': 'VARCHAR', 'p': 'DECIMAL(5,2)'}}, header => true)"
        );
        assert_eq!(lines(&session, &sql).await, ["1.00|2|3|x"]);
        let path = write(
            &directory,
            "x.jsonl",
            "{\"n\":1,\"a\":{\"b\":[1,2]},\"d\":\"2020-01-01\"}\n\n{\"n\":2.5,\"e\":\"x\"}\n",
        );
        assert_eq!(
            lines(&session, &format!("SELECT n, d, e FROM '{path}'")).await,
            ["1.0|2020-01-01|NULL", "2.5|NULL|x"]
        );
        for (name, text) in [
            (
                "array.json",
                "[{\"n\":1,\"t\":\"]}\\\"\"},\n {\"n\":\n2}]\n",
            ),
            ("free.json", "{\"n\":\n1, \"t\": \"]}\\\"\"}\n{\"n\":2}"),
        ] {
            let path = write(&directory, name, text);
            assert_eq!(
                lines(&session, &format!("SELECT * FROM '{path}'")).await,
                ["1|]}\"", "2|NULL"],
                "{name}"
            );
        }
        // A pattern, a directory, a list; a file whose header differs.
        write(&directory, "many/one.csv", "a,b\n1,2\n");
        write(&directory, "many/deep/two.csv", "a,b\n3,4\n");
        let many = directory.path().join("many");
        let many = many.display();
        assert_eq!(
            lines(&session, &format!("SELECT sum(a) FROM '{many}/**/*.csv'")).await,
            ["4"]
        );
        assert_eq!(
            lines(&session, &format!("SELECT sum(a) FROM '{many}'")).await,
            ["1"]
        );
        assert_eq!(lines(&session, &format!("SELECT sum(x.b) FROM read_csv(['{many}/one.csv', '{many}/deep/two.csv']) x JOIN read_csv('{many}/one.csv') ON x.a = read_csv_1.a")).await, ["2"]);
        write(&directory, "many/three.csv", "b,a\n1,2\n");
        let differs = failure(&session, &format!("SELECT * FROM '{many}/*.csv'")).await;
        assert!(
            differs.contains(
                "three.csv': line 1: the header names (b, a), but that of the first file (a, b)"
            ),
            "{differs}"
        );
        // The schema is the sample's; what comes behind it is told.
        let mut late = "a,b\n".to_owned();
        (0..30_000).for_each(|row| writeln!(late, "{row},1").unwrap());
        let path = write(&directory, "late.csv", late + "x,1\n");
        let told = failure(&session, &format!("SELECT sum(a) FROM '{path}'")).await;
        assert!(
            told.contains("line 30002: column 1 \"a\": 'x' is no BIGINT")
                && told.contains("sample_size"),
            "{told}"
        );
        assert_eq!(
            lines(
                &session,
                &format!("SELECT max(a) FROM read_csv('{path}', sample_size => -1)")
            )
            .await,
            ["x"]
        );
        assert_eq!(
            lines(
                &session,
                &format!("SELECT max(a) FROM read_csv('{path}', ignore_errors => true)")
            )
            .await,
            ["29999"]
        );
    });
}

#[test]
fn a_fault_is_told_with_its_place_and_nothing_stays() {
    let directory = TempDir::new().unwrap();
    let database = small();
    let session = database.session();
    let good = "1,x,1.5,2020-01-01\n".repeat(3);
    let cases: &[(&str, &[u8], &str)] = &[
        (
            "x.csv",
            b"2,y,1.5\n",
            "line 4: 3 fields, but 4 columns: '2,y,1.5'",
        ),
        (
            "x.csv",
            b"2,y,1.5,,\n",
            "line 4: 5 fields, but 4 columns: '2,y,1.5,,'",
        ),
        (
            "x.csv",
            b"foo,y,1.5,\n",
            "line 4: column 1 \"a\": 'foo' is no INTEGER",
        ),
        (
            "x.csv",
            b"99999999999,y,1.5,\n",
            "line 4: column 1 \"a\": '99999999999' is out of range for INTEGER",
        ),
        (
            "x.csv",
            b",y,1.5,\n",
            "line 4: column 1 \"a\": NULL, but the column is NOT NULL",
        ),
        (
            "x.csv",
            b"2,\"y\ny\n\",1.5,\nz",
            "line 7: 1 fields, but 4 columns: 'z'",
        ),
        (
            "x.csv",
            b"2,\"yyyy\",1.5,\n",
            "line 4: column 2 \"b\": 'yyyy' is too long for VARCHAR(3)",
        ),
        (
            "x.csv",
            b"2,\"y,1.5,\n\n\n",
            "line 4: column 2 \"b\": a quote that nothing closes: '2,\"y,1.5,'",
        ),
        (
            "x.csv",
            b"2,\"y\"z,1.5,\n",
            "line 4: column 2 \"b\": text behind the closing quote: '2,\"y\"z,1.5,'",
        ),
        (
            "x.csv",
            b"2,\xFF,1.5,\n",
            "line 4: column 2 \"b\": byte 0xFF is no UTF-8",
        ),
        (
            "x.csv",
            b"2,y,12345,\n",
            "line 4: column 3 \"c\": '12345' is out of range for DECIMAL(4,1)",
        ),
        (
            "x.csv",
            b"2,y,1.5,2020-02-30\n",
            "line 4: column 4 \"d\": '2020-02-30' is no DATE",
        ),
    ];
    block_on(async {
        lines(
            &session,
            "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR(3), c DECIMAL(4,1), d DATE)",
        )
        .await;
        for (name, fault, expected) in cases {
            let path = write(&directory, name, [good.as_bytes(), fault].concat());
            let told = failure(&session, &format!("COPY t FROM '{path}'")).await;
            assert!(
                told.contains(&format!("file '{path}': {expected}\nhint: ")),
                "{told}"
            );
            let told_of_gzip = {
                let (text, packed) = (std::fs::read(&path).unwrap(), format!("{path}.zst"));
                std::fs::write(&packed, zstd::encode_all(&text[..], 1).unwrap()).unwrap();
                failure(&session, &format!("COPY t FROM '{packed}'")).await
            };
            assert!(told_of_gzip.contains(expected), "{told_of_gzip}");
        }
        let json = "{\"a\":1,\"b\":\"x\"}\n".repeat(2);
        for (fault, expected) in [
            ("{\"a\":\"x\"}", "line 3: column 1 \"a\": 'x' is no INTEGER"),
            (
                "{\"a\":1.5e99}",
                "line 3: column 1 \"a\": '1.5e+99' is no INTEGER",
            ),
            (
                "{\"b\":\"x\"}",
                "line 3: column 1 \"a\": NULL, but the column is NOT NULL",
            ),
            (
                "{\"a\":2,\"b\":\"long\"}",
                "line 3: column 2 \"b\": 'long' is too long for VARCHAR(3)",
            ),
            (
                "{\"a\":2,\"b\":tru}",
                "line 3: character 15: expected ident",
            ),
            ("[1]", "line 3: no JSON object: '[1]'"),
        ] {
            let path = write(&directory, "x.jsonl", format!("{json}{fault}\n"));
            let told = failure(&session, &format!("COPY t FROM '{path}'")).await;
            assert!(
                told.contains(&format!("file '{path}': {expected}")),
                "{told}"
            );
        }
        for (sql, expected) in [
            (
                "COPY t FROM 'nowhere.csv'",
                "file 'nowhere.csv': no such file",
            ),
            (
                "COPY t FROM 'Cargo.toml'",
                "its name does not tell which format",
            ),
            (
                "COPY t FROM 'x.csv' (HEADR)",
                "line 1:22: COPY FROM has no option HEADR",
            ),
            (
                "COPY t FROM 'x.csv' (DELIMITER E'a\\n')",
                "option DELIMITER takes one or more characters other than line ends",
            ),
            (
                "COPY t FROM 'x.csv' (NULL 'a', NULL 'b')",
                "option NULL occurs twice",
            ),
            (
                "COPY t FROM STDIN",
                "file '/dev/stdin': it is no file unless eris gets its statements by -c or -f",
            ),
            ("COPY t (z) FROM 'x.csv'", "table \"t\" has no column \"z\""),
            (
                "COPY u FROM 'x.csv'",
                "line 1:6: table \"u\" does not exist",
            ),
            (
                "COPY t TO 'x.csv' (ROW_GROUP_SIZE 5)",
                "has no option ROW_GROUP_SIZE",
            ),
            ("COPY t TO 'no/such/directory/x.csv'", "cannot be written"),
            ("COPY (SELECT q FROM t) TO 'x.csv'", "line 1:14"),
            (
                "SELECT * FROM read_csv('x.csv', 'y.csv')",
                "only the path has no name",
            ),
            ("SELECT * FROM read_csv()", "a path is missing"),
        ] {
            let told = failure(&session, sql).await;
            assert!(told.contains(expected), "{sql}: {told}");
        }
        assert_eq!(lines(&session, "SELECT count(*) FROM t").await, ["0"]);
        let empty = write(&directory, "objects.json", "{}\n{}\n");
        let told = failure(&session, &format!("SELECT * FROM '{empty}'")).await;
        assert!(told.contains("have no members"), "{told}");
        let unquoted = directory.path().join("unquoted.csv");
        let unquoted = format!("TO '{}' (QUOTE '')", unquoted.display());
        for query in ["SELECT 'a,b' AS a", "SELECT 1 AS \"a\nb\""] {
            let told = failure(&session, &format!("COPY ({query}) {unquoted}")).await;
            assert!(told.contains("without quotes"), "{told}");
        }
        // What fails while it writes leaves the file as it was.
        let path = write(&directory, "out/kept.csv", "kept");
        let sql = format!(
            "COPY (SELECT 1 / (i - 50000) FROM generate_series(1, 60000) AS g(i)) TO '{path}'"
        );
        assert!(failure(&session, &sql).await.contains("division by zero"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(files(&directory.path().join("out")), ["kept.csv"]);
    });
}

#[test]
fn a_cancelled_copy_leaves_neither_rows_nor_files() {
    let directory = TempDir::new().unwrap();
    let database = small();
    let session = database.session();
    block_on(async {
        let mut text = String::new();
        (0..400_000).for_each(|row| writeln!(text, "{row},some text to read").unwrap());
        let path = write(&directory, "in.csv", text);
        lines(&session, "CREATE TABLE t (a INTEGER, b VARCHAR)").await;
        let out = directory.path().join("out");
        std::fs::create_dir(&out).unwrap();
        let endless = format!(
            "COPY (SELECT a.i FROM generate_series(1, 1000000) AS a(i), generate_series(1, 1000000) AS b(i)) TO '{}/x.csv'",
            out.display()
        );
        for sql in [format!("COPY t FROM '{path}'"), endless] {
            let execution = session.execute(sql.as_str());
            // Each poll of a timer lets it begin; then it is dropped.
            let begun = tokio::time::timeout(std::time::Duration::from_millis(20), execution).await;
            drop(begun);
        }
        // Whoever still writes a piece removes the file behind it.
        while !files(&out).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let rows = lines(&session, "SELECT count(*) FROM t").await;
        assert!(
            rows == ["0"] || rows == ["400000"],
            "a part of the rows stays: {rows:?}"
        );
    });
}

#[test]
fn a_copy_that_was_stopped_has_not_replaced_its_file() {
    block_on(async {
        let database = small();
        let (session, killer) = (database.session(), database.session());
        let directory = TempDir::new().unwrap();
        let path = write(&directory, "x.csv", "old");
        let copy = format!("COPY (SELECT 1 AS a) TO '{path}'");
        let export = directory.path().join("export");
        let export_sql = format!("EXPORT DATABASE '{}'", export.display());
        lines(&session, "CREATE TABLE t AS SELECT 1 AS a").await;
        let (mut stopped, mut done) = (0, 0);
        for round in 0..600_u32 {
            std::fs::write(&path, "old").unwrap();
            let _ = std::fs::remove_dir_all(&export);
            let sql = if round % 3 == 0 { &export_sql } else { &copy };
            let statement = session.execute(sql.as_str());
            let kill = async {
                let sql = "SELECT id FROM eris.queries WHERE state = 'running' ORDER BY id LIMIT 1";
                let found = lines(&killer, sql).await;
                for _ in 0..round % 40 {
                    tokio::task::yield_now().await;
                }
                // It may have ended before.
                let _ = run(&killer, &format!("KILL {}", found[0])).await;
            };
            let (copied, ()) = tokio::join!(statement, kill);
            let replaced = match round % 3 {
                0 => export.exists(),
                _ => std::fs::read(&path).unwrap() != b"old",
            };
            assert_eq!(replaced, copied.is_ok(), "round {round}: {copied:?}");
            match copied {
                Ok(_) => done += 1,
                Err(_) => stopped += 1,
            }
        }
        assert!(stopped > 0 && done > 0, "{stopped} stopped, {done} done");
    });
}

#[test]
fn what_a_failed_import_has_made_is_gone_when_it_has_failed() {
    block_on(async {
        let session = small().session();
        let directory = TempDir::new().unwrap();
        let schema = "CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER); CREATE TABLE u (a INTEGER);";
        write(&directory, "schema.sql", schema);
        write(&directory, "load.sql", "COPY u FROM 'u.csv';");
        write(&directory, "u.csv", "a\n1\nx\n");
        let sql = format!("IMPORT DATABASE '{}'", directory.path().display());
        for _ in 0..50 {
            let error = failure(&session, &sql).await;
            assert!(error.contains("'x'"), "{error}");
            let left = "SELECT table_name FROM information_schema.tables
                WHERE table_schema IN ('public', 's')";
            assert_eq!(lines(&session, left).await, [""; 0]);
        }
        // A schema that was there before stays, empty as it was.
        lines(&session, "CREATE SCHEMA s").await;
        failure(&session, &sql).await;
        lines(&session, "DROP SCHEMA s").await;
    });
}

#[test]
fn nulls_without_a_type_are_written_as_nulls() {
    block_on(async {
        let session = small().session();
        let directory = TempDir::new().unwrap();
        let path = write(&directory, "null.csv", "");
        for (options, expected) in [("", "a,b\n,1\n"), ("(NULL 'x')", "a,b\nx,1\n")] {
            let sql = format!("COPY (SELECT NULL AS a, 1 AS b) TO '{path}' {options}");
            lines(&session, &sql).await;
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        }
    });
}

#[test]
fn a_file_larger_than_the_budget_streams() {
    let directory = TempDir::new().unwrap();
    let budget = 40 << 20;
    let database = database_with(1, 2, budget);
    let session = database.session();
    let mut text = String::from("k,city,amount,note\n");
    let mut row = 0_u64;
    while text.len() as u64 <= budget + (8 << 20) {
        writeln!(
            text,
            "{row},city {},{}.25,{}",
            row % 20,
            row % 100,
            "x".repeat((row % 60) as usize)
        )
        .unwrap();
        row += 1;
    }
    let path = write(&directory, "large.csv", &text);
    block_on(async {
        let sql = format!("SELECT count(*), sum(k), min(city), max(length(note)) FROM '{path}'");
        let sum = row * (row - 1) / 2;
        assert_eq!(
            lines(&session, &sql).await,
            [format!("{row}|{sum}|city 0|59")]
        );
        // What fits when it is encoded is copied; what does not fit fails, and gives its memory back.
        lines(
            &session,
            "CREATE TABLE fits (k INTEGER, city VARCHAR, amount DECIMAL(5,2), note VARCHAR)",
        )
        .await;
        let copied = run(&session, &format!("COPY fits FROM '{path}'"))
            .await
            .unwrap();
        assert_eq!(copied.0, row);
        assert_eq!(
            lines(&session, "SELECT sum(k) FROM fits").await,
            [sum.to_string()]
        );
        lines(&session, "DROP TABLE fits").await;
        let unique = |row: u64| {
            (0..4).fold(String::new(), |text, part| {
                text + &(row * 4 + part)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .to_string()
            })
        };
        // A digit has 3.3 bits of information: in whatever way it is encoded, this is 50 MB.
        let mut text = String::new();
        (0..1_600_000).for_each(|row| writeln!(text, "{}", unique(row)).unwrap());
        let path = write(&directory, "unique.csv", text);
        lines(&session, "CREATE TABLE large (t VARCHAR)").await;
        let told = failure(&session, &format!("COPY large FROM '{path}'")).await;
        assert!(told.contains("memory"), "{told}");
        assert_eq!(lines(&session, "SELECT count(*) FROM large").await, ["0"]);
        assert_eq!(
            lines(
                &session,
                "INSERT INTO large VALUES ('still works'); SELECT * FROM large"
            )
            .await,
            ["still works"]
        );
    });
}

#[test]
fn reading_tells_how_far_it_is() {
    let directory = TempDir::new().unwrap();
    let database = small();
    let session = database.session();
    block_on(async {
        let text = "1,2\n".repeat(100_000);
        let path = write(&directory, "x.csv", &text);
        let Outcome::Rows(mut rows) = session
            .execute(format!("SELECT count(*) FROM '{path}'"))
            .await
            .unwrap()
        else {
            panic!("a query has rows");
        };
        let progress = rows.progress().clone();
        while rows.next().await.is_some() {}
        let bytes = progress.bytes();
        assert_eq!(
            (bytes.done, bytes.total),
            (text.len() as u64, text.len() as u64)
        );
    });
}

/// A text for a field: with everything that has a meaning in CSV.
fn field() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z\",;|\n\r#' é]{0,12}").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Blocks are cut within a text of many quoted line ends; several workers have to find what was written.
    #[test]
    fn blocks_that_are_parsed_side_by_side_lose_nothing(texts in proptest::collection::vec(field(), 64), stray in "[a-z]{1,3}\"[a-z\"]{0,3}", seed in 1_usize..64) {
        let directory = TempDir::new().unwrap();
        let mut file = String::from("k,t,u\n");
        // Over several blocks and workers.
        let rows = 250_000;
        let (mut length, mut quotes) = (0, 0);
        for row in 0..rows {
            let text = &texts[(row * seed + row / 64) % texts.len()];
            writeln!(file, "{row},\"{}\",{stray}", text.replace('"', "\"\"")).unwrap();
            length += text.chars().count();
            quotes += usize::from(text.contains('\n'));
        }
        prop_assume!(file.len() > 4 << 20);
        let path = write(&directory, "x.csv", &file);
        let database = small();
        let session = database.session();
        let sum = rows * (rows - 1) / 2;
        let sql = format!("SELECT count(*), sum(k), coalesce(sum(length(t)), 0), sum(CASE WHEN t LIKE '%\n%' THEN 1 ELSE 0 END), min(u), max(u) FROM '{path}'");
        let found = block_on(lines(&session, &sql));
        prop_assert_eq!(found, [format!("{rows}|{sum}|{length}|{quotes}|{stray}|{stray}")]);
    }
}
