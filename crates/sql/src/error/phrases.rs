//! DataFusion's and Arrow's sentences in Eris' words, with what to do about it.
//!
//! Their errors are texts. A sentence is known by its fixed parts, and what stands in its holes is told in other words:
//!
//! ```text
//! Cannot cast string '{}' to value of {} type      ──►  cannot cast '{0}' to {1}
//!                     abc             INTEGER            hint: TRY_CAST yields NULL instead
//! ```
//!
//! A sentence that nobody knows is passed on as it is.

use datafusion::functions_window::all_default_window_functions;
use std::sync::LazyLock;

/// A known sentence, what to say instead, and a hint, which may be empty.
type Phrase = (&'static str, &'static str, &'static str);

const TYPES: &str = "CAST one of the two to the other's type";
const ONE_ROW: &str = "LIMIT 1 or an aggregate such as max() makes one row of it";
const CONDITION: &str = "compare it with something, such as {0} = 1";
const TRY: &str = "TRY_CAST yields NULL instead";
const CALLS: &str = "see SELECT * FROM eris.functions for all functions";

/// The first that fits is taken.
#[rustfmt::skip]
const PHRASES: &[Phrase] = &[
    ("Cannot cast string '{}' to value of {} type in {}", "cannot cast '{0}' to {1} in {2}", TRY),
    ("Cannot cast string '{}' to value of {} type", "cannot cast '{0}' to {1}", TRY),
    ("Can't cast value {} to type {} in {}", "{0} is out of range for {1} in {2}", "CAST to a larger type, or TRY_CAST, which yields NULL instead"),
    ("Can't cast value {} to type {}", "{0} is out of range for {1}", "CAST to a larger type, or TRY_CAST, which yields NULL instead"),
    ("Unsupported CAST from {} to {}", "CAST from {0} to {1}", ""),
    ("Unsupported SQL type {}", "type {0}", "CREATE TABLE and CAST know the types that README lists"),
    ("Error parsing timestamp from '{}': {}", "cannot cast '{0}' to TIMESTAMP", "timestamps are written 2001-12-31 23:59:59"),
    ("Invalid input syntax for type interval: {}", "cannot cast {0} to INTERVAL", "intervals are written '1 day', '3 hours 20 minutes'"),
    ("Date arithmetic overflow: {}", "overflow: the date is out of range", ""),
    ("{}Array overflow on abs({})", "overflow in abs({1})", "CAST the argument to a wider type"),
    ("Overflow happened on FACTORIAL({})", "overflow in factorial({0})", ""),
    ("Unsupported date_trunc granularity: '{}'. Supported values are: {}", "date_trunc does not know '{0}'", "it knows {1}"),
    ("Date part '{}' not supported", "there is no part '{0}' of a date or time", "there are year, quarter, month, week, day, hour, minute, second, epoch, dow and doy"),
    ("Format error", "the format of a date or time is none", "a format is written with %Y, %m, %d, %H, %M, %S and the like"),
    ("regex parse error:{}error: {}", "the regular expression is wrong: {1}", "a backslash before it makes a mark an ordinary character"),
    ("Assertion failed: n != 0: Nth value indices are 1 based. 0 is invalid index{}", "elements of a list are counted from 1, not 0", ""),
    ("string size overflow on {}, max size is {}, but got {}", "{0}: a text of {2} bytes is too long", "a text has at most {1} bytes"),
    ("{} requested length {} too large, maximum allowed length is {}", "{0}: a text of {1} characters is too long", "a text has at most {2} bytes"),

    ("{}No function matches the given name and argument types '{}'. You might need to add explicit type casts.\n\tCandidate functions:\n{}", "there is no function {1}", "{2}"),
    ("Invalid function '{}'.\nDid you mean '{}'?", "there is no function \"{0}\"", "did you mean \"{1}\"?"),
    ("Invalid function '{}'", "there is no function \"{0}\"", CALLS),
    ("Invalid qualifier {}", "there is no \"{0}\" in FROM", "an alias takes the place of its table's name"),
    ("Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: {}", "a window frame that leaves rows behind, of {0}", "begin the frame with UNBOUNDED PRECEDING"),

    ("{}column \"{}\" must appear in the GROUP BY clause or must be part of an aggregate function, {}", "column \"{1}\" is neither in GROUP BY nor in an aggregate", "add it to GROUP BY, or take one of its values with any_value({1})"),
    ("HAVING clause references: {} must appear in the GROUP BY clause or be used in an aggregate function", "HAVING {0}: the columns are neither in GROUP BY nor in an aggregate", "WHERE filters rows, HAVING filters groups"),
    ("Aggregate functions are not allowed in the WHERE clause. Consider using HAVING instead", "WHERE contains an aggregate", "WHERE filters rows before they are grouped; HAVING filters groups"),
    ("Aggregate function calls cannot be nested: '{}' is nested inside '{}'", "an aggregate of an aggregate: {0} in {1}", "compute the inner one in a subquery"),
    ("Argument {} to grouping function is not in grouping columns", "grouping({0}): the column is not in GROUP BY", ""),
    ("Cannot find column with position {} in SELECT clause. Valid columns: 1 to {}", "GROUP BY {0}: the query has columns 1 to {1}", ""),
    ("Order by column out of bounds, specified: {}, max: {}", "ORDER BY {0}: the query has columns 1 to {1}", ""),
    ("Percentile value must be between 0.0 and 1.0 inclusive, {} is invalid", "a percentile of {0} is not between 0 and 1", ""),

    ("Physical plan does not support logical expression WindowFunction({}", "a window function in WHERE or HAVING", "QUALIFY filters by window functions, and so does WHERE around a subquery"),
    ("The window {} is not defined!", "window \"{0}\" is not defined", "define it behind FROM: WINDOW {0} AS (…)"),
    ("RANGE requires exactly one ORDER BY column", "RANGE needs exactly one column in the window's ORDER BY", "ROWS counts rows, whatever their order"),
    ("Invalid window frame: start bound ({}) cannot be larger than end bound ({})", "the window's frame ends before it begins: from {0} to {1}", ""),
    ("Invalid window frame: frame offsets for ROWS / GROUPS must be non negative integers", "the window's frame has an offset that is no count of rows", "PRECEDING and FOLLOWING say the direction"),
    ("NTILE requires a positive integer", "ntile takes a positive number of parts", ""),
    ("Expected an integer value", "a window function takes a whole number there", ""),

    ("Scalar subquery returned more than one row", "a subquery that is used as a value has more than one row", ONE_ROW),
    ("Too many columns! The subquery should only return one column: {}", "a subquery that is used as a value has several columns: {0}", "select one of them"),
    ("expr type {} can't cast to {} in SetComparison", "{0} cannot be compared with {1}", TYPES),
    ("Cannot create filter with non-boolean predicate '{}' returning {}", "a condition has to be BOOLEAN, but {0} is {1}", CONDITION),
    ("Join condition must be boolean type, but got {}", "the condition of a join has to be BOOLEAN, not {0}", "compare columns of both tables"),
    ("Unary operator 'NOT' requires a boolean expression, got {}", "NOT takes BOOLEAN, not {0}", ""),
    ("Unary operator '{}' only supports {}", "{0} takes a number or an INTERVAL", "CAST the operand"),
    ("Cannot infer common argument type for logical boolean operation {}", "{0}: the operator takes BOOLEAN on both sides", ""),
    ("Cannot infer common argument type for comparison operation {}", "{0}: the operator does not compare these types", TYPES),
    ("Cannot infer common string type for string concat operation {}", "{0}: the operator does not take these types", "CAST both to VARCHAR"),
    ("Cannot coerce arithmetic expression {} to valid types", "{0}: the operator does not take these types", TYPES),
    ("Cannot get result type for temporal operation {}: {}", "{0}: the operator does not take these types", TYPES),
    ("There isn't a common type to coerce {} and {} in {} expression", "{2} of {0} and {1}: it takes texts", "CAST both to VARCHAR"),

    ("{} queries have different number of columns", "the queries of {0} have different numbers of columns", ""),
    ("Inconsistent data length across values list: got {} values in row {} but expected {}", "VALUES has a row of {0} values beside one of {2}", ""),
    ("LIMIT must be >= 0, '{}' was provided", "LIMIT {0} is negative", ""),
    ("OFFSET must be >=0, '{}' was provided", "OFFSET {0} is negative", ""),
    ("Expected {} to be an integer or null, but got {}", "{0} takes a whole number, not {1}", ""),
    ("Schema contains duplicate qualified field name {}", "column \"{0}\" occurs twice: two tables in FROM have the same name", "give one of them another with AS"),
    ("Source table contains {} columns but only {} names given as column alias", "{1} names for {0} columns", "an alias with names has one for each column"),
    ("WITH query name {} specified more than once", "WITH has two queries {0}", ""),
    ("Argument #{} must be {}, got {}", "argument {0} is {2}, but has to be {1}", ""),
    ("Step cannot be zero", "the step of a series is 0", ""),
    ("{} function requires {} arguments", "{0} takes {1} arguments", ""),
    ("Only identifiers and literals are supported in tuples", "VALUES as an expression", "write it as a subquery: (SELECT …)"),
];

/// What to say instead of this text, and the hint.
pub(crate) fn rephrase(text: &str) -> Option<(String, Option<String>)> {
    let text = text.strip_prefix("Execution error: ").unwrap_or(text);
    PHRASES.iter().find_map(|(sentence, message, hint)| {
        let holes = holes(sentence, text)?;
        let holes: Vec<String> = holes.into_iter().map(plain).collect();
        let hint = match *hint {
            _ if sentence.starts_with("Invalid function") => unknown_function(&holes, hint),
            hint => fill(hint, &holes),
        };
        let hint = hint.replace("\n", "; ");
        Some((fill(message, &holes), (!hint.is_empty()).then_some(hint)))
    })
}

/// What stands in the holes of a sentence, if the text is one like it.
fn holes<'a>(sentence: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = sentence.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let parts: Vec<&str> = parts.collect();
    let mut found = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let end = match is_last {
            true => rest
                .len()
                .checked_sub(part.len())
                .filter(|_| rest.ends_with(part)),
            false => rest.find(part),
        }?;
        found.push(&rest[..end]);
        rest = &rest[end + part.len()..];
    }
    rest.is_empty().then_some(found)
}

