//! What a session remembers between its statements.

use super::Variables;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session's number, variables and prepared statements. Clones of the session share it.
#[derive(Debug)]
pub(crate) struct SessionData {
    pub id: u64,
    /// Replaced as a whole, so that a statement keeps what it began with.
    variables: Mutex<Arc<Variables>>,
    prepared: Mutex<BTreeMap<String, Arc<dyn NamedStatement>>>,
}

/// A prepared statement as the session knows it, by its name. EXECUTE knows what it is.
pub(crate) trait NamedStatement: Any + fmt::Debug + Send + Sync {
    /// The whole text.
    fn text(&self) -> &str;

    /// SQL's names of the types of its parameters; `None` where any will do.
    fn type_names(&self) -> Vec<Option<String>>;
}

impl SessionData {
    pub fn new(id: u64, variables: Variables) -> Self {
        SessionData {
            id,
            variables: Mutex::new(Arc::new(variables)),
            prepared: Mutex::default(),
        }
    }

    /// The variables as they are now.
    pub fn variables(&self) -> Arc<Variables> {
        Arc::clone(&lock(&self.variables))
    }

    /// Changes variables for statements that begin from now on.
    pub fn change(&self, change: impl FnOnce(&mut Variables)) {
        change(Arc::make_mut(&mut lock(&self.variables)));
    }

    /// The prepared statements by name.
    pub fn prepared(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn NamedStatement>>> {
        lock(&self.prepared)
    }
}

/// The value, also behind a panic: every change is complete or did not happen.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
