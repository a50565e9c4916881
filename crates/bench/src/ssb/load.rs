//! The five tables, from files: those that are there, or those that the generator writes first.
//!
//! ```text
//! no --data      generator ──▶ <cache>/ssb-1/*.parquet   kept for the next run ┐
//! --data DIR     DIR/part.parquet ─────────────────────────────────────────────┼─▶ CREATE TABLE part AS SELECT …
//!                DIR/part.tbl[.1, …] ──▶ temporary part.parquet ───────────────┘
//! ```
//!
//! All ways end in the statement that a user would write. Other generators' columns may have other types; they are
//! cast.

use super::error::SsbError;
use super::style;
use arrow_csv::ReaderBuilder;
use arrow_schema::DataType;
use eris_sql::{Outcome, Session, SqlError};
use eris_ssb::load::{FileFormat, TBL_SEPARATOR};
use eris_ssb::{Compression, Generator, Progress, Scale, SsbTable, write_parquet};
use indicatif::ProgressBar;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What loading did.
pub struct Loaded {
    /// Rows of all tables.
    pub rows: u64,
    /// Time for reading, converting and writing into tables; without the generator's.
    pub time: Duration,
}

/// Where the five tables come from.
#[derive(Clone, Debug)]
pub struct SsbSource {
    /// Scale to generate; with `data` only said of it.
    pub scale: Scale,
    /// Where the tables' files are; `None`: generate them.
    pub data: Option<PathBuf>,
    /// Where generated files are kept for the next run.
    pub cache: PathBuf,
}

