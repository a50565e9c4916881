//! What each session sets for itself.

use crate::catalog::SCHEMA;
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::prelude::SessionConfig;
use eris_fragment::{NumaStrategy, ScanOptions};
use std::sync::Arc;
use std::time::Duration;

/// Rows of a batch above the fragments.
const BATCH_ROWS: usize = 8192;
/// A build side up to this size is read as a whole, so that the probe side, mostly the fact table, needs no exchange of
/// its rows and gets one filter for all of the build side.
const BUILD_ROWS: usize = 4 << 20;
/// The same in bytes.
const BUILD_BYTES: usize = 512 << 20;

/// Where NULL may stand, as DuckDB and as DataFusion call it. PostgreSQL's is the first.
pub(crate) const NULL_ORDERS: [(&str, &str); 4] = [
    ("nulls_last_on_asc_first_on_desc", "nulls_max"),
    ("nulls_first_on_asc_last_on_desc", "nulls_min"),
    ("nulls_first", "nulls_first"),
    ("nulls_last", "nulls_last"),
];

/// Where rows are worked on, by their names in settings.
pub(crate) const NUMA_STRATEGIES: [(&str, NumaStrategy); 3] = [
    ("auto", NumaStrategy::Auto),
    ("push", NumaStrategy::Push),
    ("pull", NumaStrategy::Pull),
];

/// A session's variables. Statements see them as they were when they began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variables {
    /// The schema of names that are written without one.
    pub schema: String,
    /// The schema of its temporary tables, once it has had one.
    pub temporary: Option<Arc<str>>,
    pub statement_timeout: Option<Duration>,
    pub batch_rows: usize,
    pub join_build_rows: usize,
    pub join_build_bytes: usize,
    pub prefer_hash_join: bool,
    pub join_filters: bool,
    pub join_reordering: bool,
    pub key_recoding: bool,
    pub numa_strategy: NumaStrategy,
    pub scan_sharing: bool,
    pub parallel_streams: usize,
    /// Where NULL stands in ORDER BY.
    pub null_order: String,
}

impl Variables {
    /// A new session's, on so many AEUs.
    pub fn new(aeus: usize) -> Self {
        Variables {
            schema: SCHEMA.to_owned(),
            temporary: None,
            statement_timeout: None,
            batch_rows: BATCH_ROWS,
            join_build_rows: BUILD_ROWS,
            join_build_bytes: BUILD_BYTES,
            prefer_hash_join: true,
            join_filters: true,
            join_reordering: true,
            key_recoding: true,
            numa_strategy: NumaStrategy::Auto,
            scan_sharing: true,
            parallel_streams: aeus.max(1),
            null_order: NULL_ORDERS[0].0.to_owned(),
        }
    }

    /// How fragments of a statement with this number are executed.
    pub fn scan_options(&self, statement: u64) -> ScanOptions {
        ScanOptions {
            strategy: self.numa_strategy,
            sharing: self.scan_sharing,
            statement,
        }
    }

    /// Tells DataFusion.
    pub fn apply(&self, config: &mut SessionConfig) {
        let options = config.options_mut();
        options.catalog.default_schema = self.schema.clone();
        options.execution.batch_size =
            ConfigNonZeroUsize::try_new(self.batch_rows).expect("a setting has limits");
        options.execution.target_partitions = self.parallel_streams;
        let null_order = NULL_ORDERS
            .iter()
            .find(|(name, _)| *name == self.null_order);
        let (_, null_ordering) = null_order.expect("a setting has limits");
        options.sql_parser.default_null_ordering = (*null_ordering).to_owned();
        let optimizer = &mut options.optimizer;
        optimizer.hash_join_single_partition_threshold = self.join_build_bytes;
        optimizer.hash_join_single_partition_threshold_rows = self.join_build_rows;
        optimizer.prefer_hash_join = self.prefer_hash_join;
        optimizer.enable_join_dynamic_filter_pushdown = self.join_filters;
        optimizer.join_reordering = self.join_reordering;
    }
}
