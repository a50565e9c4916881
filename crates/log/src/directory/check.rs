//! Looking at all that a database consists of, without changing any of it.
//!
//! ```text
//! manifest ──▶ snapshot, group by group ──▶ log, file by file ──▶ chunks that these refer to
//!                                   ▒▒▒▒
//!                                   damage: noted, and the next whole group is looked for
//! ```
//!
//! Opening a database ends with the first damage. A check goes on behind it, so that whoever restores files knows all
//! of them. What groups and chunks say is another one's business, who [looks](Look) at each.
//!
//! What a crash has left, and what is dead, is no damage. It is remarked, for the next start removes it.

use super::findings::{Checked, Finding, Look, Part};
use super::found::{listed, lock, without_manifest};
use super::manifest::{Manifest, NEXT_MANIFEST};
use crate::chunks::{CHUNKS, ChunkFiles, ChunkInfo, chunk_bytes};
use crate::ends::LogStart;
use crate::error::LogError;
use crate::file::{FIRST_GROUP, LOG, LogFile};
use crate::group::{Group, GroupKind, Origin};
use crate::groups::{Groups, last_byte};
use crate::header::{FileKind, NO_HEADER, OpenFile};
use crate::place::DatabaseId;
use crate::reader::next_of;
use crate::snapshot::{FOLLOWED, SNAPSHOTS, SnapshotStart, UNCLOSED, what_is_wrong};
use eris_disk::{Access, Disk, EntryKind, Lock};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks at all that a database consists of. It changes nothing, and nobody writes meanwhile.
///
/// Bytes that nothing refers to are no damage: what a crash has left at the end of the log, dead chunks, or files that
/// the next start removes. Dead chunks are looked at nevertheless, for they may show that a disk is failing.
///
/// # Errors
/// There is no database, or another process has it open.
pub fn check(disk: &Arc<dyn Disk>, look: &mut dyn Look) -> Result<Checked, LogError> {
    let _lock = lock(&**disk, Lock::Shared)?;
    let manifest = match Manifest::read(&**disk) {
        Ok(None) => return Err(without_manifest(&**disk)?),
        found => found,
    };
    let mut check = Check::new(disk, look)?;
    if let Some(Some(manifest)) = check.note(manifest) {
        check.all(manifest, Some(manifest.start.group));
    }
    Ok(check.checked)
}

/// The bytes of all files.
fn total(disk: &dyn Disk) -> Result<u64, LogError> {
    let mut total = 0;
    for kind in [&LOG, &CHUNKS, &SNAPSHOTS] {
        for entry in listed(disk, kind.directory)? {
            if let EntryKind::File(length) = entry.kind {
                total += length;
            }
        }
    }
    Ok(total)
}

/// A check that is under way.
pub(super) struct Check<'a> {
    disk: &'a Arc<dyn Disk>,
    look: &'a mut dyn Look,
    pub checked: Checked,
    /// What is being looked at.
    part: Part,
    /// The newest commit of the log so far.
    through: Timestamp,
    /// The files that the log is in.
    log_files: BTreeSet<u64>,
    /// Bytes that were looked at, and all.
    done: u64,
    total: u64,
}

/// Where the groups of a file end.
struct End {
    offset: u64,
    kind: GroupKind,
    /// The file in which the log goes on.
    next: Option<u64>,
}

/// A file of the log that was longer.
struct CutOff {
    at: u64,
    had: u64,
}

impl<'a> Check<'a> {
    /// Nothing was looked at yet.
    ///
    /// # Errors
    /// The disk cannot list its files.
    pub fn new(disk: &'a Arc<dyn Disk>, look: &'a mut dyn Look) -> Result<Self, LogError> {
        Ok(Check {
            disk,
            look,
            checked: Checked::default(),
            part: Part::Unknown,
            through: Timestamp::ZERO,
            log_files: BTreeSet::new(),
            done: 0,
            total: total(&**disk)?,
        })
    }

    /// Looks at all of the database. The first group of its log has this number; `None`: any.
    pub fn all(&mut self, manifest: Manifest, first_group: Option<u64>) {
        self.checked.manifest = Some(manifest);
        self.all_groups(manifest, first_group);
        self.part = Part::Unknown;
        let looked = self.leftovers(manifest);
        self.note(looked);
        let looked = self.chunks(manifest.database);
        self.note(looked);
        self.look.passed(self.total, self.total);
    }

