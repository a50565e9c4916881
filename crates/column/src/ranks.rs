//! The order of a dictionary's strings.

use arrow_array::{Array, StringViewArray};
use eris_types::Code;

/// The order of the strings of one dictionary version, both ways. Comparing ranks is comparing strings byte by byte.
#[derive(Clone, Debug)]
pub struct RankArray {
    ranks: Box<[u32]>,
    codes: Box<[u32]>,
}

impl RankArray {
    pub(crate) fn new(values: &StringViewArray) -> Self {
        // The first bytes decide most comparisons without a look at the strings.
        let mut sorted: Vec<(u64, u32)> = (0..values.len())
            .map(|code| (first_bytes(values.value(code)), code as u32))
            .collect();
        sorted.sort_unstable_by(|(a_bytes, a), (b_bytes, b)| {
            let string = |code: u32| values.value(code as usize);
            a_bytes
                .cmp(b_bytes)
                .then_with(|| string(*a).cmp(string(*b)))
        });
        let codes: Box<[u32]> = sorted.into_iter().map(|(_, code)| code).collect();
        let mut ranks = vec![0; codes.len()].into_boxed_slice();
        for (rank, &code) in codes.iter().enumerate() {
            ranks[code as usize] = rank as u32;
        }
        RankArray { ranks, codes }
    }

    /// The place of a code's string in byte order, from 0.
    pub fn rank(&self, code: Code) -> u32 {
        self.ranks[code.index()]
    }

    /// The code of the string at a place.
    pub fn code(&self, rank: u32) -> Code {
        Code(self.codes[rank as usize])
    }

    /// All ranks, by code.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// All codes, in the byte order of their strings.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }
}

/// The first eight bytes, as a number that orders as they do; shorter strings are filled up with zeros.
fn first_bytes(string: &str) -> u64 {
    let mut bytes = [0; 8];
    let len = string.len().min(8);
    bytes[..len].copy_from_slice(&string.as_bytes()[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_bytes() {
        let strings = [
            "b",
            "",
            "a\0",
            "a",
            "a longer one b",
            "a longer one a",
            "ä",
            "\0",
        ];
        let ranks = RankArray::new(&StringViewArray::from_iter_values(strings));
        let mut sorted = strings;
        sorted.sort_unstable();
        for (rank, string) in sorted.into_iter().enumerate() {
            let code = ranks.code(rank as u32);
            assert_eq!(strings[code.index()], string);
            assert_eq!(ranks.rank(code), rank as u32);
        }
        assert_eq!((ranks.ranks().len(), ranks.codes().len()), (8, 8));
    }
}
