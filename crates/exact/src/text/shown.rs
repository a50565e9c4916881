//! How values are written for people: in the shell, in CSV files, and where lists, structs and maps become strings.
//!
//! Types whose values SQL writes in another way than Arrow have [their own text](super). Lists, structs and maps are
//! written as in DuckDB. What is within them stands in quotes where it would be read as something else without:
//!
//! ```text
//! [a, 'b, c', '', NULL]      {'name': value}      {key=value}
//! ```

use super::{has_own_text, write_value};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, DisplayIndex, FormatOptions, FormatResult};
use std::fmt::Write;
use std::ops::Range;

/// Timestamps in text, as SQL writes them.
pub const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S%.f";
/// The same with a zone.
pub const TIMESTAMP_ZONED: &str = "%Y-%m-%d %H:%M:%S%.f%:z";

/// NULL within lists, structs and maps.
const NULL: &str = "NULL";

/// How values are written.
pub const VALUE_FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_null(NULL)
    .with_timestamp_format(Some(TIMESTAMP))
    .with_timestamp_tz_format(Some(TIMESTAMP_ZONED));

/// What shows the values of an array.
///
/// # Errors
/// The options are wrong for its type.
pub fn formatter<'a>(
    array: &'a dyn Array,
    options: &FormatOptions<'a>,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    let shown: Box<dyn DisplayIndex + 'a> = match array.data_type() {
        own if has_own_text(own) => Box::new(OwnText(array, options.null())),
        _ => match Nested::of(array, options)? {
            Some(nested) => Box::new(nested),
            None => return ArrayFormatter::try_new(array, options),
        },
    };
    Ok(ArrayFormatter::new(shown, options.safe()))
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

/// Values with others in them.
struct Nested<'a> {
    nulls: Option<NullBuffer>,
    null: &'a str,
    kind: NestedKind<'a>,
}

enum NestedKind<'a> {
    /// And where the elements of a row are.
    List(Elements<'a>, Box<dyn Fn(usize) -> Range<usize> + 'a>),
    /// The fields, by their names.
    Struct(Vec<(&'a str, Elements<'a>)>),
    /// Keys, values, and where those of a row are.
    Map(Elements<'a>, Elements<'a>, &'a [i32]),
}

impl<'a> Nested<'a> {
    /// `None` if there are no others in them.
    fn of(array: &'a dyn Array, options: &FormatOptions<'a>) -> Result<Option<Self>, ArrowError> {
        let kind = match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let offsets = lists.value_offsets();
                let elements = Elements::of(lists.values(), options)?;
                let place = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
                NestedKind::List(elements, Box::new(place))
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let offsets = lists.value_offsets();
                let elements = Elements::of(lists.values(), options)?;
                let place = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
                NestedKind::List(elements, Box::new(place))
            }
            DataType::FixedSizeList(_, size) => {
                let size = *size as usize;
                let elements = Elements::of(array.as_fixed_size_list().values(), options)?;
                let place = move |row: usize| row * size..(row + 1) * size;
                NestedKind::List(elements, Box::new(place))
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns = columns.map(|(field, column)| {
                    Ok((field.name().as_str(), Elements::of(column, options)?))
                });
                NestedKind::Struct(columns.collect::<Result<_, ArrowError>>()?)
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                let keys = Elements::of(maps.keys(), options)?;
                let values = Elements::of(maps.values(), options)?;
                NestedKind::Map(keys, values, maps.value_offsets())
            }
            _ => return Ok(None),
        };
        Ok(Some(Nested {
            nulls: array.logical_nulls(),
            null: options.null(),
            kind,
        }))
    }
}

impl DisplayIndex for Nested<'_> {
    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(f.write_str(self.null)?);
        }
        match &self.kind {
            NestedKind::List(elements, place) => {
                f.write_char('[')?;
                for (number, element) in place(row).enumerate() {
                    separate(number, f)?;
                    elements.write(element, f)?;
                }
                f.write_char(']')?;
            }
            NestedKind::Struct(fields) => {
                f.write_char('{')?;
                for (number, (name, values)) in fields.iter().enumerate() {
                    separate(number, f)?;
                    quote(name, f)?;
                    f.write_str(": ")?;
                    values.write(row, f)?;
                }
                f.write_char('}')?;
            }
            NestedKind::Map(keys, values, offsets) => {
                f.write_char('{')?;
                let entries = offsets[row] as usize..offsets[row + 1] as usize;
                for (number, entry) in entries.enumerate() {
                    separate(number, f)?;
                    keys.write(entry, f)?;
                    f.write_char('=')?;
                    values.write(entry, f)?;
                }
                f.write_char('}')?;
            }
        }
        Ok(())
    }
}

fn separate(number: usize, f: &mut dyn Write) -> FormatResult {
    match number {
        0 => Ok(()),
        _ => Ok(f.write_str(", ")?),
    }
}

/// Values that stand within others.
struct Elements<'a> {
    nulls: Option<NullBuffer>,
    formatter: ArrayFormatter<'a>,
    /// Whether they may need quotes.
    is_text: bool,
}

impl<'a> Elements<'a> {
    fn of(array: &'a dyn Array, options: &FormatOptions<'a>) -> Result<Self, ArrowError> {
        let of = array.data_type();
        Ok(Elements {
            nulls: array.logical_nulls(),
            formatter: formatter(array, options)?,
            is_text: !(of.is_nested() || of.is_numeric() || *of == DataType::Boolean),
        })
    }

    fn write(&self, row: usize, f: &mut dyn Write) -> FormatResult {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(f.write_str(NULL)?);
        }
        let value = self.formatter.value(row);
        if !self.is_text {
            return Ok(write!(f, "{value}")?);
        }
        let value = value.try_to_string()?;
        match needs_quotes(&value) {
            true => quote(&value, f),
            false => Ok(f.write_str(&value)?),
        }
    }
}

fn quote(value: &str, f: &mut dyn Write) -> FormatResult {
    f.write_char('\'')?;
    for character in value.chars() {
        if matches!(character, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(character)?;
    }
    Ok(f.write_char('\'')?)
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
    use datafusion::arrow::array::{
        ArrayRef, Int64Array, Int64Builder, ListBuilder, MapBuilder, StringArray, StringBuilder,
        StringViewBuilder, StructArray,
    };
    use datafusion::arrow::datatypes::Field;
    use std::sync::Arc;

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

    #[test]
    fn fields_have_names_and_entries_have_keys() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let ones: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let field = |name, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
        let structs = StructArray::from(vec![
            (field("it's", &names), Arc::clone(&names)),
            (field("n", &ones), ones),
        ]);
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        maps.keys().append_value("k:1");
        maps.values().append_value(1);
        maps.append(true).unwrap();
        let shown = |array: &dyn Array| {
            let formatter = formatter(array, &VALUE_FORMAT).unwrap();
            let rows = (0..array.len()).map(|row| formatter.value(row).to_string());
            rows.collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&structs),
            ["{'it\\'s': a, 'n': 1}", "{'it\\'s': NULL, 'n': 2}"]
        );
        assert_eq!(shown(&maps.finish()), ["{'k:1'=1}"]);
    }
}
