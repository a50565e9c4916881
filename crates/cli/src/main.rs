//! `eris`: the shell and the command, a door to the engine.
//!
//! ```text
//! [shell · command] ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! A door translates and decides nothing: arguments and input become calls of the crates below, their answers become
//! text and an exit status. It must not know how a statement is planned or executed, nor hold any logic that another
//! door would have to repeat.

#![forbid(unsafe_code)]

mod args;
mod arriving;
mod benches;
mod check;
mod commands;
mod editor;
mod footer;
mod format;
mod interactive;
mod interrupt;
mod json_error;
mod meter;
mod numbers;
mod opening;
mod output;
mod pager;
mod places;
mod plan;
mod runner;
mod salvage;
mod script_error;
mod settings;
mod ssb;
mod units;
mod variables;

use args::{Cli, Command, Source};
use eris_engine::{Engine, Settings};
use eris_numa::{Topology, TopologyError};
use eris_sql::{Database, SqlError};
use json_error::json_error;
use runner::{Flow, Runner};
use script_error::ScriptError;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Why the command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error("cannot open the database: {0}")]
    Open(SqlError),
    #[error("{script}: {source}")]
    Script { script: String, source: ScriptError },
    #[error(transparent)]
    Shell(#[from] interactive::ShellError),
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    #[error(transparent)]
    Ssb(#[from] ssb::SsbError),
    #[error(transparent)]
    Bench(#[from] benches::BenchError),
    #[error(transparent)]
    Check(#[from] check::CheckError),
    #[error(transparent)]
    Salvage(#[from] salvage::SalvageError),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error("interrupted")]
    Interrupted,
}

impl CliError {
    /// Whether all that happened is that the reader of our output has gone, as in `eris … | head`.
    fn is_closed_pipe(&self) -> bool {
        match self {
            CliError::Script { source, .. } => source.is_closed_pipe(),
            CliError::Shell(interactive::ShellError::Format(error)) => error.is_closed_pipe(),
            CliError::Ssb(error) => error.is_closed_pipe(),
            CliError::Bench(error) => error.is_closed_pipe(),
            CliError::Check(error) => error.is_closed_pipe(),
            CliError::Salvage(error) => error.is_closed_pipe(),
            _ => false,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            error if error.is_closed_pipe() => 0,
            CliError::Interrupted => 130,
            CliError::Check(error) => error.exit_code(),
            CliError::Salvage(error) => error.exit_code(),
            _ => 1,
        }
    }
}

fn main() -> ExitCode {
    let (cli, sources) = match args::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Nothing can be done about a terminal that takes no message.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let in_json = cli.statements.format.is_json();
    match run(cli, sources) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match &error {
                error if error.is_closed_pipe() => {}
                CliError::Script { script, source } if in_json => {
                    eprintln!("{}", json_error(script, source));
                }
                error => eprintln!("error: {error}"),
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli, sources: Vec<Source>) -> Result<(), CliError> {
    let memory = cli.memory.map(|memory| memory.0);
    eris_allocator::give_back_soon(memory).map_err(CliError::Runtime)?;
    let topology = topology(cli.aeus)?;
    let settings = |topology| Settings {
        topology,
        huge_pages: cli.huge_pages.into(),
        memory_limit: memory,
        database: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    match cli.command {
        Some(Command::Check(check)) => Ok(check::run(&check)?),
        Some(Command::Salvage(salvage)) => {
            Ok(runtime.block_on(salvage::run(settings(topology), &salvage))?)
        }
        Some(Command::Machine(machine)) => Ok(benches::machine(&topology, &machine)?),
        Some(Command::Bench(bench)) => Ok(benches::run(settings(topology), &bench, &runtime)?),
        Some(Command::Plan(plan)) => {
            let topology = plan::topology(&plan)?;
            let sources = plan::sources(plan)?;
            statements(settings(topology), sources, cli.statements.format, &runtime)
        }
        Some(Command::Ssb(args::SsbCommand::Generate(generate))) => Ok(ssb::generate(&generate)?),
        Some(Command::Ssb(args::SsbCommand::Run(run))) => {
            Ok(ssb::run(settings(topology), &run, &runtime)?)
        }
        None => {
            let settings = Settings {
                database: cli.statements.database(),
                ..settings(topology)
            };
            statements(settings, sources, cli.statements.format, &runtime)
        }
    }
}

/// The machine, with the wished number of AEUs.
fn topology(aeus: Option<u16>) -> Result<Topology, TopologyError> {
    let topology = Topology::detect()?;
    match aeus {
        Some(aeus) => topology.with_aeus(aeus.into()),
        None => Ok(topology),
    }
}

/// Runs what -c and -f give, else standard input, else the prompt.
fn statements(
    settings: Settings,
    sources: Vec<Source>,
    format: format::Format,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), CliError> {
    let interactive = sources.is_empty() && io::stdin().is_terminal();
    if !sources.is_empty() && !sources.iter().any(Source::is_standard_input) {
        eris_sql::allow_standard_input();
    }
    let sources = if sources.is_empty() {
        vec![Source::File(PathBuf::from("-"))]
    } else {
        sources
    };
    let is_paced = settings.topology.is_paced();
    if let Some(machine) = settings.topology.machine().filter(|_| !is_paced) {
        eprintln!("{}", plan::told(machine));
    }
    let kept_in = settings.database.clone();
    let database = opening::shown(kept_in.as_ref(), || {
        let home = Engine::home_of_machine(settings);
        Database::open(home.map_err(|error| CliError::Open(error.into()))?).map_err(CliError::Open)
    })?;
    // Programs that read the output find it beside that.
    if let Some(note) = database.home().paced_note() {
        eprintln!("{note}");
    }
    let footer = interactive || format.is_for_people() && io::stdout().is_terminal();
    let shown = settings::Settings::new(format, interactive);
    let mut runner = Runner::new(database.session(), shown, footer);
    let outcome = match interactive {
        true => interactive::run(&mut runner, kept_in.as_ref(), runtime).map_err(CliError::from),
        false => runtime.block_on(async {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
                outcome = run_sources(&mut runner, sources) => outcome,
            }
        }),
    };
    // Whatever went wrong before, what was committed is made durable.
    outcome.and(database.close().map_err(CliError::Open))
}

async fn run_sources(runner: &mut Runner, sources: Vec<Source>) -> Result<(), CliError> {
    for source in sources {
        let (script, outcome) = match source {
            Source::Command(text) => ("-c".into(), runner.run(&text).await),
            source if source.is_standard_input() => (
                "standard input".into(),
                runner.run_arriving(standard_input()).await,
            ),
            Source::File(path) => {
                let text = std::fs::read_to_string(&path);
                let outcome = match text {
                    Ok(text) => runner.run(&text).await,
                    Err(error) => Err(ScriptError::Read(error)),
                };
                (path.display().to_string(), outcome)
            }
        };
        let flow = outcome.map_err(|source| CliError::Script { script, source })?;
        if flow == Flow::Quit {
            break;
        }
    }
    Ok(())
}

/// Pieces of standard input as they arrive. A thread of its own reads, for reading can be cancelled by nothing but its
/// end.
fn standard_input() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    const PIECE: usize = 1 << 20;
    let (sender, pieces) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            let piece = match io::stdin().read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok(buffer[..length].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = piece.is_err();
            if sender.blocking_send(piece).is_err() || failed {
                return;
            }
        }
    });
    pieces
}
