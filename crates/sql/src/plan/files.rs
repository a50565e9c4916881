//! Files in FROM: what SQL says of them becomes values that `eris-files` opens them with.
//!
//! ```text
//! FROM 'x.csv' ──────────────────────────┐
//! FROM read_csv('*.csv', option => …) ───┼── options ── eris_files::open ── a table that only this statement has
//! COPY t FROM 'x.csv' (option …) ────────┘
//! ```

mod function;
pub(crate) mod options;
pub(crate) mod read_options;

pub(crate) use function::{ABOUT_FILES, FUNCTIONS, StatementTables, open_functions, option_value};

use crate::progress::Progress;
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use eris_files::{FileError, ReadOptions, parquet_scans};
use std::sync::Arc;

/// The rows of the files that a name in FROM means, as a table.
///
/// # Errors
/// There are none, or they are not what the name says.
pub(crate) async fn open(
    name: &str,
    state: &SessionState,
    progress: &Progress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    eris_files::open(
        vec![name.to_owned()],
        ReadOptions::default(),
        None,
        state,
        progress.files(),
    )
    .await
}

/// Tells the statement's progress of the Parquet files that a plan reads, before it runs.
///
/// Their reader does not count rows of row groups that it skips: a statement may end before all rows are counted.
pub(crate) fn tell_progress(
    plan: &Arc<dyn ExecutionPlan>,
    progress: &Progress,
) -> datafusion::error::Result<()> {
    for scan in parquet_scans(plan)? {
        let scanning = progress.expect_scan(scan.rows);
        scanning.counts(Arc::new(move || scan.rows_read()));
    }
    Ok(())
}
