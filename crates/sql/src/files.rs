//! Files as tables: `SELECT … FROM 'part.parquet'`. Parquet and CSV with a header, also a directory of either, or `*`.

use crate::error::{SqlError, SqlErrorKind};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use std::path::Path;
use std::sync::Arc;

/// Endings that make a name in a FROM clause the name of a file.
const ENDINGS: [&str; 2] = [".parquet", ".csv"];

/// Whether a name that is no table's means a file.
pub(crate) fn is_file_name(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || name.contains('/')
}

/// The file's rows as a table.
///
/// # Errors
/// [`SqlErrorKind::File`] if it is missing, or is not what its name says.
pub(crate) async fn open(name: &str, state: &SessionState) -> Result<Arc<dyn TableProvider>> {
    let failed = |reason: String| {
        SqlError::new(SqlErrorKind::File {
            path: name.to_owned(),
            reason,
        })
        .into_datafusion()
    };
    let pattern = name.contains(['*', '?', '[']);
    if !pattern && !Path::new(name).exists() {
        return Err(failed("no such file".to_owned()));
    }
    let (format, ending): (Arc<dyn FileFormat>, _) = if name.ends_with(".csv") {
        (
            Arc::new(
                CsvFormat::default()
                    .with_has_header(true)
                    .with_options(state.table_options().csv.clone()),
            ),
            ".csv",
        )
    } else if name.ends_with(".parquet") || Path::new(name).is_dir() {
        (
            Arc::new(ParquetFormat::default().with_options(state.table_options().parquet.clone())),
            ".parquet",
        )
    } else {
        return Err(failed(format!(
            "the name must end with {}",
            ENDINGS.join(" or ")
        )));
    };
    let path = if Path::new(name).is_dir() && !name.ends_with('/') {
        format!("{name}/")
    } else {
        name.to_owned()
    };
    let url = ListingTableUrl::parse(path).map_err(|error| failed(error.message().into_owned()))?;
    let options = ListingOptions::new(format).with_file_extension(ending);
    let schema = options.infer_schema(state, &url).await;
    let schema = schema.map_err(|error| failed(error.find_root().message().into_owned()))?;
    if schema.fields().is_empty() {
        return Err(failed("no such file, or no columns in it".to_owned()));
    }
    let config = ListingTableConfig::new(url)
        .with_listing_options(options)
        .with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}
