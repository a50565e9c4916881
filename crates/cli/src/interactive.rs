//! The interactive shell.
//!
//! Ctrl-C at the prompt forgets the input, during a statement cancels it; the shell stays, however often it is pressed.
//! Ctrl-D leaves.

use crate::editor::Editor;
use crate::format::FormatError;
use crate::runner::{Flow, Runner};
use eris_sql::Database;
use rustyline::error::ReadlineError;
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
pub fn run(runner: &mut Runner, database: &Database, runtime: &Runtime) -> Result<(), ShellError> {
    let mut editor = Editor::new(database)?;
    // From here on Ctrl-C ends the process no more, whatever it is doing.
    runtime.block_on(async {
        let _ = tokio::time::timeout(std::time::Duration::ZERO, tokio::signal::ctrl_c()).await;
    });
    println!(
        "Eris {} – \\? for help, \\q to leave. Data lives as long as this shell.",
        env!("CARGO_PKG_VERSION")
    );
    while let Some(input) = editor.read()? {
        if units_of(runner, runtime, &input)? == Flow::Quit {
            break;
        }
    }
    Ok(())
}

/// Runs the input; Ctrl-C cancels it. Only a broken output ends the shell.
fn units_of(runner: &mut Runner, runtime: &Runtime, input: &str) -> Result<Flow, ShellError> {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            outcome = runner.run(input) => Some(outcome),
        }
    });
    match outcome {
        Some(Ok(flow)) => return Ok(flow),
        Some(Err(error)) => match error.into_output() {
            Ok(error) => return Err(error.into()),
            Err(error) => eprintln!("error: {error}"),
        },
        None => {
            runner.cancelled();
            eprintln!("cancelled");
        }
    }
    Ok(Flow::Continue)
}
