//! What statements of a durable engine share.

use super::log::Log;
use super::log_thread::LogThread;
use super::records::{self, StoredObject};
use super::requests::Requests;
use super::status::Checkpoints;
use crate::error::EngineError;
use crate::settings::Synchronous;
use eris_atomics::Lock;
use eris_home::{Definition, DefinitionChange};
use eris_log::{Directory, OpenDirectory, Purpose, ReservedRoom};
use eris_types::{ObjectId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What definitions are called in messages.
const DEFINITION: &str = "a definition";

/// What was found when the database was opened, and the way to its files.
#[derive(Debug)]
pub(crate) struct Durability {
    pub(super) open: Open,
    /// The directory, for messages.
    pub(super) place: Arc<str>,
    /// All definitions. A checkpoint has what is here, whether or not the log has it yet. So they are here first.
    definitions: Lock<Defined>,
    /// Recovered objects that no definition has reopened yet.
    unopened: Lock<BTreeSet<ObjectId>>,
}

/// All definitions.
#[derive(Debug)]
struct Defined {
    all: BTreeMap<String, Definition>,
    /// How often one was stored.
    version: u64,
}

/// What the directory is open for.
#[derive(Debug)]
pub(crate) enum Open {
    ToWrite(Box<OpenLog>),
    ToRead(OpenToRead),
    /// What was left of it was read, up to this commit. Definitions may be changed, for they are written into another
    /// place.
    Salvaged(Timestamp),
}

/// A directory from which all was read.
#[derive(Debug)]
pub(crate) struct OpenToRead {
    /// `None` once it is closed: somebody may write there.
    pub(super) directory: Lock<Option<Directory>>,
    /// Up to where it was read.
    pub(super) through: Timestamp,
    /// When commits would be durable.
    synchronous: Lock<Synchronous>,
}

/// The log as clients use it.
#[derive(Debug)]
pub(crate) struct OpenLog {
    pub log: Log,
    pub requests: Arc<Requests>,
    /// Held by whoever makes a checkpoint.
    pub checkpointing: tokio::sync::Mutex<()>,
    pub checkpoints: Checkpoints,
    /// When commits are durable in this process, whatever the database has.
    given: Option<Synchronous>,
    /// `None` once the log is closed: somebody else may open it.
    pub(super) directory: Lock<Option<OpenDirectory>>,
    /// `None` where a test steps the log, and once it is closed.
    thread: Lock<Option<LogThread>>,
}

impl OpenToRead {
    pub fn new(directory: Directory, through: Timestamp) -> Self {
        OpenToRead {
            directory: Lock::new(Some(directory)),
            through,
            synchronous: Lock::default(),
        }
    }
}

impl OpenLog {
    pub fn new(
        log: Log,
        requests: Arc<Requests>,
        directory: OpenDirectory,
        given: Option<Synchronous>,
    ) -> Self {
        OpenLog {
            log,
            requests,
            checkpointing: tokio::sync::Mutex::default(),
            checkpoints: Checkpoints::default(),
            given,
            directory: Lock::new(Some(directory)),
            thread: Lock::default(),
        }
    }

    fn close(&self) -> Result<(), EngineError> {
        // Whoever closes it at the same time returns when it is closed, too.
        let mut thread = self.thread.lock();
        let closed = thread.take().map_or(Ok(()), LogThread::close);
        let directory = self.directory.lock().take();
        if let Some(directory) = directory {
            // A checkpoint that is under way gives up.
            directory.close();
        }
        closed
    }

    /// The directory.
    ///
    /// # Errors
    /// The log is closed.
    pub fn directory(&self) -> Result<OpenDirectory, EngineError> {
        let directory = self.directory.lock().clone();
        directory.ok_or_else(|| self.log.failed())
    }

    /// Room to say that there is a new object.
    ///
    /// # Errors
    /// There is none.
    pub async fn room_for_object(
        &self,
        object: &StoredObject,
    ) -> Result<ReservedRoom, EngineError> {
        let bytes = records::object(object).len() as u64;
        let (purpose, name) = (Purpose::Adding, &object.name);
        self.log.reserved(bytes, purpose, name).await
    }

    /// Says that there is a new object.
    pub fn say_object(&self, object: &StoredObject, room: ReservedRoom) {
        let body = records::object(object);
        self.log.say(Timestamp::ZERO, body, Some(room));
    }
}

impl Durability {
    pub fn new(
        open: Open,
        place: Arc<str>,
        definitions: BTreeMap<String, Definition>,
        objects: impl Iterator<Item = ObjectId>,
    ) -> Self {
        Durability {
            open,
            place,
            definitions: Lock::new(Defined {
                all: definitions,
                version: 0,
            }),
            unopened: Lock::new(objects.collect()),
        }
    }

    /// Who flushes.
    pub fn set_thread(&self, thread: LogThread) {
        if let Open::ToWrite(open) = &self.open {
            *open.thread.lock() = Some(thread);
        }
    }

    /// When commits are durable.
    pub fn synchronous(&self) -> Synchronous {
        match &self.open {
            Open::ToWrite(open) => open.requests.synchronous(),
            Open::ToRead(open) => *open.synchronous.lock(),
            Open::Salvaged(_) => Synchronous::default(),
        }
    }

    /// Changes that.
    pub fn set_synchronous(&self, synchronous: Synchronous) {
        match &self.open {
            Open::ToWrite(open) => open.requests.set_synchronous(synchronous),
            Open::ToRead(open) => *open.synchronous.lock() = synchronous,
            // Nothing is committed, and the definition of the setting is kept like all others.
            Open::Salvaged(_) => {}
        }
    }

    /// Whether nothing is written.
    pub fn is_read_only(&self) -> bool {
        !matches!(self.open, Open::ToWrite(_))
    }

    /// The log, for something that is to be written.
    ///
    /// # Errors
    /// The database is open for reading only.
    pub fn to_write(&self, what: impl FnOnce() -> String) -> Result<&OpenLog, EngineError> {
        match &self.open {
            Open::ToWrite(open) => Ok(open),
            Open::ToRead(_) | Open::Salvaged(_) => Err(EngineError::ReadOnly { what: what() }),
        }
    }

    /// Closes the log behind all that was committed.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn close(&self) -> Result<(), EngineError> {
        match &self.open {
            Open::ToWrite(open) => open.close(),
            Open::ToRead(open) => {
                *open.directory.lock() = None;
                Ok(())
            }
            Open::Salvaged(_) => Ok(()),
        }
    }

    /// Says that an object is dropped. If there is no room for it, the next start finds out that nothing leads to it.
    pub fn say_dropped(&self, object: ObjectId) {
        if let Open::ToWrite(open) = &self.open {
            let _ = open.log.note(records::dropped(object), "");
        }
    }

    /// All definitions, by name.
    pub fn definitions(&self) -> Vec<Definition> {
        self.definitions_and_version().1
    }

    /// The same, and a number that is another one when something else is defined. What was noted does not count.
    pub fn definitions_and_version(&self) -> (u64, Vec<Definition>) {
        let definitions = self.definitions.lock();
        let all = definitions.all.values().cloned().collect();
        (definitions.version, all)
    }

    /// A recovered object is in use; whether it was none before. If it was salvaged, another definition may be tried.
    pub fn reopen(&self, object: ObjectId) -> bool {
        let was_unopened = self.unopened.lock().remove(&object);
        was_unopened || matches!(self.open, Open::Salvaged(_))
    }

    /// The objects that nobody has reopened yet.
    pub fn unopened(&self) -> Vec<ObjectId> {
        self.unopened.lock().iter().copied().collect()
    }

    /// All definitions are in use. Returns the objects that nobody has reopened, and nobody will.
    pub fn opened(&self) -> Vec<ObjectId> {
        if let Open::ToWrite(open) = &self.open
            && let Some(given) = open.given
        {
            self.set_synchronous(given);
        }
        std::mem::take(&mut *self.unopened.lock())
            .into_iter()
            .collect()
    }

    /// Says that definitions have changed; returns the timestamp of that.
    ///
    /// # Errors
    /// There is no room.
    pub async fn say_definitions(
        &self,
        changes: &[DefinitionChange],
    ) -> Result<Timestamp, EngineError> {
        let open = self.to_write(|| named(changes))?;
        let bytes = changes.iter().map(records::definition_bytes).sum();
        let is_gone = |change: &DefinitionChange| matches!(change, DefinitionChange::IsGone(_));
        let purpose = match changes.iter().all(is_gone) {
            true => Purpose::Freeing,
            false => Purpose::Adding,
        };
        let room = open.log.reserved(bytes, purpose, DEFINITION).await?;
        let bodies = changes.iter().map(records::definition).collect();
        self.define(changes, 1);
        Ok(open.log.commit(bodies, room).await)
    }

    /// The same for what belongs to no commit.
    ///
    /// # Errors
    /// There is no room.
    pub fn note_definitions(&self, changes: &[DefinitionChange]) -> Result<(), EngineError> {
        if let Open::Salvaged(_) = self.open {
            self.define(changes, 0);
            return Ok(());
        }
        let open = self.to_write(|| named(changes))?;
        let mut bodies = changes.iter().map(records::definition);
        bodies.try_for_each(|body| open.log.note(body, DEFINITION))?;
        self.define(changes, 0);
        Ok(())
    }

    fn define(&self, changes: &[DefinitionChange], versions: u64) {
        let mut definitions = self.definitions.lock();
        let Defined { all, version } = &mut *definitions;
        *version += versions;
        for change in changes {
            match change {
                DefinitionChange::Is(is) => drop(all.insert(is.name.clone(), is.clone())),
                DefinitionChange::IsGone(name) => drop(all.remove(name)),
            }
        }
    }
}

/// The first definition that changes, for messages.
fn named(changes: &[DefinitionChange]) -> String {
    let names = changes.iter().map(|change| match change {
        DefinitionChange::Is(Definition { name, .. }) | DefinitionChange::IsGone(name) => name,
    });
    names.take(1).cloned().collect()
}
