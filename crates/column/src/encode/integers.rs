//! Profile the integers of a chunk, choose the smallest encoding, write it.

use super::Encoder;
use super::source::{Filled, ValueSource};
use crate::data::Integers;
use crate::framed::{FEW, FramePlan, Framed};
use crate::packed::{Packed, packed_bytes, width_of};
use crate::runs::{Runs, runs_bytes};
use crate::short_runs::{ShortRuns, short_runs_bytes};
use eris_kernels::{Isa, VECTOR};
use eris_numa::OutOfMemory;

/// Runs must be so long on average. A run costs a filter or a gather about as much as this many packed rows, which go
/// through SIMD: with shorter runs, fewer bytes would take longer (docs/decisions/0002).
const RUN_ROWS: usize = 32;

/// What the first pass finds out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    pub min: i64,
    pub max: i64,
    /// Runs of equal values.
    pub runs: usize,
    /// With a frame for each vector.
    pub framed: FramePlan,
}

impl Profile {
    /// Reads `rows` values, at least one.
    pub(super) fn of<S: ValueSource>(rows: usize, values: Filled<'_, S>) -> Self {
        match rows {
            ..=FEW => Profile::by_blocks::<FEW, S>(rows, values),
            _ => Profile::by_blocks::<VECTOR, S>(rows, values),
        }
    }

    fn by_blocks<const BLOCK: usize, S: ValueSource>(
        rows: usize,
        mut values: Filled<'_, S>,
    ) -> Self {
        let isa = Isa::best();
        let mut profile = Profile {
            min: i64::MAX,
            max: i64::MIN,
            runs: 1,
            framed: FramePlan::new(),
        };
        let mut block = [0; BLOCK];
        let mut last = None;
        for start in (0..rows).step_by(BLOCK) {
            let block = &mut block[..(rows - start).min(BLOCK)];
            values.next(block);
            let (min, max) = isa.min_max_i64(block).expect("a block has values");
            profile.framed.add(isa, block, min, max);
            profile.min = profile.min.min(min);
            profile.max = profile.max.max(max);
            profile.runs += last.is_some_and(|last| last != block[0]) as usize;
            let pairs = block.iter().zip(&block[1..]);
            profile.runs += pairs.map(|(a, b)| (a != b) as usize).sum::<usize>();
            last = block.last().copied();
        }
        profile
    }
}

/// Whether an encoding that takes longer to read is small enough beside a quicker one: by a quarter.
fn pays(bytes: usize, quicker: usize) -> bool {
    4 * bytes <= 3 * quicker
}

/// Encodes integers; the profile is `None` if there are only NULLs.
pub(super) fn encode<S: ValueSource>(
    encoder: &Encoder<'_>,
    source: S,
) -> Result<(Integers, Option<Profile>), OutOfMemory> {
    let (rows, home) = (encoder.rows, encoder.home);
    let Some(mut values) = encoder.filled(source) else {
        return Ok((Integers::Constant(0), None));
    };
    let profile = Profile::of(rows, values.clone());
    let Profile { min, max, runs, .. } = profile;
    let width = width_of(min, max);
    let packed = packed_bytes(rows, width);
    let short = short_runs_bytes(rows, runs, width);
    let framed = profile.framed.bytes();
    let integers = if min == max {
        Integers::Constant(min)
    } else if RUN_ROWS * runs <= rows && runs_bytes(runs, width) < packed {
        Integers::Runs(Runs::encode(rows, runs, min, max, home, |out| {
            values.next(out)
        })?)
    } else if pays(short, packed) && !pays(framed, short) {
        Integers::ShortRuns(ShortRuns::encode(rows, runs, min, max, home, |out| {
            values.next(out)
        })?)
    } else if pays(framed, packed) {
        Integers::Framed(Framed::encode(rows, &profile.framed, home, |out| {
            values.next(out)
        })?)
    } else {
        Integers::Packed(Packed::encode(rows, min, max, home, |out| {
            values.next(out)
        })?)
    };
    Ok((integers, Some(profile)))
}
