//! JSON: one object after the other, line by line or not, or an array of objects.
//!
//! ```text
//! {"a": 1}⏎{"a": 2}⏎               lines: a block ends with a line
//! [ {"a": 1}, {"a": 2} ]            an array: its brackets and commas become blanks, a block ends with an object
//! ```

use crate::blocks::{BLOCK, Block, Boundary, Cutter, Cutting};
use crate::column::{FileColumn, schema};
use crate::compression::Compression;
use crate::error::{FileError, FileFaultKind, Misfit, TypeOrigin, shortened};
use crate::kind::ValueKind;
use crate::progress::ReadProgress;
use crate::scan::RecordParser;
use crate::values::{ValueFormats, whole};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, StringViewArray, downcast_integer,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Field, Schema};
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::json::reader::infer_json_schema_from_iterator;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of an object.
const MOST: usize = 16 << 20;
/// Objects from which types are found.
const SAMPLE: usize = 20_480;

/// How the objects follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonLayout {
    Lines,
    /// Objects that span lines, or an array of them.
    Free,
}

/// JSON files with all that is known of them.
#[derive(Debug)]
pub(crate) struct JsonFiles {
    pub columns: Vec<FileColumn>,
    origin: TypeOrigin,
    layout: JsonLayout,
}

impl Boundary for JsonLayout {
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            JsonLayout::Lines => memchr::memrchr(b'\n', bytes).map(|at| at + 1),
            JsonLayout::Free => objects(bytes).last().map(|object| object.end),
        }
    }

    fn endless(&self, most: usize) -> FileFaultKind {
        FileFaultKind::EndlessObject { most }
    }
}

/// The objects of a text, without what is between them. Ends with the last one that is whole.
fn objects(bytes: &[u8]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|byte| *byte == b'{')?;
        let (mut depth, mut quoted) = (0_usize, false);
        at = start;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        at += 1;
                        return Some(start..at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

fn cutting(layout: JsonLayout, compression: Option<Compression>) -> Cutting {
    Cutting {
        boundary: Arc::new(layout),
        compression,
        skip: 0,
        most: MOST,
        block: BLOCK,
    }
}

/// What the file is like, as columns that are found or given; the other files have to be alike.
pub(crate) fn inspect(
    path: &Path,
    compression: Option<Compression>,
    given: Option<&[FileColumn]>,
) -> Result<(JsonFiles, Cutting), FileError> {
    let layout = layout(path, compression)?;
    let cutting = cutting(layout, compression);
    let (columns, origin) = match given {
        Some(columns) => (columns.to_vec(), TypeOrigin::Given),
        None => (found(path, cutting.clone(), layout)?, TypeOrigin::Objects),
    };
    let json = JsonFiles {
        columns,
        origin,
        layout,
    };
    Ok((json, cutting))
}

/// Lines, if the first line that is not blank is an object.
fn layout(path: &Path, compression: Option<Compression>) -> Result<JsonLayout, FileError> {
    let mut cutter = Cutter::open(
        path,
        cutting(JsonLayout::Lines, compression),
        ReadProgress::default(),
    )?;
    // Without a line end in so many bytes, it is one line or none.
    let Ok(Some(block)) = cutter.next() else {
        return Ok(JsonLayout::Free);
    };
    let mut lines = block.bytes.split(|byte| *byte == b'\n');
    let line = lines
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default();
    let is_object = serde_json::from_slice::<Value>(line).is_ok_and(|value| value.is_object());
    let broken = line.trim_ascii().starts_with(b"{") && line.trim_ascii().ends_with(b"}");
    Ok(if is_object || broken {
        JsonLayout::Lines
    } else {
        JsonLayout::Free
    })
}

fn found(path: &Path, cutting: Cutting, layout: JsonLayout) -> Result<Vec<FileColumn>, FileError> {
    let mut cutter = Cutter::open(path, cutting, ReadProgress::default())?;
    let mut values = Vec::new();
    let mut members = Members::default();
    while values.len() < SAMPLE
        && let Some(block) = cutter.next()?
    {
        for record in records(layout, &block.bytes) {
            let text = &block.bytes[record.clone()];
            let value = serde_json::from_slice::<Value>(text);
            let value = value.map_err(|error| malformed(&block, record.start, text, &error))?;
            if !value.is_object() {
                return Err(no_object(&block, record.start, text));
            }
            values.push(value);
            members.note(text);
        }
    }
    if values.is_empty() {
        return Err(FileError::new(
            path,
            FileFaultKind::NoRecords("no objects in it"),
        ));
    }
    let inferred = infer_json_schema_from_iterator(values.iter().map(Ok));
    let inferred =
        inferred.map_err(|error| FileError::new(path, FileFaultKind::unreadable(error)))?;
    if inferred.fields().is_empty() {
        return Err(FileError::new(
            path,
            FileFaultKind::NoRecords("its objects have no members"),
        ));
    }
    let mut fields: Vec<_> = inferred.fields().iter().collect();
    fields.sort_by_key(|field| members.0.iter().position(|member| member == field.name()));
    let columns = fields.into_iter().map(|field| FileColumn {
        field: Arc::new(Field::new(field.name(), refined(field, &values), true)),
        max_characters: None,
    });
    Ok(columns.collect())
}

/// The members' names in order of appearance, which a parsed object does not keep.
#[derive(Default)]
struct Members(Vec<String>);

impl Members {
    fn note(&mut self, object: &[u8]) {
        // It has been parsed before.
        let _ = self.deserialize(&mut serde_json::Deserializer::from_slice(object));
    }
}

impl<'de> DeserializeSeed<'de> for &mut Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            if !self.0.contains(&name) {
                self.0.push(name);
            }
        }
        Ok(())
    }
}

