//! FOREIGN KEY: what a table says of the rows of another one.
//!
//! ```text
//! referencing table                        referenced table
//! orders (…, item, colour) ──────────────▶ stock (…, colour, item, …, UNIQUE (colour, item))
//!            columns                               referenced
//! ```
//!
//! The referencing table has it, and knows the other by its name, which a definition that renames that one keeps true.
//! Which tables refer to one is found by looking at all of them.

use super::{Contents, Definition, RelationName, Table};
use datafusion::arrow::datatypes::Schema;
use eris_types::ObjectId;
use std::sync::Arc;

/// Columns whose values are those of a row of a table, unless one of them is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub name: String,
    pub columns: Vec<String>,
    /// The table with that row; it may be the same one.
    pub table: RelationName,
    /// Of that table, one for each of `columns`: together they are its PRIMARY KEY or a UNIQUE constraint of it.
    pub referenced: Vec<String>,
}

impl ForeignKey {
    /// The data object in which rows of the referenced table are found, and which of `columns` has the value of each
    /// column of its key. `None`: the table has no such key.
    pub fn key_of(&self, table: &Table) -> Option<(ObjectId, Vec<usize>)> {
        let key = table.key.iter();
        let key = key.map(|key| (&key.columns, table.object));
        let uniques = table.uniques.iter().filter(|unique| unique.is_constraint());
        let uniques = uniques.map(|unique| (&unique.columns, unique.object()));
        let mut keys = key.chain(uniques);
        keys.find_map(|(columns, object)| Some((object, self.order_of(columns)?)))
    }

    /// Whether the columns are a key of a table as it is to be.
    pub fn has_key(&self, table: &Definition) -> bool {
        let key = table.key.iter().map(|key| &key.columns);
        let uniques = table.uniques.iter().filter(|unique| unique.is_constraint());
        let uniques = uniques.map(|unique| &unique.columns);
        let mut keys = key.chain(uniques);
        keys.any(|columns| self.order_of(columns).is_some())
    }

    fn order_of(&self, key: &[String]) -> Option<Vec<usize>> {
        let place = |column| self.referenced.iter().position(|other| other == column);
        let order: Vec<usize> = key.iter().map(place).collect::<Option<_>>()?;
        (order.len() == self.referenced.len()).then_some(order)
    }

    /// The first column whose type is not that of the column to which it refers: both positions.
    pub fn mismatch(&self, own: &Schema, other: &Schema) -> Option<(usize, usize)> {
        let mut pairs = self.columns.iter().zip(&self.referenced);
        pairs.find_map(|(column, referenced)| {
            let pair = (own.index_of(column).ok()?, other.index_of(referenced).ok()?);
            (own.field(pair.0).data_type() != other.field(pair.1).data_type()).then_some(pair)
        })
    }
}

/// The positions of a constraint's columns.
pub(crate) fn positions(columns: &[String], schema: &Schema) -> Vec<usize> {
    let positions = columns.iter().map(|column| schema.index_of(column));
    positions
        .map(|position| position.expect("a constraint is of columns of the table"))
        .collect()
}

impl Table {
    /// The tables to which single columns of this one refer: the column, the table, and its column that is referred to.
    pub fn references(&self, contents: &Contents) -> Vec<(usize, Arc<Table>, usize)> {
        let keys = self.foreign_keys.iter().filter_map(|key| {
            let ([column], [referenced]) = (&key.columns[..], &key.referenced[..]) else {
                return None;
            };
            let table = contents.table(&key.table)?;
            let column = self.schema.index_of(column).ok()?;
            let referenced = table.schema.index_of(referenced).ok()?;
            Some((column, Arc::clone(table), referenced))
        });
        keys.collect()
    }
}

impl Contents {
    /// The foreign keys that refer to a table, each with the table that has it.
    pub fn referencing<'a>(
        &'a self,
        name: &'a RelationName,
    ) -> impl Iterator<Item = (&'a Arc<Table>, &'a ForeignKey)> {
        self.tables().flat_map(move |table| {
            let keys = table.foreign_keys.iter();
            let keys = keys.filter(move |key| key.table == *name);
            keys.map(move |key| (table, key))
        })
    }
}
