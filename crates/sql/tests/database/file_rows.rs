//! Which rows files have, and what is in them.

use crate::common::block_on;
use crate::files::{lines, small, write};
use tempfile::TempDir;

#[test]
fn files_are_read_as_they_are() {
    let directory = TempDir::new().unwrap();
    block_on(async {
        let database = small();
        let session = database.session();
        // Postal codes and telephone numbers keep what is in front, and are no header.
        let path = write(&directory, "codes.csv", "08075,1,00.5\n9119,+2,1\n");
        assert_eq!(
            lines(&session, &format!("SELECT * FROM '{path}'")).await,
            ["08075|1|00.5", "9119|+2|1"]
        );
        lines(
            &session,
            "CREATE OR REPLACE TABLE codes (a INTEGER, b INTEGER, c DOUBLE)",
        )
        .await;
        lines(&session, &format!("COPY codes FROM '{path}'")).await;
        assert_eq!(
            lines(&session, "SELECT * FROM codes ORDER BY a").await,
            ["8075|1|0.5", "9119|2|1.0"]
        );
        // A file is read as often as it is named.
        for format in ["csv", "json", "parquet", "arrow"] {
            let name = |name: &str| directory.path().join(format!("{name}.{format}"));
            let [one, two] = ["one", "two"].map(|one| name(one).display().to_string());
            for (path, value) in [(&one, 1), (&two, 10)] {
                lines(&session, &format!("COPY (SELECT {value} AS x) TO '{path}'")).await;
            }
            let list = format!("['{one}', '{two}', '{one}', '{one}']");
            for query in [
                format!("SELECT sum(x) FROM read_{format}({list})"),
                format!(
                    "CREATE OR REPLACE TABLE again (x INTEGER); COPY again FROM {list}; SELECT sum(x) FROM again"
                ),
            ] {
                assert_eq!(lines(&session, &query).await, ["13"], "{query}");
            }
        }
        // A record that is left out is left out whatever is asked for.
        let path = write(&directory, "bad.csv", "a,b\n1,2\n3,x\n4,5\n");
        let table = format!(
            "read_csv('{path}', ignore_errors => true, columns => {{'a': 'INTEGER', 'b': 'INTEGER'}})"
        );
        for (asked, expected) in [("a", ["1", "4"]), ("b", ["2", "5"]), ("7", ["7", "7"])] {
            let query = format!("SELECT {asked} FROM {table} ORDER BY 1");
            assert_eq!(lines(&session, &query).await, expected);
        }
    });
}
