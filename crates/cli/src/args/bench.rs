//! The command line of the benchmarks.

use super::{JsonFlag, scale};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Data commands through the routing layer
    Route(FigureFlags),

    /// One counter and one latch that all threads want: by the processor, delegated, by node, mixed
    #[command(
        after_help = "Delegated operations are executed by one more thread, which takes a core from the others if there is no other.\n\n\
                            Examples:\n  eris bench atomics\n  eris bench atomics --threads 1,2,4,8 --svg figures --json"
    )]
    Atomics(BenchAtomics),

    /// Operations pushed to the data, or data pulled to the operation, over a paced link
    #[command(
        name = "pushpull",
        after_help = "Examples:\n  eris bench pushpull\n  eris bench pushpull --over nodes\n  eris bench pushpull --records 60000000 --json"
    )]
    PushPull(BenchPushPull),

    /// Where data lies, and what that costs on a machine that is imitated: scans and lookups
    #[command(
        after_help = "The machine is that of ERIS_MACHINE, or else those of the ERIS paper one after the other.\n\n\
                      Examples:\n  eris bench placement\n  ERIS_MACHINE=eris-amd eris bench placement --json"
    )]
    Placement(FigureFlags),

    /// Copies between nodes, and double-buffered scans of another node's memory
    #[command(
        after_help = "Links are those of this machine, or paced as those of another one. On one node these are those of the ERIS paper's SGI.\n\n\
                      Examples:\n  eris bench copy --svg figures\n  ERIS_MACHINE=eris-intel eris bench copy --rows 50000000 --json"
    )]
    Copy(BenchCopy),

    /// Column scans by bit width, predicate and selectivity
    #[command(
        after_help = "Examples:\n  eris bench scan\n  eris bench scan --rows 10000000 --json\n  \
                            eris bench scan --chunk"
    )]
    Scan(BenchScan),

    /// What a scan takes while another thread uses the core of one AEU
    #[command(
        after_help = "Examples:\n  eris bench busy\n  eris bench busy --rows 100000000 --json"
    )]
    Busy(BenchBusy),

    /// Statements of several sessions that scan one table at the same time, with scan sharing and without
    #[command(
        after_help = "The queries of the Star Schema Benchmark come last: eight sessions beside one.\n\n\
                      Examples:\n  eris bench sharing\n  eris bench sharing --rows 100000000 --scale 10 --json"
    )]
    Sharing(BenchSharing),

    /// Tables of hash joins: how many rows a second are built and probed, by size, keys and batch
    #[command(
        after_help = "Examples:\n  eris bench join\n  eris bench join --rows 1000000 --batches 64,8192 --json"
    )]
    Join(BenchJoin),

    /// Indexes of 64-bit keys: by size, beside rivals if there are any; by skew, and reorganised
    #[command(
        after_help = "Examples:\n  eris bench index\n  eris bench index --part size --keys 64000000 --threads 2 --json\n  \
                            eris bench index --part skew --skew-keys 16000000 --zipf 1.2,1.4 --svg figures"
    )]
    Index(BenchIndex),

    /// A B-link tree that threads share: by latches of nodes, by optimistic readers, by tasks, in batches
    #[command(
        after_help = "Examples:\n  eris bench blink\n  eris bench blink --keys 5000000,64000000 --threads 1,2,4,8 --json"
    )]
    Blink(BenchBlink),

    /// What a short statement costs: planned, from the plan cache, prepared, by rows; alone and beside others
    #[command(
        after_help = "Examples:\n  eris bench statement\n  eris bench statement --keys 1000000 --json"
    )]
    Statement(BenchStatement),

    /// Tasks: what one costs from its spawn to its run, and what it gains if its memory is asked for ahead
    #[command(
        after_help = "Examples:\n  eris bench tasks\n  eris bench tasks --part spawn --json\n  eris bench tasks --part prefetch --mebibytes 128"
    )]
    Tasks(BenchTasks),

    /// What commits, loads and recoveries take on a disk, beside a flush of this disk
    #[command(
        after_help = "Databases are made in a directory below --dir, and removed. At scale 1 they take some 250 MB of the disk at a time.\n\n\
                            Examples:\n  eris bench commit --dir /data\n  \
                            eris bench commit --dir /data --rounds 7 --seconds 3 --scale 1 --json"
    )]
    Commit(BenchCommit),

    /// Load balancing while the workload moves: no balancer, One-Shot, MA1 and MA8
    #[command(
        after_help = "Every AEU has the same share of a core, so that more of them than the machine has cores show what as many slow cores would. The algorithms take turns phase by phase, \
                            beside an index whose ranges are cut for each phase; that takes about fifty times `--seconds`.\n\n\
                            Examples:\n  ERIS_TOPOLOGY=8x4 eris bench balance\n  \
                            ERIS_TOPOLOGY=8x4 eris bench balance --keys 64000000 --seconds 10 --svg figure-13.svg"
    )]
    Balance(BenchBalance),
}

