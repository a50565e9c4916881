//! What a session remembers between its statements.

use super::Variables;
use crate::catalog::{Catalog, Sequence, TableOrView, retire};
use arc_swap::ArcSwap;
use eris_atomics::{Lock, LockGuard};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use tokio::runtime::Handle;

/// A session's number, variables and prepared statements. Clones of the session share it.
#[derive(Debug)]
pub(crate) struct SessionData {
    pub id: u64,
    /// Replaced as a whole, so that a statement keeps what it began with.
    variables: ArcSwap<Variables>,
    prepared: Lock<BTreeMap<String, Arc<dyn NamedStatement>>>,
    /// The last numbers that it has taken, each with its sequence.
    taken: Lock<Vec<(Weak<Sequence>, i64)>>,
    /// Its temporary tables, once it has had some.
    temporary: OnceLock<Temporary>,
}

/// A session's temporary tables and views, which end with it.
#[derive(Debug)]
struct Temporary {
    catalog: Arc<Catalog>,
    schema: Arc<str>,
    runtime: Option<Handle>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let (catalog, schema) = (Arc::clone(&self.catalog), Arc::clone(&self.schema));
        // The catalogue is changed in turn, which may take waiting. No statement of the session runs any more.
        runtime.spawn(async move {
            let mut change = catalog.change().await;
            let dropped = change
                .relations_in(&schema)
                .filter_map(|found| match found {
                    TableOrView::Table(table) => Some(Arc::clone(table)),
                    TableOrView::View(_) => None,
                });
            let dropped: Vec<_> = dropped.collect();
            change.remove_schema(&schema);
            change.publish();
            retire(dropped).await
        });
    }
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
            variables: ArcSwap::from_pointee(variables),
            prepared: Lock::default(),
            taken: Lock::default(),
            temporary: OnceLock::new(),
        }
    }

    /// The variables as they are now.
    pub fn variables(&self) -> Arc<Variables> {
        self.variables.load_full()
    }

    /// Changes variables for statements that begin from now on.
    pub fn change(&self, change: impl Fn(&mut Variables)) {
        self.variables.rcu(|variables| {
            let mut variables = Variables::clone(variables);
            change(&mut variables);
            variables
        });
    }

    /// Remembers that the session has a schema of temporary tables, to drop it at its end.
    pub fn keep_temporary(&self, catalog: &Arc<Catalog>, schema: &str) {
        let temporary = self.temporary.get_or_init(|| Temporary {
            catalog: Arc::clone(catalog),
            schema: schema.into(),
            runtime: Handle::try_current().ok(),
        });
        self.change(|variables| variables.temporary = Some(Arc::clone(&temporary.schema)));
    }

    /// Remembers a number that it has taken.
    pub fn took(&self, sequence: &Arc<Sequence>, number: i64) {
        let mut taken = self.taken.lock();
        taken.retain(|(other, _)| other.strong_count() > 0);
        let mut known = taken.iter_mut();
        match known.find(|(other, _)| other.as_ptr() == Arc::as_ptr(sequence)) {
            Some((_, last)) => *last = number,
            None => taken.push((Arc::downgrade(sequence), number)),
        }
    }

    /// The last number of a sequence that it has taken.
    pub fn last_taken(&self, sequence: &Arc<Sequence>) -> Option<i64> {
        let taken = self.taken.lock();
        let mut known = taken.iter();
        let known = known.find(|(other, _)| other.as_ptr() == Arc::as_ptr(sequence));
        known.map(|(_, last)| *last)
    }

    /// The prepared statements by name.
    pub fn prepared(&self) -> LockGuard<'_, BTreeMap<String, Arc<dyn NamedStatement>>> {
        self.prepared.lock()
    }
}
