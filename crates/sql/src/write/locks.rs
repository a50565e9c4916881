//! Who may write a table while its definition changes.
//!
//! ```text
//! INSERT ──▶ shared ───┐                       statements that read take no lock: they keep the table,
//! INSERT ──▶ shared ───┼─ per table            rows included, that they have found
//! ALTER  ──▶ exclusive ┘
//!
//! INSERT of rows that refer to rows of p      ──▶ p shared, too
//! DELETE of rows of p, to which others refer  ──▶ p exclusive
//! ```
//!
//! Writers hold the table's lock shared until their rows are visible. Whoever replaces, empties or drops the table
//! holds it exclusively. So no row is lost, and nothing that `CALL eris.balance` has set. Requests are served in the
//! order in which they came. Waiting ends when the statement is cancelled.
//!
//! Nobody waits for a table's lock while it holds the catalogue's or a data object's. Who locks several tables takes
//! them in one order. So nobody waits in a circle.
//!
//! Foreign keys need no lock of their own. A writer of referencing rows locks the referenced tables, too. A statement
//! that deletes referenced rows or keys waits for all of these writers. A definition that begins or ends a foreign key
//! holds the locks of both tables exclusively. So every writer knows all foreign keys.
//!
//! Whoever writes asks here first. So this is also where tables are denied of a database that is open for reading only.
//!
//! Locks are held until the rows are visible. A statement that is dropped during its commit frees them slightly
//! earlier. So the next one with foreign keys waits for that commit, too.

use crate::catalog::{Table, is_temporary, retire};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::text::statement::Statement;
use crate::write::references::{Affected, Effect};
use datafusion::sql::sqlparser::ast::ObjectName;
use eris_atomics::{ExclusiveWrite, SharedWrite, WriteLock};
use eris_home::HomeError;
use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

/// A table to which rows may be written: it stays what its name leads to meanwhile.
pub(crate) struct Writable {
    table: Arc<Table>,
    affected: Affected,
    _held: Vec<Held>,
}

/// A lock that is held until this is dropped.
enum Held {
    Shared { _guard: SharedWrite },
    Alone { _guard: ExclusiveWrite },
}

impl Writable {
    /// A table that nobody else knows yet.
    pub fn unpublished(table: &Arc<Table>) -> Self {
        Writable {
            table: Arc::clone(table),
            affected: Affected::default(),
            _held: Vec::new(),
        }
    }

    /// The foreign keys that the statement may break.
    pub fn affected(&self) -> &Affected {
        &self.affected
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
    _alone: ExclusiveWrite,
}

/// Lets go of tables that were dropped or replaced.
pub(crate) async fn retire_all(old: Vec<Exclusive>) -> Result<(), SqlError> {
    retire(old.into_iter().map(|locked| locked.table)).await
}

/// A table's lock, and whether it is needed alone.
type NeededLock = (Arc<WriteLock>, bool);

/// Whether a table may be written or changed. One of a database that is open for reading only may not, unless it ends
/// with the session. While the database is being opened all may be.
fn check_writable(context: &StatementContext, table: &Table) -> Result<(), SqlError> {
    let log = context.catalog.log();
    match log.is_some_and(|log| log.is_read_only()) && !is_temporary(&table.name.schema) {
        true => Err(SqlError::from(HomeError::ReadOnly {
            what: format!("table {}", table.name),
        })),
        false => Ok(()),
    }
}

/// The locks that a statement needs that writes rows of a table, in the order in which they are taken.
///
/// # Errors
/// Nothing may be written to it.
fn locks_of(
    context: &StatementContext,
    table: &Table,
    affected: &Affected,
) -> Result<Vec<NeededLock>, SqlError> {
    check_writable(context, table)?;
    let own = (Arc::clone(&table.lock), !affected.incoming.is_empty());
    let referenced = affected.outgoing.iter();
    let referenced = referenced.map(|(_, referenced)| (Arc::clone(&referenced.lock), false));
    let mut locks: Vec<NeededLock> = std::iter::once(own).chain(referenced).collect();
    // Of one that is named twice, alone comes first, and stays.
    locks.sort_by_key(|(lock, alone)| (Arc::as_ptr(lock).addr(), !alone));
    locks.dedup_by(|a, b| Arc::ptr_eq(&a.0, &b.0));
    Ok(locks)
}

/// The locks that a statement shares which takes no keys away, in the order in which they are taken.
#[derive(Debug)]
pub(crate) struct SharedLocks(Vec<Arc<WriteLock>>);

impl SharedLocks {
    /// Of a statement that writes rows of a table. `None`: it needs a lock alone.
    ///
    /// # Errors
    /// Nothing may be written to it.
    pub fn of(
        context: &StatementContext,
        table: &Table,
        affected: &Affected,
    ) -> Result<Option<Self>, SqlError> {
        let locks = locks_of(context, table, affected)?.into_iter();
        let shared = locks.map(|(lock, alone)| (!alone).then_some(lock));
        Ok(shared.collect::<Option<_>>().map(SharedLocks))
    }

