//! Codes for strings that no dictionary has: those of chunks of plain strings, and computed ones.

use super::strings::Strings;
use arrow_array::{Array, StringViewArray};
use eris_column::Dictionary;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Continues a dictionary: its own strings get the codes after the dictionary's last.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    numbers: HashTable<u32>,
    strings: Strings,
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
            let string = array.value(row);
            match dictionary.and_then(|dictionary| dictionary.code(string)) {
                Some(code) => code.0 as i64,
                None => (known + self.number(string) as usize) as i64,
            }
        }));
    }

    /// The number of a string among its own.
    pub(super) fn number(&mut self, string: &str) -> u32 {
        let (strings, hasher) = (&mut self.strings, &self.hasher);
        let entry = self.numbers.entry(
            hasher.hash_one(string),
            |&number| strings.get(number as usize) == string,
            |&number| hasher.hash_one(strings.get(number as usize)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = u32::try_from(strings.len()).expect("fewer strings than rows");
                entry.insert(number);
                strings.push(string);
                number
            }
        }
    }

    /// With these strings, which are distinct and need not be found again.
    pub(super) fn of_strings(strings: Strings) -> Self {
        Interner {
            strings,
            ..Interner::default()
        }
    }

    /// The strings in the order of their numbers.
    pub(super) fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Forgets all strings, but keeps the room for them.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.strings.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.strings.bytes() + self.numbers.capacity() * size_of::<u32>()
    }
}
