//! Finding out what a CSV file is like, from its first records: delimiter, header, names and types of columns.

use super::convert::Cells;
use super::dialect::CsvDialect;
use super::tokenize::{CsvField, CsvRecords, tokenize};
use super::{CsvFiles, CsvOptions};
use crate::blocks::{Block, Cutter, Cutting, TextSource};
use crate::column::{ColumnRef, FileColumn};
use crate::compression::without_ending;
use crate::error::{FileError, FileFaultKind};
use crate::kind::ValueKind;
use crate::values::ValueFormats;
use datafusion::arrow::datatypes::{DataType, Field};
use serde::de::IgnoredAny;
use std::collections::HashSet;
use std::sync::Arc;

/// Delimiters that are tried.
const DELIMITERS: [u8; 4] = [b',', b'|', b';', b'\t'];
/// Records that tell the delimiter.
const TELLING: usize = 512;

/// What the columns have to be.
pub(crate) enum WantedColumns<'a> {
    /// As the file has them.
    Found,
    /// A table's.
    Given(&'a [FileColumn]),
}

/// What the file is like; the other files have to be alike.
pub(crate) fn inspect(
    source: &TextSource,
    options: &CsvOptions,
    wanted: &WantedColumns<'_>,
) -> Result<CsvFiles, FileError> {
    let given = options.quote.unwrap_or(Some(b'"'));
    let mut dialect = CsvDialect {
        quote: given,
        escape: options.escape.or(given),
        comment: options.comment,
        ..CsvDialect::default()
    };
    let name = source.path().to_string_lossy();
    let lower = without_ending(&name).to_ascii_lowercase();
    let usual = match () {
        () if lower.ends_with(".tbl") => b'|',
        () if lower.ends_with(".tsv") => b'\t',
        () => b',',
    };
    let width = match wanted {
        WantedColumns::Given(columns) => Some(columns.len()),
        WantedColumns::Found if options.names.is_empty() => None,
        WantedColumns::Found => Some(options.names.len()),
    };
    dialect.newline = newline(source, &options.cutting(&dialect, None))?;
    let mut cutter = source.cut_sample(&options.cutting(&dialect, None))?;
    let Some(block) = cutter.next()? else {
        return empty(&name, dialect, options, wanted);
    };
    let is_open = options.delimiter.is_none() && options.names.is_empty();
    if is_open && matches!(wanted, WantedColumns::Found) && is_json(&block.bytes) {
        return Err(FileError::new(&*name, FileFaultKind::JsonAsCsv));
    }
    dialect.delimiter = (options.delimiter.clone())
        .unwrap_or_else(|| delimiter(&dialect, &block.bytes, usual, width).into());
    let may_have_comments = is_open && options.comment.is_none() && width.is_none();
    let (mut cutter, block) = match commented(&dialect, &block.bytes, usual) {
        Some(commented) if may_have_comments => {
            dialect = commented;
            let mut cutter = source.cut_sample(&options.cutting(&dialect, None))?;
            match cutter.next()? {
                Some(block) => (cutter, block),
                None => return empty(&name, dialect, options, wanted),
            }
        }
        _ => (cutter, block),
    };
    let sample = CsvSample::new(&dialect, &block);
    if sample.records.len() == 0 {
        return empty(&name, dialect, options, wanted);
    }
    let all_blank_ends = sample.all_end_blank();
    dialect.trailing = match width {
        Some(width) => sample.records.record(0).len() == width + 1 && sample.ends_blank(0),
        None => lower.ends_with(".tbl") && all_blank_ends,
    };
    match wanted {
        WantedColumns::Given(columns) => {
            let header = sample.header_of(&dialect, &options.formats, options.header, columns);
            Ok(CsvFiles {
                header,
                columns: columns.to_vec(),
                kinds: Vec::new(),
                sampled: None,
                formats: options.formats.clone(),
                ignore_errors: options.ignore_errors,
                exact: false,
                dialect,
            })
        }
        WantedColumns::Found => {
            let tbl = lower.ends_with(".tbl").then_some(false);
            let header = options.header.or(tbl);
            found(dialect, options, header, sample, &mut cutter)
        }
    }
}

/// Whether a text begins with a JSON object, perhaps within an array.
fn is_json(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    let within = bytes.strip_prefix(b"[").unwrap_or(bytes).trim_ascii_start();
    let line = within
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = line.trim_ascii_end();
    // An object of several lines begins with a line of its own, or with its first member.
    let begins = line == b"{" || line.starts_with(b"{\"") && line.contains(&b':');
    let has_value = || {
        let mut values = serde_json::Deserializer::from_slice(within).into_iter::<IgnoredAny>();
        matches!(values.next(), Some(Ok(_)))
    };
    begins && has_value()
}

