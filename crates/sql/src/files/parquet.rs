//! Parquet files as a table: DataFusion's reader, which reads row groups side by side and pushes filters down.

use super::failed;
use crate::error::SqlError;
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionState;
use std::path::PathBuf;
use std::sync::Arc;

/// The rows of all files, whose columns have to agree.
pub(super) async fn open(
    files: &[PathBuf],
    state: &SessionState,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let format = ParquetFormat::default().with_options(state.table_options().parquet.clone());
    let options = ListingOptions::new(Arc::new(format)).with_file_extension("");
    let mut urls = Vec::with_capacity(files.len());
    let mut schema = None;
    for file in files {
        let name = file.to_string_lossy();
        let why = |error: DataFusionError| broken(&name, &error);
        // A name is not a pattern here.
        let url = ListingTableUrl::parse(escaped(&name)).map_err(why)?;
        if schema.is_none() {
            let inferred = options.infer_schema(state, &url).await.map_err(why)?;
            if inferred.fields().is_empty() {
                let empty = file.metadata().is_ok_and(|file| file.len() == 0);
                let why = if empty {
                    "the file is empty"
                } else {
                    "no columns in it"
                };
                return Err(failed(&name, why));
            }
            schema = Some(inferred);
        }
        urls.push(url);
    }
    let schema = schema.expect("a name means at least one file");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema);
    let table = ListingTable::try_new(config).map_err(SqlError::from_datafusion)?;
    Ok(Arc::new(table))
}

/// A name whose characters mean themselves, where patterns are understood.
fn escaped(name: &str) -> String {
    glob::Pattern::escape(name)
}

/// The error of a file that cannot be read as what its name says.
fn broken(name: &str, error: &DataFusionError) -> SqlError {
    let what = match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::ArrowError(..) => {
            "damaged, cut off, or no Parquet file at all".to_owned()
        }
        other => other.message().into_owned(),
    };
    failed(name, what)
}