/// Fills the five tables.
pub async fn load(session: &Session, source: &SsbSource) -> Result<Loaded, SsbError> {
    let directory = match &source.data {
        Some(directory) => directory.clone(),
        None => generated(&Generator::new(source.scale), &source.cache)?,
    };
    let begun = Instant::now();
    let bar = ProgressBar::new_spinner().with_style(style("{msg:<18} {spinner} {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut rows = 0;
    for table in SsbTable::ALL {
        bar.set_message(format!("loading {table}"));
        let mut converted = None;
        let mut file = directory.join(FileFormat::Parquet.file_name(table));
        if !file.is_file() {
            let temporary = Converted::new(table, &texts(&directory, table)?)?;
            file.clone_from(&temporary.path);
            converted = Some(temporary);
        }
        rows += copied(session, table, &file)
            .await
            .map_err(|source| SsbError::Statement {
                what: format!("loading {table}"),
                source,
            })?;
        drop(converted);
    }
    bar.finish_and_clear();
    Ok(Loaded {
        rows,
        time: begun.elapsed(),
    })
}

/// The directory with the generated files, which are written unless an earlier run left them.
fn generated(generator: &Generator, cache: &Path) -> Result<PathBuf, SsbError> {
    let directory = cache.join(format!(
        "ssb-{}-{}",
        env!("CARGO_PKG_VERSION"),
        generator.scale()
    ));
    // Files appear under their names when they are complete, the fact table's last.
    let complete = |table| {
        directory
            .join(FileFormat::Parquet.file_name(table))
            .is_file()
    };
    if SsbTable::ALL.into_iter().all(complete) {
        return Ok(directory);
    }
    let bar = ProgressBar::new(0).with_style(style(
        "{msg:<18} {bar:30} {human_pos}/{human_len} rows, {eta} left",
    ));
    bar.set_message("generating");
    let mut report = |progress: Progress| {
        bar.set_length(progress.rows_total);
        bar.set_position(progress.rows_done);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    write_parquet(
        generator,
        &directory,
        Compression::default(),
        threads,
        &mut report,
    )?;
    bar.finish_and_clear();
    Ok(directory)
}

/// Makes a table from a Parquet file: columns by name, types as the benchmark has them.
async fn copied(session: &Session, table: SsbTable, file: &Path) -> Result<u64, SqlError> {
    let columns: Vec<String> = table
        .schema()
        .fields()
        .iter()
        .map(|field| {
            let name = field.name();
            let data_type = match field.data_type() {
                DataType::Int32 => "INTEGER",
                DataType::Int64 => "BIGINT",
                _ => "VARCHAR",
            };
            format!("CAST({name} AS {data_type}) AS {name}")
        })
        .collect();
    let file = file.display().to_string().replace('\'', "''");
    let create = format!(
        "CREATE TABLE {table} AS SELECT {} FROM '{file}'",
        columns.join(", ")
    );
    match session.execute(&create).await? {
        Outcome::Count { rows, .. } => Ok(rows),
        Outcome::Rows(_) | Outcome::Done { .. } => unreachable!("CREATE TABLE AS counts its rows"),
    }
}

/// The `.tbl` files of a table, also in pieces.
fn texts(directory: &Path, table: SsbTable) -> Result<Vec<PathBuf>, SsbError> {
    let failed = |source| SsbError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if FileFormat::of_file(&path) == Some((table, FileFormat::Tbl)) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(SsbError::NoFile {
            directory: directory.to_owned(),
            table,
        });
    }
    files.sort();
    Ok(files)
}

/// A Parquet file that goes when it has been read.
struct Converted {
    path: PathBuf,
}

impl Converted {
    /// The rows of some `.tbl` files as one Parquet file.
    fn new(table: SsbTable, texts: &[PathBuf]) -> Result<Self, SsbError> {
        let name = format!(
            "eris-{}-{}",
            std::process::id(),
            FileFormat::Parquet.file_name(table)
        );
        let converted = Converted {
            path: std::env::temp_dir().join(name),
        };
        let path = || converted.path.clone();
        let file = File::create(path()).map_err(|source| SsbError::Read {
            path: path(),
            source,
        })?;
        let failed = |source| SsbError::Convert {
            path: path(),
            source,
        };
        let mut writer = ArrowWriter::try_new(file, table.schema(), None).map_err(failed)?;
        for text in texts {
            let failed = |source| SsbError::Text {
                path: text.clone(),
                source,
            };
            let file = File::open(text).map_err(|source| SsbError::Read {
                path: text.clone(),
                source,
            })?;
            // The reader counts lines from 0 without a header and from 1 with one: it gets one, so that its errors name
            // the lines as editors do.
            let columns = FileFormat::Tbl.file_schema(table).fields().len();
            let header = format!("{}\n", "|".repeat(columns - 1));
            let file = Cursor::new(header).chain(file);
            let reader = ReaderBuilder::new(FileFormat::Tbl.file_schema(table))
                .with_header(true)
                .with_delimiter(TBL_SEPARATOR)
                // A byte that UTF-8 does not have: nothing is quoted.
                .with_quote(0xff)
                .with_projection((0..table.schema().fields().len()).collect())
                .with_batch_size(eris_ssb::BATCH_ROWS)
                .build(file)
                .map_err(failed)?;
            for batch in reader {
                let written = writer.write(&batch.map_err(failed)?);
                written.map_err(|source| SsbError::Convert {
                    path: path(),
                    source,
                })?;
            }
        }
        writer.close().map_err(|source| SsbError::Convert {
            path: path(),
            source,
        })?;
        Ok(converted)
    }
}

impl Drop for Converted {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the temporary directory.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::RecordBatch;
    use eris_ssb::write_tbl;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn read(file: &Path) -> Vec<RecordBatch> {
        let file = File::open(file).expect("it was written");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is Parquet");
        let reader = reader
            .with_batch_size(eris_ssb::BATCH_ROWS)
            .build()
            .expect("it is Parquet");
        reader.map(|batch| batch.expect("readable")).collect()
    }

    #[test]
    fn text_files_become_what_was_generated() {
        let directory = tempfile::tempdir().expect("a place for files");
        let generator = Generator::new(Scale::new(0.001).expect("in range"));
        write_tbl(&generator, directory.path(), 1, &mut |_| {}).expect("written");
        for table in SsbTable::ALL {
            let files = texts(directory.path(), table).expect("the generator wrote it");
            let converted = Converted::new(table, &files).expect("convertible");
            let made: Vec<RecordBatch> = generator.table(table).partition(0, 1).collect();
            assert_eq!(read(&converted.path), made, "{table}");
            let path = converted.path.clone();
            drop(converted);
            assert!(!path.exists(), "it goes when it has been read");
        }
    }

    #[test]
    fn pieces_of_a_table_are_found_and_what_is_missing_is_named() {
        let directory = tempfile::tempdir().expect("a place for files");
        for name in ["part.tbl.2", "part.tbl.1", "parts.tbl", "part.csv"] {
            std::fs::write(directory.path().join(name), "").expect("written");
        }
        let files = texts(directory.path(), SsbTable::Part).expect("two pieces");
        let names: Vec<_> = files
            .iter()
            .map(|file| file.file_name().expect("a name"))
            .collect();
        assert_eq!(names, ["part.tbl.1", "part.tbl.2"]);
        let missing = texts(directory.path(), SsbTable::Date).expect_err("no such file");
        assert!(
            missing
                .to_string()
                .ends_with("no date.parquet and no date.tbl in it"),
            "{missing}"
        );
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a place for files");
        let path = directory.path().join("supplier.tbl");
        std::fs::write(&path, "1|a|b|c|d|e|f|\nx|a|b|c|d|e|f|\n").expect("written");
        let error = Converted::new(SsbTable::Supplier, &[path])
            .err()
            .expect("x is no number")
            .to_string();
        assert!(
            error.contains("supplier.tbl") && error.contains("line 2"),
            "{error}"
        );
    }

    #[test]
    fn generated_files_are_used_again() {
        let cache = tempfile::tempdir().expect("a place for files");
        let generator = Generator::new(Scale::new(0.001).expect("in range"));
        let directory = generated(&generator, cache.path()).expect("written");
        let part = directory.join("part.parquet");
        let changed = || {
            std::fs::metadata(&part)
                .and_then(|part| part.modified())
                .expect("it is there")
        };
        let before = changed();
        assert_eq!(
            generated(&generator, cache.path()).expect("found"),
            directory
        );
        assert_eq!(changed(), before);
        std::fs::remove_file(directory.join("lineorder.parquet")).expect("removed");
        generated(&generator, cache.path()).expect("written again");
        assert!(
            changed() > before,
            "an incomplete directory is written anew"
        );
    }
}
