//! What a home does that outlives its process, beside keeping definitions.

use crate::HomeError;
use eris_types::Timestamp;
use futures::future::BoxFuture;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// What a checkpoint has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// It has all up to this commit. What came later is in the log.
    pub at: Timestamp,
    /// Rows that it has.
    pub rows: u64,
    /// Bytes of the snapshot itself: which chunks there are, the rows of small ones, strings, definitions.
    pub bytes: u64,
    /// Bytes of chunks that no file had before.
    pub chunk_bytes: u64,
}

/// Units of time, in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// When commits are durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Before they are acknowledged, and visible.
    #[default]
    On,
    /// So long afterwards at most. A crash takes the last ones, in their order.
    Interval(Duration),
    /// Some time afterwards.
    Off,
}

impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Synchronous::On => f.write_str("on"),
            Synchronous::Interval(time) => {
                let is_whole = |scale: u64| {
                    time.as_nanos()
                        .is_multiple_of(u128::from(scale) * 1_000_000)
                };
                match UNITS.iter().find(|(_, scale)| is_whole(*scale)) {
                    Some((unit, scale)) => write!(f, "{}{unit}", time.as_millis() as u64 / scale),
                    None => write!(f, "{time:?}"),
                }
            }
            Synchronous::Off => f.write_str("off"),
        }
    }
}

/// What a text is that does not say when commits are durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither on nor off, nor a time such as 1s or 200ms")]
pub struct NotSynchronous(String);

impl FromStr for Synchronous {
    type Err = NotSynchronous;

    /// `on`, `off`, or a time in whole `ms`, `s`, `min` or `h`, whatever the case.
    fn from_str(text: &str) -> Result<Self, NotSynchronous> {
        let word = text.trim().to_lowercase();
        match word.as_str() {
            "on" => return Ok(Synchronous::On),
            "off" => return Ok(Synchronous::Off),
            _ => {}
        }
        let milliseconds = UNITS.iter().find_map(|(unit, scale)| {
            let number = word.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?;
            number.checked_mul(*scale).filter(|time| *time > 0)
        });
        let milliseconds = milliseconds.ok_or_else(|| NotSynchronous(text.to_owned()))?;
        Ok(Synchronous::Interval(Duration::from_millis(milliseconds)))
    }
}

/// What there is on the disk, and what was written there.
#[derive(Clone, Debug)]
pub struct DurabilityStatus {
    /// Where all is.
    pub directory: PathBuf,
    /// All commits up to this one have taken effect.
    pub applied: Timestamp,
    /// All commits up to this one are on the disk.
    pub durable: Timestamp,
    /// The log. `None`: it is not written, for the database is open for reading only.
    pub log: Option<LogStatus>,
    /// The snapshot behind which the log begins. `None`: there is none, or the log was closed.
    pub snapshot: Option<SnapshotStatus>,
    /// The last checkpoint of this process that has failed, if none was made since.
    pub failed_checkpoint: Option<FailedCheckpoint>,
    /// The files; none, if the log was closed.
    pub files: Result<Vec<DurableFile>, HomeError>,
}

/// What is known of the log.
#[derive(Clone, Debug)]
pub struct LogStatus {
    /// When commits are durable.
    pub synchronous: Synchronous,
    /// Groups that this process has written.
    pub groups: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes that a checkpoint would make superfluous. Bytes of chunk files, and each file of the log, count for some.
    pub bytes_since_checkpoint: u64,
    /// So many of them are worth a checkpoint.
    pub checkpoint_bytes: u64,
    /// How long groups took to be gathered, written and flushed. `None`: there was none yet.
    pub flushes: Option<FlushTimes>,
    /// Why nothing is written any more.
    pub failure: Option<String>,
}

/// How long the last groups of the log took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushTimes {
    /// Half of them took this or less.
    pub median: Duration,
    /// Of a hundred of them, 99 did.
    pub p99: Duration,
    /// The longest.
    pub longest: Duration,
}

