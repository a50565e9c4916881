//! Commands to the shell: how they are read. [`list`] has all of them; running them is [`run`]'s.
//!
//! psql's begin with a backslash, DuckDB's with a dot; both work, wherever a statement could begin.

mod arguments;
mod command;
pub mod copy;
mod describe;
mod dump;
mod edit;
mod list;
mod run;
mod words;

pub use command::{Command, CommandError};
pub use list::COMMANDS;

use arguments::Arguments;
use std::path::PathBuf;
use words::words;

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
    let is = |known: &str| match known.starts_with(char::is_alphabetic) {
        true => known.eq_ignore_ascii_case(bare),
        false => known == bare,
    };
    let found = (COMMANDS.iter()).find(|spec| spec.names.iter().any(|known| is(known)));
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
            .find(|known| is(known))
            .expect("found by it"),
        reason,
        usage: spec.usage,
    };
    let words = match spec.names[0] {
        // What they take is no list of words.
        "\\!" | "\\copy" => Vec::new(),
        _ => words(text).map_err(usage)?,
    };
    let more = bare.ends_with('+');
    (spec.read)(&Arguments { text, words, more }).map_err(usage)
}

/// The name that was probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    let names = COMMANDS.iter().flat_map(|spec| spec.names);
    names
        .map(|known| (strsim::damerau_levenshtein(known, name), *known))
        .filter(|(distance, _)| *distance <= (name.chars().count() - 1) / 3)
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
    use crate::format::{Expanded, Format};
    use std::time::Duration;

    #[test]
    fn both_dialects_are_understood() {
        for (texts, expected) in [
            (
                &["\\dt", ".tables", "\\dt;"][..],
                Command::Tables(String::new(), false),
            ),
            (&["\\dt+ a"], Command::Tables("a".into(), true)),
            (&["\\d+ t"], Command::DescribeMore(Some("t".into()))),
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
                &["\\t on", ".headers off", "\\pset tuples_only on"],
                Command::Headers(Some(false)),
            ),
            (
                &["\\echo a  'b  c'", ".print a 'b  c';"],
                Command::Print("a b  c".into()),
            ),
            (
                &["\\cd /tmp", ".cd '/tmp'"],
                Command::Directory(Some("/tmp".into())),
            ),
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
            // Every other short name would be as near.
            ("\\c", "unknown command \\c\nhint: \\? lists"),
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
