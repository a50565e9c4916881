//! A process that writes chunks, forgets some, and writes files anew; and what must be there when it has ended.

use crate::common::{DATABASE, Random};
use eris_disk::Disk;
use eris_log::{
    Chunk, ChunkBuffer, ChunkFiles, ChunkInfo, ChunkSettings, ChunkWriter, Form, LogError, NoRoom,
    Purpose, Rewrite, chunk_bytes,
};
use eris_types::ObjectId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Small files, so that there are many; flushes within chunks.
pub const SMALL: ChunkSettings = ChunkSettings {
    file_bytes: 8192,
    dirty_bytes: 1500,
};

/// The stored form of a chunk: always the same of the same number. Some are longer than a file.
pub fn form(number: u64) -> Vec<u8> {
    let mut random = Random::new(number + 1);
    let length = match random.below(12) {
        0 => 9_000 + random.below(9_000),
        1 => random.below(3) * 64,
        _ => random.below(2_500),
    };
    (0..length).map(|_| random.below(256) as u8).collect()
}

pub fn info(number: u64) -> ChunkInfo {
    ChunkInfo {
        object: ObjectId(number as u32 % 5),
        rows: number * 3,
        bytes: form(number).len() as u64,
    }
}

/// A form in many pieces.
#[derive(Debug)]
struct Pieces(Vec<u8>);

impl Form for Pieces {
    fn with_pieces(&self, take: &mut dyn FnMut(&[&[u8]])) {
        take(&self.0.chunks(97).collect::<Vec<_>>());
    }
}

/// Pushes a chunk. Whether there was room.
pub fn push(writer: &ChunkWriter, buffer: &ChunkBuffer) -> Result<u64, NoRoom> {
    let number = buffer.next_number();
    let form = form(number);
    let bytes = chunk_bytes(form.len() as u64);
    let reserve = || writer.room().reserve(bytes, Purpose::Adding);
    let room = match reserve() {
        // The files are made when somebody wants room, and what is waiting takes it.
        Err(NoRoom::Later) => {
            let _ = writer.prepare();
            reserve().or_else(|_| {
                let _ = writer.flush();
                let _ = writer.prepare();
                reserve()
            })?
        }
        reserved => reserved?,
    };
    let ChunkInfo { object, rows, .. } = info(number);
    let form: Box<dyn Form> = match number % 2 {
        0 => Box::new(form),
        _ => Box::new(Pieces(form)),
    };
    buffer.push(Chunk {
        number,
        object,
        rows,
        form,
        room,
    });
    Ok(number)
}

/// Whether a chunk is as it was pushed.
pub fn check(files: &ChunkFiles, number: u64) -> Result<(), String> {
    let told = |error: LogError| format!("chunk {number}: {error}");
    let found = files.info(number).map_err(told)?;
    if found != info(number) {
        return Err(format!("chunk {number} is another one: {found:?}"));
    }
    let mut bytes = vec![0; found.bytes as usize];
    files.read(number, &mut bytes).map_err(told)?;
    match bytes == form(number) {
        true => Ok(()),
        false => Err(format!("chunk {number} has other bytes")),
    }
}

/// What outlives processes: what refers to chunks, as a log does.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub referred_to: BTreeSet<u64>,
    /// The greatest number that was ever drawn.
    pub greatest: u64,
}

pub struct Process {
    pub files: ChunkFiles,
    pub writer: ChunkWriter,
    buffer: ChunkBuffer,
    pushed: BTreeSet<u64>,
    rewrite: Option<Rewrite>,
    /// How many it has finished.
    pub rewrites: usize,
}

impl Process {
    /// Opens what is there, and looks at all that is referred to. The outer error is one that must not be.
    pub fn start(disk: Arc<dyn Disk>, known: &Known) -> Result<Result<Self, LogError>, String> {
        let files = match ChunkFiles::open(disk, DATABASE) {
            Ok(files) => files,
            Err(error @ LogError::Disk(_)) => return Ok(Err(error)),
            Err(error) => return Err(error.to_string()),
        };
        let begun = ChunkWriter::go_on(&files, &known.referred_to, known.greatest + 1, SMALL);
        Ok(match begun {
            Ok((writer, buffer)) => Ok(Process {
                files,
                writer,
                buffer,
                pushed: BTreeSet::new(),
                rewrite: None,
                rewrites: 0,
            }),
            Err(error @ LogError::Disk(_)) => Err(error),
            Err(error) => return Err(error.to_string()),
        })
    }

    /// Does something. Errors of the disk are none of a process's mistakes; others are.
    pub fn act(&mut self, known: &mut Known, random: &mut Random) -> Result<(), String> {
        match random.below(14) {
            0..=4 => {
                if let Ok(number) = push(&self.writer, &self.buffer) {
                    self.pushed.insert(number);
                    known.greatest = number;
                    assert_eq!(self.buffer.next_undrawn(), number + 1);
                }
            }
            5 => drop(self.writer.step()),
            6 | 7 => {
                let flushed = self.writer.flush();
                if flushed.is_ok() {
                    known.referred_to.append(&mut self.pushed);
                } else {
                    // Nothing will ever refer to them.
                    self.pushed.clear();
                    if self.writer.flush().is_ok() || self.writer.step().is_ok() {
                        return Err("a writer that has failed goes on".to_owned());
                    }
                }
            }
            8 => drop(self.writer.prepare()),
            9 => {
                known.referred_to.retain(|_| random.below(4) > 0);
                let (pushed, referred_to) = (&self.pushed, &known.referred_to);
                let stays = |number| referred_to.contains(&number) || pushed.contains(&number);
                drop(self.files.retain(stays));
            }
            10..=12 => self.rewrite(random),
            _ => {
                for number in &known.referred_to {
                    check_now(&self.files, *number)?;
                }
            }
        }
        Ok(())
    }

    /// Pushes a chunk.
    pub fn push(&self) -> Result<u64, NoRoom> {
        push(&self.writer, &self.buffer)
    }

    /// Writes all files anew of which little is in use.
    pub fn rewrite_all(&self) -> Result<(), LogError> {
        while let Some(mut rewrite) = self.files.rewrite(SMALL) {
            while !rewrite.step()? {}
            rewrite.finish()?;
        }
        Ok(())
    }

    fn rewrite(&mut self, random: &mut Random) {
        let Some(mut rewrite) = self.rewrite.take() else {
            self.rewrite = self.files.rewrite(SMALL);
            return;
        };
        // Some are given up.
        if random.below(8) == 0 {
            return;
        }
        match rewrite.step() {
            Ok(true) if random.below(2) == 0 => {
                self.rewrites += usize::from(rewrite.finish().is_ok());
            }
            Ok(_) => self.rewrite = Some(rewrite),
            Err(_) => {}
        }
    }

    pub fn close(&mut self, known: &mut Known) {
        if self.writer.close().is_ok() {
            known.referred_to.append(&mut self.pushed);
        }
    }
}

/// As [`check`], on a disk that may fail.
fn check_now(files: &ChunkFiles, number: u64) -> Result<(), String> {
    let mut bytes = vec![0; form(number).len()];
    match files.read(number, &mut bytes) {
        Ok(()) => check_bytes(number, &bytes),
        Err(LogError::Disk(_)) => Ok(()),
        Err(error) => Err(format!("chunk {number}: {error}")),
    }
}

fn check_bytes(number: u64, bytes: &[u8]) -> Result<(), String> {
    match bytes == form(number) {
        true => Ok(()),
        false => Err(format!("chunk {number} has other bytes")),
    }
}