/// The type of a member: of texts, that of the dates or timestamps they may be.
fn refined(field: &Field, values: &[Value]) -> DataType {
    match field.data_type() {
        DataType::Null => DataType::Utf8View,
        DataType::Utf8 => {
            let formats = ValueFormats::default();
            let texts = values
                .iter()
                .filter_map(|value| match value.get(field.name()) {
                    None | Some(Value::Null) => None,
                    Some(Value::String(text)) => Some(text.as_str()),
                    Some(_) => Some(""),
                });
            let mut kinds =
                texts.map(|text| ValueKind::of_time(text, &formats).unwrap_or(ValueKind::Text));
            let first = kinds.next().unwrap_or(ValueKind::Text);
            kinds.fold(first, ValueKind::join).data_type()
        }
        other => other.clone(),
    }
}

/// The places of the records in a block.
fn records(layout: JsonLayout, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    match layout {
        JsonLayout::Free => objects(bytes).collect(),
        JsonLayout::Lines => {
            let mut start = 0;
            let lines = bytes.split(|byte| *byte == b'\n').map(|line| {
                let range = start..start + line.len();
                start += line.len() + 1;
                range
            });
            lines
                .filter(|line| !bytes[line.clone()].trim_ascii().is_empty())
                .collect()
        }
    }
}

fn malformed(block: &Block, at: usize, text: &[u8], error: &serde_json::Error) -> FileError {
    let shown = shortened(&String::from_utf8_lossy(text));
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = said.strip_suffix(&place).unwrap_or(&said).to_owned();
    let line = block.line_at(at) + error.line().saturating_sub(1) as u64;
    let kind = FileFaultKind::MalformedJson {
        character: error.column(),
        reason,
        shown,
    };
    FileError::line(&block.path, line, kind)
}

fn no_object(block: &Block, at: usize, text: &[u8]) -> FileError {
    let shown = shortened(&String::from_utf8_lossy(text));
    block.error(at, FileFaultKind::NoObject { shown })
}

fn stray(block: &Block, at: usize) -> FileError {
    block.error(at, FileFaultKind::StrayComma)
}

/// The first comma that separates nothing, in what is between two objects or behind the last of all.
fn stray_comma(between: &[u8], is_last: bool) -> Option<usize> {
    let mut marks = between
        .iter()
        .enumerate()
        .filter(|(_, byte)| b",[]".contains(byte));
    let mut previous = None;
    let stray = marks.find_map(|(at, mark)| {
        let before = previous.replace((at, *mark));
        match (before, mark) {
            (Some((comma, b',')), _) => Some(comma),
            (Some((_, b'[')), b',') => Some(at),
            _ => None,
        }
    });
    match previous {
        Some((comma, b',')) if is_last && stray.is_none() => Some(comma),
        _ => stray,
    }
}

impl RecordParser for JsonFiles {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, FileError> {
        let columns: Vec<FileColumn> = projection
            .iter()
            .map(|&at| self.columns[at].clone())
            .collect();
        let text = self.text(block)?;
        let rows = memchr::memchr_iter(b'\n', &text).count() + 2;
        // Rows are counted by any column, if none is wanted.
        let decoded = if columns.is_empty() {
            &self.columns[..1]
        } else {
            &columns[..]
        };
        let batch = decode(&text, decoded, rows).map_err(|()| self.fault(block, decoded))?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let mut arrays = Vec::with_capacity(columns.len());
        for (column, array) in columns.iter().zip(batch.columns()) {
            let nulls = array.null_count() > 0 && !column.field.is_nullable();
            if nulls
                || column
                    .max_characters
                    .is_some_and(|most| is_longer(array, most))
            {
                return Err(self.fault(block, decoded));
            }
            arrays.push(Arc::clone(array));
        }
        RecordBatch::try_new_with_options(schema(&columns), arrays, &options)
            .map_err(|error| FileError::new(&block.path, FileFaultKind::unreadable(error)))
    }
}

