//! Commands to the shell: what there is, and how it is read. Running them is [`run`]'s.
//!
//! psql's begin with a backslash, DuckDB's with a dot; both work, wherever a statement could begin.

pub mod copy;
mod describe;
mod run;
mod words;

use crate::format::{Expanded, Format};
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;
use words::words;

/// A command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Tables and views, or one of them with its columns.
    Describe(Option<String>),
    /// Tables whose name contains this.
    Tables(String),
    /// Views whose name contains this.
    Views(String),
    /// Schemas.
    Schemas,
    /// Functions whose name contains this.
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
    /// A COPY statement.
    Copy(String),
    /// A file becomes rows of a table, which is made if there is none.
    Import { file: String, table: String },
    /// Ends a statement, as a semicolon does.
    Go,
    /// Runs the last statement again and again.
    Watch { every: Duration, times: Option<u32> },
    /// The form of results; `None`: tells it.
    Mode(Option<Format>),
    /// Whether columns' names are shown.
    Headers(bool),
    /// What stands for NULL.
    NullValue(String),
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
    /// A command of the operating system.
    System(String),
    /// What there is.
    Help,
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

/// A command as the table below tells of it.
pub struct Spec {
    /// Its names; the first is the one for messages.
    pub names: &'static [&'static str],
    /// What it takes.
    pub usage: &'static str,
    /// What it does.
    pub help: &'static str,
    read: fn(&Arguments<'_>) -> Result<Command, String>,
}

/// What follows a command's name.
struct Arguments<'a> {
    /// All of it.
    text: &'a str,
    /// Its words, without their quotes.
    words: Vec<String>,
}

impl Arguments<'_> {
    fn none(&self, command: Command) -> Result<Command, String> {
        match self.words.first() {
            None => Ok(command),
            Some(word) => Err(format!("unexpected \"{word}\"")),
        }
    }

    fn optional(&self) -> Result<Option<&str>, String> {
        match &self.words[..] {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            [_, next, ..] => Err(format!("unexpected \"{next}\"")),
        }
    }

    fn one(&self, what: &str) -> Result<&str, String> {
        self.optional()?.ok_or_else(|| format!("{what} is missing"))
    }

    /// A part of a name; nothing is part of every name.
    fn pattern(&self) -> Result<String, String> {
        Ok(self.optional()?.unwrap_or_default().to_owned())
    }

    fn switch(&self) -> Result<Option<bool>, String> {
        match self.optional()? {
            None => Ok(None),
            Some(word) => on_or_off(word).map(Some),
        }
    }

    fn number(&self) -> Result<usize, String> {
        let word = self.one("a number")?;
        word.parse().map_err(|_| format!("\"{word}\" is no number"))
    }
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word.to_lowercase().as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(format!("\"{word}\" is neither on nor off")),
    }
}

fn expanded(word: &str) -> Result<Expanded, String> {
    match word {
        "auto" => Ok(Expanded::Auto),
        _ => Ok(if on_or_off(word)? {
            Expanded::On
        } else {
            Expanded::Off
        }),
    }
}

/// A format by one of its names, those that other shells have for it included.
fn format(name: &str) -> Result<Format, String> {
    match name {
        "box" | "duckbox" | "column" | "aligned" => return Ok(Format::Table),
        "jsonlines" | "ndjson" => return Ok(Format::Jsonl),
        "expanded" => return Ok(Format::Line),
        _ => {}
    }
    Format::from_str(name, true).map_err(|_| {
        let all = Format::value_variants().iter();
        let names: Vec<_> = all
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        format!("no format \"{name}\", but {}", names.join(", "))
    })
}

fn watch(words: &[String]) -> Result<Command, String> {
    let (mut every, mut times) = (Duration::from_secs(2), None);
    for word in words {
        let wrong = |_| format!("\"{word}\" is neither seconds nor c=times");
        if let Some(count) = word.strip_prefix("c=") {
            times = Some(count.parse().map_err(|_| wrong(()))?);
        } else {
            let seconds: f64 = word.parse().map_err(|_| wrong(()))?;
            every = Duration::try_from_secs_f64(seconds).map_err(|_| wrong(()))?;
        }
    }
    Ok(Command::Watch { every, times })
}

fn pset(words: &[String]) -> Result<Command, String> {
    let (name, value) = match words {
        [] => return Ok(Command::Settings),
        [name] => (name.as_str(), None),
        [name, value] => (name.as_str(), Some(value.as_str())),
        [_, _, next, ..] => return Err(format!("unexpected \"{next}\"")),
    };
    let switch = || value.map(on_or_off).transpose();
    match (name, value) {
        ("null", value) => Ok(Command::NullValue(value.unwrap_or_default().to_owned())),
        ("format", None) => Ok(Command::Mode(None)),
        ("format", Some(name)) => Ok(Command::Mode(Some(format(name)?))),
        ("expanded" | "x", value) => Ok(Command::Expanded(value.map(expanded).transpose()?)),
        ("pager", _) => Ok(Command::Pager(switch()?)),
        ("tuples_only" | "t", _) => Ok(Command::Headers(!switch()?.unwrap_or(true))),
        ("columns", Some(width)) => {
            let width = width
                .parse()
                .map_err(|_| format!("\"{width}\" is no number"))?;
            Ok(Command::MaxWidth(width))
        }
        _ => Err(format!("no setting \"{name}\" of this kind")),
    }
}

