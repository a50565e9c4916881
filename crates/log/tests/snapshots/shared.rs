//! Opening for reading: whoever reads changes nothing, and writers stay away meanwhile.

use crate::common::{Random, paths};
use crate::mistakes::Mistake;
use crate::process::{Failure, Known, Process, look};
use eris_disk::{Access, Disk, EntryKind, Lock, Operation, RealDisk, SimulatedDisk};
use eris_log::{DatabaseId, Directory, LogError};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NEW: DatabaseId = DatabaseId([7; 16]);

/// All files, with their bytes, and all directories.
fn all(disk: &dyn Disk) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        for entry in disk.list(&directory).unwrap_or_default() {
            let path = directory.join(&entry.name);
            let bytes = match entry.kind {
                EntryKind::File(length) => {
                    let mut bytes = vec![0; length as usize];
                    let file = disk.open(&path, Access::Read).unwrap();
                    file.read_at(&mut bytes, 0).unwrap();
                    Some(bytes)
                }
                _ => None,
            };
            if bytes.is_none() {
                left.push(path.clone());
            }
            all.insert(path, bytes);
        }
    }
    all
}

/// Operations that change something.
fn changes(disk: &SimulatedDisk) -> u64 {
    let reading = [
        Operation::Open,
        Operation::Read,
        Operation::List,
        Operation::Len,
        Operation::Lock,
    ];
    let reads: u64 = reading.iter().map(|kind| disk.counts().of(*kind)).sum();
    disk.counts().total() - reads
}

/// A process that ends anywhere between its checkpoints.
fn work(disk: Arc<dyn Disk>, known: &mut Known, seed: u64) {
    let mut random = Random::new(seed + 1);
    let process = Process::start(disk, known, Mistake::None, 0).unwrap();
    let mut process = process.expect("nothing fails");
    for _ in 0..40 + random.below(60) {
        process.act(known, &mut random).unwrap();
    }
}

#[test]
fn whoever_reads_changes_nothing() {
    for seed in 0..100 {
        let (disk, mut known) = (SimulatedDisk::new(seed), Known::default());
        work(Arc::new(disk.clone()), &mut known, seed);
        let disk = match seed % 2 {
            0 => disk.crash(),
            _ => disk.kill(),
        };
        // What a start would remove.
        for path in ["eris.db.new", "snapshots/000000000099.snapshot"] {
            disk.create_directory(Path::new(path).parent().unwrap())
                .unwrap();
            let _ = disk.remove(Path::new(path));
            let file = disk.create(Path::new(path)).unwrap();
            file.write_at(&[IoSlice::new(b"begun")], 0).unwrap();
        }
        let (before, changed) = (all(&disk), changes(&disk));
        look(&disk, &known, Lock::Shared).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
        assert_eq!(changes(&disk), changed, "seed {seed}");
        assert_eq!(all(&disk), before, "seed {seed}");
    }
}

#[test]
fn a_real_directory_is_read_without_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Disk> { Arc::new(RealDisk::new(&directory.path().join("db"))) };
    let mut known = Known::default();
    for seed in 0..4 {
        work(open(), &mut known, seed);
        let before = all(&*open());
        let read = Directory::open(open(), Lock::Shared, NEW).unwrap();
        read.read::<LogError>(|_, _| Ok(())).unwrap();
        read.chunk_files().unwrap();
        drop(read);
        assert_eq!(all(&*open()), before);
    }
    assert!(known.checkpoints > 4);
}

#[test]
fn readers_and_a_writer_do_not_meet() {
    let (disk, mut known) = (SimulatedDisk::new(1), Known::default());
    let open = |access| Directory::open(Arc::new(disk.clone()), access, NEW);
    let writer = Process::start(Arc::new(disk.clone()), &mut known, Mistake::None, 0);
    let writer = writer.unwrap().expect("nothing fails");
    // The lock is that of whoever has the directory, in whatever part of the database.
    let directory = writer.open.directory.clone();
    writer.close(&mut known);
    let error = open(Lock::Shared).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(directory);
    let readers = [open(Lock::Shared).unwrap(), open(Lock::Shared).unwrap()];
    assert!(open(Lock::Exclusive).is_err());
    drop(readers);
    open(Lock::Exclusive).unwrap();
}

#[test]
fn where_there_is_no_database_none_is_made() {
    let is_none = |disk: &SimulatedDisk| {
        let (before, changed) = (all(disk), changes(disk));
        match look(disk, &Known::default(), Lock::Shared) {
            Err(Failure::Log(LogError::NoDatabase { directory })) => {
                assert_eq!(directory, disk.root());
            }
            found => panic!("{found:?}"),
        }
        assert_eq!((all(disk), changes(disk)), (before, changed));
    };
    let disk = SimulatedDisk::new(1);
    is_none(&disk);
    // One that was never made.
    drop(Directory::open(Arc::new(disk.clone()), Lock::Exclusive, NEW).unwrap());
    is_none(&disk);
    // One that has lost its manifest.
    let mut known = Known::default();
    work(Arc::new(disk.clone()), &mut known, 1);
    assert!(!paths(&disk, "log").is_empty());
    disk.remove(Path::new("eris.db")).unwrap();
    let error = look(&disk, &known, Lock::Shared).unwrap_err();
    assert!(matches!(error, Failure::Log(LogError::NoManifest { .. })));
}