fn empty(
    name: &str,
    dialect: CsvDialect,
    options: &CsvOptions,
    wanted: &WantedColumns<'_>,
) -> Result<CsvFiles, FileError> {
    match wanted {
        WantedColumns::Given(columns) => Ok(CsvFiles {
            dialect,
            formats: options.formats.clone(),
            header: None,
            columns: columns.to_vec(),
            kinds: Vec::new(),
            sampled: None,
            ignore_errors: options.ignore_errors,
            exact: false,
        }),
        WantedColumns::Found => Err(FileError::new(
            name,
            FileFaultKind::NoRecords("the file is empty"),
        )),
    }
}

/// What ends lines: `\r`, if the text's beginning has no `\n`.
fn newline(source: &TextSource, cutting: &Cutting) -> Result<u8, FileError> {
    let whole = Cutting {
        skip: 0,
        ..cutting.clone()
    };
    let cutter = source.cut_sample(&whole)?;
    let is_old = memchr::memchr(b'\n', cutter.begun()).is_none() && cutter.begun().contains(&b'\r');
    Ok(if is_old { b'\r' } else { b'\n' })
}

/// The delimiter that cuts most records into equally many fields, and then into most.
fn delimiter(dialect: &CsvDialect, bytes: &[u8], usual: u8, width: Option<usize>) -> u8 {
    let mut best = (usual, 0.0, 1);
    let others = DELIMITERS.into_iter().filter(|&other| other != usual);
    for delimiter in std::iter::once(usual).chain(others) {
        let dialect = CsvDialect {
            delimiter: delimiter.into(),
            ..dialect.clone()
        };
        let mut records = CsvRecords::default();
        let end = nth_line_end(&dialect, bytes, TELLING);
        let end = dialect.last_end(&bytes[..end]).unwrap_or(end);
        let faults = usize::from(tokenize(&dialect, &bytes[..end], None, &mut records).is_err());
        if records.len() == 0 {
            continue;
        }
        let counts: Vec<usize> = (0..records.len())
            .map(|at| records.record(at).len())
            .collect();
        let usual_count = width.unwrap_or_else(|| most_frequent(&counts));
        let fits = |count: &&usize| {
            **count == usual_count || width.is_some_and(|width| **count == width + 1)
        };
        let fitting = counts.iter().filter(fits).count();
        let share = fitting as f64 / (counts.len() + faults) as f64;
        let better = share > best.1 || (share == best.1 && usual_count > best.2);
        if (usual_count > 1 || width.is_some()) && better {
            best = (delimiter, share, usual_count);
        }
    }
    best.0
}

/// The dialect with comments behind `#`, if a text begins with one, has several columns only without them, and none of
/// them could be a record.
fn commented(dialect: &CsvDialect, bytes: &[u8], usual: u8) -> Option<CsvDialect> {
    if !bytes.starts_with(b"#") {
        return None;
    }
    let end = nth_line_end(dialect, bytes, TELLING);
    let bytes = &bytes[..dialect.last_end(&bytes[..end]).unwrap_or(end)];
    let first_width = |dialect: &CsvDialect| {
        let mut records = CsvRecords::default();
        // What is in front of a fault tells enough.
        let _ = tokenize(dialect, bytes, None, &mut records);
        match records.len() {
            0 => 0,
            _ => records.record(0).len(),
        }
    };
    let mut with = CsvDialect {
        comment: Some(b'#'),
        ..dialect.clone()
    };
    with.delimiter = delimiter(&with, bytes, usual, None).into();
    let width = first_width(&with);
    // A record that begins so is none.
    let is_record = |line: &[u8]| {
        line.starts_with(b"#") && {
            let mut records = CsvRecords::default();
            let dialect = CsvDialect {
                comment: None,
                ..with.clone()
            };
            let read = tokenize(&dialect, line, None, &mut records);
            read.is_ok() && records.len() == 1 && records.record(0).len() == width
        }
    };
    let mut lines = bytes.split_inclusive(|byte| *byte == dialect.newline);
    let is_commented = first_width(dialect) == 1 && width > 1 && !lines.any(is_record);
    is_commented.then_some(with)
}

fn nth_line_end(dialect: &CsvDialect, bytes: &[u8], n: usize) -> usize {
    memchr::memchr_iter(dialect.newline, bytes)
        .nth(n)
        .map_or(bytes.len(), |end| end + 1)
}

fn most_frequent(counts: &[usize]) -> usize {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).map_or(0, |run| run[0])
}

/// The first records, as far as they can be told apart.
struct CsvSample<'a> {
    dialect: CsvDialect,
    text: std::borrow::Cow<'a, str>,
    records: CsvRecords,
}

