//! A frame for each vector: integers that rise, or lie close to their neighbours.
//!
//! ```text
//! frames   ┌ base ┬ step ┬ place │ difference? │ width ┐   three words per vector
//! words    └──────┴──────┴────────────┬───────────────┘
//!                                     ▼
//!          vector 0: 16 · width words │ vector 1 │ …         packed as the kernels do
//!
//! plain         value i = base + d[i]                        base: the vector's least value
//! differences   value i = value i - 1 + step + d[i]          step: the least difference; before value 0: base - step
//! ```
//!
//! Each vector has the width that it needs, so that one jump costs one vector, and takes whichever form is smaller. A
//! sorted column of keys that grow by up to 15 has differences of 4 bits however large the keys are.
//!
//! Any vector can be decoded by itself. If the values of a chunk never fall, a range of values is a range of rows,
//! found by binary search on the bases and decoding two vectors.

mod checked;

use crate::copier::Copier;
use crate::object_memory::ObjectMemory;
use crate::packed::width_of;
use crate::predicate::Reduced;
use crate::selection::Selection;
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack};
use eris_numa::{Buffer, Extent, OutOfMemory};

/// Integers in frames of 1,024.
#[derive(Debug)]
pub(crate) struct Framed {
    len: usize,
    /// [`FRAME_WORDS`] for each vector.
    frames: Buffer,
    words: Buffer,
    /// No value is below the one before it.
    sorted: bool,
}

pub(crate) const FRAME_WORDS: usize = 3;
/// So many rows are profiled in a block of their own: to clear a whole vector would take longer than to read them.
pub(crate) const FEW: usize = 64;

/// What is known of a vector without decoding it.
#[derive(Clone, Copy, Debug)]
struct Frame {
    base: i64,
    step: i64,
    /// The first of its words.
    place: usize,
    width: u8,
    differences: bool,
}

impl Frame {
    fn to_words(self) -> [u64; FRAME_WORDS] {
        let form = (self.differences as u64) << 8 | self.width as u64;
        [
            self.base as u64,
            self.step as u64,
            (self.place as u64) << 16 | form,
        ]
    }

    fn from_words(words: &[u64; FRAME_WORDS]) -> Self {
        Frame {
            base: words[0] as i64,
            step: words[1] as i64,
            place: (words[2] >> 16) as usize,
            width: words[2] as u8,
            differences: words[2] >> 8 & 1 == 1,
        }
    }
}

/// What the first pass over the values finds out: the size as frames, and until where to look at differences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePlan {
    words: usize,
    vectors: usize,
    /// Bits of the vectors seen while differences were looked at, in either form.
    plain_bits: usize,
    difference_bits: usize,
    /// The vectors from this one on are not looked at for differences, as those before did not gain.
    until: Option<usize>,
    sorted: bool,
    last: i64,
}

impl FramePlan {
    pub(crate) fn new() -> Self {
        FramePlan {
            words: 0,
            vectors: 0,
            plain_bits: 0,
            difference_bits: 0,
            until: None,
            sorted: true,
            last: i64::MIN,
        }
    }

    /// Takes in the next vector, whose least and greatest value are given.
    pub(crate) fn add(&mut self, isa: Isa, values: &[i64], min: i64, max: i64) {
        let plain = width_of(min, max);
        let mut width = plain;
        if self.until.is_none() {
            let (least, greatest) = difference_range(isa, values);
            let differences = width_of(least, greatest);
            if pays(differences, plain) {
                width = differences;
            }
            // A difference that is not negative did not wrap if the ends of the range are that close.
            self.sorted &= self.last <= values[0] && least >= 0 && max.checked_sub(min).is_some();
            self.last = values[values.len() - 1];
            self.plain_bits += plain as usize;
            self.difference_bits += differences as usize;
            // Without order the differences span twice the range: one bit more. A jump costs both forms the same.
            if self.difference_bits > self.plain_bits {
                self.until = Some(self.vectors + 1);
            }
        }
        self.words += MASK_WORDS * width as usize;
        self.vectors += 1;
    }

    pub(crate) fn bytes(&self) -> usize {
        (self.words + self.vectors * FRAME_WORDS) * size_of::<u64>()
    }

    fn looks_at(&self, vector: usize) -> bool {
        self.until.is_none_or(|until| vector < until)
    }
}

