//! Which chunk is where, and how much of each file is in use.
//!
//! ```text
//! open ──▶ info, read … ──▶ ChunkWriter::go_on ──▶ retain, rewrite …
//! changes nothing           removes what nothing refers to
//! ```
//!
//! A chunk may be in two files: as it was written, and as a copy in a later file of copies that is complete. Both are
//! right, and the copy is taken. The mark of that file is written again before anything is removed: if its flush has
//! failed once, it may be shown and never be stored.

use super::entry::{ChunkInfo, Head};
use super::file::{CHUNKS, Found, find_heads, look_behind, mark_again, read_heads};
use crate::error::LogError;
use crate::place::DatabaseId;
use eris_disk::{Access, Disk, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// The chunk files of a database. Clones are the same ones. Threads may read at the same time.
#[derive(Clone, Debug)]
pub struct ChunkFiles(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub files: BTreeMap<u64, FileState>,
    pub chunks: BTreeMap<u64, ChunkPlace>,
    /// Copies that were not completed, and where what was found of them ends.
    incomplete: BTreeMap<u64, u64>,
    /// Copies that were found beside what they were made of.
    beside: BTreeSet<u64>,
    /// A number that no file has had, and one that no chunk has had.
    next_file: u64,
    next_chunk: u64,
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    pub file: u64,
    pub offset: u64,
    pub head: Head,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileState {
    pub length: u64,
    /// Where its entries end.
    pub end: u64,
    /// Bytes of entries that are referred to.
    pub live: u64,
    /// Whether it is written, or is being written anew: then it stays.
    pub is_busy: bool,
}

/// How much of a file is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkFileUse {
    /// Its number.
    pub number: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Bytes of chunks that something refers to.
    pub live_bytes: u64,
}

impl ChunkFiles {
    /// Reads what is there, one head per chunk. It changes nothing.
    ///
    /// # Errors
    /// A file is not one of this database, or is damaged so that it cannot be told what is in it.
    pub fn open(disk: Arc<dyn Disk>, database: DatabaseId) -> Result<Self, LogError> {
        ChunkFiles::open_each(disk, database, Err)
    }

    /// The same, with what `on_error` says of a file that is none of this database, or damaged. If that is no error,
    /// the file is left out.
    pub(crate) fn open_each(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        mut on_error: impl FnMut(LogError) -> Result<(), LogError>,
    ) -> Result<Self, LogError> {
        let numbers = CHUNKS.numbers(&*disk)?;
        let mut state = State {
            files: BTreeMap::new(),
            chunks: BTreeMap::new(),
            incomplete: BTreeMap::new(),
            beside: BTreeSet::new(),
            next_file: numbers.last().map_or(1, |last| last + 1),
            next_chunk: 1,
        };
        for number in numbers {
            let added = read_heads(&*disk, database, number).and_then(|found| {
                match found.is_complete {
                    true => state.add_found(&*disk, number, &found)?,
                    false => drop(state.incomplete.insert(number, found.end)),
                }
                Ok(())
            });
            added.or_else(&mut on_error)?;
        }
        let state = Mutex::new(state);
        Ok(ChunkFiles(Arc::new(Shared {
            disk,
            database,
            state,
        })))
    }

    /// The same for files that may be damaged: with all chunks whose heads are whole, wherever they are. Of a chunk
    /// that is in several places it has one that can be read.
    ///
    /// # Errors
    /// The disk cannot list the files.
    pub(crate) fn open_remains(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
    ) -> Result<Self, LogError> {
        let mut state = State {
            files: BTreeMap::new(),
            chunks: BTreeMap::new(),
            incomplete: BTreeMap::new(),
            beside: BTreeSet::new(),
            next_file: 1,
            next_chunk: 1,
        };
        let mut others = Vec::new();
        for file in CHUNKS.numbers(&*disk)? {
            // What is in a file that cannot be read at all is found missing.
            let Ok((length, entries)) = find_heads(&*disk, database, file) else {
                continue;
            };
            let empty = FileState {
                length,
                end: 0,
                live: 0,
                is_busy: false,
            };
            state.files.insert(file, empty);
            for (offset, head) in entries {
                let place = ChunkPlace { file, offset, head };
                match state.chunks.contains_key(&head.number) {
                    true => others.push(place),
                    false => state.add(place),
                }
            }
            state.files.get_mut(&file).expect("it was added").length = length;
        }
        let state = Mutex::new(state);
        let files = ChunkFiles(Arc::new(Shared {
            disk,
            database,
            state,
        }));
        for other in others {
            let known = files.find(other.head.number).expect("there are several");
            if !files.is_whole(known) && files.is_whole(other) {
                files.state().chunks.insert(other.head.number, other);
            }
        }
        Ok(files)
    }

    fn is_whole(&self, place: ChunkPlace) -> bool {
        let length = self.state().files[&place.file].length;
        if place.offset + place.head.entry_bytes() > length {
            return false;
        }
        let mut form = vec![0; place.head.info.bytes as usize];
        self.read_at(place, &mut form).is_ok()
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.0.disk
    }

    pub(super) fn database(&self) -> DatabaseId {
        self.0.database
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing panics while it has it")
    }

    /// The numbers of all chunks.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.state().chunks.keys().copied().collect()
    }

    fn find(&self, number: u64) -> Option<ChunkPlace> {
        self.state().chunks.get(&number).copied()
    }

    /// What is known of a chunk without reading it. So many bytes are in its file.
    ///
    /// # Errors
    /// It is in no file, or its file is cut off. If it is not there because one is damaged, the error says where.
    pub fn info(&self, number: u64) -> Result<ChunkInfo, LogError> {
        let place = self.find(number).ok_or_else(|| self.missing(number))?;
        let ChunkPlace { file, offset, head } = place;
        let length = self.state().files.get(&file).map(|file| file.length);
        // A file that is gone was written anew, with all of the chunk.
        match length {
            Some(length) if offset + head.entry_bytes() > length => {
                let path = self.0.disk.root().join(CHUNKS.path_of(file));
                let what = format!("chunk {number} is cut off");
                Err(LogError::damaged(&path, offset, what))
            }
            _ => Ok(head.info),
        }
    }

    /// The error that says what is wrong with a chunk that was read.
    pub(crate) fn damaged(&self, number: u64, what: &str) -> LogError {
        let Some(ChunkPlace { file, offset, .. }) = self.find(number) else {
            return self.missing(number);
        };
        let path = self.0.disk.root().join(CHUNKS.path_of(file));
        LogError::damaged(&path, offset, format!("chunk {number}: {what}"))
    }

    /// Reads the stored form of a chunk into a buffer of its length.
    ///
    /// # Errors
    /// It is in no file, or damaged.
    ///
    /// # Panics
    /// If the buffer is longer or shorter.
    pub fn read(&self, number: u64, buffer: &mut [u8]) -> Result<(), LogError> {
        let mut place = self.find(number).ok_or_else(|| self.missing(number))?;
        loop {
            match self.read_at(place, buffer) {
                // Meanwhile it may have got another place, and its file is gone.
                Err(LogError::Missing { path }) => match self.find(number) {
                    Some(other) if other != place => place = other,
                    _ => return Err(LogError::Missing { path }),
                },
                read => return read,
            }
        }
    }

    /// Reads the chunk in a place.
    pub(super) fn read_at(&self, place: ChunkPlace, buffer: &mut [u8]) -> Result<(), LogError> {
        let ChunkPlace { file, offset, head } = place;
        assert_eq!(buffer.len() as u64, head.info.bytes, "the chunk's length");
        let path = CHUNKS.path_of(file);
        let open = self.0.disk.open(&path, Access::Read);
        let open = open.map_err(|error| match error.reason {
            Reason::NotFound => LogError::Missing { path: error.path },
            _ => error.into(),
        })?;
        let damaged = |what: &str| {
            let what = format!("chunk {} {what}", head.number);
            LogError::damaged(open.path(), offset, what)
        };
        let form = offset + super::entry::HEAD as u64;
        open.read_at(buffer, form)
            .map_err(|error| match error.reason {
                Reason::EndOfFile { .. } => damaged("is cut off"),
                _ => error.into(),
            })?;
        let place = CHUNKS.place(self.0.database, file, offset);
        match place.checksum([&*buffer]) == head.checksum {
            true => Ok(()),
            false => Err(damaged("is not what was written")),
        }
    }

    /// Why a chunk is in no file.
    fn missing(&self, number: u64) -> LogError {
        let disk = &*self.0.disk;
        let ends: Vec<(u64, u64)> = {
            let state = self.state();
            let files = state.files.iter().map(|(file, found)| (*file, found.end));
            let incomplete = state.incomplete.iter().map(|(file, end)| (*file, *end));
            files.chain(incomplete).collect()
        };
        for (file, end) in ends {
            match look_behind(disk, self.0.database, file, end) {
                Ok(Some(what)) => {
                    let path = disk.root().join(CHUNKS.path_of(file));
                    let what = format!("{what}, and chunk {number} is in no file");
                    return LogError::damaged(&path, end, what);
                }
                Ok(None) => {}
                Err(error) => return error,
            }
        }
        LogError::NoChunk {
            number,
            directory: disk.root().join(CHUNKS.directory),
        }
    }

    /// How much of each file is in use, by their numbers.
    pub fn usage(&self) -> Vec<ChunkFileUse> {
        let state = self.state();
        let of = |(number, file): (&u64, &FileState)| ChunkFileUse {
            number: *number,
            bytes: file.end,
            live_bytes: file.live,
        };
        state.files.iter().map(of).collect()
    }

    /// Forgets chunks that nothing refers to, or will, and removes files that have no others. What has been said to
    /// refer to them, such as a log, must be gone for good. Chunks that were pushed and are not written yet stay.
    ///
    /// # Errors
    /// The disk has failed. Then files may be there that have nothing of use, until the next start.
    pub fn retain(&self, is_referred_to: impl Fn(u64) -> bool) -> Result<(), LogError> {
        let mut state = self.state();
        let State { files, chunks, .. } = &mut *state;
        chunks.retain(|number, place| {
            let stays = is_referred_to(*number);
            if !stays && let Some(file) = files.get_mut(&place.file) {
                file.live -= place.head.entry_bytes();
            }
            stays
        });
        let is_dead = |file: &FileState| file.live == 0 && !file.is_busy;
        let dead = state.files.extract_if(.., |_, file| is_dead(file));
        let dead: Vec<u64> = dead.map(|(number, _)| number).collect();
        drop(state);
        self.remove(&dead)
    }

    /// Removes files, and has that on the medium.
    pub(super) fn remove(&self, files: &[u64]) -> Result<(), LogError> {
        CHUNKS.remove(&*self.0.disk, files)
    }

    /// Makes the directory ready for a writer: all chunks that are referred to are there, and nothing else stays. The
    /// next chunk has at least this number.
    pub(super) fn make_ready(
        &self,
        referred_to: &BTreeSet<u64>,
        next_chunk: u64,
    ) -> Result<(), LogError> {
        for number in referred_to {
            self.info(*number)?;
        }
        let (incomplete, beside) = {
            let mut state = self.state();
            let next = referred_to.last().map_or(0, |last| last + 1);
            state.next_chunk = state.next_chunk.max(next).max(next_chunk);
            let State {
                incomplete, beside, ..
            } = &mut *state;
            (std::mem::take(incomplete), std::mem::take(beside))
        };
        let (disk, database) = (&*self.0.disk, self.0.database);
        for copies in beside {
            let end = self.state().files[&copies].end;
            mark_again(disk, database, copies, end)?;
        }
        self.remove(&incomplete.into_keys().collect::<Vec<_>>())?;
        self.retain(|number| referred_to.contains(&number))?;
        self.cut_off()
    }

    /// Gives back what lies behind the last entries: room that was not used, and what a crash has left.
    pub(crate) fn cut_off(&self) -> Result<(), LogError> {
        let (disk, database) = (&*self.0.disk, self.0.database);
        for (number, file) in &mut self.state().files {
            if file.length > file.end {
                let open = CHUNKS.open(disk, database, *number, Access::ReadWrite)?;
                open.file.set_len(file.end)?;
                open.file.flush()?;
                file.length = file.end;
            }
        }
        Ok(())
    }

    /// A number for a new file.
    pub(super) fn next_file(&self) -> u64 {
        let mut state = self.state();
        state.next_file += 1;
        state.next_file - 1
    }

    /// A number that no chunk has had, at the time when nobody draws numbers yet.
    pub(crate) fn next_chunk(&self) -> u64 {
        self.state().next_chunk
    }
}