/// The snapshot that is in place.
#[derive(Clone, Debug)]
pub struct SnapshotStatus {
    /// The number of its file.
    pub number: u64,
    /// It has all commits up to this one.
    pub at: Timestamp,
    /// What else is known if this process has made it.
    pub made: Option<MadeCheckpoint>,
}

/// A checkpoint of this process.
#[derive(Clone, Debug)]
pub struct MadeCheckpoint {
    /// What it has written.
    pub written: Checkpoint,
    /// When it was in place.
    pub when: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// Why chunk files of which little is in use stay as they are. `None`: they were written anew, if there were some.
    pub not_rewritten: Option<String>,
}

/// A checkpoint that was not made.
#[derive(Clone, Debug)]
pub struct FailedCheckpoint {
    /// When it failed.
    pub when: SystemTime,
    /// How long it took until then.
    pub took: Duration,
    /// Why.
    pub reason: String,
}

/// A file of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableFile {
    /// What it is.
    pub kind: DurableFileKind,
    /// Its number; manifest and ballast have none.
    pub number: Option<u64>,
    /// Where it is, from the database's directory.
    pub path: PathBuf,
    /// Its length. A log file has its full length from the beginning.
    pub bytes: u64,
    /// Of a chunk file that is open for writing, the bytes of chunks that something refers to.
    pub live_bytes: Option<u64>,
}

/// What a file of a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableFileKind {
    /// What the database consists of.
    Manifest,
    /// Room that is kept for a checkpoint on a disk that is full.
    Ballast,
    /// What commits did.
    Log,
    /// All that there was when the log began.
    Snapshot,
    /// Large chunks.
    Chunks,
}

/// A home that outlives its process.
pub trait Durability: Send + Sync {
    /// Whether it is open for reading only: then all that would outlive the process is [denied](HomeError::ReadOnly).
    fn is_read_only(&self) -> bool;

    /// Writes a snapshot of all that is durable in the place of the log before it. It blocks while files are written;
    /// no statement waits for it.
    ///
    /// # Errors
    /// The disk has no room, or has failed: all is in the log, as before. Or it is open for reading only.
    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>>;

    /// Writes all that is visible into an empty directory, as a database of its own, which can be opened like this one.
    /// It blocks while files are written; no statement waits for it.
    ///
    /// # Errors
    /// The disk has no room, or has failed: what is in the directory is no whole database.
    fn backup(&self, directory: PathBuf) -> BoxFuture<'_, Result<Checkpoint, HomeError>>;

    /// When commits are durable.
    fn synchronous(&self) -> Synchronous;

    /// Changes that, for all sessions. Commits that are acknowledged later are durable as it says. Where it is open for
    /// reading only there are none.
    fn set_synchronous(&self, synchronous: Synchronous);

    /// Waits until the log is so long that a checkpoint is worth it.
    fn checkpoint_due(&self) -> BoxFuture<'_, ()>;

    /// What there is on the disk, and what was written there. It waits for no commit, flush or checkpoint; directories
    /// are listed.
    fn status(&self) -> DurabilityStatus;

    /// Makes all durable that was committed, and closes the log: nothing can be written any more. It blocks as long as
    /// that takes, and until a checkpoint that is under way has given up. Then others may open it. The future of a
    /// checkpoint that nobody polls any more is to be dropped before.
    ///
    /// # Errors
    /// The disk has failed.
    fn close(&self) -> Result<(), HomeError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        for (text, shown) in [
            ("on", "on"),
            ("OFF", "off"),
            ("200ms", "200ms"),
            ("1500 ms", "1500ms"),
            (" 60s", "1min"),
            ("2h", "2h"),
        ] {
            let read: Synchronous = text.parse().unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(shown.parse(), Ok(read));
        }
        for text in [
            "",
            "0s",
            "1",
            "ms",
            "-1s",
            "1.5s",
            "1 day",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(
                text.parse::<Synchronous>(),
                Err(NotSynchronous(text.to_owned()))
            );
        }
        let odd = Synchronous::Interval(Duration::from_micros(1_500));
        assert_eq!(odd.to_string(), "1.5ms");
    }
}
