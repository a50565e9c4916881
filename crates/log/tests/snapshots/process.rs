//! A process that commits and makes checkpoints, a model of what it has done, and what is there when it has ended.
//!
//! The database is a few keys. A commit sets one of them, to some bytes or to a chunk, or does nothing.

use crate::common::{DATABASE, Random, paths};
use crate::mistakes::Mistake;
use eris_disk::{Disk, Lock, SimulatedDisk};
use eris_log::{
    Bytes, Chunk, ChunkFiles, ChunkSettings, DatabaseId, Directory, Entry, Group, LogError,
    LogRead, LogSettings, LogStart, Manifest, NextFile, NoRoom, OpenDatabase, Origin, Purpose,
    SnapshotStart, SnapshotWriter, chunk_bytes, put_number,
};
use eris_types::{ObjectId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const KEYS: u64 = 8;
/// Files of few groups, and of few chunks.
pub const SMALL: (LogSettings, ChunkSettings) = (
    LogSettings { file_bytes: 2048 },
    ChunkSettings {
        file_bytes: 4096,
        dirty_bytes: 1500,
    },
);

/// What a commit has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    at: u64,
    key: u64,
    /// What its bytes are made of: no other commit has the same.
    salt: u64,
    /// The chunk that has them, if they are in one.
    pub chunk: Option<u64>,
}

/// The newest commit of each key.
pub type State = BTreeMap<u64, Commit>;

impl Commit {
    pub fn bytes(&self) -> Vec<u8> {
        let mut random = Random::new(self.salt);
        let length = match self.chunk {
            Some(_) => 500 + random.below(2_000),
            None => random.below(200),
        };
        (0..length).map(|_| random.below(256) as u8).collect()
    }

    /// What it says in the log, or in a snapshot.
    fn record(&self) -> Vec<u8> {
        let mut record = Vec::new();
        for number in [self.at, self.key, self.salt, self.chunk.unwrap_or(0)] {
            put_number(&mut record, number);
        }
        if self.chunk.is_none() {
            record.extend(self.bytes());
        }
        record
    }

    /// What a record says, which may be longer.
    fn of(record: &[u8]) -> Result<Self, String> {
        let mut read = Bytes::of(record, "a commit");
        let mut number = || read.number().map_err(|error| error.to_string());
        let (at, key, salt, chunk) = (number()?, number()?, number()?, number()?);
        let commit = Commit {
            at,
            key,
            salt,
            chunk: (chunk > 0).then_some(chunk),
        };
        match record.starts_with(&commit.record()) {
            true => Ok(commit),
            false => Err(format!("commit {at} has other bytes")),
        }
    }
}

/// What has been done so far, by all processes.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// By their timestamps, from 1 on. `None`: it did nothing.
    commits: Vec<Option<Commit>>,
    /// Up to here they are durable, as somebody was told.
    acknowledged: u64,
    /// Whether somebody has had the database open.
    pub is_there: bool,
    salts: u64,
    /// Manifests that were put into place.
    pub checkpoints: usize,
    /// Those that were rejected.
    pub rejected: usize,
}

impl Known {
    /// What the database is when all is acknowledged.
    pub fn state(&self) -> State {
        assert_eq!(self.acknowledged, self.commits.len() as u64);
        self.state_at(self.acknowledged)
    }

    /// What the database is at a timestamp.
    fn state_at(&self, at: u64) -> State {
        let commits = self.commits[..at as usize].iter().flatten();
        commits.map(|commit| (commit.key, *commit)).collect()
    }

    /// Commits that did nothing may be gone, if no snapshot has them.
    fn least(&self) -> u64 {
        let acknowledged = &self.commits[..self.acknowledged as usize];
        let last = acknowledged.iter().flatten().next_back();
        last.map_or(0, |commit| commit.at)
    }
}

/// What was read.
pub struct Found {
    pub state: State,
    /// The snapshot's timestamp.
    at: u64,
    previous: Origin,
}

