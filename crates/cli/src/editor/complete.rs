//! What the word before the cursor may become.
//!
//! ```text
//! SELECT lo_|  FROM lineorder     columns of the tables that the statement names, then other columns,
//! SELECT lo_|                     tables and views, functions, keywords
//! SELECT l.|   FROM lineorder l   columns of that table
//! FROM 'data/|                    files, also behind \i
//! \d|                             commands; behind them, what they take
//! ```

use super::keywords::KEYWORDS;
use crate::commands::{COMMANDS, path};
use crate::units;
use eris_sql::{Function, LexemeKind, Relation, RelationKind, Session, lexemes, quoted};

/// Completes from the database's names and the file system.
pub struct SqlCompleter {
    session: Session,
    /// They do not change.
    functions: Vec<Function>,
}

impl SqlCompleter {
    /// A completer for the names that this session sees.
    pub fn new(session: Session) -> Self {
        SqlCompleter {
            functions: session.database().functions(),
            session,
        }
    }

    /// Where the word begins that ends at `position`, and what it may become, the likeliest first.
    pub fn complete(&self, text: &str, position: usize) -> (usize, Vec<String>) {
        let before = &text[..position];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        if units::is_command(&before[line_start..]) {
            let (start, candidates) = self.command(&before[line_start..]);
            return (line_start + start, candidates);
        }
        if let Some(open) = lexemes(before).last().filter(|last| last.open) {
            return match open.kind {
                LexemeKind::String => {
                    let from = open.span.start + 1;
                    (from, files(&before[from..], "'"))
                }
                LexemeKind::Name => {
                    let from = open.span.start;
                    let relations = self.session.relations();
                    let names = relations.iter().flat_map(names);
                    {
                        // Between quotes the size of letters counts.
                        let begun = &before[from + 1..];
                        let names = names.filter(|name| name.starts_with(begun));
                        (from, matching("", names.map(quoted_always)))
                    }
                }
                _ => (position, Vec::new()),
            };
        }
        self.name(text, before)
    }

