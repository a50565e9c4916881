//! Secondary indexes of tables, by name.

use super::Table;
use crate::error::{Mistake, SqlError};
use eris_home::{Home, IndexKind};
use eris_types::ColumnId;
use std::sync::Arc;

/// An index of some columns of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableIndex {
    pub name: String,
    /// Positions in the table.
    pub columns: Vec<usize>,
    pub kind: IndexKind,
    /// Its number among those of the data object.
    pub id: u32,
}

impl TableIndex {
    /// The kind as it is written behind USING.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            IndexKind::Ordered => "art",
            IndexKind::Hashed => "hash",
            IndexKind::Shared => "blink",
        }
    }
}

impl Table {
    /// Whether its index of this name is a UNIQUE one.
    pub fn has_unique_index(&self, name: &str) -> bool {
        let mut uniques = self.uniques.iter();
        uniques.any(|unique| unique.of_index && unique.name == name)
    }

    /// Gives a table without rows the indexes of the one that it takes the place of. `place` says where a column is
    /// now. With `cascade` those of a column that is no more are left out.
    ///
    /// # Errors
    /// An index is of a column that is no more.
    pub async fn take_over_indexes(
        &mut self,
        home: &Arc<dyn Home>,
        old: &Table,
        place: impl Fn(usize) -> Option<usize>,
        cascade: bool,
    ) -> Result<(), SqlError> {
        for index in &old.indexes {
            if cascade && index.columns.iter().any(|&column| place(column).is_none()) {
                continue;
            }
            let columns = index.columns.iter().map(|&column| {
                place(column).ok_or_else(|| {
                    SqlError::invalid(
                        Mistake::DependentObjects,
                        format!(
                            "column \"{}\" cannot be dropped: index \"{}\" is of it",
                            old.schema.field(column).name(),
                            index.name
                        ),
                    )
                    .with_hint(Some(format!(
                        "DROP INDEX {} first, or DROP COLUMN … CASCADE",
                        super::quoted(&index.name)
                    )))
                })
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let ids: Vec<ColumnId> = columns
                .iter()
                .map(|&column| ColumnId(column as u32))
                .collect();
            let built = Arc::default();
            let indexes = home.secondary_indexes();
            let indexes = indexes.expect("the table had an index there");
            let id = indexes.create_index(self.object, &ids, index.kind, built);
            let id = id.await?;
            self.indexes.push(TableIndex {
                columns,
                id,
                ..index.clone()
            });
        }
        Ok(())
    }
}
