//! The wire form of a fragment.
//!
//! ```text
//! ┌──────────┬─────────┬──────────────────┬──────────────────────────────┐
//! │ 'E' 'F'  │ version │ XXH32 of the     │ the fragment, postcard       │
//! │ 2 bytes  │ 1 byte  │ rest, 4 bytes    │ varint-coded, self-contained │
//! └──────────┴─────────┴──────────────────┴──────────────────────────────┘
//! ```

use crate::Fragment;

const MAGIC: [u8; 2] = *b"EF";
const VERSION: u8 = 5;

/// Bytes that are not a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes do not begin like a fragment.
    #[error("not a fragment")]
    NotAFragment,
    /// The sender speaks another version.
    #[error("fragment of wire version {0}, this build reads version {VERSION}")]
    Version(u8),
    /// The bytes after the header are damaged.
    #[error("damaged fragment: {0}")]
    Damaged(postcard::Error),
}

impl Fragment {
    /// The fragment as bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![MAGIC[0], MAGIC[1], VERSION];
        let body = postcard::to_stdvec(self).expect("a fragment has no map or unsized part");
        bytes.extend_from_slice(&checksum(&body));
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The fragment that [`Fragment::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        match bytes {
            [m0, m1, VERSION, c0, c1, c2, c3, body @ ..] if [*m0, *m1] == MAGIC => {
                if checksum(body) != [*c0, *c1, *c2, *c3] {
                    return Err(WireError::Damaged(postcard::Error::DeserializeBadCrc));
                }
                match postcard::take_from_bytes(body).map_err(WireError::Damaged)? {
                    (fragment, []) => Ok(fragment),
                    // What follows a fragment is not one.
                    _ => Err(WireError::Damaged(postcard::Error::DeserializeBadEncoding)),
                }
            }
            [m0, m1, VERSION, ..] if [*m0, *m1] == MAGIC => Err(WireError::Damaged(
                postcard::Error::DeserializeUnexpectedEnd,
            )),
            [m0, m1, version, ..] if [*m0, *m1] == MAGIC => Err(WireError::Version(*version)),
            _ => Err(WireError::NotAFragment),
        }
    }
}

/// Arrow's reader trusts the rows of a lookup.
fn checksum(body: &[u8]) -> [u8; 4] {
    twox_hash::XxHash32::oneshot(0, body).to_le_bytes()
}
