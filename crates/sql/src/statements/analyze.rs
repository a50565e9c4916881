//! ANALYZE: what planners know of tables, by all of their rows.
//!
//! Tables are sampled and their values counted while they are written. This takes in the last rows that were written
//! and deleted, and counts chunks of a version that did not count.

use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast;
use eris_home::HomeError;
use std::sync::Arc;

/// `ANALYZE [table]`; without a name, all tables.
pub(crate) async fn analyze(
    context: &StatementContext,
    analyze: &ast::Analyze,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    // Hive's.
    let has_clauses = analyze.partitions.is_some()
        || analyze.for_columns
        || analyze.cache_metadata
        || analyze.noscan
        || analyze.compute_statistics;
    if has_clauses {
        return Err(SqlError::not_supported(
            "ANALYZE with other clauses than a table",
        ));
    }
    if !analyze.columns.is_empty() {
        return Err(SqlError::not_supported("ANALYZE of some columns")
            .with_hint(Some("ANALYZE table takes all columns")));
    }
    let tables: Vec<Arc<Table>> = match &analyze.table_name {
        Some(name) => vec![context.table(name, statement)?],
        None => context.catalog.contents().tables().cloned().collect(),
    };
    if let Some(samples) = context.home.samples() {
        for table in tables {
            match samples.analyze(table.object).await {
                // It was dropped meanwhile.
                Err(HomeError::NoSuchObject(_)) if analyze.table_name.is_none() => {}
                result => result?,
            }
        }
    }
    // The same contents again: plans that were made of other numbers go with the old ones.
    context.catalog.change().await.publish();
    Ok(Begun::Done { tag: "ANALYZE" })
}