/// Differences cost a sum over the vector to find any value, so they have to be clearly narrower.
fn pays(differences: u8, plain: u8) -> bool {
    4 * differences as usize <= 3 * plain as usize
}

/// Least and greatest difference of neighbours, wrapping; 0 if there are none.
fn difference_range(isa: Isa, values: &[i64]) -> (i64, i64) {
    match values.len() {
        ..=FEW => difference_range_within::<FEW>(isa, values),
        _ => difference_range_within::<VECTOR>(isa, values),
    }
}

fn difference_range_within<const MOST: usize>(isa: Isa, values: &[i64]) -> (i64, i64) {
    let mut differences = [0; MOST];
    let count = values.len() - 1;
    for (difference, pair) in differences.iter_mut().zip(values.windows(2)) {
        *difference = pair[1].wrapping_sub(pair[0]);
    }
    isa.min_max_i64(&differences[..count]).unwrap_or((0, 0))
}

impl Framed {
    /// Encodes `len` values as planned; `next` writes each vector of them, at most 1,024, in turn.
    pub(crate) fn encode(
        len: usize,
        plan: &FramePlan,
        home: ObjectMemory<'_>,
        mut next: impl FnMut(&mut [i64]),
    ) -> Result<Self, OutOfMemory> {
        let isa = Isa::best();
        let mut frames = home.allocate::<u64>(plan.vectors * FRAME_WORDS)?;
        let mut words = home.allocate::<u64>(plan.words)?;
        let mut rest = words.as_mut_slice::<u64>();
        let (mut values, mut packed) = ([0; VECTOR], [0; VECTOR]);
        let mut place = 0;
        let (out, _) = frames.as_mut_slice::<u64>().as_chunks_mut::<FRAME_WORDS>();
        for (vector, out) in out.iter_mut().enumerate() {
            let values = &mut values[..(len - vector * VECTOR).min(VECTOR)];
            next(values);
            let frame = frame(isa, values, plan.looks_at(vector), place);
            packed.fill(0);
            if frame.differences {
                for (packed, pair) in packed[1..].iter_mut().zip(values.windows(2)) {
                    *packed = pair[1].wrapping_sub(pair[0]).wrapping_sub(frame.step) as u64;
                }
            } else {
                for (packed, value) in packed.iter_mut().zip(&*values) {
                    *packed = value.wrapping_sub(frame.base) as u64;
                }
            }
            let here;
            (here, rest) = rest.split_at_mut(MASK_WORDS * frame.width as usize);
            pack(&packed, frame.width, here);
            place += here.len();
            *out = frame.to_words();
        }
        Ok(Framed {
            len,
            frames,
            words,
            sorted: plan.sorted && plan.until.is_none(),
        })
    }

    /// Bits of a value on average, rounded.
    pub(crate) fn width(&self) -> u8 {
        let vectors = self.frames().len();
        ((self.words.len() * 8 + vectors * VECTOR / 2) / (vectors * VECTOR)) as u8
    }

    /// Whether most vectors are differences.
    pub(crate) fn is_delta(&self) -> bool {
        let differences = (0..self.frames().len()).filter(|&vector| self.frame(vector).differences);
        2 * differences.count() >= self.frames().len()
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        all.extend([self.frames.extent(), self.words.extent()]);
    }

