//! The name that was probably meant by one that is unknown, for hints.

/// The candidate that was probably meant: at most a third of the letters differ.
pub fn most_similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    candidates
        .map(|candidate| {
            (
                distance(
                    &wanted,
                    &candidate.to_lowercase().chars().collect::<Vec<_>>(),
                ),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= wanted.len().div_ceil(3) && *distance < wanted.len())
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        let names = ["lineorder", "part", "supplier"];
        assert_eq!(
            most_similar("lineordr", names.into_iter()).as_deref(),
            Some("lineorder")
        );
        assert_eq!(
            most_similar("Suplier", names.into_iter()).as_deref(),
            Some("supplier")
        );
        assert_eq!(most_similar("weather", names.into_iter()), None);
    }

    #[test]
    fn distances() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, expected) in [
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(&chars(a), &chars(b)), expected);
        }
    }
}
