//! `SIMILAR TO` as SQL has it.
//!
//! **Stands for** DataFusion's operator, which takes the pattern for a regular expression and looks for it anywhere.
//! SQL's pattern is matched by the whole string. `%` stands for any string there, `_` for any character. So a function
//! writes the pattern as a regular expression, and a match with that is looked for:
//!
//! ```text
//!  x SIMILAR TO '(a|b)_.%'     x ~ similar_to_escape('(a|b)_.%')      that is   ^(?s:(?:a|b).\..*)$
//! ```
//!
//! The function is PostgreSQL's.

use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, exec_err};
use datafusion::logical_expr::expr::{BinaryExpr, Like};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

/// `SIMILAR TO` as a match with a regular expression.
pub(crate) fn rewrite(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::SimilarTo(like) => Transformed::yes(as_match(like)),
        other => Transformed::no(other),
    })
}

fn as_match(like: Like) -> Expr {
    let function = ScalarUDF::from(SimilarToEscape::new(like.escape_char.unwrap_or('\\')));
    let op = match like.negated {
        true => Operator::RegexNotMatch,
        false => Operator::RegexMatch,
    };
    let pattern = Box::new(function.call(vec![*like.pattern]));
    Expr::BinaryExpr(BinaryExpr::new(like.expr, op, pattern))
}

/// `similar_to_escape(pattern)`: the pattern as a regular expression.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SimilarToEscape {
    escape: char,
    signature: Signature,
}

impl SimilarToEscape {
    fn new(escape: char) -> Self {
        SimilarToEscape {
            escape,
            signature: Signature::string(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for SimilarToEscape {
    fn name(&self) -> &str {
        "similar_to_escape"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        crate::columns::of_column(&args, |patterns| self.expressions(patterns))
    }
}

impl SimilarToEscape {
    fn expressions(&self, patterns: &ArrayRef) -> Result<ArrayRef> {
        let patterns = cast(patterns, &DataType::Utf8View)?;
        let expressions = patterns.as_string_view().iter().map(|pattern| {
            pattern
                .map(|pattern| expression(pattern, self.escape))
                .transpose()
        });
        let expressions = expressions.collect::<Result<StringViewArray>>()?;
        Ok(Arc::new(expressions))
    }
}

/// A pattern of `SIMILAR TO` as a regular expression.
fn expression(pattern: &str, escape: char) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    out.push_str("^(?s:");
    let mut characters = pattern.chars().peekable();
    let mut in_list = false;
    while let Some(character) = characters.next() {
        match character {
            _ if character == escape => match characters.next() {
                Some(escaped) => literal(escaped, &mut out),
                None => {
                    return exec_err!(
                        "SIMILAR TO '{pattern}': nothing follows the escape character"
                    );
                }
            },
            ']' if in_list => {
                in_list = false;
                out.push(']');
            }
            // A bracket in a list is a character of it, but for `[:alpha:]`.
            '[' if in_list && characters.peek() != Some(&':') => out.push_str("\\["),
            '&' | '~' if in_list => literal(character, &mut out),
            _ if in_list => {
                out.push(character);
                if character == ':' && out.ends_with("[:") {
                    for named in characters.by_ref() {
                        out.push(named);
                        if named == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_list = true;
                out.push('[');
                if let Some('^') = characters.peek() {
                    characters.next();
                    out.push('^');
                }
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => literal(character, &mut out),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// A character that stands for itself.
fn literal(character: char, out: &mut String) {
    if character.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(character);
}

#[cfg(test)]
mod tests {
    use super::expression;

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, expected) in [
            ("a%b_", "^(?s:a.*b.)$"),
            ("(a|b)+", "^(?s:(?:a|b)+)$"),
            ("a.b^c$", r"^(?s:a\.b\^c\$)$"),
            (r"100\%", r"^(?s:100\%)$"),
            ("[^a-c%_]{2}", "^(?s:[^a-c%_]{2})$"),
            ("[[:digit:]x[]", r"^(?s:[[:digit:]x\[])$"),
        ] {
            assert_eq!(expression(pattern, '\\').unwrap(), expected, "{pattern}");
        }
        assert_eq!(expression("10#%", '#').unwrap(), r"^(?s:10\%)$");
        assert!(expression("a#", '#').is_err());
    }
}
