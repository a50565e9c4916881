//! What is told about files without reading their rows; and files that are not what they seem.

use crate::common::{block_on, database, must, values};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use eris_sql::Session;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

async fn shown(session: &Session, sql: &str) -> Vec<String> {
    let rows = values(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.join("|")).collect()
}

async fn fails(session: &Session, sql: &str) -> String {
    match values(session, sql).await {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => format!("{error} {}", error.hint().unwrap_or_default()),
    }
}

#[test]
fn files_and_their_columns_are_listed() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        must(&session, "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR, d DECIMAL(10,2), at TIMESTAMP, day DATE)").await;
        must(&session, "INSERT INTO t VALUES (1, 'x', 1.5, '2020-01-01 10:00:00', '2020-01-01'), (3, NULL, 7, NULL, NULL)").await;
        let copy = format!("COPY t TO '{}' (COMPRESSION snappy)", at("t.parquet"));
        must(&session, &copy).await;
        must(&session, &format!("COPY t TO '{}'", at("t.csv"))).await;

        let glob = format!("SELECT * FROM glob('{}') ORDER BY file", at("*"));
        assert_eq!(shown(&session, &glob).await, [at("t.csv"), at("t.parquet")]);
        let glob = format!("SELECT count(*) FROM glob('{}')", at("*.nothing"));
        assert_eq!(shown(&session, &glob).await, ["0"]);
        let glob = format!(
            "SELECT g.file FROM glob(['{}', '{}']) AS g",
            at("t.csv"),
            at("t.*")
        );
        assert_eq!(shown(&session, &glob).await.len(), 3);

        let schema = format!(
            "SELECT name, type, repetition_type, num_children, scale, precision, duckdb_type, column_id \
             FROM parquet_schema('{}') ORDER BY column_id OFFSET 1",
            at("t.parquet")
        );
        let schema = shown(&session, &schema).await;
        assert_eq!(
            schema,
            [
                "a|INT32|REQUIRED||||INTEGER|1",
                "b|BYTE_ARRAY|OPTIONAL||||VARCHAR|2",
                "d|INT64|OPTIONAL||2|10|DECIMAL(10,2)|3",
                "at|INT64|OPTIONAL||||TIMESTAMP|4",
                "day|INT32|OPTIONAL||||DATE|5",
            ]
        );
        let metadata = format!(
            "SELECT row_group_num_rows, path_in_schema, type, stats_min, stats_max, stats_null_count, compression \
             FROM parquet_metadata('{}') ORDER BY column_id",
            at("*.parquet")
        );
        let metadata = shown(&session, &metadata).await;
        assert_eq!(
            metadata,
            [
                "2|a|INT32|1|3|0|SNAPPY",
                "2|b|BYTE_ARRAY|x|x|1|SNAPPY",
                "2|d|INT64|1.50|7.00|0|SNAPPY",
                "2|at|INT64|2020-01-01 10:00:00|2020-01-01 10:00:00|1|SNAPPY",
                "2|day|INT32|2020-01-01|2020-01-01|1|SNAPPY",
            ]
        );
        let error = fails(&session, &format!("FROM parquet_schema('{}')", at("t.csv"))).await;
        assert!(
            error.contains("t.csv") && error.contains("Parquet"),
            "{error}"
        );
        let error = fails(&session, "FROM glob('x', header => true)").await;
        assert!(
            error.contains("glob takes names of files, and no options"),
            "{error}"
        );
        let error = fails(&session, "SELECT glob('x')").await;
        assert!(error.contains("it is a table function"), "{error}");
    });
}

