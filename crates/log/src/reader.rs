//! Reading a log back: group by group, to its end.
//!
//! ```text
//! group 1 │ group 2 │ … │ group n │ ▒▒▒ what is left of a group that was never whole, or zeros
//! ```
//!
//! One group is under way at a time, and it is on the medium before the next one is begun. So only the last one can be
//! torn. What is no whole group ends the log; if a whole group follows, there or in a later file, it is damage. A file
//! says when the log goes on in another one, so a file that is missing is missed.
//!
//! Groups are read one at a time: a file may be longer than the memory.
//!
//! What cannot be told apart from a torn group: damage of exactly the last group of a log that was not closed. So
//! whoever reads says what was cut off.

use crate::bytes::Bytes;
use crate::ends::{LastGroup, LogEnd, LogStart};
use crate::error::LogError;
use crate::file::{FIRST_GROUP, LOG, LogFile};
use crate::group::{Group, GroupKind};
use crate::groups::{Groups, last_byte};
use crate::place::DatabaseId;
use eris_disk::{Access, Disk};
use std::path::PathBuf;

/// A log that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRead {
    /// Where it ends.
    pub end: LogEnd,
    /// The files that it is in.
    pub files: Vec<u64>,
    /// Whether it was closed: then nothing is missing.
    pub is_closed: bool,
    /// What was left of a group that was never whole.
    pub cut: Option<Cut>,
}

/// Bytes at the end of a log that are no whole group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// How many, up to the last that is not zero.
    pub bytes: u64,
}

/// Reads a log, and gives each group of records to `take`. It changes nothing.
///
/// # Errors
/// It is damaged, or `take` says no.
pub fn read_log<E: From<LogError>>(
    disk: &dyn Disk,
    database: DatabaseId,
    start: LogStart,
    mut take: impl FnMut(Group) -> Result<(), E>,
) -> Result<LogRead, E> {
    let mut end = LogEnd {
        group: start.group,
        through: start.through,
        file: start.file,
        offset: FIRST_GROUP,
        next_file: next_file(disk, start.file)?,
        last: None,
    };
    let mut files = Vec::new();
    loop {
        files.push(end.file);
        let file = LogFile::open(disk, database, end.file, Access::Read)?;
        let path = file.file.path().to_owned();
        let mut groups = Groups::of_log(&file);
        let (mut is_closed, mut goes_on) = (false, None);
        end.offset = FIRST_GROUP;
        while goes_on.is_none()
            && let Some((group, length)) = groups.at(end.offset)?
        {
            if group.number != end.group || group.through < end.through {
                let what = format!("group {} where group {} should be", group.number, end.group);
                return Err(LogError::damaged(&path, end.offset, what).into());
            }
            let body = |group: &Group| {
                next_of(group).map_err(|reason| LogError::Record {
                    group: group.number,
                    reason,
                })
            };
            end.last = Some(LastGroup {
                file: end.file,
                offset: end.offset,
                bytes: length,
            });
            end.group += 1;
            end.offset += length;
            end.through = group.through;
            match group.kind {
                GroupKind::Records => {
                    is_closed = false;
                    take(group)?;
                }
                GroupKind::Closed => is_closed = true,
                GroupKind::Continued => goes_on = Some(body(&group)?),
            }
        }
        if let Some(next) = goes_on {
            end.file = next;
            continue;
        }
        if !is_closed && file.length < file.allocated {
            let what = format!("it is cut off: it had {} bytes", file.allocated);
            return Err(LogError::damaged(&path, file.length, what).into());
        }
        let last = last_byte(&*file.file, file.length, end.offset)?;
        if last.is_some()
            && let Some(offset) = groups.behind(end.offset)
        {
            let what = format!("it is no group, though one follows at byte {offset}");
            return Err(LogError::damaged(&path, end.offset, what).into());
        }
        if let Some((_, later)) = later_file(disk, database, end.file)? {
            let what = format!(
                "the log ends here, though {} has a part of it",
                later.display()
            );
            return Err(LogError::damaged(&path, end.offset, what).into());
        }
        let cut = last.map(|last| Cut {
            path,
            offset: end.offset,
            bytes: last - end.offset,
        });
        return Ok(LogRead {
            end,
            files,
            is_closed,
            cut,
        });
    }
}

/// The number of the file in which the log goes on.
pub(crate) fn next_of(group: &Group) -> Result<u64, crate::bytes::BadBytes> {
    let what = "where the log goes on";
    let record = group.records().next();
    let record = record.ok_or(crate::bytes::BadBytes::Short(what))??;
    Bytes::of(record.body, what).number()
}

/// A file behind the one in which the log ends that has a group: the log went on there. Its number and path.
pub(crate) fn later_file(
    disk: &dyn Disk,
    database: DatabaseId,
    last: u64,
) -> Result<Option<(u64, PathBuf)>, LogError> {
    let numbers = LOG.numbers(disk)?;
    for number in numbers.into_iter().filter(|number| *number > last) {
        // One that was made in advance may be only begun.
        let Ok(file) = LogFile::open(disk, database, number, Access::Read) else {
            continue;
        };
        if Groups::of_log(&file).at(FIRST_GROUP)?.is_some() {
            return Ok(Some((number, file.file.path().to_owned())));
        }
    }
    Ok(None)
}

/// A number that no file of the log has.
fn next_file(disk: &dyn Disk, first: u64) -> Result<u64, LogError> {
    let last = LOG.numbers(disk)?.last().copied();
    Ok(last.unwrap_or(0).max(first) + 1)
}
