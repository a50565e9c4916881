//! `eris bench placement`: where data lies, and what that costs on a machine that is not here. Figures 1, 9 and 12 of
//! the ERIS paper.
//!
//! ```text
//!             node 0          node 1          node 2     …
//! single      ▓▓▓▓▓▓▓▓▓▓▓▓                               all of it in one node's memory
//! interleaved ▓  ▓  ▓  ▓       ▓  ▓  ▓  ▓      ▓  ▓      page by page in turns
//! partitioned ▓▓▓▓            ▓▓▓▓            ▓▓▓▓       each node's part in its own memory: ERIS
//! ```
//!
//! A thread stands for the cores of a node. It reads real memory and looks keys up in real trees. Its requests cross
//! the links of the machine that is imitated, and its nodes' memory controllers, which are as fast as a node reads its
//! own memory. All of these are *slower* by one factor, so that the cores that are here can keep up. Rates are given as
//! on that machine: times the factor.
//!
//! The paper's Figure 11 (states of cache lines) needs counters of the processor, which no paced link has.

mod lookups;
mod machine;
mod scans;

use crate::figure::FigureShape;
use crate::report::BenchReport;
use eris_numa::{Profile, ProfileError, Topology};
use machine::SlowMachine;
use serde_json::json;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct PlacementOptions {
    /// Timed runs of each case, interleaved.
    pub runs: usize,
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum PlacementBenchError {
    /// The profile that is given is none.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The trees could not be made.
    #[error("cannot make the indexes to look keys up in: {0}")]
    Index(String),
}

/// Where data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placing {
    Single,
    Interleaved,
    Partitioned,
}

impl Placing {
    const ALL: [Placing; 3] = [Placing::Single, Placing::Interleaved, Placing::Partitioned];

    fn name(self) -> &'static str {
        match self {
            Placing::Single => "single",
            Placing::Interleaved => "interleaved",
            Placing::Partitioned => "partitioned",
        }
    }
}

/// The machines of the paper.
const MACHINES: [&str; 3] = ["eris-intel", "eris-amd", "eris-sgi"];

/// More nodes than these are left out: there are not as many cores here.
const MOST_NODES: usize = 8;

/// The paper's figures; scans are measured for one number of nodes, and are a table.
pub(crate) const FIGURES: [FigureShape; 2] = [
    FigureShape {
        cases: &["lookup"],
        name: "lookup",
        title: "Lookups by nodes (ERIS, Figure 1)",
        x: "nodes",
        x_name: "nodes",
        figure: &["machine"],
        line: &["placing"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["lookup, crossing links"],
        name: "lookup-links",
        title: "What lookups send over links (ERIS, Figure 12)",
        x: "nodes",
        x_name: "nodes",
        figure: &["machine"],
        line: &["placing"],
        ..FigureShape::EMPTY
    },
];

/// Scans and lookups by placement, and lookups by the number of nodes, on the machine that is given or those of the
/// paper.
///
/// # Errors
/// [`PlacementBenchError`].
pub fn run(
    topology: &Topology,
    options: PlacementOptions,
) -> Result<BenchReport, PlacementBenchError> {
    let machines: Vec<(String, Profile)> = match Profile::given()? {
        Some(given) => vec![(given.name.clone(), given)],
        None => (MACHINES.iter())
            .filter_map(|name| Some(((*name).to_owned(), Profile::known(name)?)))
            .collect(),
    };
    let mut report = BenchReport::new("placement", topology);
    for (name, profile) in machines {
        let nodes = profile.nodes().min(MOST_NODES);
        scans::measure(&name, &profile, nodes, options.runs, &mut report);
        lookups::measure(&name, &profile, nodes, options.runs, &mut report)
            .map_err(PlacementBenchError::Index)?;
    }
    Ok(report)
}

/// What a case is about.
fn params(machine: &str, nodes: usize, placing: Placing) -> [(&'static str, serde_json::Value); 3] {
    [
        ("machine", json!(machine)),
        ("nodes", json!(nodes)),
        ("placing", json!(placing.name())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_the_paper_prefers_partitions() {
        let mut report = BenchReport::new("placement", &Topology::fake(1, 1));
        let intel = Profile::known("eris-intel").unwrap();
        scans::measure("intel", &intel, 2, 1, &mut report);
        lookups::measure("intel", &intel, 2, 1, &mut report).unwrap();
        let rates = report
            .rows
            .iter()
            .filter(|row| !row.case.contains("crossing"));
        assert!(rates.clone().all(|row| row.value > 0.0), "{report:?}");
        // Nothing crosses in a scan of a node's own memory.
        let crossing = (report.rows.iter()).find(|row| {
            row.case == "scan, crossing links" && row.params["placing"] == "partitioned"
        });
        assert_eq!(crossing.unwrap().value, 0.0);
    }
}