/// How a report with figures is told.
#[derive(Debug, Args)]
pub struct FigureFlags {
    /// Also draw the figures, as SVG files in this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub json: JsonFlag,
}

impl BenchCommand {
    /// How its report is told, and the directory of its figures if they are wanted.
    pub fn output(&self) -> (JsonFlag, Option<&PathBuf>) {
        let flags = match self {
            BenchCommand::Route(flags) | BenchCommand::Placement(flags) => flags,
            BenchCommand::Atomics(bench) => &bench.output,
            BenchCommand::PushPull(bench) => &bench.output,
            BenchCommand::Copy(bench) => &bench.output,
            BenchCommand::Sharing(bench) => &bench.output,
            BenchCommand::Index(bench) => &bench.output,
            BenchCommand::Blink(bench) => &bench.output,
            BenchCommand::Tasks(bench) => &bench.output,
            BenchCommand::Scan(bench) => return (bench.output, None),
            BenchCommand::Busy(bench) => return (bench.output, None),
            BenchCommand::Join(bench) => return (bench.output, None),
            BenchCommand::Statement(bench) => return (bench.output, None),
            BenchCommand::Commit(bench) => return (bench.output, None),
            BenchCommand::Balance(bench) => return (bench.output, None),
        };
        (flags.json, flags.svg.as_ref())
    }
}

#[derive(Debug, Args)]
pub struct BenchBalance {
    /// Keys of the index
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1 << 16..=1 << 32))]
    pub keys: u64,

    /// How long the first phase lasts; the five others last twice as long
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,

    /// How often loads are looked at, in seconds
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    pub period: f64,

    /// The standard deviation of the AEUs' loads from which on keys move, as a share of their mean; twice as much of a
    /// single one. All wait for the busiest: what it may exceed the mean by is lost in the end
    #[arg(long, default_value_t = 0.05, value_parser = share)]
    pub threshold: f64,

    /// The part of the machine that all AEUs together may use
    #[arg(long, default_value_t = 0.3, value_parser = share)]
    pub share: f64,

    /// Threads that look keys up: so many that no AEU waits for the others' answers
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub clients: u64,

    /// Keys that each of them asks for at once
    #[arg(long, default_value_t = 32_768, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batch: u64,

    /// Also draw the throughput over time, as an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct BenchCommit {
    /// On which disk: a directory of it [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Rounds of all cases
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// How long each case of a round lasts
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,

    /// Scale factor of the tables that are loaded: 1 is six million fact rows
    #[arg(long, default_value_t = 0.1, value_parser = scale)]
    pub scale: f64,

    /// Read the tables' .parquet or .tbl files from here [default: generate them, and keep them in the cache directory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    #[command(flatten)]
    pub output: JsonFlag,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number from 0.01 to 3600".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.01..=0.8).contains(&share) => Ok(share),
        _ => Err("a number from 0.01 to 0.8: clients need some of the machine, too".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct BenchStatement {
    /// Rows of the table that is scanned
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub rows: u64,

    /// Rows of the table with a key
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub keys: u64,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct BenchIndex {
    /// What to measure
    #[arg(long = "part", value_name = "PART", value_delimiter = ',', default_values_t = BenchIndexPart::ALL, value_enum)]
    pub parts: Vec<BenchIndexPart>,

    /// Numbers of keys, uniformly asked for
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 4_000_000, 16_000_000], value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub keys: Vec<u64>,

    /// Client threads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_parser = clap::value_parser!(u64).range(1..=256))]
    pub threads: Vec<u64>,

    /// Numbers of keys under skew
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 8_000_000], value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub skew_keys: Vec<u64>,

    /// Exponents of Zipf's law, 0 for uniform
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.8, 1.0, 1.2, 1.4, 2.0, 3.0], value_parser = exponent)]
    pub zipf: Vec<f64>,

    /// 64 million keys as well: some 12 GB of memory, half an hour
    #[arg(long)]
    pub full: bool,

    /// What to compare with, part `size` alone: a program as `make bench-index` builds it of bench/rivals
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Option<PathBuf>,

    #[command(flatten)]
    pub output: FigureFlags,
}

