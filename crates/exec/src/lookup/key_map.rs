//! From keys to small numbers.
//!
//! ```text
//! dense   table[key - first], one entry for each key between the least and the greatest   if these lie close together
//! hash    key ─hash─▶ number                                                              otherwise
//! order   table[ordinal] for chunks that are stored by an order of keys
//! strings table[code] where the column has codes, or the code itself; a hash table where it has none
//! ```
//!
//! A dense table has entries of one, two or four bytes, whatever its numbers need: what is looked at for every row
//! should fit into the nearest cache.

use super::number_table::{NumberTable, TableMemory, most};
use crate::by_order::ByOrder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use eris_column::{Dictionary, KeyOrder};
use hashbrown::HashMap;
use std::sync::{Arc, OnceLock};

/// A dense table has at most so many entries per key …
const ENTRIES_PER_KEY: u64 = 16;
/// … or so many in all.
const FEW_ENTRIES: u64 = 1 << 16;

/// A map from a column's keys.
#[derive(Debug)]
pub(crate) struct KeyMap {
    keys: MappedKeys,
    /// Keys that it does not have, and NULL, lead to 0; or else it has all of them.
    zero_for_others: bool,
}

#[derive(Debug)]
enum MappedKeys {
    Integers {
        keys: Arc<Vec<i64>>,
        /// One per key.
        numbers: Vec<u32>,
        /// For chunks of integers.
        by_key: OnceLock<ByKey>,
        /// For chunks that are stored by an order.
        by_order: ByOrder<NumberTable>,
        memory: Option<TableMemory>,
    },
    Strings {
        keys: StringViewArray,
        /// One per key.
        numbers: Vec<u32>,
        by_code: ByCode,
        /// For chunks without codes.
        by_string: OnceLock<HashMap<Box<str>, u32>>,
    },
}

/// The numbers of codes.
#[derive(Debug)]
enum ByCode {
    /// The code itself, and so much.
    Code(u32),
    Table(NumberTable),
}

/// The numbers of integers.
#[derive(Debug)]
pub(crate) enum ByKey {
    Dense { first: i64, table: NumberTable },
    Hash(HashMap<i64, u32>),
}

impl ByKey {
    fn new(keys: &[i64], numbers: &[u32], memory: Option<&TableMemory>) -> Self {
        let first = keys.iter().copied().min().unwrap_or(0);
        let last = keys.iter().copied().max().unwrap_or(0);
        let width = last.abs_diff(first);
        let pairs = keys.iter().zip(numbers);
        if width < FEW_ENTRIES.max(ENTRIES_PER_KEY * keys.len() as u64) {
            let entries = pairs.map(|(key, &number)| (key.abs_diff(first) as usize, number));
            let table = NumberTable::new(width as usize + 1, most(numbers), entries, memory);
            return ByKey::Dense { first, table };
        }
        ByKey::Hash(pairs.map(|(&key, &number)| (key, number)).collect())
    }
}

impl KeyMap {
    fn new(keys: MappedKeys) -> Self {
        KeyMap {
            keys,
            zero_for_others: false,
        }
    }

    /// The same for a column with other keys, too, which lead to 0, as NULL does.
    pub(super) fn with_zero_for_others(self) -> Self {
        KeyMap {
            zero_for_others: true,
            ..self
        }
    }

    /// Whether keys that it does not have, and NULL, lead to 0.
    pub(crate) fn has_zero_for_others(&self) -> bool {
        self.zero_for_others
    }

    /// The map of these keys to what `number` says of their places.
    pub(super) fn integers(
        keys: &Arc<Vec<i64>>,
        number: impl Fn(usize) -> u32,
        memory: Option<&TableMemory>,
    ) -> Self {
        KeyMap::new(MappedKeys::Integers {
            keys: keys.clone(),
            numbers: (0..keys.len()).map(number).collect(),
            by_key: OnceLock::new(),
            by_order: ByOrder::default(),
            memory: memory.cloned(),
        })
    }

