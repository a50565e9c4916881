//! CSV: text of records of fields, in every dialect that a delimiter, a quote and an escape make.
//!
//! ```text
//! sample ── detect: delimiter, header, types ──► columns
//! block ── tokenize: fields ── convert: arrays ──► batch
//! ```
//!
//! An own reader, for what it owes to the user: every fault with its line and column, exactly the table's types, and blocks
//! that are parsed side by side although quoted texts may hold line ends.

mod convert;
mod detect;
mod dialect;
mod tokenize;
mod write;

pub(super) use convert::Reading;
pub(super) use detect::{Wanted, inspect};
pub(super) use dialect::Dialect;
pub(super) use write::{CsvStyle, format};

use super::blocks::{Block, Boundary, Cutting};
use super::column::{Column, bad_line, bad_value, shortened};
use super::compression::Compression;
use super::scan::Parser;
use crate::error::SqlError;
use convert::{BadCell, Cells};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::sync::Arc;
use tokenize::{Fault, Field, MOST_BYTES, Malformed, Records, tokenize};

/// What the user has said about a CSV file.
#[derive(Clone, Debug)]
pub(super) struct CsvOptions {
    pub header: Option<bool>,
    pub delimiter: Option<u8>,
    /// `Some(None)`: nothing is quoted.
    pub quote: Option<Option<u8>>,
    pub escape: Option<u8>,
    pub comment: Option<u8>,
    pub skip: u64,
    pub reading: Reading,
    /// Names of the columns, instead of the header's.
    pub names: Vec<String>,
    /// Types of the columns with these names or numbers, instead of those that are found.
    pub types: Vec<(ColumnRef, DataType)>,
    pub all_text: bool,
    /// Records from which types are found.
    pub sample: usize,
    pub most: usize,
    pub compression: Option<Compression>,
    /// Skip records with a fault instead of failing.
    pub ignore_errors: bool,
}

/// A column of which the user speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnRef {
    Name(String),
    /// From 0.
    Number(usize),
}

/// Records from which types are found where nothing else is said.
const SAMPLE: usize = 20_480;
/// Most bytes of a record where nothing else is said.
const MOST: usize = 16 << 20;

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            header: None,
            delimiter: None,
            quote: None,
            escape: None,
            comment: None,
            skip: 0,
            reading: Reading::default(),
            names: Vec::new(),
            types: Vec::new(),
            all_text: false,
            sample: SAMPLE,
            most: MOST,
            compression: None,
            ignore_errors: false,
        }
    }
}

impl CsvOptions {
    /// How files are cut in this dialect.
    pub fn cutting(&self, dialect: &Dialect) -> Cutting {
        Cutting {
            boundary: Arc::new(dialect.clone()),
            compression: self.compression,
            skip: self.skip,
            most: self.most.min(MOST_BYTES),
            block: super::blocks::BLOCK,
        }
    }
}

impl Boundary for Dialect {
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        Dialect::last_end(self, bytes)
    }

    fn endless(&self, most: usize) -> String {
        format!(
            "no end of the record within {most} bytes: a quote may be missing, or the line is longer than max_line_size"
        )
    }
}

/// CSV files with all that is known of them.
#[derive(Debug)]
pub(super) struct Csv {
    pub dialect: Dialect,
    pub reading: Reading,
    /// The names in the files' first record, if that is a header.
    pub header: Option<Vec<String>>,
    pub columns: Vec<Column>,
    /// Whether the types were found in a sample of so many records.
    pub sampled: Option<usize>,
    pub ignore_errors: bool,
}

impl Parser for Csv {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, SqlError> {
        let mut records = self.tokenize(block)?;
        if block.first {
            self.take_header(block, &mut records)?;
        }
        let text = self.utf8(block, &records)?;
        match self.convert(text, &records, projection) {
            Ok(batch) => Ok(batch),
            Err(_) if self.ignore_errors => {
                self.keep_good(text, &mut records);
                let batch = self.convert(text, &records, projection);
                Ok(batch.unwrap_or_else(|_| unreachable!("every record fits by itself")))
            }
            Err((place, bad)) => {
                let field = records.fields[bad.row * self.columns.len() + place];
                let line = block.line_at(field.start as usize);
                let column = &self.columns[place];
                let error = bad_value(&block.path, line, place + 1, column, &bad.text, bad.misfit);
                Err(self.explain(error, column))
            }
        }
    }
}

impl Csv {
    fn tokenize(&self, block: &Block) -> Result<Records, SqlError> {
        let width = self.columns.len();
        let mut records = Records {
            fields: Vec::with_capacity(block.bytes.len() / 8),
            ..Records::default()
        };
        let mut from = 0;
        loop {
            let before = (records.fields.len(), records.starts.len());
            let text = &block.bytes[from..];
            let faulty = tokenize(&self.dialect, text, Some(width), &mut records).err();
            if from > 0 {
                for field in &mut records.fields[before.0..] {
                    *field = field.shifted(from);
                }
                records.starts[before.1..]
                    .iter_mut()
                    .for_each(|start| *start += from as u32);
            }
            let Some(mut malformed) = faulty else {
                return Ok(records);
            };
            malformed.start += from;
            if !self.ignore_errors {
                return Err(self.malformed(block, &malformed));
            }
            // On with the next line.
            records.fields.truncate(records.starts.len() * width);
            from = match memchr::memchr(b'\n', &block.bytes[malformed.start..]) {
                Some(end) => malformed.start + end + 1,
                None => return Ok(records),
            };
        }
    }

