//! JSON: one object after the other, line by line or not, or an array of objects.
//!
//! ```text
//! {"a": 1}⏎{"a": 2}⏎               lines: a block ends with a line
//! [ {"a": 1}, {"a": 2} ]            an array: its brackets and commas become blanks, a block ends with an object
//! ```

use super::blocks::{BLOCK, Block, Boundary, Cutter, Cutting};
use super::column::{Column, Misfit, bad_line, bad_value, schema, shortened};
use super::compression::Compression;
use super::csv::Reading;
use super::failed;
use super::kind::Kind;
use super::scan::Parser;
use crate::error::SqlError;
use crate::progress::Progress;
use datafusion::arrow::array::Array;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
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
enum Layout {
    Lines,
    /// Objects that span lines, or an array of them.
    Free,
}

/// JSON files with all that is known of them.
#[derive(Debug)]
pub(super) struct Json {
    pub columns: Vec<Column>,
    sampled: bool,
    layout: Layout,
}

impl Boundary for Layout {
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Layout::Lines => memchr::memrchr(b'\n', bytes).map(|at| at + 1),
            Layout::Free => objects(bytes).last().map(|object| object.end),
        }
    }

    fn endless(&self, most: usize) -> String {
        format!("no end of the object within {most} bytes")
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

fn cutting(layout: Layout, compression: Option<Compression>) -> Cutting {
    Cutting {
        boundary: Arc::new(layout),
        compression,
        skip: 0,
        most: MOST,
        block: BLOCK,
    }
}

/// What the file is like, as columns that are found or given; the other files have to be alike.
pub(super) fn inspect(
    path: &Path,
    compression: Option<Compression>,
    given: Option<&[Column]>,
) -> Result<(Json, Cutting), SqlError> {
    let layout = layout(path, compression)?;
    let cutting = cutting(layout, compression);
    let (columns, sampled) = match given {
        Some(columns) => (columns.to_vec(), false),
        None => (found(path, cutting.clone(), layout)?, true),
    };
    let json = Json {
        columns,
        sampled,
        layout,
    };
    Ok((json, cutting))
}

/// Lines, if the first line that is not blank is an object.
fn layout(path: &Path, compression: Option<Compression>) -> Result<Layout, SqlError> {
    let mut cutter = Cutter::open(
        path,
        cutting(Layout::Lines, compression),
        Progress::default(),
    )?;
    // Without a line end in so many bytes, it is one line or none.
    let Ok(Some(block)) = cutter.next() else {
        return Ok(Layout::Free);
    };
    let mut lines = block.bytes.split(|byte| *byte == b'\n');
    let line = lines
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default();
    let is_object = serde_json::from_slice::<Value>(line).is_ok_and(|value| value.is_object());
    let broken = line.trim_ascii().starts_with(b"{") && line.trim_ascii().ends_with(b"}");
    Ok(if is_object || broken {
        Layout::Lines
    } else {
        Layout::Free
    })
}

fn found(path: &Path, cutting: Cutting, layout: Layout) -> Result<Vec<Column>, SqlError> {
    let mut cutter = Cutter::open(path, cutting, Progress::default())?;
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
    let name = path.to_string_lossy();
    if values.is_empty() {
        return Err(failed(&name, "no objects in it, so it has no columns"));
    }
    let inferred = infer_json_schema_from_iterator(values.iter().map(Ok));
    let inferred = inferred.map_err(|error| failed(&name, error))?;
    if inferred.fields().is_empty() {
        return Err(failed(
            &name,
            "its objects have no members, so it has no columns",
        ));
    }
    let mut fields: Vec<_> = inferred.fields().iter().collect();
    fields.sort_by_key(|field| members.0.iter().position(|member| member == field.name()));
    let columns = fields.into_iter().map(|field| Column {
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
            let reading = Reading::default();
            let texts = values
                .iter()
                .filter_map(|value| match value.get(field.name()) {
                    None | Some(Value::Null) => None,
                    Some(Value::String(text)) => Some(text.as_str()),
                    Some(_) => Some(""),
                });
            let mut kinds = texts.map(|text| Kind::of_time(text, &reading).unwrap_or(Kind::Text));
            let first = kinds.next().unwrap_or(Kind::Text);
            kinds.fold(first, Kind::join).data_type()
        }
        other => other.clone(),
    }
}

/// The places of the records in a block.
fn records(layout: Layout, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    match layout {
        Layout::Free => objects(bytes).collect(),
        Layout::Lines => {
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

fn malformed(block: &Block, at: usize, text: &[u8], error: &serde_json::Error) -> SqlError {
    let shown = shortened(&String::from_utf8_lossy(text));
    let reason = error.to_string();
    let reason = reason
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned();
    let line = block.line_at(at) + error.line().saturating_sub(1) as u64;
    let column = error.column();
    bad_line(
        &block.path,
        line,
        format!("character {column}: {reason}: '{shown}'"),
    )
    .with_hint(Some("each record has to be one JSON object"))
}

fn no_object(block: &Block, at: usize, text: &[u8]) -> SqlError {
    let shown = shortened(&String::from_utf8_lossy(text));
    bad_line(
        &block.path,
        block.line_at(at),
        format!("no JSON object: '{shown}'"),
    )
    .with_hint(Some(
        "each record has to be one object, such as {\"a\": 1, \"b\": \"x\"}",
    ))
}

impl Parser for Json {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, SqlError> {
        let columns: Vec<Column> = projection
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
            .map_err(|error| failed(&block.path.to_string_lossy(), error))
    }
}

impl Json {
    /// The text as objects one behind the other.
    fn text<'a>(&self, block: &'a Block) -> Result<std::borrow::Cow<'a, [u8]>, SqlError> {
        if self.layout == Layout::Lines {
            return Ok(block.bytes.as_slice().into());
        }
        let mut text = Vec::with_capacity(block.bytes.len());
        let mut end = 0;
        let between = |from: usize, to: usize| {
            let rest = &block.bytes[from..to];
            let other = rest.iter().position(|byte| !b" \t\r\n,[]".contains(byte));
            other.map_or(Ok(()), |at| Err(no_object(block, from + at, &rest[at..])))
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
    fn fault(&self, block: &Block, columns: &[Column]) -> SqlError {
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
                let line = block.line_at(record.start);
                let error = bad_value(
                    &block.path,
                    line,
                    number.unwrap_or(0) + 1,
                    column,
                    &shown,
                    misfit,
                );
                return if self.sampled {
                    error.with_hint(Some("the types were found in the file's first objects; COPY into a table with other types"))
                } else {
                    error
                };
            }
        }
        failed(&block.path.to_string_lossy(), "it is no JSON")
    }
}

fn is_longer(array: &dyn Array, most: u64) -> bool {
    use datafusion::arrow::array::AsArray;
    array.as_string_view_opt().is_some_and(|texts| {
        texts
            .iter()
            .flatten()
            .any(|text| text.len() as u64 > most && text.chars().count() as u64 > most)
    })
}

/// The objects' members as columns; whatever is wrong is found out by [`Json::fault`].
fn decode(text: &[u8], columns: &[Column], rows: usize) -> Result<RecordBatch, ()> {
    // NULLs are looked for afterwards.
    let fields = columns
        .iter()
        .map(|column| column.field.as_ref().clone().with_nullable(true));
    let target = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let decoder = ReaderBuilder::new(Arc::clone(&target))
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
    let batch = datafusion::arrow::compute::concat_batches(&target, &batches).map_err(drop)?;
    let arrays = batch.columns().iter().zip(target.fields());
    let arrays = arrays.map(|(array, field)| cast(array, field.data_type()).map_err(drop));
    RecordBatch::try_new(Arc::clone(&target), arrays.collect::<Result<_, _>>()?).map_err(drop)
}
