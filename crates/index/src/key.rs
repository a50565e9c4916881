//! Keys whose byte order is SQL's order.
//!
//! ```text
//! type                         bytes of a value                                          SQL value
//! BOOLEAN                      0, 1                                                      bool
//! TINYINT … BIGINT UNSIGNED    big-endian                                                u8 … u64
//! TINYINT … BIGINT             big-endian, sign bit flipped                              i8 … i64
//! DATE, TIMESTAMP              as INTEGER, as BIGINT                                     i32, i64
//! REAL, DOUBLE                 big-endian, sign bit flipped; all bits if negative        f32, f64
//! DECIMAL(p, s)                its unscaled value in 1, 2, 4, 8 or 16 bytes, as p needs  i128, see push_decimal
//! VARCHAR                      each byte plus one, then 0                                &str
//! BLOB                         the same, but FF 01 for FE and FF 02 for FF, then 0       &[u8]
//! UUID                         its 16 bytes                                              i128, see push
//!
//! nullable column              0 if NULL, otherwise 1 and then the value                 Option<T>
//! composite key                its columns one after the other
//! ```
//!
//! The order:
//!
//! - NULL before all else;
//! - false before true;
//! - numbers by size;
//! - floating-point numbers in IEEE 754's total order, which is that of SQL here (-0 before 0, NaN after ∞);
//! - strings by their bytes;
//! - composite keys by their first column that differs.
//!
//! No key is the beginning of another of the same columns. Fixed sizes are equal, and a string ends with the only 0 in
//! it. It has no other because no byte of UTF-8 is greater than F4, so that there is room to add one to each.
//!
//! *One column of up to 64 bits, never NULL:* its key is a number, [`word`], for [`crate::Art`] of `u64`.
//!
//! *Several entries per key:* push the row's number behind the columns. The key is unique then, its entries lie next to
//! each other in order of rows, and [`crate::Art::prefix`] with the columns alone finds them.
//!
//! *Ranges:* `Included` and `Excluded` are of whole keys. With the first columns alone, or with several entries per
//! key, all that begins with them comes before [`KeyEncoder::successor`]: "greater" is `Included(successor)`, "less or
//! equal" is `Excluded(successor)`.

mod decode;
mod fixed;

pub use decode::Decoder;
pub use fixed::{Fixed, Word};

/// Puts keys together, column by column.
///
/// ```
/// use eris_index::key::KeyEncoder;
///
/// let mut encoder = KeyEncoder::new();
/// let mut key = |country: &str, year: Option<i16>| {
///     encoder.clear();
///     encoder.push_string(country).push_nullable(year);
///     encoder.bytes().to_vec()
/// };
/// assert!(key("CUBA", Some(-5)) < key("CUBA", Some(1994)));
/// assert!(key("CUBA", None) < key("CUBA", Some(-5)));
/// assert!(key("CUBA", Some(1994)) < key("CUBA LIBRE", None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyEncoder {
    bytes: Vec<u8>,
}

/// Before the value of a nullable column.
const PRESENT: u8 = 1;
/// Instead of it.
const NULL: u8 = 0;

/// The number whose order is that of the values: the key of a single column.
///
/// ```
/// use eris_index::key::word;
/// assert!(word(-1i32) < word(0i32));
/// assert!(word(f64::INFINITY) < word(f64::NAN));
/// ```
pub fn word<T: Word>(value: T) -> u64 {
    value.word()
}

impl KeyEncoder {
    /// No column yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Hands over the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Starts anew, with the memory there is.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A column of a number, BOOLEAN, DATE or TIMESTAMP.
    pub fn push<T: Fixed>(&mut self, value: T) -> &mut Self {
        value.append(&mut self.bytes);
        self
    }

    /// The same, of a nullable column.
    pub fn push_nullable<T: Fixed>(&mut self, value: Option<T>) -> &mut Self {
        match value {
            None => self.push_null(),
            Some(value) => self.push_present().push(value),
        }
    }

    /// A column DECIMAL(precision, …): the unscaled value.
    ///
    /// # Panics
    /// If the value has more digits than any of that precision.
    pub fn push_decimal(&mut self, unscaled: i128, precision: u8) -> &mut Self {
        let narrow = "a decimal within its precision";
        match fixed::decimal_bytes(precision) {
            1 => self.push(i8::try_from(unscaled).expect(narrow)),
            2 => self.push(i16::try_from(unscaled).expect(narrow)),
            4 => self.push(i32::try_from(unscaled).expect(narrow)),
            8 => self.push(i64::try_from(unscaled).expect(narrow)),
            _ => self.push(unscaled),
        }
    }

    /// A column VARCHAR.
    pub fn push_string(&mut self, text: &str) -> &mut Self {
        self.push_string_start(text);
        self.bytes.push(0);
        self
    }

    /// A column BLOB.
    pub fn push_blob(&mut self, blob: &[u8]) -> &mut Self {
        for &byte in blob {
            match byte {
                0xFE | 0xFF => self.bytes.extend([0xFF, byte - 0xFD]),
                _ => self.bytes.push(byte + 1),
            }
        }
        self.bytes.push(0);
        self
    }

    /// The beginning of a column VARCHAR, as the last of a key: the beginning of the keys of all text that begins so.
    pub fn push_string_start(&mut self, text: &str) -> &mut Self {
        self.bytes.extend(text.bytes().map(|byte| byte + 1));
        self
    }

    /// What a nullable column is when it is NULL.
    pub fn push_null(&mut self) -> &mut Self {
        self.bytes.push(NULL);
        self
    }

    /// What comes before the value of a nullable column.
    pub fn push_present(&mut self) -> &mut Self {
        self.bytes.push(PRESENT);
        self
    }

    /// Becomes the least string of bytes after all keys that begin with this one. `false`: there is none, because
    /// everything that begins so is at the end; the key is empty then.
    pub fn successor(&mut self) -> bool {
        while let Some(last) = self.bytes.pop() {
            if last < u8::MAX {
                self.bytes.push(last + 1);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