/// Writes timestamps as systems before 2015 did: days, and nanoseconds of the day.
fn write_int96(path: &Path, moments: &[(u32, u64)]) {
    let schema = Arc::new(parse_message_type("message m { required int96 at; }").unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = moments.iter().map(|(day, nanos)| {
        let mut value = Int96::new();
        value.set_data(*nanos as u32, (*nanos >> 32) as u32, *day);
        value
    });
    let values: Vec<Int96> = values.collect();
    column
        .typed::<Int96Type>()
        .write_batch(&values, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn old_timestamps_are_read_beyond_the_range_of_nanoseconds() {
    const DAY_OF_1970: u32 = 2_440_588;
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.parquet");
        let midday = 43_200_000_000_000;
        // 9999-12-31, 2024-02-29, 1582-10-15.
        let moments = [
            (DAY_OF_1970 + 2_932_896, midday + 123_456_000),
            (DAY_OF_1970 + 19_782, 0),
            (DAY_OF_1970 - 141_427, 1_000),
        ];
        write_int96(&path, &moments);
        let file = path.display();
        let query = format!("SELECT CAST(at AS VARCHAR) FROM '{file}' ORDER BY at DESC");
        assert_eq!(
            shown(&session, &query).await,
            [
                "9999-12-31 12:00:00.123456",
                "2024-02-29 00:00:00",
                "1582-10-15 00:00:00.000001",
            ]
        );
        let filtered = format!("SELECT count(*) FROM '{file}' WHERE at > TIMESTAMP '3000-01-01'");
        assert_eq!(shown(&session, &filtered).await, ["1"]);
        must(&session, "CREATE TABLE t (at TIMESTAMP)").await;
        must(&session, &format!("COPY t FROM '{file}'")).await;
        assert_eq!(
            shown(&session, "SELECT year(max(at)) FROM t").await,
            ["9999"]
        );
    });
}

#[test]
fn a_fraction_behind_the_sample_is_no_whole_number() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.csv");
        let rows = "1,2\n".repeat(30_000);
        std::fs::write(&path, format!("a,b\n{rows}7,1.0\n8,2.5\n")).unwrap();
        let file = path.display();
        let error = fails(&session, &format!("SELECT sum(b) FROM '{file}'")).await;
        assert!(
            error.contains("long.csv': line 30003: column 2 \"b\": '2.5'"),
            "{error}"
        );
        // Whoever says the type wants it rounded.
        let given = format!("SELECT sum(b) FROM read_csv('{file}', types => {{'b': 'BIGINT'}})");
        assert_eq!(shown(&session, &given).await, ["60004"]);
    });
}

#[test]
fn json_is_no_csv() {
    block_on(async {
        let database = database(1, 1);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.json");
        let file = path.display();
        for text in [
            "{\"a\": 1, \"b\": 2}\n{\"a\": 2, \"b\": 3}\n",
            "[{\"a\": 1},\n {\"a\": 2}]",
            "[\n  {\n    \"a\": 1\n  }\n]",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = fails(&session, &format!("FROM read_csv('{file}')")).await;
            assert!(error.contains("it holds JSON, not CSV"), "{error}");
            assert!(error.contains("read_json"), "{error}");
            assert!(
                !shown(&session, &format!("SELECT a FROM read_json('{file}')"))
                    .await
                    .is_empty()
            );
        }
        for text in ["{x},{y}\n1,2\n", "[a],b\n1,2\n", "{\"a\"},b\n1,2\n"] {
            std::fs::write(&path, text).unwrap();
            let read = format!("SELECT * FROM read_csv('{file}', header => true)");
            assert_eq!(shown(&session, &read).await.len(), 1, "{text}");
        }
    });
}

#[test]
fn a_stream_that_tells_of_more_than_there_is_names_its_file() {
    use datafusion::arrow::array::Int32Array;
    use datafusion::arrow::ipc::writer::StreamWriter;
    use datafusion::arrow::record_batch::RecordBatch;
    block_on(async {
        let database = database(1, 1);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.arrows");
        let column = Arc::new(Int32Array::from(vec![1, 2, 3])) as _;
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let read = format!("SELECT sum(a) FROM '{}'", path.display());
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(shown(&session, &read).await, ["6"]);
        // Each byte in turn, as large as it gets: an answer or an error, and no end of the process.
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] = 0x7f;
            std::fs::write(&path, &damaged).unwrap();
            if let Err(error) = values(&session, &read).await {
                assert!(error.to_string().contains("s.arrows"), "byte {at}: {error}");
            }
        }
    });
}
