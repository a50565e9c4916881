//! Kinds of files: line ends, delimiters, encodings, columns that differ, directories that are columns.

use crate::common::{block_on, database};
use crate::files::{failure, lines, run, write};
use tempfile::TempDir;

/// A session over a directory with these files, in which names of files begin with `{}`.
macro_rules! check {
    ($([$($file:literal: $bytes:expr),+]: $($query:literal -> $expected:expr),+;)+) => {
        block_on(async {
            let database = database(1, 2);
            let session = database.session();
            $({
                let directory = TempDir::new().unwrap();
                $(write(&directory, $file, $bytes);)+
                let path = directory.path().to_str().unwrap();
                $(
                    let sql = $query.replace("{}", path);
                    let shown = lines(&session, &sql).await.join(" ");
                    assert_eq!(shown.replace(path, "{}"), $expected, "{sql}");
                )+
            })+
        });
    };
}

fn utf16(text: &str) -> Vec<u8> {
    let marked = format!("\u{feff}{text}");
    marked.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn texts_of_other_kinds() {
    check! {
        ["a.csv": "a,b\r1,x\r2,\"y\rz\"\r"]: "SELECT a, b FROM '{}/a.csv' ORDER BY a" -> "1|x 2|y\rz";
        ["a.csv": "a||b\n1||x|y\n2||\"q||r\"\n"]:
            "SELECT * FROM read_csv('{}/a.csv', delim => '||') ORDER BY a" -> "1|x|y 2|q||r";
        ["a.csv": utf16("a,b\n1,ä\n"), "b.json": utf16("{\"a\": \"ö\"}")]:
            "SELECT * FROM '{}/a.csv'" -> "1|ä",
            "SELECT * FROM '{}/b.json'" -> "ö";
        ["a.csv": b"a,b\n1,\xE4\n"]:
            "SELECT * FROM read_csv('{}/a.csv', encoding => 'latin-1')" -> "1|ä";
        // No ending tells that it is compressed.
        ["packed": zstd(b"a\n5\n")]: "SELECT * FROM read_csv('{}/packed')" -> "5";
    }
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).unwrap()
}

#[test]
fn files_of_different_columns() {
    check! {
        ["1.csv": "a\n1\n", "2.csv": "a\n1.5\n", "3.csv": "c,A\nz,7\n"]:
            "SELECT * FROM '{}/[12].csv' ORDER BY a" -> "1.0 1.5",
            "SELECT a, c FROM read_csv('{}/*.csv', union_by_name => true) ORDER BY a"
                -> "1.0|NULL 1.5|NULL 7.0|z",
            "SELECT a FROM read_csv('{}/*.csv', union_by_name => true, filename => true) WHERE filename LIKE '%3.csv'"
                -> "7.0",
            "SELECT DISTINCT name FROM read_csv('{}/[12].csv', filename => 'name') ORDER BY name"
                -> "{}/1.csv {}/2.csv";
        // What becomes a string is not read as a number before.
        ["1.csv": "a\n007\n", "2.csv": "a\nx\n"]:
            "SELECT * FROM read_csv('{}/*.csv', union_by_name => true) ORDER BY a" -> "007 x";
        ["1.json": "{\"a\": 1}", "2.json": "{\"a\": 2.5, \"b\": \"x\"}"]:
            "SELECT * FROM '{}/*.json' ORDER BY a" -> "1.0|NULL 2.5|x";
    }
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = TempDir::new().unwrap();
        let path = directory.path().to_str().unwrap();
        let made = format!(
            "COPY (SELECT 1 AS a) TO '{path}/1.parquet';
             COPY (SELECT DATE '2024-01-01' AS a) TO '{path}/2.parquet'"
        );
        lines(&session, &made).await;
        let read = format!("SELECT * FROM read_parquet('{path}/*.parquet', union_by_name => true)");
        let message = failure(&session, &read).await;
        let expected = format!(
            "file '{path}/2.parquet': column \"a\" is DATE, but BIGINT in '{path}/1.parquet'"
        );
        assert!(message.contains(&expected), "{message}");
        lines(&session, "CREATE TABLE t (a INT)").await;
        let copied = format!("COPY t FROM '{path}/*.csv' (UNION_BY_NAME true)");
        let message = failure(&session, &copied).await;
        assert!(message.contains("has no option UNION_BY_NAME"), "{message}");
    });
}

