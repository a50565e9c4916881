//! What follows the name of a command, and how it is understood.

use super::Command;
use crate::format::{Expanded, Format};
use crate::variables::is_of_name;
use clap::ValueEnum;
use std::time::Duration;

/// What follows a command's name.
pub struct Arguments<'a> {
    /// All of it.
    pub text: &'a str,
    /// Its words, without their quotes.
    pub words: Vec<String>,
    /// Whether the command's name ends in `+`: more is to be shown.
    pub more: bool,
}

impl Arguments<'_> {
    pub fn none(&self, command: Command) -> Result<Command, String> {
        match self.words.first() {
            None => Ok(command),
            Some(word) => Err(format!("unexpected \"{word}\"")),
        }
    }

    pub fn optional(&self) -> Result<Option<&str>, String> {
        match &self.words[..] {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            [_, next, ..] => Err(format!("unexpected \"{next}\"")),
        }
    }

    pub fn one(&self, what: &str) -> Result<&str, String> {
        self.optional()?.ok_or_else(|| format!("{what} is missing"))
    }

    /// A part of a name; nothing is part of every name.
    pub fn pattern(&self) -> Result<String, String> {
        Ok(self.optional()?.unwrap_or_default().to_owned())
    }

    pub fn switch(&self) -> Result<Option<bool>, String> {
        match self.optional()? {
            None => Ok(None),
            Some(word) => on_or_off(word).map(Some),
        }
    }

    pub fn number(&self) -> Result<usize, String> {
        let word = self.one("a number")?;
        word.parse().map_err(|_| format!("\"{word}\" is no number"))
    }
}

/// What separates fields: no quote, no line end.
pub fn separator(text: &str) -> Result<Command, String> {
    let separator = match text {
        "\\t" | "tab" => "\t",
        text => text,
    };
    match separator.is_empty() || separator.contains(['"', '\n', '\r']) {
        true => Err(format!("\"{text}\" cannot separate fields")),
        false => Ok(Command::Separator(separator.to_owned())),
    }
}

/// `\set [name [value …]]`; parts of the value are put together, as psql does.
pub fn set(words: &[String]) -> Result<Command, String> {
    let Some((name, value)) = words.split_first() else {
        return Ok(Command::Set(None));
    };
    Ok(Command::Set(Some((variable(name)?, value.concat()))))
}

/// The name of a variable.
pub fn variable(name: &str) -> Result<String, String> {
    match !name.is_empty() && name.chars().all(is_of_name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "\"{name}\" is no name of a variable: letters, digits and _ are"
        )),
    }
}

pub fn on_or_off(word: &str) -> Result<bool, String> {
    match word.to_lowercase().as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(format!("\"{word}\" is neither on nor off")),
    }
}

pub fn expanded(word: &str) -> Result<Expanded, String> {
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
pub fn format(name: &str) -> Result<Format, String> {
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

pub fn watch(words: &[String]) -> Result<Command, String> {
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

pub fn pset(words: &[String]) -> Result<Command, String> {
    let (name, value) = match words {
        [] => return Ok(Command::Settings),
        [name] => (name.as_str(), None),
        [name, value] => (name.as_str(), Some(value.as_str())),
        [_, _, next, ..] => return Err(format!("unexpected \"{next}\"")),
    };
    let switch = || value.map(on_or_off).transpose();
    match (name, value) {
        ("null", value) => Ok(Command::NullValue(value.unwrap_or_default().to_owned())),
        ("fieldsep" | "csv_fieldsep", Some(text)) => separator(text),
        ("format", None) => Ok(Command::Mode(None)),
        ("format", Some(name)) => Ok(Command::Mode(Some(format(name)?))),
        ("expanded" | "x", value) => Ok(Command::Expanded(value.map(expanded).transpose()?)),
        ("pager", _) => Ok(Command::Pager(switch()?)),
        ("tuples_only" | "t", _) => Ok(Command::Headers(switch()?.map(|on| !on))),
        ("columns", Some(width)) => {
            let width = width
                .parse()
                .map_err(|_| format!("\"{width}\" is no number"))?;
            Ok(Command::MaxWidth(width))
        }
        _ => Err(format!("no setting \"{name}\" of this kind")),
    }
}
