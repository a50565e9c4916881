//! UUIDs: with hyphens or without, in braces or not.

use super::no_value;
use datafusion::arrow::array::{Array, ArrayRef, FixedSizeBinaryBuilder, StringViewArray};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;
use uuid::Uuid;

/// Strings as UUIDs.
pub(super) fn read(strings: &StringViewArray, safe: bool) -> Result<ArrayRef, ArrowError> {
    let mut out = FixedSizeBinaryBuilder::with_capacity(strings.len(), 16);
    for string in strings {
        match string.map(|string| (string, bytes(string))) {
            None => out.append_null(),
            Some((_, Some(uuid))) => out.append_value(uuid)?,
            Some((_, None)) if safe => out.append_null(),
            Some((string, None)) => return Err(no_value(string, "UUID")),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The bytes of the UUID that is written so.
pub fn bytes(string: &str) -> Option<[u8; 16]> {
    let uuid = Uuid::try_parse(string.trim_ascii()).ok()?;
    Some(uuid.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn spellings() {
        let uuid = bytes("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        assert_eq!(uuid.unwrap()[..4], [0xA0, 0xEE, 0xBC, 0x99]);
        for string in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 ",
        ] {
            assert_eq!(bytes(string), uuid, "{string}");
        }
        for string in [
            "",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "g0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(bytes(string), None, "{string}");
        }
    }
}
