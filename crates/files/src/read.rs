//! Opening files as a table.

use crate::added::AddedColumns;
use crate::blocking::blocking;
use crate::blocks::{Cutting, TextSource};
use crate::column::FileColumn;
use crate::csv::{self, CsvOptions, WantedColumns};
use crate::error::{FileError, FileFaultKind};
use crate::format::Format;
use crate::ipc::IpcFiles;
use crate::pipe::{is_foreign, is_pipe};
use crate::progress::ReadProgress;
use crate::scan::{FileSource, FileTable, RecordParser, TextFiles, length};
use crate::{expand, json, parquet, united};
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What is said of files that are read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Their format, if not what their names say.
    pub format: Option<Format>,
    /// What is said of CSV files; how they are stored goes for JSON files, too.
    pub csv: CsvOptions,
    /// Whether columns are found by their names, and are NULL in files that have them not.
    pub by_name: bool,
    /// What a column is called that has the file's name, if one is wanted.
    pub filename: Option<String>,
    /// Whether directories such as `year=2024` are columns, if not just where all files have the same ones.
    pub directories: Option<bool>,
}

/// The format of the files that these names and patterns mean: the one that is given, or what the first file's name
/// says.
///
/// # Errors
/// There are no files, or the name says nothing.
pub async fn format_of(names: Vec<String>, given: Option<Format>) -> Result<Format, FileError> {
    blocking(move || Ok(expand::expand(&names, given)?.1)).await
}

/// The files' rows as a table: with columns as they have them, or as they are given. Parquet and Arrow files have their
/// own in any case. Bytes are counted by `progress` when the table is read.
///
/// # Errors
/// There are no files, or they are not what the options say.
pub async fn open(
    names: Vec<String>,
    options: ReadOptions,
    given: Option<Vec<FileColumn>>,
    state: &SessionState,
    progress: &ReadProgress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    let format = options.format;
    let (files, format) = blocking(move || expand::expand(&names, format)).await?;
    if let Some(foreign) = files.iter().find(|file| is_foreign(file)) {
        let cause = "it is no file unless eris gets its statements by -c or -f";
        let cause = io::Error::other(cause);
        return Err(FileError::new(foreign, FileFaultKind::unreadable(cause)));
    }
    let pipe = files.iter().find(|file| is_pipe(file));
    if let Some(pipe) = pipe.filter(|_| matches!(format, Format::Parquet | Format::Arrow)) {
        return Err(FileError::new(
            pipe,
            FileFaultKind::unreadable(no_way_back()),
        ));
    }
    if given.is_none() {
        let added = AddedColumns::of(&files, options.filename.as_deref(), options.directories);
        if !added.names.is_empty() || options.by_name && files.len() > 1 {
            return united::open(files, format, &options, added, state, progress).await;
        }
    }
    if format == Format::Parquet && !united::repeated(&files).is_empty() {
        let added = AddedColumns::of(&files, None, Some(false));
        return united::open(files, format, &options, added, state, progress).await;
    }
    open_alike(files, format, options, given, state, progress).await
}

/// The rows of files that have the same columns.
pub(crate) async fn open_alike(
    files: Vec<PathBuf>,
    format: Format,
    options: ReadOptions,
    given: Option<Vec<FileColumn>>,
    state: &SessionState,
    progress: &ReadProgress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    if format == Format::Parquet {
        return parquet::open(&files, state).await;
    }
    let inspect = move || {
        Ok(match format {
            Format::Csv => csv_files(files, &options, given)?,
            Format::Json => json_files(files, &options, given)?,
            Format::Arrow | Format::Parquet => Arc::new(IpcFiles::new(files)?) as _,
        })
    };
    let source: Arc<dyn FileSource> = blocking(inspect).await?;
    Ok(Arc::new(FileTable::new(source, progress.clone())))
}

/// Why a pipe is no file of some formats.
fn no_way_back() -> io::Error {
    io::Error::other("files of this format are not read from front to back, so not from a pipe")
}

fn sources(files: Vec<PathBuf>) -> Result<Vec<TextSource>, FileError> {
    files.into_iter().map(TextSource::open).collect()
}

/// Further files of which a sample is read, so that columns have types for them, too.
const SAMPLED_FILES: usize = 10;

/// Files of which a sample is read beside that of the first one. A pipe would wait for its writer.
fn others(files: &[TextSource]) -> impl Iterator<Item = &TextSource> {
    let others = files.iter().skip(1).take(SAMPLED_FILES - 1);
    others.filter(|file| matches!(file, TextSource::File(path) if length(path) > 0))
}

fn csv_files(
    files: Vec<PathBuf>,
    options: &ReadOptions,
    given: Option<Vec<FileColumn>>,
) -> Result<Arc<dyn FileSource>, FileError> {
    let wanted = given
        .as_deref()
        .map_or(WantedColumns::Found, WantedColumns::Given);
    let files = sources(files)?;
    let mut parser = csv::inspect(&files[0], &options.csv, &wanted)?;
    for other in others(&files) {
        parser.widen(&csv::inspect(other, &options.csv, &wanted)?, &options.csv)?;
    }
    let cutting = options
        .csv
        .cutting(&parser.dialect, Some(parser.columns.len()));
    Ok(text_files(parser, files, cutting))
}

fn json_files(
    files: Vec<PathBuf>,
    options: &ReadOptions,
    given: Option<Vec<FileColumn>>,
) -> Result<Arc<dyn FileSource>, FileError> {
    let files = sources(files)?;
    let (parser, cutting) = json::inspect(
        &files[0],
        others(&files),
        options.csv.coding,
        given.as_deref(),
    )?;
    Ok(text_files(parser, files, cutting))
}

fn text_files<P: RecordParser + 'static>(
    parser: P,
    files: Vec<TextSource>,
    cutting: Cutting,
) -> Arc<dyn FileSource> {
    Arc::new(TextFiles {
        parser: Arc::new(parser),
        files,
        cutting,
    })
}
