//! What can be done in a segment, where a database is salvaged: all but what cannot be read.
//!
//! ```text
//! piece  1 2 3 4 5 6 7 8 9     rows of a commit, or of a chunk of the snapshot
//!        ▪ ▪ ▪ · · ▪ ▪ ▪ ▪     the snapshot sees
//!        ▪ ▪ ▪ · · ▪ ▒ ▒ ▪     with a string that is lost: left out, and noted in the segment
//! ```

use super::{LostPiece, Machine, Source, Work};
use crate::recovery::Wrong;
use crate::recovery::check::living::Living;
use crate::recovery::columns::Hidden;
use eris_column::{CHUNK_ROWS, ObjectMemory, Selection};
use eris_log::LogError;
use eris_store::{ReadColumns, RestoredRows};
use eris_types::{RowId, Timestamp};

/// Rows that are to be added.
pub(super) struct Piece {
    pub rows: usize,
    pub source: Source,
    /// The first id of each run, and how many rows it has.
    pub ids: Vec<(RowId, usize)>,
    /// The places of rows that the snapshot does not see, likewise.
    pub unseen: Vec<(usize, usize)>,
}

impl Piece {
    /// The numbers of some of its rows.
    fn numbers(&self, rows: &Selection) -> Living {
        let (mut numbers, mut place) = (Living::default(), 0);
        for (first, count) in &self.ids {
            for row in (0..*count).filter(|row| rows.contains(place + row)) {
                let _ = numbers.add(first.plus(row).0 as u32, 1);
            }
            place += count;
        }
        numbers
    }
}

impl Machine {
    /// Does again what a commit has done. Rows that it has deleted and that are not there are none.
    pub(super) fn do_what_is_whole(
        &self,
        work: &mut Work<'_>,
        at: Timestamp,
        added: Vec<(RowId, usize, Source)>,
        deleted: Vec<RowId>,
        home: ObjectMemory<'_>,
    ) -> Result<(), Wrong> {
        for (first, rows, source) in added {
            let piece = Piece {
                rows,
                source,
                ids: vec![(first, rows)],
                unseen: Vec::new(),
            };
            self.restore_what_is_whole(work, Some(at), at, piece, home)?;
        }
        for lost in &mut work.segment.lost {
            let numbers = deleted.iter().map(|id| id.0 as u32);
            numbers.for_each(|number| lost.rows.remove_any(number, 1));
        }
        let segment = &mut work.segment.segment;
        segment.replay(Vec::new(), deleted, at, home.memory.budget());
        Ok(())
    }

    /// Adds rows as a commit or the snapshot has them.
    pub(super) fn restore_what_is_whole(
        &self,
        work: &mut Work<'_>,
        commit: Option<Timestamp>,
        at: Timestamp,
        piece: Piece,
        home: ObjectMemory<'_>,
    ) -> Result<(), Wrong> {
        let rows = piece.rows;
        if rows > CHUNK_ROWS {
            // No record says so; it is no chunk.
            return Ok(());
        }
        let mut seen = Selection::all(rows);
        for (first, count) in &piece.unseen {
            seen.remove_range(*first, first + count);
        }
        let read = self.read_whole(work, commit.is_some(), &piece, home);
        let (read, hidden) = match read {
            Ok(read) => read,
            Err(Wrong::Failed(error)) => return Err(Wrong::Failed(error)),
            Err(wrong) => {
                work.lose(commit, piece.numbers(&seen), shown(wrong));
                return Ok(());
            }
        };
        let mut lost = hidden.rows;
        lost.and(&seen);
        if !lost.is_empty() {
            let columns = hidden.columns.iter();
            let schema = &work.columns.object.schema;
            let names = columns.map(|column| schema.field(*column).name().as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let why = format!("strings of column {names} are lost");
            work.lose(commit, piece.numbers(&lost), why);
        }
        seen.and_not(&lost);
        let (segment, budget) = (&mut work.segment.segment, home.memory.budget());
        match (commit, &piece.ids[..]) {
            _ if seen.is_empty() => {}
            (Some(at), [(first, _)]) if seen.is_all() => {
                segment.replay(vec![(*first, read)], Vec::new(), at, budget);
            }
            _ => {
                let mut deleted = Selection::all(rows);
                deleted.and_not(&seen);
                let restored = RestoredRows {
                    read,
                    ids: piece.ids,
                    deleted: runs(&deleted),
                };
                segment.restore(restored, at, budget);
            }
        }
        Ok(())
    }

    /// Reads the columns of rows, with the codes that strings have by now, and which of them nobody may see.
    fn read_whole(
        &self,
        work: &Work<'_>,
        is_new: bool,
        piece: &Piece,
        home: ObjectMemory<'_>,
    ) -> Result<(ReadColumns, Hidden), Wrong> {
        let (of, segment) = (work.columns, &work.segment.segment);
        let first = piece.ids.first().filter(|_| is_new);
        if first.is_some_and(|(first, _)| *first < segment.next_id()) {
            let what = format!("rows of segment {} come twice", segment.id());
            return Err(of.wrong(&what));
        }
        let mut read = self.read_columns(of, piece.rows, &piece.source, home)?;
        let columns = std::mem::take(&mut read.columns);
        let (columns, hidden) = of.with_new_codes(columns, home)?;
        Ok((ReadColumns { columns, ..read }, hidden))
    }
}

impl Work<'_> {
    fn lose(&mut self, commit: Option<Timestamp>, rows: Living, why: String) {
        let lost = LostPiece { commit, rows, why };
        self.segment.lost.push(lost);
    }
}

/// Why rows cannot be read, in few words.
fn shown(wrong: Wrong) -> String {
    match wrong {
        Wrong::Damaged(why) => why,
        Wrong::Failed(error) => error.to_string(),
        Wrong::Chunk(LogError::Damaged { path, offset, what }) => {
            format!("{}, byte {offset}: {what}", path.display())
        }
        Wrong::Chunk(LogError::NoChunk { number, directory }) => {
            format!("chunk {number} is in no file of {}", directory.display())
        }
        Wrong::Chunk(LogError::Missing { path }) => format!("{} is missing", path.display()),
        Wrong::Chunk(other) => other.to_string(),
    }
}

/// Rows as runs: the first of each, and how many.
fn runs(rows: &Selection) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for row in rows.iter_ones() {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == row => *count += 1,
            _ => runs.push((row, 1)),
        }
    }
    runs
}
