//! The words of a command's arguments.

/// Words between blanks. `'…'` and `"…"` keep blanks together; a doubled quote within them stands for one.
///
/// # Errors
/// A quote that is not closed.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err("a quote is not closed".to_owned()),
                        Some(next) if next == c && chars.peek() == Some(&c) => {
                            chars.next();
                            word.push(c);
                        }
                        Some(next) if next == c => break,
                        Some(next) => word.push(next),
                    }
                }
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_keep_blanks_and_may_be_doubled() {
        let split = words("a  'b c' \"d\"e '' 'it''s'").expect("closed");
        assert_eq!(split, ["a", "b c", "de", "", "it's"]);
        assert!(words("'a").is_err());
    }
}
