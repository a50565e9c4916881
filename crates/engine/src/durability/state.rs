//! What statements of a durable engine share.

use super::log::Log;
use super::log_thread::LogThread;
use super::records::{self, StoredObject};
use crate::error::EngineError;
use eris_atomics::Lock;
use eris_home::{Definition, DefinitionChange};
use eris_log::Purpose;
use eris_types::{ObjectId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What definitions are called in messages.
const DEFINITION: &str = "a definition";

/// The log as clients use it, and what was found when the database was opened.
#[derive(Debug)]
pub(crate) struct Durability {
    pub log: Log,
    /// The definitions that were stored.
    definitions: Lock<BTreeMap<String, Definition>>,
    /// Recovered objects that no definition has reopened yet.
    unopened: Lock<BTreeSet<ObjectId>>,
    /// `None` where a test steps the log, and once it is closed.
    thread: Lock<Option<LogThread>>,
}

impl Durability {
    pub fn new(
        log: Log,
        definitions: BTreeMap<String, Definition>,
        objects: impl Iterator<Item = ObjectId>,
    ) -> Self {
        Durability {
            log,
            definitions: Lock::new(definitions),
            unopened: Lock::new(objects.collect()),
            thread: Lock::default(),
        }
    }

    /// Who flushes.
    pub fn set_thread(&self, thread: LogThread) {
        *self.thread.lock() = Some(thread);
    }

    /// Closes the log behind all that was committed.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn close(&self) -> Result<(), EngineError> {
        let thread = self.thread.lock().take();
        match thread {
            Some(thread) => thread.close(),
            None => Ok(()),
        }
    }

    /// Says that there is a new object.
    ///
    /// # Errors
    /// There is no room.
    pub async fn say_object(&self, object: &StoredObject) -> Result<(), EngineError> {
        let body = records::object(object);
        let (bytes, name) = (body.len() as u64, &object.name);
        let room = self.log.reserved(bytes, Purpose::Adding, name).await?;
        self.log.say(Timestamp::ZERO, body, Some(room));
        Ok(())
    }

    /// Says that an object is dropped. If there is no room for it, the next start finds out that nothing leads to it.
    pub fn say_dropped(&self, object: ObjectId) {
        let _ = self.log.note(records::dropped(object), "");
    }

    /// The definitions that were found.
    pub fn definitions(&self) -> Vec<Definition> {
        self.definitions.lock().values().cloned().collect()
    }

    /// A recovered object is in use; whether it was none before.
    pub fn reopen(&self, object: ObjectId) -> bool {
        self.unopened.lock().remove(&object)
    }

    /// The objects that nobody has reopened, and nobody will.
    pub fn take_unopened(&self) -> Vec<ObjectId> {
        // What was found has served its purpose, too.
        self.definitions.lock().clear();
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
        let bytes = changes.iter().map(records::definition_bytes).sum();
        let is_gone = |change: &DefinitionChange| matches!(change, DefinitionChange::IsGone(_));
        let purpose = match changes.iter().all(is_gone) {
            true => Purpose::Freeing,
            false => Purpose::Adding,
        };
        let room = self.log.reserved(bytes, purpose, DEFINITION).await?;
        let bodies = changes.iter().map(records::definition).collect();
        Ok(self.log.commit(bodies, room).await)
    }

    /// The same for what belongs to no commit.
    ///
    /// # Errors
    /// There is no room.
    pub fn note_definitions(&self, changes: &[DefinitionChange]) -> Result<(), EngineError> {
        let mut bodies = changes.iter().map(records::definition);
        bodies.try_for_each(|body| self.log.note(body, DEFINITION))
    }
}
