//! Column chunks that are stored by an order of keys.

use crate::chunk::ColumnChunk;
use crate::data::Data;
use crate::encode::{integers, ordinals};
use crate::error::EncodeError;
use crate::key_order::KeyOrder;
use crate::object_memory::ObjectMemory;
use crate::predicate::ColumnPredicate;
use crate::selection::Selection;
use crate::zone::ZoneRange;
use eris_kernels::Isa;
use std::sync::Arc;

/// A stored column may become larger by this share, of a hundred, when it is stored by an order: comparing with ranges
/// is worth that.
const GROWTH: usize = 25;

impl ColumnChunk {
    /// The order that the values are stored by, if they are.
    pub fn order(&self) -> Option<&Arc<KeyOrder>> {
        match &self.data {
            Data::Ordinals { order, .. } => Some(order),
            _ => None,
        }
    }

    /// The same integers, stored by an order; `None` if one of them is not in it, there are none, or that takes too
    /// much room. If they are stored by an order with which this one begins, only the order is another.
    ///
    /// # Errors
    /// [`EncodeError`]: the memory of the home is exhausted.
    ///
    /// # Panics
    /// If the chunk holds anything but integers.
    pub fn stored_by(
        &self,
        order: &Arc<KeyOrder>,
        home: ObjectMemory<'_>,
    ) -> Result<Option<ColumnChunk>, EncodeError> {
        if matches!(self.zone.range, ZoneRange::Empty) {
            return Ok(None);
        }
        if let Data::Ordinals {
            ordinals,
            order: shorter,
            low,
            high,
        } = &self.data
            && order.extends(shorter)
        {
            return Ok(Some(ColumnChunk {
                rows: self.rows,
                zone: self.zone.clone(),
                data: Data::Ordinals {
                    ordinals: ordinals.clone(),
                    order: order.clone(),
                    low: *low,
                    high: *high,
                },
                validity: self.validity.clone(),
                distinct: self.distinct.clone(),
            }));
        }
        let mut values = Vec::with_capacity(self.rows);
        self.gather_integers(Isa::best(), &Selection::all(self.rows), &mut values);
        let nulls = self.validity.null_buffer(self.rows);
        for (row, value) in values.iter_mut().enumerate() {
            match order.ordinal(*value) {
                Some(ordinal) => *value = ordinal.into(),
                // The slot of a NULL may hold anything.
                None if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => *value = 0,
                None => return Ok(None),
            }
        }
        let mut stored = ordinals(&values, nulls.as_ref(), order, home)?;
        stored.zone = self.zone.clone();
        stored.distinct = self.distinct.clone();
        let most = self.bytes() + self.bytes() * GROWTH / 100;
        Ok((stored.bytes() <= most || stored.bytes() <= self.rows / 8).then_some(stored))
    }

    /// The column by no order: itself, if it is stored by none.
    ///
    /// # Errors
    /// The memory of the home is exhausted.
    pub fn unordered(self: &Arc<Self>, home: ObjectMemory<'_>) -> Result<Arc<Self>, EncodeError> {
        match self.order() {
            None => Ok(Arc::clone(self)),
            Some(_) => Ok(Arc::new(self.without_order(home)?)),
        }
    }

    /// The same integers, stored by no order.
    pub(crate) fn without_order(&self, home: ObjectMemory<'_>) -> Result<ColumnChunk, EncodeError> {
        let mut values = Vec::with_capacity(self.rows);
        self.gather_integers(Isa::best(), &Selection::all(self.rows), &mut values);
        let nulls = self.validity.null_buffer(self.rows);
        let mut unordered = integers(&values, nulls.as_ref(), home)?;
        unordered.distinct = self.distinct.clone();
        Ok(unordered)
    }

    /// Whether no row can pass, as far as that is known without reading any.
    pub fn excludes(&self, predicate: &ColumnPredicate) -> bool {
        match (&self.data, predicate) {
            (Data::Ordinals { low, high, .. }, ColumnPredicate::Ordinals { .. }) => {
                predicate.excludes_integers(*low, *high)
            }
            _ => predicate.excludes(&self.zone),
        }
    }

    /// Whether every row passes, as far as that is known without reading any.
    pub fn covers(&self, predicate: &ColumnPredicate) -> bool {
        match (&self.data, predicate) {
            (Data::Ordinals { low, high, .. }, ColumnPredicate::Ordinals { .. }) => {
                self.nulls() == 0 && predicate.covers_integers(*low, *high)
            }
            _ => predicate.covers(&self.zone, self.rows),
        }
    }

    /// Appends the selected ordinals, in the order of their rows. That of a NULL is unspecified.
    ///
    /// # Panics
    /// If the chunk is not stored by an order.
    pub fn gather_ordinals(&self, isa: Isa, selection: &Selection, out: &mut Vec<i64>) {
        assert_eq!(selection.rows(), self.rows, "a selection of another chunk");
        match &self.data {
            Data::Ordinals { ordinals, .. } => {
                ordinals.for_each(isa, selection, |values| out.extend_from_slice(values));
            }
            _ => panic!("ordinals asked of a chunk without an order"),
        }
    }
}
