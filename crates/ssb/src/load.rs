//! What a loader needs to know about files of the benchmark, its own and other generators'.
//!
//! ```text
//! <dir>/date.parquet   customer.parquet   supplier.parquet   part.parquet   lineorder.parquet
//! <dir>/date.tbl       …                                                    lineorder.tbl[.1, .2, …]
//!
//! a line of supplier.tbl:   1|Supplier#000000001|sdrGnXCDRc|PERU     0|PERU|AMERICA|27-989-741-2988|␊
//!                                                                                     trailing ────┘
//! ```
//!
//! The columns of a `.tbl` file come in the order of [`SsbTable::schema`]; that is the original generator's order too.
//! Load in the order of [`SsbTable::ALL`]: the dimensions are small, and known when the fact table arrives.

use crate::table::SsbTable;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::path::Path;
use std::sync::Arc;

/// How a file holds a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet; columns are found by name.
    Parquet,
    /// Text: fields separated *and ended* by `|`, no header, no quoting, UTF-8.
    Tbl,
}

/// The separator of `.tbl` files.
pub const TBL_SEPARATOR: u8 = b'|';

impl FileFormat {
    /// The extension of a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet",
            FileFormat::Tbl => "tbl",
        }
    }

    /// The name of the file that holds `table`.
    pub fn file_name(self, table: SsbTable) -> String {
        format!("{table}.{}", self.extension())
    }

    /// The fields a reader meets in a file of `table`, in this order; the first `table.schema().fields().len()` of
    /// them are the table. Behind the last separator of a `.tbl` line a reader of separated values sees one more
    /// field, always empty: it is included, named `_`.
    pub fn file_schema(self, table: SsbTable) -> SchemaRef {
        let schema = table.schema();
        if self == FileFormat::Parquet {
            return schema;
        }
        let fields = schema.fields().iter().cloned().chain([Arc::new(Field::new(
            "_",
            DataType::Utf8,
            true,
        ))]);
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Which table a file holds and how, by its name; pieces that a generator wrote in parallel (`part.tbl.3`) count
    /// too.
    pub fn of_file(path: &Path) -> Option<(SsbTable, FileFormat)> {
        let name = path.file_name()?.to_str()?;
        let mut words = name.split('.');
        let table = words.next()?.parse().ok()?;
        let format = match words.next()? {
            "parquet" => FileFormat::Parquet,
            "tbl" => FileFormat::Tbl,
            _ => return None,
        };
        let piece = |word: &str| format == FileFormat::Tbl && word.parse::<u32>().is_ok();
        match (words.next(), words.next()) {
            (None, _) => Some((table, format)),
            (Some(word), None) if piece(word) => Some((table, format)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name() {
        let of = |name| FileFormat::of_file(Path::new(name));
        assert_eq!(of("x/part.tbl"), Some((SsbTable::Part, FileFormat::Tbl)));
        assert_eq!(of("part.tbl.12"), Some((SsbTable::Part, FileFormat::Tbl)));
        let parquet = Some((SsbTable::Date, FileFormat::Parquet));
        assert_eq!(of("date.parquet"), parquet);
        for stranger in [
            "part",
            "parts.tbl",
            "part.tbl.x",
            "part.parquet.1",
            "part.tbl.1.2",
        ] {
            assert_eq!(of(stranger), None, "{stranger}");
        }
    }
}
