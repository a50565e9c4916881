//! The command line.

use crate::format::Format;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use eris_numa::{Bytes, HugePages, ParseBytesError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  eris                                          interactive prompt, statements end in ';'
  eris -c 'SELECT 1 + 1'                        run a statement and exit
  eris -f schema.sql -c 'SELECT count(*) FROM t' --format json
  eris --format csv < report.sql > report.csv   run a script from standard input
  eris -c '\\d t' -c '.schema t'                 commands of the prompt, \\? lists them
  eris ssb run --scale 1                        generate, load and run the Star Schema Benchmark
  ERIS_TOPOLOGY=4x2 eris                        pretend to have 4 NUMA nodes with 2 cores each

Exit status:
  0    every statement succeeded, or the reader of the output has gone
  1    a statement failed; those after it were not run
  2    the command line is wrong
  130  interrupted by Ctrl-C";

/// In-memory analytical SQL database that knows where its memory lies.
///
/// Without a command, runs the statements given by -c and -f in their order; without these, reads standard input, or
/// opens a prompt when that is a terminal. Besides statements, the commands of the prompt are understood. Data lives as
/// long as the process.
#[derive(Debug, Parser)]
#[command(name = "eris", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,

    #[command(flatten)]
    pub statements: Statements,

    /// Number of AEUs (workers), spread over the NUMA nodes [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub aeus: Option<u16>,

    /// Memory that tables and queries may use together, such as 2GB or 512MiB [default: 80 % of the machine's, or of
    /// the control group's]
    #[arg(long, global = true, value_name = "SIZE", env = "ERIS_MEMORY", value_parser = memory)]
    pub memory: Option<Bytes>,

    /// Whether column data lies on pages of 2 MiB: where they fit, also where that wastes some, or not at all
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        env = "ERIS_HUGE_PAGES",
        value_enum,
        default_value_t
    )]
    pub huge_pages: PageSize,
}

/// The engine's setting as the command line has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageSize {
    #[default]
    Auto,
    Always,
    Never,
}

impl From<PageSize> for HugePages {
    fn from(size: PageSize) -> Self {
        match size {
            PageSize::Auto => HugePages::Auto,
            PageSize::Always => HugePages::Always,
            PageSize::Never => HugePages::Never,
        }
    }
}

/// What to run without a command.
#[derive(Debug, Args)]
pub struct Statements {
    /// Run these statements and exit; may be repeated
    #[arg(
        short = 'c',
        long = "command",
        value_name = "SQL",
        allow_hyphen_values = true
    )]
    pub commands: Vec<String>,

    /// Run the statements of this file and exit ("-" is standard input); may be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show nodes, cores, distances, caches and page sizes, and measure the memory
    #[command(
        after_help = "ERIS_MACHINE gives the profile of another machine, which is shown instead: a file, or eris-intel, \
                      eris-amd or eris-sgi, the machines of the ERIS paper.\n\nExamples:\n  eris machine\n  \
                      eris machine --json | jq .nodes\n  eris machine --save here.toml\n  \
                      ERIS_MACHINE=eris-amd eris machine"
    )]
    Machine(MachineCommand),

    /// Generate and run the Star Schema Benchmark
    #[command(subcommand)]
    Ssb(SsbCommand),

    /// Measure a part of the engine beside its baseline and the machine's limit
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[derive(Clone, Copy, Debug, Args)]
pub struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct MachineCommand {
    /// Keep bandwidth and latency of each pair of nodes as a profile (TOML)
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Subcommand)]
pub enum SsbCommand {
    /// Write the five tables as files
    #[command(
        after_help = "Examples:\n  eris ssb generate --scale 1 --out data/ssb\n  \
                            eris ssb generate --scale 0.1 --out data/tbl --format tbl"
    )]
    Generate(SsbGenerate),

    /// Load the five tables and run the thirteen queries warm
    #[command(after_help = "Examples:\n  eris ssb run --scale 1\n  \
                            eris ssb run --scale 10 --data data/ssb10 --runs 10\n  \
                            eris ssb run --query 1.1 --query 4.1 --breakdown\n  \
                            eris ssb run --scale 1 --sessions 8\n  \
                            eris ssb run --scale 1 --json > result.json")]
    Run(SsbRun),
}

