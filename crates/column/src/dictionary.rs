//! Dictionaries: the strings of a column, numbered.
//!
//! ```text
//! version ─┬─ blocks   0 ─────────────── 4096 ──── 5120 ─ 5300    strings by code; each at least twice as long as the
//!          │                                                      next, so that there are few
//!          ├─ index    ● ● ● ● ● ● ● ●                            hash → code, in parts of a few hundred
//!          ├─ values   all strings as one array                   made when first asked for
//!          └─ ranks    code → place in byte order                 made when first asked for
//! ```
//!
//! A version never changes. The next one shares all blocks and parts with it but those that the new strings fall into,
//! so that adding few strings to a large dictionary costs little. Codes are numbered in order of arrival and keep their
//! meaning in all later versions; they say nothing about the strings' order.

mod index;
mod lookup;

use crate::ranks::RankArray;
use arrow_array::builder::StringViewBuilder;
use arrow_array::{Array, StringViewArray, cast::AsArray};
use eris_types::Code;
use index::Index;
pub use lookup::Unknown;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Beyond so many values a dictionary no longer pays, and text is stored as it is.
pub const DICTIONARY_LIMIT: usize = 1 << 20;

/// One version of a column's dictionary. Cloning is cheap.
#[derive(Clone)]
pub struct Dictionary(Arc<DictionaryVersion>);

#[derive(Clone)]
struct DictionaryVersion {
    len: usize,
    blocks: Vec<Block>,
    index: Index,
    values: OnceLock<StringViewArray>,
    ranks: OnceLock<RankArray>,
}

/// Strings of consecutive codes.
#[derive(Clone)]
struct Block {
    first: usize,
    strings: StringViewArray,
}

/// Bytes of one buffer of strings, which views address with 32 bits.
const BUFFER_BYTES: usize = 1 << 30;

/// Longest string that a view holds itself.
pub(crate) const INLINE_BYTES: usize = 12;

impl Block {
    fn new<'a>(first: usize, strings: impl Iterator<Item = &'a str> + Clone) -> Self {
        let (mut count, mut bytes) = (0, 0);
        for string in strings.clone() {
            count += 1;
            bytes += if string.len() > INLINE_BYTES {
                string.len()
            } else {
                0
            };
        }
        let mut builder = StringViewBuilder::with_capacity(count)
            .with_fixed_block_size(bytes.clamp(1, BUFFER_BYTES) as u32);
        for string in strings {
            builder.append_value(string);
        }
        Block {
            first,
            strings: builder.finish(),
        }
    }

    fn strings(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.strings.len()).map(|at| self.strings.value(at))
    }
}

/// The block that has a code, and the place of the code's string in it.
fn place_of(blocks: &[Block], code: usize) -> (&Block, usize) {
    let block = blocks.partition_point(|block| block.first <= code) - 1;
    let block = &blocks[block];
    (block, code - block.first)
}

/// The string of a code that one of the blocks has.
fn string_of(blocks: &[Block], code: usize) -> &str {
    let (block, place) = place_of(blocks, code);
    block.strings.value(place)
}

impl DictionaryVersion {
    fn get(&self, code: usize) -> Option<&str> {
        if code >= self.len {
            return None;
        }
        Some(string_of(&self.blocks, code))
    }

    /// Adds strings that are in the index already, and merges small blocks so that each stays at least twice as long
    /// as the next.
    fn push(&mut self, new: &[&str]) {
        let mut merged = new.len();
        let mut keep = self.blocks.len();
        while keep > 0 && self.blocks[keep - 1].strings.len() < 2 * merged {
            keep -= 1;
            merged += self.blocks[keep].strings.len();
        }
        let old = self.blocks.split_off(keep);
        let first = self.len + new.len() - merged;
        let strings = old.iter().flat_map(Block::strings);
        self.blocks
            .push(Block::new(first, strings.chain(new.iter().copied())));
        self.len += new.len();
    }
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({} values)", self.len())
    }
}

impl Dictionary {
    /// Without values.
    pub fn new() -> Self {
        Dictionary(Arc::new(DictionaryVersion {
            len: 0,
            blocks: Vec::new(),
            index: Index::default(),
            values: OnceLock::new(),
            ranks: OnceLock::new(),
        }))
    }

    /// Number of values. Codes are `0..len`.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The string with this code; `None` if this version has no such code.
    pub fn get(&self, code: Code) -> Option<&str> {
        self.0.get(code.index())
    }

    /// The code of a string, if it is in this version.
    pub fn code(&self, string: &str) -> Option<Code> {
        let found = self
            .0
            .index
            .find(string, |code| self.0.get(code as usize) == Some(string));
        found.map(Code)
    }

