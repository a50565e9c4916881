//! `eris machine` and `eris bench`: arguments to the benchmarks, their reports to standard output.

use crate::args::{
    BenchAtomics, BenchBalance, BenchBlink, BenchBusy, BenchCommand, BenchCommit, BenchCopy,
    BenchIndex, BenchIndexPart, BenchJoin, BenchPushPull, BenchScan, BenchSharing, BenchStatement,
    BenchTasks, BenchTasksPart, MachineCommand,
};
use crate::places;
use eris_bench::atomics::{self, AtomicsOptions};
use eris_bench::balance::{self, BalanceBenchError, BalanceOptions};
use eris_bench::busy::{self, BusyBenchError, BusyOptions};
use eris_bench::commit::{self, CommitBenchError, CommitOptions};
use eris_bench::copy::{self, CopyBenchError, CopyOptions};
use eris_bench::figures::figures;
use eris_bench::index::{self, IndexBenchError, IndexOptions, IndexPart};
use eris_bench::join::{self, JoinOptions};
use eris_bench::machine::{self, GivenMachine, KeptMachine, MachineError};
use eris_bench::placement::{self, PlacementBenchError, PlacementOptions};
use eris_bench::pushpull::{self, PushPullOptions};
use eris_bench::report::BenchReport;
use eris_bench::route::{self, RouteBenchError, RouteOptions};
use eris_bench::scan::{self, ScanError, ScanOptions};
use eris_bench::sharing::{self, SharingBenchError, SharingOptions};
use eris_bench::ssb::SsbSource;
use eris_bench::statement::{self, StatementBenchError, StatementOptions};
use eris_bench::tasks::{self, TasksBenchError, TasksOptions, TasksPart};
use eris_engine::Settings;
use eris_machine::{Kept, are_free};
use eris_numa::{HugePages, PinError, Profile, ProfileError, Topology};
use eris_ssb::{Scale, ScaleError};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Timed runs of each case of a scan.
const RUNS: usize = 5;
/// Statements of a run.
const STATEMENTS: usize = 1000;