impl Found {
    pub fn new(manifest: Option<Manifest>) -> Self {
        let snapshot = manifest.and_then(|manifest| manifest.snapshot);
        Found {
            state: State::new(),
            at: snapshot.map_or(0, |snapshot| snapshot.at.0),
            previous: Origin::Snapshot,
        }
    }

    pub fn take(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        if self.previous == Origin::Log && origin == Origin::Snapshot {
            return Err("the log comes before the snapshot".to_owned());
        }
        self.previous = origin;
        let mut commits = Vec::new();
        for record in group.records() {
            let record = record.map_err(|error| error.to_string())?;
            let commit = Commit::of(record.body)?;
            match origin {
                Origin::Snapshot if record.at.0 != self.at => {
                    return Err("another snapshot".to_owned());
                }
                Origin::Log if record.at.0 != commit.at => return Err("another commit".to_owned()),
                // The snapshot has it, or a later one.
                Origin::Log if commit.at <= self.at => {}
                _ => commits.push(commit),
            }
        }
        // Owners say it in any order.
        commits.sort_by_key(|commit| commit.at);
        self.state
            .extend(commits.into_iter().map(|commit| (commit.key, commit)));
        Ok(())
    }
}

/// Why something has not been done.
#[derive(Debug)]
pub enum Failure {
    /// The log crate says so.
    Log(LogError),
    /// The model says something else.
    Wrong(String),
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Failure::Log(error)
    }
}

impl Failure {
    /// Errors of the disk are nobody's mistake.
    fn unless_disk(self) -> Result<(), String> {
        match self {
            Failure::Log(LogError::Disk(_)) => Ok(()),
            Failure::Log(error) => Err(error.to_string()),
            Failure::Wrong(what) => Err(what),
        }
    }
}

/// What there is behind a look at it.
struct Looked {
    read: Option<LogRead>,
    chunks: ChunkFiles,
    referred_to: BTreeSet<u64>,
}

/// Reads a database and compares it with the model.
fn read(directory: &Directory, known: &Known) -> Result<Looked, Failure> {
    let mut found = Found::new(directory.manifest());
    let take = |origin, group: Group| found.take(origin, &group).map_err(Failure::Wrong);
    let read = directory.read(take)?;
    let through = read.as_ref().map_or(0, |read| read.end.through.0);
    let (least, most) = (known.least(), known.commits.len() as u64);
    if !(least..=most).contains(&through) || (read.is_none() && known.is_there) {
        let what = format!("{read:?}, where commits up to {least}, and at most {most}, should be");
        return Err(Failure::Wrong(what));
    }
    let (state, wanted) = (found.state, known.state_at(through));
    if state != wanted {
        let what = format!("at {through} there is {state:?} instead of {wanted:?}");
        return Err(Failure::Wrong(what));
    }
    let chunks = directory.chunk_files()?;
    let mut referred_to = BTreeSet::new();
    for (number, commit) in state
        .values()
        .filter_map(|commit| Some((commit.chunk?, commit)))
    {
        let mut bytes = vec![0; chunks.info(number)?.bytes as usize];
        chunks.read(number, &mut bytes)?;
        if bytes != commit.bytes() {
            let what = format!("chunk {number} has other bytes");
            return Err(Failure::Wrong(what));
        }
        referred_to.insert(number);
    }
    Ok(Looked {
        read,
        chunks,
        referred_to,
    })
}

/// Looks at what is there.
pub fn look(disk: &SimulatedDisk, known: &Known, access: Lock) -> Result<(), Failure> {
    let directory = Directory::open(Arc::new(disk.clone()), access, DatabaseId([7; 16]))?;
    read(&directory, known).map(drop)
}

/// A checkpoint that is under way.
struct Checkpoint {
    start: LogStart,
    snapshot: SnapshotStart,
    writer: SnapshotWriter,
    /// What is to be written.
    left: Vec<Commit>,
    chunks: BTreeSet<u64>,
}

