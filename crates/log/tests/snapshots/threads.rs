//! A thread commits, one flushes the log, and one makes checkpoints. The power fails meanwhile.

use crate::common::DATABASE;
use crate::process::SMALL;
use eris_disk::{Disk, Lock, SimulatedDisk};
use eris_log::{
    Directory, Entry, LogBuffer, LogError, LogStart, LogWriter, OpenDatabase, OpenDirectory,
    Origin, SnapshotStart, SnapshotWriter,
};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What the threads tell each other.
#[derive(Default)]
struct Told {
    applied: AtomicU64,
    durable: AtomicU64,
    checkpoints: AtomicU64,
    has_ended: AtomicBool,
}

/// Opens the database, and the commits that are there: each once, and none is missing.
fn open(disk: &SimulatedDisk) -> (OpenDatabase, u64) {
    let disk = Arc::new(disk.clone());
    let directory = Directory::open(disk, Lock::Exclusive, DATABASE).unwrap();
    let at = directory.manifest().and_then(|manifest| manifest.snapshot);
    let at = at.map_or(0, |snapshot| snapshot.at.0);
    let mut seen = Vec::new();
    let take = |origin, group: eris_log::Group| {
        for record in group.records().map(Result::unwrap) {
            let commit = u64::from_le_bytes(record.body.try_into().unwrap());
            if origin == Origin::Snapshot || commit > at {
                seen.push(commit);
            }
        }
        Ok::<(), LogError>(())
    };
    let read = directory.read(take).unwrap();
    let through = read.as_ref().map_or(0, |read| read.end.through.0);
    assert!(seen.iter().copied().eq(1..=through), "{through}: {seen:?}");
    let chunks = directory.chunk_files().unwrap();
    let open = directory.write(read, &chunks, &BTreeSet::new(), 1, 1, SMALL);
    (open.unwrap(), through)
}

/// Begins files when it is asked to, and flushes otherwise.
fn flush(mut log: LogWriter, told: &Told, asked: Receiver<Sender<LogStart>>) {
    while !told.has_ended.load(SeqCst) {
        if let Ok(answer) = asked.try_recv() {
            let Ok(start) = log.begin_file(None) else {
                break;
            };
            let _ = answer.send(start);
        }
        let Ok(through) = log.step(Timestamp(told.applied.load(SeqCst))) else {
            break;
        };
        told.durable.store(through.0, SeqCst);
        let _ = log.prepare();
    }
    told.has_ended.store(true, SeqCst);
}

fn commit(buffer: &LogBuffer, told: &Told) {
    while !told.has_ended.load(SeqCst) {
        let at = told.applied.load(SeqCst) + 1;
        // Not without an end: a snapshot has one record for each.
        if at < told.durable.load(SeqCst) + 20 {
            buffer.push(Entry {
                at: Timestamp(at),
                body: at.to_le_bytes().to_vec(),
                room: None,
            });
            told.applied.store(at, SeqCst);
        }
        thread::yield_now();
    }
}

fn checkpoint(
    directory: &OpenDirectory,
    told: &Told,
    ask: &Sender<Sender<LogStart>>,
) -> Result<(), LogError> {
    while !told.has_ended.load(SeqCst) {
        let (answer, answered) = channel();
        let _ = ask.send(answer);
        let Ok(start) = answered.recv() else { break };
        let snapshot = SnapshotStart {
            number: directory.next_snapshot(),
            at: Timestamp(told.applied.load(SeqCst)),
        };
        let database = directory.manifest().database;
        let mut writer = SnapshotWriter::create(directory.disk().clone(), database, snapshot)?;
        (1..=snapshot.at.0).try_for_each(|at| writer.push(&at.to_le_bytes()))?;
        writer.finish()?;
        while told.durable.load(SeqCst) < snapshot.at.0 {
            if told.has_ended.load(SeqCst) {
                return Ok(());
            }
            thread::yield_now();
        }
        directory.begin_from(snapshot, start, 1)?;
        told.checkpoints.fetch_add(1, SeqCst);
    }
    Ok(())
}

#[test]
fn threads_commit_flush_and_make_checkpoints_at_a_time() {
    let mut disk = SimulatedDisk::new(1);
    for life in 0..20 {
        let (database, through) = open(&disk);
        let OpenDatabase {
            directory,
            log,
            buffers,
            chunks: _chunks,
            ..
        } = database;
        let told = Told::default();
        told.applied.store(through, SeqCst);
        let (ask, asked) = channel();
        let durable = thread::scope(|scope| {
            let told = &told;
            scope.spawn(move || flush(log, told, asked));
            scope.spawn(|| commit(&buffers[0], told));
            // The machine stops at any time.
            scope.spawn(|| drop(checkpoint(&directory, told, &ask)));
            while told.checkpoints.load(SeqCst) < 5 {
                assert!(!told.has_ended.load(SeqCst), "nothing fails");
                thread::yield_now();
            }
            let durable = told.durable.load(SeqCst);
            disk = disk.crash();
            durable
        });
        let names = disk.list("snapshots".as_ref()).unwrap();
        assert!(!names.is_empty());
        let (found, through) = open(&disk);
        assert!(through >= durable, "life {life}: {through} of {durable}");
        drop(found);
    }
}
