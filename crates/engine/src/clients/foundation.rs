//! What an engine stands on: the machine's topology and memory, and the order of commits; and what it finds if it opens
//! a database.

use crate::durability::{
    Chunks, Durability, Flusher, Log, LogThread, Open, OpenLog, OpenToRead, Requests,
    StorageSettings, any_database, open_error,
};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::recovery::{DatabaseSalvage, Recovery, Restored, RestoredOwner, Salvage, UniqueColumns};
use crate::remote::Remote;
use crate::sequencer::{Sequencer, first_way};
use crate::tasks::owner::Owner;
use eris_disk::{Disk, Lock};
use eris_log::{ChunkFiles, Directory, Group, LogError, LogRead, LogWriter, OpenDatabase, Origin};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{AeuId, ObjectId, Timestamp};
use std::sync::Arc;

/// So many files of the log are worth a checkpoint.
const FILES: u64 = 16;

/// What all parts of an engine share from the beginning.
#[derive(Clone)]
pub(crate) struct Foundation {
    pub topology: Arc<Topology>,
    pub memory: Memory,
    pub sequencer: Arc<Sequencer>,
    pub remote: Arc<Remote>,
    pub huge_pages: HugePages,
}

/// What there is at the start: nothing, unless a database was opened.
#[derive(Default)]
pub(crate) struct Found {
    /// What each AEU has.
    pub owners: Vec<FoundOwner>,
    pub shared: Option<FoundState>,
}

/// What an AEU of a durable engine has at the start.
pub(crate) struct FoundOwner {
    /// `None`: nothing is written.
    log: Option<Log>,
    restored: RestoredOwner,
}

/// What statements of a durable engine share at the start.
pub(crate) struct FoundState {
    pub objects: Vec<Arc<DataObject>>,
    pub next_object: ObjectId,
    pub durability: Durability,
}

/// A database that was read, and nobody writes yet.
pub(crate) struct Opened {
    foundation: Foundation,
    found: Found,
    writer: LogWriter,
    chunks: Arc<Chunks>,
    requests: Arc<Requests>,
}

impl Foundation {
    /// One whose newest commit is `last`.
    pub fn new(
        topology: Arc<Topology>,
        memory: Memory,
        huge_pages: HugePages,
        last: Timestamp,
    ) -> Self {
        let nodes = topology.nodes().len();
        Foundation {
            sequencer: Arc::new(Sequencer::begin_behind(last, nodes, first_way(&topology))),
            remote: Arc::new(Remote::new(&topology)),
            topology,
            memory,
            huge_pages,
        }
    }

    /// The handler of one AEU, and what it has.
    pub fn owner(&self, aeu: AeuId, found: Option<FoundOwner>) -> Owner {
        let memory_of_node = self.memory.node(self.topology.node_of(aeu));
        let mut owner = Owner::new(
            aeu,
            memory_of_node,
            self.memory.budget().clone(),
            Arc::clone(&self.topology),
            Arc::clone(&self.sequencer),
            Arc::clone(&self.remote),
        );
        if let Some(found) = found {
            owner.log = found.log;
            owner.partitions = found.restored.partitions;
            owner.numberings = found.restored.numberings;
        }
        owner
    }
}

impl Found {
    /// What was restored, with an end of the log for each owner.
    fn of(
        restored: Restored,
        logs: impl Iterator<Item = Option<Log>>,
        open: Open,
        place: Arc<str>,
    ) -> Self {
        let Restored {
            objects,
            definitions,
            next_object,
            owners,
        } = restored;
        let ids = objects.iter().map(|object| object.id);
        let durability = Durability::new(open, place, definitions, ids);
        let owners = owners.into_iter().zip(logs);
        let owners = owners.map(|(restored, log)| FoundOwner { log, restored });
        Found {
            owners: owners.collect(),
            shared: Some(FoundState {
                objects,
                next_object,
                durability,
            }),
        }
    }
}