pub struct Process {
    disk: Arc<dyn Disk>,
    mistake: Mistake,
    pub open: OpenDatabase,
    files: ChunkFiles,
    applied: u64,
    checkpoint: Option<Checkpoint>,
    /// Whether files are made for the log to go on in, and the last one that was.
    pub makes_files: bool,
    made: Option<NextFile>,
    /// Bytes that records of snapshots have in vain.
    padding: usize,
    /// Whether a manifest could not be put into place.
    is_rejected: bool,
}

/// Whether a process goes on.
type GoesOn = bool;

impl Process {
    /// Opens what is there, and compares it with the model. `None`: the disk has failed.
    pub fn start(
        disk: Arc<dyn Disk>,
        known: &mut Known,
        mistake: Mistake,
        padding: usize,
    ) -> Result<Option<Self>, String> {
        match Self::try_start(disk, known, mistake, padding) {
            Ok(process) => Ok(Some(process)),
            Err(failure) => failure.unless_disk().map(|()| None),
        }
    }

    fn try_start(
        disk: Arc<dyn Disk>,
        known: &mut Known,
        mistake: Mistake,
        padding: usize,
    ) -> Result<Self, Failure> {
        let directory = Directory::open(disk.clone(), Lock::Exclusive, DATABASE)?;
        let Looked {
            read,
            chunks,
            referred_to,
        } = read(&directory, known)?;
        let through = read.as_ref().map_or(0, |read| read.end.through.0);
        let open = directory.write(read, &chunks, &referred_to, 1, 2, SMALL)?;
        known.is_there = true;
        known.commits.truncate(through as usize);
        known.acknowledged = through;
        Ok(Process {
            disk,
            mistake,
            open,
            files: chunks,
            applied: through,
            checkpoint: None,
            makes_files: false,
            made: None,
            padding,
            is_rejected: false,
        })
    }

    /// Does something. An error is somebody's mistake.
    pub fn act(&mut self, known: &mut Known, random: &mut Random) -> Result<GoesOn, String> {
        let failure = match random.below(16) {
            0..=5 => {
                self.commit(known, random);
                return Ok(true);
            }
            6 | 7 => self.step(known),
            8 => {
                // Only room was asked for.
                match self.makes_files && known.commits.len().is_multiple_of(2) {
                    true => self.made = self.open.log.files().make().ok(),
                    false => drop(self.open.log.prepare()),
                }
                Ok(())
            }
            9 => self.open.chunks.step().map(drop).map_err(Failure::from),
            _ => {
                self.applied += random.below(known.commits.len() as u64 - self.applied + 1);
                match self.checkpoint.take() {
                    Some(checkpoint) if checkpoint.left.is_empty() => self.end(checkpoint, known),
                    Some(checkpoint) => self.write(checkpoint, random),
                    None => self.begin(known, random),
                }
            }
        };
        failure.or_else(Failure::unless_disk)?;
        Ok(!self.open.log.has_failed())
    }

    /// Sets a key, or does nothing.
    fn commit(&mut self, known: &mut Known, random: &mut Random) {
        let at = known.commits.len() as u64 + 1;
        known.salts += 1;
        let mut commit = Commit {
            at,
            key: random.below(KEYS),
            salt: known.salts,
            chunk: None,
        };
        let buffer = &self.open.buffers[random.below(2) as usize];
        let does = random.below(6);
        if does == 0 {
            commit.chunk = Some(0);
            commit.chunk = push(&self.open, &commit).ok();
        }
        let entry = Entry {
            at: Timestamp(at),
            body: commit.record(),
            room: None,
        };
        match commit.chunk {
            Some(_) => buffer.push_with_chunks(entry),
            None if does < 5 => buffer.push(entry),
            None => return known.commits.push(None),
        }
        known.commits.push(Some(commit));
    }

    /// Makes durable what is applied.
    fn step(&mut self, known: &mut Known) -> Result<(), Failure> {
        let through = self.open.log.step(Timestamp(self.applied))?;
        known.acknowledged = through.0;
        Ok(())
    }

