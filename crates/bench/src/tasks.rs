//! `eris bench tasks`: what a task costs from its spawn to its run, and what it gains if its memory is asked for ahead.
//!
//! ```text
//! same AEU    a task spawns 256 others at its AEU and itself again          ns per task
//! other AEU   the same, and the 256 are for an AEU of another core          ns per task
//! prefetch    tasks that touch memory by chance, 1 or 4 lines that lead from one to the next,
//!             by the size of what they touch and by how many tasks ahead it is asked for
//! ```
//! Beside them run a channel, Tokio and Rayon, with as many tasks that add a number. All times are amortised over many
//! tasks: one alone costs what it takes to wake somebody. The limit of `same AEU` is a function that is called.

mod rivals;
mod spawn;
mod touch;

use crate::figure::FigureShape;
use crate::report::BenchReport;
use eris_aeu::StartError;
use eris_numa::{HugePages, Memory, MemoryError, OutOfMemory, Topology, TopologyError};
use eris_route::RouteError;
use serde_json::json;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct TasksOptions {
    /// The most bytes that tasks touch.
    pub bytes: usize,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// Only what tasks cost, or only what asking ahead gains.
    pub part: Option<TasksPart>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TasksPart {
    /// From spawn to run.
    Spawn,
    /// Memory that is asked for ahead.
    Prefetch,
}

/// Why tasks could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum TasksBenchError {
    /// The AEUs did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There are no processors for them.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No session could be opened.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// There is no memory to touch.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is too little of it.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The threads of a rival did not start.
    #[error("cannot start a rival: {0}")]
    Rival(String),
    /// No answer has come for a minute.
    #[error("the tasks have not ended within a minute")]
    NoAnswer,
}

/// Runs the benchmark on one or two of the topology's AEUs.
///
/// # Errors
/// [`TasksBenchError`].
pub fn run(
    topology: &Topology,
    huge_pages: HugePages,
    options: TasksOptions,
) -> Result<BenchReport, TasksBenchError> {
    let mut report = BenchReport::new("tasks", topology);
    if options.part != Some(TasksPart::Prefetch) {
        spawn(&mut report, topology, options.runs)?;
    }
    if options.part != Some(TasksPart::Spawn) {
        let memory = Memory::new(topology, huge_pages, None)?;
        touch::run(&mut report, topology, &memory, options)?;
    }
    Ok(report)
}

/// Time of a task by its working set.
pub(crate) const FIGURES: [FigureShape; 1] = [FigureShape {
    cases: &["prefetch"],
    name: "prefetch",
    title: "Tasks with memory asked for ahead, lines:",
    x: "bytes",
    x_name: "bytes of the working set",
    is_log: true,
    figure: &["lines"],
    line: &["distance"],
    ..FigureShape::EMPTY
}];

type Measured = Result<f64, TasksBenchError>;

fn spawn(
    report: &mut BenchReport,
    topology: &Topology,
    runs: usize,
) -> Result<(), TasksBenchError> {
    let mut cases: Vec<rivals::Case<'_>> = Vec::new();
    for words in [1, 2, 4] {
        cases.push((
            "same AEU",
            Some(words),
            Box::new(move || spawn::on_one(topology, words)),
        ));
        cases.push((
            "other AEU",
            Some(words),
            Box::new(move || spawn::to_another(topology, words)),
        ));
    }
    cases.extend(rivals::all(topology));
    let mut times = vec![Vec::new(); cases.len()];
    let mut limits = Vec::new();
    for _ in 0..runs {
        for ((_, _, measure), times) in cases.iter().zip(&mut times) {
            times.push(measure()?);
        }
        limits.push(rivals::called());
    }
    let limit = crate::report::median(&limits);
    for ((case, words, _), times) in cases.iter().zip(times) {
        let params = words.map(|words| ("words", json!(words)));
        let limit = (*case == "same AEU").then_some(limit);
        report.row(case, params, "ns/task", times, limit);
    }
    Ok(())
}
