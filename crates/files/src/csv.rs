//! CSV: text of records of fields, in every dialect that a delimiter, a quote and an escape make.
//!
//! ```text
//! sample ── detect: delimiter, header, types ──► columns
//! block ── tokenize: fields ── convert: arrays ──► batch
//! ```
//!
//! An own reader, for what it owes to the user: every fault with its line and column, exactly the table's types, and
//! blocks that are parsed side by side although quoted texts may hold line ends.

mod convert;
mod detect;
mod dialect;
mod tokenize;
mod write;

pub(crate) use detect::{WantedColumns, inspect};
pub(crate) use dialect::CsvDialect;
pub use dialect::Delimiter;
pub use write::CsvStyle;
pub(crate) use write::format;

use crate::blocks::{BLOCK, Block, Boundary, Cutting, MOST_BYTES, SAMPLE};
use crate::column::{ColumnRef, FileColumn, schema};
use crate::encoding::TextCoding;
use crate::error::{ColumnPlace, FileError, FileFaultKind, TypeOrigin, shortened};
use crate::kind::ValueKind;
use crate::scan::RecordParser;
use crate::values::ValueFormats;
use convert::{BadCell, Cells};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::sync::Arc;
use tokenize::{CsvField, CsvRecords, MalformedRecord, RecordFault, tokenize};

/// What the user has said about a CSV file.
#[derive(Clone, Debug)]
pub struct CsvOptions {
    /// Whether the first record is a header; otherwise that is found.
    pub header: Option<bool>,
    /// What separates fields; otherwise that is found.
    pub delimiter: Option<Delimiter>,
    /// `Some(None)`: nothing is quoted.
    pub quote: Option<Option<u8>>,
    /// What makes a quote within quotes an ordinary character, if not the quote itself.
    pub escape: Option<u8>,
    /// A line that begins with it is none.
    pub comment: Option<u8>,
    /// Lines in front that are no records.
    pub skip: u64,
    /// How texts are read as values.
    pub formats: ValueFormats,
    /// Names of the columns, instead of the header's.
    pub names: Vec<String>,
    /// Types of the columns with these names or numbers, instead of those that are found.
    pub types: Vec<(ColumnRef, DataType)>,
    /// All columns that have no other type here hold strings.
    pub all_strings: bool,
    /// Records from which types are found.
    pub sample: usize,
    /// Most bytes of a record.
    pub most: usize,
    /// How the file is stored.
    pub coding: TextCoding,
    /// Skip records with a fault instead of failing.
    pub ignore_errors: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            header: None,
            delimiter: None,
            quote: None,
            escape: None,
            comment: None,
            skip: 0,
            formats: ValueFormats::default(),
            names: Vec::new(),
            types: Vec::new(),
            all_strings: false,
            sample: SAMPLE,
            most: MOST_BYTES,
            coding: TextCoding::default(),
            ignore_errors: false,
        }
    }
}

impl CsvOptions {
    /// How files of this dialect are cut that have so many columns, if their number is known.
    pub(crate) fn cutting(&self, dialect: &CsvDialect, width: Option<usize>) -> Cutting {
        Cutting {
            boundary: Arc::new(CsvBoundary {
                dialect: dialect.clone(),
                empty_is_record: width == Some(1),
            }),
            coding: self.coding,
            newline: dialect.newline,
            skip: self.skip,
            most: self.most.min(tokenize::MOST_BYTES),
            block: BLOCK,
        }
    }
}

/// Where records of CSV files end.
#[derive(Debug)]
struct CsvBoundary {
    dialect: CsvDialect,
    /// Whether an empty line is a record, as it is if there is one column.
    empty_is_record: bool,
}

impl Boundary for CsvBoundary {
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        self.dialect.last_end(bytes)
    }

    fn has_record(&self, bytes: &[u8]) -> bool {
        self.dialect.has_record(bytes, self.empty_is_record)
    }

    fn endless(&self, most: usize) -> FileFaultKind {
        FileFaultKind::EndlessRecord { most }
    }
}

/// CSV files with all that is known of them.
#[derive(Debug)]
pub(crate) struct CsvFiles {
    pub dialect: CsvDialect,
    pub formats: ValueFormats,
    /// The names in the files' first record, if that is a header.
    pub header: Option<Vec<String>>,
    pub columns: Vec<FileColumn>,
    /// What the columns' values look like, where that was found.
    pub kinds: Vec<ValueKind>,
    /// Whether the types were found in a sample of so many records.
    pub sampled: Option<usize>,
    pub ignore_errors: bool,
    /// Whether all types were found: a number with a fraction is no BIGINT then. Where the user says the type, it is
    /// rounded.
    pub exact: bool,
}

impl RecordParser for CsvFiles {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, FileError> {
        let mut records = self.tokenize(block)?;
        if block.first {
            self.take_header(block, &mut records)?;
        }
        let text = self.utf8(block, &records)?;
        if self.ignore_errors {
            self.keep_good(text, &mut records);
        }
        match self.convert(text, &records, projection) {
            Ok(batch) => Ok(batch),
            Err((place, bad)) => {
                let field = records.fields[bad.row * self.columns.len() + place];
                let at = field.start as usize;
                let column = (place, &self.columns[place]);
                let origin = self.sampled.map_or(TypeOrigin::Given, TypeOrigin::Records);
                Err(block.misfit(at, column, &bad.text, bad.misfit, origin))
            }
        }
    }
}