/// What was read of a database. Nothing of it has been changed.
struct ReadBack {
    directory: Directory,
    files: ChunkFiles,
    recovery: Recovery,
    read: Option<LogRead>,
    /// Bytes of the log.
    logged: u64,
    /// Where it is, for messages.
    place: Arc<str>,
}

impl ReadBack {
    /// Reads the database on a disk, with so many threads.
    ///
    /// # Errors
    /// It is open already, damaged, or larger than the memory.
    fn new(
        disk: Arc<dyn Disk>,
        lock: Lock,
        topology: &Arc<Topology>,
        memory: &Memory,
        threads: usize,
    ) -> Result<Self, EngineError> {
        let place: Arc<str> = disk.root().display().to_string().into();
        let told = |error: LogError| open_error(&error);
        let at_place = |error| at_place(&place, error);
        let directory = Directory::open(disk, lock, any_database()).map_err(told)?;
        let files = directory.chunk_files().map_err(told)?;
        let mut recovery = Recovery::new(topology, memory, files.clone(), threads);
        let mut logged = 0;
        let take = |origin, group: Group| {
            if origin == Origin::Log {
                logged += group.bytes();
            }
            (recovery.take(origin, &group)).map_err(OpenError::Engine)
        };
        let read = directory.read(take).map_err(|error| match error {
            OpenError::Log(error) => open_error(&error),
            OpenError::Engine(error) => at_place(error),
        })?;
        recovery.finish().map_err(at_place)?;
        Ok(ReadBack {
            directory,
            files,
            recovery,
            read,
            logged,
            place,
        })
    }

    /// The newest commit.
    fn last(&self) -> Timestamp {
        let read = self.read.as_ref();
        read.map_or(Timestamp::ZERO, |read| read.end.through)
    }
}

/// An error of a database, and where that is.
fn at_place(place: &str, error: EngineError) -> EngineError {
    let more = match error {
        EngineError::OutOfMemory { .. } => "; all of a database is in memory: allow it more",
        _ => "",
    };
    EngineError::Open(format!("{place}: {error}{more}"))
}

/// Opens the database on a disk, or makes one there.
///
/// # Errors
/// It is open already, damaged, or larger than the memory: nothing was changed.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    topology: Arc<Topology>,
    memory: Memory,
    huge_pages: HugePages,
    storage: StorageSettings,
) -> Result<Opened, EngineError> {
    let back = ReadBack::new(disk, Lock::Exclusive, &topology, &memory, storage.threads)?;
    let last = back.last();
    let ReadBack {
        directory,
        files,
        recovery,
        read,
        logged,
        place,
    } = back;
    // Each opening leaves a file, however little is in it.
    let files_of_log = read.as_ref().map_or(0, |read| read.files.len() as u64);
    let of_files = storage.checkpoint_bytes / FILES * files_of_log.min(FILES);
    let referred_to = recovery.referred_to();
    let next_chunk = referred_to.last().map_or(1, |last| last + 1);
    let (owners, settings) = (topology.aeus().len(), (storage.log, storage.chunks));
    let opened = directory.write(read, &files, &referred_to, next_chunk, owners + 1, settings);
    let OpenDatabase {
        directory,
        log: writer,
        buffers,
        chunks,
        chunk_buffer,
    } = opened.map_err(|error| open_error(&error))?;
    let foundation = Foundation::new(topology, memory, huge_pages, last);
    let sequencer = &foundation.sequencer;
    let requests = Arc::new(Requests::new(
        sequencer,
        writer.files(),
        logged + of_files,
        storage.checkpoint_bytes,
        storage.synchronous.unwrap_or_default(),
    ));
    let chunks = Arc::new(Chunks::new(
        (files, chunks, chunk_buffer),
        storage.chunks,
        recovery.said().clone(),
        Arc::clone(&place),
    ));
    let logs = buffers.into_iter().map(|buffer| {
        let room = writer.room().clone();
        let (sequencer, chunks) = (Arc::clone(sequencer), Arc::clone(&chunks));
        Log::new(buffer, room, chunks, sequencer, Arc::clone(&place))
    });
    let mut logs: Vec<Log> = logs.collect();
    let restored = recovery.restore(&logs);
    let restored = restored.map_err(|error| at_place(&place, error))?;
    let of_clients = logs.pop().expect("that of clients");
    let open = OpenLog::new(
        of_clients,
        Arc::clone(&requests),
        directory,
        storage.synchronous,
    );
    let logs = logs.into_iter().map(Some);
    let found = Found::of(restored, logs, Open::ToWrite(Box::new(open)), place);
    Ok(Opened {
        foundation,
        found,
        writer,
        chunks,
        requests,
    })
}

