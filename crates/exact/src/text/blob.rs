//! Bytes: printable ASCII as it is, other bytes as `\xAB`, as DuckDB writes them.

use super::no_value;
use datafusion::arrow::array::{Array, ArrayRef, BinaryViewBuilder, StringViewArray};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// Strings as bytes.
pub(super) fn read(strings: &StringViewArray, safe: bool) -> Result<ArrayRef, ArrowError> {
    let mut out = BinaryViewBuilder::with_capacity(strings.len());
    for string in strings {
        match string.map(|string| (string, bytes(string))) {
            None => out.append_null(),
            Some((_, Some(bytes))) => out.append_value(bytes),
            Some((_, None)) if safe => out.append_null(),
            Some((string, None)) => return Err(no_value(string, "BLOB")),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The bytes that are written so.
pub fn bytes(string: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(string.len());
    let mut rest = string.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, behind) = match (first, after) {
            (b'\\', [b'x', high, low, behind @ ..]) => (digit(*high)? << 4 | digit(*low)?, behind),
            (b'\\' | 0x80.., _) => return None,
            (byte, behind) => (*byte, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::bytes;
    use eris_fragment::text::write_blob;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_byte_is_rejected() {
        assert_eq!(bytes(r"a\xAB\x00z").unwrap(), b"a\xAB\x00z");
        for string in ["é", r"\", r"\x", r"\xA", r"\xAG", r"\n", r"\\"] {
            assert_eq!(bytes(string), None, "{string}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(given: Vec<u8>) {
            let mut shown = String::new();
            write_blob(&mut shown, &given).unwrap();
            prop_assert_eq!(bytes(&shown).unwrap(), given);
        }
    }
}
