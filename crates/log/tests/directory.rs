//! Opening a directory: a database is there or not, whatever happens while it is made; what is no database stays as it
//! is.

use eris_disk::{Access, Disk, EntryKind, Fault, Lock, Operation, RealDisk, Reason, SimulatedDisk};
use eris_log::{
    ChunkSettings, DatabaseId, Directory, Entry, FORMAT, Group, LogError, LogSettings, Look,
    OpenDatabase, Origin, check,
};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const SMALL: LogSettings = LogSettings { file_bytes: 4096 };

/// Opens a directory, and the timestamps of all records there.
fn open_with(
    disk: Arc<dyn Disk>,
    id: u8,
    settings: LogSettings,
) -> Result<(OpenDatabase, Vec<u64>), LogError> {
    let directory = Directory::open(disk, Lock::Exclusive, DatabaseId([id; 16]))?;
    let mut seen = Vec::new();
    let read = directory.read::<LogError>(|_, group| {
        let records = group.records();
        seen.extend(records.map(|record| record.expect("it is whole").at.0));
        Ok(())
    })?;
    let chunks = directory.chunk_files()?;
    let settings = (settings, ChunkSettings::default());
    let open = directory.write(read, &chunks, &BTreeSet::new(), 1, 1, settings)?;
    Ok((open, seen))
}

fn open(disk: &SimulatedDisk, id: u8) -> Result<(OpenDatabase, Vec<u64>), LogError> {
    open_with(Arc::new(disk.clone()), id, SMALL)
}

fn commit(open: &mut OpenDatabase, at: u64) -> Result<(), LogError> {
    open.buffers[0].push(Entry {
        at: Timestamp(at),
        body: vec![7; 100],
        room: None,
    });
    open.log.step(Timestamp(at)).map(drop)
}

/// What a process has done: whether the database was there for it, and how many commits were acknowledged.
fn process(disk: &SimulatedDisk, id: u8, commits: u64) -> (Option<DatabaseId>, u64, Vec<u64>) {
    let Ok((mut open, seen)) = open(disk, id) else {
        return (None, 0, Vec::new());
    };
    let first = seen.len() as u64;
    let mut done = first;
    for at in first + 1..=first + commits {
        if commit(&mut open, at).is_err() {
            break;
        }
        done = at;
    }
    (Some(open.directory.manifest().database), done, seen)
}

#[test]
fn a_database_is_made_or_not_whatever_happens() {
    let count = |disk: &SimulatedDisk| -> u64 {
        Operation::ALL
            .iter()
            .map(|kind| disk.counts().of(*kind))
            .sum()
    };
    let disk = SimulatedDisk::new(3);
    process(&disk, 1, 5);
    for nth in 1..=count(&disk) {
        for fault in [Fault::at(nth), Fault::at(nth).stop()] {
            let disk = SimulatedDisk::new(nth);
            disk.plan(fault);
            let (made, done, _) = process(&disk, 1, 5);
            for found in [disk.kill(), disk.crash(), disk.crash()] {
                let (open, seen) =
                    open(&found, 2).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
                let database = open.directory.manifest().database;
                if let Some(made) = made {
                    assert_eq!(database, made, "operation {nth}");
                    assert!(seen.len() as u64 >= done, "operation {nth}");
                }
                assert!(seen.iter().copied().eq(1..=seen.len() as u64));
                drop(open);
                // And whoever comes next finds the same.
                let (id, _, again) = process(&found, 3, 0);
                assert_eq!((id, again), (Some(database), seen));
            }
        }
    }
}

#[test]
fn what_a_failed_flush_has_left_to_see_is_stored_before_anybody_relies_on_it() {
    let whole = SimulatedDisk::new(3);
    process(&whole, 1, 5);
    for nth in 1..=whole.counts().total() {
        let disk = SimulatedDisk::new(nth);
        disk.plan(Fault::at(nth));
        process(&disk, 1, 5);
        // The system shows what was not stored, and then the power fails.
        let shown = disk.kill();
        let (id, done, _) = process(&shown, 2, 5);
        for found in [shown.crash(), shown.crash(), shown.crash()] {
            let (open, seen) =
                open(&found, 3).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            assert_eq!(
                Some(open.directory.manifest().database),
                id,
                "operation {nth}"
            );
            assert!(seen.len() as u64 >= done, "operation {nth}");
        }
    }
}

