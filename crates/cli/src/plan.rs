//! How a query would be executed on a machine that is not here.

use crate::args::{PlanCommand, Source};
use crate::units::{self, Unit};
use eris_numa::{Profile, Topology, TopologyError};
use eris_sql::SqlError;
use std::sync::Arc;

/// AEUs that are started at most: they hold rows, and do little else.
const MOST_AEUS: u16 = 128;

/// The words that queries begin with.
const QUERIES: [&str; 5] = ["SELECT", "WITH", "FROM", "VALUES", "TABLE"];

/// What was given cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not one statement.
    #[error("one query can be planned, and {0} statements were given")]
    Count(usize),
    /// It is something else.
    #[error(
        "{word:?} begins no query: one that begins with SELECT, WITH, FROM, VALUES or TABLE can be planned"
    )]
    NoQuery {
        /// Its first word.
        word: String,
    },
    /// It cannot be cut.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

/// As many nodes as the machine has, each with as many AEUs as it has there, or fewer if that were too many.
pub fn topology(plan: &PlanCommand) -> Result<Topology, TopologyError> {
    let machine = Profile::named(&plan.machine)?;
    let nodes = u16::try_from(machine.nodes()).unwrap_or(u16::MAX);
    let aeus = machine.aeus_per_node.min(MOST_AEUS / nodes).max(1);
    Ok(Topology::fake(nodes, aeus).planned_as(Arc::new(machine))?)
}

/// What is said of a machine that is not here, before anything else.
pub fn told(machine: &Profile) -> String {
    format!("planned as for {} ({})", machine.name, machine.source)
}

/// The files, and the plan of the query.
///
/// # Errors
/// It is no query, or there is more than one.
pub fn sources(plan: PlanCommand) -> Result<Vec<Source>, PlanError> {
    let query = match &units::cut(&plan.query)?[..] {
        [Unit::Statement(statement)] => statement.text().trim().trim_end_matches(';').to_owned(),
        other => return Err(PlanError::Count(other.len())),
    };
    let word = query.split(|letter: char| !letter.is_alphanumeric()).next();
    let word = word.unwrap_or_default().to_uppercase();
    if !(query.starts_with('(') || QUERIES.contains(&&*word)) {
        return Err(PlanError::NoQuery { word });
    }
    let files = plan.files.into_iter().map(Source::File);
    let explain = Source::Command(format!("EXPLAIN {query}"));
    Ok(files.chain([explain]).collect())
}
