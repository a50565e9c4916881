//! Compressed strings that come from elsewhere, and whether they are as [`Compressed::encode`] makes them.
//!
//! Two things are told apart. The codes of each row have to make up a string of the length that is given, or rows could
//! not be read: that is checked at once. That they are the very codes that compressing the string yields takes longer,
//! and only equality relies on it: that is found out when it is first asked, and without it strings are decompressed.
//! So what another version of the compressor made is read rightly, whatever symbols it chose.

use super::{Compressed, copy};
use crate::object_memory::ObjectMemory;
use crate::packed::Packed;
use eris_kernels::{Isa, VECTOR};
use eris_numa::{Buffer, OutOfMemory};
use fsst::{Compressor, CompressorBuilder, ESCAPE_CODE, Symbol};
use std::sync::OnceLock;

/// Bytes of all strings of a chunk, at most: they are addressed with 31 bits.
pub(crate) const TEXT: usize = 1 << 30;

impl Compressed {
    /// The symbols, with as many bytes as each has, filled up with zeros.
    pub(crate) fn symbols(&self) -> impl ExactSizeIterator<Item = [u8; 8]> + Clone {
        let (pairs, _) = self.symbols.as_slice::<u64>().as_chunks::<2>();
        pairs.iter().map(|pair| pair[0].to_le_bytes())
    }

    /// Compressed bytes of each row.
    pub(crate) fn sizes(&self) -> &Packed {
        &self.sizes
    }

    /// Bytes of each string.
    pub(crate) fn lengths(&self) -> &Packed {
        &self.lengths
    }

    /// The compressed bytes.
    pub(crate) fn codes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// Of symbols, codes, and the sizes and lengths of the rows, none of which is negative. `None` if the codes of a
    /// row do not make up a string of its length, or sizes are not those of all codes.
    pub(crate) fn of_parts(
        symbols: &[[u8; 8]],
        codes: Buffer,
        sizes: Packed,
        lengths: Packed,
        home: ObjectMemory<'_>,
    ) -> Result<Option<Self>, OutOfMemory> {
        let pairs = symbols.iter().flat_map(|bytes| {
            let symbol = Symbol::from_slice(bytes);
            [symbol.to_u64(), symbol.len() as u64]
        });
        let pairs: Vec<u64> = pairs.collect();
        let mut first = home.allocate::<u32>(sizes.vectors())?;
        // Of codes without a symbol: more than any string has.
        let mut code_lengths = [TEXT as u32 + 1; 256];
        for (length, pair) in code_lengths.iter_mut().zip(pairs.as_chunks::<2>().0) {
            *length = pair[1] as u32;
        }
        code_lengths[usize::from(ESCAPE_CODE)] = 0;
        let isa = Isa::best();
        let (mut row_sizes, mut row_lengths) = ([0; VECTOR], [0; VECTOR]);
        let mut rest: &[u8] = codes.as_slice();
        let mut total = 0;
        let mut ends = Vec::new();
        for (vector, first) in first.as_mut_slice::<u32>().iter_mut().enumerate() {
            *first = (codes.len() - rest.len()) as u32;
            sizes.unpack(isa, vector, &mut row_sizes);
            lengths.unpack(isa, vector, &mut row_lengths);
            let here = (sizes.len() - vector * VECTOR).min(VECTOR);
            let size = row_sizes[..here].iter().sum::<i64>() as usize;
            let Some((codes, after)) = rest.split_at_checked(size) else {
                return Ok(None);
            };
            rest = after;
            text_ends(codes, &code_lengths, &mut ends);
            let (mut at, mut end) = (0, 0);
            for (&size, &length) in row_sizes[..here].iter().zip(&row_lengths) {
                (at, end) = (at + size as usize, end + length as u64);
                if ends[at] != end {
                    return Ok(None);
                }
            }
            total += end;
        }
        if !rest.is_empty() || total > TEXT as u64 {
            return Ok(None);
        }
        Ok(Some(Compressed {
            symbols: copy(&pairs, home)?,
            bytes: codes,
            sizes,
            lengths,
            first,
            canonical: OnceLock::new(),
        }))
    }