#[derive(Debug, Args)]
pub struct SsbGenerate {
    /// Scale factor: 1 is six million fact rows
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,

    /// Directory that receives the files; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// The files' format
    #[arg(long, value_enum, default_value_t)]
    pub format: FileFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Apache Parquet
    #[default]
    Parquet,
    /// The benchmark's own text form: fields end in '|'
    Tbl,
}

#[derive(Debug, Args)]
pub struct SsbRun {
    /// Scale factor to generate; with --data, the factor that the files were made with
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,

    /// Read the tables' .parquet or .tbl files from here [default: generate them, and keep them in the cache directory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Run only this query, such as 1.1; may be repeated [default: all thirteen]
    #[arg(long = "query", value_name = "ID")]
    pub queries: Vec<String>,

    /// Timed runs of each query, after one that is not timed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,

    /// Compare also the queries per second of so many sessions at a time with those of one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub sessions: u32,

    /// Show where each query's time, rows and bytes went
    #[arg(long)]
    pub breakdown: bool,

    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Data commands through the routing layer
    Route(JsonFlag),

    /// Operations pushed to the data, or data pulled to the operation, over a paced link
    #[command(
        name = "pushpull",
        after_help = "Examples:\n  eris bench pushpull\n  eris bench pushpull --records 60000000 --json"
    )]
    PushPull(BenchPushPull),

    /// Column scans by bit width, predicate and selectivity
    #[command(
        after_help = "Examples:\n  eris bench scan\n  eris bench scan --rows 10000000 --json\n  \
                            eris bench scan --chunk"
    )]
    Scan(BenchScan),

    /// Indexes of 64-bit keys: by size, beside rivals if there are any; by skew, and reorganised
    #[command(
        after_help = "Examples:\n  eris bench index\n  eris bench index --part size --keys 64000000 --threads 2 --json\n  \
                            eris bench index --part skew --skew-keys 16000000 --zipf 1.2,1.4 --svg figures"
    )]
    Index(BenchIndex),

    /// What a short statement costs: planned, from the plan cache, prepared, by rows; alone and beside others
    #[command(
        after_help = "Examples:\n  eris bench statement\n  eris bench statement --keys 1000000 --json"
    )]
    Statement(BenchStatement),

    /// Load balancing while the workload moves: no balancer, One-Shot, MA1 and MA8
    #[command(
        after_help = "Every AEU has the same share of a core, so that more of them than the machine has cores show what as many slow cores would. The algorithms take turns phase by phase, \
                            beside an index whose ranges are cut for each phase; that takes about fifty times `--seconds`.\n\n\
                            Examples:\n  ERIS_TOPOLOGY=8x4 eris bench balance\n  \
                            ERIS_TOPOLOGY=8x4 eris bench balance --keys 64000000 --seconds 10 --svg figure-13.svg"
    )]
    Balance(BenchBalance),
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

    /// Also draw the figures, as SVG files in this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub output: JsonFlag,
}

/// A part of `eris bench index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchIndexPart {
    /// Operations by number of keys, beside rivals if there are any
    Size,
    /// Lookups by Zipf's law: huge pages, reorganisation, modelled misses
    Skew,
    /// What reorganisations take, and what goes on meanwhile
    Moves,
    /// Caches of several sockets, modelled
    Sockets,
}

