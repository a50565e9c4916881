//! Parquet files as a table: DataFusion's reader, which reads row groups side by side and pushes filters down.

use crate::contained::contained_future;
use crate::damage::parquet_scan;
use crate::error::{FileError, FileFaultKind};
use crate::foreign::{columns, reject_intervals, with_uuids};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use eris_exact::with_batch_rows;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rows of all files, whose columns have to agree.
pub(crate) async fn open(
    files: &[PathBuf],
    state: &SessionState,
) -> std::result::Result<Arc<dyn TableProvider>, FileError> {
    let format = ParquetFormat::default()
        .with_options(state.table_options().parquet.clone())
        // Nanoseconds end in 2262, and wrap around.
        .with_coerce_int96(Some("us".to_owned()));
    let options = ListingOptions::new(Arc::new(format)).with_file_extension("");
    let mut urls = Vec::with_capacity(files.len());
    let mut schema = None;
    for file in files {
        let why = |error: DataFusionError| broken(file, error);
        // A name is not a pattern here.
        let url = ListingTableUrl::parse(escaped(&file.to_string_lossy())).map_err(why)?;
        if schema.is_none() {
            let inferred = contained_future(options.infer_schema(state, &url)).await;
            let inferred = inferred
                .ok_or_else(|| FileError::new(file, FileFaultKind::Damaged("Parquet file")))?;
            let inferred = inferred.map_err(why)?;
            if inferred.fields().is_empty() {
                let empty = file.metadata().is_ok_and(|file| file.len() == 0);
                let kind = if empty {
                    FileFaultKind::Empty
                } else {
                    FileFaultKind::NoColumns
                };
                return Err(FileError::new(file, kind));
            }
            reject_intervals(file, &inferred)?;
            let said = with_uuids(file, &inferred).map_err(|error| why(error.into()))?;
            schema = Some(Arc::new(columns(&said)));
        }
        urls.push(url);
    }
    let schema = schema.expect("a name means at least one file");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema);
    let table = ListingTable::try_new(config).map_err(|error| broken(&files[0], error))?;
    Ok(Arc::new(table))
}

/// Rows of a batch on its way from files into a table, if that is all that a plan does. Larger batches than operators
/// like take less time for each of many columns.
const LOAD_ROWS: usize = 16_384;

/// How a plan whose rows go into a table is best run: as it is, or with larger batches.
pub fn context_of_load(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Arc<TaskContext> {
    let config = context.session_config();
    let is_load = !plan
        .exists(|node| {
            let row_by_row = node.is::<ProjectionExec>()
                || node.is::<FilterExec>()
                || node.is::<CooperativeExec>()
                || node.is::<CoalescePartitionsExec>();
            Ok(!row_by_row && !is_parquet(node))
        })
        .expect("nothing in it fails");
    if !is_load || config.batch_size() >= LOAD_ROWS {
        return Arc::clone(context);
    }
    with_batch_rows(context, LOAD_ROWS)
}

pub(crate) fn is_parquet(node: &Arc<dyn ExecutionPlan>) -> bool {
    parquet_scan(node).is_some()
}

/// A name whose characters mean themselves, where patterns are understood.
fn escaped(name: &str) -> String {
    glob::Pattern::escape(name)
}

/// The error of a file that cannot be read as what its name says.
fn broken(path: &Path, error: DataFusionError) -> FileError {
    let kind = match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::ArrowError(..) => {
            FileFaultKind::Damaged("Parquet file")
        }
        other => FileFaultKind::unreadable(other.message().into_owned()),
    };
    FileError::new(path, kind)
}