impl State {
    fn add_found(&mut self, disk: &dyn Disk, number: u64, found: &Found) -> Result<(), LogError> {
        let file = FileState {
            length: found.length,
            end: found.end,
            live: 0,
            is_busy: false,
        };
        self.files.insert(number, file);
        for &(offset, head) in &found.entries {
            if let Some(older) = self.chunks.get(&head.number) {
                if !found.is_copies || older.file == number {
                    let path = disk.root().join(CHUNKS.path_of(number));
                    let what = format!("chunk {} is in an earlier place, too", head.number);
                    return Err(LogError::damaged(&path, offset, what));
                }
                let file = self.files.get_mut(&older.file).expect("it is known");
                file.live -= older.head.entry_bytes();
                self.beside.insert(number);
            }
            self.next_chunk = self.next_chunk.max(head.number.saturating_add(1));
            let file = number;
            self.add(ChunkPlace { file, offset, head });
        }
        // It may have been cut off within its last entry.
        self.files.get_mut(&number).expect("it is known").length = found.length;
        Ok(())
    }

    /// Adds a chunk that was appended to a file.
    pub fn add(&mut self, place: ChunkPlace) {
        let file = self.files.get_mut(&place.file).expect("it is known");
        file.live += place.head.entry_bytes();
        file.end = file.end.max(place.offset + place.head.entry_bytes());
        file.length = file.length.max(file.end);
        self.chunks.insert(place.head.number, place);
    }
}