    /// A name or keyword in a statement.
    fn name(&self, text: &str, before: &str) -> (usize, Vec<String>) {
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
            .last()
            .map_or(before.len(), |(at, _)| at);
        let word = &before[start..];
        let relations = self.session.relations();
        let statement = statement_around(text, start);
        if let Some(owner) = before[..start].strip_suffix('.') {
            let owner = last_word(owner);
            let mut candidates = members(&relations, statement, owner);
            if candidates.is_empty() {
                // FROM may still have to be written.
                let columns = relations.iter().flat_map(|relation| &relation.columns);
                candidates.extend(columns.map(|column| quoted(&column.name)));
            }
            return (start, matching(word, candidates.into_iter()));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        // System tables are named with their schema; their columns count once they are.
        let (named, others): (Vec<_>, Vec<_>) =
            (relations.iter()).partition(|relation| has_word(statement, &relation.name));
        let is_users = |relation: &&Relation| relation.kind != RelationKind::System;
        let others: Vec<_> = others.into_iter().filter(is_users).collect();
        let columns = |relations: &[&Relation]| -> Vec<String> {
            let columns = relations.iter().flat_map(|relation| &relation.columns);
            columns.map(|column| quoted(&column.name)).collect()
        };
        let mut candidates = matching(word, columns(&named).into_iter());
        let mut add = |more: Vec<String>| {
            for candidate in more {
                if !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        };
        add(matching(
            word,
            relations
                .iter()
                .filter(is_users)
                .map(|relation| quoted(&relation.name)),
        ));
        add(matching(word, self.session.schemas().into_iter()));
        add(matching(word, columns(&others).into_iter()));
        let functions = self
            .functions
            .iter()
            .map(|function| format!("{}(", function.name));
        add(matching(word, functions));
        let small = word.chars().all(|c| !c.is_uppercase());
        let keywords = KEYWORDS.iter().map(|keyword| match small {
            true => keyword.to_lowercase(),
            false => (*keyword).to_owned(),
        });
        add(matching(word, keywords));
        (start, candidates)
    }

    /// A command, or what it takes.
    fn command(&self, line: &str) -> (usize, Vec<String>) {
        let indent = line.len() - line.trim_start().len();
        let command = &line[indent..];
        let Some(name_end) = command.find(char::is_whitespace) else {
            let names = COMMANDS.iter().flat_map(|spec| spec.names);
            let names = names.filter(|name| name.starts_with(command));
            return (indent, names.map(|name| (*name).to_owned()).collect());
        };
        let name = &command[..name_end];
        let spec = COMMANDS.iter().find(|spec| spec.names.contains(&name));
        let Some(spec) = spec else {
            return (line.len(), Vec::new());
        };
        let word_start = line.rfind(char::is_whitespace).map_or(indent, |at| at + 1);
        let word = &line[word_start..];
        if let Some(quote) = word.chars().next().filter(|c| matches!(c, '\'' | '"')) {
            let from = word_start + 1;
            return (from, files(&line[from..], &quote.to_string()));
        }
        if spec.usage.contains("name")
            || spec.names[0] == "\\copy" && line[..word_start].trim_end() == name
        {
            let relations = self.session.relations();
            let names = relations.iter().map(|relation| quoted(&relation.name));
            return (word_start, matching(word, names));
        }
        if spec.usage.contains("FILE") {
            return (word_start, files(word, ""));
        }
        let choices = spec.usage.trim_matches(['[', ']']);
        if choices.contains('|') {
            let choices = choices.split(['|', ' ']).map(str::to_owned);
            return (word_start, matching(word, choices));
        }
        (line.len(), Vec::new())
    }
}

/// All names of a relation: its own and its columns'.
fn names(relation: &Relation) -> impl Iterator<Item = &str> {
    let columns = relation.columns.iter().map(|column| column.name.as_str());
    std::iter::once(relation.name.as_str()).chain(columns)
}

/// Candidates that begin with the word, in letters of any size.
fn matching(word: &str, candidates: impl Iterator<Item = String>) -> Vec<String> {
    let word = word.to_lowercase();
    let begins = |candidate: &String| {
        let plain = candidate.strip_prefix('"').unwrap_or(candidate);
        plain.to_lowercase().starts_with(&word)
    };
    let mut found: Vec<String> = Vec::new();
    for candidate in candidates.filter(begins) {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found
}

fn quoted_always(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statement in which `position` lies.
fn statement_around(text: &str, position: usize) -> &str {
    let ends = lexemes(text)
        .filter(|lexeme| lexeme.kind == LexemeKind::Semicolon)
        .map(|lexeme| lexeme.span.start);
    let (mut from, mut to) = (0, text.len());
    for end in ends {
        if end < position {
            from = end + 1;
        } else {
            to = end;
            break;
        }
    }
    &text[from..to]
}

/// The words of a text, without quotes.
fn word_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn has_word(text: &str, name: &str) -> bool {
    text.contains(name) || word_list(text).any(|word| word.eq_ignore_ascii_case(name))
}

fn last_word(text: &str) -> &str {
    let text = text.strip_suffix('"').unwrap_or(text);
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_');
    start.map_or(text, |at| &text[at + 1..])
}

/// What may follow `owner.`: columns of the table or alias of that name, or relations of the schema.
fn members(relations: &[Relation], statement: &str, owner: &str) -> Vec<String> {
    let in_schema = relations
        .iter()
        .filter(|relation| relation.schema.eq_ignore_ascii_case(owner));
    let mut candidates: Vec<String> = in_schema.map(|relation| quoted(&relation.name)).collect();
    let words: Vec<&str> = word_list(statement).collect();
    let is_alias = |relation: &Relation| {
        words.windows(3).any(|three| {
            let named = three[0].eq_ignore_ascii_case(&relation.name);
            named
                && (three[1].eq_ignore_ascii_case(owner)
                    || three[1].eq_ignore_ascii_case("as") && three[2].eq_ignore_ascii_case(owner))
        }) || words.windows(2).any(|two| {
            two[0].eq_ignore_ascii_case(&relation.name) && two[1].eq_ignore_ascii_case(owner)
        })
    };
    for relation in relations {
        if relation.name.eq_ignore_ascii_case(owner) || is_alias(relation) {
            candidates.extend(relation.columns.iter().map(|column| quoted(&column.name)));
        }
    }
    candidates
}

/// Files whose path begins so. A directory ends in `/`, a file in the quote.
fn files(begun: &str, quote: &str) -> Vec<String> {
    let (directory, name) = match begun.rfind('/') {
        Some(slash) => begun.split_at(slash + 1),
        None => ("", begun),
    };
    let place = if directory.is_empty() {
        ".".into()
    } else {
        path(directory)
    };
    let Ok(entries) = std::fs::read_dir(place) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Ok(entry_name) = entry.file_name().into_string() else {
            continue;
        };
        let hidden = entry_name.starts_with('.') && !name.starts_with('.');
        if hidden || !entry_name.starts_with(name) {
            continue;
        }
        let end = if entry.path().is_dir() { "/" } else { quote };
        found.push(format!("{directory}{entry_name}{end}"));
    }
    found.sort();
    found
}
