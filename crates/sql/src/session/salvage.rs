//! What is left of a database becomes one in a new directory.
//!
//! ```text
//! SalvageTarget::create ─▶ a directory of another name
//! home ─▶ catalogue, as much as can be made ─▶ rows are counted ─▶ write ─▶ the directory gets its name
//! ```
//!
//! The catalogue is made as it will be when the new database is opened. So that can be opened.

use super::Session;
use super::database::Database;
use crate::catalog::{Contents, ForeignKey, Table, quoted};
use crate::error::SqlError;
use crate::maintenance::checkpoints;
use crate::running::outcome::Outcome;
use crate::statements::opening::{self, Reopened};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use eris_files::DirectoryUnderWay;
use eris_home::{Definition, DefinitionChange, Home};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a salvaged database will be. Dropped before it is there, it leaves nothing.
#[derive(Debug)]
pub struct SalvageTarget(DirectoryUnderWay);

/// What was written.
#[derive(Debug, Default)]
pub struct SalvagedDatabase {
    /// Tables with their rows.
    pub tables: Vec<(String, u64)>,
    /// Definitions that were left out, each named with what it is (`view public.v`), and why.
    pub left_out: Vec<(String, String)>,
    /// Those that were made with less than they had, and what that was.
    pub reduced: Vec<(String, String)>,
    /// Tables whose definitions were lost, and were made of their rows.
    pub made: Vec<String>,
    /// Rows that refer to rows which are not there.
    pub dangling: Vec<DanglingRows>,
    /// Sequences. If notes of them may be lost, they go on behind the numbers that columns have got from them. Numbers
    /// that are in no such column are perhaps given once more.
    pub sequences: Vec<String>,
}

/// Rows of a table that refer to rows which are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DanglingRows {
    /// The table.
    pub table: String,
    /// The foreign key.
    pub foreign_key: String,
    /// The table to which it refers.
    pub referenced: String,
    /// How many.
    pub rows: u64,
}

/// By the definition of a table, the columns of its UNIQUE constraints and indexes, in the order of its other objects.
/// `None`: it is of no table, or cannot be read.
pub fn unique_columns(definition: &Definition) -> Option<Vec<Vec<usize>>> {
    opening::unique_columns(definition)
}

impl SalvageTarget {
    /// Makes room for it.
    ///
    /// # Errors
    /// There is something of this name that has files, or it cannot be made.
    pub async fn create(target: PathBuf) -> Result<Self, SqlError> {
        Ok(SalvageTarget(DirectoryUnderWay::create(target).await?))
    }

    /// Writes what a home has that was salvaged. If definitions may be lost that nobody knows, tables are made of rows
    /// that no definition leads to.
    ///
    /// # Errors
    /// The disk has no room, or has failed. Nothing is left.
    pub async fn write(
        self,
        home: Arc<dyn Home>,
        may_have_lost_definitions: bool,
    ) -> Result<SalvagedDatabase, SqlError> {
        let opened = Database::open_remains(Arc::clone(&home), may_have_lost_definitions);
        let (database, reopened) = opened?;
        let Reopened {
            left_out,
            reduced,
            made,
        } = reopened;
        let mut salvaged = SalvagedDatabase {
            left_out,
            reduced,
            made,
            ..SalvagedDatabase::default()
        };
        let contents = database.context().catalog.contents();
        let session = database.session();
        for table in contents.tables() {
            let rows = count(&session, &format!("FROM {}", table.name.full())).await?;
            salvaged.tables.push((table.name.to_string(), rows));
            for key in &table.foreign_keys {
                let rows = count(&session, &dangling(table, key)).await?;
                if rows > 0 {
                    salvaged.dangling.push(DanglingRows {
                        table: table.name.to_string(),
                        foreign_key: key.name.clone(),
                        referenced: key.table.to_string(),
                        rows,
                    });
                }
            }
        }
        if may_have_lost_definitions {
            go_on_behind_rows(&home, &session, &contents).await?;
        }
        let sequences = contents.sequences();
        salvaged.sequences = sequences.map(|one| one.name.to_string()).collect();
        checkpoints::back_up(&home, self.0.path().to_owned()).await?;
        self.0.finish(Vec::new()).await?;
        Ok(salvaged)
    }
}

/// Sequences go on behind the numbers that columns have got from them.
async fn go_on_behind_rows(
    home: &Arc<dyn Home>,
    session: &Session,
    contents: &Contents,
) -> Result<(), SqlError> {
    let mut notes = Vec::new();
    for table in contents.tables() {
        let fields = table.schema.fields().iter().zip(&table.rules);
        for (field, rules) in fields.filter(|(field, _)| field.data_type().is_signed_integer()) {
            let default = rules.default.iter();
            let names = default.flat_map(|default| &default.sequences);
            for sequence in names.filter_map(|name| contents.sequence(name)) {
                let (column, last) = (quoted(field.name()), sequence.course.last_of());
                let from = format!("{last}({column}::BIGINT) FROM {}", table.name.full());
                let found = number(session, &from).await?;
                notes.extend(found.and_then(|found| sequence.go_on_behind(found)));
            }
        }
    }
    if let Some(definitions) = home.definitions() {
        let notes = notes.into_iter().map(DefinitionChange::Is);
        definitions.note(notes.collect())?;
    }
    Ok(())
}

/// Which rows a foreign key finds nothing for.
fn dangling(table: &Table, key: &ForeignKey) -> String {
    let columns = key.columns.iter();
    let are_there = columns.map(|column| format!("t.{} IS NOT NULL", quoted(column)));
    let pairs = key.columns.iter().zip(&key.referenced);
    let are_same = pairs.map(|(own, other)| format!("r.{} = t.{}", quoted(other), quoted(own)));
    format!(
        "FROM {} t WHERE {} AND NOT EXISTS (SELECT 1 FROM {} r WHERE {})",
        table.name.full(),
        are_there.collect::<Vec<_>>().join(" AND "),
        key.table.full(),
        are_same.collect::<Vec<_>>().join(" AND "),
    )
}

async fn count(session: &Session, from: &str) -> Result<u64, SqlError> {
    let count = number(session, &format!("count(*) {from}")).await?;
    Ok(count.unwrap_or_default() as u64)
}

/// What a query of one number finds. `None`: NULL.
async fn number(session: &Session, query: &str) -> Result<Option<i64>, SqlError> {
    let statements = Session::split(&format!("SELECT {query}"))?;
    let statement = statements.into_iter().next().expect("there is one");
    let Outcome::Rows(rows) = session.execute(statement).await? else {
        unreachable!("a query has rows");
    };
    let batches = rows.collect().await?;
    let mut numbers = batches.iter().flat_map(|batch| {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        numbers.iter().flatten()
    });
    Ok(numbers.next())
}