impl CsvFiles {
    /// Gives the columns types that have the values of another file, too.
    ///
    /// # Errors
    /// The options name columns that there are not.
    pub fn widen(&mut self, other: &CsvFiles, options: &CsvOptions) -> Result<(), FileError> {
        if self.kinds.len() != other.kinds.len() || self.kinds.is_empty() {
            return Ok(());
        }
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            *kind = kind.join(*other);
        }
        self.columns = detect::columns(options, self.header.as_deref(), &self.kinds)?;
        self.sampled = self
            .sampled
            .zip(other.sampled)
            .map(|(one, other)| one + other);
        Ok(())
    }

    fn tokenize(&self, block: &Block) -> Result<CsvRecords, FileError> {
        let width = self.columns.len();
        let mut records = CsvRecords {
            fields: Vec::with_capacity(block.bytes.len() / 8),
            ..CsvRecords::default()
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
            from = match memchr::memchr(self.dialect.newline, &block.bytes[malformed.start..]) {
                Some(end) => malformed.start + end + 1,
                None => return Ok(records),
            };
        }
    }

    fn malformed(&self, block: &Block, malformed: &MalformedRecord) -> FileError {
        let line = &block.bytes[malformed.start..];
        let mut lines = line.split(|byte| *byte == self.dialect.newline);
        let line = lines.next().unwrap_or_default();
        let shown = shortened(String::from_utf8_lossy(line).trim_end());
        let at = malformed.start;
        match malformed.fault {
            RecordFault::Fields(found) => block.error(
                at,
                FileFaultKind::FieldCount {
                    found,
                    wanted: self.columns.len(),
                    delimiter: self.dialect.delimiter.to_string(),
                    shown,
                },
            ),
            RecordFault::Unclosed(column) => {
                let kind = FileFaultKind::UnclosedQuote { shown };
                block.error_in(at, self.place(column), kind)
            }
            RecordFault::BehindQuote(column, _) => {
                let kind = FileFaultKind::BehindQuote { shown };
                block.error_in(at, self.place(column), kind)
            }
        }
    }

    fn place(&self, column: usize) -> ColumnPlace {
        let known = self.columns.get(column);
        ColumnPlace {
            number: column + 1,
            name: known.map(|known| known.field.name().clone()),
        }
    }

    /// Takes the header away, which has to be the same in all files.
    fn take_header(&self, block: &Block, records: &mut CsvRecords) -> Result<(), FileError> {
        let Some(header) = &self.header else {
            return Ok(());
        };
        if records.len() == 0 {
            return Ok(());
        }
        let width = self.columns.len();
        // Whoever reads the block reports bytes that are no UTF-8.
        if let Ok(text) = std::str::from_utf8(&block.bytes) {
            let names = detect::names(&self.dialect, text, &records.fields[..width]);
            if names != *header {
                let kind = FileFaultKind::OtherHeader {
                    found: names,
                    first: header.clone(),
                };
                return Err(block.error(records.starts[0] as usize, kind));
            }
        }
        self.remove(records, 0);
        Ok(())
    }

    fn remove(&self, records: &mut CsvRecords, row: usize) {
        let width = self.columns.len();
        records.starts.remove(row);
        records.fields.drain(row * width..(row + 1) * width);
    }

    /// Keeps the records all of whose values fit, whichever columns are asked for: all queries see the same rows.
    fn keep_good(&self, text: &str, records: &mut CsvRecords) {
        let width = self.columns.len();
        let all: Vec<usize> = (0..width).collect();
        if self.convert(text, records, &all).is_ok() {
            return;
        }
        let mut good = CsvRecords::default();
        for (record, fields) in records.fields.chunks(width).enumerate() {
            let alone = CsvRecords {
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

    fn utf8<'a>(&self, block: &'a Block, records: &CsvRecords) -> Result<&'a str, FileError> {
        std::str::from_utf8(&block.bytes).map_err(|error| {
            let at = error.valid_up_to();
            let holds = |field: &CsvField| field.range().contains(&at);
            let kind = FileFaultKind::NotUtf8(block.bytes[at]);
            match records.fields.iter().position(holds) {
                Some(field) => block.error_in(at, self.place(field % self.columns.len()), kind),
                None => block.error(at, kind),
            }
        })
    }

    fn convert(
        &self,
        text: &str,
        records: &CsvRecords,
        projection: &[usize],
    ) -> Result<RecordBatch, (usize, BadCell)> {
        let arrays = projection.iter().map(|&place| {
            let cells = Cells {
                dialect: &self.dialect,
                formats: &self.formats,
                text,
                fields: &records.fields,
                width: self.columns.len(),
                place,
                exact: self.exact,
            };
            let column = cells.convert(&self.columns[place]);
            column.map_err(|bad| (place, bad))
        });
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<FileColumn> = projection
            .iter()
            .map(|&at| self.columns[at].clone())
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(records.len()));
        let schema = schema(&fields);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)
            .expect("the arrays are made for the columns"))
    }
}
