//! How objects follow each other, and where they are.

use crate::blocks::{BLOCK, Boundary, Cutting, MOST_BYTES};
use crate::encoding::TextCoding;
use crate::error::FileFaultKind;
use std::ops::Range;
use std::sync::Arc;

/// How the objects follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonLayout {
    Lines,
    /// Objects that span lines, or an array of them.
    Free,
}

impl Boundary for JsonLayout {
    fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            JsonLayout::Lines => memchr::memrchr(b'\n', bytes).map(|at| at + 1),
            JsonLayout::Free => objects(bytes).last().map(|object| object.end),
        }
    }

    fn has_record(&self, bytes: &[u8]) -> bool {
        objects(bytes).next().is_some()
    }

    fn endless(&self, most: usize) -> FileFaultKind {
        FileFaultKind::EndlessObject { most }
    }
}

impl JsonLayout {
    /// How files of this layout are cut.
    pub fn cutting(self, coding: TextCoding) -> Cutting {
        Cutting {
            boundary: Arc::new(self),
            coding,
            newline: b'\n',
            skip: 0,
            most: MOST_BYTES,
            block: BLOCK,
        }
    }

    /// The places of the records in a block.
    pub fn records(self, bytes: &[u8]) -> Vec<Range<usize>> {
        match self {
            JsonLayout::Free => objects(bytes).collect(),
            JsonLayout::Lines => {
                let mut start = 0;
                let lines = bytes.split(|byte| *byte == b'\n').map(|line| {
                    let range = start..start + line.len();
                    start += line.len() + 1;
                    range
                });
                lines
                    .filter(|line| !bytes[line.clone()].trim_ascii().is_empty())
                    .collect()
            }
        }
    }
}

/// The objects of a text, without what is between them. Ends with the last one that is whole.
pub(super) fn objects(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|byte| *byte == b'{')?;
        let (mut depth, mut quoted) = (0_usize, false);
        at = start;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        at += 1;
                        return Some(start..at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// The first comma that separates nothing, in what is between two objects or behind the last of all.
pub(super) fn stray_comma(between: &[u8], is_last: bool) -> Option<usize> {
    let mut marks = between
        .iter()
        .enumerate()
        .filter(|(_, byte)| b",[]".contains(byte));
    let mut previous = None;
    let stray = marks.find_map(|(at, mark)| {
        let before = previous.replace((at, *mark));
        match (before, mark) {
            (Some((comma, b',')), _) => Some(comma),
            (Some((_, b'[')), b',') => Some(at),
            _ => None,
        }
    });
    match previous {
        Some((comma, b',')) if is_last && stray.is_none() => Some(comma),
        _ => stray,
    }
}