    /// The log goes on in a new file. The snapshot is of any time from then on.
    fn begin(&mut self, known: &Known, random: &mut Random) -> Result<(), Failure> {
        let start = self.open.log.begin_file(self.made.take())?;
        let through = start.through.0;
        self.applied += random.below(known.commits.len() as u64 - self.applied + 1);
        let at = through + random.below(self.applied - through + 1);
        let snapshot = SnapshotStart {
            number: self.open.directory.next_snapshot(),
            at: Timestamp(at),
        };
        let writer = SnapshotWriter::create(self.disk.clone(), DATABASE, snapshot)?;
        let left: Vec<Commit> = known.state_at(at).into_values().collect();
        self.checkpoint = Some(Checkpoint {
            start,
            snapshot,
            writer,
            chunks: left.iter().filter_map(|commit| commit.chunk).collect(),
            left,
        });
        Ok(())
    }

    fn write(&mut self, mut checkpoint: Checkpoint, random: &mut Random) -> Result<(), Failure> {
        for _ in 0..=random.below(6) {
            if let Some(commit) = checkpoint.left.pop() {
                let mut record = commit.record();
                record.resize(record.len() + self.padding, 0);
                checkpoint.writer.push(&record)?;
            }
        }
        // Some are given up.
        if random.below(20) > 0 {
            self.checkpoint = Some(checkpoint);
        }
        Ok(())
    }

    /// All is written: the manifest says so, and what is older is removed.
    fn end(&mut self, checkpoint: Checkpoint, known: &mut Known) -> Result<(), Failure> {
        let Checkpoint {
            start,
            snapshot,
            writer,
            chunks,
            ..
        } = checkpoint;
        self.open.chunks.flush()?;
        writer.finish()?;
        self.applied = self.applied.max(snapshot.at.0);
        self.step(known)?;
        if self.mistake == Mistake::RemovedFirst {
            self.remove_older("log", start.file);
            self.remove_older("snapshots", snapshot.number);
        }
        let next_chunk = self.open.chunk_buffer.next_undrawn();
        let begun = (self.open.directory).begin_from(snapshot, start, next_chunk);
        if self.is_rejected && begun.is_ok() {
            let what = "a manifest is written though the one before has failed";
            return Err(Failure::Wrong(what.to_owned()));
        }
        if begun.is_err() {
            self.is_rejected = self.open.directory.has_failed();
            known.rejected += usize::from(self.is_rejected);
        }
        begun?;
        known.checkpoints += 1;
        let manifest = self.open.directory.manifest();
        assert_eq!((manifest.snapshot, manifest.start), (Some(snapshot), start));
        let later = &known.commits[snapshot.at.0 as usize..];
        let later: BTreeSet<u64> = later
            .iter()
            .flatten()
            .filter_map(|commit| commit.chunk)
            .collect();
        let stays = |number| chunks.contains(&number) || later.contains(&number);
        Ok(self.files.retain(stays)?)
    }

    fn remove_older(&self, directory: &str, first: u64) {
        for path in paths(&*self.disk, directory) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            if name.parse::<u64>().unwrap() < first {
                let _ = self.disk.remove(&path);
            }
        }
    }

    /// Closes the database.
    pub fn close(self, known: &mut Known) {
        let all = known.commits.len() as u64;
        if self.open.log.close(Timestamp(all)).is_ok() {
            known.acknowledged = all;
        }
        let _ = self.open.chunks.close();
    }
}

/// Pushes the bytes of a commit as a chunk, if there is room.
fn push(open: &OpenDatabase, commit: &Commit) -> Result<u64, NoRoom> {
    let form = commit.bytes();
    let bytes = chunk_bytes(form.len() as u64);
    let reserve = || open.chunks.room().reserve(bytes, Purpose::Adding);
    let room = reserve().or_else(|_| {
        let _ = open.chunks.prepare();
        reserve()
    })?;
    let number = open.chunk_buffer.next_number();
    open.chunk_buffer.push(Chunk {
        number,
        object: ObjectId(1),
        rows: commit.at,
        form: Box::new(form),
        room,
    });
    Ok(number)
}
