//! The stored form of integers, dictionary codes among them, that are not all equal.
//!
//! ```text
//! integers     least │ greatest - least │ one of these
//! packed       packed values
//! run-length   runs │ packed values of the runs │ section: the last row of each run (u16)
//! short-runs   runs │ packed values of the runs │ bits, or for 512 rows or more a section of them: where runs start
//! framed       sorted: 1 byte │ section: three words per vector │ section: words of all vectors
//!                                                                 or, of fewer than 512 rows, the distances as packed
//! ```

use super::error::{FormError, ensure};
use super::packed::{WHOLE, dense, read_bits, sparse, store_bits};
use super::reader::FormReader;
use super::writer::FormWriter;
use super::{kinds, packed};
use crate::data::Integers;
use crate::framed::{FRAME_WORDS, Framed};
use crate::object_memory::ObjectMemory;
use crate::predicate::Reduced;
use crate::runs::Runs;
use crate::short_runs::ShortRuns;
use crate::validity::Validity;
use eris_kernels::{Isa, MASK_WORDS, VECTOR};

/// The number of the encoding.
pub(super) fn kind(integers: &Integers) -> u8 {
    match integers {
        Integers::Constant(_) => kinds::CONSTANT,
        Integers::Packed(_) => kinds::PACKED,
        Integers::Runs(_) => kinds::RUNS,
        Integers::ShortRuns(_) => kinds::SHORT_RUNS,
        Integers::Framed(_) => kinds::FRAMED,
    }
}

/// Writes integers within this range that are not all equal.
pub(super) fn store<'a>(
    integers: &'a Integers,
    (least, greatest): (i64, i64),
    rows: usize,
    out: &mut FormWriter<'a>,
) {
    out.signed(least);
    out.number(greatest.wrapping_sub(least) as u64);
    match integers {
        Integers::Constant(_) => unreachable!("a constant is a value"),
        Integers::Packed(values) => packed::store(values, least, out),
        Integers::Runs(runs) => {
            out.number(runs.runs() as u64);
            packed::store(runs.values(), least, out);
            out.section(runs.ends().as_slice());
        }
        Integers::ShortRuns(runs) => {
            out.number(runs.runs() as u64);
            packed::store(runs.values(), least, out);
            if rows < WHOLE {
                store_bits(runs.start_words().as_slice(), rows, out);
            } else {
                out.section(runs.start_words().as_slice());
            }
        }
        Integers::Framed(framed) => {
            out.byte(framed.is_sorted().into());
            out.section(framed.frame_words().as_slice());
            if rows < WHOLE {
                let words = framed.value_words().as_slice::<u64>();
                dense(bits_of_one(words), words, rows, out);
            } else {
                out.section(framed.value_words().as_slice());
            }
        }
    }
}

/// Bits of a value if the words are those of one vector.
fn bits_of_one(words: &[u64]) -> u8 {
    (words.len() / MASK_WORDS) as u8
}

/// Reads integers of this kind, and their range.
pub(super) fn read(
    kind: u8,
    rows: usize,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Integers, i64, i64), FormError> {
    let least = form.signed()?;
    let greatest = least.wrapping_add(form.number()? as i64);
    ensure(least < greatest, "a range without values")?;
    let runs = |form: &mut FormReader<'_>| {
        let runs = form.number()?;
        let right = runs >= 2 && runs <= rows as u64;
        ensure(right, "more runs than rows, or fewer than two")?;
        Ok::<_, FormError>(runs as usize)
    };
    let integers = match kind {
        kinds::PACKED => Integers::Packed(packed::read(rows, least, greatest, form, home)?),
        kinds::RUNS => {
            let runs = runs(form)?;
            let values = packed::read(runs, least, greatest, form, home)?;
            let ends = form.section(runs * size_of::<u16>(), home)?;
            let last = ends.as_slice::<u16>();
            let ascend = last.windows(2).all(|pair| pair[0] < pair[1]);
            let all = last.last().is_some_and(|&last| last as usize + 1 == rows);
            ensure(ascend && all, "runs that do not make up the rows")?;
            Integers::Runs(Runs::of_parts(values, ends))
        }
        kinds::SHORT_RUNS => {
            let runs = runs(form)?;
            let values = packed::read(runs, least, greatest, form, home)?;
            let starts = if rows < WHOLE {
                read_bits(rows, form, home)?
            } else {
                form.section(rows.div_ceil(VECTOR) * MASK_WORDS * size_of::<u64>(), home)?
            };
            let first = home.allocate::<u16>(rows.div_ceil(VECTOR))?;
            let runs = ShortRuns::of_parts(values, starts, first, rows);
            Integers::ShortRuns(
                runs.ok_or(FormError::Damaged("starts that are not those of the runs"))?,
            )
        }
        kinds::FRAMED => {
            let sorted = match form.byte()? {
                0 => false,
                1 => true,
                _ => return Err(FormError::Damaged("neither sorted nor not")),
            };
            let vectors = rows.div_ceil(VECTOR);
            let frames = form.section(vectors * FRAME_WORDS * size_of::<u64>(), home)?;
            let widths =
                Framed::widths(&frames).ok_or(FormError::Damaged("a frame that is none"))?;
            let words = if rows < WHOLE {
                sparse(widths as u8, rows, form, home)?
            } else {
                form.section(widths * MASK_WORDS * size_of::<u64>(), home)?
            };
            let framed = Framed::of_parts(rows, frames, words, sorted);
            let range = framed.looked_through(Isa::best());
            ensure(
                range == Some((least, greatest)),
                "frames or a range that are not those of the values",
            )?;
            Integers::Framed(framed)
        }
        other => return Err(FormError::Encoding(other)),
    };
    Ok((integers, least, greatest))
}

/// Whether a row that is not NULL has this value, which is within the range.
pub(super) fn occurs(integers: &Integers, value: i64, rows: usize, validity: &Validity) -> bool {
    let mut found = validity.selection(rows);
    let condition = Reduced::Between(value, value);
    integers.filter(Isa::best(), condition, &mut found);
    !found.is_empty()
}
