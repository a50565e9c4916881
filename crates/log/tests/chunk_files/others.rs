//! Room, the log beside chunk files, and a real directory with several threads.

use crate::common::DATABASE;
use crate::process::{Known, Process, SMALL, check, form, info, push};
use eris_disk::{Disk, EntryKind, Fault, Operation, RealDisk, SimulatedDisk};
use eris_log::{
    Chunk, ChunkBuffer, ChunkFiles, ChunkSettings, ChunkWriter, Entry, LogError, LogSettings,
    LogStart, LogWriter, NoRoom, Purpose, chunk_bytes, read_log,
};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn begin(disk: &Arc<dyn Disk>, settings: ChunkSettings) -> (ChunkFiles, ChunkWriter, ChunkBuffer) {
    let files = ChunkFiles::open(Arc::clone(disk), DATABASE).unwrap();
    let (writer, buffer) = ChunkWriter::go_on(&files, &BTreeSet::new(), 1, settings).unwrap();
    (files, writer, buffer)
}

#[test]
fn no_file_is_made_before_there_is_a_chunk_and_what_was_not_used_is_given_back() {
    let disk = SimulatedDisk::new(1);
    let (_, writer, buffer) = begin(&(Arc::new(disk.clone()) as _), SMALL);
    writer.step().unwrap();
    writer.prepare().unwrap();
    writer.flush().unwrap();
    let files = || disk.list(Path::new("chunks")).unwrap();
    assert!(files().is_empty());
    let number = push(&writer, &buffer).unwrap();
    writer.close().unwrap();
    let bytes = 64 + chunk_bytes(info(number).bytes);
    let found: Vec<_> = files().into_iter().map(|file| file.kind).collect();
    assert_eq!(found, [EntryKind::File(bytes)]);
}

#[test]
fn a_small_database_has_small_files_and_a_large_one_large_files() {
    let settings = ChunkSettings {
        file_bytes: 1 << 20,
        dirty_bytes: 64 << 10,
    };
    let disk = SimulatedDisk::new(1);
    let (files, writer, buffer) = begin(&(Arc::new(disk.clone()) as _), settings);
    let lengths = || {
        let entries = disk.list(Path::new("chunks")).unwrap();
        let lengths = entries.into_iter().map(|entry| match entry.kind {
            EntryKind::File(length) => length,
            other => panic!("{other:?}"),
        });
        lengths.collect::<Vec<_>>()
    };
    while writer.written().bytes < 6 << 20 {
        push(&writer, &buffer).unwrap();
        writer.step().unwrap();
        writer.prepare().unwrap();
        let (written, taken) = (writer.written().bytes, lengths().iter().sum::<u64>());
        assert!(taken <= 3 * written + 100_000, "{taken} for {written}");
    }
    assert_eq!(*lengths().last().unwrap(), settings.file_bytes);
    assert!(lengths().len() < 20, "{:?}", lengths());
    writer.close().unwrap();
    // The next process goes on with large ones.
    let all: BTreeSet<u64> = (1..buffer.next_undrawn()).collect();
    let (writer, buffer) = ChunkWriter::go_on(&files, &all, 1, settings).unwrap();
    push(&writer, &buffer).unwrap();
    writer.flush().unwrap();
    assert_eq!(*lengths().last().unwrap(), settings.file_bytes);
}

#[test]
fn a_full_disk_is_told_before_anything_is_written_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::new(1);
    let (files, writer, buffer) = begin(&(Arc::new(disk.clone()) as _), SMALL);
    disk.set_capacity(Some(40_000));
    let mut pushed = BTreeSet::new();
    let denied = loop {
        match push(&writer, &buffer) {
            Ok(number) => pushed.insert(number),
            Err(denied) => break denied,
        };
    };
    assert!(matches!(denied, NoRoom::Full { .. }), "{denied:?}");
    // What has room is written nevertheless.
    writer.flush().unwrap();
    assert!(pushed.len() > 5);
    pushed
        .iter()
        .for_each(|number| check(&files, *number).unwrap());
    disk.set_capacity(None);
    writer.prepare().unwrap();
    push(&writer, &buffer).unwrap();
    writer.flush().unwrap();
    // And files of which nothing is in use give theirs.
    disk.set_capacity(Some(40_000));
    files.retain(|_| false).unwrap();
    writer.prepare().unwrap();
    push(&writer, &buffer).unwrap();
    writer.flush().unwrap();
}

#[test]
fn whoever_pushes_is_told_that_the_writer_has_failed() {
    let disk = SimulatedDisk::new(1);
    let (_, writer, buffer) = begin(&(Arc::new(disk.clone()) as _), SMALL);
    push(&writer, &buffer).unwrap();
    disk.plan(Fault::at(1).of(Operation::Flush));
    let first = writer.flush().unwrap_err().to_string();
    assert_eq!(push(&writer, &buffer), Err(NoRoom::Failed));
    // The disk has recovered; the writer does not try again.
    for error in [
        writer.flush(),
        writer.step().map(drop),
        writer.prepare(),
        writer.close(),
    ] {
        assert_eq!(error.unwrap_err().to_string(), first);
    }
}

