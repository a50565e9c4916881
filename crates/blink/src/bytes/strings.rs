//! Byte strings as words, and what separates two of them.

/// Eight bytes of a string as a number that is ordered as they are; zeros behind its end.
#[inline]
pub fn word_at(bytes: &[u8], from: usize) -> u64 {
    let Some(behind) = bytes.get(from..) else {
        return 0;
    };
    if let Some(word) = behind.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    match bytes.last_chunk() {
        Some(_) if behind.is_empty() => 0,
        // The last eight, of which the first ones lie before.
        Some(last) => u64::from_be_bytes(*last) << (8 * (8 - behind.len())),
        None => (0..).zip(behind).fold(0, |word, (at, &byte)| {
            word | u64::from(byte) << (56 - 8 * at)
        }),
    }
}

/// How many words so many bytes take.
#[inline]
pub fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// How many bytes two strings have in common from their beginnings on.
#[inline]
pub fn common(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let mut at = 0;
    while at < most {
        let differ = word_at(a, at) ^ word_at(b, at);
        if differ != 0 {
            return most.min(at + differ.leading_zeros() as usize / 8);
        }
        at += 8;
    }
    most
}

/// A short string that is not less than `last`, and less than `next`, which is greater. Of the ways to find one, all of
/// which end soon behind what both have in common, this takes the first that fits.
pub fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let same = common(last, next);
    if last.len() <= same + 1 {
        return last.to_vec();
    }
    if next.len() > same + 1 {
        return next[..=same].to_vec();
    }
    // The beginning of `next` is itself. So it is one of `last`, with its end made one greater.
    let greater = |at: usize| {
        let end = last[at].checked_add(1)?;
        let mut found = last[..at].to_vec();
        found.push(end);
        (&found[..] < next).then_some(found)
    };
    let found = (same..last.len() - 1).find_map(greater);
    found.unwrap_or_else(|| last.to_vec())
}
