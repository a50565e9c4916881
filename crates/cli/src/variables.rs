//! psql's variables: `\set name value`, and `:name`, `:'name'`, `:"name"` in statements and commands.
//!
//! A name that no variable has stays as it is written, as in psql: it may be a part of SQL.

use eris_sql::{LexemeKind, lexemes, quoted};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The variables of one shell.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

/// How the value of a variable is put into a text.
#[derive(Clone, Copy)]
enum Form {
    /// As it is.
    Plain,
    /// As a string of SQL.
    String,
    /// As a name of SQL.
    Name,
}

impl Variables {
    /// Gives a variable a value.
    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Forgets a variable.
    pub fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All of them, a line each.
    pub fn listed(&self) -> String {
        let lines = self.0.iter();
        lines
            .map(|(name, value)| format!("{name} = '{value}'\n"))
            .collect()
    }

    /// A text with the values of the variables that it names. Strings and comments stay as they are.
    pub fn written_out<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() || !text.contains(':') {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for lexeme in lexemes(text) {
            let at = lexeme.span.start;
            let is_colon = lexeme.kind == LexemeKind::Other && text[at..].starts_with(':');
            // A cast is no variable.
            if at < copied || !is_colon || text[..at].ends_with(':') {
                continue;
            }
            let Some((name, form, length)) = named(&text[at + 1..]) else {
                continue;
            };
            let Some(value) = self.0.get(name) else {
                continue;
            };
            out.push_str(&text[copied..at]);
            match form {
                Form::Plain => out.push_str(value),
                Form::String => out.push_str(&format!("'{}'", value.replace('\'', "''"))),
                Form::Name => out.push_str(&quoted(value)),
            }
            copied = at + 1 + length;
        }
        match copied {
            0 => Cow::Borrowed(text),
            _ => {
                out.push_str(&text[copied..]);
                Cow::Owned(out)
            }
        }
    }
}

/// The name that stands behind a colon, its form, and its length with quotes.
fn named(rest: &str) -> Option<(&str, Form, usize)> {
    let (form, start) = match rest.chars().next()? {
        '\'' => (Form::String, 1),
        '"' => (Form::Name, 1),
        _ => (Form::Plain, 0),
    };
    let inner = &rest[start..];
    let length = inner.find(|c: char| !is_of_name(c)).unwrap_or(inner.len());
    let closes = match form {
        Form::Plain => true,
        Form::String => inner[length..].starts_with('\''),
        Form::Name => inner[length..].starts_with('"'),
    };
    (closes && length > 0).then(|| (&inner[..length], form, length + 2 * start))
}

/// Whether a character may be in a variable's name.
pub fn is_of_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_a_colon_are_written_out() {
        let mut variables = Variables::default();
        variables.set("t", "Odd \"table\"".into());
        variables.set("n", "40 + 2".into());
        variables.set("who", "it's".into());
        for (text, expected) in [
            ("SELECT :n;", "SELECT 40 + 2;"),
            ("SELECT :'who', :'n'", "SELECT 'it''s', '40 + 2'"),
            ("FROM :\"t\" AS t", "FROM \"Odd \"\"table\"\"\" AS t"),
            (
                "SELECT x::n, a[1:n], {'n':n}",
                "SELECT x::n, a[1:n], {'n':n}",
            ),
            ("SELECT ':n', \":n\" -- :n", "SELECT ':n', \":n\" -- :n"),
            (
                "SELECT :unknown, :'unknown', :nn",
                "SELECT :unknown, :'unknown', :nn",
            ),
            ("SELECT :'n", "SELECT :'n"),
            (":n", "40 + 2"),
        ] {
            let expected = expected
                .replace("[1:n]", "[140 + 2]")
                .replace(":n}", "40 + 2}");
            assert_eq!(variables.written_out(text), expected, "{text}");
        }
        assert!(matches!(
            variables.written_out("SELECT 1"),
            Cow::Borrowed(_)
        ));
        variables.unset("n");
        assert_eq!(variables.written_out(":n"), ":n");
        assert_eq!(variables.listed(), "t = 'Odd \"table\"'\nwho = 'it's'\n");
    }
}
