//! From a file to records: blocks of lines between blank ones, each parsed by itself, so that one that makes no sense
//! to the parser costs nothing but itself.

use regex::Regex;
use sqllogictest::{DefaultColumnType, Record};
use std::collections::VecDeque;
use std::sync::LazyLock;

/// Whose habits a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// One value per line, three decimals, values cut to the type of the column.
    Sqlite,
    /// Values between tabs; directives such as `require` and `loop`.
    DuckDb,
    /// Values between blanks.
    Other,
}

/// What a block is.
pub enum Step {
    /// Something to do.
    Record(Box<Record<DefaultColumnType>>),
    /// A statement that may succeed or not: threads of DuckDB's runner get in each other's way.
    Maybe(Box<Record<DefaultColumnType>>),
    /// The database should have this, or the file makes no sense.
    Require(String),
    /// From here on the database is the one of a file.
    Load,
    /// Not understood.
    Unknown(String),
}

/// A step, and the line on which its block begins.
pub struct Placed {
    pub line: usize,
    pub step: Step,
}

/// The parts of a file that is read only as a whole.
pub struct Script {
    pub dialect: Dialect,
    pub steps: Vec<Placed>,
}

/// Loops may be unrolled to this many lines.
const LINES: usize = 200_000;

pub fn parse(text: &str) -> Script {
    let lines: Vec<(usize, String)> = (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.trim_end_matches('\r').to_owned()))
        .collect();
    let dialect = dialect(text);
    let mut unrolled = Vec::new();
    unroll(&lines, &mut unrolled);
    let mut steps = Vec::new();
    for block in blocks(unrolled) {
        let line = block[0].0;
        let lines: Vec<&str> = block.iter().map(|(_, line)| line.as_str()).collect();
        let step = |step| Placed { line, step };
        let words: Vec<&str> = lines[0].split_whitespace().collect();
        match words[..] {
            ["require", what, ..] if IGNORED_REQUIREMENTS.contains(&what) => {}
            ["require" | "require-env", what, ..] => {
                steps.push(step(Step::Require(what.to_owned())));
            }
            ["load", ..] => steps.push(step(Step::Load)),
            ["mode" | "subtest" | "unzip" | "test-env" | "tags", ..] => {}
            _ => match sqllogictest::parse(&respelled(&lines)) {
                Ok(records) => {
                    let is_maybe = lines.iter().any(|line| line.starts_with(MAYBE));
                    let records = records.into_iter().map(|record| {
                        let record = Box::new(record);
                        step(match is_maybe {
                            true => Step::Maybe(record),
                            false => Step::Record(record),
                        })
                    });
                    steps.extend(records);
                }
                Err(_) => steps.push(step(Step::Unknown(lines[0].to_owned()))),
            },
        }
    }
    Script { dialect, steps }
}

const MAYBE: &str = "statement maybe";

/// Requirements of DuckDB's runner that say nothing about the database.
const IGNORED_REQUIREMENTS: [&str; 18] = [
    "skip_reload",
    "vector_size",
    "noforcestorage",
    "no_alternative_verify",
    "notwindows",
    "64bit",
    "block_size",
    "core_functions",
    "exact_vector_size",
    "json",
    "no_extension_autoloading",
    "no_force_storage",
    "no_latest_storage",
    "no_vector_verification",
    "notmingw",
    "parquet",
    "longdouble",
    "ram",
];

fn dialect(text: &str) -> Dialect {
    if text
        .lines()
        .take(10)
        .any(|line| line.starts_with("# name: "))
    {
        Dialect::DuckDb
    } else if text
        .lines()
        .any(|line| line.starts_with("hash-threshold") || line.starts_with("skipif mssql"))
    {
        Dialect::Sqlite
    } else {
        Dialect::Other
    }
}

/// Writes `loop` and `foreach` out.
fn unroll(lines: &[(usize, String)], out: &mut Vec<(usize, String)>) {
    let mut at = 0;
    while let Some((number, line)) = lines.get(at) {
        at += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let values: Vec<String> = match words[..] {
            ["loop" | "concurrentloop", _, from, to] => {
                match (from.parse::<i64>(), to.parse::<i64>()) {
                    (Ok(from), Ok(to)) => (from..to).map(|value| value.to_string()).collect(),
                    _ => Vec::new(),
                }
            }
            ["foreach" | "concurrentforeach", _, ref values @ ..] => values
                .iter()
                .flat_map(|value| named_values(value))
                .collect(),
            _ => {
                out.push((*number, line.clone()));
                continue;
            }
        };
        let Some(length) = body(&lines[at..]) else {
            return;
        };
        let spellings = [format!("${{{}}}", words[1]), format!("{{{}}}", words[1])];
        for value in values {
            if out.len() > LINES {
                break;
            }
            let replaced = |(number, line): &(usize, String)| {
                let line = spellings.iter().fold(line.clone(), |line, variable| {
                    line.replace(variable, &value)
                });
                (*number, line)
            };
            let meant = |(number, line): &(usize, String)| match condition(line, words[1], &value) {
                Some(true) => None,
                Some(false) => Some((*number, NOBODY.to_owned())),
                None => Some(replaced(&(*number, line.clone()))),
            };
            let copy: Vec<_> = lines[at..at + length].iter().filter_map(meant).collect();
            unroll(&copy, out);
            out.push((*number, String::new()));
        }
        at += length + 1;
    }
}

