//! How values are written for people, in the shell and in CSV files.
//!
//! Strings within lists, structs and maps stand in quotes where they would be read as something else without:
//! `[a, 'b, c', '', NULL]`.

use crate::values::{TIMESTAMP, TIMESTAMP_ZONED};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{
    ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult,
};
use std::fmt::Write;

/// NULL within lists, structs and maps.
const NULL: &str = "NULL";

/// How values are written.
pub const VALUE_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_null(NULL)
    .with_timestamp_format(Some(TIMESTAMP))
    .with_timestamp_tz_format(Some(TIMESTAMP_ZONED))
    .with_formatter_factory(Some(&NestedStrings));

#[derive(Debug)]
struct NestedStrings;

impl ArrayFormatterFactory for NestedStrings {
    /// Only what is within other values comes with its field.
    fn create_array_formatter<'formatter>(
        &self,
        array: &'formatter dyn Array,
        options: &FormatOptions<'formatter>,
        field: Option<&'formatter Field>,
    ) -> Result<Option<ArrayFormatter<'formatter>>, ArrowError> {
        let is_string = matches!(
            array.data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        );
        if !is_string || field.is_none() {
            return Ok(None);
        }
        let strings = Box::new(QuotedStrings(array));
        Ok(Some(ArrayFormatter::new(strings, options.safe())))
    }
}

struct QuotedStrings<'a>(&'a dyn Array);

impl QuotedStrings<'_> {
    fn value(&self, row: usize) -> &str {
        match self.0.data_type() {
            DataType::Utf8 => self.0.as_string::<i32>().value(row),
            DataType::LargeUtf8 => self.0.as_string::<i64>().value(row),
            _ => self.0.as_string_view().value(row),
        }
    }
}

impl DisplayIndex for QuotedStrings<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.0.is_null(row) {
            return Ok(f.write_str(NULL)?);
        }
        let value = self.value(row);
        if !needs_quotes(value) {
            return Ok(f.write_str(value)?);
        }
        f.write_char('\'')?;
        for character in value.chars() {
            if matches!(character, '\'' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(character)?;
        }
        Ok(f.write_char('\'')?)
    }
}

fn needs_quotes(value: &str) -> bool {
    let special = [',', ':', '=', '[', ']', '{', '}', '(', ')', '"', '\'', '\\'];
    value.is_empty()
        || value.eq_ignore_ascii_case(NULL)
        || value.trim().len() < value.len()
        || value.contains(special)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ListBuilder, StringViewBuilder};

    #[test]
    fn elements_of_lists_print_apart() {
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        lists.append_value([
            Some("a"),
            Some("b, c"),
            Some(""),
            None,
            Some("null"),
            Some("it's"),
        ]);
        lists.append_value([None::<&str>]);
        lists.append_value([None::<&str>; 0]);
        let lists = lists.finish();
        let formatter = ArrayFormatter::try_new(&lists, &VALUE_FORMAT).unwrap();
        let shown: Vec<String> = (0..3).map(|row| formatter.value(row).to_string()).collect();
        assert_eq!(
            shown,
            ["[a, 'b, c', '', NULL, 'null', 'it\\'s']", "[NULL]", "[]"]
        );
    }
}