    /// All strings, in the order of their codes; none is NULL. Made on first use, from views alone, and kept.
    pub fn values(&self) -> &StringViewArray {
        self.0.values.get_or_init(|| match &self.0.blocks[..] {
            [] => StringViewArray::new_null(0),
            [block] => block.strings.clone(),
            blocks => {
                let blocks: Vec<&dyn Array> = blocks
                    .iter()
                    .map(|block| &block.strings as &dyn Array)
                    .collect();
                let values = arrow_select::concat::concat(&blocks);
                values.expect("views of one type").as_string_view().clone()
            }
        })
    }

    /// The version with these strings too: those that are known keep their codes, the others get the next ones in
    /// order of appearance. If all are known, this very version.
    ///
    /// # Panics
    /// If there would be more than 2³¹ values.
    pub fn extend<'a>(&self, new: impl Iterator<Item = &'a str>) -> Dictionary {
        let mut next = self.clone();
        next.add(new);
        next
    }

    /// Becomes the version with these strings too. What no other version shares is changed in place.
    pub(crate) fn add<'a>(&mut self, new: impl Iterator<Item = &'a str>) {
        let mut new = new;
        // The first unknown string decides that there will be a next version.
        let Some(first) = new.find(|string| self.code(string).is_none()) else {
            return;
        };
        let version = Arc::make_mut(&mut self.0);
        (version.values, version.ranks) = (OnceLock::new(), OnceLock::new());
        let known = version.len;
        let mut added: Vec<&str> = Vec::new();
        for string in std::iter::once(first).chain(new) {
            let code = u32::try_from(known + added.len()).expect("fewer than 2^31 values");
            assert!(code < lookup::PLACE, "fewer than 2^31 values");
            let equals = |code: u32| match (code as usize).checked_sub(known) {
                Some(place) => added[place] == string,
                None => string_of(&version.blocks, code as usize) == string,
            };
            if version.index.find_or_insert(string, code, equals).is_none() {
                added.push(string);
            }
        }
        version.push(&added);
    }

    /// For each code, the place of its string in byte order. Made on first use and kept.
    pub fn rank(&self) -> &RankArray {
        self.0.ranks.get_or_init(|| RankArray::new(self.values()))
    }

    /// Bytes of memory taken by strings and index, on the heap. Versions share most of them.
    pub fn bytes(&self) -> usize {
        let strings = |array: &StringViewArray| array.get_buffer_memory_size();
        let blocks: usize = self
            .0
            .blocks
            .iter()
            .map(|block| strings(&block.strings))
            .sum();
        blocks + self.0.index.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
        range
            .map(|number| format!("the value with number {number}"))
            .collect()
    }

    #[test]
    fn versions_keep_their_values_and_share_codes() {
        let old = Dictionary::new().extend(["b", "a", "b", ""].into_iter());
        let new = old.extend(["c", "a", "c"].into_iter());
        assert_eq!((old.len(), new.len()), (3, 4));
        assert_eq!(old.code("c"), None);
        assert_eq!(new.code("c"), Some(Code(3)));
        for version in [&old, &new] {
            assert_eq!(version.code("b"), Some(Code(0)));
            assert_eq!(version.get(Code(2)), Some(""));
        }
        assert_eq!(old.get(Code(3)), None);
        assert!(
            Arc::ptr_eq(&new.0, &new.extend(["a"].into_iter()).0),
            "nothing new"
        );
    }

    #[test]
    fn growing_by_one_keeps_few_blocks() {
        let mut dictionary = Dictionary::new();
        let strings = numbered(0..3000);
        for string in &strings {
            dictionary = dictionary.extend([string.as_str()].into_iter());
        }
        assert!(
            dictionary.0.blocks.len() <= 12,
            "{} blocks",
            dictionary.0.blocks.len()
        );
        let values: Vec<_> = dictionary.values().iter().flatten().collect();
        assert_eq!(values, strings);
        for (code, string) in strings.iter().enumerate() {
            assert_eq!(dictionary.code(string), Some(Code(code as u32)));
            assert_eq!(dictionary.get(Code(code as u32)), Some(string.as_str()));
        }
    }

    #[test]
    fn a_next_version_copies_little() {
        let strings = numbered(0..100_000);
        let large = Dictionary::new().extend(strings.iter().map(String::as_str));
        let next = large.extend(["something new"].into_iter());
        assert_eq!(next.0.blocks.len(), large.0.blocks.len() + 1);
        assert_eq!(next.0.index.shards_not_shared_with(&large.0.index), 1);
    }
}
