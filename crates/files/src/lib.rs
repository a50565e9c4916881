//! Files, and frames of the calling program: read as tables; files are written from rows, too.
//!
//! ```text
//! doors ─ sql ─[files]─ DataFusion's plans, Arrow's formats
//! ```
//!
//! ```text
//! open     names ── expand: files ── format ── inspect ── a table of DataFusion's
//!                                                            │ scan
//!          CSV, JSON   blocks: cut at record ends ── parse side by side ── batches
//!          Arrow       batches of the file
//!          Parquet     DataFusion's reader: row groups side by side, filters and statistics pushed down
//!
//! write    batches ── encode pieces side by side ── a file of another name ── renamed when it is finished
//! ```
//!
//! Whatever is wrong with a file is a [`FileError`], which names the file, the line and the column. How many bytes are
//! read is told to a [`ReadProgress`]. A reading ends when its stream is dropped; what is written leaves nothing behind
//! unless it is finished.
//!
//! This crate knows no catalogue, no session and no SQL: what a statement says about files comes as values.

#![forbid(unsafe_code)]

mod about;
mod added;
mod blocking;
mod blocks;
mod calendar;
mod column;
mod compression;
mod contained;
mod counted;
mod csv;
mod damage;
mod directory;
mod encoding;
mod error;
mod expand;
mod foreign;
mod format;
mod frame;
mod ipc;
mod json;
mod kind;
mod parquet;
mod part;
mod pipe;
mod progress;
mod read;
mod scan;
mod share;
mod sink;
mod text;
mod united;
mod values;
mod write;

pub use about::{files_named, parquet_metadata, parquet_schema};
pub use added::partition_directory;
pub use column::{ColumnRef, FileColumn};
pub use compression::{Compression, ZSTD_LEVEL, without_ending};
pub use counted::{CountedScan, counted_scans};
pub use csv::{CsvOptions, CsvStyle, Delimiter};
pub use damage::ContainDamage;
pub use directory::{DirectoryUnderWay, is_within, read_text};
pub use encoding::{TextCoding, TextEncoding};
pub use error::{ColumnPlace, FileError, FileFault, FileFaultKind, Misfit, TypeOrigin, shortened};
pub use foreign::uuid_field;
pub use format::{Format, is_file_name};
pub use frame::{
    Comparison, Condition, ConditionTest, Frame, FrameBatches, FrameError, FrameFault,
    FrameFaultKind, frame_table,
};
pub use parquet::context_of_load;
pub use pipe::allow_standard_input;
pub use progress::ReadProgress;
pub use read::{ReadOptions, format_of, open};
pub use text::{csv_rows, json_rows};
pub use values::{ValueFormats, is_time_format};
pub use write::{FileUnderWay, WriteOptions, write};