    /// Takes them, and holds them until all clones of what it returns are dropped.
    pub async fn hold(&self) -> Arc<dyn Any + Send + Sync> {
        let mut held = Vec::with_capacity(self.0.len());
        for lock in &self.0 {
            held.push(lock.share().await);
        }
        Arc::new(held)
    }
}

/// The table of this name, for a statement with this effect on its rows.
///
/// # Errors
/// There is none, perhaps any more, once it is not being changed. Or nothing may be written to it.
pub(crate) async fn writable(
    context: &StatementContext,
    name: &ObjectName,
    effect: &Effect,
    statement: &Statement,
) -> Result<Writable, SqlError> {
    let find = || -> Result<(Arc<Table>, Affected), SqlError> {
        let contents = context.catalog.contents();
        let table = context.table(name, statement)?;
        let affected = effect.affected(&table, &contents);
        Ok((table, affected))
    };
    loop {
        let (table, affected) = find()?;
        let locks = locks_of(context, &table, &affected)?;
        let mut held = Vec::with_capacity(locks.len());
        for (lock, alone) in &locks {
            held.push(match alone {
                true => Held::Alone {
                    _guard: lock.alone().await,
                },
                false => Held::Shared {
                    _guard: lock.share().await,
                },
            });
        }
        // They may have changed while this waited.
        let (table, affected) = find()?;
        let same = |((a, alone), (b, also)): (&NeededLock, &NeededLock)| {
            Arc::ptr_eq(a, b) && alone == also
        };
        let again = locks_of(context, &table, &affected)?;
        if again.len() == locks.len() && again.iter().zip(&locks).all(same) {
            if !affected.is_empty() {
                context.home.settle().await;
            }
            return Ok(Writable {
                table,
                affected,
                _held: held,
            });
        }
    }
}

/// Tables for this statement alone, those that `find` leads to. It is asked again whenever waiting was necessary, for
/// the names may lead to others then.
///
/// # Errors
/// What `find` fails with, or one of them may not be changed.
pub(crate) async fn exclusive(
    context: &StatementContext,
    find: impl Fn() -> Result<Vec<Arc<Table>>, SqlError>,
) -> Result<Vec<Exclusive>, SqlError> {
    let in_order = || -> Result<Vec<Arc<Table>>, SqlError> {
        let mut tables = find()?;
        (tables.iter()).try_for_each(|table| check_writable(context, table))?;
        tables.sort_by_key(|table| Arc::as_ptr(&table.lock).addr());
        tables.dedup_by(|a, b| Arc::ptr_eq(&a.lock, &b.lock));
        Ok(tables)
    };
    loop {
        let found = in_order()?;
        let mut alone = Vec::with_capacity(found.len());
        for table in &found {
            alone.push(table.lock.alone().await);
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
pub(crate) async fn exclusive_table(
    context: &StatementContext,
    name: &ObjectName,
    statement: &Statement,
) -> Result<Exclusive, SqlError> {
    let mut locked = exclusive(context, || Ok(vec![context.table(name, statement)?])).await?;
    Ok(locked.pop().expect("one table was found"))
}
