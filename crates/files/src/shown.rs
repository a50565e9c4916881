//! How values are written for people, in the shell and in CSV files.
//!
//! Types whose values SQL writes in another way than Arrow have [their own text](eris_exact::text).
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
use eris_exact::text::{has_own_text, write_value};
use std::fmt::Write;

/// NULL within lists, structs and maps.
const NULL: &str = "NULL";

/// How values are written.
pub const VALUE_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_null(NULL)
    .with_timestamp_format(Some(TIMESTAMP))
    .with_timestamp_tz_format(Some(TIMESTAMP_ZONED))
    .with_formatter_factory(Some(&OwnTexts));

/// What shows the values of an array.
///
/// # Errors
/// The options are wrong for its type.
pub fn formatter<'a>(
    array: &'a dyn Array,
    options: &FormatOptions<'a>,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    if has_own_text(array.data_type()) {
        let values = Box::new(OwnText(array, options.null()));
        return Ok(ArrayFormatter::new(values, options.safe()));
    }
    ArrayFormatter::try_new(array, options)
}

#[derive(Debug)]
struct OwnTexts;

impl ArrayFormatterFactory for OwnTexts {
    /// Is asked for what is within other values alone, which comes with its field.
    fn create_array_formatter<'formatter>(
        &self,
        array: &'formatter dyn Array,
        options: &FormatOptions<'formatter>,
        field: Option<&'formatter Field>,
    ) -> Result<Option<ArrayFormatter<'formatter>>, ArrowError> {
        if has_own_text(array.data_type()) {
            return formatter(array, options).map(Some);
        }
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

struct OwnText<'a>(&'a dyn Array, &'a str);

impl DisplayIndex for OwnText<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        match self.0.is_null(row) {
            true => f.write_str(self.1)?,
            false => write_value(f, self.0, row)?,
        }
        Ok(())
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
        let formatter = formatter(&lists, &VALUE_FORMAT).unwrap();
        let shown: Vec<String> = (0..3).map(|row| formatter.value(row).to_string()).collect();
        assert_eq!(
            shown,
            ["[a, 'b, c', '', NULL, 'null', 'it\\'s']", "[NULL]", "[]"]
        );
    }
}
