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

use crate::context::Frames;
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::Progress;
use crate::running::query::panicked;
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use eris_files::{FileError, FrameFault, ReadOptions, counted_scans, frame_table};
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

/// The frame that a name in FROM means, as a table; `None` if the program has none. The program is asked on a thread
/// that may wait.
///
/// # Errors
/// The program failed, or what it has is no relation.
pub(crate) async fn open_frame(
    name: &str,
    frames: &Arc<dyn Frames>,
    progress: &Progress,
) -> Result<Option<Arc<dyn TableProvider>>, SqlError> {
    let (name, frames, progress) = (name.to_owned(), Arc::clone(frames), progress.clone());
    let opened = tokio::task::spawn_blocking(move || match frames.frame(&name) {
        Err(error) => {
            let fault = FrameFault::raised(&name, error);
            Err(SqlError::new(SqlErrorKind::Frame(Arc::new(fault))))
        }
        Ok(None) => Ok(None),
        Ok(Some(frame)) => Ok(Some(frame_table(&name, frame, progress.files())?)),
    });
    opened.await.unwrap_or_else(|error| Err(panicked(error)))
}

/// Tells the statement's progress of the Parquet files and frames that a plan reads, before it runs.
///
/// The reader of Parquet does not count rows of row groups that it skips: a statement may end before all rows are
/// counted.
pub(crate) fn tell_progress(
    plan: &Arc<dyn ExecutionPlan>,
    progress: &Progress,
) -> datafusion::error::Result<()> {
    for scan in counted_scans(plan)? {
        let scanning = progress.expect_scan(scan.rows);
        scanning.counts(Arc::new(move || scan.rows_read()));
    }
    Ok(())
}