#[test]
fn a_database_is_opened_again_and_again_whatever_happens() {
    for seed in 0..300u64 {
        let mut disk = SimulatedDisk::new(seed);
        let (mut id, mut done) = (None, 0);
        for life in 0..6u8 {
            let nth = 1 + (seed * 7 + u64::from(life) * 13) % 60;
            match (seed + u64::from(life)) % 3 {
                0 => disk.plan(Fault::at(nth)),
                1 => disk.plan(Fault::at(nth).stop()),
                _ => {}
            }
            let (now, committed, seen) = process(&disk, life + 1, 6);
            if let Some(now) = now {
                assert_eq!(*id.get_or_insert(now), now, "seed {seed}: another database");
                assert!(seen.len() as u64 >= done, "seed {seed}: commits are lost");
                done = committed;
            }
            disk = if seed % 2 == 0 {
                disk.crash()
            } else {
                disk.kill()
            };
        }
    }
}

#[test]
fn whoever_comes_second_is_told_who_has_it() {
    let disk = SimulatedDisk::new(1);
    let first = open(&disk, 1).unwrap();
    let error = open(&disk, 2).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(first);
    open(&disk, 2).unwrap();
}

#[test]
fn what_is_no_database_is_not_touched() {
    let all = |disk: &SimulatedDisk| {
        let kinds = [
            Operation::Create,
            Operation::Write,
            Operation::Remove,
            Operation::Rename,
            Operation::CreateDirectory,
            Operation::Lock,
        ];
        kinds.map(|kind| disk.counts().of(kind))
    };
    let put = |disk: &SimulatedDisk, path: &str, bytes: &[u8]| {
        let path = Path::new(path);
        if let Some(above) = path.parent() {
            disk.create_directory(above).unwrap();
        }
        let file = disk.create(path).unwrap();
        file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
    };
    for path in [
        "letter.txt",
        "log/letter.txt",
        "data/eris.db",
        "log/1.log",
        "chunks/1.chunks",
        "snapshots/000000000001.log",
        "lock/000000000001.log",
    ] {
        let disk = SimulatedDisk::new(1);
        put(&disk, path, b"Dear Eris");
        let before = all(&disk);
        let error = open(&disk, 1).unwrap_err();
        assert!(
            matches!(error, LogError::OtherFiles { .. }),
            "{path}: {error}"
        );
        assert_eq!(all(&disk), before, "{path}");
    }
    // A manifest that is none, of a later format, or damaged: the lock is all that is taken.
    let whole = SimulatedDisk::new(1);
    drop(open(&whole, 1).unwrap());
    let file = whole
        .open(Path::new("eris.db"), eris_disk::Access::Read)
        .unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        bytes
    };
    let later = (FORMAT + 1) as u8;
    let mut of_later_format = changed(8, later);
    *of_later_format.last_mut().unwrap() ^= 1;
    for (bytes, is_right) in [
        (
            b"Dear Eris".to_vec(),
            (|e| matches!(e, LogError::Foreign { .. })) as fn(&LogError) -> bool,
        ),
        (Vec::new(), |e| matches!(e, LogError::Foreign { .. })),
        (of_later_format, |e| matches!(e, LogError::Newer { .. })),
        // All else is as in ours.
        (changed(8, later), |e| matches!(e, LogError::Damaged { .. })),
        (changed(20, 9), |e| matches!(e, LogError::Damaged { .. })),
        (changed(60, 9), |e| matches!(e, LogError::Damaged { .. })),
        (bytes[..40].to_vec(), |e| {
            matches!(e, LogError::Damaged { .. })
        }),
        ([&bytes[..], b"more"].concat(), |e| {
            matches!(e, LogError::Damaged { .. })
        }),
    ] {
        let disk = SimulatedDisk::new(1);
        put(&disk, "eris.db", &bytes);
        let before = all(&disk);
        let error = open(&disk, 1).unwrap_err();
        assert!(is_right(&error), "{error}");
        let after = all(&disk);
        assert_eq!(after[2..5], before[2..5], "{error}");
    }
}