/// Opens the database on a disk for reading only. Nothing is changed there, now or later.
///
/// # Errors
/// There is none, another process writes it, or as [`open`].
pub(crate) fn open_to_read(
    disk: Arc<dyn Disk>,
    topology: Arc<Topology>,
    memory: Memory,
    huge_pages: HugePages,
    threads: usize,
) -> Result<(Foundation, Found), EngineError> {
    let back = ReadBack::new(disk, Lock::Shared, &topology, &memory, threads)?;
    let last = back.last();
    let ReadBack {
        directory,
        recovery,
        place,
        ..
    } = back;
    let restored = recovery.restore(&[]);
    let restored = restored.map_err(|error| at_place(&place, error))?;
    let open = Open::ToRead(OpenToRead::new(directory, last));
    // Nobody has something to say.
    let found = Found::of(restored, std::iter::repeat(None), open, place);
    let foundation = Foundation::new(topology, memory, huge_pages, last);
    Ok((foundation, found))
}

/// Opens what is left of the database on a disk, for whoever writes it into another place. Nothing is changed there.
/// `progress` is told how many bytes of how many were looked at.
///
/// # Errors
/// As [`Salvage::read`].
pub(crate) fn open_remains(
    disk: Arc<dyn Disk>,
    topology: Arc<Topology>,
    memory: Memory,
    huge_pages: HugePages,
    threads: usize,
    uniques: UniqueColumns<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Foundation, Found, DatabaseSalvage), EngineError> {
    let place: Arc<str> = disk.root().display().to_string().into();
    let salvage = Salvage::read(disk, &topology, &memory, threads, uniques, progress);
    let salvage = salvage.map_err(|error| match error {
        EngineError::OutOfMemory { .. } => at_place(&place, error),
        other => other,
    })?;
    let last = salvage.last();
    let restored = salvage.restore();
    let (restored, salvaged) = restored.map_err(|error| at_place(&place, error))?;
    let open = Open::Salvaged(last);
    let found = Found::of(restored, std::iter::repeat(None), open, place);
    let foundation = Foundation::new(topology, memory, huge_pages, last);
    Ok((foundation, found, salvaged))
}

impl Opened {
    /// Who writes the log, and what is found, for tests that step it by hand.
    pub fn flusher(self) -> (Foundation, Found, Flusher) {
        let sequencer = &self.foundation.sequencer;
        let flusher = Flusher::new(self.writer, &self.chunks, sequencer, &self.requests);
        (self.foundation, self.found, flusher)
    }

    /// Starts the threads that write.
    ///
    /// # Errors
    /// The system has none.
    pub fn start(self) -> Result<(Foundation, Found), EngineError> {
        let (foundation, found, flusher) = self.flusher();
        let thread = LogThread::start(flusher);
        let thread = thread.map_err(|error| EngineError::Start(error.to_string()))?;
        if let Some(shared) = &found.shared {
            shared.durability.set_thread(thread);
        }
        Ok((foundation, found))
    }
}

/// Why a log was not read to its end.
enum OpenError {
    Log(LogError),
    Engine(EngineError),
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        OpenError::Log(error)
    }
}
