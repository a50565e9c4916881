//! What writing to either format has in common: units of work, progress, errors, and files that appear when complete.

use crate::generator::{Batches, Generator, TableGenerator};
use crate::load::FileFormat;
use crate::table::SsbTable;
use parquet::errors::ParquetError;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How far a write has come. Reported after every unit of about 262,144 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The table being written.
    pub table: SsbTable,
    /// Rows written of all tables.
    pub rows_done: u64,
    /// Rows of all tables.
    pub rows_total: u64,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The table it holds.
    pub table: SsbTable,
    /// Where it is.
    pub path: PathBuf,
    /// Its rows.
    pub rows: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Why the data could not be written. No file of the table under way is left behind.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system failed.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The Parquet library failed.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the library said.
        source: ParquetError,
    },
}

impl WriteError {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> WriteError + '_ {
        |source| WriteError::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn parquet(path: &Path) -> impl Fn(ParquetError) -> WriteError + '_ {
        |source| WriteError::Parquet {
            path: path.to_owned(),
            source,
        }
    }
}

/// The items of a table, cut into the units that one thread encodes at a time: a row group of the Parquet file. The cut
/// depends on the table alone, so the file's bytes do not depend on the number of threads.
pub(crate) struct Units {
    table: TableGenerator,
    items_per_unit: u64,
}

impl Units {
    const ROWS: u64 = 262_144;
    const ROWS_PER_ORDER: u64 = 4;

    pub(crate) fn new(table: TableGenerator) -> Self {
        let items_per_unit = match table.table() {
            SsbTable::Lineorder => Self::ROWS / Self::ROWS_PER_ORDER,
            _ => Self::ROWS,
        };
        Self {
            table,
            items_per_unit,
        }
    }

    pub(crate) fn table(&self) -> SsbTable {
        self.table.table()
    }

    pub(crate) fn count(&self) -> usize {
        self.table.item_count().div_ceil(self.items_per_unit) as usize
    }

    pub(crate) fn batches(&self, unit: usize) -> Batches {
        let start = unit as u64 * self.items_per_unit;
        let items: Range<u64> = start..self.table.item_count().min(start + self.items_per_unit);
        self.table.items(items)
    }
}

/// Writes all tables into `directory`, made if absent, with `write_table(units, path, report)`, which returns the
/// number of rows and calls `report` with the rows of each unit written.
pub(crate) fn write_all(
    generator: &Generator,
    directory: &Path,
    format: FileFormat,
    progress: &mut dyn FnMut(Progress),
    write_table: impl Fn(&Units, &Path, File, &mut dyn FnMut(u64)) -> Result<(), WriteError>,
) -> Result<Vec<Written>, WriteError> {
    fs::create_dir_all(directory).map_err(WriteError::io(directory))?;
    let rows_total = SsbTable::ALL
        .iter()
        .map(|table| generator.rows(*table))
        .sum();
    let mut rows_done = 0;
    let mut written = Vec::new();
    for table in SsbTable::ALL {
        let path = directory.join(format.file_name(table));
        let partial = Partial::create(&path)?;
        let before = rows_done;
        write_table(
            &Units::new(generator.table(table)),
            &path,
            partial.file.try_clone().map_err(WriteError::io(&path))?,
            &mut |rows| {
                rows_done += rows;
                progress(Progress {
                    table,
                    rows_done,
                    rows_total,
                });
            },
        )?;
        let bytes = partial.complete(&path)?;
        written.push(Written {
            table,
            path,
            rows: rows_done - before,
            bytes,
        });
    }
    Ok(written)
}

/// A file under a preliminary name; removed unless it is completed, so that nobody takes a part for the whole.
struct Partial {
    path: PathBuf,
    file: File,
    complete: bool,
}

impl Partial {
    fn create(target: &Path) -> Result<Self, WriteError> {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        let path = PathBuf::from(name);
        let file = File::create(&path).map_err(WriteError::io(&path))?;
        Ok(Self {
            path,
            file,
            complete: false,
        })
    }

    fn complete(mut self, target: &Path) -> Result<u64, WriteError> {
        let bytes = self
            .file
            .metadata()
            .map_err(WriteError::io(&self.path))?
            .len();
        fs::rename(&self.path, target).map_err(WriteError::io(target))?;
        self.complete = true;
        Ok(bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.complete {
            // The error that brought us here is the one worth reporting.
            let _ = fs::remove_file(&self.path);
        }
    }
}