#[test]
fn directories_are_columns() {
    check! {
        ["y=2024/c=K%C3%B6ln/1.csv": "a\n1\n", "y=2025/c=__HIVE_DEFAULT_PARTITION__/1.csv": "a\n2\n"]:
            "SELECT * FROM '{}/*/*/*.csv' ORDER BY y" -> "1|2024|Köln 2|2025|NULL",
            "SELECT a FROM '{}/**/*.csv' WHERE y = 2025" -> "2",
            "SELECT * FROM read_csv('{}/*/*/*.csv', hive_partitioning => false) ORDER BY a" -> "1 2";
    }
}

#[test]
fn partitions_are_written_and_read() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        lines(
            &session,
            "CREATE TABLE t AS SELECT i, i % 3 AS k, CASE WHEN i % 2 = 0 THEN 'a/b' END AS s
             FROM range(30000) r(i)",
        )
        .await;
        for format in ["csv", "json", "parquet", "arrow"] {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("parts");
            let path = path.to_str().unwrap();
            let copied = format!("COPY t TO '{path}' (FORMAT {format}, PARTITION_BY (k, s))");
            lines(&session, &copied).await;
            assert!(directory.path().join("parts/k=0/s=a%2Fb").is_dir());
            let files = format!("read_{format}('{path}/*/*/*')");
            let compared = format!(
                "SELECT count(*) FROM ((SELECT i, k, s FROM {files} EXCEPT ALL SELECT i, k, s FROM t)
                 UNION ALL (SELECT i, k, s FROM t EXCEPT ALL SELECT i, k, s FROM {files}))"
            );
            assert_eq!(lines(&session, &compared).await, ["0"], "{format}");
            let message = failure(&session, &copied).await;
            assert!(message.contains("the directory is not empty"), "{message}");
        }
        let message = failure(&session, "COPY t TO '/x' (FORMAT csv, PARTITION_BY z)").await;
        assert!(message.contains("there is no column \"z\""), "{message}");
    });
}

#[test]
fn links_that_lead_back_are_not_followed() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = TempDir::new().unwrap();
        write(&directory, "x/1.csv", "a\n1\n");
        for link in ["x/up", "x/back"] {
            std::os::unix::fs::symlink("..", directory.path().join(link)).unwrap();
        }
        let path = directory.path().to_str().unwrap();
        let read = format!("SELECT * FROM '{path}/**/*.csv'");
        assert_eq!(lines(&session, &read).await, ["1"]);
    });
}

#[test]
fn a_comma_too_many_is_an_error_everywhere() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = TempDir::new().unwrap();
        let file = write(
            &directory,
            "a.json",
            "{\"a\":1}\n{\"a\":\"x,}\"}\n{\"a\":1,}\n",
        );
        lines(&session, "CREATE TABLE t (a VARCHAR)").await;
        for sql in [
            format!("COPY t FROM '{file}'"),
            format!("SELECT * FROM '{file}'"),
        ] {
            let message = failure(&session, &sql).await;
            assert!(message.contains("line 3: character 8"), "{message}");
        }
    });
}

#[test]
fn a_damaged_arrow_file_is_named() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("a.arrow");
        let file = path.to_str().unwrap().to_owned();
        let rows = "SELECT i, 's' || i AS s FROM range(50) r(i)";
        lines(&session, &format!("COPY ({rows}) TO '{file}'")).await;
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = 0;
        for place in (0..whole.len()).step_by(5) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x41;
            std::fs::write(&path, bytes).unwrap();
            let read = format!("SELECT count(i), count(s) FROM '{file}'");
            if let Err(error) = run(&session, &read).await {
                let message = error.to_string();
                assert!(message.contains(&file), "byte {place}: {message}");
                damaged += 1;
            }
        }
        assert!(damaged > 0);
    });
}
