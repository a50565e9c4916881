//! The rows to which a few new rows refer, looked up at once: for writes that are planned once and executed often.
//!
//! Whoever writes such rows shares the locks of the tables that are referred to, so what is found stays.

use super::{ReferenceColumns, without_row};
use crate::catalog::{ForeignKey, Table, positions};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::write::table_writer::without_nulls;
use datafusion::arrow::record_batch::RecordBatch;
use eris_types::ObjectId;
use std::sync::Arc;

/// Where the rows are to which rows of a table refer.
#[derive(Debug)]
pub(crate) struct Parents(Vec<Parent>);

#[derive(Debug)]
struct Parent {
    /// The data object in which they are found by their key.
    object: ObjectId,
    /// Where the table has the columns that refer, in that key's order.
    referencing: Vec<usize>,
    /// Where it has those referred to, if they are its own.
    own: Option<Vec<usize>>,
}

impl Parents {
    /// By foreign keys of a table.
    pub fn new(table: &Table, outgoing: &[(ForeignKey, Arc<Table>)]) -> Result<Parents, SqlError> {
        let parents = outgoing.iter().map(|(key, referenced)| {
            let columns = ReferenceColumns::new(key, referenced)?;
            let of_table = |names: &[String]| positions(names, &table.schema);
            Ok(Parent {
                object: columns.object,
                referencing: of_table(&columns.referencing),
                own: (key.table == table.name).then(|| of_table(&columns.referenced)),
            })
        });
        parents.collect::<Result<_, _>>().map(Parents)
    }

    /// Whether there is nothing to be looked up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all rows to which these refer are there; one row may also refer to itself. `false` may be an error:
    /// several rows that refer to each other are not looked at.
    pub async fn are_there(
        &self,
        context: &StatementContext,
        rows: &RecordBatch,
    ) -> Result<bool, SqlError> {
        for parent in &self.0 {
            let keys = without_nulls(rows.project(&parent.referencing)?)?;
            let missing = without_row(&*context.home, parent.object, keys.columns()).await?;
            let is_itself = |own: &Vec<usize>| {
                let mut pairs = parent.referencing.iter().zip(own);
                rows.num_rows() == 1 && pairs.all(|(a, b)| rows.column(*a) == rows.column(*b))
            };
            if !missing.is_empty() && !parent.own.as_ref().is_some_and(is_itself) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
