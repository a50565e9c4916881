//! No bytes make the reader of chunk files panic or ask for memory, and what it can read stays as it is when files are
//! cleaned up and written anew: `cargo +nightly fuzz run chunk_files` in `crates/log`.
//!
//! ```text
//! input   files; each begins with what it has, 1 byte │ parts
//! part    0 │ number, object, rows, bytes of the form, 1 byte each     an entry
//!         1 │ number, 1 byte │ length of the form, 8 bytes             an entry whose form is not there
//!         2 │ copies, 1 byte                                           a mark
//!         3 │ how many, 1 byte │ bytes                                 any bytes
//!         4 │ how many, 1 byte                                         as many lines of zeros
//!         5                                                            the file ends here
//! ```
//!
//! Checksums of headers, entries and marks are right, for no fuzzer guesses them.

#![no_main]

use eris_disk::{Access, Disk, File, SimulatedDisk};
use eris_log::{ChunkFiles, ChunkSettings, ChunkWriter, DatabaseId, LogError, Place, chunk_bytes};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId([9; 16]);
/// So many numbers of chunks, that some occur twice.
const NUMBERS: u8 = 8;
const SETTINGS: ChunkSettings = ChunkSettings {
    file_bytes: 4096,
    dirty_bytes: 1000,
};

/// A file on its way.
struct Written {
    number: u64,
    bytes: Vec<u8>,
}

impl Written {
    fn new(number: u64, own: u8) -> Self {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(b"ERISCHK\n");
        bytes[8] = 1;
        bytes[16..32].copy_from_slice(&DATABASE.0);
        bytes[32] = number as u8;
        bytes[48] = own;
        let mut file = Written { number, bytes };
        let own = if own == 0 { &[][..] } else { &file.bytes[48..] };
        let checksum = file.place(0).checksum([&file.bytes[..40], own]);
        file.bytes[40..48].copy_from_slice(&checksum.to_le_bytes());
        file
    }

    fn place(&self, offset: usize) -> Place {
        Place {
            database: DATABASE,
            file: self.number | 1 << 56,
            offset: offset as u64,
        }
    }

    fn head(&mut self, magic: &[u8; 4], words: [u64; 5]) {
        let mut head = magic.to_vec();
        head.resize(8, 0);
        words
            .iter()
            .for_each(|word| head.extend(word.to_le_bytes()));
        head.resize(56, 0);
        let checksum = self.place(self.bytes.len()).checksum([&head[..]]);
        head.extend(checksum.to_le_bytes());
        self.bytes.extend(head);
    }

    /// An entry.
    fn entry(&mut self, [number, object, rows, length]: [u8; 4]) {
        let number = number % NUMBERS;
        let form: Vec<u8> = (0..length).map(|byte| byte ^ number).collect();
        let checksum = self.place(self.bytes.len()).checksum([&form[..]]);
        let words = [number, object, rows, length].map(u64::from);
        let [number, object, rows, length] = words;
        self.head(b"ECHK", [number, object, rows, length, checksum]);
        let end = self.bytes.len() + chunk_bytes(length) as usize - 64;
        self.bytes.extend(form);
        self.bytes.resize(end, 0);
    }
}

fn written(mut input: &[u8]) -> Vec<Written> {
    let mut files = Vec::new();
    let mut number = 0;
    while let Some((&own, rest)) = input.split_first() {
        number += 1;
        let mut file = Written::new(number, own % 3);
        input = rest;
        while let Some((&part, rest)) = input.split_first() {
            input = rest;
            let mut take = |most: usize| {
                let (taken, rest) = input.split_at(most.min(input.len()));
                input = rest;
                taken
            };
            match part % 6 {
                0 => match take(4).try_into() {
                    Ok(entry) => file.entry(entry),
                    Err(_) => break,
                },
                1 => match take(9).split_first_chunk::<1>() {
                    Some((number, length)) if length.len() == 8 => {
                        let length = u64::from_le_bytes(length.try_into().expect("eight"));
                        file.head(b"ECHK", [(number[0] % NUMBERS).into(), 1, 1, length, 0]);
                    }
                    _ => break,
                },
                2 => {
                    let copies = take(1).first().copied().unwrap_or(0);
                    file.head(b"EEND", [copies.into(), 0, 0, 0, 0]);
                }
                3 => {
                    let count = take(1).first().copied().unwrap_or(0);
                    file.bytes.extend(take(count.into()));
                }
                4 => {
                    let count = take(1).first().copied().unwrap_or(0);
                    file.bytes
                        .resize(file.bytes.len() + 64 * usize::from(count), 0);
                }
                _ => break,
            }
        }
        files.push(file);
        if files.len() == 6 {
            break;
        }
    }
    files
}

/// All chunks that can be read.
fn readable(files: &ChunkFiles, longest: u64) -> BTreeMap<u64, Vec<u8>> {
    let read = |number| {
        let info = files.info(number).ok()?;
        assert!(info.bytes <= longest, "no memory is asked for");
        let mut bytes = vec![0; info.bytes as usize];
        files.read(number, &mut bytes).ok()?;
        Some((number, bytes))
    };
    (0..=NUMBERS.into()).filter_map(read).collect()
}

fn run(input: &[u8]) -> Result<(), LogError> {
    let disk = SimulatedDisk::new(1);
    disk.create_directory(Path::new("chunks"))?;
    let mut longest = 0;
    for file in written(input) {
        let path = format!("chunks/{:012}.chunks", file.number);
        let made: Box<dyn File> = disk.create(Path::new(&path))?;
        made.write_at(&[IoSlice::new(&file.bytes)], 0)?;
        longest = longest.max(file.bytes.len() as u64);
    }
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let files = ChunkFiles::open(Arc::clone(&disk), DATABASE)?;
    let before = readable(&files, longest);
    let referred_to: BTreeSet<u64> = before.keys().copied().collect();
    ChunkWriter::go_on(&files, &referred_to, 1, SETTINGS)?;
    assert_eq!(readable(&files, longest), before);
    while let Some(mut rewrite) = files.rewrite(SETTINGS) {
        while !rewrite.step()? {}
        rewrite.finish()?;
        assert_eq!(readable(&files, longest), before);
    }
    let again = ChunkFiles::open(Arc::clone(&disk), DATABASE)?;
    assert_eq!(readable(&again, longest), before);
    for file in again.usage() {
        let path = format!("chunks/{:012}.chunks", file.number);
        let length = disk.open(Path::new(&path), Access::Read)?.len()?;
        assert!(length <= file.bytes, "nothing is behind the last entry");
    }
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let _ = run(input);
});
