//! `eris bench busy`: what a scan takes while somebody else uses the core of one AEU.
//!
//! ```text
//!                     core 0 … n-2         core n-1
//! all AEUs, quiet     AEU … AEU            AEU
//! all AEUs            AEU … AEU            AEU and a thread that spins        one scan, as long as the slowest chunk
//! one AEU less        AEU … AEU            a thread that spins
//! ```
//!
//! Whoever spins and the AEU on its core take turns, as the system gives them to them. So the AEU does less than the
//! others, and holds a chunk while it does not run. The others take over what it leaves. That all AEUs are as fast as
//! one less is the limit: the core that is shared should not cost more than it brings.

use crate::report::BenchReport;
use eris_engine::{Engine, Settings};
use eris_numa::{PinError, TopologyError, pin_current_thread};
use eris_sql::{Database, Outcome, SqlError};
use futures::executor::block_on;
use serde_json::json;
use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct BusyOptions {
    /// Rows of the table.
    pub rows: u64,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BusyBenchError {
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The spinning thread could not be bound to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// There is no topology with one AEU less.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// There are no two AEUs that are bound to cores.
    #[error("there have to be two AEUs at least, each bound to a core; the topology is {0}")]
    Unbound(String),
    /// Engines have two answers.
    #[error("{statement} yields {first} and {other}")]
    WrongAnswer {
        /// Which statement.
        statement: &'static str,
        /// One answer.
        first: String,
        /// Another one.
        other: String,
    },
}

/// Statements in the time of which the spinning thread is watched.
const STATEMENTS: usize = 8;

const CASES: [(&str, &str); 3] = [
    (
        "count",
        "SELECT count(*) FROM busy WHERE wide > 4500000000000000000",
    ),
    (
        "sum",
        "SELECT sum(narrow * kind) FROM busy WHERE wide > 4500000000000000000",
    ),
    (
        "groups",
        "SELECT kind, count(*), sum(narrow) FROM busy GROUP BY kind ORDER BY kind",
    ),
];

/// Milliseconds of a statement in the three ways, and the share of its core that the spinning thread has.
///
/// # Errors
/// [`BusyBenchError`].
pub fn run(settings: Settings, options: BusyOptions) -> Result<BenchReport, BusyBenchError> {
    let topology = settings.topology.clone();
    let mut report = BenchReport::new("busy", &topology);
    let last = topology.aeus().last().and_then(|place| place.cpu);
    let (Some(cpu), 2..) = (last, topology.aeus().len()) else {
        return Err(BusyBenchError::Unbound(report.machine.topology));
    };
    let less = Settings {
        topology: topology.clone().with_aeus(topology.aeus().len() - 1)?,
        ..settings.clone()
    };
    let all = open(settings, options.rows)?;
    let less = open(less, options.rows)?;
    for (name, statement) in CASES {
        let mut times = [const { Vec::new() }; 3];
        let mut shares = Vec::new();
        let mut answer: Option<String> = None;
        for _ in 0..options.runs {
            let quiet = ask(&all, statement)?;
            let shared = Spinner::beside(cpu, || ask(&all, statement))?;
            let alone = Spinner::beside(cpu, || ask(&less, statement))?;
            // Of what it does on a core of its own.
            shares.push(shared.rate / alone.rate);
            let asked = [quiet, shared.asked?, alone.asked?];
            for (asked, times) in asked.into_iter().zip(&mut times) {
                times.push(asked.milliseconds);
                let first = answer.get_or_insert_with(|| asked.answer.clone());
                if *first != asked.answer {
                    return Err(BusyBenchError::WrongAnswer {
                        statement,
                        first: first.clone(),
                        other: asked.answer,
                    });
                }
            }
        }
        let mut least = times[2].clone();
        least.sort_by(f64::total_cmp);
        let limit = least[least.len() / 2];
        let ways = ["all AEUs, quiet", "all AEUs", "one AEU less"];
        for (way, times) in ways.into_iter().zip(times) {
            report.row(name, [("way", json!(way))], "ms", times, Some(limit));
        }
        let params = [("way", json!("spinning thread beside all AEUs"))];
        report.row(name, params, "share of its core", shares, Some(0.5));
    }
    Ok(report)
}

fn open(settings: Settings, rows: u64) -> Result<Database, BusyBenchError> {
    let database = Database::open(Engine::home(settings).map_err(SqlError::from)?)?;
    let create = format!(
        "CREATE TABLE busy AS SELECT (i * 7 % 16)::BIGINT AS narrow, \
         (i * 2654435761 % 4294967296 * 2147483648)::BIGINT AS wide, (i % 97)::INTEGER AS kind \
         FROM generate_series(1, {rows}) AS s(i)"
    );
    block_on(database.session().execute(create.as_str()))?;
    Ok(database)
}

struct Asked {
    milliseconds: f64,
    answer: String,
}

/// Milliseconds of a statement, on average.
fn ask(database: &Database, statement: &str) -> Result<Asked, SqlError> {
    let session = database.session();
    let mut answer = String::new();
    let began = Instant::now();
    for _ in 0..STATEMENTS {
        if let Outcome::Rows(rows) = block_on(session.execute(statement))? {
            answer = format!("{:?}", block_on(rows.collect())?);
        }
    }
    Ok(Asked {
        milliseconds: 1e3 * began.elapsed().as_secs_f64() / STATEMENTS as f64,
        answer,
    })
}

/// What was asked beside a thread that spins, and how fast that was.
struct Spinner<T> {
    asked: T,
    rate: f64,
}

impl<T> Spinner<T> {
    /// Does something while a thread spins on a core.
    fn beside(cpu: u32, work: impl FnOnce() -> T) -> Result<Self, PinError> {
        // Relaxed numbers: they guard nothing.
        let (is_over, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Barrier::new(2);
        thread::scope(|scope| {
            let spin = scope.spawn(|| {
                let pinned = pin_current_thread(cpu);
                start.wait();
                while !is_over.load(Relaxed) {
                    (0..64).for_each(|_| spin_loop());
                    turns.store(turns.load(Relaxed) + 1, Relaxed);
                }
                pinned
            });
            start.wait();
            let (before, began) = (turns.load(Relaxed), Instant::now());
            let asked = work();
            let turned = turns.load(Relaxed) - before;
            let rate = turned as f64 / began.elapsed().as_secs_f64();
            is_over.store(true, Relaxed);
            let pinned = spin.join();
            pinned.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(Spinner { asked, rate })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Topology};

    fn settings(topology: Topology) -> Settings {
        Settings {
            topology,
            huge_pages: HugePages::Never,
            memory_limit: Some(1 << 30),
            database: None,
        }
    }

    #[test]
    fn made_up_aeus_have_no_core_to_share() {
        let options = BusyOptions { rows: 10, runs: 1 };
        let error = run(settings(Topology::fake(2, 1)), options).unwrap_err();
        assert!(error.to_string().contains("fake 2x1"), "{error}");
    }

    #[test]
    fn all_ways_have_one_answer() {
        let topology = Topology::detect().unwrap();
        if topology.aeus().len() < 2 || topology.is_fake() {
            return;
        }
        let options = BusyOptions {
            rows: 300_000,
            runs: 1,
        };
        let report = run(settings(topology), options).unwrap();
        assert_eq!(report.rows.len(), 4 * CASES.len());
        // In so short a time, whoever spins may not have its core at all.
        let times = report.rows.iter().filter(|row| row.unit == "ms");
        assert!(times.clone().all(|row| row.value > 0.0), "{report:?}");
        assert_eq!(times.count(), 3 * CASES.len());
    }
}
