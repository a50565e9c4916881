//! The way from the catalogue to a home whose definitions outlive the process.

use crate::error::SqlError;
use eris_home::{DefinitionChange, Definitions, Home};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where changes of definitions are stored.
#[derive(Debug)]
pub(crate) struct DefinitionLog {
    home: Arc<dyn Home>,
    /// How many notes there were. Counted up by whoever notes, behind the note: so whoever sees a number can wait for
    /// all notes up to it.
    noted: AtomicU64,
    /// How many of them are durable. Raised by whoever has waited for that.
    durable: AtomicU64,
}

impl DefinitionLog {
    /// None for a home that keeps no definitions.
    pub fn of(home: &Arc<dyn Home>) -> Option<Self> {
        home.definitions()?;
        Some(DefinitionLog {
            home: Arc::clone(home),
            noted: AtomicU64::new(0),
            durable: AtomicU64::new(0),
        })
    }

    fn definitions(&self) -> &dyn Definitions {
        let definitions = self.home.definitions();
        definitions.expect("they were there when this was made")
    }

    /// Whether the database is open for reading only: nothing can be stored, and no rows of its tables written.
    pub fn is_read_only(&self) -> bool {
        let durability = self.home.durability();
        durability.is_some_and(|durability| durability.is_read_only())
    }

    /// Makes changes durable, all of them together.
    ///
    /// # Errors
    /// As [`Definitions::store`].
    pub async fn store(&self, changes: Vec<DefinitionChange>) -> Result<(), SqlError> {
        if changes.is_empty() {
            return Ok(());
        }
        Ok(self.definitions().store(changes).await?)
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// As [`Definitions::note`].
    pub fn note(&self, change: DefinitionChange) -> Result<(), SqlError> {
        self.definitions().note(vec![change])?;
        self.noted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Waits until all that was noted is durable, by whomever.
    ///
    /// # Errors
    /// The disk has failed, so that it will never be.
    pub async fn settle_notes(&self) -> Result<(), SqlError> {
        let noted = self.noted.load(Ordering::SeqCst);
        if self.durable.load(Ordering::SeqCst) < noted {
            self.home.barrier().await?;
            self.durable.fetch_max(noted, Ordering::SeqCst);
        }
        Ok(())
    }
}
