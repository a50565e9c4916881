//! Codes of whole arrays. Arrays repeat themselves: a small cache from the 16 bytes of a view to its code spares most
//! values from being hashed and compared. Within one array equal views are equal strings: a short string is in its
//! view, a long one is named by it.

use super::{Dictionary, DictionaryVersion, INLINE_BYTES, place_of, string_of};
use crate::error::EncodeError;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{AnyDictionaryArray, Array, StringViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use eris_kernels::prefetch;
use eris_types::Code;
use hashbrown::HashMap;
use std::sync::Arc;

/// Entries of the cache: 16 KiB of views and 2 KiB of codes stay in the first-level cache.
const CACHE: usize = 512;

/// No view has a length of 2³² - 1.
const NO_VIEW: u128 = u128::MAX;

/// Stands for a string that is not in the dictionary; codes stay below.
const UNKNOWN: u32 = u32::MAX;

/// Marks the place of a string in [`Unknown::strings`]; codes stay below.
pub(super) const PLACE: u32 = 1 << 31;

/// Codes of arrays of which a dictionary did not have all strings.
#[derive(Debug)]
pub struct Unknown {
    /// A code, or a place marked with [`PLACE`].
    codes: Vec<u32>,
    strings: Arc<[String]>,
}

impl Unknown {
    /// The distinct strings that the dictionary did not have, in order of appearance.
    pub fn strings(&self) -> &Arc<[String]> {
        &self.strings
    }

    /// The code of each string by a later version of the same dictionary; only those that were unknown are looked up.
    ///
    /// # Errors
    /// It does not have all of them either.
    pub fn look_up(mut self, dictionary: &Dictionary) -> Result<Vec<u32>, Unknown> {
        let strings = self.strings.iter();
        let found: Vec<Option<u32>> = strings
            .map(|string| dictionary.code(string).map(|code| code.0))
            .collect();
        let mut left = Vec::new();
        let mut places = Vec::with_capacity(found.len());
        for (code, string) in found.iter().zip(self.strings.iter()) {
            places.push(code.unwrap_or(PLACE | left.len() as u32));
            if code.is_none() {
                left.push(string.clone());
            }
        }
        for code in &mut self.codes {
            if *code & PLACE != 0 {
                *code = places[(*code & !PLACE) as usize];
            }
        }
        match left.is_empty() {
            true => Ok(self.codes),
            false => Err(Unknown {
                codes: self.codes,
                strings: left.into(),
            }),
        }
    }
}

/// Strings that are looked up side by side: while one comes from memory, the others are on their way too.
const SIDE_BY_SIDE: usize = 32;

/// Codes of the strings of one array, with a memory.
struct CodeLookup<'a, 'u> {
    dictionary: &'a Dictionary,
    array: &'a StringViewArray,
    unknown: &'u mut HashMap<&'a str, u32>,
    views: Box<[u128; CACHE]>,
    codes: Box<[u32; CACHE]>,
    /// Rows whose codes the memory does not have.
    waiting: Vec<usize>,
}

/// The slot of the memory that a view may be in, as well as in the one beside it.
fn slot(view: u128) -> usize {
    let mixed = (view as u64 ^ (view >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - CACHE.trailing_zeros())) as usize
}

impl<'a, 'u> CodeLookup<'a, 'u> {
    fn new(
        dictionary: &'a Dictionary,
        array: &'a StringViewArray,
        unknown: &'u mut HashMap<&'a str, u32>,
    ) -> Self {
        CodeLookup {
            dictionary,
            array,
            unknown,
            views: Box::new([NO_VIEW; CACHE]),
            codes: Box::new([0; CACHE]),
            waiting: Vec::with_capacity(SIDE_BY_SIDE),
        }
    }

    /// Appends the code of each string, or its marked place among the unknown ones; that of a NULL is 0.
    fn append(mut self, codes: &mut Vec<u32>) {
        let first = codes.len();
        codes.resize(first + self.array.len(), 0);
        let codes = &mut codes[first..];
        for (at, &view) in self.array.views().iter().enumerate() {
            if self.array.is_null(at) {
                continue;
            }
            match self.remembered(view) {
                Some(code) => codes[at] = code,
                None => {
                    self.waiting.push(at);
                    if self.waiting.len() == SIDE_BY_SIDE {
                        self.find(codes);
                    }
                }
            }
        }
        self.find(codes);
    }

    #[inline(always)]
    fn remembered(&self, view: u128) -> Option<u32> {
        let slot = slot(view);
        // Two places, or two of a column's few values could take one from each other all the time.
        let place = [slot, slot ^ 1].into_iter();
        let mut place = place.filter(|&place| self.views[place] == view);
        place.next().map(|place| self.codes[place])
    }

    #[inline(never)]
    fn find(&mut self, codes: &mut [u32]) {
        let DictionaryVersion { index, blocks, .. } = &*self.dictionary.0;
        let mut hashes = [0; SIDE_BY_SIDE];
        for (hash, &at) in hashes.iter_mut().zip(&self.waiting) {
            *hash = index.hash(self.array.value(at));
            index.prefetch(*hash);
        }
        let mut candidates = [None; SIDE_BY_SIDE];
        for (candidate, &hash) in candidates.iter_mut().zip(&hashes[..self.waiting.len()]) {
            *candidate = index.candidate(hash);
            if let Some(code) = *candidate {
                let (block, place) = place_of(blocks, code as usize);
                prefetch(&block.strings.views()[place]);
            }
        }
        for (&candidate, &at) in candidates.iter().zip(&self.waiting) {
            let view = self.array.views()[at];
            let is_it = |code: &u32| {
                let (block, place) = place_of(blocks, *code as usize);
                let known = block.strings.views()[place];
                let begins_so = known as u64 == view as u64;
                match is_inline(view) {
                    true => known == view,
                    // Two arrays' views of long strings may be equal, and name bytes that are not.
                    false => begins_so && self.is(at, *code),
                }
            };
            let code = match candidate.filter(is_it) {
                Some(code) => code,
                None => {
                    let string = self.array.value(at);
                    match candidate.and_then(|_| self.dictionary.code(string)) {
                        Some(code) => code.0,
                        None => {
                            let next = PLACE | self.unknown.len() as u32;
                            *self.unknown.entry(string).or_insert(next)
                        }
                    }
                }
            };
            codes[at] = code;
            let slot = slot(view);
            (self.views[slot ^ 1], self.codes[slot ^ 1]) = (self.views[slot], self.codes[slot]);
            (self.views[slot], self.codes[slot]) = (view, code);
        }
        self.waiting.clear();
    }

    /// Whether it is the string with this code, by its bytes.
    fn is(&self, at: usize, code: u32) -> bool {
        string_of(&self.dictionary.0.blocks, code as usize) == self.array.value(at)
    }
}

/// Whether the string is within its view: two of these are equal if their views are. Others have their length and their
/// first four bytes there, and where the rest is.
fn is_inline(view: u128) -> bool {
    view as u32 as usize <= INLINE_BYTES
}

impl Dictionary {
    /// The code of each string, that of a NULL being unspecified.
    ///
    /// # Errors
    /// This version does not have all of them.
    pub fn look_up<'a>(
        &'a self,
        arrays: impl IntoIterator<Item = &'a StringViewArray>,
    ) -> Result<Vec<u32>, Unknown> {
        let mut codes = Vec::new();
        let mut unknown = HashMap::new();
        for array in arrays {
            CodeLookup::new(self, array, &mut unknown).append(&mut codes);
        }
        if unknown.is_empty() {
            return Ok(codes);
        }
        let mut strings = vec![String::new(); unknown.len()];
        for (string, place) in unknown {
            strings[(place & !PLACE) as usize] = string.to_owned();
        }
        Err(Unknown {
            codes,
            strings: strings.into(),
        })
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
