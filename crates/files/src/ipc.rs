//! Arrow's IPC files and streams: batches as they are, file by file.

use crate::calendar;
use crate::compression::Counted;
use crate::contained::contained;
use crate::error::{FileError, FileFaultKind};
use crate::foreign::{columns, without_null_entries};
use crate::frame::Condition;
use crate::progress::ReadProgress;
use crate::scan::{FileBytes, FileReading, FileSource, length};
use crate::share::SharedFiles;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::ipc::{root_as_footer, root_as_message};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// With what an IPC file begins, and a stream does not.
const MAGIC: &[u8] = b"ARROW1";
/// Bytes of the footer's length, in front of the mark at the end.
const FOOTER_LENGTH: usize = 4;

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
            check_blocks(&mut file)?;
            file.rewind()?;
            let schema = FileReader::try_new(&mut file, None)?.schema();
            file.rewind()?;
            (schema, Box::new(FileReader::try_new(file, columns)?))
        } else {
            check_messages(&mut file)?;
            file.rewind()?;
            let whole = StreamReader::try_new(&mut file, None)?.schema();
            file.rewind()?;
            (whole, Box::new(StreamReader::try_new(file, columns)?))
        })
    };
    undamaged(opened).map_err(|error| broken(path, error))
}

/// Rejects a file whose footer tells of blocks that are not in it. The reader would allocate what it says they take.
fn check_blocks(file: &mut (impl Read + Seek)) -> Result<(), ArrowError> {
    let damaged = || ArrowError::IpcError("the footer tells of more than there is".to_owned());
    let length = file.seek(SeekFrom::End(0))?;
    let end = (FOOTER_LENGTH + MAGIC.len()) as u64;
    file.seek(SeekFrom::Start(
        length.checked_sub(end).ok_or_else(damaged)?,
    ))?;
    let mut size = [0; FOOTER_LENGTH];
    file.read_exact(&mut size)?;
    let size = u64::try_from(i32::from_le_bytes(size)).map_err(|_| damaged())?;
    let start = length.checked_sub(end + size).ok_or_else(damaged)?;
    file.seek(SeekFrom::Start(start))?;
    let mut footer = vec![0; size as usize];
    file.read_exact(&mut footer)?;
    let footer = root_as_footer(&footer).map_err(|_| damaged())?;
    let blocks = footer.recordBatches().into_iter().flatten();
    for block in blocks.chain(footer.dictionaries().into_iter().flatten()) {
        let parts = [
            block.offset(),
            block.metaDataLength().into(),
            block.bodyLength(),
        ];
        let mut behind = 0_u64;
        for part in parts {
            let part = u64::try_from(part).map_err(|_| damaged())?;
            behind = behind.checked_add(part).ok_or_else(damaged)?;
        }
        if behind > length {
            return Err(damaged());
        }
    }
    Ok(())
}

/// With what a message of a stream begins, unless it is an old one.
const CONTINUATION: i32 = -1;

/// Rejects a stream whose messages tell of more bytes than follow. The reader would allocate them.
fn check_messages(file: &mut (impl Read + Seek)) -> Result<(), ArrowError> {
    let damaged = || ArrowError::IpcError("a message tells of more than there is".to_owned());
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut at = 0;
    let number = |file: &mut dyn Read, at: &mut u64| -> Result<Option<i32>, ArrowError> {
        let mut bytes = [0; 4];
        if length - *at < bytes.len() as u64 {
            return Ok(None);
        }
        file.read_exact(&mut bytes)?;
        *at += bytes.len() as u64;
        Ok(Some(i32::from_le_bytes(bytes)))
    };
    // A stream may end without a mark.
    while let Some(mut size) = number(file, &mut at)? {
        if size == CONTINUATION {
            size = number(file, &mut at)?.ok_or_else(damaged)?;
        }
        if size == 0 {
            break;
        }
        let size = u64::try_from(size).map_err(|_| damaged())?;
        if size > length - at {
            return Err(damaged());
        }
        let mut message = vec![0; size as usize];
        file.read_exact(&mut message)?;
        at += size;
        let message = root_as_message(&message).map_err(|_| damaged())?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| damaged())?;
        if body > length - at {
            return Err(damaged());
        }
        at += body;
        file.seek(SeekFrom::Start(at))?;
    }
    Ok(())
}

/// Work of the reader, which panics at some damage.
fn undamaged<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    let missing = || ArrowError::IpcError("a part is missing".to_owned());
    contained(work).unwrap_or_else(|| Err(missing()))
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
        Arc::new(columns(&self.schema))
    }

    fn bytes(&self) -> FileBytes {
        let of_files = self.files.iter().map(|file| length(file)).sum();
        FileBytes {
            of_files,
            of_rows: of_files,
        }
    }

    fn begin(
        &self,
        projection: &[usize],
        _: &[Condition],
        progress: &ReadProgress,
    ) -> Arc<dyn FileReading> {
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
        let why = |error: ArrowError| broken(path, error);
        let next = undamaged(|| batches.as_mut().and_then(Iterator::next).transpose());
        if next.is_err() {
            // What a reader gives behind an error is no row of the file.
            *batches = Some(Box::new(std::iter::empty()));
        }
        drop(batches);
        let Some(batch) = next.map_err(why)? else {
            return Ok(None);
        };
        if let Some(fault) = calendar::fault(&batch) {
            return Err(FileError::new(path, fault));
        }
        let arrays = self.schema.fields().iter().map(|field| {
            let column = batch.column_by_name(field.name()).cloned();
            let column = column.ok_or_else(|| FileError::new(path, FileFaultKind::Changed))?;
            without_null_entries(&column)
                .and_then(|column| cast(&column, field.data_type()))
                .map_err(why)
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
