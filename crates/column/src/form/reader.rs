//! Stored forms on their way in.

use super::error::{FormError, ensure};
use super::{ALIGN, LARGE};
use crate::object_memory::ObjectMemory;
use eris_numa::{Buffer, BufferParts};
use std::fmt;

/// Bytes that hold stored forms, read from front to back.
pub struct FormReader<'a> {
    source: Source<'a>,
}

enum Source<'a> {
    /// Large sections become parts of the buffer.
    Shared(BufferParts),
    /// Large sections are copied.
    Lent { bytes: &'a [u8], at: usize },
}

impl<'a> FormReader<'a> {
    /// Reads a buffer, which lies where the column chunks are to lie: their large sections are parts of it. It stays as
    /// long as one of them does.
    pub fn sharing(buffer: Buffer) -> FormReader<'static> {
        FormReader {
            source: Source::Shared(BufferParts::new(buffer)),
        }
    }

    /// Reads any bytes; large sections are copied. The first byte is one whose place was a multiple of 64 for the
    /// [writer](super::FormWriter::at).
    pub fn copying(bytes: &'a [u8]) -> Self {
        FormReader {
            source: Source::Lent { bytes, at: 0 },
        }
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        match &self.source {
            Source::Shared(parts) => parts.used(),
            Source::Lent { at, .. } => *at,
        }
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &[u8] {
        match &self.source {
            Source::Shared(parts) => parts.rest(),
            Source::Lent { bytes, at } => &bytes[*at..],
        }
    }

    /// Reads so many bytes of the container.
    ///
    /// # Errors
    /// [`FormError::Short`]: there are fewer.
    pub fn bytes<T>(
        &mut self,
        count: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, FormError> {
        let read = read(self.rest().get(..count).ok_or(FormError::Short)?);
        self.skip(count);
        Ok(read)
    }

    /// Passes over bytes that are there.
    fn skip(&mut self, count: usize) {
        match &mut self.source {
            Source::Shared(parts) => parts.skip(count),
            Source::Lent { at, .. } => *at += count,
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, FormError> {
        self.bytes(1, |bytes| bytes[0])
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormError> {
        self.bytes(N, |bytes| *bytes.first_chunk().expect("so many bytes"))
    }

    /// As [`FormWriter::number`](super::FormWriter::number) wrote it.
    pub(super) fn number(&mut self) -> Result<u64, FormError> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            ensure(
                bits << shift >> shift == bits,
                "a number of more than 64 bits",
            )?;
            number |= bits << shift;
            if byte >> 7 == 0 {
                return Ok(number);
            }
        }
        Err(FormError::Damaged("a number of more than 64 bits"))
    }

    /// As [`FormWriter::signed`](super::FormWriter::signed) wrote it.
    pub(super) fn signed(&mut self) -> Result<i64, FormError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// How many bytes follow of something, by a number: never more than there are.
    pub(super) fn length(&mut self) -> Result<usize, FormError> {
        let length = usize::try_from(self.number()?).map_err(|_| FormError::Short)?;
        match length <= self.rest().len() {
            true => Ok(length),
            false => Err(FormError::Short),
        }
    }

    /// The next section, of so many bytes.
    pub(super) fn section(
        &mut self,
        bytes: usize,
        home: ObjectMemory<'_>,
    ) -> Result<Buffer, FormError> {
        if bytes >= LARGE {
            let padding = self.position().next_multiple_of(ALIGN) - self.position();
            let zeros = self.bytes(padding, |zeros| zeros.iter().all(|&byte| byte == 0))?;
            ensure(zeros, "something before a section")?;
            if let Source::Shared(parts) = &mut self.source {
                return parts.take(bytes).ok_or(FormError::Short);
            }
        }
        // Before any memory is asked for.
        let from = self.rest().get(..bytes).ok_or(FormError::Short)?;
        let mut buffer = home.allocate::<u8>(bytes)?;
        buffer.as_mut_slice().copy_from_slice(from);
        self.skip(bytes);
        Ok(buffer)
    }
}

impl fmt::Debug for FormReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FormReader({} of {})",
            self.position(),
            self.position() + self.rest().len()
        )
    }
}