/// A condition that holds for no database.
const NOBODY: &str = "onlyif nobody";

/// Whether the record behind this line is meant, if the line is a condition about the variable of a loop, such as
/// `onlyif threadid>0`.
fn condition(line: &str, variable: &str, value: &str) -> Option<bool> {
    let found = LOOP_CONDITION.captures(line)?;
    if &found[2] != variable {
        return None;
    }
    let wanted = &found[4];
    let order = match (value.parse::<i64>(), wanted.parse::<i64>()) {
        (Ok(value), Ok(wanted)) => value.cmp(&wanted),
        _ => value.cmp(wanted),
    };
    let holds = match &found[3] {
        "=" => order.is_eq(),
        "<>" | "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    };
    Some(holds == (&found[1] == "onlyif"))
}

static LOOP_CONDITION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(onlyif|skipif)\s+(\w+)\s*(<>|!=|<=|>=|=|<|>)\s*(\w+)").expect("a pattern")
});

/// Lines before the `endloop` that belongs to a loop already begun.
fn body(lines: &[(usize, String)]) -> Option<usize> {
    let mut depth = 0_usize;
    for (position, (_, line)) in lines.iter().enumerate() {
        match line.split_whitespace().next() {
            Some("loop" | "foreach" | "concurrentloop" | "concurrentforeach") => depth += 1,
            Some("endloop") if depth == 0 => return Some(position),
            Some("endloop") => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The values that a word of a `foreach` stands for.
fn named_values(word: &str) -> Vec<String> {
    let signed = ["tinyint", "smallint", "integer", "bigint", "hugeint"];
    let unsigned = ["utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"];
    let floating = ["float", "double"];
    let values: Vec<&str> = match word {
        "<signed>" => signed.to_vec(),
        "<unsigned>" => unsigned.to_vec(),
        "<integral>" => [signed, unsigned].concat(),
        "<numeric>" => [&signed[..], &unsigned, &floating].concat(),
        "<alltypes>" => [
            &signed[..],
            &unsigned,
            &floating,
            &["bool", "interval", "varchar"],
        ]
        .concat(),
        word => vec![word],
    };
    values.into_iter().map(str::to_owned).collect()
}

/// Runs of lines between blank ones, without comments. An expected error message may have a blank line in it.
fn blocks(lines: Vec<(usize, String)>) -> Vec<Vec<(usize, String)>> {
    let mut blocks: Vec<Vec<(usize, String)>> = Vec::new();
    let mut block: Vec<(usize, String)> = Vec::new();
    let mut lines = VecDeque::from(lines);
    while let Some((number, line)) = lines.pop_front() {
        let blank = line.trim().is_empty();
        if blank || (block.is_empty() && (line.starts_with('#') || line.trim() == "endloop")) {
            let in_message = block
                .first()
                .is_some_and(|(_, line)| line.contains(" error"))
                && block.iter().any(|(_, line)| line == "----")
                && lines
                    .front()
                    .is_some_and(|(_, line)| !line.trim().is_empty() && !is_directive(line));
            if !in_message && !block.is_empty() {
                blocks.push(std::mem::take(&mut block));
            }
            continue;
        }
        let alone = block.is_empty() && is_alone(&line);
        block.push((number, line));
        if alone {
            blocks.push(std::mem::take(&mut block));
        }
    }
    if !block.is_empty() {
        blocks.push(block);
    }
    blocks
}

fn is_directive(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    line.starts_with('#')
        || ["statement", "query", "skipif", "onlyif", "endloop"].contains(&first)
        || is_alone(line)
}

/// Whether the directive is one line long, whatever follows.
fn is_alone(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let words = [
        "require",
        "require-env",
        "hash-threshold",
        "halt",
        "mode",
        "control",
        "subtest",
        "include",
        "load",
        "restart",
        "reconnect",
        "sleep",
        "unzip",
        "test-env",
        "tags",
    ];
    words.contains(&first)
}

static DUCKDB_CONNECTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(statement (?:ok|error|maybe))\s+(\w+)$").expect("a pattern"));

/// A block as the parser wants it.
fn respelled(lines: &[&str]) -> String {
    let mut out = String::new();
    let mut in_results = false;
    for line in lines {
        if !in_results && line.starts_with('#') {
            continue;
        }
        in_results |= *line == "----";
        if in_results && lines.iter().any(|line| line.starts_with(MAYBE)) {
            break;
        }
        let line = match line.split_whitespace().next() {
            _ if in_results => (*line).to_owned(),
            // Comments behind conditions.
            Some("skipif" | "onlyif" | "hash-threshold" | "halt") => {
                line.split('#').next().unwrap_or_default().trim().to_owned()
            }
            Some("statement") => match DUCKDB_CONNECTION.captures(line) {
                Some(found) if found[1].ends_with("error") && found[2].len() > 5 => {
                    (*line).to_owned()
                }
                Some(found) => format!("connection {}\n{}", &found[2], &found[1]),
                None => (*line).to_owned(),
            },
            _ => (*line).to_owned(),
        };
        out.push_str(&line.replace(MAYBE, "statement ok"));
        out.push('\n');
    }
    out
}
