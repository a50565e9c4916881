//! A statement that writes, as far as the owners of its rows must know.

use eris_types::StatementId;
use std::sync::atomic::AtomicBool;

/// A statement that writes, as far as its owners must know.
#[derive(Debug)]
pub(crate) struct Statement {
    pub id: StatementId,
    /// Set by the session that gave it up, before it sends Abort; read by owners before they insert. An Abort may
    /// overtake rows, which must then find this. Release and acquire, though the flag alone carries all there is to
    /// know.
    pub aborted: AtomicBool,
}
