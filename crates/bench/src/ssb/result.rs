//! What a run tells.

use super::answer::Sample;
use super::sessions::SessionsRun;
use eris_telemetry::AeuSnapshot;
use serde::Serialize;

/// The result. Its JSON form has `scale`, `load_s`, `bytes` and `queries`, and `sessions` if that was asked for, and
/// nothing else.
#[derive(Debug, Serialize)]
pub struct SsbRun {
    /// The scale factor.
    pub scale: f64,
    /// Seconds from the files to tables: reading, converting and writing, but not generating.
    pub load_s: f64,
    /// Memory of the five tables in bytes.
    pub bytes: u64,
    /// Per query, in the order of running.
    pub queries: Vec<QueryRun>,
    /// Several sessions at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsRun>,
    /// Rows of the five tables.
    #[serde(skip)]
    pub rows: u64,
    /// The same bytes by node.
    #[serde(skip)]
    pub bytes_by_node: Vec<u64>,
    /// The answer of one query, to look at.
    #[serde(skip)]
    pub sample: Option<Sample>,
    /// What each AEU did, by its number: the sum over all queries, one run each.
    #[serde(skip)]
    pub work: Vec<AeuWork>,
}

/// One query's runs.
#[derive(Debug, Serialize)]
pub struct QueryRun {
    /// `"1.1"` to `"4.3"`.
    pub id: &'static str,
    /// Rows of its result.
    pub rows: u64,
    /// Milliseconds of each timed run.
    pub ms: Vec<f64>,
    /// The plan with what it did in each AEU, if that was asked for: a line each, as `EXPLAIN ANALYZE` gives them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<String>,
}

/// What one AEU did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AeuWork {
    /// The node it runs on.
    pub node: u16,
    /// What it counted.
    pub counted: AeuSnapshot,
}
