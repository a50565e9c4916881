//! JSON, as one array of objects per statement or one object per line.
//!
//! ```text
//! json    [            jsonl    {"year":1994,"revenue":12.50}
//!         {"year":…},           {"year":1995,"revenue":null}
//!         {"year":…}
//!         ]
//! ```
//!
//! Numbers are written with all their digits, even those that a reader's double would round. JSON has no word for NaN
//! and infinities: they are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, so that they cannot be taken for NULL.
//! A column name that occurs again in a result gets a suffix (`id`, `id_2`), for an object has each name once.

use super::cell::{Cells, Kind};
use super::{FormatError, ResultWriter};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use std::collections::HashSet;
use std::io::Write;

/// Writes one result as JSON.
pub struct JsonWriter<W> {
    out: W,
    /// The array's brackets and commas around and between the objects.
    array: bool,
    rows: u64,
    /// Per column `"name":`, escaped.
    keys: Vec<String>,
    line: String,
}

impl<W: Write> JsonWriter<W> {
    /// One array of all rows.
    pub fn array(out: W) -> Self {
        JsonWriter {
            out,
            array: true,
            rows: 0,
            keys: Vec::new(),
            line: String::new(),
        }
    }

    /// One object per line.
    pub fn lines(out: W) -> Self {
        JsonWriter {
            array: false,
            ..Self::array(out)
        }
    }
}

impl<W: Write> ResultWriter for JsonWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        let mut taken = HashSet::new();
        for field in schema.fields() {
            let mut name = field.name().clone();
            let mut copy = 1;
            while !taken.insert(name.clone()) {
                copy += 1;
                name = format!("{}_{copy}", field.name());
            }
            let mut key = String::new();
            push_string(&mut key, &name);
            key.push(':');
            self.keys.push(key);
        }
        if self.array {
            self.out.write_all(b"[")?;
        }
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let columns = Cells::of(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            if self.array {
                self.line
                    .push_str(if self.rows == 0 { "\n" } else { ",\n" });
            }
            for (index, cells) in columns.iter().enumerate() {
                self.line.push(if index == 0 { '{' } else { ',' });
                self.line.push_str(&self.keys[index]);
                push_value(&mut self.line, cells, row)?;
            }
            self.line
                .push_str(if columns.is_empty() { "{}" } else { "}" });
            if !self.array {
                self.line.push('\n');
            }
            self.out.write_all(self.line.as_bytes())?;
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FormatError> {
        if self.array {
            self.out
                .write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        }
        Ok(())
    }
}

/// Appends a value of any type.
fn push_value(line: &mut String, cells: &Cells<'_>, row: usize) -> Result<(), FormatError> {
    if cells.is_null(row) {
        line.push_str("null");
        return Ok(());
    }
    match cells.kind() {
        Kind::Nested => return push_nested(line, cells.array(), row),
        Kind::Number | Kind::Boolean if cells.non_finite(row).is_none() => {
            let mut text = String::new();
            cells.read(row, &mut text)?;
            line.push_str(&text);
        }
        _ => {
            let mut text = String::new();
            cells.read(row, &mut text)?;
            push_string(line, &text);
        }
    }
    Ok(())
}

/// Appends a list, structure or map; a map is a list of its entries, because its keys need not be strings.
fn push_nested(line: &mut String, array: &dyn Array, row: usize) -> Result<(), FormatError> {
    let items = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().value(row),
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(row),
        DataType::Map(..) => std::sync::Arc::new(array.as_map().value(row)),
        _ => {
            let structure = array.as_struct();
            line.push('{');
            for (index, field) in structure.fields().iter().enumerate() {
                if index > 0 {
                    line.push(',');
                }
                push_string(line, field.name());
                line.push(':');
                push_value(line, &Cells::new(structure.column(index))?, row)?;
            }
            line.push('}');
            return Ok(());
        }
    };
    let cells = Cells::new(&items)?;
    line.push('[');
    for item in 0..items.len() {
        if item > 0 {
            line.push(',');
        }
        push_value(line, &cells, item)?;
    }
    line.push(']');
    Ok(())
}

/// Appends a JSON string with its quotes.
fn push_string(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use crate::format::Format;
    use crate::format::test_support::{batch, every_kind, no_rows, print};
    use arrow::array::{ArrayRef, Float64Array, Int32Array, ListArray, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field, Int32Type};
    use std::sync::Arc;

    const FIRST: &str = "{\"flag\":true,\"big\":-9223372036854775808,\"huge\":18446744073709551615,\
        \"price\":-12.50,\"ratio\":0.1,\"name\":\"Ünï\",\"day\":\"1994-01-01\",\
        \"moment\":\"1994-01-01 08:30:00.500\",\"instant\":\"1994-01-01 08:30:00+00:00\"}";
    const NULLS: &str = "{\"flag\":null,\"big\":null,\"huge\":null,\"price\":null,\"ratio\":null,\
        \"name\":null,\"day\":null,\"moment\":null,\"instant\":null}";

    #[test]
    fn lines_are_objects_with_every_digit() {
        assert_eq!(
            print(Format::Jsonl, &[every_kind()]),
            format!("{FIRST}\n{NULLS}\n")
        );
    }

    #[test]
    fn an_array_continues_over_batches_and_is_valid_json() {
        let text = print(Format::Json, &[every_kind(), every_kind()]);
        assert_eq!(
            text,
            format!("[\n{FIRST},\n{NULLS},\n{FIRST},\n{NULLS}\n]\n")
        );
        let parsed: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
        assert_eq!(parsed.as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn no_rows_are_an_empty_array_or_no_lines() {
        assert_eq!(print(Format::Json, &[no_rows()]), "[]\n");
        assert_eq!(print(Format::Jsonl, &[no_rows()]), "");
    }

    #[test]
    fn what_is_not_a_number_is_a_string_and_not_null() {
        let values = Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300]);
        let batch = batch(vec![("x", Arc::new(values))]);
        assert_eq!(
            print(Format::Jsonl, &[batch]),
            "{\"x\":\"NaN\"}\n{\"x\":\"Infinity\"}\n{\"x\":\"-Infinity\"}\n{\"x\":1e300}\n"
        );
    }

    #[test]
    fn text_and_names_are_escaped_and_names_are_unique() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a\"\\\n\u{1}"]));
        let batch = batch(vec![
            ("q\"", texts.clone()),
            ("x", texts.clone()),
            ("x", texts),
        ]);
        let line = print(Format::Jsonl, &[batch]);
        assert_eq!(line.matches(r#""a\"\\\n\u0001""#).count(), 3, "{line}");
        for key in [r#""q\"":"#, r#""x":"#, r#""x_2":"#] {
            assert!(line.contains(key), "{line}");
        }
    }

    #[test]
    fn lists_and_structures_stay_json() {
        let list =
            ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
        let number: ArrayRef = Arc::new(Int32Array::from(vec![5]));
        let structure = StructArray::from(vec![(
            Arc::new(Field::new("n", DataType::Int32, true)),
            number,
        )]);
        let batch = batch(vec![("l", Arc::new(list)), ("s", Arc::new(structure))]);
        assert_eq!(
            print(Format::Jsonl, &[batch]),
            "{\"l\":[1,null],\"s\":{\"n\":5}}\n"
        );
    }
}