    /// Looks at the snapshot and the log.
    pub fn all_groups(&mut self, manifest: Manifest, first_group: Option<u64>) {
        if let Some(snapshot) = manifest.snapshot {
            self.part = Part::Snapshot;
            let looked = self.snapshot(manifest.database, snapshot);
            if self.note(looked).is_none() {
                self.look.lost(Origin::Snapshot);
            }
        }
        let looked = self.log(manifest.database, manifest.start, first_group);
        self.note(looked);
    }

    fn add(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        let finding = self.finding(path, offset, what.into());
        self.checked.findings.push(finding);
    }

    fn remark(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        let finding = self.finding(path, offset, what.into());
        self.checked.remarks.push(finding);
    }

    fn finding(&self, path: &Path, offset: u64, what: String) -> Finding {
        Finding {
            path: path.to_owned(),
            offset,
            what,
            part: self.part,
        }
    }

    fn pass(&mut self, bytes: u64) {
        self.done = (self.done + bytes).min(self.total);
        self.look.passed(self.done, self.total);
    }

    /// Notes what is wrong, and goes on.
    pub fn note<T>(&mut self, looked: Result<T, LogError>) -> Option<T> {
        let error = match looked {
            Ok(found) => return Some(found),
            Err(error) => error,
        };
        match &error {
            LogError::Damaged { path, offset, what } => self.add(path, *offset, what),
            LogError::Missing { path } | LogError::NoManifest { path } => {
                self.add(path, 0, "it is missing");
            }
            LogError::Foreign { path }
            | LogError::OfAnother { path }
            | LogError::Newer { path, .. } => self.add(path, 0, error.to_string()),
            LogError::NoChunk { number, directory } => {
                self.add(directory, 0, format!("chunk {number} is in no file"));
            }
            LogError::Disk(failed) => self.add(&failed.path, 0, error.to_string()),
            _ => self.add(self.disk.root(), 0, error.to_string()),
        }
        None
    }

