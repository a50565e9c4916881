//! Data objects, and where they come from: a home makes new ones, or has kept those of a definition that was stored.

use super::written_rows::WrittenRows;
use crate::error::SqlError;
use eris_home::{Home, HomeError, ObjectDefinition};
use eris_types::ObjectId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// A data object, for as long as a name leads to it or a statement holds a table on it.
#[derive(Debug)]
pub(crate) struct Data {
    object: ObjectId,
    /// `None` once it is removed.
    home: Option<Arc<dyn Home>>,
    /// Where the removal waits for the home if nobody else does. A runtime that has been shut down starts nothing: so
    /// objects outlive the database that they are of.
    runtime: Option<Handle>,
    /// Of one that was there before the database was opened: it stays if the opening fails.
    opened: Option<Arc<AtomicBool>>,
    pub written: WrittenRows,
}

impl Data {
    pub fn object(&self) -> ObjectId {
        self.object
    }

    fn is_removed_with_its_name(&self) -> bool {
        let opened = self.opened.as_ref();
        opened.is_none_or(|opened| opened.load(Ordering::Acquire))
    }

    /// Removes it from its home.
    pub async fn remove(mut self) -> Result<(), SqlError> {
        match self.home.clone() {
            Some(home) if self.is_removed_with_its_name() => {
                home.drop_object(self.object).await?;
                self.home = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if !self.is_removed_with_its_name() {
            return;
        }
        // Dropping an object takes answers from all its workers, so it is left to a task of its own.
        if let (Some(home), Some(runtime)) = (self.home.take(), self.runtime.take()) {
            let object = self.object;
            runtime.spawn(async move { home.drop_object(object).await });
        }
    }
}

/// Where the data objects of a statement come from.
#[derive(Clone, Debug)]
pub(crate) struct DataSource {
    home: Arc<dyn Home>,
    stored: Option<Arc<StoredObjects>>,
}

/// The data objects of a definition that was stored, in the order of its text.
#[derive(Debug)]
pub(crate) struct StoredObjects {
    left: Mutex<VecDeque<ObjectId>>,
    /// Whether the whole database has been opened.
    opened: Arc<AtomicBool>,
}

impl StoredObjects {
    pub fn new(objects: &[ObjectId], opened: &Arc<AtomicBool>) -> Self {
        StoredObjects {
            left: Mutex::new(objects.iter().copied().collect()),
            opened: Arc::clone(opened),
        }
    }

    /// Whether all of them are in use.
    pub fn is_used_up(&self) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.is_empty()
    }

    fn next(&self) -> Option<ObjectId> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.pop_front()
    }
}

impl DataSource {
    /// New ones.
    pub fn new(home: &Arc<dyn Home>) -> Self {
        DataSource {
            home: Arc::clone(home),
            stored: None,
        }
    }

    /// Those of a definition that is opened.
    pub fn stored(home: &Arc<dyn Home>, objects: &Arc<StoredObjects>) -> Self {
        DataSource {
            home: Arc::clone(home),
            stored: Some(Arc::clone(objects)),
        }
    }

    /// An object that is made like this, empty if it is new.
    ///
    /// # Errors
    /// The home cannot have such ones, or has another one.
    pub async fn data(&self, definition: ObjectDefinition) -> Result<Arc<Data>, SqlError> {
        let (object, opened) = match &self.stored {
            None => (self.home.create(definition).await?, None),
            Some(stored) => {
                let object = stored.next().ok_or_else(|| {
                    let name = &definition.name;
                    HomeError::Open(format!("a data object of table {name} is missing"))
                })?;
                let definitions = self.home.definitions();
                let definitions = definitions.expect("they are stored there");
                definitions.reopen(object, &definition)?;
                (object, Some(Arc::clone(&stored.opened)))
            }
        };
        Ok(Arc::new(Data {
            object,
            home: Some(Arc::clone(&self.home)),
            runtime: Handle::try_current().ok(),
            opened,
            written: WrittenRows::default(),
        }))
    }
}
