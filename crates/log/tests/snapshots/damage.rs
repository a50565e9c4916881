//! Damage of every kind, to any file of a database: what was there, or an error that names the file.

use crate::common::{DATABASE, Random, paths};
use crate::mistakes::Mistake;
use crate::process::{Failure, Known, Process, SMALL, look};
use eris_disk::{Access, Disk, File, Lock, SimulatedDisk};
use eris_log::{Directory, LogError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub type Files = BTreeMap<PathBuf, Vec<u8>>;

fn bytes_of(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

pub fn files(disk: &SimulatedDisk) -> Files {
    let all = ["log", "chunks", "snapshots"].map(|directory| paths(disk, directory));
    let all = all.into_iter().flatten().chain([PathBuf::from("eris.db")]);
    let read = |path: PathBuf| {
        let bytes = bytes_of(&*disk.open(&path, Access::Read).unwrap());
        (path, bytes)
    };
    all.map(read).collect()
}

/// A database that was closed: a snapshot, a log of several files and chunk files. And all that files were before, at
/// some times.
pub fn written() -> (SimulatedDisk, Known, Vec<Files>) {
    let (disk, mut known) = (SimulatedDisk::new(1), Known::default());
    let mut random = Random::new(3);
    let mut before = Vec::new();
    for checkpoints in [2, 4] {
        let process = Process::start(Arc::new(disk.clone()), &mut known, Mistake::None, 1_000);
        let mut process = process.unwrap().expect("nothing fails");
        // Then the log and the chunk files go on.
        while known.checkpoints < checkpoints
            || paths(&disk, "log").len() < 4
            || paths(&disk, "chunks").len() < 3
        {
            process.act(&mut known, &mut random).unwrap();
            before.push(files(&disk));
        }
        process.close(&mut known);
    }
    assert!(known.checkpoints >= 4 && paths(&disk, "snapshots").len() == 1);
    assert!(paths(&disk, "chunks").len() > 1);
    look(&disk, &known, Lock::Shared).unwrap();
    (disk, known, before)
}

/// Whether damage of a file is found. If so, the error names the file.
fn is_found(disk: &SimulatedDisk, known: &Known, path: &Path) -> bool {
    match look(disk, known, Lock::Shared) {
        Ok(()) => false,
        Err(Failure::Log(LogError::NoChunk { .. })) if path.starts_with("chunks") => true,
        Err(Failure::Log(error)) => {
            let named = error.to_string().contains(path.to_str().unwrap());
            assert!(named, "{}: {error}", path.display());
            true
        }
        Err(Failure::Wrong(what)) => panic!("{}: {what}", path.display()),
    }
}

pub fn put(file: &dyn File, bytes: &[u8], offset: u64) {
    file.write_at(&[IoSlice::new(bytes)], offset).unwrap();
}

pub fn replace(file: &dyn File, bytes: &[u8]) {
    file.set_len(0).unwrap();
    put(file, bytes, 0);
}

#[test]
fn a_bit_that_flips_is_found_or_is_no_harm() {
    let (disk, known, _) = written();
    let (mut found, mut harmless) = (0, 0);
    for (path, bytes) in files(&disk) {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        for (offset, byte) in (0..).zip(&bytes).step_by(64).flat_map(|(offset, _)| {
            let within = offset as usize + offset as usize / 64 % 64;
            bytes.get(within).map(|byte| (within as u64, *byte))
        }) {
            put(&*file, &[byte ^ 1 << (offset % 8)], offset);
            match is_found(&disk, &known, &path) {
                true => found += 1,
                false => {
                    // Chunks that are dead, and that the log was closed.
                    assert!(!path.starts_with("snapshots") && path != Path::new("eris.db"));
                    harmless += 1;
                }
            }
            put(&*file, &[byte], offset);
        }
    }
    println!("{found} found, {harmless} harmless");
    assert!(found > 100 && !is_found(&disk, &known, Path::new("")));
}

#[test]
fn a_file_that_is_cut_off_or_gone_is_found_or_is_no_harm() {
    let (disk, known, _) = written();
    let mut found = 0;
    for (path, bytes) in files(&disk) {
        let must_be_found = path.starts_with("snapshots") || path == Path::new("eris.db");
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        // A group begins at a multiple of eight.
        let groups = bytes
            .chunks(8)
            .zip(0..)
            .filter(|(bytes, _)| bytes.starts_with(b"EGRP"));
        let ends = groups.map(|(_, eight)| 8 * eight);
        let cuts: Vec<u64> = ends.chain((0..bytes.len() as u64).step_by(61)).collect();
        for cut in cuts {
            file.set_len(cut).unwrap();
            let is_found = is_found(&disk, &known, &path);
            assert!(is_found || !must_be_found, "{}: {cut}", path.display());
            found += usize::from(is_found);
            put(&*file, &bytes[cut as usize..], cut);
        }
        let hidden = path.with_file_name("hidden");
        disk.rename(&path, &hidden).unwrap();
        let is_gone = is_found(&disk, &known, &path);
        assert!(is_gone || path.starts_with("chunks"), "{}", path.display());
        disk.rename(&hidden, &path).unwrap();
    }
    println!("{found} found");
    assert!(found > 100 && !is_found(&disk, &known, Path::new("")));
}

#[test]
fn another_file_or_an_older_one_is_found_or_is_no_harm() {
    let (disk, known, before) = written();
    let now = files(&disk);
    let last = paths(&disk, "log").pop().unwrap();
    let (mut older, mut others) = (0, 0);
    for (path, bytes) in &now {
        let file = disk.open(path, Access::ReadWrite).unwrap();
        for (other, bytes) in now.iter().filter(|(other, _)| *other != path) {
            replace(&*file, bytes);
            let is_found = is_found(&disk, &known, path);
            assert!(is_found, "{} is {}", path.display(), other.display());
            others += 1;
        }
        for bytes in before.iter().filter_map(|files| files.get(path)) {
            // Nothing but the last file of a log says how far the log goes.
            if *path == last {
                continue;
            }
            replace(&*file, bytes);
            // A manifest that refers to what is gone: what is missing is named.
            match path == Path::new("eris.db") {
                true => match look(&disk, &known, Lock::Shared) {
                    Ok(()) => {}
                    Err(Failure::Log(LogError::Missing { .. })) => older += 1,
                    Err(failure) => panic!("{failure:?}"),
                },
                false => older += usize::from(is_found(&disk, &known, path)),
            }
        }
        replace(&*file, bytes);
    }
    println!("{others} other files, {older} older ones");
    assert!(older > 10 && !is_found(&disk, &known, Path::new("")));
}

#[test]
fn whoever_writes_on_is_told_of_a_missing_chunk_before_anything_is_changed() {
    let (disk, mut known, _) = written();
    let directory = Directory::open(Arc::new(disk.clone()), Lock::Exclusive, DATABASE).unwrap();
    let read = directory.read::<LogError>(|_, _| Ok(())).unwrap();
    let chunks = directory.chunk_files().unwrap();
    let before = files(&disk);
    let referred_to = BTreeSet::from([1 << 40]);
    let error = directory.write(read, &chunks, &referred_to, 1, 1, SMALL);
    let error = error.unwrap_err();
    assert!(matches!(error, LogError::NoChunk { .. }), "{error}");
    assert_eq!(files(&disk), before);
    // And the process that knows what is referred to goes on.
    let process = Process::start(Arc::new(disk), &mut known, Mistake::None, 0);
    assert!(process.unwrap().is_some());
}
