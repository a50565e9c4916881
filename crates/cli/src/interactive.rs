//! The interactive shell.
//!
//! Ctrl-C at the prompt forgets the input, during a statement cancels it, unless it takes effect already, which the
//! shell says then; the shell stays, however often it is pressed. Ctrl-D leaves.

use crate::editor::Editor;
use crate::format::FormatError;
use crate::interrupt::Heard;
use crate::runner::{Flow, Runner};
use eris_engine::DatabaseSettings;
use rustyline::error::ReadlineError;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Why the shell ended other than by the user's wish.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The terminal does not work.
    #[error("cannot read from the terminal: {0}")]
    Terminal(#[from] ReadlineError),
    /// Nobody can see the results.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Reads and runs input until the user leaves.
///
/// `kept_in`: where data outlives the shell, or is only read.
pub fn run(
    runner: &mut Runner,
    kept_in: Option<&DatabaseSettings>,
    runtime: &Runtime,
) -> Result<(), ShellError> {
    let mut editor = Editor::new(runner.session())?;
    forget_interrupts(runtime);
    let kept = match kept_in {
        None => "Data lives as long as this shell.".to_owned(),
        Some(DatabaseSettings {
            directory,
            read_only: true,
            ..
        }) => format!("Data in {} is read-only.", directory.display()),
        Some(database) => format!("Data is kept in {}.", database.directory.display()),
    };
    println!(
        "Eris {} – \\? for help, \\q to leave. {kept}",
        env!("CARGO_PKG_VERSION")
    );
    while let Some(input) = editor.read()? {
        if units_of(runner, runtime, &input)? == Flow::Quit {
            break;
        }
    }
    Ok(())
}

/// Takes note of every Ctrl-C up to now, such as one that was meant for a pager; the next statement must not end by it.
/// Once this has run, Ctrl-C ends the process no more, whatever it is doing.
fn forget_interrupts(runtime: &Runtime) {
    // The runtime hears of signals when it waits.
    const SHORT_WAIT: Duration = Duration::from_millis(1);
    runtime.block_on(async {
        let _ = tokio::time::timeout(SHORT_WAIT, tokio::signal::ctrl_c()).await;
    });
}

/// Runs the input; Ctrl-C cancels it. Only a broken output ends the shell.
fn units_of(runner: &mut Runner, runtime: &Runtime, input: &str) -> Result<Flow, ShellError> {
    forget_interrupts(runtime);
    let interrupt = runner.interrupt().clone();
    interrupt.forget();
    let outcome = runtime.block_on(async {
        let mut run = std::pin::pin!(runner.run(input));
        loop {
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => match interrupt.hear() {
                    Heard::TooLate => eprintln!("too late to cancel: the statement takes effect"),
                    heard => return Err(heard),
                },
                outcome = &mut run => return Ok(outcome),
            }
        }
    });
    match outcome {
        Ok(Ok(flow)) => return Ok(flow),
        Ok(Err(error)) => match error.into_output() {
            Ok(error) => return Err(error.into()),
            Err(error) => tell(&error),
        },
        Err(heard) => {
            runner.cancelled();
            eprintln!(
                "{}",
                match heard {
                    Heard::WhileShown =>
                        "cancelled: the statement has taken effect, its rows are not all shown",
                    _ => "cancelled",
                }
            );
        }
    }
    Ok(Flow::Continue)
}

/// Tells what went wrong.
fn tell(error: &dyn std::fmt::Display) {
    let coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if coloured && std::io::stderr().is_terminal() {
        eprintln!("\x1b[1;31merror:\x1b[0m {error}");
    } else {
        eprintln!("error: {error}");
    }
}