    /// Calls `f` with the strings of each vector, one behind the other: the vector's first row, their bytes, and where
    /// each ends.
    pub(crate) fn for_each_vector(&self, isa: Isa, mut f: impl FnMut(usize, &[u8], &[usize])) {
        let table = self.table();
        let mut lengths = [0; VECTOR];
        let mut ends = [0; VECTOR];
        let firsts = self.first.as_slice::<u32>();
        for vector in 0..firsts.len() {
            let rows = (self.sizes.len() - vector * VECTOR).min(VECTOR);
            self.lengths.unpack(isa, vector, &mut lengths);
            let mut end = 0;
            for (place, &length) in ends.iter_mut().zip(&lengths[..rows]) {
                end += length as usize;
                *place = end;
            }
            let text = table.decompressor().decompress(self.codes_of(vector));
            f(vector * VECTOR, &text, &ends[..rows]);
        }
    }

    /// The codes of a vector.
    fn codes_of(&self, vector: usize) -> &[u8] {
        let firsts = self.first.as_slice::<u32>();
        let end = firsts
            .get(vector + 1)
            .map_or(self.bytes.len(), |&end| end as usize);
        &self.codes()[firsts[vector] as usize..end]
    }

    /// Whether equal strings have equal codes: those that the [compressor](Self::compressor) gives them.
    pub(crate) fn is_canonical(&self, isa: Isa) -> bool {
        *self.canonical.get_or_init(|| {
            if !self.has_compressor() {
                return false;
            }
            let compressor = self.compressor();
            let mut same = true;
            self.for_each_vector(isa, |first, text, ends| {
                let mut codes = self.codes_of(first / VECTOR);
                let mut start = 0;
                for &end in ends {
                    let compressed = compressor.compress(&text[start..end]);
                    start = end;
                    match codes.strip_prefix(&compressed[..]) {
                        Some(rest) => codes = rest,
                        None => same = false,
                    }
                }
            });
            same
        })
    }

    /// Whether a compressor would make these symbols, in this order.
    fn has_compressor(&self) -> bool {
        let symbols = self.symbols().map(|bytes| Symbol::from_slice(&bytes));
        let lengths: Vec<usize> = symbols.clone().map(Symbol::len).collect();
        // From two bytes on upwards, those of one byte last.
        let single = lengths.iter().position(|&length| length == 1);
        let (long, short) = lengths.split_at(single.unwrap_or(lengths.len()));
        if !long.is_sorted() || short.iter().any(|&length| length != 1) {
            return false;
        }
        // Two symbols must not have one place of its hash table.
        let mut builder = CompressorBuilder::new();
        let mut symbols = symbols.zip(lengths);
        symbols.all(|(symbol, length)| builder.insert(symbol, length))
    }

    /// The compressor of these symbols.
    ///
    /// # Panics
    /// If [none](Self::has_compressor) would make them.
    pub(super) fn compressor(&self) -> Compressor {
        let symbols = self.symbols().map(|bytes| Symbol::from_slice(&bytes));
        let (symbols, lengths): (Vec<_>, Vec<_>) =
            symbols.map(|symbol| (symbol, symbol.len() as u8)).unzip();
        Compressor::rebuild_from(symbols, lengths)
    }
}