    fn malformed(&self, block: &Block, malformed: &Malformed) -> SqlError {
        let name = |column: usize| match self.columns.get(column) {
            Some(known) => format!("column {} \"{}\"", column + 1, known.field.name()),
            None => format!("column {}", column + 1),
        };
        let width = self.columns.len();
        let delimiter = char::from(self.dialect.delimiter);
        let line = &block.bytes[malformed.start..];
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let shown = shortened(String::from_utf8_lossy(line).trim_end());
        let at = block.line_at(malformed.start);
        let (what, hint) = match &malformed.fault {
            Fault::Fields(found) => (
                format!("{found} fields, but {width} columns: '{shown}'"),
                format!("fields are separated by '{delimiter}'; a value that holds one needs quotes around it, and another delimiter is said with DELIMITER"),
            ),
            Fault::Unclosed(column) => (
                format!("{}: a quote that nothing closes: '{shown}'", name(*column)),
                "close it; if quotes are ordinary characters in this file, say QUOTE ''".to_owned(),
            ),
            Fault::BehindQuote(column, _) => (
                format!("{}: text behind the closing quote: '{shown}'", name(*column)),
                "a quote within quotes is written twice; if quotes are ordinary characters in this file, say QUOTE ''".to_owned(),
            ),
        };
        bad_line(&block.path, at, what).with_hint(Some(hint))
    }

    /// Takes the header away, which has to be the same in all files.
    fn take_header(&self, block: &Block, records: &mut Records) -> Result<(), SqlError> {
        let Some(header) = &self.header else {
            return Ok(());
        };
        if records.len() == 0 {
            return Ok(());
        }
        let width = self.columns.len();
        let text = String::from_utf8_lossy(&block.bytes);
        let names = detect::names(&self.dialect, &text, &records.fields[..width]);
        if matches!(text, std::borrow::Cow::Borrowed(_)) && names != *header {
            let what = format!(
                "the header names ({}), but that of the first file ({})",
                names.join(", "),
                header.join(", ")
            );
            let at = block.line_at(records.starts[0] as usize);
            return Err(bad_line(&block.path, at, what)
                .with_hint(Some("read files with different columns one by one")));
        }
        self.remove(records, 0);
        Ok(())
    }

    fn remove(&self, records: &mut Records, row: usize) {
        let width = self.columns.len();
        records.starts.remove(row);
        records.fields.drain(row * width..(row + 1) * width);
    }

    /// Keeps the records all of whose values fit.
    fn keep_good(&self, text: &str, records: &mut Records) {
        let width = self.columns.len();
        let all: Vec<usize> = (0..width).collect();
        let mut good = Records::default();
        for (record, fields) in records.fields.chunks(width).enumerate() {
            let alone = Records {
                fields: fields.to_vec(),
                starts: vec![records.starts[record]],
                ends: Vec::new(),
            };
            if self.convert(text, &alone, &all).is_ok() {
                good.fields.extend_from_slice(fields);
                good.starts.extend(alone.starts);
            }
        }
        *records = good;
    }

    fn utf8<'a>(&self, block: &'a Block, records: &Records) -> Result<&'a str, SqlError> {
        std::str::from_utf8(&block.bytes).map_err(|error| {
            let at = error.valid_up_to();
            let holds = |field: &Field| field.range().contains(&at);
            let column = records.fields.iter().position(holds);
            let place =
                column
                    .map(|field| field % self.columns.len())
                    .map_or(String::new(), |column| {
                        let name = self.columns[column].field.name();
                        format!("column {} \"{name}\": ", column + 1)
                    });
            let byte = block.bytes[at];
            let what = format!("{place}byte 0x{byte:02X} is no UTF-8");
            bad_line(&block.path, block.line_at(at), what).with_hint(Some(
                "convert the file first, for instance: iconv -f latin1 -t utf-8",
            ))
        })
    }

    fn convert(
        &self,
        text: &str,
        records: &Records,
        projection: &[usize],
    ) -> Result<RecordBatch, (usize, BadCell)> {
        let arrays = projection.iter().map(|&place| {
            let cells = Cells {
                dialect: &self.dialect,
                reading: &self.reading,
                text,
                fields: &records.fields,
                width: self.columns.len(),
                place,
            };
            let column = cells.convert(&self.columns[place]);
            column.map_err(|bad| (place, bad))
        });
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Column> = projection
            .iter()
            .map(|&at| self.columns[at].clone())
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(records.len()));
        let schema = super::column::schema(&fields);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)
            .expect("the arrays are made for the columns"))
    }

    /// Adds what to do about a type that was found in a sample.
    fn explain(&self, error: SqlError, column: &Column) -> SqlError {
        let Some(sampled) = self.sampled else {
            return error;
        };
        let name = column.field.name();
        error.with_hint(Some(format!(
            "the type was found in the first {sampled} records; read_csv with types => {{'{name}': 'VARCHAR'}}, all_varchar => true or sample_size => -1 reads others"
        )))
    }
}
