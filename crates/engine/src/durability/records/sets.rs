//! Sets of numbers, as runs or as bits, whichever is shorter.
//!
//! ```text
//! runs   their count · 2 ▪ each: numbers between it and the one before, numbers in it
//! bits   1 ▪ least number ▪ a bit for each number from there on, the lowest first
//! ```

use eris_log::{BadBytes, Bytes, put_bytes, put_number};

/// Writes runs of consecutive numbers, which ascend: the first of each, and how many.
pub fn put(body: &mut Vec<u8>, runs: &[(u32, u32)]) {
    let mut as_runs = Vec::new();
    put_number(&mut as_runs, 2 * runs.len() as u64);
    let mut next = 0;
    for (first, count) in runs {
        put_number(&mut as_runs, (first - next).into());
        put_number(&mut as_runs, (*count).into());
        next = first + count;
    }
    let least = runs.first().map_or(0, |(first, _)| *first);
    if (next - least) as usize / 8 >= as_runs.len() {
        return body.extend(as_runs);
    }
    let mut bits = vec![0u8; (next - least).div_ceil(8) as usize];
    for (first, count) in runs {
        let numbers = first - least..first - least + count;
        numbers.for_each(|number| bits[number as usize / 8] |= 1 << (number % 8));
    }
    let mut as_bits = vec![1];
    put_number(&mut as_bits, least.into());
    put_bytes(&mut as_bits, &bits);
    body.extend(match as_bits.len() < as_runs.len() {
        true => as_bits,
        false => as_runs,
    });
}

/// Reads them back; no two are neighbours.
pub fn read(bytes: &mut Bytes<'_>) -> Result<Vec<(u32, u32)>, BadBytes> {
    let kind = bytes.number()?;
    let bad = BadBytes::Value("a set of numbers");
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut next: u32 = 0;
    let mut add = |gap: u32, count: u32| -> Option<()> {
        let first = next.checked_add(gap)?;
        next = first.checked_add(count)?;
        match runs.last_mut() {
            Some(last) if last.0 + last.1 == first => last.1 += count,
            _ => runs.push((first, count)),
        }
        Some(())
    };
    if kind == 1 {
        let least = bytes.small()?;
        let (mut gap, mut count) = (least, 0);
        for byte in bytes.bytes()? {
            for bit in 0..8 {
                match byte >> bit & 1 == 1 {
                    true => count += 1,
                    false if count > 0 => {
                        add(gap, count).ok_or(BadBytes::Value("a set of numbers"))?;
                        (gap, count) = (1, 0);
                    }
                    false => {
                        gap = gap
                            .checked_add(1)
                            .ok_or(BadBytes::Value("a set of numbers"))?
                    }
                }
            }
        }
        if count > 0 {
            add(gap, count).ok_or(bad)?;
        }
        return Ok(runs);
    }
    if kind % 2 == 1 || kind / 2 > bytes.left().len() as u64 {
        return Err(bad);
    }
    for _ in 0..kind / 2 {
        let (gap, count) = (bytes.small()?, bytes.small()?);
        let added = (count > 0).then(|| add(gap, count)).flatten();
        added.ok_or(BadBytes::Value("a set of numbers"))?;
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(runs: &[(u32, u32)]) -> usize {
        let mut body = Vec::new();
        put(&mut body, runs);
        let mut bytes = Bytes::of(&body, "a set");
        assert_eq!(read(&mut bytes).unwrap(), runs);
        bytes.end().unwrap();
        for end in 0..body.len() {
            assert!(read(&mut Bytes::of(&body[..end], "a set")).is_err());
        }
        body.len()
    }

    proptest! {
        #[test]
        fn sets_are_read_as_they_were_written(
            parts in prop::collection::vec((1u32..200, 1u32..40), 0..300), sparse in any::<bool>(),
        ) {
            let mut next = 0;
            let runs = parts.into_iter().map(|(gap, count)| {
                let (gap, count) = if sparse { (gap * 1000, count) } else { (gap % 3 + 1, count % 3 + 1) };
                let first = next + gap;
                next = first + count;
                (first, count)
            });
            let runs: Vec<(u32, u32)> = runs.collect();
            check(&runs);
        }

        #[test]
        fn any_bytes_are_a_set_or_an_error(body in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(runs) = read(&mut Bytes::of(&body, "a set")) {
                prop_assert!(runs.is_sorted_by(|one, next| one.0 + one.1 < next.0));
            }
        }
    }

    #[test]
    fn a_set_takes_what_the_shorter_form_takes() {
        assert_eq!(check(&[]), 1);
        assert_eq!(check(&[(0, 65_536)]), 5);
        let every_other: Vec<(u32, u32)> = (0..65_536).step_by(2).map(|one| (one, 1)).collect();
        assert!(check(&every_other) < 8_200);
        let few: Vec<(u32, u32)> = (0..10).map(|one| (one * 6_000, 1)).collect();
        assert!(check(&few) < 40);
    }
}
