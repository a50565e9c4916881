//! The rows that end are not referred to: the keys that a statement takes away are looked for in the tables with a
//! foreign key.

use super::ReferenceColumns;
use super::key_set::KeySet;
use super::outgoing::Outgoing;
use crate::catalog::{ForeignKey, RelationName, Table, positions, quoted};
use crate::context::StatementContext;
use crate::error::{SqlError, Violation};
use crate::plan::files::StatementTables;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::plan::resolve::ROW;
use crate::running::reserved::Reserved;
use crate::write::coerce::displayed;
use crate::write::table_writer::without_nulls;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::HashSet;
use datafusion::datasource::MemTable;
use futures::StreamExt;
use std::sync::Arc;

/// The names of rows and keys in the query. No table has them, for nothing closes their brackets.
const REFERENCING: &str = "referencing(";
const REMOVED: &str = "removed(";

/// A foreign key that refers to the table that is written.
pub(super) struct Incoming {
    key: ForeignKey,
    table: RelationName,
    /// The table that has it.
    by: Arc<Table>,
    columns: ReferenceColumns,
    /// Where the written table has the columns that are referred to.
    positions: Vec<usize>,
    /// Their values in rows that end.
    ended: KeySet,
    /// Their values in new rows.
    added: KeySet,
    /// The rows that end, if rows of the same table refer to them.
    own: Option<EndedRows>,
}

struct EndedRows {
    ids: HashSet<i64>,
    reserved: Reserved,
}

impl Incoming {
    /// Of `key` of the table `by`, which refers to `table`.
    pub fn new(
        context: &StatementContext,
        key: &ForeignKey,
        table: &Table,
        by: &Arc<Table>,
    ) -> Result<Self, SqlError> {
        let columns = ReferenceColumns::new(key, table)?;
        let positions = positions(&columns.referenced, &table.schema);
        let types = positions.iter();
        let types = types.map(|&at| table.schema.field(at).data_type().clone());
        let types: Vec<DataType> = types.collect();
        let own = (by.name == table.name).then(|| EndedRows {
            ids: HashSet::default(),
            reserved: Reserved::new(context.home.budget()),
        });
        Ok(Incoming {
            key: key.clone(),
            table: table.name.clone(),
            by: Arc::clone(by),
            columns,
            positions,
            ended: KeySet::new(context, types.clone())?,
            added: KeySet::new(context, types)?,
            own,
        })
    }

