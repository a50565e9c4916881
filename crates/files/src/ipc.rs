//! Arrow's IPC files and streams: batches as they are, file by file.

use crate::compression::Counted;
use crate::error::{FileError, FileFaultKind};
use crate::progress::ReadProgress;
use crate::scan::{FileBytes, FileReading, FileSource, length};
use crate::share::SharedFiles;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// With what an IPC file begins, and a stream does not.
const MAGIC: &[u8] = b"ARROW1";

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// IPC files whose columns agree.
#[derive(Debug)]
pub(crate) struct IpcFiles {
    files: Vec<PathBuf>,
    schema: SchemaRef,
}

impl IpcFiles {
    /// Reads the schemas of the files.
    pub fn new(files: Vec<PathBuf>) -> Result<Self, FileError> {
        let mut schema: Option<SchemaRef> = None;
        for file in &files {
            let (found, _) = open(file, None, &ReadProgress::default())?;
            match &schema {
                None => schema = Some(found),
                Some(first) if *first.fields() == *found.fields() => {}
                Some(_) => {
                    let first = files[0].clone();
                    let kind = FileFaultKind::OtherColumns { first };
                    return Err(FileError::new(file, kind));
                }
            }
        }
        let schema = schema.expect("a name means at least one file");
        if schema.fields().is_empty() {
            return Err(FileError::new(&files[0], FileFaultKind::NoColumns));
        }
        Ok(IpcFiles { files, schema })
    }
}

/// Opens a file or stream.
fn open(
    path: &Path,
    columns: Option<Vec<usize>>,
    progress: &ReadProgress,
) -> Result<(SchemaRef, Batches), FileError> {
    let opened = move || -> Result<(SchemaRef, Batches), ArrowError> {
        let mut file = BufReader::new(Counted::open(path, progress)?);
        let mut magic = [0; MAGIC.len()];
        let is_file = file.read_exact(&mut magic).is_ok() && magic == MAGIC;
        file.rewind()?;
        Ok(if is_file {
            let schema = FileReader::try_new(&mut file, None)?.schema();
            file.rewind()?;
            (schema, Box::new(FileReader::try_new(file, columns)?))
        } else {
            let whole = StreamReader::try_new(&mut file, None)?.schema();
            file.rewind()?;
            (whole, Box::new(StreamReader::try_new(file, columns)?))
        })
    };
    opened().map_err(|error| broken(path, error))
}

/// The error of a file that cannot be read as what its name says.
fn broken(path: &Path, error: ArrowError) -> FileError {
    let kind = match error {
        ArrowError::IoError(_, cause) if cause.raw_os_error().is_some() => {
            FileFaultKind::unreadable(cause)
        }
        _ => FileFaultKind::Damaged("Arrow IPC file or stream"),
    };
    FileError::new(path, kind)
}

impl FileSource for IpcFiles {
    fn schema(&self) -> SchemaRef {
        // Keys and values that came with the schema are for other programs.
        Arc::new(Schema::new(self.schema.fields().clone()))
    }

    fn bytes(&self) -> FileBytes {
        let of_files = self.files.iter().map(|file| length(file)).sum();
        FileBytes {
            of_files,
            of_rows: of_files,
        }
    }

    fn begin(&self, projection: &[usize], progress: &ReadProgress) -> Arc<dyn FileReading> {
        let schema = self.schema().project(projection);
        let files = self
            .files
            .iter()
            .map(|file| (file.clone(), Mutex::new(None)));
        Arc::new(IpcReading {
            files: files.collect(),
            schema: Arc::new(schema.expect("the projection is one of this schema")),
            projection: projection.to_vec(),
            progress: progress.clone(),
            shared: SharedFiles::new(self.files.len()),
        })
    }
}

struct IpcReading {
    /// A file's batches are read under its lock; `None` before they are begun.
    files: Vec<(PathBuf, Mutex<Option<Batches>>)>,
    schema: SchemaRef,
    projection: Vec<usize>,
    progress: ReadProgress,
    shared: SharedFiles,
}

impl IpcReading {
    fn of_file(&self, file: usize) -> Result<Option<RecordBatch>, FileError> {
        let (path, batches) = &self.files[file];
        let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.is_none() {
            // Rows are counted by any column, if none is wanted.
            let mut columns = self.projection.clone();
            if columns.is_empty() {
                columns.push(0);
            }
            columns.sort_unstable();
            columns.dedup();
            *batches = Some(open(path, Some(columns), &self.progress)?.1);
        }
        let next = batches.as_mut().and_then(Iterator::next);
        drop(batches);
        let why = |error: ArrowError| broken(path, error);
        let Some(batch) = next.transpose().map_err(why)? else {
            return Ok(None);
        };
        let arrays = self.schema.fields().iter().map(|field| {
            let column = batch.column_by_name(field.name()).cloned();
            column.ok_or_else(|| FileError::new(path, FileFaultKind::Changed))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map(Some)
            .map_err(why)
    }
}

impl FileReading for IpcReading {
    fn next(&self, current: &mut Option<usize>) -> Result<Option<RecordBatch>, FileError> {
        self.shared.next(current, |file| self.of_file(file))
    }
}
