//! Values of settings, and how they are written.

use crate::error::duration::{Milliseconds, UNITS};
use eris_home::Synchronous;
use eris_numa::Bytes;
use std::fmt;
use std::time::Duration;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Boolean(bool),
    Text(String),
    Synchronous(Synchronous),
}

/// The kinds of values. `Display` says in words what is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueKind {
    /// Bytes, at least so many; `u64::MAX` is `unlimited`, where that is allowed.
    Bytes {
        least: u64,
        unlimited: bool,
    },
    /// A time span in milliseconds; 0 is `none`, where that is allowed.
    Duration {
        none: bool,
    },
    /// A whole number of something.
    Integer {
        least: u64,
        most: u64,
        unit: &'static str,
    },
    Boolean,
    /// One of these words, whatever their case.
    Choice(&'static [&'static str]),
    /// Any text, such as a name or path.
    Text(&'static str),
    /// When commits are durable.
    Synchronous,
}

impl ValueKind {
    /// The value that this text means.
    pub fn parse(&self, text: &str) -> Option<Value> {
        let word = text.trim().to_lowercase();
        Some(match self {
            ValueKind::Bytes {
                unlimited: true, ..
            } if word == "unlimited" => Value::Number(u64::MAX),
            ValueKind::Bytes { least, .. } => {
                let Bytes(bytes) = text.parse().ok()?;
                (bytes >= *least).then_some(Value::Number(bytes))?
            }
            ValueKind::Duration { none: true } if word == "none" => Value::Number(0),
            ValueKind::Duration { .. } => Value::Number(milliseconds(&word)?),
            ValueKind::Integer { least, most, .. } => {
                let number = word.replace('_', "").parse().ok()?;
                (*least..=*most)
                    .contains(&number)
                    .then_some(Value::Number(number))?
            }
            ValueKind::Boolean => match word.as_str() {
                "on" | "true" | "yes" | "1" => Value::Boolean(true),
                "off" | "false" | "no" | "0" => Value::Boolean(false),
                _ => return None,
            },
            ValueKind::Choice(words) => {
                let word = word.replace(' ', "_");
                let chosen = words.iter().find(|known| known.to_lowercase() == word);
                Value::Text((*chosen?).to_owned())
            }
            ValueKind::Text(_) => Value::Text(text.to_owned()),
            ValueKind::Synchronous => Value::Synchronous(text.parse().ok()?),
        })
    }

    /// The value as text that [`ValueKind::parse`] understands.
    pub fn show(&self, value: &Value) -> String {
        match (self, value) {
            (ValueKind::Bytes { .. }, Value::Number(u64::MAX)) => "unlimited".to_owned(),
            (ValueKind::Bytes { .. }, Value::Number(bytes)) => Bytes(*bytes).to_string(),
            (ValueKind::Duration { .. }, Value::Number(time)) => {
                Milliseconds(Duration::from_millis(*time)).to_string()
            }
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Boolean(true)) => "on".to_owned(),
            (_, Value::Boolean(false)) => "off".to_owned(),
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Synchronous(synchronous)) => synchronous.to_string(),
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueKind::Bytes { least, unlimited } => {
                write!(f, "bytes, such as '2GB' or '512MiB'")?;
                if *least > 0 {
                    write!(f, ", at least {}", Bytes(*least))?;
                }
                match unlimited {
                    true => write!(f, "; or 'unlimited'"),
                    false => Ok(()),
                }
            }
            ValueKind::Duration { none } => {
                write!(f, "milliseconds, or a time such as '30s' or '5min'")?;
                match none {
                    true => write!(f, "; or 'none'"),
                    false => Ok(()),
                }
            }
            ValueKind::Integer { least, most, unit } => {
                write!(f, "a number of {unit} from {least} to {most}")
            }
            ValueKind::Boolean => write!(f, "on or off"),
            ValueKind::Choice(words) => write!(f, "{}", words.join(", ")),
            ValueKind::Text(what) => write!(f, "{what}"),
            ValueKind::Synchronous => write!(f, "on, off, or a time such as '1s' or '200ms'"),
        }
    }
}

/// Milliseconds, with or without a unit.
fn milliseconds(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let scale = match unit.trim() {
        "" => 1,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let time = number.parse::<f64>().ok()? * scale as f64;
    // A timer needs an end: a year is far enough.
    (time <= 366.0 * 24.0 * 3.6e6).then(|| time.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        let kinds = [
            (
                ValueKind::Duration { none: true },
                ["none", "1ms", "90s", "5min", "2h"].as_slice(),
            ),
            (ValueKind::Boolean, &["on", "off"]),
            (ValueKind::Synchronous, &["on", "off", "200ms"]),
            (ValueKind::Choice(&["auto", "UTC"]), &["auto", "UTC"]),
            (
                ValueKind::Bytes {
                    least: 0,
                    unlimited: true,
                },
                &["2 GB", "unlimited", "512 bytes"],
            ),
            (
                ValueKind::Integer {
                    least: 1,
                    most: 9,
                    unit: "rows",
                },
                &["1", "9"],
            ),
        ];
        for (kind, texts) in kinds {
            for text in texts {
                let value = kind.parse(text).unwrap();
                assert_eq!(kind.show(&value), *text);
            }
        }
    }

    #[test]
    fn values_out_of_bounds_are_none() {
        let rows = ValueKind::Integer {
            least: 1,
            most: 9,
            unit: "rows",
        };
        assert_eq!(rows.parse("0"), None);
        assert_eq!(rows.parse("10"), None);
        assert_eq!(rows.parse("-1"), None);
        assert_eq!(ValueKind::Duration { none: true }.parse("-5s"), None);
        assert_eq!(ValueKind::Duration { none: true }.parse("5 days"), None);
        assert_eq!(
            ValueKind::Duration { none: true }.parse("1.5s"),
            Some(Value::Number(1500))
        );
        assert_eq!(ValueKind::Duration { none: true }.parse(""), None);
        assert_eq!(ValueKind::Boolean.parse("maybe"), None);
        let bytes = ValueKind::Bytes {
            least: 1000,
            unlimited: false,
        };
        assert_eq!(bytes.parse("999"), None);
        assert_eq!(bytes.parse("unlimited"), None);
    }
}
