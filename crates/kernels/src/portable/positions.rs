//! Rows by their numbers, in plain code.

use crate::VECTOR;
use crate::layout::{Lane, RUNS_WORDS, by_lane, max_value, vector_words};

#[inline(always)]
pub(crate) fn positions(masks: &[u64], out: &mut [u32]) {
    let mut n = 0;
    for (word, &bits) in masks.iter().enumerate() {
        let mut rest = bits;
        while rest != 0 {
            out[n] = word as u32 * 64 + rest.trailing_zeros();
            n += 1;
            rest &= rest - 1;
        }
    }
}

/// Lines of memory for each position, at most, where it pays to ask for all of them.
const LINES_PER_POSITION: usize = 8;

/// Vectors that are asked for before their turn.
const AHEAD: usize = 4;

/// Words of a line.
const LINE: usize = 8;

/// Asks for lines before they are needed.
struct Ahead<'a, F> {
    words: &'a [u64],
    width: u8,
    /// The next word to be asked for.
    next: usize,
    /// Positions that lie on so many vectors as are asked for before their turn; none are where it does not pay.
    distance: Option<usize>,
    ask: F,
}

impl<'a, F: Fn(&u64)> Ahead<'a, F> {
    #[inline(always)]
    fn new(width: u8, words: &'a [u64], positions: &[u32], ask: F) -> Self {
        let vector =
            |position: Option<&u32>| position.map_or(0, |&position| position as usize / VECTOR);
        let first = vector(positions.first());
        let vectors = vector(positions.last()).saturating_sub(first) + 1;
        let lines = vectors * vector_words(width) / LINE;
        let pays = vectors > AHEAD && lines <= LINES_PER_POSITION * positions.len();
        Ahead {
            words,
            width,
            next: first * vector_words(width),
            distance: pays.then_some(AHEAD * positions.len() / vectors),
            ask,
        }
    }

    /// Before the position at `at` is looked at.
    #[inline(always)]
    fn ask(&mut self, positions: &[u32], at: usize) {
        let Some(distance) = self.distance else {
            return;
        };
        let Some(&position) = positions.get(at + distance) else {
            return;
        };
        let end = (position as usize / VECTOR + 1) * vector_words(self.width);
        while self.next < end {
            (self.ask)(&self.words[self.next]);
            self.next += LINE;
        }
    }
}

/// Positions that are looked at between two looks ahead.
const STEP: usize = 8;

#[inline(always)]
fn take_lane<T: Lane>(
    width: u8,
    words: &[u64],
    base: i64,
    positions: &[u32],
    out: &mut [i64],
    ask: impl Fn(&u64),
) {
    let vectors = words.len() / vector_words(width);
    if let Some(&last) = positions.iter().max() {
        let vector = last as usize / VECTOR;
        assert!(vector < vectors, "position {last} of {vectors} vectors");
    }
    let mut ahead = Ahead::new(width, words, positions, ask);
    let words = T::view(words);
    let mask = T::from_u64(max_value(width));
    let (lanes, bits, width) = (T::LANES as u32, T::BITS as u32, width as u32);
    let value = |position: u32| {
        let (vector, at) = (position / VECTOR as u32, position % VECTOR as u32);
        let bit = at / lanes * width;
        let low = bit / bits;
        // Of a value within one word nothing comes from the next, which has to be there all the same.
        let high = (low + 1).min(width - 1);
        let start = vector as usize * (width * lanes) as usize + (at % lanes) as usize;
        let (low, high) = ((low * lanes) as usize, (high * lanes) as usize);
        // SAFETY: the vector is one of those in `words`, as seen above; `at / lanes` is below `bits`, so that both
        // words are among the `width * lanes` of the vector.
        let (low, high) = unsafe {
            (
                *words.get_unchecked(start + low),
                *words.get_unchecked(start + high),
            )
        };
        base.wrapping_add(T::field(low, high, bit % bits, mask).to_u64() as i64)
    };
    for (step, out) in out.chunks_mut(STEP).enumerate() {
        ahead.ask(positions, step * STEP);
        for (out, &position) in out.iter_mut().zip(&positions[step * STEP..]) {
            *out = value(position);
        }
    }
}

/// `ask` is told a word of each line that will be needed.
#[inline(always)]
pub(crate) fn take_packed_with(
    width: u8,
    words: &[u64],
    base: i64,
    positions: &[u32],
    out: &mut [i64],
    ask: impl Fn(&u64),
) {
    by_lane!(width, take_lane(words, base, positions, out, ask));
}

pub(crate) fn take_packed(width: u8, words: &[u64], base: i64, positions: &[u32], out: &mut [i64]) {
    take_packed_with(width, words, base, positions, out, |_| {});
}

#[inline(always)]
pub(crate) fn runs_of(starts: &[u64], rows: &[u32], runs: &mut [u32]) {
    // Starts before each word, and at its first bit at least the one that no row is before.
    let mut before = [0; RUNS_WORDS];
    let mut count = 0;
    for (before, starts) in before.iter_mut().zip(starts) {
        *before = count;
        count += starts.count_ones();
    }
    for (run, &row) in runs.iter_mut().zip(rows) {
        let (word, bit) = (row as usize / 64, row % 64);
        *run = before[word] + (starts[word] << (63 - bit)).count_ones() - 1;
    }
}