/// Every command, in the order of the help.
pub const COMMANDS: &[Spec] = &[
    Spec {
        names: &["\\?", "\\h", "\\help", ".help"],
        usage: "",
        help: "this help",
        read: |_| Ok(Command::Help),
    },
    Spec {
        names: &["\\q", "\\quit", ".exit", ".quit"],
        usage: "",
        help: "leave (as Ctrl-D)",
        read: |_| Ok(Command::Quit),
    },
    Spec {
        names: &["\\d", "\\d+", ".describe"],
        usage: "[name]",
        help: "tables and views, or the columns of one",
        read: |arguments| Ok(Command::Describe(arguments.optional()?.map(str::to_owned))),
    },
    Spec {
        names: &["\\dt", "\\dt+", ".tables"],
        usage: "[part of a name]",
        help: "tables",
        read: |arguments| Ok(Command::Tables(arguments.pattern()?)),
    },
    Spec {
        names: &["\\dv", "\\dv+"],
        usage: "[part of a name]",
        help: "views",
        read: |arguments| Ok(Command::Views(arguments.pattern()?)),
    },
    Spec {
        names: &["\\dn"],
        usage: "",
        help: "schemas",
        read: |arguments| arguments.none(Command::Schemas),
    },
    Spec {
        names: &["\\df"],
        usage: "[part of a name]",
        help: "functions",
        read: |arguments| Ok(Command::Functions(arguments.pattern()?)),
    },
    Spec {
        names: &[".schema"],
        usage: "[part of a name]",
        help: "CREATE statements of tables and views",
        read: |arguments| Ok(Command::Schema(arguments.pattern()?)),
    },
    Spec {
        names: &["\\i", "\\include", ".read"],
        usage: "FILE",
        help: "run the statements of a file",
        read: |arguments| Ok(Command::Include(path(arguments.one("a file")?))),
    },
    Spec {
        names: &["\\o", "\\out", ".output"],
        usage: "[FILE]",
        help: "results into a file; without a name, to the screen again",
        read: |arguments| Ok(Command::Output(arguments.optional()?.map(path))),
    },
    Spec {
        names: &["\\copy"],
        usage: "TABLE|(QUERY) FROM|TO FILE [options]",
        help: "rows from or into a file",
        read: |arguments| Ok(Command::Copy(copy::statement(arguments.text)?)),
    },
    Spec {
        names: &[".import"],
        usage: "FILE TABLE",
        help: "rows of a file into a table, which is made if there is none",
        read: |arguments| match &arguments.words[..] {
            [file, table] => Ok(Command::Import {
                file: path(file).to_string_lossy().into_owned(),
                table: table.clone(),
            }),
            _ => Err("a file and a table are needed".to_owned()),
        },
    },
    Spec {
        names: &["\\g"],
        usage: "",
        help: "run the statement, as ';' does",
        read: |arguments| arguments.none(Command::Go),
    },
    Spec {
        names: &["\\watch"],
        usage: "[seconds] [c=times]",
        help: "run the last statement again and again, until Ctrl-C",
        read: |arguments| watch(&arguments.words),
    },
    Spec {
        names: &["\\x"],
        usage: "[on|off|auto]",
        help: "one line per value; auto: where a table is wider than the screen",
        read: |arguments| {
            let word = arguments.optional()?;
            Ok(Command::Expanded(word.map(expanded).transpose()?))
        },
    },
    Spec {
        names: &["\\timing", ".timer"],
        usage: "[on|off]",
        help: "tell the time of each statement",
        read: |arguments| Ok(Command::Timing(arguments.switch()?)),
    },
    Spec {
        names: &["\\pager", ".pager"],
        usage: "[on|off]",
        help: "page results that are longer than the screen (ERIS_PAGER, PAGER, less)",
        read: |arguments| Ok(Command::Pager(arguments.switch()?)),
    },
    Spec {
        names: &[".mode", "\\mode"],
        usage: "[table|csv|json|jsonl|markdown|line]",
        help: "form of results",
        read: |arguments| {
            Ok(Command::Mode(
                arguments.optional()?.map(format).transpose()?,
            ))
        },
    },
    Spec {
        names: &[".headers", ".header"],
        usage: "on|off",
        help: "names of columns above results",
        read: |arguments| Ok(Command::Headers(on_or_off(arguments.one("on or off")?)?)),
    },
    Spec {
        names: &[".nullvalue"],
        usage: "TEXT",
        help: "what stands for NULL",
        read: |arguments| Ok(Command::NullValue(arguments.one("a text")?.to_owned())),
    },
    Spec {
        names: &[".maxrows"],
        usage: "N",
        help: "most rows of a table on the screen, 0 for all",
        read: |arguments| Ok(Command::MaxRows(arguments.number()?)),
    },
    Spec {
        names: &[".maxwidth"],
        usage: "N",
        help: "width to which tables are fitted, 0 for that of the screen",
        read: |arguments| Ok(Command::MaxWidth(arguments.number()?)),
    },
    Spec {
        names: &[".echo"],
        usage: "on|off",
        help: "print each statement before it runs",
        read: |arguments| Ok(Command::Echo(on_or_off(arguments.one("on or off")?)?)),
    },
    Spec {
        names: &["\\pset", ".show"],
        usage: "[null|format|expanded|pager|columns [value]]",
        help: "settings, by psql's names; without a name, all of them",
        read: |arguments| pset(&arguments.words),
    },
    Spec {
        names: &["\\!", ".shell", ".system"],
        usage: "[command]",
        help: "a command of the operating system, or its shell",
        read: |arguments| Ok(Command::System(arguments.text.to_owned())),
    },
];

