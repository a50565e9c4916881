//! What the shell is told, and what can be wrong with it.

use crate::format::{Expanded, Format};
use std::path::PathBuf;
use std::time::Duration;

/// A command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Tables and views, or one of them with its columns.
    Describe(Option<String>),
    /// The same with comments.
    DescribeMore(Option<String>),
    /// Tables whose name contains this, perhaps with comments.
    Tables(String, bool),
    /// Views whose name contains this, perhaps with comments.
    Views(String, bool),
    /// Schemas.
    Schemas,
    /// Functions whose name contains this, or matches it as a pattern.
    Functions(String),
    /// CREATE statements.
    Schema(String),
    /// Whether times are told; `None`: the other way round.
    Timing(Option<bool>),
    /// Whether tables become one line per value; `None`: the other way round.
    Expanded(Option<Expanded>),
    /// Runs a file.
    Include(PathBuf),
    /// Results go to a file, or to the screen again.
    Output(Option<PathBuf>),
    /// The next result goes to a file.
    Once(PathBuf),
    /// A script that builds the tables and views anew whose name contains this, or matches it.
    Dump(String),
    /// Gives a variable a value; `None`: lists them.
    Set(Option<(String, String)>),
    /// Forgets a variable.
    Unset(String),
    /// A COPY statement.
    Copy(String),
    /// A file becomes rows of a table, which is made if there is none.
    Import { file: String, table: String },
    /// Ends a statement, as a semicolon does; its result may be one line per value.
    Go,
    /// Prints text.
    Print(String),
    /// Changes the working directory; `None`: to the user's own.
    Directory(Option<PathBuf>),
    /// Runs the last statement again and again.
    Watch { every: Duration, times: Option<u32> },
    /// The form of results; `None`: tells it.
    Mode(Option<Format>),
    /// Whether columns' names are shown; `None`: the other way round.
    Headers(Option<bool>),
    /// What stands for NULL.
    NullValue(String),
    /// What separates the fields of CSV.
    Separator(String),
    /// Whether statements are printed before they run.
    Echo(bool),
    /// Whether long results are paged; `None`: the other way round.
    Pager(Option<bool>),
    /// The most rows on the screen.
    MaxRows(usize),
    /// The most columns of the screen.
    MaxWidth(usize),
    /// Tells the settings.
    Settings,
    /// Lists indexes.
    Indexes,
    /// Lists databases.
    Databases,
    /// Opens the last statement, or a file, in an editor, and runs it.
    Edit(Option<PathBuf>),
    /// A command of the operating system.
    System(String),
    /// What there is, or what of it says this word.
    Help(Option<String>),
    /// Leaves.
    Quit,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is none of that name.
    #[error("unknown command {name}{}", hint(.nearest))]
    Unknown {
        /// As it was written.
        name: String,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// Its arguments make no sense.
    #[error("{name}: {reason}\nhint: {name} {usage}")]
    Usage {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        reason: String,
        /// What it takes.
        usage: &'static str,
    },
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
}

fn hint(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(nearest) => format!("\nhint: did you mean {nearest}?"),
        None => "\nhint: \\? lists the commands".to_owned(),
    }
}
