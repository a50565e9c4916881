//! Cutting text files into blocks of whole records, which workers parse side by side.
//!
//! ```text
//! file   ├──────────── 1 MiB ──────┊──┤├──── …         read under the file's lock, by whoever needs a block
//! block  └─ whole records ─────────┘                    parsed without lock
//!                                   └──┘                begins the next block
//! ```
//!
//! Only the search for the last record's end is serial, and decompression.

use crate::column::FileColumn;
use crate::compression::{Compression, Counted};
use crate::encoding::{TextCoding, utf8};
use crate::error::{ColumnPlace, FileError, FileFaultKind, Misfit, TypeOrigin, shortened};
use crate::pipe::{Pipe, is_pipe};
use crate::progress::ReadProgress;
use crate::share::SharedFiles;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a block, unless a record is longer.
pub(crate) const BLOCK: usize = 1 << 20;

/// Most bytes of a record where nothing else is said.
pub(crate) const MOST_BYTES: usize = 16 << 20;
/// Records from which types are found where nothing else is said.
pub(crate) const SAMPLE: usize = 20_480;

/// Where records end.
pub(crate) trait Boundary: Send + Sync + fmt::Debug {
    /// Behind the last whole record of bytes that begin with a record.
    fn last_end(&self, bytes: &[u8]) -> Option<usize>;

    /// Whether there is a record in bytes that were cut here, and not only what stands between records.
    fn has_record(&self, bytes: &[u8]) -> bool;

    /// What is wrong with a record of more than the most bytes.
    fn endless(&self, most: usize) -> FileFaultKind;
}

/// Whole records of one file.
#[derive(Debug)]
pub(crate) struct Block {
    pub bytes: Vec<u8>,
    pub path: Arc<Path>,
    /// The line with which it begins, from 1.
    pub line: u64,
    /// What ends its lines.
    pub newline: u8,
    /// Whether no block in front of it has a record.
    pub first: bool,
}

impl Block {
    /// The line of a place in it.
    pub fn line_at(&self, at: usize) -> u64 {
        self.line + lines(&self.bytes[..at.min(self.bytes.len())], self.newline)
    }

    /// The error of the record at a place in it.
    pub fn error(&self, at: usize, kind: FileFaultKind) -> FileError {
        FileError::line(&self.path, self.line_at(at), kind)
    }

    /// The error of a field at a place in it.
    pub fn error_in(&self, at: usize, column: ColumnPlace, kind: FileFaultKind) -> FileError {
        FileError::column(&self.path, self.line_at(at), column, kind)
    }

    /// The error of a value in it that does not fit its column, which is the one of this number, from 0.
    pub fn misfit(
        &self,
        at: usize,
        (number, column): (usize, &FileColumn),
        text: &str,
        misfit: Misfit,
        origin: TypeOrigin,
    ) -> FileError {
        let is_number = column.field.data_type().is_numeric();
        let place = ColumnPlace {
            number: number + 1,
            name: Some(column.field.name().clone()),
        };
        let kind = FileFaultKind::Value {
            misfit: match misfit {
                Misfit::Type if is_number && is_integer(text) => Misfit::Range,
                other => other,
            },
            shown: shortened(text),
            column: column.clone(),
            origin,
        };
        self.error_in(at, place, kind)
    }
}

fn is_integer(text: &str) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn lines(bytes: &[u8], newline: u8) -> u64 {
    memchr::memchr_iter(newline, bytes).count() as u64
}

/// How files are cut.
#[derive(Clone, Debug)]
pub(crate) struct Cutting {
    pub boundary: Arc<dyn Boundary>,
    pub coding: TextCoding,
    /// What ends lines.
    pub newline: u8,
    /// Lines in front that are no records.
    pub skip: u64,
    /// Most bytes of a record.
    pub most: usize,
    /// Bytes of a block.
    pub block: usize,
}

/// A text, of which samples can be read before its rows.
#[derive(Clone, Debug)]
pub(crate) enum TextSource {
    File(PathBuf),
    Pipe(Arc<Pipe>),
    /// What a file would hold.
    Bytes(Arc<[u8]>),
}

/// Which part of a text is wanted.
#[derive(Clone, Copy)]
enum TextPart {
    Sample,
    Rows,
}

impl TextSource {
    /// The text of this name. A pipe is opened here, and not again.
    pub fn open(path: PathBuf) -> Result<Self, FileError> {
        if !is_pipe(&path) {
            return Ok(TextSource::File(path));
        }
        let pipe = Pipe::open(&path)
            .map_err(|error| FileError::new(&path, FileFaultKind::unreadable(error)))?;
        Ok(TextSource::Pipe(pipe))
    }

    /// What it is called in errors.
    pub fn path(&self) -> &Path {
        match self {
            TextSource::File(path) => path,
            TextSource::Pipe(pipe) => pipe.path(),
            TextSource::Bytes(_) => Path::new("text"),
        }
    }

    /// Opens it for a sample.
    pub fn cut_sample(&self, cutting: &Cutting) -> Result<Cutter, FileError> {
        self.cut(cutting, &ReadProgress::default(), TextPart::Sample)
    }

    /// Opens it for its rows; the progress counts a file's bytes.
    pub fn cut_rows(
        &self,
        cutting: &Cutting,
        progress: &ReadProgress,
    ) -> Result<Cutter, FileError> {
        self.cut(cutting, progress, TextPart::Rows)
    }

