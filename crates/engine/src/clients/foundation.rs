//! What an engine stands on: the machine's topology and memory, and the order of commits; and what it finds if it opens
//! a database.

use crate::durability::{Durability, Log, LogThread, open_error};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::recovery::{Recovery, Restored, RestoredOwner};
use crate::remote::Remote;
use crate::sequencer::{Sequencer, first_way};
use crate::settings::Synchronous;
use crate::tasks::owner::Owner;
use eris_disk::{Disk, Lock};
use eris_log::{
    ChunkSettings, DatabaseId, Directory, LogSettings, LogWriter, OpenDatabase, OpenDirectory,
};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{AeuId, ObjectId, Timestamp};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

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
    log: Log,
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
    lock: OpenDirectory,
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
            owner.log = Some(found.log);
            owner.partitions = found.restored.partitions;
            owner.numberings = found.restored.numberings;
        }
        owner
    }
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
    settings: LogSettings,
) -> Result<Opened, EngineError> {
    let directory: Arc<str> = disk.root().display().to_string().into();
    let mut recovery = Recovery::new(&topology, &memory);
    let buffers = topology.aeus().len() + 1;
    let told = |error| open_error(&error);
    let in_directory = Directory::open(disk, Lock::Exclusive, any_database()).map_err(told)?;
    let take = |_, group: eris_log::Group| recovery.take(&group).map_err(OpenError::Engine);
    let read = in_directory.read(take).map_err(|error| match error {
        OpenError::Log(error) => open_error(&error),
        OpenError::Engine(error) => EngineError::Open(format!("{directory}: {error}")),
    })?;
    let last = read
        .as_ref()
        .map_or(Timestamp::ZERO, |read| read.end.through);
    let chunks = in_directory.chunk_files().map_err(told)?;
    let settings = (settings, ChunkSettings::default());
    let opened = in_directory.write(read, &chunks, &BTreeSet::new(), 1, buffers, settings);
    let OpenDatabase {
        directory: lock,
        log: writer,
        buffers,
        ..
    } = opened.map_err(told)?;
    let foundation = Foundation::new(topology, memory, huge_pages, last);
    let logs = buffers.into_iter().map(|buffer| {
        let room = writer.room().clone();
        let (sequencer, directory) = (&foundation.sequencer, &directory);
        Log::new(buffer, room, Arc::clone(sequencer), Arc::clone(directory))
    });
    let mut logs: Vec<Log> = logs.collect();
    let restored = recovery.restore(&logs);
    let restored = restored.map_err(|error| EngineError::Open(format!("{directory}: {error}")))?;
    let Restored {
        objects,
        definitions,
        next_object,
        owners,
    } = restored;
    let ids = objects.iter().map(|object| object.id);
    let durability = Durability::new(logs.pop().expect("that of clients"), definitions, ids);
    let owners = logs.into_iter().zip(owners);
    let owners = owners.map(|(log, restored)| FoundOwner { log, restored });
    let found = Found {
        owners: owners.collect(),
        shared: Some(FoundState {
            objects,
            next_object,
            durability,
        }),
    };
    Ok(Opened {
        foundation,
        found,
        writer,
        lock,
    })
}

impl Opened {
    /// For tests, which step the log writer by hand.
    #[cfg(test)]
    pub fn into_parts(self) -> (Foundation, Found, LogWriter, OpenDirectory) {
        (self.foundation, self.found, self.writer, self.lock)
    }

    /// Starts the log thread.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(self, synchronous: Synchronous) -> Result<(Foundation, Found), EngineError> {
        let sequencer = &self.foundation.sequencer;
        let thread = LogThread::start(self.writer, self.lock, sequencer, synchronous);
        let thread = thread.map_err(|error| EngineError::Start(error.to_string()))?;
        if let Some(shared) = &self.found.shared {
            shared.durability.set_thread(thread);
        }
        Ok((self.foundation, self.found))
    }
}

/// Why a log was not read to its end.
enum OpenError {
    Log(eris_log::LogError),
    Engine(EngineError),
}

impl From<eris_log::LogError> for OpenError {
    fn from(error: eris_log::LogError) -> Self {
        OpenError::Log(error)
    }
}

/// The identity of a new database: no two have the same, by all chance.
fn any_database() -> DatabaseId {
    // Each has keys from the system's source of randomness.
    let any = || {
        RandomState::new()
            .hash_one(std::process::id())
            .to_le_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&any());
    bytes[8..].copy_from_slice(&any());
    DatabaseId(bytes)
}
