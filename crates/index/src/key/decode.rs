//! Columns back from keys.

use super::{Fixed, NULL, fixed};

/// Takes a key of [`super::KeyEncoder`] apart again, column by column: each method is the counterpart of one there.
///
/// # Panics
/// All methods, if the key has not such a column there.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// At the first column of a key.
    pub fn new(key: &'a [u8]) -> Self {
        Decoder { rest: key }
    }

    /// The bytes of the columns that were not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A number, BOOLEAN, DATE or TIMESTAMP.
    pub fn take<T: Fixed>(&mut self) -> T {
        T::take(&mut self.rest).expect("a column of this type")
    }

    /// The same, of a nullable column.
    pub fn take_nullable<T: Fixed>(&mut self) -> Option<T> {
        self.take_present().then(|| self.take())
    }

    /// The unscaled value of a DECIMAL(precision, …).
    pub fn take_decimal(&mut self, precision: u8) -> i128 {
        match fixed::decimal_bytes(precision) {
            1 => self.take::<i8>().into(),
            2 => self.take::<i16>().into(),
            4 => self.take::<i32>().into(),
            8 => self.take::<i64>().into(),
            _ => self.take(),
        }
    }

    /// A VARCHAR.
    pub fn take_text(&mut self) -> String {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .expect("a column of strings");
        let bytes = self.rest[..end].iter().map(|byte| byte - 1).collect();
        self.rest = &self.rest[end + 1..];
        String::from_utf8(bytes).expect("encoded from UTF-8")
    }

    /// BLOB.
    pub fn take_blob(&mut self) -> Vec<u8> {
        let mut blob = Vec::new();
        loop {
            let byte: u8 = self.take();
            blob.push(match byte {
                0 => return blob,
                0xFF => self.take::<u8>() + 0xFD,
                byte => byte - 1,
            });
        }
    }

    /// Whether a nullable column has a value, which comes next then.
    pub fn take_present(&mut self) -> bool {
        let (&first, rest) = self.rest.split_first().expect("a nullable column");
        self.rest = rest;
        first != NULL
    }
}