    fn cut(
        &self,
        cutting: &Cutting,
        progress: &ReadProgress,
        part: TextPart,
    ) -> Result<Cutter, FileError> {
        let by_name = || Compression::of_name(&self.path().to_string_lossy());
        let opened = || {
            let stored: Box<dyn Read + Send> = match (self, part) {
                (TextSource::File(path), _) => Box::new(Counted::open(path, progress)?),
                (TextSource::Pipe(pipe), TextPart::Sample) => Box::new(pipe.sample()),
                (TextSource::Pipe(pipe), TextPart::Rows) => Box::new(pipe.rows()?),
                (TextSource::Bytes(bytes), _) => Box::new(io::Cursor::new(Arc::clone(bytes))),
            };
            let text = match cutting.coding.compression {
                Some(compression) => compression.text_of(stored)?,
                None => Compression::uncompressed(stored, by_name())?,
            };
            utf8(text, cutting.coding.encoding)
        };
        let reader = opened()
            .map_err(|error| FileError::new(self.path(), FileFaultKind::unreadable(error)))?;
        Cutter::new(self.path(), reader, cutting.clone())
    }
}

/// One file on its way.
pub(crate) struct Cutter {
    cutting: Cutting,
    path: Arc<Path>,
    reader: Box<dyn Read + Send>,
    rest: Vec<u8>,
    line: u64,
    first: bool,
    ended: bool,
}

impl Cutter {
    /// Begins with a text, and skips what is in front of its records.
    fn new(
        path: &Path,
        reader: Box<dyn Read + Send>,
        cutting: Cutting,
    ) -> Result<Cutter, FileError> {
        let mut cutter = Cutter {
            path: path.into(),
            reader,
            rest: Vec::new(),
            line: 1,
            first: true,
            ended: false,
            cutting,
        };
        cutter.fill(cutter.cutting.block)?;
        if cutter.rest.starts_with(b"\xEF\xBB\xBF") {
            cutter.rest.drain(..3);
        }
        for _ in 0..cutter.cutting.skip {
            cutter.skip_line()?;
        }
        Ok(cutter)
    }

    /// With what the text begins: a block of it, or all.
    pub fn begun(&self) -> &[u8] {
        &self.rest
    }

    /// Reads until there are so many bytes, or the file ends.
    fn fill(&mut self, bytes: usize) -> Result<(), FileError> {
        let missing = bytes.saturating_sub(self.rest.len());
        self.rest.reserve(missing);
        let read = self
            .reader
            .by_ref()
            .take(missing as u64)
            .read_to_end(&mut self.rest);
        let read =
            read.map_err(|error| FileError::new(&self.path, FileFaultKind::unreadable(error)))?;
        self.ended |= read < missing;
        Ok(())
    }

    fn skip_line(&mut self) -> Result<(), FileError> {
        loop {
            if let Some(end) = memchr::memchr(self.cutting.newline, &self.rest) {
                self.rest.drain(..=end);
                self.line += 1;
                return Ok(());
            }
            self.rest.clear();
            if self.ended {
                return Ok(());
            }
            self.fill(self.cutting.block)?;
        }
    }

    /// The next whole records; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Block>, FileError> {
        let mut wanted = self.cutting.block;
        let end = loop {
            self.fill(wanted)?;
            if self.ended {
                break self.rest.len();
            }
            if let Some(end) = self.cutting.boundary.last_end(&self.rest) {
                break end;
            }
            if self.rest.len() >= self.cutting.most {
                let what = self.cutting.boundary.endless(self.cutting.most);
                return Err(FileError::line(&self.path, self.line, what));
            }
            wanted = (2 * self.rest.len()).min(self.cutting.most);
        };
        if end == 0 {
            return Ok(None);
        }
        if end > self.cutting.most {
            // The file's end has come with the last piece.
            if self.cutting.boundary.last_end(&self.rest).is_none() {
                let what = self.cutting.boundary.endless(self.cutting.most);
                return Err(FileError::line(&self.path, self.line, what));
            }
        }
        let mut next = Vec::with_capacity(self.cutting.block.max(self.rest.len() - end));
        next.extend_from_slice(&self.rest[end..]);
        let mut bytes = std::mem::replace(&mut self.rest, next);
        bytes.truncate(end);
        let block = Block {
            path: Arc::clone(&self.path),
            line: self.line,
            newline: self.cutting.newline,
            first: self.first,
            bytes,
        };
        // Empty lines and comments may fill whole blocks in front of a header.
        self.first &= !self.cutting.boundary.has_record(&block.bytes);
        self.line += lines(&block.bytes, block.newline);
        Ok(Some(block))
    }
}

/// The blocks of several files, for several workers.
pub(crate) struct Blocks {
    cutting: Cutting,
    progress: ReadProgress,
    files: Vec<(TextSource, Mutex<FileState>)>,
    shared: SharedFiles,
}

enum FileState {
    Unbegun,
    Begun(Box<Cutter>),
    Done,
}

impl Blocks {
    pub fn new(files: &[TextSource], cutting: Cutting, progress: ReadProgress) -> Self {
        let shared = SharedFiles::new(files.len());
        let files = (files.iter()).map(|file| (file.clone(), Mutex::new(FileState::Unbegun)));
        Blocks {
            cutting,
            progress,
            files: files.collect(),
            shared,
        }
    }

    /// A worker's next block; `current` is the file that it works on.
    pub fn next(&self, current: &mut Option<usize>) -> Result<Option<Block>, FileError> {
        self.shared.next(current, |file| self.of_file(file))
    }

    fn of_file(&self, file: usize) -> Result<Option<Block>, FileError> {
        let (source, state) = &self.files[file];
        // Behind a panic or an error, the file is done.
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cutter = match std::mem::replace(&mut *state, FileState::Done) {
            FileState::Unbegun => Box::new(source.cut_rows(&self.cutting, &self.progress)?),
            FileState::Begun(cutter) => cutter,
            FileState::Done => return Ok(None),
        };
        let block = cutter.next()?;
        if block.is_some() {
            *state = FileState::Begun(cutter);
        }
        Ok(block)
    }
}