#[derive(Debug, Args)]
pub struct BenchBlink {
    /// Numbers of keys
    #[arg(long, value_delimiter = ',', default_values_t = [5_000_000], value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub keys: Vec<u64>,

    /// Threads, or AEUs that run tasks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_parser = clap::value_parser!(u64).range(1..=256))]
    pub threads: Vec<u64>,

    /// What to compare with: a program as `make rivals` builds it of bench/rivals
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Option<PathBuf>,

    #[command(flatten)]
    pub output: FigureFlags,
}

/// A part of `eris bench index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchIndexPart {
    /// Operations by number of keys, beside rivals if there are any
    Size,
    /// Trees that threads share, by how they do so
    Shared,
    /// Secondary indexes of tables, by kind
    Secondary,
    /// Lookups by Zipf's law: huge pages, reorganisation, modelled misses
    Skew,
    /// What reorganisations take, and what goes on meanwhile
    Moves,
    /// Caches of several sockets, modelled
    Sockets,
}

impl BenchIndexPart {
    const ALL: [BenchIndexPart; 5] = [
        BenchIndexPart::Size,
        BenchIndexPart::Secondary,
        BenchIndexPart::Skew,
        BenchIndexPart::Moves,
        BenchIndexPart::Sockets,
    ];
}

fn exponent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(exponent) if (0.0..=10.0).contains(&exponent) => Ok(exponent),
        _ => Err("an exponent is a number from 0 to 10".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct BenchAtomics {
    /// Numbers of threads; by default the powers of two up to twice the AEUs
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Vec<u64>,

    /// How long each run lasts, in milliseconds
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub milliseconds: u64,

    #[command(flatten)]
    pub output: FigureFlags,
}

#[derive(Debug, Args)]
pub struct BenchPushPull {
    /// Records of the column, 8 bytes each
    #[arg(long, default_value_t = 16_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub records: u64,

    /// One owner, or several: Figures 4a and 4c, or 4b, 4d and 5 of the RAMCloud paper
    #[arg(long, value_name = "WHAT", value_parser = ["nodes"])]
    pub over: Option<String>,

    #[command(flatten)]
    pub output: FigureFlags,
}

#[derive(Debug, Args)]
pub struct BenchCopy {
    /// Rows of the largest column, 10 bits each
    #[arg(long, default_value_t = 30_000_000, value_parser = clap::value_parser!(u64).range(1024..=1 << 32))]
    pub rows: u64,

    #[command(flatten)]
    pub output: FigureFlags,
}

#[derive(Debug, Args)]
pub struct BenchBusy {
    /// Rows of the table
    #[arg(long, default_value_t = 30_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub rows: u64,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct BenchTasks {
    /// What to measure; without it all
    #[arg(long, value_name = "PART", value_enum)]
    pub part: Option<BenchTasksPart>,

    /// The most memory that tasks touch, in MiB
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub mebibytes: u64,

    #[command(flatten)]
    pub output: FigureFlags,
}

/// A part of `eris bench tasks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchTasksPart {
    /// From spawn to run, at the same AEU and at another
    Spawn,
    /// By working set, lines and distance
    Prefetch,
}

#[derive(Debug, Args)]
pub struct BenchSharing {
    /// Rows of the table
    #[arg(long, default_value_t = 30_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub rows: u64,

    /// Scale factor of the Star Schema Benchmark's tables: 1 is six million fact rows
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,

    /// Read these tables' .parquet or .tbl files from here [default: generate them, and keep them in the cache
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    #[command(flatten)]
    pub output: FigureFlags,
}

#[derive(Debug, Args)]
pub struct BenchJoin {
    /// Rows of the largest build side, and of each probe side
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 30))]
    pub rows: u64,

    /// Rows that are looked for at once
    #[arg(long, value_delimiter = ',', default_values_t = [64, 8192], value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub batches: Vec<u64>,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct BenchScan {
    /// Rows of the scanned column
    #[arg(long, default_value_t = 60_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub rows: u64,

    /// Measure every instruction set that this machine supports, not only the best
    #[arg(long)]
    pub every_isa: bool,

    /// Instead: scan time against the number of consecutive values per block
    #[arg(long, conflicts_with_all = ["rows", "every_isa"])]
    pub chunk: bool,

    #[command(flatten)]
    pub output: JsonFlag,
}
