//! A database that is there as a whole or not at all, as a backup is; and one that opens where the disk is full.

use crate::common::DATABASE;
use eris_disk::{Disk, EntryKind, Fault, Lock, SimulatedDisk};
use eris_log::{
    ChunkSettings, Directory, LogError, LogSettings, OpenDatabase, Purpose, SnapshotStart,
    SnapshotWriter,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn directory(disk: &SimulatedDisk, access: Lock) -> Result<Directory, LogError> {
    Directory::open(Arc::new(disk.clone()), access, DATABASE)
}

fn go_on(directory: Directory) -> Result<OpenDatabase, LogError> {
    let read = directory.read::<LogError>(|_, _| Ok(()))?;
    let files = directory.chunk_files()?;
    let settings = (LogSettings { file_bytes: 4096 }, ChunkSettings::default());
    directory.write(read, &files, &BTreeSet::new(), 1, 1, settings)
}

/// Writes a snapshot, with which the database begins.
fn make(disk: &SimulatedDisk) -> Result<(), LogError> {
    let mut open = go_on(directory(disk, Lock::Exclusive)?.unfinished())?;
    let start = open.log.begin_file(None)?;
    let snapshot = SnapshotStart {
        number: open.directory.next_snapshot(),
        at: start.through,
    };
    let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), DATABASE, snapshot)?;
    writer.push(b"all of it")?;
    writer.finish()?;
    open.directory.begin_from(snapshot, start, 1)
}

#[test]
fn an_unfinished_database_is_none() {
    let mut finished = 0;
    for nth in 1..60 {
        for fault in [Fault::at(nth).stop(), Fault::at(nth)] {
            let disk = SimulatedDisk::new(nth);
            disk.plan(fault);
            let made = make(&disk);
            for left in [disk.crash(), disk.kill()] {
                match directory(&left, Lock::Shared) {
                    Ok(directory) => {
                        let mut groups = 0;
                        let read = directory.read::<LogError>(|_, _| {
                            groups += 1;
                            Ok(())
                        });
                        read.unwrap();
                        assert_eq!(groups, 1, "operation {nth}: it has all of it");
                        finished += 1;
                    }
                    Err(LogError::NoManifest { .. } | LogError::NoDatabase { .. }) => {
                        assert!(made.is_err(), "operation {nth}");
                    }
                    Err(other) => panic!("operation {nth}: {other}"),
                }
            }
        }
    }
    assert!(finished > 0);
}

/// What a killed process has taken for chunks, and not used, is room for whoever opens.
#[test]
fn a_database_on_a_full_disk_is_opened() {
    let disk = SimulatedDisk::new(1);
    let open = go_on(directory(&disk, Lock::Exclusive).unwrap()).unwrap();
    open.chunks
        .room()
        .reserve(1000, Purpose::Adding)
        .unwrap_err();
    open.chunks.prepare().unwrap();
    assert_eq!(disk.list(Path::new("chunks")).unwrap().len(), 1);
    let disk = disk.kill();
    let mut used = 0;
    for directory in ["", "log", "chunks"].map(Path::new) {
        for entry in disk.list(directory).unwrap() {
            if let EntryKind::File(length) = entry.kind {
                used += length.next_multiple_of(4096);
            }
        }
    }
    disk.set_capacity(Some(used));
    assert_eq!(disk.free().unwrap(), 0);
    go_on(directory(&disk, Lock::Exclusive).unwrap()).unwrap();
}
