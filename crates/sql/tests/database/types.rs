//! TIME, BLOB, UUID and INTERVAL through the interface for programs: values go in as parameters and come out as arrays.

use crate::common::{block_on, database, must, run, values, values_of};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use eris_sql::Parameter;

const UUID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";

#[test]
fn parameters_are_given_as_text_or_come_out_of_arrays() {
    block_on(async {
        let session = database(1, 2).session();
        must(
            &session,
            "CREATE TABLE t (k UUID PRIMARY KEY, tm TIME, b BLOB, i INTERVAL)",
        )
        .await;
        let insert = session.prepare("INSERT INTO t VALUES ($1, $2, $3, $4)");
        let insert = insert.await.unwrap();
        let row = [UUID, "10:00:01.5", r"\xFFa", "1 month 02:00:00"].map(Parameter::from);
        insert.execute(&row).await.unwrap();
        for (typo, at) in [("a0eebc99", 0), ("25:00", 1), (r"\xF", 2), ("soon", 3)] {
            let mut wrong = row.clone();
            wrong[at] = Parameter::from(typo);
            let error = insert.execute(&wrong).await.map(drop).unwrap_err();
            assert!(error.to_string().contains(typo), "{error}");
        }
        let batches = run(&session, "SELECT * FROM t").await.unwrap();
        let types: Vec<_> = batches[0]
            .columns()
            .iter()
            .map(|column| column.data_type())
            .collect();
        assert_eq!(types[0], &DataType::FixedSizeBinary(16));
        assert_eq!(types[2], &DataType::BinaryView);
        assert_eq!(batches[0].column(2).as_binary_view().value(0), b"\xFFa");
        let stored = batches[0].columns().iter();
        let stored = stored.map(|column| Parameter::of_array(column, 0).unwrap());
        let stored: Vec<Parameter> = stored.collect();
        let given = stored.iter().zip(&row);
        for (column, (value, text)) in ["k", "tm", "b", "i"].into_iter().zip(given) {
            let query = format!("SELECT count(*) FROM t WHERE {column} = $1");
            let query = session.prepare(query.as_str()).await.unwrap();
            for value in [value, text] {
                let found = query.execute(std::slice::from_ref(value)).await.unwrap();
                assert_eq!(values_of(found).await.unwrap(), [["1"]], "{column}");
            }
        }
        must(&session, "DELETE FROM t").await;
        insert.execute(&stored).await.unwrap();
        let shown = values(
            &session,
            "SELECT k::VARCHAR, tm::VARCHAR, b::VARCHAR, i::VARCHAR FROM t",
        );
        assert_eq!(
            shown.await.unwrap(),
            [[UUID, "10:00:01.5", r"\xFFa", "1 month 02:00:00"]]
        );
    });
}

#[test]
fn keys_are_looked_up_without_a_plan() {
    block_on(async {
        let session = database(1, 1).session();
        for (key, value) in [("UUID", UUID), ("TIME", "10:00:01.5"), ("BLOB", r"\xFFa")] {
            must(
                &session,
                &format!("CREATE TABLE t (k {key} PRIMARY KEY, v INTEGER)"),
            )
            .await;
            must(&session, &format!("INSERT INTO t VALUES ('{value}', 7)")).await;
            let query = format!("SELECT v FROM t WHERE k = '{value}'");
            assert_eq!(values(&session, &query).await.unwrap(), [["7"]]);
            let plan = values(&session, &format!("EXPLAIN {query}")).await.unwrap();
            let path = plan.last().unwrap().join(" ");
            assert!(!path.contains("general path"), "{key}: {path}");
            must(&session, "DROP TABLE t").await;
        }
    });
}

#[test]
fn exports_of_each_format_hold_them() {
    const TABLE: &str = "CREATE TABLE t (k UUID PRIMARY KEY, tm TIME, b BLOB, i INTERVAL)";
    const SHOWN: &str =
        "SELECT k::VARCHAR, tm::VARCHAR, b::VARCHAR, i::VARCHAR FROM t ORDER BY k, tm, i";
    block_on(async {
        let session = database(1, 2).session();
        must(&session, TABLE).await;
        for (number, interval) in ["1 month -3 days 00:00:00.000001", "-2 years", "0 days"]
            .into_iter()
            .enumerate()
        {
            let row = format!(
                "INSERT INTO t VALUES ('{UUID}'::UUID, '10:00:01.5', '\\xFFa', '{interval}')"
            );
            let row = row.replace("380a11'", &format!("380a1{number}'"));
            must(&session, &row).await;
        }
        let nulls = format!(
            "INSERT INTO t (k) VALUES ('{}')",
            UUID.replace("380a11", "380a1f")
        );
        must(&session, &nulls).await;
        let before = values(&session, SHOWN).await.unwrap();
        assert_eq!(before[0][3], "1 month -3 days 00:00:00.000001");
        for format in ["parquet", "arrow", "csv"] {
            let directory = tempfile::TempDir::new().unwrap();
            let target = directory.path().join("export");
            let target = target.display();
            must(
                &session,
                &format!("EXPORT DATABASE '{target}' (FORMAT {format})"),
            )
            .await;
            must(&session, "DROP TABLE t").await;
            must(&session, &format!("IMPORT DATABASE '{target}'")).await;
            assert_eq!(values(&session, SHOWN).await.unwrap(), before, "{format}");
        }
    });
}
