//! The command line.

mod bench;

pub use bench::*;

use crate::format::Format;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use eris_engine::{DatabaseSettings, Synchronous};
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
  eris --db sales -f schema.sql                 keep the data in the directory sales
  eris --db sales --read-only                   only read it, beside others
  eris check sales                              look for damage in it
  eris salvage sales saved                      save what damage has left of it
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
/// long as the process, or in the directory that --db gives.
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

    /// Keep the data in this directory, which is made if it is not there; without it, data lives as long as the process
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,

    /// When a commit is on the disk, for as long as this process lasts: `on` before it is acknowledged, `off` a moment
    /// later, or within a time such as `1s` or `200ms`; a crash takes what is not there yet. Without it, as `SET
    /// synchronous` has left it, and `on` at first
    #[arg(long, value_name = "WHEN", requires = "db")]
    pub synchronous: Option<Synchronous>,

    /// Read what is in the directory, and change nothing there: any number of processes may do that at the same time
    #[arg(long, requires = "db", conflicts_with = "synchronous")]
    pub read_only: bool,

    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

impl Statements {
    /// Where data is kept.
    pub fn database(&self) -> Option<DatabaseSettings> {
        let directory = self.db.clone()?;
        Some(DatabaseSettings {
            directory,
            synchronous: self.synchronous,
            read_only: self.read_only,
        })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show nodes, cores, distances, caches and page sizes, and what memory and cores can do
    #[command(
        after_help = "What was measured of this machine before is shown, and how long ago that was. It is measured if nothing is \
                      kept.\n\nERIS_MACHINE gives the profile of another machine, which is shown instead: a file, or eris-intel, \
                      eris-amd or eris-sgi, the machines of the ERIS paper.\n\nExamples:\n  eris machine\n  \
                      eris machine --measure\n  eris machine --json | jq .machine\n  eris machine --save here.toml\n  \
                      ERIS_MACHINE=eris-amd eris machine"
    )]
    Machine(MachineCommand),

    /// Show how a query would be executed on a machine that is not here
    #[command(
        after_help = "The tables are made here, on as many nodes as that machine has. What is expected follows from its links \
                      and the speeds of its cores, or usual ones if the profile has none. Nothing is measured.\n\n\
                      Examples:\n  eris plan --machine eris-amd -f load.sql 'SELECT sum(v) FROM t'\n  \
                      eris plan --machine there.toml -f load.sql 'SELECT sum(v) FROM t WHERE day > 5'"
    )]
    Plan(PlanCommand),

    /// Look for damage in the directory of a database, without changing anything
    #[command(
        after_help = "All files are read: their bytes, what they say, and whether that fits together. The check goes on behind the \
                      first damage. Nobody may have the database open for writing.\n\n\
                      Examples:\n  eris check sales\n  eris check sales --json | jq '.findings[].file'\n\n\
                      Exit status:\n  0    it is whole\n  1    it is damaged\n  \
                      2    there is no database, or it is open elsewhere"
    )]
    Check(CheckCommand),

    /// Write what is whole of a damaged database into a new directory, and list what is lost
    #[command(
        after_help = "The damaged database is only read. Its manifest may be missing. Whatever is whole goes into the new database: rows, \
                      definitions, sequences. The rest is listed, table by table. All that is left has to fit into the memory.\n\n\
                      Examples:\n  eris salvage sales saved\n  eris salvage sales saved --json | jq .lost\n  \
                      eris --db saved\n\n\
                      Exit status:\n  0    nothing is lost\n  1    something is lost, the rest is in the new directory\n  \
                      2    nothing was written: there is no database, it is open elsewhere, the new directory has files, \
                      or an error"
    )]
    Salvage(SalvageCommand),

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

    /// Measure it now, whatever is kept
    #[arg(long)]
    pub measure: bool,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct CheckCommand {
    /// The directory of the database
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct SalvageCommand {
    /// The directory of the damaged database, in which nothing is changed
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// The directory of the new database: it is not there, or empty
    #[arg(value_name = "NEW")]
    pub target: PathBuf,

    #[command(flatten)]
    pub output: JsonFlag,
}

#[derive(Debug, Args)]
pub struct PlanCommand {
    /// The machine: a profile, or eris-intel, eris-amd or eris-sgi, the machines of the ERIS paper
    #[arg(long, value_name = "PROFILE")]
    pub machine: PathBuf,

    /// Run the statements of this file before; may be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The query
    #[arg(value_name = "SQL")]
    pub query: String,
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
    fn a_database_may_be_opened_for_reading_only() {
        let database = |line| {
            let (cli, _) = parsed(line).expect("valid");
            cli.statements.database().expect("there is one")
        };
        assert!(database("eris --db sales --read-only").read_only);
        assert!(!database("eris --db sales").read_only);
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
            "eris --read-only",
            "eris --db x --read-only --synchronous off",
        ] {
            let error = parsed(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
