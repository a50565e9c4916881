//! Linux's number lists, `0-3,8,10-11`: CPUs and nodes in sysfs, procfs and cgroups.

/// Parses a list into ascending numbers without repeats. An empty (or blank) text is the empty list.
///
/// `None` if the text is no list: a word, a range that runs backwards, an empty item.
pub(crate) fn parse(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    let mut numbers = Vec::new();
    if text.is_empty() {
        return Some(numbers);
    }
    for item in text.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Far beyond what Linux can have (8,192 CPUs, 1,024 nodes); keeps a broken file from filling the memory.
const MAX: u32 = 1 << 20;

fn number(text: &str) -> Option<u32> {
    // `parse` alone would take "+3".
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(parse("\n"), Some(vec![]));
        assert_eq!(parse("0\n"), Some(vec![0]));
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse("4-5,0-1,1"), Some(vec![0, 1, 4, 5]));
    }

    #[test]
    fn what_is_no_list_is_rejected() {
        for text in [
            "a",
            "1-",
            "-1",
            "3-2",
            "1,,2",
            "+1",
            "1 2",
            "0-4294967295",
            "99999999999",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_set_of_numbers_comes_back(set in prop::collection::btree_set(0u32..5000, 0..60)) {
            let text = set.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(parse(&text), Some(set.into_iter().collect()));
        }
    }
}
