//! Bytes that all keys below have in common (path compression).
//!
//! ```text
//! [child, 4 bytes][length][bytes, up to 27]
//! ```
//! Longer prefixes are chains of such nodes.

use crate::art::reference::Ref;

/// The most bytes of one prefix node.
pub(crate) const PREFIX_BYTES: usize = 27;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Prefix {
    pub(crate) child: Ref,
    length: u8,
    bytes: [u8; PREFIX_BYTES],
}

impl Prefix {
    /// Up to [`PREFIX_BYTES`] bytes and what is below.
    pub(crate) fn new(prefix: &[u8], child: Ref) -> Self {
        let mut bytes = [0; PREFIX_BYTES];
        bytes[..prefix.len()].copy_from_slice(prefix);
        Prefix {
            child,
            length: prefix.len() as u8,
            bytes,
        }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }

    /// The first eight bytes as a big-endian number; bytes beyond the length are not to be relied on.
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        u64::from_be_bytes(*self.bytes.first_chunk().expect("27 bytes"))
    }
}