    pub(crate) fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(Framed {
            frames: copier.copy(&self.frames)?,
            words: copier.copy(&self.words)?,
            ..*self
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.frames.len() + self.words.len()
    }

    /// [`FRAME_WORDS`] for each vector.
    pub(crate) fn frame_words(&self) -> &Buffer {
        &self.frames
    }

    /// The packed words of all vectors.
    pub(crate) fn value_words(&self) -> &Buffer {
        &self.words
    }

    fn frames(&self) -> &[[u64; FRAME_WORDS]] {
        self.frames.as_slice::<u64>().as_chunks().0
    }

    fn frame(&self, vector: usize) -> Frame {
        Frame::from_words(&self.frames()[vector])
    }

    fn words(&self, frame: Frame) -> &[u64] {
        &self.words.as_slice()[frame.place..][..MASK_WORDS * frame.width as usize]
    }

    /// All values of one vector; what is beyond the last is undefined.
    pub(crate) fn unpack(&self, isa: Isa, vector: usize, out: &mut [i64; VECTOR]) {
        let frame = self.frame(vector);
        let words = self.words(frame);
        if frame.differences {
            isa.unpack(frame.width, words, frame.step, out);
            isa.running_sums(frame.base.wrapping_sub(frame.step), out);
        } else {
            isa.unpack(frame.width, words, frame.base, out);
        }
    }

    pub(crate) fn get(&self, row: usize) -> i64 {
        debug_assert!(row < self.len);
        let (vector, row) = (row / VECTOR, row % VECTOR);
        let frame = self.frame(vector);
        if frame.differences && frame.width == 0 {
            let distance = (row as i64).wrapping_mul(frame.step);
            frame.base.wrapping_add(distance)
        } else if frame.differences {
            let mut differences = [0; VECTOR];
            Isa::best().unpack(frame.width, self.words(frame), frame.step, &mut differences);
            let sum = differences[..=row].iter();
            let sum = sum.fold(0i64, |sum, &difference| sum.wrapping_add(difference));
            frame.base.wrapping_sub(frame.step).wrapping_add(sum)
        } else {
            let distance = Isa::unpack_one(frame.width, self.words(frame), row);
            frame.base.wrapping_add(distance as i64)
        }
    }

    /// Calls `f` with the selected values, in order, in slices of at most 1,024.
    pub(crate) fn for_each(&self, isa: Isa, selection: &Selection, mut f: impl FnMut(&[i64])) {
        let (mut values, mut selected) = ([0; VECTOR], [0; VECTOR]);
        let masks = selection.words().as_chunks::<MASK_WORDS>().0;
        for (vector, mask) in masks.iter().enumerate() {
            let frame = self.frame(vector);
            if mask.iter().all(|&word| word == u64::MAX) {
                self.unpack(isa, vector, &mut values);
                f(&values);
            } else if mask.iter().all(|&word| word == 0) {
            } else if frame.differences {
                self.unpack(isa, vector, &mut values);
                let count = isa.select_i64(&values, mask, &mut selected);
                f(&selected[..count]);
            } else {
                let words = self.words(frame);
                let count = isa.gather_packed(frame.width, words, frame.base, mask, &mut selected);
                f(&selected[..count]);
            }
        }
    }

    /// The values of rows of one vector.
    pub(crate) fn take(&self, isa: Isa, rows: &[u32], out: &mut [i64]) {
        let vector = rows[0] as usize / VECTOR;
        let frame = self.frame(vector);
        let places = rows.iter().map(|row| row % VECTOR as u32);
        if frame.differences {
            let mut values = [0; VECTOR];
            self.unpack(isa, vector, &mut values);
            for (out, place) in out.iter_mut().zip(places) {
                *out = values[place as usize];
            }
        } else {
            let words = self.words(frame);
            for (out, place) in out.iter_mut().zip(places) {
                let distance = Isa::unpack_one(frame.width, words, place as usize);
                *out = frame.base.wrapping_add(distance as i64);
            }
        }
    }

    /// Keeps the rows that pass.
    pub(crate) fn filter(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        if self.sorted {
            self.filter_sorted(isa, condition, selection);
        } else {
            self.filter_vectors(isa, condition, selection);
        }
    }

    fn filter_sorted(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        let mut keep = |low: i64, high: i64| {
            let (start, end) = (self.rows_below(isa, low), self.rows_up_to(isa, high));
            selection.remove_range(0, start);
            selection.remove_range(end.max(start), self.len);
        };
        match condition {
            Reduced::None => selection.clear(),
            Reduced::All => {}
            Reduced::Between(low, high) => keep(low, high),
            Reduced::NotBetween(low, high) => {
                let (start, end) = (self.rows_below(isa, low), self.rows_up_to(isa, high));
                selection.remove_range(start, end.max(start));
            }
            Reduced::Ranges(ranges) => {
                keep(ranges[0].0, ranges[ranges.len() - 1].1);
                self.filter_vectors(isa, condition, selection);
            }
            Reduced::Bitmap { first, words } => {
                let bits = i64::try_from(words.len() * 64 - 1).expect("a bitmap in memory");
                keep(first, first.saturating_add(bits));
                self.filter_vectors(isa, condition, selection);
            }
            Reduced::Set(values) => {
                keep(values[0], values[values.len() - 1]);
                self.filter_vectors(isa, condition, selection);
            }
        }
    }

    /// The first row whose value is not below `value`, of values that never fall.
    fn rows_below(&self, isa: Isa, value: i64) -> usize {
        let after = self
            .frames()
            .partition_point(|frame| (frame[0] as i64) < value);
        // The vectors from `after` on begin with no lesser value; the one before may end with one.
        let Some(vector) = after.checked_sub(1) else {
            return 0;
        };
        let mut values = [0; VECTOR];
        self.unpack(isa, vector, &mut values);
        let here = &values[..(self.len - vector * VECTOR).min(VECTOR)];
        vector * VECTOR + here.partition_point(|&here| here < value)
    }

    fn rows_up_to(&self, isa: Isa, value: i64) -> usize {
        match value.checked_add(1) {
            Some(next) => self.rows_below(isa, next),
            None => self.len,
        }
    }

    fn filter_vectors(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        self.filter_each(isa, &mut [(condition, selection.words_mut())]);
    }

    /// Clears, of the masks of each condition, the bits of the values that do not pass it. A vector is decoded once.
    pub(crate) fn filter_each(&self, isa: Isa, conditions: &mut [(Reduced<'_>, &mut [u64])]) {
        let mut values = [0; VECTOR];
        for vector in 0..self.frames().len() {
            let mut is_decoded = false;
            for (condition, masks) in conditions.iter_mut() {
                let mask = &mut masks.as_chunks_mut::<MASK_WORDS>().0[vector];
                if mask.iter().all(|&word| word == 0) {
                    continue;
                }
                if !std::mem::replace(&mut is_decoded, true) {
                    self.unpack(isa, vector, &mut values);
                }
                keep(isa, *condition, &values, mask);
            }
        }
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }
}

/// Clears the bits of the values of a vector that do not pass.
fn keep(isa: Isa, condition: Reduced<'_>, values: &[i64; VECTOR], mask: &mut [u64; MASK_WORDS]) {
    let between = |low: i64, high: i64| {
        let mut inside = [0; MASK_WORDS];
        isa.between_i64(values, low, high, &mut inside);
        inside
    };
    match condition {
        Reduced::None => mask.fill(0),
        Reduced::All => {}
        Reduced::Between(low, high) => eris_kernels::and(mask, &between(low, high)),
        Reduced::NotBetween(low, high) => eris_kernels::and_not(mask, &between(low, high)),
        Reduced::Ranges(ranges) => {
            let mut inside = [0; MASK_WORDS];
            for &(low, high) in ranges {
                eris_kernels::or(&mut inside, &between(low, high));
            }
            eris_kernels::and(mask, &inside);
        }
        Reduced::Bitmap { first, words } => retain(mask, values, |value| {
            let bit = value.wrapping_sub(first) as u64;
            value >= first
                && (words.get((bit / 64) as usize)).is_some_and(|word| word >> (bit % 64) & 1 == 1)
        }),
        Reduced::Set(set) => retain(mask, values, |value| set.binary_search(&value).is_ok()),
    }
}

/// The frame of a vector in the smaller form.
fn frame(isa: Isa, values: &[i64], look_at_differences: bool, place: usize) -> Frame {
    let (min, max) = isa.min_max_i64(values).expect("a vector has values");
    let plain = width_of(min, max);
    if look_at_differences {
        let (least, greatest) = difference_range(isa, values);
        let width = width_of(least, greatest);
        if pays(width, plain) {
            return Frame {
                base: values[0],
                step: least,
                place,
                width,
                differences: true,
            };
        }
    }
    Frame {
        base: min,
        step: 0,
        place,
        width: plain,
        differences: false,
    }
}

/// Keeps the bits of the values that pass; calls `passes` for selected ones alone.
pub(crate) fn retain(
    mask: &mut [u64; MASK_WORDS],
    values: &[i64; VECTOR],
    passes: impl Fn(i64) -> bool,
) {
    for (word, values) in mask.iter_mut().zip(values.as_chunks::<64>().0) {
        let mut rest = *word;
        while rest != 0 {
            let bit = rest.trailing_zeros() as usize;
            *word ^= (!passes(values[bit]) as u64) << bit;
            rest &= rest - 1;
        }
    }
}