    /// Takes in the keys of new rows.
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        let keys = without_nulls(rows.project(&self.positions)?)?;
        self.added.add(keys.columns()).map(|_| ())
    }

    /// Takes in the keys of rows that end, and their ids.
    pub fn end(
        &mut self,
        batch: &RecordBatch,
        old: impl Fn(usize) -> usize,
    ) -> Result<(), SqlError> {
        let places: Vec<usize> = self.positions.iter().map(|&at| old(at)).collect();
        let keys = without_nulls(batch.project(&places)?)?;
        self.ended.add(keys.columns())?;
        if let Some(own) = &mut self.own {
            let before = own.ids.capacity();
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            own.ids.extend(ids);
            let more = own.ids.capacity() - before;
            own.reserved.grow(more * (size_of::<i64>() + 1))?;
        }
        Ok(())
    }

    /// Looks for rows that refer to a key which no row will have.
    pub async fn check(
        &mut self,
        context: &StatementContext,
        outgoing: &[Outgoing],
    ) -> Result<(), SqlError> {
        self.ended.subtract(&self.added);
        if self.ended.len() == 0 {
            return Ok(());
        }
        if let Some(found) = self.find(context).await? {
            return Err(self.violated(&found));
        }
        let own = outgoing.iter();
        let mut own = own.filter(|outgoing| self.own.is_some() && outgoing.key == self.key);
        match own.next().and_then(|own| Some((own, own.seen.all()?))) {
            Some((outgoing, seen)) => {
                // What is left of the set is not needed any more.
                self.ended.intersect(seen);
                match self.ended.len() {
                    0 => Ok(()),
                    _ => Err(outgoing.violated(&self.ended.least()?)),
                }
            }
            None => Ok(()),
        }
    }

    /// The values of a row that was there before the statement, stays there, and refers to a key that is taken away.
    async fn find(&self, context: &StatementContext) -> Result<Option<Vec<ArrayRef>>, SqlError> {
        let keys = self.ended.arrays()?;
        let names: Vec<String> = (0..keys.len()).map(|number| format!("k{number}")).collect();
        let fields = names.iter().zip(&keys);
        let fields = fields.map(|(name, key)| Field::new(name, key.data_type().clone(), false));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let removed = RecordBatch::try_new(Arc::clone(&schema), keys)?;
        let removed = MemTable::try_new(schema, vec![vec![removed]]);
        let removed = Arc::new(removed.map_err(SqlError::from_datafusion)?);
        let rows = NameScope::now(context).table_with_row_ids(&self.by, ROW)?;
        let files = StatementTables::from([
            (REFERENCING.to_owned(), rows),
            (REMOVED.to_owned(), removed as _),
        ]);
        let columns = self.columns.referencing.iter();
        let columns: Vec<String> = columns.map(|name| format!("c.{}", quoted(name))).collect();
        let pairs = columns.iter().zip(&names);
        let pairs: Vec<String> = pairs
            .map(|(column, key)| format!("{column} = r.{key}"))
            .collect();
        let (row, limit) = match &self.own {
            Some(_) => (format!(", c.{}", quoted(ROW)), ""),
            None => (String::new(), " LIMIT 1"),
        };
        let query = format!(
            "SELECT {}{row} FROM \"{REFERENCING}\" AS c JOIN \"{REMOVED}\" AS r ON {}{limit}",
            columns.join(", "),
            pairs.join(" AND "),
        );
        let mut stream = planning::plan_text(context, &query, files).await?.run()?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(SqlError::from_datafusion)?;
            let stays = |row: &usize| match &self.own {
                Some(own) => {
                    let ids = batch.column(columns.len());
                    !own.ids
                        .contains(&ids.as_primitive::<Int64Type>().value(*row))
                }
                None => true,
            };
            if let Some(row) = (0..batch.num_rows()).find(stays) {
                let values = batch.columns()[..columns.len()].iter();
                return Ok(Some(values.map(|values| values.slice(row, 1)).collect()));
            }
        }
        Ok(None)
    }

    fn violated(&self, keys: &[ArrayRef]) -> SqlError {
        violated(&self.table, &self.by, &self.key, &self.columns, keys)
    }
}

/// The error of taking away what a row with these values refers to.
fn violated(
    table: &RelationName,
    by: &Table,
    key: &ForeignKey,
    columns: &ReferenceColumns,
    values: &[ArrayRef],
) -> SqlError {
    SqlError::constraint(Violation::ForeignKey, format!(
        "table \"{table}\": FOREIGN KEY \"{}\" of table \"{}\" would not hold: it has a row with ({}) = ({})",
        key.name,
        by.name,
        columns.referencing.join(", "),
        displayed(values, 0)
    ))
    .with_hint(Some(format!(
        "DELETE or UPDATE the rows of \"{}\" that refer to it first",
        by.name
    )))
}

/// Rejects to take all rows of a table away while one of another refers to them. Nobody else writes to the table.
pub(crate) async fn check_all(
    context: &StatementContext,
    table: &Table,
    by: &Arc<Table>,
    key: &ForeignKey,
) -> Result<(), SqlError> {
    let columns = ReferenceColumns::new(key, table)?;
    let rows = NameScope::now(context).table_with_row_ids(by, ROW)?;
    let names: Vec<String> = columns
        .referencing
        .iter()
        .map(|name| quoted(name))
        .collect();
    let whole = names.iter().map(|name| format!("{name} IS NOT NULL"));
    let query = format!(
        "SELECT {} FROM \"{REFERENCING}\" WHERE {} LIMIT 1",
        names.join(", "),
        whole.collect::<Vec<_>>().join(" AND ")
    );
    let files = StatementTables::from([(REFERENCING.to_owned(), rows)]);
    let mut stream = planning::plan_text(context, &query, files).await?.run()?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        if batch.num_rows() > 0 {
            let values: Vec<ArrayRef> = (batch.columns().iter())
                .map(|values| values.slice(0, 1))
                .collect();
            return Err(violated(&table.name, by, key, &columns, &values));
        }
    }
    Ok(())
}
