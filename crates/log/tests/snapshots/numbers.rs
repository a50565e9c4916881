//! Numbers of chunks and snapshots are not given twice, though files that had them are gone.

use crate::common::DATABASE;
use eris_disk::{Disk, Fault, Lock, Operation, SimulatedDisk};
use eris_log::{
    Chunk, ChunkSettings, Directory, LogError, LogSettings, OpenDatabase, Purpose, SnapshotStart,
    SnapshotWriter, chunk_bytes,
};
use eris_types::ObjectId;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

fn open(disk: &SimulatedDisk) -> Result<OpenDatabase, LogError> {
    let directory = Directory::open(Arc::new(disk.clone()), Lock::Exclusive, DATABASE)?;
    let read = directory.read::<LogError>(|_, _| Ok(()))?;
    let chunks = directory.chunk_files()?;
    let settings = (LogSettings { file_bytes: 4096 }, ChunkSettings::default());
    directory.write(read, &chunks, &BTreeSet::new(), 1, 1, settings)
}

/// Writes a chunk that nothing will refer to.
fn write_chunk(open: &OpenDatabase) -> u64 {
    open.chunks
        .room()
        .reserve(1000, Purpose::Adding)
        .unwrap_err();
    open.chunks.prepare().unwrap();
    let number = open.chunk_buffer.next_number();
    let room = open
        .chunks
        .room()
        .reserve(chunk_bytes(100), Purpose::Adding);
    open.chunk_buffer.push(Chunk {
        number,
        object: ObjectId(1),
        rows: 1,
        form: Box::new(vec![7; 100]),
        room: room.unwrap(),
    });
    open.chunks.flush().unwrap();
    number
}

/// Its file may come back: its removal at a start was not stored.
#[test]
fn the_number_of_a_chunk_that_was_removed_at_a_start_is_not_given_again() {
    let disk = SimulatedDisk::new(1);
    let number = write_chunk(&open(&disk).unwrap());
    let disk = disk.kill();
    disk.plan(Fault::at(1).of(Operation::FlushDirectory).on("chunks"));
    open(&disk).unwrap_err();
    let shown = disk.kill();
    assert!(shown.list(Path::new("chunks")).unwrap().is_empty());
    let next = open(&shown).unwrap().chunk_buffer.next_number();
    assert!(next > number, "{next}");
}

#[test]
fn the_number_of_a_chunk_that_was_removed_after_a_checkpoint_is_not_given_again() {
    let disk = SimulatedDisk::new(1);
    let directory = Directory::open(Arc::new(disk.clone()), Lock::Exclusive, DATABASE).unwrap();
    let files = directory.chunk_files().unwrap();
    let settings = (LogSettings::default(), ChunkSettings::default());
    let open_database = directory.write(None, &files, &BTreeSet::new(), 1, 1, settings);
    let mut database = open_database.unwrap();
    let number = write_chunk(&database);
    let start = database.log.begin_file(None).unwrap();
    let snapshot = SnapshotStart {
        number: database.directory.next_snapshot(),
        at: start.through,
    };
    let disk_of_it = database.directory.disk().clone();
    SnapshotWriter::create(disk_of_it, DATABASE, snapshot)
        .unwrap()
        .finish()
        .unwrap();
    let next = database.chunk_buffer.next_undrawn();
    database
        .directory
        .begin_from(snapshot, start, next)
        .unwrap();
    assert_eq!(database.directory.manifest().next_chunk, number + 1);
    database.chunks.close().unwrap();
    files.retain(|_| false).unwrap();
    assert!(disk.list(Path::new("chunks")).unwrap().is_empty());
    let next = open(&disk.kill()).unwrap().chunk_buffer.next_number();
    assert!(next > number, "{next}");
}

#[test]
fn each_snapshot_has_another_number() {
    let disk = SimulatedDisk::new(1);
    let first = open(&disk).unwrap().directory;
    let numbers = [first.next_snapshot(), first.clone().next_snapshot()];
    assert_eq!(numbers, [1, 2]);
    let at = eris_types::Timestamp(5);
    let left = SnapshotStart { number: 2, at };
    let writer = SnapshotWriter::create(first.disk().clone(), DATABASE, left).unwrap();
    drop(first);
    let disk = disk.kill();
    // The process has ended, so it is there still; then the start has removed it.
    drop(writer);
    let second = open(&disk).unwrap().directory;
    assert!(disk.list(Path::new("snapshots")).unwrap().is_empty());
    assert_eq!(second.next_snapshot(), 3);
}
