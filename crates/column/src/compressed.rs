//! FSST: strings as codes of one byte for symbols of up to eight (Boncz, Neumann and Leis, PVLDB 13(11), 2020).
//!
//! ```text
//! symbols  0 "http://"  1 "www."  2 ".com/"  …             up to 255, learnt from a sample of the chunk
//! bytes    0 1 a' b' c' 2 │ 0 1 x' 2 │ …                    all rows without gaps; x' is an escape and the byte x
//! sizes    9 5 …                                            packed: compressed bytes of each row, 0 of a NULL
//! lengths  18 16 …                                          packed: bytes of each string
//! first    0 …                                              u32: where the first row of each vector begins
//! ```
//!
//! A code means the same wherever it stands, so that the compressed bytes of any rows, put together, decompress to
//! their strings put together: rows are picked compressed and decompressed in one go. A filter does so per vector,
//! which stays in the caches. Equal strings have equal codes, so that equality compresses its constants and compares
//! codes. Of codes that were read from a log or a file, this is found out when it is first needed.

mod checked;

pub(crate) use checked::TEXT;

use crate::copier::Copier;
use crate::object_memory::ObjectMemory;
use crate::packed::Packed;
use crate::selection::Selection;
use crate::strings::StringKind;
use arrow_array::{GenericByteViewArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer as ArrowBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use eris_numa::{Buffer, Extent, OutOfMemory};
use fsst::{Compressor, Decompressor, Symbol};
use hashbrown::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

/// Symbols of a table, at most.
const SYMBOLS: usize = 255;

#[derive(Debug)]
pub(crate) struct Compressed {
    /// Pairs of symbol and length.
    symbols: Buffer,
    bytes: Buffer,
    sizes: Packed,
    lengths: Packed,
    first: Buffer,
    /// Whether each string has the codes that compressing it yields. Written by whoever asks first; nothing but the
    /// answer depends on it, and it is always the same.
    canonical: OnceLock<bool>,
}

/// Symbols in the form that the decompressor takes.
struct SymbolTable {
    symbols: [Symbol; SYMBOLS],
    lengths: [u8; SYMBOLS],
}

impl Compressed {
    /// The strings, one per row, in this home, if `most` bytes suffice and what was compressed proves to be what comes
    /// out.
    pub(crate) fn encode(
        compressor: &Compressor,
        strings: &[&[u8]],
        most: usize,
        home: ObjectMemory<'_>,
    ) -> Result<Option<Self>, OutOfMemory> {
        // Exactly the one that filters build again: equal strings have to get equal codes.
        let compressor =
            Compressor::rebuild_from(compressor.symbol_table(), compressor.symbol_lengths());
        let mut bytes = Vec::with_capacity(most);
        let mut sizes = Vec::with_capacity(strings.len());
        let mut starts = Vec::with_capacity(strings.len().div_ceil(VECTOR));
        for (row, string) in strings.iter().enumerate() {
            if row % VECTOR == 0 {
                starts.push(bytes.len() as u32);
            }
            let compressed = compressor.compress(string);
            if bytes.len() + compressed.len() > most {
                return Ok(None);
            }
            bytes.extend_from_slice(&compressed);
            sizes.push(compressed.len() as i64);
        }
        // Rows cannot be had from anywhere else, so a mistake of the compressor must not get past here.
        let back = compressor.decompressor().decompress(&bytes);
        let mut rest = &back[..];
        let same = strings.iter().all(|string| {
            let here;
            (here, rest) = rest.split_at(string.len().min(rest.len()));
            here == *string
        });
        if !same || !rest.is_empty() {
            return Ok(None);
        }
        let lengths: Vec<i64> = strings.iter().map(|string| string.len() as i64).collect();
        let pairs = compressor
            .symbol_table()
            .iter()
            .zip(compressor.symbol_lengths());
        let pairs: Vec<u64> = pairs
            .flat_map(|(symbol, &length)| [symbol.to_u64(), length as u64])
            .collect();
        let compressed = Compressed {
            symbols: copy(&pairs, home)?,
            bytes: copy(&bytes, home)?,
            sizes: pack(&sizes, home)?,
            lengths: pack(&lengths, home)?,
            first: copy(&starts, home)?,
            canonical: OnceLock::from(true),
        };
        Ok((compressed.bytes() <= most).then_some(compressed))
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        let own = [&self.symbols, &self.bytes, &self.first];
        all.extend(own.map(Buffer::extent));
        self.sizes.extents(all);
        self.lengths.extents(all);
    }

    pub(crate) fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(Compressed {
            symbols: copier.copy(&self.symbols)?,
            bytes: copier.copy(&self.bytes)?,
            sizes: self.sizes.copied(copier)?,
            lengths: self.lengths.copied(copier)?,
            first: copier.copy(&self.first)?,
            canonical: self.canonical.clone(),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let packed = self.sizes.bytes() + self.lengths.bytes();
        self.symbols.len() + self.bytes.len() + self.first.len() + packed
    }

    fn table(&self) -> SymbolTable {
        let mut table = SymbolTable {
            symbols: [Symbol::from_u8(0); SYMBOLS],
            lengths: [0; SYMBOLS],
        };
        let (pairs, _) = self.symbols.as_slice::<u64>().as_chunks::<2>();
        let entries = table.symbols.iter_mut().zip(&mut table.lengths);
        for ((symbol, length), pair) in entries.zip(pairs) {
            (*symbol, *length) = (Symbol::from_slice(&pair[0].to_le_bytes()), pair[1] as u8);
        }
        table
    }

    /// Where each row of a vector begins, and where the last one ends.
    fn starts(&self, isa: Isa, vector: usize, starts: &mut [i64; VECTOR + 1]) {
        starts[0] = self.first.as_slice::<u32>()[vector] as i64;
        let (_, ends) = starts.split_first_chunk_mut::<1>().expect("one more");
        let ends: &mut [i64; VECTOR] = ends.try_into().expect("a vector");
        self.sizes.unpack(isa, vector, ends);
        isa.running_sums(self.first.as_slice::<u32>()[vector] as i64, ends);
    }

    pub(crate) fn get(&self, row: usize) -> Vec<u8> {
        let (mut starts, isa) = ([0; VECTOR + 1], Isa::best());
        self.starts(isa, row / VECTOR, &mut starts);
        let at = row % VECTOR;
        let bytes: &[u8] = self.bytes.as_slice();
        let compressed = &bytes[starts[at] as usize..starts[at + 1] as usize];
        self.table().decompressor().decompress(compressed)
    }

    /// The selected strings, of which there are `count`, in order.
    pub(crate) fn gather<T: StringKind>(
        &self,
        isa: Isa,
        selection: &Selection,
        count: usize,
        nulls: Option<NullBuffer>,
    ) -> GenericByteViewArray<T> {
        let vectors = 0..self.first.as_slice::<u32>().len();
        let mut picked = Picked::new(count);
        if count == self.sizes.len() {
            for vector in vectors {
                picked.lengths_of(self, isa, vector, &[u64::MAX; MASK_WORDS]);
            }
            picked.lengths.truncate(count + 1);
            return picked.decompress(&self.table(), self.bytes.as_slice(), nulls);
        }
        self.pick(isa, selection, vectors, &mut picked);
        let bytes = std::mem::take(&mut picked.bytes);
        picked.decompress(&self.table(), &bytes, nulls)
    }

    /// Keeps the selected rows whose strings pass, of those that are not NULL.
    pub(crate) fn filter(
        &self,
        isa: Isa,
        selection: &mut Selection,
        passed: impl Fn(&StringViewArray) -> BooleanBuffer,
    ) {
        let table = self.table();
        for vector in 0..self.first.as_slice::<u32>().len() {
            let mut picked = Picked::new(VECTOR);
            self.pick(isa, selection, vector..vector + 1, &mut picked);
            if picked.lengths.len() == 1 {
                continue;
            }
            let bytes = std::mem::take(&mut picked.bytes);
            let passed = passed(&picked.decompress(&table, &bytes, None));
            let mut answers = passed.iter();
            let words = &mut selection.words_mut()[vector * MASK_WORDS..][..MASK_WORDS];
            for word in words {
                let mut rest = *word;
                while rest != 0 {
                    let failed = answers.next() == Some(false);
                    *word ^= (failed as u64) << rest.trailing_zeros();
                    rest &= rest - 1;
                }
            }
        }
    }

    /// Keeps the selected rows whose string is one of these.
    ///
    /// Equal strings have to have [equal codes](Self::is_canonical).
    pub(crate) fn filter_set(&self, isa: Isa, texts: &[Box<str>], selection: &mut Selection) {
        let compressor = self.compressor();
        let codes = texts
            .iter()
            .map(|text| compressor.compress(text.as_bytes()));
        let codes: HashSet<Vec<u8>> = codes.collect();
        // Most rows are told apart by their size.
        let mut sizes = [false; 256];
        for code in &codes {
            sizes[code.len().min(255)] = true;
        }
        let bytes: &[u8] = self.bytes.as_slice();
        let mut starts = [0; VECTOR + 1];
        let (masks, _) = selection.words_mut().as_chunks_mut::<MASK_WORDS>();
        for (vector, mask) in masks.iter_mut().enumerate() {
            if mask.iter().all(|&word| word == 0) {
                continue;
            }
            self.starts(isa, vector, &mut starts);
            for (word, starts) in mask.iter_mut().zip(starts.windows(65).step_by(64)) {
                let mut rest = *word;
                while rest != 0 {
                    let bit = rest.trailing_zeros() as usize;
                    let (start, end) = (starts[bit] as usize, starts[bit + 1] as usize);
                    let found = sizes[(end - start).min(255)] && codes.contains(&bytes[start..end]);
                    *word ^= (!found as u64) << bit;
                    rest &= rest - 1;
                }
            }
        }
    }

    /// Collects the compressed bytes and the lengths of the selected rows of some vectors.
    fn pick(&self, isa: Isa, selection: &Selection, vectors: Range<usize>, picked: &mut Picked) {
        let masks = selection.words().as_chunks::<MASK_WORDS>().0;
        let bytes: &[u8] = self.bytes.as_slice();
        let mut starts = [0; VECTOR + 1];
        for vector in vectors {
            let mask = &masks[vector];
            if mask.iter().all(|&word| word == 0) {
                continue;
            }
            self.starts(isa, vector, &mut starts);
            let here = |row: usize| starts[row] as usize;
            if mask.iter().all(|&word| word == u64::MAX) {
                picked
                    .bytes
                    .extend_from_slice(&bytes[here(0)..here(VECTOR)]);
            } else {
                for (word, &bits) in mask.iter().enumerate() {
                    let mut rest = bits;
                    while rest != 0 {
                        let row = word * 64 + rest.trailing_zeros() as usize;
                        picked
                            .bytes
                            .extend_from_slice(&bytes[here(row)..here(row + 1)]);
                        rest &= rest - 1;
                    }
                }
            }
            picked.lengths_of(self, isa, vector, mask);
        }
    }
}

/// Rows on their way out.
struct Picked {
    /// Compressed.
    bytes: Vec<u8>,
    /// Of the strings: 0, then where each ends.
    lengths: Vec<i32>,
}

impl Picked {
    fn new(rows: usize) -> Self {
        let mut lengths = Vec::with_capacity(rows + 1);
        lengths.push(0);
        Picked {
            bytes: Vec::new(),
            lengths,
        }
    }

    fn lengths_of(&mut self, from: &Compressed, isa: Isa, vector: usize, mask: &[u64; MASK_WORDS]) {
        let mut lengths = [0; VECTOR];
        let count = from.lengths.gather(isa, vector, mask, &mut lengths);
        let mut end = self.lengths[self.lengths.len() - 1];
        self.lengths.extend(lengths[..count].iter().map(|&length| {
            end += length as i32;
            end
        }));
    }

    fn decompress<T: StringKind>(
        self,
        table: &SymbolTable,
        bytes: &[u8],
        nulls: Option<NullBuffer>,
    ) -> GenericByteViewArray<T> {
        let mut text = table.decompressor().decompress(bytes);
        text.shrink_to_fit();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.lengths));
        T::array(offsets, ArrowBuffer::from_vec(text), nulls)
    }
}

impl SymbolTable {
    fn decompressor(&self) -> Decompressor<'_> {
        Decompressor::new(&self.symbols, &self.lengths)
    }
}

fn copy<T: eris_numa::Plain>(values: &[T], home: ObjectMemory<'_>) -> Result<Buffer, OutOfMemory> {
    let mut buffer = home.allocate::<T>(values.len())?;
    buffer.as_mut_slice().copy_from_slice(values);
    Ok(buffer)
}

fn pack(values: &[i64], home: ObjectMemory<'_>) -> Result<Packed, OutOfMemory> {
    let (min, max) = Isa::best().min_max_i64(values).unwrap_or((0, 0));
    let mut rest = values;
    Packed::encode(values.len(), min, max, home, |out| {
        let (here, after) = rest.split_at(out.len());
        out.copy_from_slice(here);
        rest = after;
    })
}
