//! The rows to which new rows refer are there: looked up by their key, a batch at a time, each value once.

use super::key_set::KeySet;
use super::seen::SeenKeys;
use super::{Affected, ReferenceColumns, References, without_row};
use crate::catalog::{ForeignKey, RelationName, Table, positions};
use crate::context::StatementContext;
use crate::error::{SqlError, Violation};
use crate::plan::files::StatementTables;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::plan::resolve::ROW;
use crate::write::coerce::displayed;
use crate::write::table_writer::without_nulls;
use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use eris_home::Home;
use futures::StreamExt;
use std::sync::Arc;

/// A foreign key of the table that is written.
pub(super) struct Outgoing {
    pub key: ForeignKey,
    table: RelationName,
    columns: ReferenceColumns,
    /// Where the written table has the columns that refer.
    positions: Vec<usize>,
    home: Arc<dyn Home>,
    /// Values that were looked at.
    pub seen: SeenKeys,
    own: Option<SelfReference>,
}

/// For a foreign key that refers to the written table itself.
struct SelfReference {
    /// Where it has the columns that are referred to.
    positions: Vec<usize>,
    /// Their values in new rows.
    added: KeySet,
    /// Values that no row had before.
    missing: KeySet,
}

impl Outgoing {
    /// Of `key` of `table`. With `keeps`, `seen` is all that new rows have.
    pub fn new(
        context: &StatementContext,
        key: &ForeignKey,
        table: &Table,
        referenced: &Table,
        keeps: bool,
    ) -> Result<Self, SqlError> {
        let columns = ReferenceColumns::new(key, referenced)?;
        let positions_of = |names: &[String]| positions(names, &table.schema);
        let positions = positions_of(&columns.referencing);
        let types = positions.iter();
        let types = types.map(|&at| table.schema.field(at).data_type().clone());
        let types: Vec<DataType> = types.collect();
        let set = || KeySet::new(context, types.clone());
        let own = match key.table == table.name {
            true => Some(SelfReference {
                positions: positions_of(&columns.referenced),
                added: set()?,
                missing: set()?,
            }),
            false => None,
        };
        Ok(Outgoing {
            key: key.clone(),
            table: table.name.clone(),
            home: Arc::clone(&context.home),
            columns,
            positions,
            seen: SeenKeys::new(context, types.clone(), keeps)?,
            own,
        })
    }

    /// Looks up what these rows refer to.
    pub async fn add(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        if let Some(own) = &mut self.own {
            let keys = without_nulls(rows.project(&own.positions)?)?;
            own.added.add(keys.columns())?;
        }
        let keys = without_nulls(rows.project(&self.positions)?)?;
        let fresh = UInt32Array::from(self.seen.add(keys.columns())?);
        let keys = at(keys.columns(), &fresh)?;
        let missing = without_row(&*self.home, self.columns.object, &keys).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let keys = at(&keys, &missing)?;
        match &mut self.own {
            Some(own) => own.missing.add(&keys).map(|_| ()),
            None => Err(self.violated(&keys)),
        }
    }

    /// All rows have come: those of the table itself to which others refer are among them.
    pub fn check(&mut self) -> Result<(), SqlError> {
        let Some(own) = &mut self.own else {
            return Ok(());
        };
        own.missing.subtract(&own.added);
        match own.missing.len() {
            0 => Ok(()),
            _ => {
                let missing = own.missing.least()?;
                Err(self.violated(&missing))
            }
        }
    }

    /// The error of referring to the first of these keys.
    pub fn violated(&self, keys: &[ArrayRef]) -> SqlError {
        SqlError::constraint(
            Violation::ForeignKey,
            format!(
                "table \"{}\": FOREIGN KEY \"{}\" ({}) does not hold: table \"{}\" has no row with ({}) = ({})",
                self.table,
                self.key.name,
                self.columns.referencing.join(", "),
                self.key.table,
                self.columns.referenced.join(", "),
                displayed(keys, 0)
            ),
        )
    }
}

/// The keys at these places.
fn at(keys: &[ArrayRef], places: &UInt32Array) -> Result<Vec<ArrayRef>, SqlError> {
    let keys = keys.iter().map(|column| take(column, places, None));
    Ok(keys.collect::<Result<_, _>>()?)
}

/// The name of the rows that are there, in a query of [`verify`]. No table has it, for nothing closes its bracket.
const ROWS: &str = "rows(";

/// Makes sure that the rows of a table keep foreign keys that it gets, with the tables to which these refer. Nobody
/// else writes to any of these tables.
pub(crate) async fn verify(
    context: &StatementContext,
    table: &Arc<Table>,
    keys: Vec<(ForeignKey, Arc<Table>)>,
) -> Result<(), SqlError> {
    if keys.is_empty() {
        return Ok(());
    }
    let affected = Affected {
        outgoing: keys,
        incoming: Vec::new(),
    };
    let mut references = References::new(context, table, &affected)?;
    // A writer that was cancelled may have let go of its lock while its commit was under way.
    context.home.settle().await;
    let rows = NameScope::now(context).table_with_row_ids(table, ROW)?;
    let names = table.column_names().map(crate::catalog::quoted);
    let query = format!(
        "SELECT {} FROM \"{ROWS}\"",
        names.collect::<Vec<_>>().join(", ")
    );
    let plan = planning::plan_text(
        context,
        &query,
        StatementTables::from([(ROWS.to_owned(), rows)]),
    );
    let mut stream = plan.await?.run()?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        references.add(&batch).await?;
    }
    references.check(context).await
}