impl<'a> CsvSample<'a> {
    fn new(dialect: &CsvDialect, block: &'a Block) -> Self {
        let text = String::from_utf8_lossy(&block.bytes);
        let mut records = CsvRecords::default();
        // A fault is reported by whoever reads the file; what is in front of it tells enough.
        let _ = tokenize(dialect, text.as_bytes(), None, &mut records);
        records
            .fields
            .truncate(records.ends.last().map_or(0, |end| *end as usize));
        CsvSample {
            dialect: dialect.clone(),
            text,
            records,
        }
    }

    fn ends_blank(&self, record: usize) -> bool {
        let last = self.records.record(record).last();
        last.is_some_and(|last| last.range().is_empty() && !last.is_quoted())
    }

    fn all_end_blank(&self) -> bool {
        (0..self.records.len()).all(|record| self.ends_blank(record))
    }

    fn first_names(&self, width: usize) -> Vec<String> {
        let first = self.records.record(0);
        names(&self.dialect, &self.text, &first[..width.min(first.len())])
    }

    /// Whether the first record has values of all columns, which the user says to hold other things than texts.
    fn begins_with_a_value(&self, dialect: &CsvDialect, options: &CsvOptions) -> bool {
        let fields = self.records.record(0);
        let said = options.types.iter();
        let mut said = said.filter(|(_, data_type)| *data_type != DataType::Utf8View);
        options.types.len() == fields.len()
            && said.clone().count() == fields.len()
            && said.all(|(column, data_type)| {
                let place = match column {
                    ColumnRef::Number(number) => Some(*number),
                    ColumnRef::Name(wanted) => {
                        let mut names = options.names.iter();
                        names.position(|name| name.eq_ignore_ascii_case(wanted))
                    }
                };
                let Some(place) = place.filter(|place| *place < fields.len()) else {
                    return false;
                };
                let cells = Cells {
                    dialect,
                    formats: &options.formats,
                    text: &self.text,
                    fields,
                    width: fields.len(),
                    place,
                    exact: false,
                };
                let column = FileColumn {
                    field: Arc::new(Field::new("", data_type.clone(), true)),
                    max_characters: None,
                };
                !fields[place].range().is_empty()
                    && cells
                        .convert(&column)
                        .is_ok_and(|values| values.null_count() < values.len())
            })
    }

    /// The header of a file whose columns are known: it is one if it has the columns' names, or if none of its fields
    /// is a value of a column that holds other things than texts.
    fn header_of(
        &self,
        dialect: &CsvDialect,
        formats: &ValueFormats,
        said: Option<bool>,
        columns: &[FileColumn],
    ) -> Option<Vec<String>> {
        let first = self.records.record(0);
        let names = self.first_names(columns.len());
        let alike = names.len() == columns.len()
            && columns
                .iter()
                .zip(&names)
                .all(|(column, name)| column.field.name().eq_ignore_ascii_case(name));
        let fits = |place: usize| {
            let cells = Cells {
                dialect,
                formats,
                text: &self.text,
                fields: &first[..columns.len()],
                width: columns.len(),
                place,
                exact: false,
            };
            cells.convert(&columns[place]).is_ok()
        };
        let others = |place: &usize| *columns[*place].field.data_type() != DataType::Utf8View;
        let none_fits = || {
            let mut others = (0..columns.len()).filter(others).peekable();
            others.peek().is_some()
                && others.all(|place| !fits(place))
                && names.iter().all(|name| is_word(name))
        };
        let is_header =
            said.unwrap_or_else(|| alike || (first.len() >= columns.len() && none_fits()));
        is_header.then_some(names)
    }
}

/// Whether a text could be a name.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '-' | '.'))
}

/// The texts of a header.
pub(crate) fn names(dialect: &CsvDialect, text: &str, fields: &[CsvField]) -> Vec<String> {
    let formats = ValueFormats {
        nulls: Vec::new(),
        ..ValueFormats::default()
    };
    let cells = Cells {
        dialect,
        formats: &formats,
        text,
        fields,
        width: fields.len().max(1),
        place: 0,
        exact: false,
    };
    let names = fields
        .iter()
        .map(|field| cells.value(*field, true).unwrap_or_default());
    names.map(|name| name.trim().to_owned()).collect()
}

