//! Integers of a few rows, which ascend.
//!
//! A [gather](ColumnChunk::gather_integers) goes over the bits of a selection, for each column again. Where few rows
//! are left these are counted out once ([`Selection::positions`](crate::Selection::positions)), and every column is
//! asked for their values.

use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers};
use crate::dictionary::Dictionary;
use crate::gather::integer_array;
use crate::pick::texts_of;
use arrow_array::ArrayRef;
use arrow_schema::DataType;
use eris_kernels::{Isa, VECTOR};

/// Of one row in so many, or fewer, it is worth to have the numbers.
pub const FEW_ROWS: usize = 16;

impl ColumnChunk {
    /// Appends the integers, or dictionary codes, of the rows at these positions, which ascend. That of a NULL is
    /// unspecified.
    ///
    /// # Panics
    /// If the chunk holds anything else, or there is no such row.
    pub fn take_integers(&self, isa: Isa, rows: &[u32], out: &mut Vec<i64>) {
        self.assert_has(rows);
        match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => {
                integers.take(isa, rows, out);
            }
            Data::Ordinals {
                ordinals, order, ..
            } => {
                let first = out.len();
                ordinals.take(isa, rows, out);
                let key = |ordinal: &mut i64| *ordinal = order.keys()[*ordinal as usize];
                out[first..].iter_mut().for_each(key);
            }
            _ => panic!("integers asked of {:?}", self.domain()),
        }
    }

    /// Appends the ordinals of the rows at these positions, which ascend. That of a NULL is unspecified.
    ///
    /// # Panics
    /// If the chunk is not stored by an order, or there is no such row.
    pub fn take_ordinals(&self, isa: Isa, rows: &[u32], out: &mut Vec<i64>) {
        self.assert_has(rows);
        match &self.data {
            Data::Ordinals { ordinals, .. } => ordinals.take(isa, rows, out),
            _ => panic!("ordinals asked of a chunk without an order"),
        }
    }

    /// The values of the rows at these positions, which ascend, as [`ColumnChunk::gather`] has them: if they are
    /// integers or codes. Others are found as fast by a selection.
    ///
    /// # Panics
    /// As there, or if there is no such row.
    pub fn take(
        &self,
        isa: Isa,
        rows: &[u32],
        data_type: &DataType,
        dictionary: Option<&Dictionary>,
    ) -> Option<ArrayRef> {
        if !matches!(
            self.data,
            Data::Integers(_) | Data::Codes(_) | Data::Ordinals { .. }
        ) {
            return None;
        }
        let mut values = Vec::with_capacity(rows.len());
        self.take_integers(isa, rows, &mut values);
        let nulls = self.pick_validity(rows.iter().map(|&row| row as usize));
        Some(match self.data {
            Data::Codes(_) => {
                let codes = values.into_iter().map(|code| code as u32);
                texts_of(codes.collect(), nulls, data_type, dictionary)
            }
            _ => integer_array(rows.len(), data_type, nulls, |f| f(&values)),
        })
    }

    fn assert_has(&self, rows: &[u32]) {
        let last = rows.last();
        assert!(
            last.is_none_or(|&row| (row as usize) < self.rows),
            "rows of another chunk"
        );
    }
}

impl Integers {
    /// Appends the values of these rows, which ascend.
    pub(crate) fn take(&self, isa: Isa, rows: &[u32], out: &mut Vec<i64>) {
        let first = out.len();
        out.resize(first + rows.len(), 0);
        let out = &mut out[first..];
        match self {
            Integers::Constant(value) => out.fill(*value),
            Integers::Packed(packed) => packed.take(isa, rows, out),
            Integers::Runs(runs) => runs.take(isa, rows, out),
            Integers::ShortRuns(runs) => runs.take(isa, rows, out),
            Integers::Framed(framed) => {
                let mut taken = 0;
                for rows in rows.chunk_by(|a, b| a / VECTOR as u32 == b / VECTOR as u32) {
                    framed.take(isa, rows, &mut out[taken..][..rows.len()]);
                    taken += rows.len();
                }
            }
        }
    }
}
