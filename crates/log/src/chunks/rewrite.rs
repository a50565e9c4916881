//! Files of which little is in use are written anew.
//!
//! ```text
//! file 3 ▕▒░░▒░░░▏ file 4 ▕░░░▒░▏        ▒ in use
//!          └──────────┬────────┘
//! file 9   ▕▒▒▒▏
//!
//! copies, flush ──▶ a mark that they are complete, flush ──▶ files 3 and 4 are removed
//! ```
//!
//! The copies have a file of their own, which counts once it is complete. So a chunk is never found half copied,
//! whichever part of the copies was on the medium. If they were appended to the file in use, a copy could be found
//! that was never flushed, and nobody would know.
//!
//! A flush of the copies that fails loses nothing: the file is thrown away.

use super::entry::{HEAD, chunk_bytes};
use super::file::{ChunkFile, Contents, FIRST_ENTRY};
use super::files::{ChunkFiles, ChunkPlace, FileState};
use super::writer::ChunkSettings;
use crate::error::LogError;

/// A file that is being written in the place of others.
#[derive(Debug)]
pub struct Rewrite {
    files: ChunkFiles,
    /// The files that are written anew.
    others: Vec<u64>,
    /// `None` before the first step, and in the end.
    file: Option<ChunkFile>,
    number: u64,
    settings: ChunkSettings,
    /// What is to be copied, the last one first.
    left: Vec<ChunkPlace>,
    copied: Vec<(ChunkPlace, ChunkPlace)>,
    is_complete: bool,
    failed: Option<LogError>,
    buffer: Vec<u8>,
}

impl ChunkFiles {
    /// Begins to write files anew of which less than half is in use, with small ones beside them; `None`: there are
    /// none. Of these files none is removed, and none is written anew by somebody else, as long as it is not done.
    pub fn rewrite(&self, settings: ChunkSettings) -> Option<Rewrite> {
        let mut state = self.state();
        let others = best(state.files.iter(), settings.file_bytes)?;
        for other in &others {
            state.files.get_mut(other).expect("it is known").is_busy = true;
        }
        let chunks = state.chunks.values().copied();
        let mut left: Vec<ChunkPlace> = chunks
            .filter(|place| others.contains(&place.file))
            .collect();
        drop(state);
        left.sort_unstable_by_key(|place| (place.file, place.offset));
        left.reverse();
        Some(Rewrite {
            files: self.clone(),
            others,
            file: None,
            number: self.next_file(),
            settings,
            left,
            copied: Vec::new(),
            is_complete: false,
            failed: None,
            buffer: Vec::new(),
        })
    }
}

/// Files that lie beside each other of which one is little in use, and what is in use of all fits into one file.
fn best<'a>(
    files: impl Iterator<Item = (&'a u64, &'a FileState)>,
    file_bytes: u64,
) -> Option<Vec<u64>> {
    // Header and mark are no chunks: else a small file of copies would be little in use for ever.
    let entries = |file: &FileState| file.end.saturating_sub(FIRST_ENTRY + HEAD as u64);
    let is_little = |file: &FileState| 2 * file.live < entries(file);
    let mut run: Vec<u64> = Vec::new();
    let (mut live, mut has_little) = (0, false);
    for (number, file) in files {
        let is_small = 2 * file.end < file_bytes;
        let joins = !file.is_busy && (is_little(file) || is_small);
        let fits = run.is_empty() || live + file.live <= file_bytes;
        if !joins || !fits {
            if has_little {
                break;
            }
            run.clear();
            live = 0;
        }
        if joins {
            run.push(*number);
            live += file.live;
            has_little |= is_little(file);
        }
    }
    has_little.then_some(run)
}

impl Rewrite {
    /// Copies some chunks, and flushes them. Returns whether all are copied and on the medium.
    ///
    /// # Errors
    /// There is no room, the disk has failed, or a chunk is damaged. Nothing was changed, and it is not tried again.
    pub fn step(&mut self) -> Result<bool, LogError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if !self.is_complete {
            let copied = self.copy_some();
            self.is_complete = copied.inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        Ok(self.is_complete)
    }