#[test]
fn a_real_directory_has_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/one");
    let open = |commits: std::ops::Range<u64>| {
        let (mut open, seen) = open_with(Arc::new(RealDisk::new(&path)), 5, SMALL).unwrap();
        for at in commits {
            commit(&mut open, at).unwrap();
        }
        seen.len()
    };
    assert_eq!(open(1..100), 0);
    assert_eq!(open(100..150), 99);
    assert_eq!(open(0..0), 149);
}

/// Looks at nothing: a file is whole if its groups are.
struct Blind;

impl Look for Blind {
    fn group(&mut self, _: Origin, _: &Group) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn a_copy_without_its_lock_is_read_and_checked_and_gets_none() {
    let disk = SimulatedDisk::new(1);
    let (_, done, _) = process(&disk, 1, 5);
    let disk = disk.kill();
    let lock = Path::new("lock");
    disk.remove(lock).unwrap();
    let (of, id) = (Arc::new(disk.clone()) as Arc<dyn Disk>, DatabaseId([2; 16]));
    let directory = Directory::open(Arc::clone(&of), Lock::Shared, id).unwrap();
    let mut commits = 0;
    let read = directory.read::<LogError>(|_, _| {
        commits += 1;
        Ok(())
    });
    assert!(read.unwrap().is_some());
    assert_eq!(commits, done);
    let checked = check(&of, &mut Blind).unwrap();
    assert_eq!(checked.findings, []);
    assert!(disk.open(lock, Access::Read).is_err(), "nothing was made");
    // With the file, whoever writes holds it off.
    let writer = open(&disk, 1).unwrap();
    let held = |error: LogError| matches!(error, LogError::Disk(error) if matches!(error.reason, Reason::Locked(_)));
    assert!(held(check(&of, &mut Blind).unwrap_err()));
    assert!(held(Directory::open(of, Lock::Shared, id).unwrap_err()));
    drop(writer);
}

#[test]
fn a_log_whose_manifest_is_missing_is_not_begun_anew() {
    let disk = SimulatedDisk::new(1);
    let (_, done, _) = process(&disk, 1, 5);
    let disk = disk.kill();
    let logs = disk.list(Path::new("log")).unwrap().len();
    let manifest = Path::new("eris.db");
    disk.rename(manifest, Path::new("eris.db.new")).unwrap();
    for _ in 0..2 {
        let error = open(&disk, 2).unwrap_err();
        assert!(matches!(error, LogError::NoManifest { .. }), "{error}");
    }
    assert_eq!(disk.list(Path::new("log")).unwrap().len(), logs);
    disk.rename(Path::new("eris.db.new"), manifest).unwrap();
    assert_eq!(open(&disk, 3).unwrap().1.len() as u64, done);
}

#[test]
fn a_disk_that_is_nearly_full_opens_with_small_files() {
    let disk = SimulatedDisk::new(1);
    let large = LogSettings {
        file_bytes: 4 << 20,
    };
    let open = |disk: &SimulatedDisk| open_with(Arc::new(disk.clone()), 1, large);
    let mut first = open(&disk).unwrap().0;
    commit(&mut first, 1).unwrap();
    first.log.close(Timestamp(1)).unwrap();
    disk.set_capacity(Some(512 << 10));
    let disk = disk.kill();
    let mut second = open(&disk).unwrap().0;
    commit(&mut second, 2).unwrap();
    let files = disk.list(Path::new("log")).unwrap();
    let EntryKind::File(length) = files.last().unwrap().kind else {
        panic!("a log file is a file");
    };
    assert!(length <= 512 << 10, "{length} bytes");
}
