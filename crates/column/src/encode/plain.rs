//! Values that are stored as they are: floats and wide decimals.

use super::integers::Profile;
use super::source::FloatKeys;
use super::{Encoder, float_range};
use crate::data::{Data, Plain};
use crate::error::EncodeError;
use crate::floats::TotalOrder;
use crate::resident;
use crate::zone::ZoneRange;
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use eris_numa::OutOfMemory;

impl Encoder<'_> {
    pub(super) fn floats<T>(&mut self, values: &[T]) -> Result<Plain<T>, OutOfMemory>
    where
        T: TotalOrder + ArrowNativeType + eris_numa::Plain,
    {
        let Some(keys) = self.filled(FloatKeys(values)) else {
            return Ok(Plain::Constant(T::default()));
        };
        let Profile { min, max, .. } = Profile::of(self.rows, keys);
        self.range = float_range::<T>(min, max);
        if min == max {
            return Ok(Plain::Constant(T::from_key(min)));
        }
        self.copy(values)
    }

    pub(super) fn wide(&mut self, values: &[i128]) -> Result<Data, EncodeError> {
        let rows = self.valid_rows();
        let range = rows.fold(None, |range, row| {
            let value = values[row];
            let (min, max) = range.unwrap_or((value, value));
            Some((min.min(value), max.max(value)))
        });
        let Some((min, max)) = range else {
            return Ok(Data::Wide(Plain::Constant(0)));
        };
        self.range = ZoneRange::Wide(min, max);
        Ok(Data::Wide(if min == max {
            Plain::Constant(min)
        } else {
            self.copy(values)?
        }))
    }

    fn copy<T: ArrowNativeType + eris_numa::Plain>(
        &self,
        values: &[T],
    ) -> Result<Plain<T>, OutOfMemory> {
        let mut buffer = self.home.allocate::<T>(values.len())?;
        buffer.as_mut_slice().copy_from_slice(values);
        Ok(Plain::Values(resident::numbers(buffer)))
    }

    /// Rejects decimals of up to 18 digits that are not within 64 bits, as Arrow does not check them.
    pub(super) fn check_narrow(
        &self,
        values: &[i128],
        data_type: &DataType,
    ) -> Result<(), EncodeError> {
        let wide = |value: i128| value != value as i64 as i128;
        // A fold without an exit, over all, is faster than a search; what it finds is almost always nothing.
        if values.iter().fold(false, |any, &value| any | wide(value))
            && let Some(row) = self.valid_rows().find(|&row| wide(values[row]))
        {
            let data_type = data_type.clone();
            return Err(EncodeError::OutOfRange {
                value: values[row],
                data_type,
            });
        }
        Ok(())
    }

    pub(super) fn valid_rows(&self) -> impl Iterator<Item = usize> {
        let nulls = self.nulls;
        (0..self.rows).filter(move |&row| nulls.is_none_or(|nulls| nulls.is_valid(row)))
    }
}