    fn copy_some(&mut self) -> Result<bool, LogError> {
        if self.file.is_none() {
            self.file = Some(self.create()?);
        }
        let file = self.file.as_mut().expect("it was made");
        let until = file.end + self.settings.dirty_bytes.max(1);
        while file.end < until
            && let Some(from) = self.left.pop()
        {
            self.buffer.resize(from.head.info.bytes as usize, 0);
            self.files.read_at(from, &mut self.buffer)?;
            let (offset, head) = file.append(from.head, &[&self.buffer])?;
            let to = ChunkPlace {
                file: self.number,
                offset,
                head,
            };
            self.copied.push((from, to));
        }
        if !self.left.is_empty() {
            file.flush()?;
            return Ok(false);
        }
        file.complete(self.copied.len())?;
        Ok(true)
    }

    fn create(&self) -> Result<ChunkFile, LogError> {
        let (disk, database) = (self.files.disk(), self.files.database());
        let forms = self.left.iter().map(|place| place.head.info.bytes);
        let length = FIRST_ENTRY + forms.map(chunk_bytes).sum::<u64>() + HEAD as u64;
        let contents = Contents::Copies;
        let file = ChunkFile::create(&**disk, database, self.number, length, contents)?;
        Ok(file.flushing_every(self.settings.dirty_bytes))
    }

    /// Puts the copies in the place of what they were made of, and removes that.
    ///
    /// # Errors
    /// The disk has failed. All chunks are there; what has nothing of use may be there, too, until the next start.
    ///
    /// # Panics
    /// If not all is on the medium.
    pub fn finish(mut self) -> Result<(), LogError> {
        assert!(self.is_complete, "the copies are on the medium");
        let file = self.file.take().expect("it was written");
        let mut state = self.files.state();
        let written = FileState {
            length: file.end,
            end: file.end,
            live: 0,
            is_busy: false,
        };
        state.files.insert(self.number, written);
        for (from, to) in &self.copied {
            // Others were forgotten meanwhile.
            if state.chunks.get(&from.head.number) == Some(from) {
                state.add(*to);
            }
        }
        for other in &self.others {
            state.files.remove(other);
        }
        drop((state, file));
        self.files.remove(&self.others)
    }
}

impl Drop for Rewrite {
    fn drop(&mut self) {
        if self.is_complete && self.file.is_none() {
            return;
        }
        if self.file.take().is_some() {
            // If it comes back after a crash, it is not complete, or as good as what it was made of.
            let _ = self.files.remove(&[self.number]);
        }
        let mut state = self.files.state();
        for other in &self.others {
            if let Some(other) = state.files.get_mut(other) {
                other.is_busy = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_chosen_that_are_little_in_use_and_small_ones_beside_them() {
        let chosen = |files: &[(u64, u64, bool)]| {
            let state = |&(end, live, is_busy): &(u64, u64, bool)| FileState {
                length: end,
                end,
                live,
                is_busy,
            };
            let files: Vec<(u64, FileState)> = (1..).zip(files.iter().map(state)).collect();
            best(files.iter().map(|(number, file)| (number, file)), 1000)
        };
        let (full, half, small, little) = (
            (1000, 1000, false),
            (1000, 500, false),
            (100, 100, false),
            (1000, 430, false),
        );
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[full, half, small, small]), None);
        assert_eq!(chosen(&[full, little, full]), Some(vec![2]));
        assert_eq!(
            chosen(&[small, little, small, full, little]),
            Some(vec![1, 2, 3])
        );
        // Three would have more than one file takes.
        assert_eq!(chosen(&[little, little, little]), Some(vec![1, 2]));
        assert_eq!(chosen(&[(1000, 10, true), small]), None);
        assert_eq!(chosen(&[(1000, 10, true), small, little]), Some(vec![2, 3]));
        // Copies of one chunk without a byte.
        assert_eq!(chosen(&[(64 + 64 + 64, 64, false)]), None);
        // A file with one large chunk and more that is of no use.
        assert_eq!(chosen(&[(5000, 2000, false)]), Some(vec![1]));
    }
}
