//! Compressed text: gzip and zstd, by a name's ending or by an option. Several members or frames in a row are one text.

use crate::progress::ReadProgress;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How a text file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// A file whose bytes are counted while they are read.
pub(crate) struct Counted {
    file: File,
    progress: ReadProgress,
}

impl Counted {
    pub fn open(path: &Path, progress: &ReadProgress) -> io::Result<Self> {
        Ok(Counted {
            file: File::open(path)?,
            progress: progress.clone(),
        })
    }
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes)?;
        self.progress.count(read as u64);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Compressed text whose faults are told in plain words.
struct Told<R> {
    text: R,
    compression: Compression,
}

impl<R: Read> Read for Told<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.text.read(bytes).map_err(|error| {
            let name = match self.compression {
                Compression::Gzip => "gzip",
                _ => "zstd",
            };
            // An error of the system has a number, one of the text has none.
            if error.raw_os_error().is_some() {
                return error;
            }
            let is_short = error.kind() == io::ErrorKind::UnexpectedEof;
            let what = match is_short {
                true => format!("the {name} data is cut off, or no {name} at all"),
                false => format!("damaged {name} data, or no {name} at all: {error}"),
            };
            io::Error::new(error.kind(), what)
        })
    }
}

/// Level of zstd where none is said: its own default.
pub const ZSTD_LEVEL: i32 = 3;

impl Compression {
    /// By the name's ending.
    pub fn of_name(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if name.ends_with(".gz") || name.ends_with(".gzip") {
            Compression::Gzip
        } else if name.ends_with(".zst") || name.ends_with(".zstd") {
            Compression::Zstd
        } else {
            Compression::None
        }
    }

    /// By an option's value; `auto` goes by the file's name.
    pub fn named(word: &str) -> Option<Option<Self>> {
        match word.to_ascii_lowercase().as_str() {
            "auto" | "auto_detect" => Some(None),
            "none" | "uncompressed" => Some(Some(Compression::None)),
            "gzip" | "gz" => Some(Some(Compression::Gzip)),
            "zstd" | "zst" => Some(Some(Compression::Zstd)),
            _ => None,
        }
    }

    /// The text of bytes that are compressed as a name says, or if that says nothing, as they begin: a pipe has no
    /// ending.
    pub(crate) fn uncompressed(
        stored: Box<dyn Read + Send>,
        by_name: Compression,
    ) -> io::Result<Box<dyn Read + Send>> {
        if by_name != Compression::None {
            return by_name.text_of(stored);
        }
        let (begun, stored) = peek(stored, 4)?;
        let found = match begun.as_slice() {
            [0x1F, 0x8B, ..] => Compression::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD] => Compression::Zstd,
            _ => Compression::None,
        };
        found.text_of(stored)
    }

    /// The text of compressed bytes.
    pub(crate) fn text_of(
        self,
        file: impl Read + Send + 'static,
    ) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::None => Box::new(file),
            Compression::Gzip => Box::new(Told {
                text: MultiGzDecoder::new(io::BufReader::new(file)),
                compression: self,
            }),
            Compression::Zstd => Box::new(Told {
                text: zstd::Decoder::new(file)?,
                compression: self,
            }),
        })
    }

    /// A piece of text as a member or frame of its own, so that pieces can be compressed side by side.
    pub(crate) fn pack(self, text: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Compression::None => Ok(text),
            Compression::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(&text)?;
                encoder.finish()
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                // Without it, a damaged frame may be read as other text.
                encoder.include_checksum(true)?;
                encoder.write_all(&text)?;
                encoder.finish()
            }
        }
    }

    /// How many bytes of text a byte of the file stands for, roughly.
    pub(crate) fn factor(self) -> u64 {
        match self {
            Compression::None => 1,
            Compression::Gzip | Compression::Zstd => 4,
        }
    }
}

/// The first bytes of a text, and all of it.
pub(crate) fn peek(
    mut text: Box<dyn Read + Send>,
    bytes: u64,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut begun = Vec::new();
    text.by_ref().take(bytes).read_to_end(&mut begun)?;
    let whole = Cursor::new(begun.clone()).chain(text);
    Ok((begun, Box::new(whole)))
}

/// The name without the ending of a compression.
pub fn without_ending(name: &str) -> &str {
    match (Compression::of_name(name), name.rsplit_once('.')) {
        (Compression::Gzip | Compression::Zstd, Some((stem, _))) => stem,
        _ => name,
    }
}
