//! Names of tables, for one statement: all its scans share one snapshot.

use crate::catalog::{CATALOG, Catalog, SCHEMA, Table};
use crate::error::SqlError;
use crate::files::{self, Files};
use crate::progress::{self, Progress};
use crate::scan::{Scan, ScannedTable};
use crate::statistics::TableStatistics;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use eris_engine::Engine;
use eris_types::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Rows for which a further stream is worth its tasks.
const ROWS_PER_LANE: u64 = 65_536;

/// The names that one statement can see. Catalogue list, catalogue and schema in one, for there is one of each.
#[derive(Clone)]
pub(crate) struct Names(Arc<Inner>);

struct Inner {
    catalog: Arc<Catalog>,
    engine: Engine,
    snapshot: Timestamp,
    progress: Progress,
    /// For reading files; it knows no tables itself.
    state: Arc<SessionState>,
    /// The files that this statement has opened already, by the names it gave them.
    files: Files,
}

impl Names {
    /// The names and the snapshot as they are now.
    pub fn now(
        catalog: &Arc<Catalog>,
        engine: &Engine,
        state: &Arc<SessionState>,
        files: Files,
    ) -> Self {
        Names(Arc::new(Inner {
            catalog: Arc::clone(catalog),
            engine: engine.clone(),
            snapshot: engine.snapshot(),
            progress: progress::current(),
            state: Arc::clone(state),
            files,
        }))
    }

    /// Whether the statement has opened files under this name.
    pub fn has_file(&self, name: &str) -> bool {
        self.0.files.contains_key(name)
    }

    fn scan(&self, table: Arc<Table>) -> Result<Scan, SqlError> {
        let Inner {
            engine,
            snapshot,
            progress,
            ..
        } = &*self.0;
        let statistics = TableStatistics::new(engine.statistics(table.object)?, *snapshot);
        let most = engine.topology().aeus().len().max(1);
        let lanes = statistics
            .rows()
            .div_ceil(ROWS_PER_LANE)
            .clamp(1, most as u64) as usize;
        let executor = Arc::new(engine.clone());
        Ok(Scan {
            table,
            snapshot: *snapshot,
            statistics,
            executor,
            lanes,
            progress: progress.clone(),
        })
    }
}

#[async_trait]
impl SchemaProvider for Names {
    fn table_names(&self) -> Vec<String> {
        self.0
            .catalog
            .tables()
            .iter()
            .map(|table| table.name.clone())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(files) = self.0.files.get(name) {
            return Ok(Some(Arc::clone(files)));
        }
        match self.0.catalog.get(name) {
            Some(table) => {
                let scan = self.scan(table).map_err(SqlError::into_datafusion)?;
                Ok(Some(Arc::new(ScannedTable(Arc::new(scan)))))
            }
            None if files::is_file_name(name) => files::open(name, &self.0.state).await.map(Some),
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.catalog.get(name).is_some()
    }
}

impl CatalogProvider for Names {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| Arc::new(self.clone()) as _)
    }
}

impl CatalogProviderList for Names {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(self.clone()) as _)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names(at {})", self.0.snapshot)
    }
}
