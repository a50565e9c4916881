//! Which rows of a chunk are not NULL.

use crate::object_memory::ObjectMemory;
use crate::resident;
use crate::selection::{Selection, words_for};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use eris_kernels::{Isa, MASK_WORDS};
use eris_numa::{Extent, OutOfMemory};

/// Validity of a chunk's rows. A bitmap is laid out as a [`Selection`]: bits beyond the rows are 0.
#[derive(Clone, Debug)]
pub(crate) enum Validity {
    /// There is no NULL.
    All,
    /// There is nothing but NULLs.
    None,
    /// A set bit: not NULL.
    Bitmap(ScalarBuffer<u64>),
}

impl Validity {
    pub(crate) fn encode(
        nulls: Option<&NullBuffer>,
        rows: usize,
        home: ObjectMemory<'_>,
    ) -> Result<Self, OutOfMemory> {
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return Ok(Validity::All);
        };
        if nulls.null_count() == rows {
            return Ok(Validity::None);
        }
        let mut buffer = home.allocate::<u64>(words_for(rows))?;
        let chunks = nulls.inner().bit_chunks();
        for (word, bits) in buffer
            .as_mut_slice::<u64>()
            .iter_mut()
            .zip(chunks.iter_padded())
        {
            *word = bits;
        }
        Ok(Validity::Bitmap(resident::numbers(buffer)))
    }

    pub(crate) fn is_valid(&self, row: usize) -> bool {
        match self {
            Validity::All => true,
            Validity::None => false,
            Validity::Bitmap(words) => words[row / 64] >> (row % 64) & 1 == 1,
        }
    }

    /// Takes the NULLs out of the selection.
    pub(crate) fn retain_valid(&self, selection: &mut Selection) {
        match self {
            Validity::All => {}
            Validity::None => selection.clear(),
            Validity::Bitmap(words) => eris_kernels::and(selection.words_mut(), words),
        }
    }

    /// Leaves only NULLs in the selection.
    pub(crate) fn retain_nulls(&self, selection: &mut Selection) {
        match self {
            Validity::All => selection.clear(),
            Validity::None => {}
            Validity::Bitmap(words) => eris_kernels::and_not(selection.words_mut(), words),
        }
    }

    /// The rows that are not NULL.
    pub(crate) fn selection(&self, rows: usize) -> Selection {
        let mut valid = Selection::all(rows);
        self.retain_valid(&mut valid);
        valid
    }

    /// As Arrow has it, for all rows.
    pub(crate) fn null_buffer(&self, rows: usize) -> Option<NullBuffer> {
        match self {
            Validity::All => None,
            Validity::None => Some(NullBuffer::new_null(rows)),
            Validity::Bitmap(words) => {
                let bits = BooleanBuffer::new(words.inner().clone(), 0, rows);
                Some(NullBuffer::new(bits))
            }
        }
    }

    /// Validity of the selected rows; `None` if no NULL is among them.
    pub(crate) fn gather(&self, selection: &Selection) -> Option<NullBuffer> {
        let words = match self {
            Validity::All => return None,
            Validity::None => {
                let count = selection.count();
                return (count > 0).then(|| NullBuffer::new_null(count));
            }
            Validity::Bitmap(words) => words,
        };
        let any_null = selection.words().iter().zip(words.iter());
        if !any_null
            .into_iter()
            .any(|(selected, valid)| selected & !valid != 0)
        {
            return None;
        }
        if selection.is_all() {
            return self.null_buffer(selection.rows());
        }
        let isa = Isa::best();
        let mut bits = BitAppender::default();
        let (masks, _) = selection.words().as_chunks::<MASK_WORDS>();
        for (mask, valid) in masks.iter().zip(words.as_chunks::<MASK_WORDS>().0) {
            if mask.iter().all(|&word| word == 0) {
                continue;
            }
            let mut selected = [0; MASK_WORDS];
            let count = isa.select_bits(valid, mask, &mut selected);
            bits.append(&selected, count);
        }
        Some(bits.finish())
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        if let Validity::Bitmap(words) = self {
            all.push(Extent::of(words));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Validity::All | Validity::None => 0,
            Validity::Bitmap(words) => words.len() * 8,
        }
    }
}

/// Strings bits together.
#[derive(Default)]
struct BitAppender {
    words: Vec<u64>,
    len: usize,
}

impl BitAppender {
    /// Appends the first `count` of `bits`; those beyond are 0.
    fn append(&mut self, bits: &[u64; MASK_WORDS], count: usize) {
        let shift = self.len % 64;
        for &word in &bits[..count.div_ceil(64)] {
            if shift == 0 {
                self.words.push(word);
            } else {
                *self.words.last_mut().expect("a word that is not full") |= word << shift;
                self.words.push(word >> (64 - shift));
            }
        }
        self.len += count;
        self.words.truncate(self.len.div_ceil(64));
    }

    fn finish(self) -> NullBuffer {
        NullBuffer::new(BooleanBuffer::new(
            Buffer::from_vec(self.words),
            0,
            self.len,
        ))
    }
}
