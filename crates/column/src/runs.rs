//! Run-length encoding, for values that repeat many times in a row.

use crate::copier::Copier;
use crate::object_memory::ObjectMemory;
use crate::packed::{Packed, packed_bytes};
use crate::predicate::Reduced;
use crate::selection::Selection;
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use eris_numa::{Buffer, Extent, OutOfMemory};

/// Runs of equal integers.
///
/// ```text
/// rows     7 7 7 7 9 9 5          values  7 9 5      (packed)
///          0 1 2 3 4 5 6          last    3 5 6      (u16: the last row of each run)
/// ```
#[derive(Debug)]
pub(crate) struct Runs {
    values: Packed,
    last: Buffer,
}

/// Bytes of `runs` runs whose values take `width` bits.
pub(crate) fn runs_bytes(runs: usize, width: u8) -> usize {
    packed_bytes(runs, width) + runs * size_of::<u16>()
}

impl Runs {
    /// Encodes `rows` values from `min..=max` that form `runs` runs; `next` as in [`Packed::encode`].
    pub(crate) fn encode(
        rows: usize,
        runs: usize,
        min: i64,
        max: i64,
        home: ObjectMemory<'_>,
        mut next: impl FnMut(&mut [i64]),
    ) -> Result<Self, OutOfMemory> {
        let mut last = home.allocate::<u16>(runs)?;
        let ends = last.as_mut_slice::<u16>();
        // Runs are few beside the rows, or this encoding would not have been chosen.
        let mut values = Vec::with_capacity(runs);
        let mut block = [0; VECTOR];
        for start in (0..rows).step_by(VECTOR) {
            let here = &mut block[..(rows - start).min(VECTOR)];
            next(here);
            for (row, &value) in (start..).zip(&*here) {
                if values.last() != Some(&value) {
                    values.push(value);
                }
                ends[values.len() - 1] = row as u16;
            }
        }
        debug_assert_eq!(values.len(), runs);
        let mut rest = &values[..];
        let values = Packed::encode(runs, min, max, home, |out| {
            let (here, after) = rest.split_at(out.len());
            out.copy_from_slice(here);
            rest = after;
        })?;
        Ok(Runs { values, last })
    }

    /// Of the values of the runs, and the last row of each.
    pub(crate) fn of_parts(values: Packed, last: Buffer) -> Self {
        Runs { values, last }
    }

    pub(crate) fn values(&self) -> &Packed {
        &self.values
    }

    /// The last row of each run.
    pub(crate) fn ends(&self) -> &Buffer {
        &self.last
    }

    pub(crate) fn width(&self) -> u8 {
        self.values.width()
    }

    pub(crate) fn runs(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        self.values.extents(all);
        all.push(self.last.extent());
    }

    pub(crate) fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(Runs {
            values: self.values.copied(copier)?,
            last: copier.copy(&self.last)?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes() + self.last.len()
    }

    pub(crate) fn get(&self, row: usize) -> i64 {
        let run = self
            .last
            .as_slice::<u16>()
            .partition_point(|&last| (last as usize) < row);
        self.values.get(run)
    }

    /// The values of these rows, which ascend.
    pub(crate) fn take(&self, isa: Isa, rows: &[u32], out: &mut [i64]) {
        let mut ends = self.last.as_slice::<u16>().iter().zip(0..);
        let mut run = ends.next();
        let of_row = |&row: &u32| {
            while run.is_some_and(|(&last, _)| u32::from(last) < row) {
                run = ends.next();
            }
            run.expect("a row of the chunk").1
        };
        let runs: Vec<u32> = rows.iter().map(of_row).collect();
        self.values.take(isa, &runs, out);
    }

    /// Calls `f` with each run, in order: its value, its first row, and the row after its last.
    pub(crate) fn for_each(&self, isa: Isa, mut f: impl FnMut(i64, usize, usize)) {
        let mut values = [0; VECTOR];
        let mut start = 0;
        for (vector, ends) in self.last.as_slice::<u16>().chunks(VECTOR).enumerate() {
            self.values.unpack(isa, vector, &mut values);
            for (&value, &last) in values.iter().zip(ends) {
                let end = last as usize + 1;
                f(value, start, end);
                start = end;
            }
        }
    }

    /// Keeps the rows that pass: the condition is evaluated once for each run.
    pub(crate) fn filter(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        let mut masks = vec![u64::MAX; self.runs().div_ceil(VECTOR) * MASK_WORDS];
        self.values.filter(isa, condition, true, &mut masks);
        let mut start = 0;
        for (run, &last) in self.last.as_slice::<u16>().iter().enumerate() {
            let end = last as usize + 1;
            if masks[run / 64] >> (run % 64) & 1 == 0 {
                selection.remove_range(start, end);
            }
            start = end;
        }
    }
}
