//! Who may write a table while its definition changes.
//!
//! ```text
//! INSERT ──▶ shared ───┐                       statements that read take no lock: they keep the table,
//! INSERT ──▶ shared ───┼─ per table            rows included, that they have found
//! ALTER  ──▶ exclusive ┘
//! ```
//!
//! Whoever writes rows holds the table's lock shared until they are visible, whoever replaces, empties or drops the table
//! holds it alone: so no row gets lost in a data object that is about to be left behind. Requests are served in the order
//! in which they came; waiting ends when the statement is cancelled. Nobody waits for a table's lock while it has its turn
//! at the catalogue, and who locks several tables takes them in one order, so nobody waits in a circle.

use crate::catalog::{Table, retire};
use crate::core::Core;
use crate::error::SqlError;
use crate::statement::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

/// A table to which rows may be written: it stays what its name leads to meanwhile.
pub(crate) struct Writable {
    table: Arc<Table>,
    _shared: Option<OwnedRwLockReadGuard<()>>,
}

impl Writable {
    /// A table that nobody else knows yet.
    pub fn unpublished(table: &Arc<Table>) -> Self {
        Writable {
            table: Arc::clone(table),
            _shared: None,
        }
    }
}

impl Deref for Writable {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A table that nobody else writes to, changes or drops.
pub(crate) struct Exclusive {
    pub table: Arc<Table>,
    _alone: OwnedRwLockWriteGuard<()>,
}

/// Lets go of tables that were dropped or replaced.
pub(crate) async fn retire_all(old: Vec<Exclusive>) -> Result<(), SqlError> {
    retire(old.into_iter().map(|locked| locked.table)).await
}

impl Core {
    /// The table of this name, to write rows to.
    ///
    /// # Errors
    /// There is none, perhaps any more, once it is not being changed.
    pub async fn writable(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<Writable, SqlError> {
        loop {
            let found = self.table(name, statement)?;
            let shared = Arc::clone(&found.lock).read_owned().await;
            // It may have changed while this waited.
            let table = self.table(name, statement)?;
            if Arc::ptr_eq(&table.lock, &found.lock) {
                return Ok(Writable {
                    table,
                    _shared: Some(shared),
                });
            }
        }
    }

    /// Tables for this statement alone, those that `find` leads to. It is asked again whenever waiting was necessary, for
    /// the names may lead to others then.
    ///
    /// # Errors
    /// What `find` fails with.
    pub async fn exclusive(
        &self,
        find: impl Fn() -> Result<Vec<Arc<Table>>, SqlError>,
    ) -> Result<Vec<Exclusive>, SqlError> {
        let in_order = || -> Result<Vec<Arc<Table>>, SqlError> {
            let mut tables = find()?;
            tables.sort_by_key(|table| Arc::as_ptr(&table.lock).addr());
            tables.dedup_by(|a, b| Arc::ptr_eq(&a.lock, &b.lock));
            Ok(tables)
        };
        loop {
            let found = in_order()?;
            let mut alone = Vec::with_capacity(found.len());
            for table in &found {
                alone.push(Arc::clone(&table.lock).write_owned().await);
            }
            let tables = in_order()?;
            let same = tables.len() == found.len()
                && (tables.iter().zip(&found)).all(|(a, b)| Arc::ptr_eq(&a.lock, &b.lock));
            if same {
                let locked = tables.into_iter().zip(alone);
                let locked = locked.map(|(table, alone)| Exclusive {
                    table,
                    _alone: alone,
                });
                return Ok(locked.collect());
            }
        }
    }

    /// The table of this name for this statement alone.
    ///
    /// # Errors
    /// There is none, perhaps any more.
    pub async fn exclusive_table(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<Exclusive, SqlError> {
        let mut locked = self
            .exclusive(|| Ok(vec![self.table(name, statement)?]))
            .await?;
        Ok(locked.pop().expect("one table was found"))
    }
}