    /// The same of strings in a column with, perhaps, a dictionary.
    pub(super) fn strings(
        keys: &ArrayRef,
        number: impl Fn(usize) -> u32,
        dictionary: Option<&Dictionary>,
        memory: Option<&TableMemory>,
    ) -> Self {
        let keys = keys.as_string_view().clone();
        let numbers: Vec<u32> = (0..keys.len()).map(number).collect();
        let by_code = match dictionary {
            // What was computed of all its strings is in the order of their codes.
            Some(dictionary) if keys.views().ptr_eq(dictionary.values().views()) => {
                let first = numbers.first().copied().unwrap_or(0);
                let is_place = |(place, &number)| number == place + first;
                match (0..).zip(&numbers).all(is_place) {
                    true => ByCode::Code(first),
                    false => ByCode::Table(NumberTable::of(&numbers, memory)),
                }
            }
            Some(dictionary) => {
                let entry = |(place, &number): (usize, &u32)| {
                    let code = dictionary.code(keys.value(place))?;
                    Some((code.index(), number))
                };
                let entries = numbers.iter().enumerate().filter_map(entry);
                let len = dictionary.len();
                ByCode::Table(NumberTable::new(len, most(&numbers), entries, memory))
            }
            None => ByCode::Code(0),
        };
        KeyMap::new(MappedKeys::Strings {
            keys,
            numbers,
            by_code,
            by_string: OnceLock::new(),
        })
    }

    /// Appends the entries of a table at some places.
    #[inline(always)]
    fn each<T: From<u32>>(
        &self,
        table: &NumberTable,
        places: impl Iterator<Item = usize>,
        out: &mut Vec<T>,
    ) {
        match self.zero_for_others {
            true => table.each_or_zero(places, out),
            false => table.each(places, out),
        }
    }

    /// Appends the numbers of stored integers or, of a column of strings, of codes. Those of NULLs are anything.
    ///
    /// # Panics
    /// If there is a key that the map does not have, though it should; or the wrong number is appended.
    pub(crate) fn numbers<T: From<u32>>(&self, found: &[i64], out: &mut Vec<T>) {
        match &self.keys {
            MappedKeys::Integers {
                keys,
                numbers,
                by_key,
                memory,
                ..
            } => match by_key.get_or_init(|| ByKey::new(keys, numbers, memory.as_ref())) {
                ByKey::Dense { first, table } => {
                    let places = found.iter().map(|key| key.wrapping_sub(*first) as usize);
                    self.each(table, places, out);
                }
                ByKey::Hash(map) if self.zero_for_others => {
                    let number = |key| map.get(key).copied().unwrap_or(0);
                    out.extend(found.iter().map(|key| T::from(number(key))));
                }
                ByKey::Hash(map) => out.extend(found.iter().map(|key| T::from(map[key]))),
            },
            MappedKeys::Strings { by_code, .. } => match by_code {
                ByCode::Code(first) => {
                    out.extend(found.iter().map(|&code| T::from(code as u32 + first)));
                }
                ByCode::Table(table) => {
                    self.each(table, found.iter().map(|&code| code as usize), out);
                }
            },
        }
    }

    /// The same of ordinals.
    pub(crate) fn numbers_of_ordinals<T: From<u32>>(
        &self,
        order: &Arc<KeyOrder>,
        ordinals: &[i64],
        out: &mut Vec<T>,
    ) {
        let MappedKeys::Integers {
            keys,
            numbers,
            by_order,
            memory,
            ..
        } = &self.keys
        else {
            unreachable!("strings are no integers");
        };
        let table = by_order.get(order, |order| {
            let place =
                |(key, &number): (&i64, &u32)| Some((order.ordinal(*key)? as usize, number));
            let entries = keys.iter().zip(numbers).filter_map(place);
            NumberTable::new(order.keys().len(), most(numbers), entries, memory.as_ref())
        });
        let places = ordinals.iter().map(|&ordinal| ordinal as usize);
        self.each(&table, places, out);
    }

    /// The same of strings without codes.
    pub(crate) fn numbers_of_strings<T: From<u32>>(
        &self,
        keys: &StringViewArray,
        out: &mut Vec<T>,
    ) {
        let MappedKeys::Strings {
            keys: mapped,
            numbers,
            by_string,
            ..
        } = &self.keys
        else {
            unreachable!("strings are no integers");
        };
        let by_string = by_string.get_or_init(|| {
            let pairs = numbers.iter().enumerate();
            let pairs = pairs.map(|(place, &number)| (mapped.value(place).into(), number));
            pairs.collect()
        });
        let number = |row| match by_string.get(keys.value(row)) {
            Some(&number) => number,
            None if self.zero_for_others => 0,
            None => panic!("a key that the map does not have"),
        };
        let number = |row| match keys.is_null(row) {
            true => 0,
            false => number(row),
        };
        out.extend((0..keys.len()).map(|row| T::from(number(row))));
    }
}
