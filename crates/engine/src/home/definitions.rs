//! The engine as a home whose definitions outlive the process.

use crate::clients::engine::Engine;
use crate::durability::{Durability, records};
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use eris_home::{Definition, DefinitionChange, Definitions, HomeError, ObjectDefinition};
use eris_types::{ObjectId, Timestamp};
use futures::future::BoxFuture;
use std::future::poll_fn;

/// What definitions are called in messages.
const DEFINITION: &str = "a definition";

impl Engine {
    /// What a durable engine has; whoever asks has seen that it is one.
    fn durability(&self) -> &Durability {
        let durability = self.shared().durability.as_ref();
        durability.expect("only a durable engine has definitions")
    }
}

/// A timestamp that is finished come what may: one that is never finished stops all others.
struct Drawn<'a>(&'a Sequencer, Timestamp);

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        self.0.finish(self.1);
    }
}

impl Definitions for Engine {
    fn stored(&self) -> Vec<Definition> {
        self.durability().definitions()
    }

    fn store(&self, changes: Vec<DefinitionChange>) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(async move {
            let log = &self.durability().log;
            let (bytes, purpose) = Durability::size_of(&changes);
            let room = log.reserved(bytes, purpose, DEFINITION).await?;
            let sequencer = &self.shared().sequencer;
            let at = poll_fn(|cx| sequencer.poll_draw(cx)).await;
            let drawn = Drawn(sequencer, at);
            let mut room = Some(room);
            for change in &changes {
                log.say(at, records::definition(change), room.take());
            }
            drop(drawn);
            self.shared().visible(at).await
        })
    }

    fn note(&self, changes: Vec<DefinitionChange>) -> Result<(), HomeError> {
        let log = &self.durability().log;
        for change in &changes {
            log.note(records::definition(change))?;
        }
        Ok(())
    }

    fn reopen(&self, object: ObjectId, definition: &ObjectDefinition) -> Result<(), HomeError> {
        let stored = self.object(object)?.stored();
        let is_same = stored.schema == definition.schema
            && stored.key == definition.key
            && stored.partitioning == definition.partitioning;
        match is_same && self.durability().reopen(object) {
            true => Ok(()),
            false => Err(EngineError::Open(format!(
                "the database is damaged: {object} is not what table {} is defined as",
                definition.name
            ))),
        }
    }

    fn opened(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(async move {
            for object in self.durability().take_unopened() {
                self.drop(object).await?;
            }
            Ok(())
        })
    }
}
