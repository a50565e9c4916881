//! What outlives the process, and what was written for that: `eris.log`, `eris.snapshots`, `eris.files`.

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::relation::{Cell, CellType, SystemTable, row};
use eris_home::{DurabilityStatus, DurableFile, DurableFileKind};
use futures::FutureExt;
use std::future::ready;
use std::time::Duration;

use CellType::{Number, Real, Text, Time};

pub(super) static RELATIONS: [SystemTable; 3] = [
    SystemTable {
        name: "log",
        columns: &[
            ("directory", Text),
            // NULL if the database is open for reading only. Then nothing is known of writing.
            ("synchronous", Text),
            // The newest commit that has taken effect, and the newest one that is on the disk with all before it.
            ("applied_commit", Number),
            ("durable_commit", Number),
            // Since the process has started.
            ("groups", Number),
            ("bytes", Number),
            // A checkpoint is made when the first of these reaches the second. Chunk files count for an eighth.
            ("bytes_since_checkpoint", Number),
            ("checkpoint_bytes", Number),
            // Of the log. They are allocated in advance.
            ("files", Number),
            ("file_bytes", Number),
            // Of the last groups, a thousand or so; NULL before the first one.
            ("flush_p50_us", Number),
            ("flush_p99_us", Number),
            ("flush_max_us", Number),
            // Why nothing is written any more.
            ("error", Text),
        ],
        rows: |context| ready(Ok(log(context))).boxed(),
    },
    SystemTable {
        name: "snapshots",
        columns: &[
            ("snapshot", Number),
            // `in place`, or `failed`: then it was to take the place of the other.
            ("state", Text),
            // The newest commit that it has.
            ("newest_commit", Number),
            // NULL if another process has made it.
            ("rows", Number),
            ("bytes", Number),
            // Of chunks that no file had before; NULL if another process has made it.
            ("chunk_bytes", Number),
            ("made", Time),
            ("elapsed_ms", Real),
            // Why it failed; or of one in place, why chunk files of which little is in use stay as they are.
            ("error", Text),
        ],
        rows: |context| ready(Ok(snapshots(context))).boxed(),
    },
    SystemTable {
        name: "files",
        columns: &[
            // `manifest`, `ballast`, `log`, `snapshot` or `chunks`.
            ("kind", Text),
            ("number", Number),
            ("path", Text),
            ("bytes", Number),
            // Of chunk files: of chunks that something refers to. NULL if the database is open for reading only.
            ("live_bytes", Number),
        ],
        rows: |context| ready(files(context)).boxed(),
    },
];

/// Nothing where all ends with the process.
fn status(context: &StatementContext) -> Option<DurabilityStatus> {
    let durability = context.home.durability()?;
    Some(durability.status())
}

fn log(context: &StatementContext) -> Vec<Vec<Cell>> {
    let Some(status) = status(context) else {
        return Vec::new();
    };
    let files = status.files.as_ref().ok();
    let lengths = files.map(|files| {
        let files = files.iter();
        let of_log = files.filter(|file| file.kind == DurableFileKind::Log);
        of_log.map(|file| file.bytes).collect::<Vec<u64>>()
    });
    let log = status.log;
    let log = log.as_ref();
    let flushes = log.and_then(|log| log.flushes);
    let flushed = |time: Option<Duration>| time.map(|time| time.as_micros() as u64);
    vec![row![
        status.directory.display().to_string(),
        log.map(|log| log.synchronous.to_string()),
        status.applied.0,
        status.durable.0,
        log.map(|log| log.groups),
        log.map(|log| log.bytes),
        log.map(|log| log.bytes_since_checkpoint),
        log.map(|log| log.checkpoint_bytes),
        lengths.as_ref().map(Vec::len),
        lengths.map(|lengths| lengths.iter().sum::<u64>()),
        flushed(flushes.map(|times| times.median)),
        flushed(flushes.map(|times| times.p99)),
        flushed(flushes.map(|times| times.longest)),
        log.and_then(|log| log.failure.as_ref()),
    ]]
}

fn snapshots(context: &StatementContext) -> Vec<Vec<Cell>> {
    let Some(status) = status(context) else {
        return Vec::new();
    };
    let milliseconds = |took: Duration| took.as_micros() as f64 / 1e3;
    let mut rows = Vec::new();
    if let Some(snapshot) = status.snapshot {
        let is_it = |file: &&DurableFile| {
            file.kind == DurableFileKind::Snapshot && file.number == Some(snapshot.number)
        };
        let file = status.files.iter().flatten().find(is_it);
        let made = snapshot.made.as_ref();
        rows.push(row![
            snapshot.number,
            "in place",
            snapshot.at.0,
            made.map(|made| made.written.rows),
            file.map(|file| file.bytes),
            made.map(|made| made.written.chunk_bytes),
            made.map(|made| made.when),
            made.map(|made| milliseconds(made.took)),
            made.and_then(|made| made.not_rewritten.as_ref()),
        ]);
    }
    if let Some(failed) = status.failed_checkpoint {
        rows.push(row![
            Cell::Null,
            "failed",
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            failed.when,
            milliseconds(failed.took),
            failed.reason,
        ]);
    }
    rows
}

fn files(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let Some(status) = status(context) else {
        return Ok(Vec::new());
    };
    let rows = status.files?.into_iter().map(|file| {
        let kind = match file.kind {
            DurableFileKind::Manifest => "manifest",
            DurableFileKind::Ballast => "ballast",
            DurableFileKind::Log => "log",
            DurableFileKind::Snapshot => "snapshot",
            DurableFileKind::Chunks => "chunks",
        };
        let path = status.directory.join(&file.path);
        row![
            kind,
            file.number,
            path.display().to_string(),
            file.bytes,
            file.live_bytes,
        ]
    });
    Ok(rows.collect())
}
