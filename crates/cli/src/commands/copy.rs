//! psql's `\copy`, as the COPY statement that it means: here, client and server have the same files.

use super::path;
use eris_sql::{LexemeKind, lexemes};

/// The COPY statement of what follows `\copy`: only the file's name may be written otherwise, without quotes and with
/// `~`.
///
/// # Errors
/// Neither FROM nor TO, or no file.
pub fn statement(arguments: &str) -> Result<String, String> {
    let (verb, end) = direction(arguments).ok_or("neither FROM nor TO is there")?;
    let before = arguments[..end - verb.len()].trim();
    let rest = arguments[end..].trim_start();
    if before.is_empty() {
        return Err("the table is missing".to_owned());
    }
    let (file, options) = match rest.chars().next() {
        None => return Err("the file is missing".to_owned()),
        Some('\'') => {
            let length = lexemes(rest).next().map_or(0, |string| string.span.end);
            let file = rest[1..length].strip_suffix('\'');
            let file = file.ok_or("a quote is not closed")?;
            (file.replace("''", "'"), &rest[length..])
        }
        Some(_) => {
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..length].to_owned(), &rest[length..])
        }
    };
    let verb = verb.to_uppercase();
    let standard = file.to_lowercase();
    if let "stdin" | "stdout" | "pstdin" | "pstdout" = standard.as_str() {
        let file = standard.trim_start_matches('p').to_uppercase();
        return Ok(format!("COPY {before} {verb} {file}{options}"));
    }
    let file = path(&file).to_string_lossy().replace('\'', "''");
    Ok(format!("COPY {before} {verb} '{file}'{options}"))
}

/// The first FROM or TO that is in no parentheses, and where it ends.
fn direction(text: &str) -> Option<(&str, usize)> {
    let mut depth = 0;
    let mut word = 0..0;
    for lexeme in lexemes(text).chain([eris_sql::Lexeme {
        kind: LexemeKind::Blank,
        span: text.len()..text.len(),
        open: false,
    }]) {
        let part = &text[lexeme.span.clone()];
        let is_word = lexeme.kind == LexemeKind::Other
            && part.chars().all(|c| c == '_' || c.is_alphanumeric());
        if is_word {
            if word.end != lexeme.span.start {
                word.start = lexeme.span.start;
            }
            word.end = lexeme.span.end;
            continue;
        }
        let found = &text[word.clone()];
        if depth == 0 && ["from", "to"].contains(&found.to_lowercase().as_str()) {
            return Some((found, word.end));
        }
        word = lexeme.span.end..lexeme.span.end;
        match part {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::statement;

    #[test]
    fn only_the_file_is_rewritten() {
        for (given, expected) in [
            ("t from 'a.csv'", "COPY t FROM 'a.csv'"),
            (
                "t (a, b) from a.csv csv header",
                "COPY t (a, b) FROM 'a.csv' csv header",
            ),
            (
                "(select 'to' from t) to 'it''s.parquet' (format parquet)",
                "COPY (select 'to' from t) TO 'it''s.parquet' (format parquet)",
            ),
            ("from_table TO x.csv", "COPY from_table TO 'x.csv'"),
        ] {
            assert_eq!(statement(given).as_deref(), Ok(expected));
        }
        for wrong in ["t", "t from", "from a.csv", "t from 'a"] {
            assert!(statement(wrong).is_err(), "{wrong}");
        }
    }
}