/// Columns as the file has them.
fn found(
    dialect: CsvDialect,
    options: &CsvOptions,
    header: Option<bool>,
    sample: CsvSample<'_>,
    cutter: &mut Cutter,
) -> Result<CsvFiles, FileError> {
    let width = sample.records.record(0).len() - usize::from(dialect.trailing);
    let mut kinds = vec![ValueKind::Unknown; width];
    let mut seen = note(
        &dialect,
        &options.formats,
        &sample,
        1,
        options.sample,
        &mut kinds,
    );
    let mut first = vec![ValueKind::Unknown; width];
    note(&dialect, &options.formats, &sample, 0, 1, &mut first);
    let text = |kind: &ValueKind| matches!(kind, ValueKind::String | ValueKind::Unknown);
    let alone = sample.records.len() == 1;
    let is_header = header.unwrap_or_else(|| {
        let consistent = kinds.iter().zip(&first).all(|(kind, first)| match first {
            // It is no name, either.
            ValueKind::Digits => kind.join(*first) == ValueKind::Digits,
            first => kind.join(*first) == *kind,
        });
        let is_named = if alone {
            first.iter().all(text)
        } else {
            kinds.iter().all(text) || !consistent
        };
        is_named && !sample.begins_with_a_value(&dialect, options)
    });
    let header_names = is_header.then(|| sample.first_names(width));
    if !is_header {
        kinds
            .iter_mut()
            .zip(&first)
            .for_each(|(kind, first)| *kind = kind.join(*first));
        seen += 1;
    }
    drop(sample);
    while seen < options.sample {
        let Some(block) = cutter.next()? else {
            break;
        };
        let more = CsvSample::new(&dialect, &block);
        seen += note(
            &dialect,
            &options.formats,
            &more,
            0,
            options.sample - seen,
            &mut kinds,
        );
    }
    Ok(CsvFiles {
        columns: columns(options, header_names.as_deref(), &kinds)?,
        kinds,
        dialect,
        formats: options.formats.clone(),
        header: header_names,
        sampled: Some(seen),
        ignore_errors: options.ignore_errors,
        exact: options.types.is_empty(),
    })
}

/// The columns, with the types that were found in these kinds, or that the user has given.
pub(super) fn columns(
    options: &CsvOptions,
    header: Option<&[String]>,
    kinds: &[ValueKind],
) -> Result<Vec<FileColumn>, FileError> {
    let names = match options.names.is_empty() {
        true => header.unwrap_or_default().to_vec(),
        false => options.names.clone(),
    };
    let width = kinds.len();
    let mut columns = Vec::with_capacity(width);
    for (at, name) in unique_names(names, width).into_iter().enumerate() {
        let said = options.types.iter().find(|(column, _)| match column {
            ColumnRef::Name(wanted) => wanted.eq_ignore_ascii_case(&name),
            ColumnRef::Number(number) => *number == at,
        });
        let data_type = match said {
            Some((_, data_type)) => data_type.clone(),
            None if options.all_strings => DataType::Utf8View,
            None => kinds[at].data_type(),
        };
        columns.push(FileColumn {
            field: Arc::new(Field::new(name, data_type, true)),
            max_characters: None,
        });
    }
    for (column, _) in &options.types {
        let known = |column: &ColumnRef| match column {
            ColumnRef::Name(wanted) => columns
                .iter()
                .any(|column| column.field.name().eq_ignore_ascii_case(wanted)),
            ColumnRef::Number(number) => *number < width,
        };
        if !known(column) {
            let names = columns.iter().map(|column| column.field.name().clone());
            return Err(FileError::UnknownColumn {
                column: column.clone(),
                known: names.collect(),
            });
        }
    }
    Ok(columns)
}

/// Notes the values' kinds of records from `from` on; returns how many records there were.
fn note(
    dialect: &CsvDialect,
    formats: &ValueFormats,
    sample: &CsvSample<'_>,
    from: usize,
    most: usize,
    kinds: &mut [ValueKind],
) -> usize {
    let end = from.saturating_add(most).min(sample.records.len());
    for record in from..end {
        let fields = sample.records.record(record);
        let cells = Cells {
            dialect,
            formats,
            text: &sample.text,
            fields,
            width: fields.len(),
            place: 0,
            exact: false,
        };
        for (kind, field) in kinds.iter_mut().zip(fields) {
            if *kind != ValueKind::String
                && let Some(value) = cells.value(*field, false)
            {
                *kind = kind.with(&value, formats);
            }
        }
    }
    end.saturating_sub(from)
}

/// As many names, each once: those that are missing or empty get a number, repeated ones a number behind them.
fn unique_names(mut names: Vec<String>, width: usize) -> Vec<String> {
    names.resize(width, String::new());
    let mut seen = HashSet::new();
    for (at, name) in names.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("column{at}");
        }
        let plain = name.clone();
        let mut number = 0;
        while !seen.insert(name.to_lowercase()) {
            number += 1;
            *name = format!("{plain}_{number}");
        }
    }
    names
}
