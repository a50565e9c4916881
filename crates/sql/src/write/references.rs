//! Foreign keys hold: what every statement that writes rows checks of them, before it commits.
//!
//! ```text
//! new row of orders (…, item = 7)   ─▶ is there a row 7 of stock?         looked up by key, in batches, each once
//! row 7 of stock ends               ─▶ is there a row of orders with 7?   one query for all keys that go
//! ```
//!
//! Both are checked against the state after the commit. A key that is taken away and given to another row still
//! exists. Rows may refer to rows of their own table that the same statement adds.
//!
//! *Nobody comes in between*, because of the [table's lock](crate::write::locks). Who adds a reference holds the
//! referenced table's lock shared, from before it looks until its rows are visible. Who takes keys away holds it
//! exclusively. So the rows that were found stay, and the query misses no row. The order of locks is said there.
//!
//! Why the table's lock, and no other: docs/decisions/0015.

mod effect;
mod incoming;
mod key_set;
mod outgoing;
mod parents;
mod seen;

pub(crate) use effect::Effect;
pub(crate) use incoming::check_all;
pub(crate) use outgoing::verify;
pub(crate) use parents::Parents;

use crate::catalog::{ForeignKey, Table, positions};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::record_batch::RecordBatch;
use eris_home::{Home, Newest};
use eris_types::ObjectId;
use incoming::Incoming;
use outgoing::Outgoing;
use std::sync::Arc;

/// The foreign keys that a statement may break, each with the table at its other end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Affected {
    /// Of the table that is written.
    pub outgoing: Vec<(ForeignKey, Arc<Table>)>,
    /// Of tables that refer to it.
    pub incoming: Vec<(ForeignKey, Arc<Table>)>,
}

impl Affected {
    /// Whether the statement can break none.
    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }
}

/// The columns of a foreign key in the order of the key to which it refers.
struct ReferenceColumns {
    /// The data object in which the referenced rows are found.
    object: ObjectId,
    referencing: Vec<String>,
    referenced: Vec<String>,
}

impl ReferenceColumns {
    fn new(key: &ForeignKey, table: &Table) -> Result<Self, SqlError> {
        let (object, order) = key.key_of(table).ok_or_else(|| {
            SqlError::invalid(Mistake::NotReady, format!(
                "FOREIGN KEY \"{}\": table \"{}\" has no PRIMARY KEY or UNIQUE constraint of ({}) any more",
                key.name,
                table.name,
                key.referenced.join(", ")
            ))
        })?;
        let in_order = |names: &[String]| order.iter().map(|&at| names[at].clone()).collect();
        Ok(ReferenceColumns {
            object,
            referencing: in_order(&key.columns),
            referenced: in_order(&key.referenced),
        })
    }
}

/// The places of the keys that no row of a data object has, in their order. Keys are an array per column.
async fn without_row(
    home: &dyn Home,
    object: ObjectId,
    keys: &[ArrayRef],
) -> Result<UInt32Array, SqlError> {
    let count = keys.first().map_or(0, |column| column.len()) as u32;
    if count == 0 {
        return Ok(UInt32Array::from_iter_values([]));
    }
    let found = home.lookup(object, keys, Arc::default(), Newest::Applied);
    let found = found.await?;
    let mut found = found.of.into_iter().peekable();
    let missing = (0..count).filter(|at| found.next_if_eq(at).is_none());
    Ok(UInt32Array::from_iter_values(missing))
}

/// What one statement has to know of the rows that it writes, until it has checked them.
pub(crate) struct References {
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
}

impl References {
    /// For a statement that writes rows of `table`.
    pub fn new(
        context: &StatementContext,
        table: &Table,
        affected: &Affected,
    ) -> Result<Self, SqlError> {
        let outgoing = affected.outgoing.iter();
        let outgoing = outgoing.map(|(key, referenced)| {
            // What is taken away may be what the statement's own rows refer to.
            let same = |(other, of): &(ForeignKey, Arc<Table>)| {
                of.name == table.name && other.name == key.name
            };
            let keeps = affected.incoming.iter().any(same);
            Outgoing::new(context, key, table, referenced, keeps)
        });
        let incoming = affected.incoming.iter();
        let incoming = incoming.map(|(key, by)| Incoming::new(context, key, table, by));
        Ok(References {
            outgoing: outgoing.collect::<Result<_, _>>()?,
            incoming: incoming.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there is nothing to be checked.
    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// The columns whose old values [`References::end`] wants.
    pub fn old_columns(table: &Table, affected: &Affected) -> Vec<usize> {
        let incoming = affected.incoming.iter();
        incoming
            .flat_map(|(key, _)| positions(&key.referenced, &table.schema))
            .collect()
    }

    /// Takes in rows that are added.
    ///
    /// # Errors
    /// One of them refers to no row.
    pub async fn add(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        for outgoing in &mut self.outgoing {
            outgoing.add(rows).await?;
        }
        for incoming in &mut self.incoming {
            incoming.add(rows)?;
        }
        Ok(())
    }

    /// Takes in rows that end: their ids, and where the old value of each column is.
    pub fn end(
        &mut self,
        batch: &RecordBatch,
        old: impl Fn(usize) -> usize,
    ) -> Result<(), SqlError> {
        for incoming in &mut self.incoming {
            incoming.end(batch, &old)?;
        }
        Ok(())
    }

    /// Rejects the statement if a row would refer to none once it has committed.
    pub async fn check(&mut self, context: &StatementContext) -> Result<(), SqlError> {
        for incoming in &mut self.incoming {
            incoming.check(context, &self.outgoing).await?;
        }
        self.outgoing.iter_mut().try_for_each(Outgoing::check)
    }
}
