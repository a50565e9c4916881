//! Pairs of rows that match, some at a time.

use crate::NO_ROW;
use crate::dense::Dense;
use crate::rows::Located;
use crate::table::{JoinTable, PartKind};

/// Rows of both sides that match, side by side: in the order of the probe side's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Rows of the batch that probes.
    pub probe: Vec<u32>,
    /// Rows of the build side.
    pub build: Vec<u32>,
}

impl Pairs {
    /// Keeps those of which something is true: of the pair's number, its row of the batch and that of the build side.
    pub fn retain(&mut self, mut is_kept: impl FnMut(usize, u32, u32) -> bool) {
        let mut kept = 0;
        for pair in 0..self.probe.len() {
            let (probe, build) = (self.probe[pair], self.build[pair]);
            (self.probe[kept], self.build[kept]) = (probe, build);
            kept += usize::from(is_kept(pair, probe, build));
        }
        self.probe.truncate(kept);
        self.build.truncate(kept);
    }
}

/// How far a batch has been paired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The first row of the batch that has not been paired with all its matches.
    pub row: usize,
    /// How many of its matches it has been paired with.
    pub done: u32,
}

impl JoinTable {
    /// The next pairs of a batch, whose codes [are located](JoinTable::locate): at most so many. A row with many
    /// matches may be left in the midst of them. If `others` stay, a row without a match is paired with [`NO_ROW`].
    pub fn pairs(
        &self,
        codes: &[u64],
        located: &[Located],
        cursor: &mut Cursor,
        most: usize,
        others: bool,
    ) -> Pairs {
        let mut pairs = Pairs::default();
        let room = most.min(located.len() - cursor.row);
        pairs.probe.reserve(room);
        pairs.build.reserve(room);
        if self.is_unique() {
            let rows = located.iter().enumerate().skip(cursor.row).take(most);
            for (row, found) in rows {
                if found.len > 0 || others {
                    pairs.probe.push(row as u32);
                    pairs
                        .build
                        .push(if found.len > 0 { found.start } else { NO_ROW });
                }
            }
            cursor.row = located.len().min(cursor.row.saturating_add(most));
            return pairs;
        }
        while cursor.row < located.len() && pairs.probe.len() < most {
            let found = located[cursor.row];
            if found.len > 0 {
                let room = (most - pairs.probe.len()).min(u32::MAX as usize) as u32;
                let taken = room.min(found.len - cursor.done);
                let first = (found.start + cursor.done) as usize;
                let own = first..first + taken as usize;
                match self.part(codes[cursor.row]) {
                    PartKind::Dense(Dense::Several { rows, .. }) => {
                        pairs.build.extend_from_slice(&rows[own]);
                    }
                    PartKind::Hashed(hashed) if found.len > 1 => {
                        pairs.build.extend_from_slice(&hashed.rows()[own]);
                    }
                    PartKind::Dense(Dense::Single(_)) | PartKind::Hashed(_) => {
                        pairs.build.push(found.start);
                    }
                }
                pairs.probe.resize(pairs.build.len(), cursor.row as u32);
                if cursor.done + taken < found.len {
                    cursor.done += taken;
                    break;
                }
            } else if others {
                pairs.probe.push(cursor.row as u32);
                pairs.build.push(NO_ROW);
            }
            *cursor = Cursor {
                row: cursor.row + 1,
                done: 0,
            };
        }
        pairs
    }
}