    /// Looks at the groups of a file. The first one has this number; `None`: any.
    fn groups(
        &mut self,
        groups: &mut Groups<'_>,
        origin: Origin,
        number: &mut Option<u64>,
        is_wrong: impl Fn(&Group, u64) -> Option<String>,
    ) -> Result<End, LogError> {
        let path = groups.file.path().to_owned();
        let mut end = End {
            offset: FIRST_GROUP,
            kind: GroupKind::Records,
            next: None,
        };
        let mut is_lost = false;
        while end.next.is_none() {
            let at = end.offset;
            let found = groups.at(at);
            let Some((group, length)) = self.note(found).flatten() else {
                let Some(next) = groups.behind(at) else {
                    break;
                };
                let what = format!("it is no group, though one follows at byte {next}");
                self.add(&path, at, what);
                self.look.lost(origin);
                self.pass(next - at);
                (end.offset, is_lost) = (next, true);
                continue;
            };
            self.pass(length);
            let mut expected = number.filter(|_| !is_lost).unwrap_or(group.number);
            if group.number > expected {
                let what = format!("group {} where group {expected} should be", group.number);
                self.add(&path, at, what);
                self.look.lost(origin);
                expected = group.number;
            }
            if origin == Origin::Log {
                self.goes_on_with(&group);
            }
            let looked = match is_wrong(&group, expected) {
                Some(what) => Err(what),
                None => self.group(origin, &group),
            };
            if let Err(what) = looked {
                self.add(&path, at, what);
            }
            if origin == Origin::Log {
                self.has_passed(group.through);
            }
            if group.kind == GroupKind::Continued {
                end.next = next_of(&group).ok();
            }
            (end.kind, end.offset) = (group.kind, at + length);
            (*number, is_lost) = (Some(group.number + 1), false);
            let counted = match origin {
                Origin::Snapshot => &mut self.checked.snapshot,
                Origin::Log => &mut self.checked.log,
            };
            counted.parts += 1;
        }
        Ok(end)
    }

    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        match group.kind {
            GroupKind::Records => self.look.group(origin, group),
            _ => Ok(()),
        }
    }

    /// A group of the log is whole: what is missing before it are commits before its first one.
    fn goes_on_with(&mut self, group: &Group) {
        let commits = group.records().map_while(Result::ok);
        let commits = commits.map(|record| record.at);
        let first = commits.filter(|at| *at > Timestamp::ZERO).min();
        let before = first.map_or(group.through, |first| Timestamp(first.0 - 1));
        for finding in self.checked.findings.iter_mut().rev() {
            match &mut finding.part {
                Part::Commits { up_to, .. } if up_to.is_none() => *up_to = Some(before),
                _ => break,
            }
        }
        self.part = Part::Commits {
            behind: before.max(self.through),
            up_to: Some(group.through),
        };
    }

    /// Commits of the log up to here were read, or are lost.
    fn has_passed(&mut self, through: Timestamp) {
        self.through = self.through.max(through);
        self.part = Part::Commits {
            behind: self.through,
            up_to: None,
        };
    }

    fn snapshot(&mut self, database: DatabaseId, start: SnapshotStart) -> Result<(), LogError> {
        let open = SNAPSHOTS.open(&**self.disk, database, start.number, Access::Read);
        let open = match open {
            Ok(open) if open.own.is_some() => open,
            Ok(open) => {
                self.add(open.file.path(), 0, NO_HEADER);
                open
            }
            Err(error) => self.without_header(&SNAPSHOTS, start.number, error)?,
        };
        let counted = &mut self.checked.snapshot;
        (counted.files, counted.bytes) = (1, open.length);
        let path = open.file.path();
        let mut groups = Groups::of(&SNAPSHOTS, &open, database, start.number);
        let is_wrong = |group: &Group, number| what_is_wrong(group, number, start);
        let end = self.groups(&mut groups, Origin::Snapshot, &mut Some(1), is_wrong)?;
        if end.kind != GroupKind::Closed {
            self.add(path, end.offset.min(open.length), UNCLOSED);
            self.look.lost(Origin::Snapshot);
        } else if end.offset < open.length {
            self.add(path, end.offset, FOLLOWED);
        }
        Ok(())
    }

    fn log(
        &mut self,
        database: DatabaseId,
        start: LogStart,
        mut number: Option<u64>,
    ) -> Result<(), LogError> {
        let mut file = start.file;
        self.has_passed(start.through);
        loop {
            self.log_files.insert(file);
            let looked = self.log_file(database, file, &mut number);
            let ended = self.note(looked);
            if let Some((End { next, .. }, _)) = ended
                && let Some(next) = next
            {
                file = next;
                continue;
            }
            let later = self.later_file(database, file)?;
            if later.is_some() {
                self.look.lost(Origin::Log);
            }
            if let Some((end, cut_off)) = ended {
                let path = self.disk.root().join(LOG.path_of(file));
                match (&later, cut_off) {
                    (Some((_, later)), _) => {
                        let later = later.display();
                        let what = format!("the log ends here, though {later} has a part of it");
                        self.add(&path, end.offset, what);
                    }
                    (None, Some(CutOff { at, had })) => {
                        self.add(&path, at, format!("it is cut off: it had {had} bytes"));
                        self.look.lost(Origin::Log);
                    }
                    (None, None) => self.torn(file, end.offset)?,
                }
            }
            let Some((later, _)) = later else {
                return Ok(());
            };
            (file, number) = (later, None);
        }
    }

    /// A file behind the one in which the log ends that has a group.
    fn later_file(
        &self,
        database: DatabaseId,
        last: u64,
    ) -> Result<Option<(u64, PathBuf)>, LogError> {
        let numbers = LOG.numbers(&**self.disk)?.into_iter();
        for number in numbers.filter(|number| *number > last) {
            let open = LOG.open_any(&**self.disk, number)?;
            let mut groups = Groups::of(&LOG, &open, database, number);
            let first = groups.at(FIRST_GROUP);
            if matches!(first, Ok(Some(_))) || groups.behind(FIRST_GROUP).is_some() {
                return Ok(Some((number, open.file.path().to_owned())));
            }
        }
        Ok(None)
    }

    /// Opens a file whose header is damaged, and notes that. Its groups say themselves where they are.
    fn without_header(
        &mut self,
        kind: &FileKind,
        number: u64,
        error: LogError,
    ) -> Result<OpenFile, LogError> {
        match error {
            LogError::Damaged { .. } | LogError::Foreign { .. } | LogError::Disk(_) => {}
            error => return Err(error),
        }
        let open = kind.open_any(&**self.disk, number)?;
        self.note::<()>(Err(error));
        Ok(open)
    }

    /// Remarks what is left of a group that was never whole.
    fn torn(&mut self, number: u64, from: u64) -> Result<(), LogError> {
        let open = LOG.open_any(&**self.disk, number)?;
        if let Some(end) = last_byte(&*open.file, open.length, from)? {
            let what = format!(
                "{} bytes are no whole group: a crash has left them",
                end - from
            );
            self.remark(open.file.path(), from, what);
        }
        Ok(())
    }

    /// Remarks files that are not of the database.
    fn leftovers(&mut self, manifest: Manifest) -> Result<(), LogError> {
        let disk = Arc::clone(self.disk);
        let snapshot = manifest.snapshot.map(|snapshot| snapshot.number);
        let entries = listed(&*disk, "")?.into_iter();
        let next = entries.filter(|entry| entry.name == NEXT_MANIFEST);
        let mut left: Vec<PathBuf> = next.map(|entry| PathBuf::from(entry.name)).collect();
        let snapshots = SNAPSHOTS.numbers(&*disk)?.into_iter();
        let snapshots = snapshots.filter(|number| Some(*number) != snapshot);
        left.extend(snapshots.map(|number| SNAPSHOTS.path_of(number)));
        let logs = LOG.numbers(&*disk)?.into_iter();
        let logs = logs.filter(|number| !self.log_files.contains(number));
        left.extend(logs.map(|number| LOG.path_of(number)));
        for path in left {
            self.remark(&disk.root().join(path), 0, "the file is of no use");
        }
        Ok(())
    }

    fn log_file(
        &mut self,
        database: DatabaseId,
        number: u64,
        group: &mut Option<u64>,
    ) -> Result<(End, Option<CutOff>), LogError> {
        let file = match LogFile::open(&**self.disk, database, number, Access::Read) {
            Ok(file) => file,
            Err(error) => {
                let open = self.without_header(&LOG, number, error)?;
                LogFile::of_any_length(open, number, database)
            }
        };
        self.checked.log.files += 1;
        self.checked.log.bytes += file.length;
        let mut groups = Groups::of_log(&file);
        let end = self.groups(&mut groups, Origin::Log, group, |group, number| {
            let is_wrong = group.number != number;
            is_wrong.then(|| format!("group {} where group {number} should be", group.number))
        })?;
        let is_cut_off = end.kind == GroupKind::Records && file.length < file.allocated;
        let cut_off = is_cut_off.then_some(CutOff {
            at: file.length,
            had: file.allocated,
        });
        Ok((end, cut_off))
    }

    fn chunks(&mut self, database: DatabaseId) -> Result<(), LogError> {
        let disk = Arc::clone(self.disk);
        let files = ChunkFiles::open_each(disk, database, |error| {
            self.note::<()>(Err(error));
            Ok(())
        })?;
        for file in files.usage() {
            self.checked.chunks.files += 1;
            self.checked.chunks.bytes += file.bytes;
        }
        let mut form = Vec::new();
        let referred_to = self.look.referred_to();
        for &number in &referred_to {
            self.part = Part::Chunk(number);
            let looked = self.chunk(&files, number, &mut form);
            self.note(looked);
        }
        let all = files.numbers().into_iter();
        for number in all.filter(|number| !referred_to.contains(number)) {
            self.part = Part::Chunk(number);
            self.unused_chunk(&files, number, &mut form)?;
        }
        Ok(())
    }

    fn unused_chunk(
        &mut self,
        files: &ChunkFiles,
        number: u64,
        form: &mut Vec<u8>,
    ) -> Result<(), LogError> {
        match self.read_chunk(files, number, form) {
            Ok(info) => {
                self.checked.unused.parts += 1;
                self.checked.unused.bytes += info.bytes;
            }
            Err(LogError::Damaged { path, offset, what }) => {
                self.remark(&path, offset, format!("{what}; nothing refers to it"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn read_chunk(
        &mut self,
        files: &ChunkFiles,
        number: u64,
        form: &mut Vec<u8>,
    ) -> Result<ChunkInfo, LogError> {
        let info = files.info(number)?;
        form.resize(info.bytes as usize, 0);
        self.pass(chunk_bytes(info.bytes));
        files.read(number, form)?;
        Ok(info)
    }

    fn chunk(
        &mut self,
        files: &ChunkFiles,
        number: u64,
        form: &mut Vec<u8>,
    ) -> Result<(), LogError> {
        let info = self.read_chunk(files, number, form)?;
        self.checked.chunks.parts += 1;
        let looked = self.look.form(number, info, form);
        looked.map_err(|what| files.damaged(number, &what))
    }
}
