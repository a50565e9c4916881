//! Codes of whole arrays. Arrays repeat themselves: a small cache from the 16 bytes of a view to its code spares most
//! values from being hashed and compared. Within one array equal views are equal strings: a short string is in its view,
//! a long one is named by it.

use super::Dictionary;
use crate::error::EncodeError;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{AnyDictionaryArray, Array, StringViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use eris_types::Code;
use hashbrown::HashSet;

/// Entries of the cache: 16 KiB of views and 2 KiB of codes stay in the first-level cache.
const CACHE: usize = 512;

/// No view has a length of 2³² - 1.
const NO_VIEW: u128 = u128::MAX;

/// Stands for a string that is not in the dictionary; codes stay below.
const UNKNOWN: u32 = u32::MAX;

/// Codes of the strings of one array, with a memory.
struct Lookup<'a> {
    dictionary: &'a Dictionary,
    array: &'a StringViewArray,
    views: Box<[u128; CACHE]>,
    codes: Box<[u32; CACHE]>,
}

impl<'a> Lookup<'a> {
    fn new(dictionary: &'a Dictionary, array: &'a StringViewArray) -> Self {
        Lookup {
            dictionary,
            array,
            views: Box::new([NO_VIEW; CACHE]),
            codes: Box::new([UNKNOWN; CACHE]),
        }
    }

    /// The code of string `at`, or [`UNKNOWN`].
    #[inline(always)]
    fn code(&mut self, at: usize, view: u128) -> u32 {
        let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (mixed >> (64 - CACHE.trailing_zeros())) as usize;
        // Two places, or two of a column's few values could take one from each other all the time.
        for place in [slot, slot ^ 1] {
            if self.views[place] == view {
                return self.codes[place];
            }
        }
        let code = self.find(at);
        (self.views[slot ^ 1], self.codes[slot ^ 1]) = (self.views[slot], self.codes[slot]);
        (self.views[slot], self.codes[slot]) = (view, code);
        code
    }

    #[inline(never)]
    fn find(&self, at: usize) -> u32 {
        let code = self.dictionary.code(self.array.value(at));
        code.map_or(UNKNOWN, |code| code.0)
    }
}

impl Dictionary {
    /// The code of each string, that of a NULL being unspecified; or, if this version does not have all of them, the
    /// distinct strings that it does not have, in order of appearance.
    pub fn look_up<'a>(
        &self,
        arrays: impl IntoIterator<Item = &'a StringViewArray>,
    ) -> Result<Vec<u32>, Vec<String>> {
        let mut codes = Vec::new();
        let mut missing = Vec::new();
        let mut seen = HashSet::new();
        for array in arrays {
            let mut lookup = Lookup::new(self, array);
            codes.reserve(array.len());
            for (at, &view) in array.views().iter().enumerate() {
                let code = lookup.code(at, view);
                codes.push(code);
                if code == UNKNOWN && array.is_valid(at) && seen.insert(array.value(at)) {
                    missing.push(array.value(at).to_owned());
                }
            }
        }
        if missing.is_empty() {
            Ok(codes)
        } else {
            Err(missing)
        }
    }

    /// The code of each string of a dictionary array of text: its distinct values are looked up once. Those that no row
    /// uses may be unknown.
    pub(crate) fn codes_of_dictionary(
        &self,
        array: &dyn AnyDictionaryArray,
    ) -> Result<Vec<u32>, EncodeError> {
        if array.values().is_empty() {
            return Ok(vec![UNKNOWN; array.len()]);
        }
        let values = arrow_cast::cast(array.values(), &DataType::Utf8View)?;
        let values = values.as_string_view();
        let known: Vec<u32> = (0..values.len())
            .map(|at| {
                self.code(values.value(at))
                    .map_or(UNKNOWN, |Code(code)| code)
            })
            .collect();
        let codes = keyed_codes(array.keys(), &known);
        if codes.contains(&UNKNOWN) {
            let nulls = array.logical_nulls();
            let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            if let Some(row) = (0..codes.len()).find(|&row| codes[row] == UNKNOWN && valid(row)) {
                let text = values.value(array.normalized_keys()[row]);
                return Err(EncodeError::NotInDictionary(text.to_owned()));
            }
        }
        Ok(codes)
    }
}

/// The codes of the values that the keys name; that of a NULL key, which may be any number, is unspecified.
fn keyed_codes(keys: &dyn Array, known: &[u32]) -> Vec<u32> {
    macro_rules! by_type {
        ($($key:ident)*) => {{
            $(if let Some(keys) = keys.as_primitive_opt::<$key>() {
                let known = |key: usize| known.get(key).copied().unwrap_or(UNKNOWN);
                return keys.values().iter().map(|key| known(key.as_usize())).collect();
            })*
            unreachable!("{} as the key of a dictionary", keys.data_type())
        }};
    }
    by_type!(Int8Type Int16Type Int32Type Int64Type UInt8Type UInt16Type UInt32Type UInt64Type)
}
