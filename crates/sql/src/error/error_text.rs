//! DataFusion's and Arrow's error texts in Eris' words, with what to do about it.
//!
//! Where they have no typed error, and no mistake can be found before they do, their text is all there is. A text is
//! known by its fixed parts, and what stands in its gaps is told in other words:
//!
//! ```text
//! Cannot cast string '{}' to value of {} type      ──►  cannot cast '{0}' to {1}
//!                     abc             INTEGER            hint: TRY_CAST yields NULL instead
//! ```
//!
//! A text that nobody knows is passed on as it is. `tests/wrong/statements.txt` has a statement for each pattern, so
//! that a test fails when a text changes upstream.

use super::Mistake::{self, *};

/// A known text: the mistake, the text, what to say instead, and a hint, which may be empty.
type Pattern = (Mistake, &'static str, &'static str, &'static str);

/// What an error is in Eris' words.
pub(super) struct Told {
    pub mistake: Mistake,
    pub message: String,
    pub hint: Option<String>,
}

const TYPES: &str = "CAST one of the two to the other's type";
const ONE_ROW: &str = "LIMIT 1 or an aggregate such as max() makes one row of it";
const CONDITION: &str = "compare it with something, such as {0} = 1";
const TRY: &str = "TRY_CAST yields NULL instead";

/// The first that fits is taken.
#[rustfmt::skip]
const PATTERNS: &[Pattern] = &[
    (InvalidTextRepresentation, "Cannot cast string '{}' to value of {} type in {}", "cannot cast '{0}' to {1} in {2}", TRY),
    (InvalidTextRepresentation, "Cannot cast string '{}' to value of {} type", "cannot cast '{0}' to {1}", TRY),
    (NumericOutOfRange, "Can't cast value {} to type {} in {}", "{0} is out of range for {1} in {2}", "CAST to a larger type, or TRY_CAST, which yields NULL instead"),
    (NumericOutOfRange, "Can't cast value {} to type {}", "{0} is out of range for {1}", "CAST to a larger type, or TRY_CAST, which yields NULL instead"),
    (CannotCoerce, "Unsupported CAST from {} to {}", "CAST from {0} to {1}", ""),
    (UndefinedObject, "Unsupported SQL type {}", "type {0}", "CREATE TABLE and CAST know the types that docs/manual/sql.md lists"),
    (InvalidDatetimeFormat, "Error parsing timestamp from '{}': {}", "cannot cast '{0}' to TIMESTAMP", "timestamps are written 2001-12-31 23:59:59"),
    (InvalidDatetimeFormat, "Invalid input syntax for type interval: {}", "cannot cast {0} to INTERVAL", "intervals are written '1 day', '3 hours 20 minutes'"),
    (DatetimeOverflow, "Date arithmetic overflow: {}", "overflow: the date is out of range", ""),
    (NumericOutOfRange, "{}Array overflow on abs({})", "overflow in abs({1})", "CAST the argument to a wider type"),
    (NumericOutOfRange, "Overflow happened on FACTORIAL({})", "overflow in factorial({0})", ""),
    (InvalidParameterValue, "Unsupported date_trunc granularity: '{}'. Supported values are: {}", "date_trunc does not know '{0}'", "it knows {1}"),
    (InvalidParameterValue, "Date part '{}' not supported", "there is no part '{0}' of a date or time", "there are year, quarter, month, week, day, hour, minute, second, epoch, dow and doy"),
    (InvalidParameterValue, "Format error", "the format of a date or time is none", "a format is written with %Y, %m, %d, %H, %M, %S and the like"),
    (InvalidRegularExpression, "regex parse error:{}error: {}", "the regular expression is wrong: {1}", "a backslash before it makes a mark an ordinary character"),
    (InvalidParameterValue, "Assertion failed: n != 0: Nth value indices are 1 based. 0 is invalid index{}", "elements of a list are counted from 1, not 0", ""),
    (TooLarge, "string size overflow on {}, max size is {}, but got {}", "{0}: a text of {2} bytes is too long", "a text has at most {1} bytes"),
    (TooLarge, "{} requested length {} too large, maximum allowed length is {}", "{0}: a text of {1} characters is too long", "a text has at most {2} bytes"),

    (UndefinedFunction, "{}No function matches the given name and argument types '{}'. You might need to add explicit type casts.\n\tCandidate functions:\n{}", "there is no function {1}", "{2}"),
    (Windowing, "Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: {}", "a window frame that leaves rows behind, of {0}", "begin the frame with UNBOUNDED PRECEDING"),

    (Grouping, "{}column \"{}\" must appear in the GROUP BY clause or must be part of an aggregate function, {}", "column \"{1}\" is neither in GROUP BY nor in an aggregate", "add it to GROUP BY, or take one of its values with any_value({1})"),
    (Grouping, "HAVING clause references: {} must appear in the GROUP BY clause or be used in an aggregate function", "HAVING {0}: the columns are neither in GROUP BY nor in an aggregate", "WHERE filters rows, HAVING filters groups"),
    (Grouping, "Argument {} to grouping function is not in grouping columns", "grouping({0}): the column is not in GROUP BY", ""),
    (InvalidColumnReference, "Cannot find column with position {} in SELECT clause. Valid columns: 1 to {}", "GROUP BY {0}: the query has columns 1 to {1}", ""),
    (InvalidColumnReference, "Order by column out of bounds, specified: {}, max: {}", "ORDER BY {0}: the query has columns 1 to {1}", ""),
    (InvalidParameterValue, "Percentile value must be between 0.0 and 1.0 inclusive, {} is invalid", "a percentile of {0} is not between 0 and 1", ""),

    (InvalidParameterValue, "NTILE requires a positive integer", "ntile takes a positive number of parts", ""),
    (DatatypeMismatch, "Expected an integer value", "a window function takes a whole number there", ""),

    (CardinalityViolation, "Scalar subquery returned more than one row", "a subquery that is used as a value has more than one row", ONE_ROW),
    (Syntax, "Too many columns! The subquery should only return one column: {}", "a subquery that is used as a value has several columns: {0}", "select one of them"),
    (DatatypeMismatch, "expr type {} can't cast to {} in SetComparison", "{0} cannot be compared with {1}", TYPES),
    (DatatypeMismatch, "Cannot create filter with non-boolean predicate '{}' returning {}", "a condition has to be BOOLEAN, but {0} is {1}", CONDITION),
    (DatatypeMismatch, "Join condition must be boolean type, but got {}", "the condition of a join has to be BOOLEAN, not {0}", "compare columns of both tables"),
    (DatatypeMismatch, "Unary operator 'NOT' requires a boolean expression, got {}", "NOT takes BOOLEAN, not {0}", ""),
    (DatatypeMismatch, "Unary operator '{}' only supports {}", "{0} takes a number or an INTERVAL", "CAST the operand"),
    (DatatypeMismatch, "Cannot infer common argument type for logical boolean operation {}", "{0}: the operator takes BOOLEAN on both sides", ""),
    (DatatypeMismatch, "Cannot infer common argument type for comparison operation {}", "{0}: the operator does not compare these types", TYPES),
    (DatatypeMismatch, "Cannot infer common string type for string concat operation {}", "{0}: the operator does not take these types", "CAST both to VARCHAR"),
    (DatatypeMismatch, "Cannot coerce arithmetic expression {} to valid types", "{0}: the operator does not take these types", TYPES),
    (DatatypeMismatch, "Cannot get result type for temporal operation {}: {}", "{0}: the operator does not take these types", TYPES),
    (DatatypeMismatch, "There isn't a common type to coerce {} and {} in {} expression", "{2} of {0} and {1}: it takes texts", "CAST both to VARCHAR"),

    (Syntax, "{} queries have different number of columns", "the queries of {0} have different numbers of columns", ""),
    (InvalidLimit, "LIMIT must be >= 0, '{}' was provided", "LIMIT {0} is negative", ""),
    (InvalidOffset, "OFFSET must be >=0, '{}' was provided", "OFFSET {0} is negative", ""),
    (DatatypeMismatch, "Expected {} to be an integer or null, but got {}", "{0} takes a whole number, not {1}", ""),
    (InvalidColumnReference, "Source table contains {} columns but only {} names given as column alias", "{1} names for {0} columns", "an alias with names has one for each column"),
    (DatatypeMismatch, "Argument #{} must be {}, got {}", "argument {0} is {2}, but has to be {1}", ""),
    (InvalidParameterValue, "Step cannot be zero", "the step of a series is 0", ""),
    (UndefinedFunction, "{} function requires {} arguments", "{0} takes {1} arguments", ""),
];

/// What to say instead of this text, if it is known.
pub(super) fn tell(text: &str) -> Option<Told> {
    let text = text.strip_prefix("Execution error: ").unwrap_or(text);
    PATTERNS
        .iter()
        .find_map(|(mistake, pattern, message, hint)| {
            let gaps = gaps(pattern, text)?;
            let gaps: Vec<String> = gaps.into_iter().map(plain).collect();
            let hint = fill(hint, &gaps).replace("\n", "; ");
            Some(Told {
                mistake: *mistake,
                message: fill(message, &gaps),
                hint: (!hint.is_empty()).then_some(hint),
            })
        })
}

/// What stands in the gaps of a pattern, if the text is one like it.
fn gaps<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = pattern.split("{}");
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

fn fill(template: &str, gaps: &[String]) -> String {
    let mut filled = template.to_owned();
    for (at, gap) in gaps.iter().enumerate() {
        filled = filled.replace(&format!("{{{at}}}"), gap);
    }
    filled
}

/// What a gap says, without marks that mean nothing to the reader: lists of candidates become calls, each once.
fn plain(gap: &str) -> String {
    if !gap.starts_with('\t') {
        return gap.trim().to_owned();
    }
    const SHOWN: usize = 6;
    let mut calls: Vec<String> = Vec::new();
    for line in gap.lines() {
        let call = line.trim().replace("(1)", "").replace("Null", "NULL");
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    let more = if calls.len() > SHOWN { ", …" } else { "" };
    calls.truncate(SHOWN);
    format!("it is called as {}{more}", calls.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_fixed_parts() {
        assert_eq!(gaps("a {} b {}", "a x b y z"), Some(vec!["x", "y z"]));
        assert_eq!(gaps("{}: {} end", "q: r end"), Some(vec!["q", "r"]));
        assert_eq!(gaps("a {} b", "a x c"), None);
        assert_eq!(gaps("a", "a b"), None);
        let told = tell("Cannot cast string 'x' to value of DATE type").unwrap();
        assert_eq!(told.message, "cannot cast 'x' to DATE");
        assert_eq!(told.hint.as_deref(), Some(TRY));
        assert_eq!(told.mistake, InvalidTextRepresentation);
        assert!(tell("table \"t\" does not exist").is_none());
    }

    /// `tests/wrong.rs` runs these statements: what they say is what upstream's text has become.
    #[test]
    fn a_statement_shows_every_pattern() {
        let cases = include_str!("../../tests/wrong/statements.txt");
        let told: Vec<&str> = cases
            .lines()
            .filter_map(|line| line.strip_prefix("  | "))
            .collect();
        for (mistake, pattern, message, _) in PATTERNS {
            let expected = (0..3).fold((*message).to_owned(), |message, gap| {
                message.replace(&format!("{{{gap}}}"), "{}")
            });
            let says = |line: &&str| {
                let text = line.strip_prefix(&format!("[{}] ", mistake.sqlstate()));
                let not_supported = line.strip_prefix("[0A000] not supported yet: ");
                text.or(not_supported).is_some_and(|text| {
                    let unplaced = text.split_once(": ").map_or(text, |(place, rest)| {
                        if place.starts_with("line ") {
                            rest
                        } else {
                            text
                        }
                    });
                    gaps(&expected, unplaced).is_some()
                })
            };
            assert!(told.iter().any(says), "no statement shows {pattern:?}");
        }
    }
}
