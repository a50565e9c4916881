//! What is wrong with an object, and where.

use crate::blocks::Block;
use crate::error::{FileError, FileFaultKind, shortened};

/// The error of an object that breaks a rule of JSON.
pub(super) fn malformed(
    block: &Block,
    at: usize,
    text: &[u8],
    error: &serde_json::Error,
) -> FileError {
    let shown = shortened(&String::from_utf8_lossy(text));
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = said.strip_suffix(&place).unwrap_or(&said).to_owned();
    let line = block.line_at(at) + error.line().saturating_sub(1) as u64;
    let kind = FileFaultKind::MalformedJson {
        character: error.column(),
        reason,
        shown,
    };
    FileError::line(&block.path, line, kind)
}

/// The error of something that is no object.
pub(super) fn no_object(block: &Block, at: usize, text: &[u8]) -> FileError {
    let shown = shortened(&String::from_utf8_lossy(text));
    block.error(at, FileFaultKind::NoObject { shown })
}

/// The error of a comma that separates nothing.
pub(super) fn stray(block: &Block, at: usize) -> FileError {
    block.error(at, FileFaultKind::StrayComma)
}
