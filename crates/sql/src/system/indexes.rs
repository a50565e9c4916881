//! Secondary indexes: `eris.indexes`.

use super::relation::row;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::system::relation::Cell;

/// One row per index.
pub(super) async fn rows(context: &StatementContext) -> Result<Vec<Vec<Cell>>, SqlError> {
    let contents = context.catalog.contents();
    let mut rows = Vec::new();
    let tables = contents.tables();
    let tables = tables.filter(|table| !table.indexes.is_empty() && context.sees(&table.name));
    for table in tables {
        // A table that is dropped meanwhile has none.
        let indexes = context.home.secondary_indexes();
        let all = indexes.and_then(|indexes| indexes.indexes(table.object).ok());
        let all = all.unwrap_or_default();
        for index in &table.indexes {
            let Some(known) = all.iter().find(|known| known.id == index.id) else {
                continue;
            };
            let columns = index
                .columns
                .iter()
                .map(|column| table.schema.field(*column).name().as_str());
            let tree = known.tree.as_ref();
            rows.push(row![
                table.name.shown_schema(),
                &table.name.name,
                &index.name,
                columns.collect::<Vec<_>>().join(", "),
                index.kind_name(),
                table.has_unique_index(&index.name),
                known.entries,
                known.keys,
                known.bytes,
                known.lookups,
                tree.map(|tree| tree.height),
                tree.map(|tree| tree.nodes),
                tree.map(|tree| tree.fill),
                tree.map(|tree| tree.splits),
                tree.map(|tree| tree.right_moves),
            ]);
        }
    }
    Ok(rows)
}
