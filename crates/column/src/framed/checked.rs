//! Frames that come from elsewhere, and whether they are as [`Framed::encode`] makes them.

use super::{FRAME_WORDS, Frame, Framed, difference_range};
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use eris_numa::Buffer;

impl Framed {
    /// The widths of all frames together, if each is well-formed and its words follow those of the one before.
    pub(crate) fn widths(frames: &Buffer) -> Option<usize> {
        let mut widths = 0;
        for words in frames.as_slice::<u64>().as_chunks::<FRAME_WORDS>().0 {
            let frame = Frame::from_words(words);
            let sound = frame.to_words() == *words
                && frame.width <= 64
                && frame.place == widths * MASK_WORDS
                && (frame.differences || frame.step == 0);
            if !sound {
                return None;
            }
            widths += usize::from(frame.width);
        }
        Some(widths)
    }

    /// Of frames and the words that they name.
    pub(crate) fn of_parts(len: usize, frames: Buffer, words: Buffer, sorted: bool) -> Self {
        Framed {
            len,
            frames,
            words,
            sorted,
        }
    }

    /// The range of the values, read one by one. `None` if there are none, a base is not what it has to be, something
    /// follows the last value, or the values are called sorted and are not.
    pub(crate) fn looked_through(&self, isa: Isa) -> Option<(i64, i64)> {
        let mut values = [0; VECTOR];
        let mut range = None;
        let mut last = i64::MIN;
        for vector in 0..self.frames().len() {
            let here = (self.len - vector * VECTOR).min(VECTOR);
            let frame = self.frame(vector);
            if here < VECTOR {
                isa.unpack(frame.width, self.words(frame), 0, &mut values);
                if values[here..].iter().any(|&distance| distance != 0) {
                    return None;
                }
            }
            self.unpack(isa, vector, &mut values);
            let values = &values[..here];
            let (least, greatest) = isa.min_max_i64(values)?;
            let base = if frame.differences { values[0] } else { least };
            if base != frame.base {
                return None;
            }
            if self.sorted {
                // A difference that is not negative did not wrap if the ends of the range are that close.
                let (fall, _) = difference_range(isa, values);
                if last > values[0] || fall < 0 || greatest.checked_sub(least).is_none() {
                    return None;
                }
            }
            last = values[here - 1];
            let (min, max) = range.unwrap_or((least, greatest));
            range = Some((least.min(min), greatest.max(max)));
        }
        range
    }
}
