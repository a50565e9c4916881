//! What a statement or function says about the files it reads.

use super::options::{GivenOption, GivenOptions, OptionValue};
use crate::error::SqlError;
use crate::text::mistakes::unknown_type;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::parser::Parser;
use eris_exact::types::column_type;
use eris_files::{
    ColumnRef, Compression, CsvOptions, Delimiter, Format, ReadOptions, TextEncoding, ValueFormats,
    is_time_format,
};
use eris_syntax::ErisDialect;

/// The options' names, for the hint of an unknown one.
const KNOWN: [&str; 19] = [
    "format",
    "header",
    "delimiter",
    "quote",
    "escape",
    "null",
    "comment",
    "skip",
    "compression",
    "names",
    "types",
    "columns",
    "all_varchar",
    "sample_size",
    "max_line_size",
    "dateformat",
    "timestampformat",
    "ignore_errors",
    "encoding",
];
/// Those of functions only: the columns of COPY are the table's.
const KNOWN_OF_FUNCTIONS: [&str; 3] = ["union_by_name", "filename", "hive_partitioning"];

/// # Errors
/// An unknown option, or a value that it cannot have.
pub(crate) fn read_options(
    mut options: GivenOptions,
    format: Option<Format>,
    what: &str,
) -> Result<ReadOptions, SqlError> {
    let mut read = ReadOptions {
        format,
        ..ReadOptions::default()
    };
    if let Some(given) = options.take(&["format"])? {
        read.format = Some(format_of(&given)?);
        // PostgreSQL's text format, which is separated by tabs.
        if given
            .text()
            .is_ok_and(|text| text.eq_ignore_ascii_case("tsv"))
        {
            read.csv.delimiter = Some(b'\t'.into());
        }
    }
    let csv = &mut read.csv;
    dialect(&mut options, csv)?;
    columns(&mut options, csv)?;
    formats(&mut options, &mut csv.formats)?;
    if let Some(given) = options.take(&["ignore_errors"])? {
        csv.ignore_errors = given.flag()?;
    }
    if let Some(given) = options.take(&["allow_quoted_nulls"])?
        && given.flag()?
    {
        return Err(SqlError::not_supported("ALLOW_QUOTED_NULLS true")
            .at(given.place.clone())
            .with_hint(Some(
                "a value in quotes is never NULL; nullif(column, '') makes it so",
            )));
    }
    hints(&mut options)?;
    if let Some(given) = options.take(&["encoding"])? {
        let named = TextEncoding::named(given.text()?);
        let rejected = || given.reject("the name of an encoding: 'utf-8', 'utf-16', 'latin-1' …");
        csv.coding.encoding = Some(named.ok_or_else(rejected)?);
    }
    if let Some(given) = options.take(&["auto_detect"])?
        && !given.flag()?
    {
        csv.all_strings = csv.types.is_empty();
        csv.header = csv.header.or(Some(false));
        csv.delimiter = csv.delimiter.take().or(Some(b','.into()));
    }
    let mut known = KNOWN.to_vec();
    if format.is_some() {
        files_together(&mut options, &mut read)?;
        known.extend(KNOWN_OF_FUNCTIONS);
    }
    options.finish(what, &known)?;
    Ok(read)
}

/// What DuckDB's users say of how files are read, not of what is in them.
fn hints(options: &mut GivenOptions) -> Result<(), SqlError> {
    for name in ["buffer_size", "files_to_sniff"] {
        if let Some(given) = options.take(&[name])? {
            given.number()?;
        }
    }
    if let Some(given) = options.take(&["parallel"])? {
        given.flag()?;
    }
    match options.take(&["strict_mode"])? {
        Some(given) if !given.flag()? => Err(SqlError::not_supported("STRICT_MODE false")
            .at(given.place.clone())
            .with_hint(Some("IGNORE_ERRORS true leaves records with a fault out"))),
        _ => Ok(()),
    }
}

/// What columns several files have together.
fn files_together(options: &mut GivenOptions, read: &mut ReadOptions) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["union_by_name"])? {
        read.by_name = given.flag()?;
    }
    if let Some(given) = options.take(&["filename"])? {
        read.filename = match given.flag() {
            Ok(flag) => flag.then(|| "filename".to_owned()),
            Err(_) => Some(given.text()?.to_owned()),
        };
    }
    if let Some(given) = options.take(&["hive_partitioning"])? {
        read.directories = Some(given.flag()?);
    }
    Ok(())
}