/// Where the text of codes ends behind each of them, 0 first; nowhere between an escape and its byte. Without branches,
/// for rows are short, and escapes come at random.
fn text_ends(codes: &[u8], code_lengths: &[u32; 256], ends: &mut Vec<u64>) {
    const NOWHERE: u64 = 1 << 63;
    ends.clear();
    ends.push(0);
    let mut end = 0;
    let mut escaped = false;
    ends.extend(codes.iter().map(|&code| {
        // That of an escape itself is 0.
        let length = code_lengths[usize::from(code)];
        let escapes = !escaped & (code == ESCAPE_CODE);
        end += u64::from(if escaped { 1 } else { length });
        escaped = escapes;
        end | if escapes { NOWHERE } else { 0 }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::strings::Strings;
    use arrow_array::types::StringViewType;
    use eris_numa::{HugePages, Memory, Topology};
    use eris_types::{NodeId, ObjectId};
    use std::sync::Arc;

    /// Rows with these codes, of which the strings have these lengths.
    fn of(
        symbols: &[&str],
        rows: &[(&[u8], i64)],
        home: ObjectMemory<'_>,
    ) -> Option<Strings<StringViewType>> {
        let symbols = symbols.iter().map(|text| {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            bytes
        });
        let symbols: Vec<_> = symbols.collect();
        let codes: Vec<u8> = rows.iter().flat_map(|row| row.0).copied().collect();
        let sizes: Vec<i64> = rows.iter().map(|row| row.0.len() as i64).collect();
        let lengths: Vec<i64> = rows.iter().map(|row| row.1).collect();
        let (sizes, lengths) = (
            super::super::pack(&sizes, home),
            super::super::pack(&lengths, home),
        );
        let codes = copy(&codes, home).unwrap();
        let parts = Compressed::of_parts(&symbols, codes, sizes.unwrap(), lengths.unwrap(), home);
        parts.unwrap().map(Strings::Compressed)
    }

    #[test]
    fn equal_strings_are_found_whatever_their_codes_are() {
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, None).unwrap();
        let home = ObjectMemory {
            memory: &memory.node(NodeId(0)),
            object: ObjectId(1),
        };
        // The last of these orders of symbols is none that a compressor has.
        for (symbols, canonical) in [
            (&["ab", "a", "b"][..], [true, false]),
            (&["a", "ab", "b"], [false, false]),
        ] {
            let ab = symbols.iter().position(|&text| text == "ab").unwrap() as u8;
            let a = symbols.iter().position(|&text| text == "a").unwrap() as u8;
            let (whole, parts, escaped) = ([ab], [a, 2], [ESCAPE_CODE, b'x', a]);
            let same: &[(&[u8], i64)] = &[(&whole, 2), (&escaped, 2), (&whole, 2)];
            let other: &[(&[u8], i64)] = &[(&whole, 2), (&escaped, 2), (&parts, 2)];
            for (rows, expected) in [same, other].into_iter().zip(canonical) {
                let strings = of(symbols, rows, home).unwrap();
                let Strings::Compressed(compressed) = &strings else {
                    unreachable!("that is what was made");
                };
                assert_eq!(compressed.is_canonical(Isa::best()), expected);
                let mut selection = Selection::all(3);
                let texts: Arc<[Box<str>]> = Arc::new(["ab".into()]);
                strings.filter_set(Isa::best(), &texts, &mut selection);
                assert!(selection.iter_ones().eq([0, 2]), "{symbols:?} {rows:?}");
                assert_eq!(strings.get(1), b"xa");
            }
        }
    }

    #[test]
    fn codes_that_make_up_no_string_are_found() {
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, None).unwrap();
        let home = ObjectMemory {
            memory: &memory.node(NodeId(0)),
            object: ObjectId(1),
        };
        let is_sound = |rows: &[(&[u8], i64)]| of(&["ab", "c"], rows, home).is_some();
        assert!(is_sound(&[
            (&[0, 1], 3),
            (&[], 0),
            (&[ESCAPE_CODE, ESCAPE_CODE], 1)
        ]));
        // Another length; a code without a symbol; an escape of the next row's byte.
        assert!(!is_sound(&[(&[0, 1], 2), (&[], 0)]));
        assert!(!is_sound(&[(&[0, 2], 3), (&[], 0)]));
        assert!(!is_sound(&[(&[ESCAPE_CODE], 1), (&[1], 1)]));
    }
}
