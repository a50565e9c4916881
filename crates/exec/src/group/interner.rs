//! Codes for strings that no dictionary has: those of chunks of plain text, and computed ones.

use super::strings::Strings;
use arrow_array::{Array, StringViewArray};
use eris_column::Dictionary;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Continues a dictionary: its own strings get the codes after the dictionary's last.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    numbers: HashTable<u32>,
    texts: Strings,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// Appends the code of each string; that of a NULL is 0.
    pub(crate) fn codes(
        &mut self,
        array: &StringViewArray,
        dictionary: Option<&Dictionary>,
        codes: &mut Vec<i64>,
    ) {
        let known = dictionary.map_or(0, |dictionary| dictionary.len());
        codes.extend((0..array.len()).map(|row| {
            if array.is_null(row) {
                return 0;
            }
            let text = array.value(row);
            match dictionary.and_then(|dictionary| dictionary.code(text)) {
                Some(code) => code.0 as i64,
                None => (known + self.number(text) as usize) as i64,
            }
        }));
    }

    /// The number of a string among its own.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let (texts, hasher) = (&mut self.texts, &self.hasher);
        let entry = self.numbers.entry(
            hasher.hash_one(text),
            |&number| texts.get(number as usize) == text,
            |&number| hasher.hash_one(texts.get(number as usize)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = u32::try_from(texts.len()).expect("fewer strings than rows");
                entry.insert(number);
                texts.push(text);
                number
            }
        }
    }

    /// With these strings, which are distinct and need not be found again.
    pub(super) fn of_texts(texts: Strings) -> Self {
        Interner {
            texts,
            ..Interner::default()
        }
    }

    /// The strings in the order of their numbers.
    pub(super) fn texts(&self) -> &Strings {
        &self.texts
    }

    /// Forgets all strings, but keeps the room for them.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.texts.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes() + self.numbers.capacity() * size_of::<u32>()
    }
}
