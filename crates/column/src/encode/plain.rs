//! Values that are stored as they are: floats, wide decimals, text.

use super::integers::Profile;
use super::source::Keys;
use super::{Encoder, float_range};
use crate::chunk::{Data, Plain, Text};
use crate::error::EncodeError;
use crate::floats::TotalOrder;
use crate::resident;
use crate::zone::ZoneRange;
use arrow_array::StringViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_schema::DataType;
use eris_numa::OutOfMemory;

/// Bytes of strings in one buffer, which views address with 32 bits.
const BUFFER_BYTES: usize = 1 << 30;

/// Longest string that a view holds itself.
const INLINE_BYTES: usize = 12;

impl Encoder<'_> {
    pub(super) fn floats<T>(&mut self, values: &[T]) -> Result<Plain<T>, OutOfMemory>
    where
        T: TotalOrder + ArrowNativeType + eris_numa::Plain,
    {
        let Some(keys) = self.filled(Keys(values)) else {
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

    /// Refuses decimals of up to 18 digits that are not within 64 bits, as Arrow does not check them.
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

    fn valid_rows(&self) -> impl Iterator<Item = usize> {
        let nulls = self.nulls;
        (0..self.rows).filter(move |&row| nulls.is_none_or(|nulls| nulls.is_valid(row)))
    }

    pub(super) fn text(&mut self, array: &StringViewArray) -> Result<Data, EncodeError> {
        let mut rows = self.valid_rows();
        let Some(first) = rows.next() else {
            return Ok(Data::Text(Text::Constant(
                StringViewArray::from_iter_values([""]),
            )));
        };
        let (mut min, mut max) = (array.value(first), array.value(first));
        for row in rows {
            let string = array.value(row);
            if string < min {
                min = string;
            } else if string > max {
                max = string;
            }
        }
        self.range = ZoneRange::Text(min.into(), max.into());
        if min == max {
            return Ok(Data::Text(Text::Constant(
                StringViewArray::from_iter_values([min]),
            )));
        }
        self.views(array)
    }

    /// Copies views and the strings that they name into node-local memory.
    fn views(&self, array: &StringViewArray) -> Result<Data, EncodeError> {
        let long = |row: usize| Some(array.value(row)).filter(|text| text.len() > INLINE_BYTES);
        // First how many bytes go into each buffer, as they are allocated whole.
        let mut lengths = vec![0];
        for string in self.valid_rows().filter_map(long) {
            let last = lengths.last_mut().expect("there is one");
            if *last + string.len() > BUFFER_BYTES && *last > 0 {
                lengths.push(string.len());
            } else {
                *last += string.len();
            }
        }
        let mut buffers = Vec::with_capacity(lengths.len());
        for &length in &lengths {
            buffers.push(self.home.allocate::<u8>(length)?);
        }
        let mut views = self.home.allocate::<u128>(self.rows)?;
        let out = views.as_mut_slice::<u128>();
        let (mut block, mut offset) = (0, 0);
        for row in self.valid_rows() {
            let string = array.value(row).as_bytes();
            if string.len() > INLINE_BYTES {
                if offset == lengths[block] {
                    (block, offset) = (block + 1, 0);
                }
                buffers[block].as_mut_slice()[offset..][..string.len()].copy_from_slice(string);
            }
            out[row] = make_view(string, block as u32, offset as u32);
            offset += if string.len() > INLINE_BYTES {
                string.len()
            } else {
                0
            };
        }
        let views = ScalarBuffer::from(resident::bytes(views));
        let buffers: Vec<_> = buffers.into_iter().map(resident::bytes).collect();
        let array = StringViewArray::try_new(views, buffers, self.nulls.cloned())?;
        Ok(Data::Text(Text::Values(array)))
    }
}
