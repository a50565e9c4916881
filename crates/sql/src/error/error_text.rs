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
//! A text that nobody knows is passed on as it is. `tests/wrong/statements.txt` has a statement for each pattern. A
//! test runs them and asks which patterns were met. So it fails when a text changes upstream.

#[cfg(test)]
mod tests;

use super::Mistake::{self, *};
use super::SqlErrorKind;
use super::position::Position;
use super::values::mistake_of_string;

/// A known text: the text, what to say instead, and a hint, which may be empty.
type Pattern = (&'static str, &'static str, &'static str);

/// What an error is in Eris' words.
pub(super) struct Told {
    pub kind: SqlErrorKind,
    pub hint: Option<String>,
}

const TYPES: &str = "CAST one of the two to the other's type";
const ONE_ROW: &str = "LIMIT 1 or an aggregate such as max() makes one row of it";
const CONDITION: &str = "compare it with something, such as {0} = 1";
const TRY: &str = "TRY_CAST yields NULL instead";

/// Texts that tell a mistake. The first that fits is taken. Where a text tells the string that is no value, its mistake
/// depends on the string: see [`mistake_of`].
///
/// The codes are PostgreSQL's for the same statement, with these exceptions:
///
/// - A string constant is VARCHAR here. PostgreSQL takes it for a value of the type that is needed. So `abs('x')` and
///   `WHERE 'x'` are 42883 and 42804 here, as those of a VARCHAR column are there, but there they are 22P02. Functions
///   and conditions would have to try all their types.
/// - VARCHAR is compared with numbers and dates: `b = 5` casts each value, and the first that is no number is 22P02.
///   PostgreSQL has no such operator, 42883.
/// - The second argument of lag() and the like is 22P02 whatever it is, for the text does not tell it. PostgreSQL says
///   so of a string constant, and 42883 of other types.
/// - LIMIT takes no string and no fraction. PostgreSQL casts the first and rounds the second.
/// - An element 0 of a list is 22016, as of nth_value(), which DataFusion makes of it. PostgreSQL gives NULL.
#[rustfmt::skip]
const MISTAKES: &[(Mistake, Pattern)] = &[
    (InvalidTextRepresentation, ("Cannot cast string '{}' to value of {} type in {}", "cannot cast '{0}' to {1} in {2}", TRY)),
    (InvalidTextRepresentation, ("Cannot cast string '{}' to value of {} type", "cannot cast '{0}' to {1}", TRY)),
    (NumericOutOfRange, ("Can't cast value {} to type {} in {}", "{0} is out of range for {1} in {2}", "CAST to a larger type, or TRY_CAST, which yields NULL instead")),
    (NumericOutOfRange, ("Can't cast value {} to type {}", "{0} is out of range for {1}", "CAST to a larger type, or TRY_CAST, which yields NULL instead")),
    (InvalidTextRepresentation, ("Cannot cast value '{}' to value of {} type", "cannot cast '{0}' to {1}", TRY)),
    (NumericOutOfRange, ("{} is too large to store in a DECIMAL of precision {}. Max is {}", "{0} is out of range for a DECIMAL of {1} digits, which is {2} at most", "")),
    (NumericOutOfRange, ("{} is too small to store in a DECIMAL of precision {}. Min is {}", "{0} is out of range for a DECIMAL of {1} digits, which is {2} at least", "")),
    (UndefinedFunction, ("Implicit CAST from {} to {}", "{0} does not become {1} by itself", "CAST(… AS {1}) shows it as a string")),
    (CannotCoerce, ("Unsupported CAST from {} to {}", "there is no CAST from {0} to {1}", "")),
    (InvalidDatetimeFormat, ("Error parsing timestamp from '{}' using format '{}': {}", "'{0}' is no date or time of the format '{1}'", "")),
    (InvalidDatetimeFormat, ("Error parsing timestamp from '{}': {}", "cannot cast '{0}' to TIMESTAMP", "timestamps are written 2001-12-31 23:59:59")),
    (InvalidDatetimeFormat, ("Invalid input syntax for type interval: {}", "cannot cast {0} to INTERVAL", "intervals are written '1 day', '3 hours 20 minutes'")),
    (IntervalOverflow, ("Unable to represent {} in a signed {}-bit integer", "an interval is out of range: {0}", "")),
    (DatetimeOverflow, ("{} value '{}' is out of range", "{0} {1} is out of range", "")),
    (DatetimeOverflow, ("Cannot cast to INTERVAL. Overflowing on {}", "overflow: the date is out of range", "")),
    (DatetimeOverflow, ("TIMESTAMP out of range", "overflow: the timestamp is out of range", "")),
    (NumericOutOfRange, ("{}Array overflow on abs({})", "overflow in abs({1})", "CAST the argument to a wider type")),
    (NumericOutOfRange, ("Overflow happened on FACTORIAL({})", "overflow in factorial({0})", "")),
    (InvalidPower, ("cannot take square root of a negative number", "a negative number has no square root", "")),
    (InvalidPower, ("zero raised to a negative power is undefined", "0 has no negative power", "")),
    (InvalidParameterValue, ("invalid Unicode scalar value: -{}", "chr(-{0}): characters have positive numbers", "")),
    (TooLarge, ("invalid Unicode scalar value: {}", "chr({0}): no character has this number", "")),
    (InvalidParameterValue, ("Unsupported date_trunc granularity: '{}'. Supported values are: {}", "date_trunc does not know '{0}'", "it knows {1}")),
    (InvalidParameterValue, ("Unknown time zone '{}'", "there is no time zone '{0}'", "zones are written 'Europe/Berlin', '+02:00' or 'UTC'")),
    (UndefinedFunction, ("count takes one expression, not {}", "count takes one expression, not {0}", "count(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)")),
    (InvalidParameterValue, ("'{}' is no part of a date or time", "there is no part '{0}' of a date or time", "there are year, quarter, month, week, day, hour, minute, second and microsecond")),
    (InvalidParameterValue, ("Date part '{}' not supported", "there is no part '{0}' of a date or time", "there are year, quarter, month, week, day, hour, minute, second, epoch, dow and doy")),
    (InvalidParameterValue, ("Format error", "the format of a date or time is none", "a format is written with %Y, %m, %d, %H, %M, %S and the like")),
    (InvalidRegularExpression, ("regex parse error:{}error: {}", "the regular expression is wrong: {1}", "a backslash before it makes a mark an ordinary character")),
    (InvalidParameterValue, ("printf: {}", "printf: {0}", "")),
    (InvalidParameterValue, ("format: {}", "format: {0}", "")),
    (Syntax, ("ASOF JOIN compares an expression of its left side with one of its right side, not {}", "ASOF JOIN compares an expression of its left side with one of its right side, not {0}", "a ASOF JOIN b ON a.k = b.k AND a.t >= b.t")),
    (InvalidEscapeSequence, ("SIMILAR TO '{}': nothing follows the escape character", "SIMILAR TO '{0}': nothing follows the escape character", "")),
    (InvalidNthValue, ("Assertion failed: n != 0: Nth value indices are 1 based. 0 is invalid index{}", "elements of a list are counted from 1, not 0", "")),
    (TooLarge, ("string size overflow on {}, max size is {}, but got {}", "{0}: a string of {2} bytes is too long", "a string has at most {1} bytes")),
    (TooLarge, ("{} requested length {} too large, maximum allowed length is {}", "{0}: a string of {1} characters is too long", "a string has at most {2} bytes")),

    (DatatypeMismatch, ("{}No function matches the given name and argument types 'coalesce({})'. You might need to add explicit type casts.\n\tCandidate functions:\n{}", "coalesce takes values of one type, not {1}", TYPES)),
    (DatatypeMismatch, ("{}No function matches the given name and argument types 'array_element({}, {})'. You might need to add explicit type casts.\n\tCandidate functions:\n{}", "{1} has no elements: only a list has", "")),
    (UndefinedFunction, ("{}No function matches the given name and argument types '{}'. You might need to add explicit type casts.\n\tCandidate functions:\n{}", "there is no function {1}", "{2}")),
    (UndefinedFunction, ("unnest() can only be applied to array, struct and null", "unnest takes a list or a struct", "")),

    (Grouping, ("{}column \"{}\" must appear in the GROUP BY clause or must be part of an aggregate function, {}", "column \"{1}\" is neither in GROUP BY nor in an aggregate", "add it to GROUP BY, or take one of its values with any_value({1})")),
    (Grouping, ("Aggregate function calls cannot contain window function calls: '{}' is nested inside '{}'", "an aggregate of a window function: {0}", "compute the window function in a subquery")),
    (Grouping, ("HAVING clause references: {} must appear in the GROUP BY clause or be used in an aggregate function", "HAVING {0}: the columns are neither in GROUP BY nor in an aggregate", "WHERE filters rows, HAVING filters groups")),
    (Grouping, ("Argument {} to grouping function is not in grouping columns", "grouping({0}): the column is not in GROUP BY", "")),
    (InvalidColumnReference, ("Cannot find column with position {} in SELECT clause. Valid columns: 1 to {}", "GROUP BY {0}: the query has columns 1 to {1}", "")),
    (InvalidColumnReference, ("Order by column out of bounds, specified: {}, max: {}", "ORDER BY {0}: the query has columns 1 to {1}", "")),
    (NumericOutOfRange, ("Percentile value must be between 0.0 and 1.0 inclusive, {} is invalid", "a percentile of {0} is not between 0 and 1", "")),

    (InvalidNtile, ("NTILE requires a positive integer", "ntile takes a positive number of parts", "")),
    (InvalidTextRepresentation, ("Expected a signed integer literal for the second argument of nth_value", "nth_value takes a whole number there", "")),
    (InvalidTextRepresentation, ("Expected an integer value", "a window function takes a whole number there", "")),

    (CardinalityViolation, ("Scalar subquery returned more than one row", "a subquery that is used as a value has more than one row", ONE_ROW)),
    (Syntax, ("Too many columns! The subquery should only return one column: {}", "a subquery that is used as a value has several columns: {0}", "select one of them")),
    (DatatypeMismatch, ("Cannot create filter with non-boolean predicate '{}' returning {}", "a condition has to be BOOLEAN, but {0} is {1}", CONDITION)),
    (DatatypeMismatch, ("Join condition must be boolean type, but got {}", "the condition of a join has to be BOOLEAN, not {0}", "compare columns of both tables")),
    (DatatypeMismatch, ("Unary operator 'NOT' requires a boolean expression, got {}", "NOT takes BOOLEAN, not {0}", "")),
    (UndefinedFunction, ("Unary operator '{}' only supports {}", "{0} takes a number or an INTERVAL", "CAST the operand")),
    (DatatypeMismatch, ("Cannot infer common argument type for logical boolean operation {}", "{0}: the operator takes BOOLEAN on both sides", "")),
    (UndefinedFunction, ("Cannot infer common argument type for comparison operation {}", "{0}: the operator does not compare these types", TYPES)),
    (UndefinedFunction, ("Cannot infer common string type for string concat operation {}", "{0}: the operator does not take these types", "CAST both to VARCHAR")),
    (UndefinedFunction, ("Cannot coerce arithmetic expression {} to valid types", "{0}: the operator does not take these types", TYPES)),
    (UndefinedFunction, ("Cannot get result type for temporal operation {}: {}", "{0}: the operator does not take these types", TYPES)),
    (DatatypeMismatch, ("Failed to coerce types {} and {} in BETWEEN expression{}", "BETWEEN of {0} and {1}: these types are not compared", TYPES)),
    (UndefinedFunction, ("There isn't a common type to coerce {} and {} in {} expression", "{2} of {0} and {1}: it takes strings", "CAST both to VARCHAR")),

    (Syntax, ("{} queries have different number of columns", "the queries of {0} have different numbers of columns", "")),
    (InvalidLimit, ("LIMIT must be >= 0, '{}' was provided", "LIMIT {0} is negative", "")),
    (InvalidOffset, ("OFFSET must be >=0, '{}' was provided", "OFFSET {0} is negative", "")),
    (InvalidTextRepresentation, ("Expected {} to be an integer or null, but got VARCHAR", "{0} takes a whole number, not VARCHAR", "")),
    (DatatypeMismatch, ("Expected {} to be an integer or null, but got {}", "{0} takes a whole number, not {1}", "")),
    (InvalidColumnReference, ("Source table contains {} columns but only {} names given as column alias", "{1} names for {0} columns", "")),
    (UndefinedFunction, ("Argument #{} must be {}, got {}", "argument {0} is {2}, but has to be {1}", "")),
    (InvalidParameterValue, ("Step cannot be zero", "the step of a series is 0", "")),
    (UndefinedFunction, ("{} function requires {} arguments", "{0} takes {1} arguments", "")),
];

/// Texts that tell of SQL that Eris does not do. The first that fits is taken.
#[rustfmt::skip]
const NOT_SUPPORTED: &[Pattern] = &[
    ("Unsupported SQL type {}", "type {0}", "CREATE TABLE and CAST know the types that docs/manual/sql.md lists"),
    ("Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: {}", "a window frame that leaves rows behind, of {0}", "begin the frame with UNBOUNDED PRECEDING"),
];

/// What to say instead of this text, if it is known.
pub(super) fn tell(text: &str) -> Option<Told> {
    let (_pattern, told) = find(unprefixed(text))?;
    #[cfg(test)]
    tests::note(_pattern);
    Some(told)
}

/// The pattern that a text is like, and what to say instead.
fn find(text: &str) -> Option<(&'static str, Told)> {
    let mistake = MISTAKES.iter().find_map(|(mistake, pattern)| {
        let (gaps, message, hint) = fit(pattern, text)?;
        let kind = SqlErrorKind::Invalid(mistake_of(*mistake, &gaps), message);
        Some((pattern.0, Told { kind, hint }))
    });
    mistake.or_else(|| {
        NOT_SUPPORTED.iter().find_map(|pattern| {
            let (_, message, hint) = fit(pattern, text)?;
            let kind = SqlErrorKind::NotSupported(message);
            Some((pattern.0, Told { kind, hint }))
        })
    })
}

/// The message without the prefix that tells of its kind.
pub(super) fn unprefixed(text: &str) -> &str {
    text.strip_prefix("Execution error: ").unwrap_or(text)
}

/// A message of the parser, without the place in words at its end, and this place.
pub(crate) fn of_parser(message: &str) -> (String, Option<Position>) {
    let split = || {
        let (text, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        Some((text, Position { line, column }))
    };
    let (text, place) = match split() {
        Some((text, place)) => (text, Some(place)),
        None => (message, None),
    };
    (text.replace("found: EOF", "found: the end"), place)
}

/// The mistake of a text with these gaps.
fn mistake_of(mistake: Mistake, gaps: &[String]) -> Mistake {
    match (mistake, gaps) {
        (InvalidTextRepresentation, [value, data_type, ..]) => mistake_of_string(value, data_type),
        (InvalidDatetimeFormat, [value, _]) => mistake_of_string(value, "TIMESTAMP"),
        (mistake, _) => mistake,
    }
}

/// The gaps, the message and the hint, if the text is one like this pattern.
fn fit(
    (text, message, hint): &Pattern,
    told: &str,
) -> Option<(Vec<String>, String, Option<String>)> {
    let gaps: Vec<String> = gaps(text, told)?.into_iter().map(plain).collect();
    let hint = fill(hint, &gaps).replace("\n", "; ");
    let message = fill(message, &gaps);
    Some((gaps, message, (!hint.is_empty()).then_some(hint)))
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
        // A function that looks at its arguments itself lists no types.
        if !calls.contains(&call) && !call.contains("UserDefined") {
            calls.push(call);
        }
    }
    if calls.is_empty() {
        return String::new();
    }
    let more = if calls.len() > SHOWN { ", …" } else { "" };
    calls.truncate(SHOWN);
    format!("it is called as {}{more}", calls.join(", "))
}