fn fill(template: &str, holes: &[String]) -> String {
    let mut filled = template.to_owned();
    for (at, hole) in holes.iter().enumerate() {
        filled = filled.replace(&format!("{{{at}}}"), hole);
    }
    filled
}

/// What a hole says, without marks that mean nothing to the reader: lists of candidates become calls, each once.
fn plain(hole: &str) -> String {
    if !hole.starts_with('\t') {
        return hole.trim().to_owned();
    }
    const SHOWN: usize = 6;
    let mut calls: Vec<String> = Vec::new();
    for line in hole.lines() {
        let call = line.trim().replace("(1)", "").replace("Null", "NULL");
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    let more = if calls.len() > SHOWN { ", …" } else { "" };
    calls.truncate(SHOWN);
    format!("it is called as {}{more}", calls.join(", "))
}

/// Names of the functions that need OVER.
static WINDOW_FUNCTIONS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = all_default_window_functions();
    all.iter()
        .map(|function| function.name().to_owned())
        .collect()
});

fn unknown_function(holes: &[String], otherwise: &str) -> String {
    let name = &holes[0];
    if WINDOW_FUNCTIONS.contains(name) {
        format!("it is a window function: {name}(…) OVER (…)")
    } else if name.starts_with("read_") || matches!(name.as_str(), "generate_series" | "range") {
        format!("it is a table function: SELECT * FROM {name}(…)")
    } else {
        let likely = holes.get(1).filter(|other| is_like(name, other));
        match likely {
            Some(_) => fill(otherwise, holes),
            None => CALLS.to_owned(),
        }
    }
}

fn is_like(name: &str, other: &str) -> bool {
    eris_types::most_similar(name, std::iter::once(other)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_known_by_their_fixed_parts() {
        assert_eq!(holes("a {} b {}", "a x b y z"), Some(vec!["x", "y z"]));
        assert_eq!(holes("{}: {} end", "q: r end"), Some(vec!["q", "r"]));
        assert_eq!(holes("a {} b", "a x c"), None);
        assert_eq!(holes("a", "a b"), None);
        let (message, hint) = rephrase("Cannot cast string 'x' to value of DATE type").unwrap();
        assert_eq!(message, "cannot cast 'x' to DATE");
        assert_eq!(hint.as_deref(), Some(TRY));
        assert_eq!(rephrase("table \"t\" does not exist"), None);
    }
}
