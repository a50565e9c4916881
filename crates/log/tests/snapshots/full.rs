//! A disk that is full to its last block: a checkpoint works in the place of the ballast, and nobody else does.

use crate::common::DATABASE;
use eris_disk::{Access, Disk, Lock, SimulatedDisk};
use eris_log::{
    ChunkSettings, Directory, Entry, LogError, LogSettings, NoRoom, OpenDatabase, Purpose,
    RECORD_BYTES, SnapshotStart, SnapshotWriter,
};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const FILE: u64 = 4 << 20;
const SETTINGS: (LogSettings, ChunkSettings) = (
    LogSettings { file_bytes: FILE },
    ChunkSettings {
        file_bytes: FILE,
        dirty_bytes: FILE,
    },
);
/// Bytes of rows that are added, and of deletions.
const BODIES: [u64; 2] = [20_000, 200];

struct Process {
    disk: SimulatedDisk,
    open: OpenDatabase,
    at: u64,
}

impl Process {
    /// Opens the database, whose commits up to `at` are in the snapshot or in the log.
    fn start(disk: &SimulatedDisk, at: u64) -> Result<Self, LogError> {
        let disk = disk.clone();
        let directory = Directory::open(Arc::new(disk.clone()), Lock::Exclusive, DATABASE)?;
        let read = directory.read::<LogError>(|_, _| Ok(()))?;
        assert_eq!(read.as_ref().map_or(0, |read| read.end.through.0), at);
        let chunks = directory.chunk_files()?;
        let open = directory.write(read, &chunks, &BTreeSet::new(), 1, 1, SETTINGS)?;
        Ok(Process { disk, open, at })
    }

    fn commit(&mut self, purpose: Purpose) -> Result<(), NoRoom> {
        let room = self.open.log.room().clone();
        let body = BODIES[usize::from(purpose == Purpose::Freeing)];
        let reserve = || room.reserve(body + RECORD_BYTES, purpose);
        let reserved = reserve().or_else(|_| {
            let _ = self.open.log.prepare();
            reserve()
        });
        self.at += 1;
        self.open.buffers[0].push(Entry {
            at: Timestamp(self.at),
            body: vec![7; body as usize],
            room: Some(reserved.inspect_err(|_| self.at -= 1)?),
        });
        self.open.log.step(Timestamp(self.at)).unwrap();
        let _ = self.open.log.prepare();
        Ok(())
    }

    /// Commits until there is no room, and then others take the rest of the disk.
    fn fill(&mut self) {
        while self.commit(Purpose::Adding).is_ok() {}
        fill(&self.disk);
    }

    fn checkpoint(&mut self, bytes: u64) -> Result<(), LogError> {
        let start = self.open.log.begin_file(None)?;
        // The log thread does so at any time.
        let _ = self.open.log.prepare();
        let directory = &self.open.directory;
        let snapshot = SnapshotStart {
            number: directory.next_snapshot(),
            at: Timestamp(self.at),
        };
        let mut writer = SnapshotWriter::create(Arc::new(self.disk.clone()), DATABASE, snapshot)?;
        writer.push(&vec![9; bytes as usize])?;
        writer.finish()?;
        directory.begin_from(snapshot, start, 1)
    }

    fn ballast(&self) -> Option<u64> {
        let file = self.disk.open(Path::new("ballast"), Access::Read);
        file.ok().map(|file| file.len().unwrap())
    }
}

/// Others take all that is free.
fn fill(disk: &SimulatedDisk) {
    let path = Path::new("of others");
    let file = disk
        .open(path, Access::ReadWrite)
        .or_else(|_| disk.create(path))
        .unwrap();
    let free = disk.free().unwrap();
    file.allocate(file.len().unwrap() + free).unwrap();
    assert_eq!(disk.free().unwrap(), 0);
}

fn full_disk() -> (SimulatedDisk, Process) {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(Some(6 * FILE));
    let mut process = Process::start(&disk, 0).unwrap();
    assert_eq!(process.ballast(), Some(FILE / 8));
    process.fill();
    assert!(process.at > 500, "{} commits", process.at);
    (disk, process)
}

#[test]
fn a_full_disk_is_emptied_by_a_checkpoint() {
    let (_, mut process) = full_disk();
    // Deletions are said in room of their own.
    process.commit(Purpose::Freeing).unwrap();
    process.checkpoint(50_000).unwrap_err();
    let in_use = process.open.directory.use_ballast().unwrap();
    assert_eq!(process.ballast(), None);
    let denied = process.commit(Purpose::Adding).unwrap_err();
    assert!(matches!(denied, NoRoom::Full { .. }), "{denied:?}");
    process.checkpoint(50_000).unwrap();
    drop(in_use);
    // It is longer than before, as the snapshot is.
    assert!(process.ballast().unwrap() >= FILE / 8 + 50_000);
    process.commit(Purpose::Adding).unwrap();
    let Process { disk, open, at } = process;
    drop(open);
    // All the same once more, and the database is there.
    let mut process = Process::start(&disk.kill(), at).unwrap();
    process.fill();
    process.checkpoint(1).unwrap_err();
    let _in_use = process.open.directory.use_ballast().unwrap();
    process.checkpoint(1).unwrap();
}

#[test]
fn a_snapshot_that_needs_more_fails_and_the_ballast_is_made_again() {
    let (_, mut process) = full_disk();
    for _ in 0..5 {
        let in_use = process.open.directory.use_ballast().unwrap();
        process.checkpoint(FILE).unwrap_err();
        drop(in_use);
    }
    let in_use = process.open.directory.use_ballast().unwrap();
    process.checkpoint(1_000).unwrap();
    drop(in_use);
    process.commit(Purpose::Adding).unwrap();
}

#[test]
fn a_database_on_a_full_disk_is_opened_and_emptied() {
    let (disk, process) = full_disk();
    let at = process.at;
    drop(process);
    let disk = disk.kill();
    fill(&disk);
    let mut process = Process::start(&disk, at).unwrap();
    fill(&disk);
    process.checkpoint(1_000).unwrap_err();
    let in_use = process.open.directory.use_ballast().unwrap();
    process.checkpoint(1_000).unwrap();
    drop(in_use);
    process.commit(Purpose::Adding).unwrap();
}

#[test]
fn without_a_ballast_nothing_is_in_use() {
    let (disk, mut process) = full_disk();
    disk.remove(Path::new("ballast")).unwrap();
    fill(&disk);
    assert!(process.open.directory.use_ballast().is_none());
    process.checkpoint(1).unwrap_err();
    disk.set_capacity(None);
    process.commit(Purpose::Adding).unwrap();
    process.open.directory.keep_ballast();
    assert_eq!(process.ballast(), Some(FILE / 8));
}