/// What separates records and fields.
fn dialect(options: &mut GivenOptions, csv: &mut CsvOptions) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["header"])? {
        csv.header = Some(given.flag()?);
    }
    if let Some(given) = options.take(&["delimiter", "delim", "sep", "delimiters"])? {
        csv.delimiter = Some(given.delimiter()?);
    }
    if let Some(given) = options.take(&["quote"])? {
        csv.quote = Some(given.byte()?);
        let quote = csv.quote.flatten().map(Delimiter::from);
        if quote.is_some() && csv.delimiter == quote {
            return Err(given.reject("another character than DELIMITER"));
        }
    }
    if let Some(given) = options.take(&["escape"])? {
        csv.escape = given.byte()?;
    }
    if let Some(given) = options.take(&["comment"])? {
        csv.comment = given.byte()?;
    }
    if let Some(given) = options.take(&["skip"])? {
        csv.skip = u64::try_from(given.number()?).map_err(|_| given.reject("a number of lines"))?;
    }
    if let Some(given) = options.take(&["compression"])? {
        csv.coding.compression = compression_of(&given)?;
    }
    Ok(())
}

/// What columns there are, of which types.
fn columns(options: &mut GivenOptions, csv: &mut CsvOptions) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["names", "column_names"])? {
        csv.names = given.texts()?;
    }
    if let Some(given) = options.take(&["types", "dtypes", "column_types"])? {
        csv.types = types(&given)?;
    }
    if let Some(given) = options.take(&["columns"])? {
        csv.types = types(&given)?;
        for (column, _) in &csv.types {
            match column {
                ColumnRef::Name(name) => csv.names.push(name.clone()),
                ColumnRef::Number(_) => {
                    return Err(given.reject("names and types, {'a': 'INTEGER'}"));
                }
            }
        }
    }
    if let Some(given) = options.take(&["all_varchar"])? {
        csv.all_strings = given.flag()?;
    }
    if let Some(given) = options.take(&["sample_size"])? {
        csv.sample = match given.number()? {
            -1 => usize::MAX,
            rows => usize::try_from(rows)
                .map_err(|_| given.reject("a number of records, or -1 for all"))?,
        };
    }
    if let Some(given) = options.take(&["max_line_size", "maximum_line_size"])? {
        let bytes = usize::try_from(given.number()?)
            .ok()
            .filter(|bytes| *bytes > 0);
        csv.most = bytes.ok_or_else(|| given.reject("a number of bytes"))?;
    }
    Ok(())
}

/// How strings are read as values.
fn formats(options: &mut GivenOptions, formats: &mut ValueFormats) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["null", "nullstr", "nulls"])? {
        formats.nulls = given.texts()?;
    }
    if let Some(given) = options.take(&["dateformat", "date_format"])? {
        formats.date_format = Some(pattern(&given)?);
    }
    if let Some(given) = options.take(&["timestampformat", "timestamp_format"])? {
        formats.timestamp_format = Some(pattern(&given)?);
    }
    Ok(())
}

/// The value of FORMAT.
pub(crate) fn format_of(given: &GivenOption) -> Result<Format, SqlError> {
    let named = given.text().ok().and_then(Format::named);
    named.ok_or_else(|| given.reject("csv, parquet, json or arrow"))
}

/// The value of COMPRESSION; `None` goes by the file's name.
pub(crate) fn compression_of(given: &GivenOption) -> Result<Option<Compression>, SqlError> {
    let named = given.text().ok().and_then(Compression::named);
    named.ok_or_else(|| given.reject("none, gzip, zstd or auto"))
}

/// A pattern of dates or times.
pub(crate) fn pattern(given: &GivenOption) -> Result<String, SqlError> {
    let text = given.text()?;
    if is_time_format(text) {
        Ok(text.to_owned())
    } else {
        Err(given.reject("a pattern such as '%d.%m.%Y'"))
    }
}

/// `{'a': 'INTEGER'}` or `['INTEGER', 'VARCHAR']`.
fn types(given: &GivenOption) -> Result<Vec<(ColumnRef, DataType)>, SqlError> {
    let wanted = "types by name, {'a': 'INTEGER'}, or in order, ['INTEGER', 'VARCHAR']";
    let data_type = |value: &OptionValue| match value {
        OptionValue::Text(name) => {
            let parser = Parser::new(&ErisDialect).try_with_sql(name);
            let parsed = parser.and_then(|mut parser| parser.parse_data_type());
            let parsed = parsed.map_err(|_| given.reject(wanted))?;
            let known = column_type(&parsed).map_err(|what| unknown_type(&parsed, what))?;
            Ok(known.data_type)
        }
        _ => Err(given.reject(wanted)),
    };
    match &given.value {
        OptionValue::Map(entries) => entries
            .iter()
            .map(|(name, value)| Ok((ColumnRef::Name(name.clone()), data_type(value)?)))
            .collect(),
        OptionValue::List(values) => values
            .iter()
            .enumerate()
            .map(|(number, value)| Ok((ColumnRef::Number(number), data_type(value)?)))
            .collect(),
        _ => Err(given.reject(wanted)),
    }
}