/// Reads a command.
///
/// # Errors
/// There is none of that name, or its arguments make no sense.
pub fn parse(text: &str) -> Result<Command, CommandError> {
    let text = text.trim();
    let length = text.find(char::is_whitespace).unwrap_or(text.len());
    let (mut name, mut rest) = text.split_at(length);
    if let Some(command) = text.strip_prefix("\\!") {
        (name, rest) = ("\\!", command);
    }
    // psql and DuckDB forgive a semicolon.
    let bare = name.trim_end_matches(';');
    let found = COMMANDS.iter().find(|spec| spec.names.contains(&bare));
    let Some(spec) = found else {
        return Err(CommandError::Unknown {
            name: name.to_owned(),
            nearest: nearest(bare),
        });
    };
    let text = match spec.names[0] {
        "\\!" => rest.trim(),
        _ => rest.trim().trim_end_matches(';').trim_end(),
    };
    let usage = |reason| CommandError::Usage {
        name: spec
            .names
            .iter()
            .find(|known| **known == bare)
            .expect("found by it"),
        reason,
        usage: spec.usage,
    };
    let words = match spec.names[0] {
        // What they take is no list of words.
        "\\!" | "\\copy" => Vec::new(),
        _ => words(text).map_err(usage)?,
    };
    (spec.read)(&Arguments { text, words }).map_err(usage)
}

/// The name that was probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    let names = COMMANDS.iter().flat_map(|spec| spec.names);
    names
        .map(|known| (strsim::damerau_levenshtein(known, name), *known))
        .filter(|(distance, _)| *distance <= (name.chars().count() - 1).div_ceil(3))
        .min()
        .map(|(_, known)| known)
}

/// A file's path; `~/` is the home directory.
pub fn path(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_are_understood() {
        for (texts, expected) in [
            (
                &["\\dt", ".tables", "\\dt;"][..],
                Command::Tables(String::new()),
            ),
            (
                &["\\d t", "\\d t;", "\\d \"t\""],
                Command::Describe(Some("t".into())),
            ),
            (
                &["\\i 'a b.sql'", ".read \"a b.sql\""],
                Command::Include("a b.sql".into()),
            ),
            (
                &[".mode jsonl", "\\pset format ndjson"],
                Command::Mode(Some(Format::Jsonl)),
            ),
            (
                &[".nullvalue ''", "\\pset null", "\\pset null ''"],
                Command::NullValue(String::new()),
            ),
            (
                &["\\x auto", "\\pset expanded auto"],
                Command::Expanded(Some(Expanded::Auto)),
            ),
            (&["\\timing on", ".timer on"], Command::Timing(Some(true))),
            (
                &["\\!ls 'a;", "\\! ls 'a;", ".shell ls 'a;"],
                Command::System("ls 'a;".into()),
            ),
        ] {
            for text in texts {
                assert_eq!(parse(text).expect(text), expected, "{text}");
            }
        }
        let watch = Command::Watch {
            every: Duration::from_millis(500),
            times: Some(3),
        };
        assert_eq!(parse("\\watch .5 c=3").expect("valid"), watch);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_would_be_right() {
        for (text, expected) in [
            ("\\dtt", "unknown command \\dtt\nhint: did you mean \\dt"),
            (
                ".tabels",
                "unknown command .tabels\nhint: did you mean .tables?",
            ),
            ("\\nonsense", "unknown command \\nonsense\nhint: \\? lists"),
            ("\\i", "\\i: a file is missing\nhint: \\i FILE"),
            (
                "\\x maybe",
                "\\x: \"maybe\" is neither on nor off\nhint: \\x [on|off|auto]",
            ),
            (".mode yaml", ".mode: no format \"yaml\", but table, csv"),
            ("\\dn x", "\\dn: unexpected \"x\""),
            ("\\i 'a", "\\i: a quote is not closed"),
            (".import a", ".import: a file and a table are needed"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut names: Vec<_> = COMMANDS.iter().flat_map(|spec| spec.names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
