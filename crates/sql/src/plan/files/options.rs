//! GivenOptions as they are written, `(HEADER true, DELIMITER '|')` or `header => true`, and taking them by name.

use crate::error::position::Excerpt;
use crate::error::{Mistake, SqlError};
use eris_files::Delimiter;
use eris_types::most_similar;

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OptionValue {
    /// Only its name was given.
    Absent,
    Bool(bool),
    /// A string, a word or a number, as written.
    Text(String),
    List(Vec<OptionValue>),
    Map(Vec<(String, OptionValue)>),
}

/// One option.
#[derive(Clone, Debug)]
pub(crate) struct GivenOption {
    /// In lower case.
    pub name: String,
    pub value: OptionValue,
    pub place: Option<Excerpt>,
}

impl GivenOption {
    /// The error of a value that the option cannot have.
    pub fn reject(&self, wanted: &str) -> SqlError {
        SqlError::invalid(
            Mistake::InvalidParameterValue,
            format!("option {} takes {wanted}", self.name.to_uppercase()),
        )
        .at(self.place.clone())
    }

    pub fn flag(&self) -> Result<bool, SqlError> {
        match &self.value {
            OptionValue::Absent => Ok(true),
            OptionValue::Bool(flag) => Ok(*flag),
            OptionValue::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "1" | "yes" => Ok(true),
                "false" | "off" | "0" | "no" => Ok(false),
                _ => Err(self.reject("true or false")),
            },
            _ => Err(self.reject("true or false")),
        }
    }

    pub fn text(&self) -> Result<&str, SqlError> {
        match &self.value {
            OptionValue::Text(text) => Ok(text),
            _ => Err(self.reject("a string")),
        }
    }

    /// What separates fields.
    pub fn delimiter(&self) -> Result<Delimiter, SqlError> {
        let delimiter = Delimiter::new(self.characters()?);
        delimiter.ok_or_else(|| self.reject("one or more characters other than line ends"))
    }

    /// A text, in which a tabulator may have a name.
    fn characters(&self) -> Result<&str, SqlError> {
        Ok(match self.text()? {
            "\\t" | "tab" => "\t",
            text => text,
        })
    }

    /// One character of ASCII; `None` for the empty string.
    pub fn byte(&self) -> Result<Option<u8>, SqlError> {
        match self.characters()?.as_bytes() {
            [] => Ok(None),
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(Some(*byte)),
            _ => Err(self.reject("a single ASCII character other than a line end")),
        }
    }

    pub fn number(&self) -> Result<i64, SqlError> {
        let number = self.text().ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| self.reject("a whole number"))
    }

    pub fn texts(&self) -> Result<Vec<String>, SqlError> {
        let text = |value: &OptionValue| match value {
            OptionValue::Text(text) => Ok(text.clone()),
            _ => Err(self.reject("a string or a list of strings")),
        };
        match &self.value {
            OptionValue::List(values) => values.iter().map(text).collect(),
            value => Ok(vec![text(value)?]),
        }
    }
}

/// The options of one statement or function, each taken by whoever knows it.
#[derive(Debug, Default)]
pub(crate) struct GivenOptions(pub Vec<GivenOption>);

impl GivenOptions {
    /// Takes the option with one of these names; `known` collects them for the error of an unknown one.
    ///
    /// # Errors
    /// It is there twice.
    pub fn take(&mut self, names: &[&str]) -> Result<Option<GivenOption>, SqlError> {
        let mut found = None;
        while let Some(at) = self
            .0
            .iter()
            .position(|given| names.contains(&given.name.as_str()))
        {
            let given = self.0.remove(at);
            if found.is_some() {
                let message = format!("option {} occurs twice", given.name.to_uppercase());
                return Err(SqlError::invalid(Mistake::Syntax, message).at(given.place));
            }
            found = Some(given);
        }
        Ok(found)
    }

    /// Rejects what nobody has taken.
    pub fn finish(self, what: &str, known: &[&str]) -> Result<(), SqlError> {
        let Some(given) = self.0.into_iter().next() else {
            return Ok(());
        };
        let similar = most_similar(&given.name, known.iter().copied());
        let hint = match similar {
            Some(name) if name == given.name => "other formats have it".to_owned(),
            Some(name) => format!("did you mean {}?", name.to_uppercase()),
            None => format!("{what} knows {}", known.join(", ").to_uppercase()),
        };
        let message = format!("{what} has no option {}", given.name.to_uppercase());
        Err(SqlError::invalid(Mistake::Syntax, message)
            .at(given.place)
            .with_hint(Some(hint)))
    }
}
