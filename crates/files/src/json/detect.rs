//! Finding out what a JSON file is like, from its first objects: their layout, and names and types of columns.

use super::JsonFiles;
use super::fault::{malformed, no_object};
use super::layout::JsonLayout;
use crate::blocks::{Cutting, SAMPLE, TextSource};
use crate::column::FileColumn;
use crate::encoding::TextCoding;
use crate::error::{FileError, FileFaultKind, TypeOrigin};
use crate::kind::ValueKind;
use crate::values::ValueFormats;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::json::reader::infer_json_schema_from_iterator;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::sync::Arc;

/// What the file is like, as columns that are found or given; the other files have to be alike. Columns are found in a
/// sample of these others, too.
pub(crate) fn inspect<'a>(
    source: &'a TextSource,
    others: impl IntoIterator<Item = &'a TextSource>,
    coding: TextCoding,
    given: Option<&[FileColumn]>,
) -> Result<(JsonFiles, Cutting), FileError> {
    let layout = layout_of(source, coding)?;
    let cutting = layout.cutting(coding);
    let (columns, origin) = match given {
        Some(columns) => (columns.to_vec(), TypeOrigin::Given),
        None => {
            let sources: Vec<_> = [source].into_iter().chain(others).collect();
            (found(&sources, &cutting, layout)?, TypeOrigin::Objects)
        }
    };
    let json = JsonFiles {
        columns,
        origin,
        layout,
    };
    Ok((json, cutting))
}

/// Lines, if the first line that is not blank is an object.
fn layout_of(source: &TextSource, coding: TextCoding) -> Result<JsonLayout, FileError> {
    let lines = JsonLayout::Lines.cutting(coding);
    let mut cutter = source.cut_sample(&lines)?;
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

/// Columns as the first objects have them.
fn found(
    sources: &[&TextSource],
    cutting: &Cutting,
    layout: JsonLayout,
) -> Result<Vec<FileColumn>, FileError> {
    let mut values = Vec::new();
    let mut members = MemberNames::default();
    for (number, source) in sources.iter().enumerate() {
        let mut cutter = source.cut_sample(cutting)?;
        let enough = (number + 1) * SAMPLE / sources.len();
        while values.len() < enough
            && let Some(block) = cutter.next()?
        {
            for record in layout.records(&block.bytes) {
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
    }
    let fault = |kind| FileError::new(sources[0].path(), kind);
    if values.is_empty() {
        return Err(fault(FileFaultKind::NoRecords("no objects in it")));
    }
    let inferred = infer_json_schema_from_iterator(values.iter().map(Ok));
    let inferred = inferred.map_err(|error| fault(FileFaultKind::unreadable(error)))?;
    if inferred.fields().is_empty() {
        let kind = FileFaultKind::NoRecords("its objects have no members");
        return Err(fault(kind));
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
struct MemberNames(Vec<String>);

impl MemberNames {
    fn note(&mut self, object: &[u8]) {
        // It has been parsed before.
        let _ = self.deserialize(&mut serde_json::Deserializer::from_slice(object));
    }
}

impl<'de> DeserializeSeed<'de> for &mut MemberNames {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut MemberNames {
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
                texts.map(|text| ValueKind::of_time(text, &formats).unwrap_or(ValueKind::String));
            let first = kinds.next().unwrap_or(ValueKind::String);
            kinds.fold(first, ValueKind::join).data_type()
        }
        other => other.clone(),
    }
}
