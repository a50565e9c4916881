//! Texts of CSV and JSON, cut at any place.

use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::record_batch::RecordBatch;
use eris_files::{CsvOptions, FileError, csv_rows, json_rows};
use proptest::prelude::*;

/// A block that holds any text of these tests.
const ALL: usize = 1 << 20;

/// The rows as one batch, if there are any. Of an error nothing is told: which fault is found first depends on where
/// the text is cut.
fn whole(batches: Result<Vec<RecordBatch>, FileError>) -> Result<Option<RecordBatch>, ()> {
    let batches = batches.map_err(drop)?;
    let filled: Vec<_> = batches
        .iter()
        .filter(|batch| batch.num_rows() > 0)
        .collect();
    let schema = filled.first().map(|first| first.schema());
    Ok(schema.map(|schema| concat_batches(&schema, filled).unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn where_a_csv_text_is_cut_makes_no_difference(text in "[a1.,|\"\r\n ]{0,60}", block in 1_usize..40) {
        let options = CsvOptions::default();
        let cut = whole(csv_rows(text.as_bytes(), &options, block));
        prop_assert_eq!(cut, whole(csv_rows(text.as_bytes(), &options, ALL)));
    }

    #[test]
    fn where_a_json_text_is_cut_makes_no_difference(
        text in r#"(\[?(\{("a":(1|"x\\"[{]?"|\[1\]|null|\{\}))?\}[,\n ]{1,2}){0,6}\]?)|[{}\[\]":,a1\n]{0,20}"#,
        block in 1_usize..40,
    ) {
        let cut = whole(json_rows(text.as_bytes(), block));
        prop_assert_eq!(cut, whole(json_rows(text.as_bytes(), ALL)));
    }
}

#[test]
fn a_header_may_be_in_a_later_block_than_the_first() {
    let options = CsvOptions {
        comment: Some(b'#'),
        ..CsvOptions::default()
    };
    for block in [1, 4, ALL] {
        let rows = whole(csv_rows(b"\n# from\r\n\r\na,b\n1,2\n", &options, block));
        let rows = rows.unwrap().unwrap();
        assert_eq!(
            (rows.num_rows(), rows.schema().field(0).name().as_str()),
            (1, "a")
        );
    }
}

#[test]
fn a_fault_is_told_with_its_place() {
    let options = CsvOptions::default();
    let error = csv_rows(b"a,b\n1,2\n3\n", &options, ALL).unwrap_err();
    let FileError::Fault(fault) = &error else {
        panic!("{error}");
    };
    assert_eq!((fault.path(), fault.line()), ("text", Some(3)));
    assert_eq!(fault.reason(), "line 3: 1 fields, but 2 columns: '3'");
}