impl BenchIndexPart {
    const ALL: [BenchIndexPart; 4] = [
        BenchIndexPart::Size,
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
pub struct BenchPushPull {
    /// Records of the column, 8 bytes each
    #[arg(long, default_value_t = 16_000_000, value_parser = clap::value_parser!(u64).range(1000..=1 << 32))]
    pub records: u64,

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

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(scale),
        _ => Err("must be a number above 0".into()),
    }
}

/// Below this the engine's own structures would not fit.
const LEAST_MEMORY: Bytes = Bytes(16_000_000);

fn memory(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text
        .parse()
        .map_err(|error: ParseBytesError| error.to_string())?;
    if bytes < LEAST_MEMORY {
        return Err(format!("must be {LEAST_MEMORY} at least"));
    }
    Ok(bytes)
}

/// Where statements come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The value of a -c.
    Command(String),
    /// The file of a -f.
    File(PathBuf),
}

impl Source {
    /// Whether it is standard input.
    pub fn is_standard_input(&self) -> bool {
        matches!(self, Source::File(path) if path == Path::new("-"))
    }
}

/// Reads the command line; the sources are in the order in which they were given, whichever flag gave them.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(Cli, Vec<Source>), clap::Error> {
    let matches = Cli::command()
        .try_get_matches_from(arguments)
        .map_err(with_file_hint)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let sources = sources(&cli.statements, &matches);
    if cli.command.is_some() && (!sources.is_empty() || given(&matches, "format")) {
        return Err(Cli::command().error(
            clap::error::ErrorKind::ArgumentConflict,
            "-c, -f and --format before a command have no meaning",
        ));
    }
    Ok((cli, sources))
}

/// A file in place of a command: how it is run or read.
fn with_file_hint(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if std::path::Path::new(word).is_file() {
        let hint = match word.ends_with(".sql") {
            true => format!("to run its statements: eris -f {word}"),
            false => format!("to read its rows: eris -c \"SELECT * FROM '{word}'\""),
        };
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    error
}

fn given(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

fn sources(statements: &Statements, matches: &ArgMatches) -> Vec<Source> {
    let places = |id| matches.indices_of(id).into_iter().flatten();
    let commands = statements.commands.iter().cloned().map(Source::Command);
    let files = statements.files.iter().cloned().map(Source::File);
    let mut sources: Vec<(usize, Source)> = places("commands")
        .zip(commands)
        .chain(places("files").zip(files))
        .collect();
    sources.sort_by_key(|(place, _)| *place);
    sources.into_iter().map(|(_, source)| source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Cli, Vec<Source>), clap::Error> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sources_keep_their_order_over_both_flags() {
        let (_, sources) = parsed("eris -c a -f b.sql -c c").expect("valid");
        let command = |text: &str| Source::Command(text.into());
        assert_eq!(
            sources,
            [command("a"), Source::File("b.sql".into()), command("c")]
        );
    }

    #[test]
    fn the_number_of_aeus_may_follow_a_command() {
        let (cli, _) = parsed("eris ssb run --aeus 4 --query 1.1 --query 4.3").expect("valid");
        assert_eq!(cli.aeus, Some(4));
        let Some(Command::Ssb(SsbCommand::Run(run))) = cli.command else {
            panic!("{cli:?}")
        };
        assert_eq!((run.queries.len(), run.runs, run.scale), (2, 5, 1.0));
    }

    #[test]
    fn memory_has_a_unit_and_may_follow_a_command() {
        let (cli, _) = parsed("eris ssb run --memory 1.5GiB").expect("valid");
        assert_eq!(cli.memory, Some(Bytes(3 << 29)));
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        for line in [
            "eris --aeus 0",
            "eris --format yaml",
            "eris -c x machine",
            "eris --format csv machine",
            "eris ssb run --scale 0",
            "eris ssb run --scale nan",
            "eris ssb run --runs 0",
            "eris ssb generate",
            "eris --memory 2XB",
            "eris --memory 1MB",
            "eris --huge-pages 1",
            "eris bench",
            "eris bench scan --chunk --rows 5",
            "eris bench index --part all",
            "eris bench index --zipf -1",
        ] {
            let error = parsed(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
