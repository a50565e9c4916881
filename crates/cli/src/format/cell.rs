//! The text of single values, which all formats share.

use super::FormatError;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use eris_sql::{VALUE_FORMAT, formatter};
use std::ops::Range;

/// Errors are returned, not printed into the result.
const OPTIONS: FormatOptions<'static> = VALUE_FORMAT.with_display_error(false);

/// How a value is written, which its type decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers, decimals and floats: right-aligned, bare in JSON.
    Number,
    /// `true` and `false`, bare in JSON.
    Boolean,
    /// Lists, structures and maps: a JSON value within JSON.
    Nested,
    /// Everything else.
    Text,
}

impl Kind {
    /// The kind of a type's values.
    pub fn of(data_type: &DataType) -> Kind {
        match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
            | DataType::Map(..) => Kind::Nested,
            DataType::Dictionary(_, value) => Kind::of(value),
            numeric if numeric.is_numeric() => Kind::Number,
            _ => Kind::Text,
        }
    }
}

/// The values of one array as text.
pub struct Cells<'a> {
    array: &'a dyn Array,
    kind: Kind,
    nulls: Option<NullBuffer>,
    formatter: ArrayFormatter<'a>,
}

impl<'a> Cells<'a> {
    /// The cells of `array`.
    pub fn new(array: &'a dyn Array) -> Result<Self, FormatError> {
        Ok(Cells {
            array,
            kind: Kind::of(array.data_type()),
            nulls: array.logical_nulls(),
            formatter: formatter(array, &OPTIONS)?,
        })
    }

    /// The cells of all columns.
    pub fn of(batch: &'a RecordBatch) -> Result<Vec<Self>, FormatError> {
        let columns = batch.columns().iter();
        columns.map(|array| Cells::new(array)).collect()
    }

    /// The array behind the cells.
    pub fn array(&self) -> &'a dyn Array {
        self.array
    }

    /// How these values are written.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the value is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The word for a float that is not a number or not finite.
    pub fn non_finite(&self, row: usize) -> Option<&'static str> {
        let value = match self.array.data_type() {
            DataType::Float64 => self.array.as_primitive::<Float64Type>().value(row),
            DataType::Float32 => self.array.as_primitive::<Float32Type>().value(row).into(),
            _ => return None,
        };
        match value {
            _ if value.is_finite() => None,
            _ if value.is_nan() => Some("NaN"),
            _ if value > 0.0 => Some("Infinity"),
            _ => Some("-Infinity"),
        }
    }

    /// Replaces `text` by the value's text; nothing for NULL.
    pub fn read(&self, row: usize, text: &mut String) -> Result<(), FormatError> {
        text.clear();
        if self.is_null(row) {
            return Ok(());
        }
        match self.non_finite(row) {
            Some(word) => text.push_str(word),
            None => self.formatter.value(row).write(text)?,
        }
        Ok(())
    }
}

/// A value as people see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its text, on one line; that of the layout for NULL.
    pub text: String,
    /// Whether it is NULL, which the text alone may not tell.
    pub null: bool,
}

/// Some rows of a batch for people.
pub fn rows(
    batch: &RecordBatch,
    range: Range<usize>,
    null: &str,
) -> Result<Vec<Vec<Cell>>, FormatError> {
    let columns = Cells::of(batch)?;
    let mut text = String::new();
    let mut rows = Vec::with_capacity(range.len());
    for row in range {
        let mut cells = Vec::with_capacity(columns.len());
        for column in &columns {
            column.read(row, &mut text)?;
            let is_null = column.is_null(row);
            cells.push(Cell {
                text: printable(if is_null { null } else { &text }),
                null: is_null,
            });
        }
        rows.push(cells);
    }
    Ok(rows)
}

/// The text without anything that moves a terminal's cursor.
pub fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::test_support::every_kind;
    use arrow::array::{DictionaryArray, Float32Array, Int64Array, NullArray, StringArray};
    use arrow::datatypes::Int32Type;

    fn texts(array: &dyn Array) -> Vec<String> {
        let cells = Cells::new(array).expect("printable");
        let mut text = String::from("rest of an earlier cell");
        (0..array.len())
            .map(|row| {
                cells.read(row, &mut text).expect("printable");
                text.clone()
            })
            .collect()
    }

    #[test]
    fn values_are_exact_and_iso_8601() {
        let batch = every_kind();
        let first: Vec<String> = batch
            .columns()
            .iter()
            .map(|c| texts(c)[0].clone())
            .collect();
        assert_eq!(
            first,
            [
                "true",
                "-9223372036854775808",
                "18446744073709551615",
                "-12.50",
                "0.1",
                "Ünï",
                "1994-01-01",
                "1994-01-01 08:30:00.500",
                "1994-01-01 08:30:00+00:00",
            ]
        );
        for column in batch.columns() {
            assert!(Cells::new(column).expect("printable").is_null(1));
            assert_eq!(texts(column)[1], "");
        }
    }

    #[test]
    fn floats_that_are_not_numbers_have_words() {
        let array = Float32Array::from(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.5]);
        assert_eq!(texts(&array), ["NaN", "Infinity", "-Infinity", "1.5"]);
    }

    #[test]
    fn a_dictionary_is_what_its_values_are() {
        let array: DictionaryArray<Int32Type> =
            vec![Some("a"), None, Some("a")].into_iter().collect();
        let cells = Cells::new(&array).expect("printable");
        assert_eq!(cells.kind(), Kind::Text);
        assert!(cells.is_null(1) && !cells.is_null(2));

        let values = Int64Array::from(vec![Some(7), None]);
        let keys = arrow::array::Int32Array::from(vec![0, 1]);
        let array = DictionaryArray::new(keys, std::sync::Arc::new(values));
        let cells = Cells::new(&array).expect("printable");
        assert_eq!(cells.kind(), Kind::Number);
        assert!(cells.is_null(1), "a key that leads to a NULL value is NULL");
    }

    #[test]
    fn a_column_without_type_is_all_null() {
        let array = NullArray::new(2);
        assert!(Cells::new(&array).expect("printable").is_null(1));
        assert_eq!(
            Kind::of(StringArray::from(vec!["x"]).data_type()),
            Kind::Text
        );
    }
}
