//! Damage of every kind: the right bytes, or an error that names the file.

use crate::common::{DATABASE, Random, paths};
use crate::process::{Known, Process, check};
use eris_disk::{Access, Disk, File, SimulatedDisk};
use eris_log::{ChunkFiles, DatabaseId, LogError};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// Chunk files of several kinds: full ones, one with a chunk longer than a file, copies, one with dead chunks.
fn written() -> (SimulatedDisk, Known) {
    let (disk, mut known) = (SimulatedDisk::new(1), Known::default());
    let mut random = Random::new(3);
    let mut process = Process::start(Arc::new(disk.clone()), &known)
        .unwrap()
        .unwrap();
    while process.rewrites < 3 || process.files.usage().len() < 5 {
        process.act(&mut known, &mut random).unwrap();
    }
    process.close(&mut known);
    assert!(known.referred_to.len() > 10);
    let dead = process.files.usage();
    assert!(dead.iter().any(|file| file.live_bytes + 64 < file.bytes));
    drop(process);
    (disk, known)
}

/// Reads all that is referred to. The errors, all of which name a file or, if one is missing, where files are.
fn read(disk: &SimulatedDisk, known: &Known) -> Vec<LogError> {
    let files = match ChunkFiles::open(Arc::new(disk.clone()), DATABASE) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    for number in &known.referred_to {
        let read = files.info(*number).and_then(|info| {
            let mut bytes = vec![0; info.bytes as usize];
            files.read(*number, &mut bytes)
        });
        match read {
            Ok(()) => check(&files, *number).unwrap(),
            Err(error) => errors.push(error),
        }
    }
    for error in &errors {
        assert!(error.to_string().contains("chunks"), "{error}");
    }
    errors
}

fn write(file: &dyn File, bytes: &[u8], offset: u64) {
    file.write_at(&[IoSlice::new(bytes)], offset).unwrap();
}

#[test]
fn a_bit_that_flips_is_found_or_is_no_harm() {
    let (disk, known) = written();
    let intact = read(&disk, &known);
    assert!(intact.is_empty(), "{intact:?}");
    let (mut found, mut harmless) = (0, 0);
    for path in paths(&disk, "chunks") {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        let whole = disk.root().join(&path);
        for sector in (0..file.len().unwrap()).step_by(512) {
            // Some in heads, some in forms.
            for offset in [0, 64, 97, 300, 511].map(|within| sector + within) {
                let mut byte = [0];
                if file.read_at(&mut byte, offset).is_err() {
                    continue;
                }
                write(&*file, &[byte[0] ^ 1 << (offset % 8)], offset);
                let errors = read(&disk, &known);
                for error in &errors {
                    match error {
                        // The error says where, in this file, not behind the flipped bit.
                        LogError::Damaged {
                            path, offset: at, ..
                        } => {
                            assert!(*path == whole && *at <= offset, "{error} for {offset}");
                        }
                        LogError::Foreign { path } | LogError::Newer { path, .. } => {
                            assert_eq!(path, &whole)
                        }
                        LogError::OfAnother { path } => assert_eq!(path, &whole),
                        error => panic!("byte {offset} of {}: {error}", path.display()),
                    }
                }
                match errors.is_empty() {
                    true => harmless += 1,
                    false => found += 1,
                }
                write(&*file, &byte, offset);
            }
        }
    }
    println!("{found} found, {harmless} harmless");
    assert!(found > 100 && harmless > 0, "what is dead is not missed");
    assert!(read(&disk, &known).is_empty());
}

#[test]
fn files_that_are_cut_off_exchanged_or_gone_are_found() {
    let (disk, known) = written();
    let mut found = 0;
    for path in paths(&disk, "chunks") {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        let length = file.len().unwrap();
        let mut own = vec![0; length as usize];
        file.read_at(&mut own, 0).unwrap();
        for cut in (0..length).step_by(509) {
            file.set_len(cut).unwrap();
            found += usize::from(!read(&disk, &known).is_empty());
            write(&*file, &own[cut as usize..], cut);
        }
        // Another file's bytes, and those of the same place in another database.
        for other in paths(&disk, "chunks")
            .into_iter()
            .filter(|other| *other != path)
        {
            let other = disk.open(&other, Access::Read).unwrap();
            let mut bytes = vec![0; other.len().unwrap() as usize];
            other.read_at(&mut bytes, 0).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            write(&*file, &bytes, 0);
            let errors = read(&disk, &known);
            assert!(
                matches!(errors[..], [LogError::Damaged { .. }]),
                "{errors:?}"
            );
            file.set_len(length).unwrap();
            write(&*file, &own, 0);
        }
        drop(file);
        let hidden = Path::new("chunks/hidden");
        disk.rename(&path, hidden).unwrap();
        for error in read(&disk, &known) {
            found += 1;
            assert!(matches!(error, LogError::NoChunk { .. }), "{error}");
            assert!(error.to_string().contains("/chunks"), "{error}");
        }
        disk.rename(hidden, &path).unwrap();
        assert!(read(&disk, &known).is_empty());
    }
    assert!(found > 100, "{found}");
    let other = ChunkFiles::open(Arc::new(disk), DatabaseId([7; 16])).unwrap_err();
    assert!(matches!(other, LogError::OfAnother { .. }), "{other}");
}

#[test]
fn whoever_writes_on_is_told_of_what_is_missing_first() {
    let (disk, known) = written();
    let path = &paths(&disk, "chunks")[0];
    let before = paths(&disk, "chunks");
    disk.remove(path).unwrap();
    let Err(error) = Process::start(Arc::new(disk.clone()), &known) else {
        panic!("a file is missing");
    };
    assert!(error.contains("is in no file"), "{error}");
    assert_eq!(paths(&disk, "chunks"), before[1..], "nothing was changed");
}

#[test]
fn whoever_writes_on_is_told_of_a_chunk_that_is_cut_off_first() {
    let (disk, mut known) = (SimulatedDisk::new(1), Known::default());
    let mut process = Process::start(Arc::new(disk.clone()), &known)
        .unwrap()
        .unwrap();
    known.referred_to = (0..5).filter_map(|_| process.push().ok()).collect();
    process.close(&mut known);
    drop(process);
    let path = &paths(&disk, "chunks")[0];
    let file = disk.open(path, Access::ReadWrite).unwrap();
    let length = file.len().unwrap() - 1;
    file.set_len(length).unwrap();
    let Err(error) = Process::start(Arc::new(disk.clone()), &known) else {
        panic!("a chunk is cut off");
    };
    assert!(error.contains("is cut off"), "{error}");
    assert_eq!(file.len().unwrap(), length, "nothing was changed");
}
