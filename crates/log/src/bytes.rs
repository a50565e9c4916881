//! Numbers as bytes: what records are made of.
//!
//! A number is written seven bits a byte, the low ones first; the highest bit says that there are more. So small
//! numbers, which nearly all are, take one byte.

/// Bytes that do not mean what they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBytes {
    /// They end too early.
    #[error("{0} ends too early")]
    Short(&'static str),
    /// A value that cannot be.
    #[error("{0} has a value that cannot be")]
    Value(&'static str),
    /// There are more than were announced.
    #[error("{0} is followed by bytes that belong to nothing")]
    Rest(&'static str),
}

/// The most bytes that a number takes.
const LONGEST: usize = 10;

/// Appends a number.
pub fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends bytes behind their length.
pub fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Bytes that are read from the front. `what` names them in errors.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    left: &'a [u8],
    what: &'static str,
}

impl<'a> Bytes<'a> {
    /// All of these.
    pub fn of(bytes: &'a [u8], what: &'static str) -> Self {
        Bytes { left: bytes, what }
    }

    /// What has not been read.
    pub fn left(&self) -> &'a [u8] {
        self.left
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next number.
    ///
    /// # Errors
    /// They end before it does, or it has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, BadBytes> {
        let mut number = 0u64;
        for (at, byte) in self.left.iter().take(LONGEST).enumerate() {
            let bits = u64::from(byte & 0x7f);
            if at == LONGEST - 1 && bits > 1 {
                return Err(BadBytes::Value(self.what));
            }
            number |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.left = &self.left[at + 1..];
                return Ok(number);
            }
        }
        Err(match self.left.len() < LONGEST {
            true => BadBytes::Short(self.what),
            false => BadBytes::Value(self.what),
        })
    }

    /// The next number, which must be one of a smaller type.
    ///
    /// # Errors
    /// As [`Bytes::number`], and if it is not.
    pub fn small<N: TryFrom<u64>>(&mut self) -> Result<N, BadBytes> {
        N::try_from(self.number()?).map_err(|_| BadBytes::Value(self.what))
    }

    /// So many bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], BadBytes> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            return Err(BadBytes::Short(self.what));
        };
        self.left = left;
        Ok(taken)
    }

    /// Bytes behind their length.
    ///
    /// # Errors
    /// There are fewer.
    pub fn bytes(&mut self) -> Result<&'a [u8], BadBytes> {
        let length = self.small()?;
        self.take(length)
    }

    /// Text behind its length.
    ///
    /// # Errors
    /// There is less, or it is no UTF-8.
    pub fn text(&mut self) -> Result<&'a str, BadBytes> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BadBytes::Value(self.what))
    }

    /// Nothing must be left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(self) -> Result<(), BadBytes> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(BadBytes::Rest(self.what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(any::<u64>().prop_flat_map(|n| (0u32..64).prop_map(move |s| n >> s)), 0..50)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| put_number(&mut bytes, *number));
            let mut read = Bytes::of(&bytes, "numbers");
            for number in &numbers {
                prop_assert_eq!(read.number(), Ok(*number));
            }
            prop_assert_eq!(read.end(), Ok(()));
        }

        #[test]
        fn any_bytes_are_numbers_or_errors(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut read = Bytes::of(&bytes, "bytes");
            while !read.is_empty() && read.number().is_ok() {}
            let mut read = Bytes::of(&bytes, "bytes");
            let _ = read.bytes();
        }
    }

    #[test]
    fn a_number_of_more_bits_is_an_error() {
        let longest = [0xff; 9].into_iter().chain([1]).collect::<Vec<u8>>();
        assert_eq!(Bytes::of(&longest, "n").number(), Ok(u64::MAX));
        let longer = [0xff; 9].into_iter().chain([2]).collect::<Vec<u8>>();
        assert_eq!(Bytes::of(&longer, "n").number(), Err(BadBytes::Value("n")));
        assert_eq!(
            Bytes::of(&[0x80; 12], "n").number(),
            Err(BadBytes::Value("n"))
        );
        assert_eq!(
            Bytes::of(&[0x80; 3], "n").number(),
            Err(BadBytes::Short("n"))
        );
    }
}