/// A log whose commits refer to chunks, up to where the disk fails. Returns the last commit of which somebody was told.
fn commits(disk: &SimulatedDisk) -> Result<u64, LogError> {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let settings = LogSettings { file_bytes: 4096 };
    let (mut log, says) = LogWriter::create(Arc::clone(&shared), DATABASE, 1, 1, settings)?;
    let files = ChunkFiles::open(shared, DATABASE)?;
    let (writer, buffer) = ChunkWriter::go_on(&files, &BTreeSet::new(), 1, SMALL)?;
    log.refer_to(writer.clone());
    let mut told = 0;
    for at in 1..=12 {
        let entry = |number: u64| Entry {
            at: Timestamp(at),
            body: number.to_le_bytes().to_vec(),
            room: None,
        };
        match push(&writer, &buffer) {
            // Every third commit is small.
            _ if at % 3 == 0 => says[0].push(entry(0)),
            Ok(number) => says[0].push_with_chunks(entry(number)),
            Err(_) => break,
        }
        if at % 4 == 0 && writer.step().is_err() {
            break;
        }
        match log.step(Timestamp(at)) {
            Ok(through) => told = through.0,
            Err(_) => break,
        }
    }
    Ok(told)
}

#[test]
fn what_the_log_says_refers_to_chunks_that_are_there() {
    let whole = SimulatedDisk::new(4);
    assert_eq!(commits(&whole).unwrap(), 12);
    let mut unread = 0;
    for nth in 1..=whole.counts().total() {
        for fault in [Fault::at(nth), Fault::at(nth).stop()] {
            let disk = SimulatedDisk::new(nth);
            disk.plan(fault);
            let told = commits(&disk).unwrap_or(0);
            for found in [disk.kill(), disk.crash(), disk.crash()] {
                let start = LogStart {
                    file: 1,
                    group: 1,
                    through: Timestamp::ZERO,
                };
                let mut numbers = Vec::new();
                let log = read_log(&found, DATABASE, start, |group| {
                    for record in group.records() {
                        let body = record.expect("it is whole").body;
                        numbers.push(u64::from_le_bytes(body.try_into().expect("a number")));
                    }
                    Ok::<_, LogError>(())
                });
                let Ok(log) = log else {
                    assert_eq!(told, 0, "operation {nth}");
                    unread += 1;
                    continue;
                };
                assert!(log.end.through.0 >= told, "operation {nth}");
                let files = ChunkFiles::open(Arc::new(found), DATABASE).unwrap();
                for number in numbers.into_iter().filter(|number| *number > 0) {
                    check(&files, number)
                        .unwrap_or_else(|error| panic!("operation {nth}: {error}"));
                }
            }
        }
    }
    assert!(unread > 0, "some logs were only begun");
}

#[test]
fn threads_write_flush_read_and_rewrite_a_real_directory_at_a_time() {
    const OWNERS: usize = 3;
    const EACH: usize = 300;
    let directory = tempfile::tempdir().unwrap();
    let settings = ChunkSettings {
        file_bytes: 64 << 10,
        dirty_bytes: 8 << 10,
    };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory.path()));
    let (files, writer, buffer) = begin(&disk, settings);
    let is_over = AtomicBool::new(false);
    // Every other chunk is dead from the start.
    let is_live = |number: u64| !number.is_multiple_of(2);
    let pushed: Vec<u64> = std::thread::scope(|scope| {
        let background = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                writer.step().unwrap();
                writer.prepare().unwrap();
                std::thread::yield_now();
            }
        });
        let rewriting = scope.spawn(|| {
            let mut rewrites = 0;
            while !is_over.load(Ordering::SeqCst) {
                files.retain(is_live).unwrap();
                if let Some(mut rewrite) = files.rewrite(settings) {
                    while !rewrite.step().unwrap() {}
                    rewrite.finish().unwrap();
                    rewrites += 1;
                }
                std::thread::yield_now();
            }
            rewrites
        });
        let owners: Vec<_> = (0..OWNERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut pushed = Vec::new();
                    while pushed.len() < EACH {
                        let number = buffer.next_number();
                        let form = form(number);
                        let bytes = chunk_bytes(form.len() as u64);
                        let room = loop {
                            match writer.room().reserve(bytes, Purpose::Adding) {
                                Ok(room) => break room,
                                Err(NoRoom::Later) => std::thread::yield_now(),
                                Err(denied) => panic!("{denied:?}"),
                            }
                        };
                        buffer.push(Chunk {
                            number,
                            object: info(number).object,
                            rows: info(number).rows,
                            form: Box::new(form),
                            room,
                        });
                        pushed.push(number);
                        if pushed.len().is_multiple_of(20) {
                            // As the log thread does.
                            writer.flush().unwrap();
                            for number in pushed.iter().filter(|number| is_live(**number)) {
                                check(&files, *number).unwrap();
                            }
                        }
                    }
                    pushed
                })
            })
            .collect();
        let pushed = owners.into_iter().flat_map(|owner| owner.join().unwrap());
        let pushed = pushed.collect();
        is_over.store(true, Ordering::SeqCst);
        background.join().unwrap();
        assert!(rewriting.join().unwrap() > 0);
        pushed
    });
    writer.close().unwrap();
    assert_eq!(pushed.iter().collect::<BTreeSet<_>>().len(), OWNERS * EACH);
    let known = Known {
        referred_to: pushed
            .into_iter()
            .filter(|number| is_live(*number))
            .collect(),
        greatest: 0,
    };
    let process = Process::start(disk, &known).unwrap().unwrap();
    for number in &known.referred_to {
        check(&process.files, *number).unwrap();
    }
}