/// Why a benchmark gave no report.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine could not be measured.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Where data lies could not be measured.
    #[error(transparent)]
    Placement(#[from] PlacementBenchError),
    /// Statements at the same time could not be measured.
    #[error(transparent)]
    Sharing(#[from] SharingBenchError),
    /// A scan beside another thread could not be measured.
    #[error(transparent)]
    Busy(#[from] BusyBenchError),
    /// There is no memory to copy.
    #[error(transparent)]
    Copy(#[from] CopyBenchError),
    /// A profile is given that is none.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A profile is given, and this machine shall be measured.
    #[error("ERIS_MACHINE gives another machine, so nothing is measured: unset it for --measure")]
    GivenMeasured,
    /// The profile cannot be kept.
    #[error("cannot write the profile {file}: {source}", file = file.display())]
    Save {
        /// Where.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Threads could not be bound to their cores.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// Routing could not be measured.
    #[error(transparent)]
    Route(#[from] RouteBenchError),
    /// Scans could not be measured.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Indexes could not be measured.
    #[error(transparent)]
    Index(#[from] IndexBenchError),
    /// Statements could not be measured.
    #[error(transparent)]
    Statement(#[from] StatementBenchError),
    /// Tasks could not be measured.
    #[error(transparent)]
    Tasks(#[from] TasksBenchError),
    /// Commits could not be measured.
    #[error(transparent)]
    Commit(#[from] CommitBenchError),
    /// The tables cannot be generated in this size.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// Balancing could not be measured.
    #[error(transparent)]
    Balance(#[from] BalanceBenchError),
    /// The report could not be printed, or its figures not be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
}

impl BenchError {
    /// As [`crate::format::FormatError::is_closed_pipe`].
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, BenchError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// `eris machine`.
pub fn machine(topology: &Topology, command: &MachineCommand) -> Result<(), BenchError> {
    let json = command.output.json;
    let given = Profile::given()?;
    if given.is_some() && command.measure {
        return Err(BenchError::GivenMeasured);
    }
    let kept = match command.measure {
        true => None,
        false => kept(topology),
    };
    let profile = match (given, kept) {
        (Some(given), _) => {
            GivenMachine(given.clone()).print(json)?;
            given
        }
        (None, Some(kept)) => {
            kept.print(json)?;
            let told = "eris machine --measure measures anew";
            match json {
                // Programs get the numbers alone.
                true => eprintln!("{}; {told}", kept.told()),
                false => println!("\n{told}"),
            }
            kept.profile
        }
        (None, None) => {
            let before = are_free(topology);
            let report = machine::run(topology, HugePages::Auto, &Default::default())?;
            report.print(json)?;
            let profile = report.profile;
            match before && are_free(topology) {
                true => keep(topology, &profile, json),
                false => eprintln!(
                    "\nOther programs use the cores: these numbers are too low, and are not kept. Try again when the machine is quiet."
                ),
            }
            profile
        }
    };
    if let Some(file) = &command.save {
        std::fs::write(file, profile.to_toml()).map_err(|source| BenchError::Save {
            file: file.clone(),
            source,
        })?;
    }
    Ok(())
}

/// What was measured before, if it is kept.
fn kept(topology: &Topology) -> Option<KeptMachine> {
    let kept = Kept::of_user(topology)?;
    Some(KeptMachine {
        topology: topology.clone(),
        profile: kept.load()?,
        file: kept.file().to_owned(),
        age: kept.age(),
    })
}

/// Keeps what was measured for the engines of this user.
fn keep(topology: &Topology, profile: &Profile, json: bool) {
    let Some(kept) = Kept::of_user(topology) else {
        return;
    };
    match kept.store(profile) {
        Ok(()) if json => {}
        Ok(()) => println!("\nmeasured now, kept in {}", kept.file().display()),
        Err(error) => eprintln!("{error}"),
    }
}

/// `eris bench`.
pub fn run(settings: Settings, bench: &BenchCommand, runtime: &Runtime) -> Result<(), BenchError> {
    let (output, svg) = bench.output();
    if let Some(directory) = svg {
        // Before measuring for minutes.
        std::fs::create_dir_all(directory)?;
    }
    let report = match bench {
        BenchCommand::Route(_) => route::run(&settings.topology, RouteOptions::default())?,
        BenchCommand::Atomics(bench) => atomics(&settings.topology, bench)?,
        BenchCommand::Join(bench) => join(&settings.topology, bench),
        BenchCommand::PushPull(BenchPushPull { records, over, .. }) => {
            let options = PushPullOptions {
                records: usize::try_from(*records).expect("it is 64-bit"),
                runs: RUNS,
                over_nodes: over.is_some(),
            };
            pushpull::run(&settings.topology, options)
        }
        BenchCommand::Placement(_) => {
            let options = PlacementOptions { runs: RUNS };
            placement::run(&settings.topology, options)?
        }
        BenchCommand::Copy(BenchCopy { rows, .. }) => {
            let options = CopyOptions {
                rows: usize::try_from(*rows).expect("it is 64-bit"),
                runs: RUNS,
            };
            copy::run(&settings.topology, options)?
        }
        BenchCommand::Scan(BenchScan { chunk: true, .. }) => scan::chunks(&settings, RUNS)?,
        BenchCommand::Scan(BenchScan {
            rows, every_isa, ..
        }) => {
            let options = ScanOptions {
                rows: *rows,
                every_isa: *every_isa,
                runs: RUNS,
            };
            runtime.block_on(scan::run(settings, options))?
        }
        BenchCommand::Busy(BenchBusy { rows, .. }) => {
            let options = BusyOptions {
                rows: *rows,
                runs: RUNS,
            };
            busy::run(settings, options)?
        }
        BenchCommand::Sharing(bench) => sharing(settings, bench)?,
        BenchCommand::Blink(bench) => blink(&settings, bench)?,
        BenchCommand::Index(bench) => index(&settings, bench)?,
        BenchCommand::Statement(BenchStatement { rows, keys, .. }) => {
            let options = StatementOptions {
                keys: *keys,
                rows: *rows,
                runs: RUNS,
                statements: STATEMENTS,
            };
            statement::run(settings, options)?
        }
        BenchCommand::Tasks(BenchTasks {
            part, mebibytes, ..
        }) => {
            let part = part.map(|part| match part {
                BenchTasksPart::Spawn => TasksPart::Spawn,
                BenchTasksPart::Prefetch => TasksPart::Prefetch,
            });
            let options = TasksOptions {
                bytes: usize::try_from(*mebibytes << 20).expect("it is 64-bit"),
                runs: RUNS,
                part,
            };
            tasks::run(&settings.topology, settings.huge_pages, options)?
        }
        BenchCommand::Commit(bench) => commit(&settings, bench)?,
        BenchCommand::Balance(bench) => balance(&settings, bench)?,
    };
    report.print(output.json)?;
    if let Some(directory) = svg {
        for (name, plot) in figures(&report) {
            std::fs::write(directory.join(name + ".svg"), plot.svg())?;
        }
    }
    Ok(())
}

/// `eris bench atomics`.
fn atomics(topology: &Topology, bench: &BenchAtomics) -> Result<BenchReport, BenchError> {
    let mut options = AtomicsOptions {
        time: Duration::from_millis(bench.milliseconds),
        ..AtomicsOptions::new(topology)
    };
    if !bench.threads.is_empty() {
        let threads = bench.threads.iter();
        options.threads = threads.map(|threads| *threads as usize).collect();
    }
    Ok(atomics::run(topology, &options)?)
}

/// `eris bench join`.
fn join(topology: &Topology, bench: &BenchJoin) -> BenchReport {
    let batches = bench.batches.iter().map(|rows| *rows as usize);
    let options = JoinOptions {
        rows: usize::try_from(bench.rows).expect("it is 64-bit"),
        batches: batches.collect(),
        runs: RUNS,
    };
    join::run(topology, &options)
}

/// `eris bench sharing`.
fn sharing(settings: Settings, bench: &BenchSharing) -> Result<BenchReport, BenchError> {
    let options = SharingOptions {
        rows: bench.rows,
        runs: RUNS,
        ssb: ssb_source(bench.scale, bench.data.as_ref())?,
    };
    Ok(sharing::run(settings, options)?)
}

/// Where the tables of the Star Schema Benchmark come from.
fn ssb_source(scale: f64, data: Option<&PathBuf>) -> Result<SsbSource, BenchError> {
    Ok(SsbSource {
        scale: Scale::new(scale)?,
        data: data.cloned(),
        cache: places::cache().unwrap_or_else(std::env::temp_dir),
    })
}

/// `eris bench commit`.
fn commit(settings: &Settings, bench: &BenchCommit) -> Result<BenchReport, BenchError> {
    let options = CommitOptions {
        directory: bench.dir.clone().unwrap_or_else(std::env::temp_dir),
        rounds: bench.rounds as usize,
        time: Duration::from_secs_f64(bench.seconds),
        source: ssb_source(bench.scale, bench.data.as_ref())?,
    };
    Ok(commit::run(settings, &options)?)
}

/// `eris bench balance`.
fn balance(settings: &Settings, bench: &BenchBalance) -> Result<BenchReport, BenchError> {
    let options = BalanceOptions {
        keys: bench.keys,
        time: Duration::from_secs_f64(bench.seconds),
        period: Duration::from_secs_f64(bench.period),
        threshold: bench.threshold,
        share: bench.share,
        clients: bench.clients as usize,
        batch: bench.batch as usize,
    };
    let mut report = balance::run(settings, &options)?;
    if let Some(file) = &bench.svg {
        std::fs::write(file, balance::figure(&report).svg())?;
    }
    if !bench.output.json {
        print!("{}", balance::curves(&report));
        // They are in the curves.
        report.rows.retain(|row| row.case != "throughput");
    }
    Ok(report)
}

/// Keys of the largest index with `--full`.
const FULL: u64 = 64_000_000;

/// `eris bench blink`.
fn blink(settings: &Settings, bench: &BenchBlink) -> Result<BenchReport, BenchError> {
    let threads = bench.threads.iter().map(|threads| *threads as usize);
    let options = IndexOptions {
        parts: vec![IndexPart::Shared],
        keys: bench.keys.clone(),
        threads: threads.collect(),
        skew_keys: Vec::new(),
        exponents: Vec::new(),
        runs: RUNS,
        rivals: bench.rivals.clone(),
    };
    let mut report = index::run(settings, &options)?;
    report.bench = "blink".to_owned();
    Ok(report)
}

/// `eris bench index`.
fn index(settings: &Settings, bench: &BenchIndex) -> Result<BenchReport, BenchError> {
    if settings.huge_pages != HugePages::Never {
        // What the limit of lookups is measured with takes its memory from the allocator.
        eris_allocator::use_huge_pages();
    }
    let part = |part: &BenchIndexPart| match part {
        BenchIndexPart::Size => IndexPart::Size,
        BenchIndexPart::Shared => IndexPart::Shared,
        BenchIndexPart::Secondary => IndexPart::Secondary,
        BenchIndexPart::Skew => IndexPart::Skew,
        BenchIndexPart::Moves => IndexPart::Moves,
        BenchIndexPart::Sockets => IndexPart::Sockets,
    };
    let full = bench.full.then_some(FULL);
    let with_full = |keys: &[u64]| keys.iter().copied().chain(full).collect();
    let options = IndexOptions {
        parts: bench.parts.iter().map(part).collect(),
        keys: with_full(&bench.keys),
        threads: (bench.threads.iter())
            .map(|threads| *threads as usize)
            .collect(),
        skew_keys: with_full(&bench.skew_keys),
        exponents: bench.zipf.clone(),
        runs: RUNS,
        rivals: bench.rivals.clone(),
    };
    Ok(index::run(settings, &options)?)
}