impl JsonFiles {
    /// The text as objects one behind the other.
    fn text<'a>(&self, block: &'a Block) -> Result<std::borrow::Cow<'a, [u8]>, FileError> {
        if self.layout == JsonLayout::Lines {
            return Ok(block.bytes.as_slice().into());
        }
        let mut text = Vec::with_capacity(block.bytes.len());
        let mut end = 0;
        let between = |from: usize, to: usize| {
            let rest = &block.bytes[from..to];
            if let Some(at) = rest.iter().position(|byte| !b" \t\r\n,[]".contains(byte)) {
                return Err(no_object(block, from + at, &rest[at..]));
            }
            let is_last = to == block.bytes.len();
            stray_comma(rest, is_last).map_or(Ok(()), |at| Err(stray(block, from + at)))
        };
        for object in objects(&block.bytes) {
            between(end, object.start)?;
            end = object.end;
            text.extend_from_slice(&block.bytes[object]);
            text.push(b'\n');
        }
        between(end, block.bytes.len())?;
        Ok(text.into())
    }

    /// The first fault of a block in which there is one: found by reading it again, record by record and value by value.
    fn fault(&self, block: &Block, columns: &[FileColumn]) -> FileError {
        for record in records(self.layout, &block.bytes) {
            let text = &block.bytes[record.clone()];
            let value = match serde_json::from_slice::<Value>(text) {
                Ok(value) => value,
                Err(error) => return malformed(block, record.start, text, &error),
            };
            if !value.is_object() {
                return no_object(block, record.start, text);
            }
            for column in columns {
                let member = value.get(column.field.name());
                let shown = match member {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                let misfit = match decode(text, std::slice::from_ref(column), 1) {
                    Err(()) => Misfit::Type,
                    Ok(batch)
                        if batch.num_rows() == 1
                            && batch.column(0).is_null(0)
                            && !column.field.is_nullable() =>
                    {
                        Misfit::Null
                    }
                    Ok(batch)
                        if column
                            .max_characters
                            .is_some_and(|most| is_longer(batch.column(0), most)) =>
                    {
                        Misfit::Long
                    }
                    Ok(_) => continue,
                };
                let number = self
                    .columns
                    .iter()
                    .position(|other| other.field.name() == column.field.name());
                let column = (number.unwrap_or(0), column);
                return block.misfit(record.start, column, &shown, misfit, self.origin);
            }
        }
        FileError::new(&block.path, FileFaultKind::NoJson)
    }
}

fn is_longer(array: &dyn Array, most: u64) -> bool {
    array.as_string_view_opt().is_some_and(|texts| {
        texts
            .iter()
            .flatten()
            .any(|text| text.len() as u64 > most && text.chars().count() as u64 > most)
    })
}

/// The objects' members as columns; whatever is wrong is found out by [`JsonFiles::fault`].
fn decode(text: &[u8], columns: &[FileColumn], rows: usize) -> Result<RecordBatch, ()> {
    // NULLs are looked for afterwards.
    let fields = columns
        .iter()
        .map(|column| column.field.as_ref().clone().with_nullable(true));
    let target = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    // Integers come as they are written: the decoder would cut off their fractions.
    let written = target.fields().iter().map(|field| match field.data_type() {
        of if of.is_integer() => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        _ => Arc::clone(field),
    });
    let written = Arc::new(Schema::new(written.collect::<Vec<_>>()));
    let decoder = ReaderBuilder::new(Arc::clone(&written))
        .with_batch_size(rows)
        .with_coerce_primitive(true);
    let mut decoder = decoder.build_decoder().map_err(drop)?;
    let mut batches = Vec::new();
    let mut at = 0;
    while at < text.len() {
        at += decoder.decode(&text[at..]).map_err(drop)?;
        if at < text.len() {
            batches.extend(decoder.flush().map_err(drop)?);
        }
    }
    batches.extend(decoder.flush().map_err(drop)?);
    let batch = datafusion::arrow::compute::concat_batches(&written, &batches).map_err(drop)?;
    let arrays = batch.columns().iter().zip(target.fields());
    let arrays = arrays.map(|(array, field)| match field.data_type() {
        of if of.is_integer() => integers(array.as_string_view(), of),
        of => cast(array, of).map_err(drop),
    });
    RecordBatch::try_new(Arc::clone(&target), arrays.collect::<Result<_, _>>()?).map_err(drop)
}

/// Texts as integers of this type.
fn integers(texts: &StringViewArray, data_type: &DataType) -> Result<ArrayRef, ()> {
    fn of<T: ArrowPrimitiveType>(texts: &StringViewArray) -> Result<ArrayRef, ()>
    where
        T::Native: std::str::FromStr + TryFrom<i128>,
    {
        let values = texts.iter().map(|text| {
            let value = text.map(|text| whole::<T::Native>(text).ok_or(()));
            value.transpose()
        });
        Ok(Arc::new(values.collect::<Result<PrimitiveArray<T>, ()>>()?))
    }
    macro_rules! of_type {
        ($type:ty, $texts:ident) => {
            of::<$type>($texts)
        };
    }
    downcast_integer! {
        data_type => (of_type, texts),
        _ => Err(()),
    }
}
