//! Histories of commits over a disk that loses power, fails and is full: what was acknowledged is there, in whole
//! statements and in their order, and nothing else.

#[allow(dead_code, reason = "other tests use more of it")]
mod common;

use common::{DATABASE, Random};
use eris_disk::{Access, Disk, Fault, Operation, SimulatedDisk};
use eris_log::{
    DatabaseId, Entry, LogBuffer, LogEnd, LogError, LogRead, LogSettings, LogStart, LogWriter,
    read_log,
};
use eris_types::Timestamp;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const OWNERS: usize = 3;
const SMALL: LogSettings = LogSettings { file_bytes: 4096 };
const START: LogStart = LogStart {
    file: 1,
    group: 1,
    through: Timestamp(0),
};

/// What a commit says at an owner: as long as it likes, but the same whenever it is asked.
fn body(at: u64, owner: usize) -> Vec<u8> {
    let mut random = Random::new(at * 31 + owner as u64);
    let length = match random.below(12) {
        0 => 2_000 + random.below(6_000),
        _ => random.below(120),
    };
    let mut body = vec![owner as u8];
    body.extend_from_slice(&at.to_le_bytes());
    body.extend((0..length).map(|_| random.below(256) as u8));
    body
}

/// Whether a commit does something at an owner.
fn takes_part(at: u64, owner: usize) -> bool {
    Random::new(at * 7 + owner as u64).below(2) == 0
}

fn say(buffers: &[LogBuffer], at: u64) {
    for (owner, buffer) in buffers.iter().enumerate() {
        if takes_part(at, owner) {
            let at = Timestamp(at);
            let body = body(at.0, owner);
            buffer.push(Entry {
                at,
                body,
                room: None,
            });
        }
    }
}

/// What a process has known when it ended.
struct Known {
    /// The newest commit of which somebody was told.
    acknowledged: u64,
    /// The newest that was begun.
    begun: u64,
}

impl Known {
    /// What must be there at least: commits that do nothing anywhere are not in the log.
    fn least(&self) -> u64 {
        let takes_part = |at: &u64| (0..OWNERS).any(|owner| takes_part(*at, owner));
        (1..=self.acknowledged).rev().find(takes_part).unwrap_or(0)
    }
}

/// Commits some more, until the disk fails; in the end it closes the log, or does not.
fn commits(
    writer: Result<(LogWriter, Vec<LogBuffer>), LogError>,
    first: u64,
    before: u64,
    random: &mut Random,
) -> Known {
    let Ok((mut writer, buffers)) = writer else {
        // What was read may be lost still: nobody was told.
        return Known {
            acknowledged: before,
            begun: first,
        };
    };
    let mut known = Known {
        acknowledged: first,
        begun: first,
    };
    let mut applied = first;
    for _ in 0..random.below(24) {
        for _ in 0..random.below(4) {
            known.begun += 1;
            say(&buffers, known.begun);
        }
        // Some are not complete yet.
        applied += random.below(known.begun - applied + 1);
        match writer.step(Timestamp(applied)) {
            Ok(through) => known.acknowledged = through.0,
            Err(_) => {
                assert!(writer.has_failed());
                return known;
            }
        }
        if random.below(3) == 0 && writer.prepare().is_err() {
            // Only room was asked for.
            assert!(!writer.has_failed());
        }
    }
    if random.below(3) == 0 {
        let all = known.begun;
        if writer.close(Timestamp(all)).is_ok() {
            known.acknowledged = all;
        }
    }
    known
}

/// All commits of a log, checked.
fn read(disk: &SimulatedDisk, seed: u64) -> Result<LogRead, LogError> {
    let (mut seen, mut before) = (Vec::new(), Timestamp(0));
    let read = read_log(disk, DATABASE, START, |group| {
        for record in group.records() {
            let record = record.expect("its checksum is right");
            assert!(
                before < record.at && record.at <= group.through,
                "seed {seed}"
            );
            seen.push((record.at.0, record.body[0] as usize, record.body.to_vec()));
        }
        before = group.through;
        Ok::<(), LogError>(())
    })?;
    seen.sort();
    let all = (1..=read.end.through.0).flat_map(|at| {
        let owners = (0..OWNERS).filter(move |owner| takes_part(at, *owner));
        owners.map(move |owner| (at, owner, body(at, owner)))
    });
    assert!(seen.into_iter().eq(all), "seed {seed}: other commits");
    Ok(read)
}

fn go_on(disk: &SimulatedDisk, end: LogEnd) -> Result<(LogWriter, Vec<LogBuffer>), LogError> {
    LogWriter::go_on(Arc::new(disk.clone()), DATABASE, end, OWNERS, SMALL)
}

fn create(disk: &SimulatedDisk) -> Result<(LogWriter, Vec<LogBuffer>), LogError> {
    LogWriter::create(Arc::new(disk.clone()), DATABASE, 1, OWNERS, SMALL)
}

/// A history of several processes, each of which ends somehow.
fn history(seed: u64) {
    let mut random = Random::new(seed + 1);
    let mut disk = SimulatedDisk::new(seed);
    let mut known = {
        let (writer, buffers) = create(&disk).expect("nothing fails yet");
        disk.set_short_writes(true);
        plan(&disk, &mut random);
        commits(Ok((writer, buffers)), 0, 0, &mut random)
    };
    for _ in 0..4 {
        disk = match random.below(2) {
            0 => disk.crash(),
            _ => disk.kill(),
        };
        let read = read(&disk, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let through = read.end.through.0;
        assert!(
            (known.least()..=known.begun).contains(&through),
            "seed {seed}: {through} of {} to {}",
            known.least(),
            known.begun
        );
        plan(&disk, &mut random);
        let before = known.acknowledged;
        known = commits(go_on(&disk, read.end), through, before, &mut random);
    }
}

/// Some operation will fail, or the machine will stop at it; or nothing will.
fn plan(disk: &SimulatedDisk, random: &mut Random) {
    let fault = Fault::at(1 + random.below(40));
    match random.below(5) {
        0 | 1 => disk.plan(fault.stop()),
        2 => disk.plan(fault),
        3 => disk.plan(Fault::at(1 + random.below(8)).of(Operation::Flush)),
        _ => {}
    }
}

#[test]
fn what_was_acknowledged_is_there_after_any_end() {
    if let Ok(seed) = std::env::var("ERIS_SEED") {
        return history(seed.parse().expect("a number"));
    }
    let seeds = std::env::var("ERIS_SEEDS").map_or(3_000, |seeds| seeds.parse().expect("a number"));
    (0..seeds).for_each(history);
}

#[test]
fn every_operation_once_stops_and_once_fails() {
    let run = |fault: Option<Fault>| {
        let disk = SimulatedDisk::new(9);
        fault.into_iter().for_each(|fault| disk.plan(fault));
        let known = commits(create(&disk), 0, 0, &mut Random::new(79));
        (disk, known)
    };
    let (disk, known) = run(None);
    assert!(known.acknowledged > 10);
    let operations: u64 = Operation::ALL
        .iter()
        .map(|kind| disk.counts().of(*kind))
        .sum();
    for nth in 1..=operations {
        for fault in [Fault::at(nth), Fault::at(nth).stop()] {
            let (disk, known) = run(Some(fault));
            for found in [disk.kill(), disk.crash(), disk.crash()] {
                match read(&found, nth) {
                    Ok(read) => {
                        let through = read.end.through.0;
                        assert!((known.least()..=known.begun).contains(&through));
                    }
                    // The first file was not there yet.
                    Err(error) => assert!(known.begun == 0, "operation {nth}: {error}"),
                }
            }
        }
    }
}

/// A log that was closed, in several files.
fn closed() -> (SimulatedDisk, u64) {
    let disk = SimulatedDisk::new(1);
    let (mut writer, buffers) = create(&disk).unwrap();
    for at in 1..=60 {
        say(&buffers, at);
        writer.step(Timestamp(at)).unwrap();
    }
    writer.close(Timestamp(60)).unwrap();
    (disk, 60)
}

#[test]
fn damage_is_found_or_is_no_harm() {
    let (disk, all) = closed();
    let intact = read(&disk, 0).unwrap();
    assert!(intact.is_closed && intact.cut.is_none() && intact.end.file > 3);
    let names: Vec<_> = disk.list(Path::new("log")).unwrap();
    for entry in &names {
        let path = Path::new("log").join(&entry.name);
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        let length = file.len().unwrap();
        for offset in (0..length).step_by(7) {
            let mut byte = [0];
            file.read_at(&mut byte, offset).unwrap();
            let flipped = [byte[0] ^ 1 << (offset % 8)];
            file.write_at(&[IoSlice::new(&flipped)], offset).unwrap();
            match read(&disk, offset) {
                // Only what says that it was closed can be missed without a loss.
                Ok(read) => {
                    assert_eq!(read.end.through.0, all);
                    assert!(!read.is_closed && read.cut.is_some(), "byte {offset}");
                }
                Err(error) => assert!(error.to_string().contains(".log"), "{error}"),
            }
            file.write_at(&[IoSlice::new(&byte)], offset).unwrap();
        }
        // Cut off, it is shorter or damaged; the last one may have lost that it was closed.
        for cut in (0..length).step_by(509) {
            let mut rest = vec![0; (length - cut) as usize];
            file.read_at(&mut rest, cut).unwrap();
            file.set_len(cut).unwrap();
            if let Ok(read) = read(&disk, cut) {
                assert_eq!(read.end.through.0, all);
            }
            file.write_at(&[IoSlice::new(&rest)], cut).unwrap();
        }
        // Another file's bytes do not pass for its own.
        let mut own = vec![0; length as usize];
        file.read_at(&mut own, 0).unwrap();
        let other = names.iter().find(|other| other.name != entry.name).unwrap();
        let other = Path::new("log").join(&other.name);
        let other = disk.open(&other, Access::Read).unwrap();
        let mut others = vec![0; (other.len().unwrap()).min(length) as usize];
        other.read_at(&mut others, 0).unwrap();
        file.write_at(&[IoSlice::new(&others)], 0).unwrap();
        assert!(read(&disk, 0).is_err());
        file.write_at(&[IoSlice::new(&own)], 0).unwrap();
        drop((file, other));
        let hidden = Path::new("log/hidden");
        disk.rename(&path, hidden).unwrap();
        let missing = read(&disk, 0).unwrap_err();
        assert!(matches!(missing, LogError::Missing { .. }), "{missing}");
        disk.rename(hidden, &path).unwrap();
    }
    assert_eq!(read(&disk, 0).unwrap(), intact);
}

#[test]
fn no_more_is_read_at_once_than_the_longest_group() {
    let disk = SimulatedDisk::new(1);
    let large = LogSettings {
        file_bytes: 16 << 20,
    };
    let of = Arc::new(disk.clone());
    let (mut writer, buffers) = LogWriter::create(of, DATABASE, 1, 1, large).unwrap();
    let lengths = (1..=400).map(|at| if at == 200 { 300_000 } else { 20_000 });
    for (at, length) in (1..).zip(lengths) {
        buffers[0].push(Entry {
            at: Timestamp(at),
            body: vec![at as u8; length],
            room: None,
        });
        writer.step(Timestamp(at)).unwrap();
    }
    // It was not closed: what is behind the last group is looked through, here and in the next file.
    writer.prepare().unwrap();
    let disk = disk.kill();
    let mut groups = 0;
    let read = read_log(&disk, DATABASE, START, |group| {
        groups += 1;
        let record = group.records().next().expect("it has one").unwrap();
        assert!(record.body.iter().all(|byte| *byte == record.at.0 as u8));
        Ok::<(), LogError>(())
    });
    assert_eq!((read.unwrap().end.through.0, groups), (400, 400));
    let longest = disk.longest_read();
    assert!(longest < 301_000, "{longest} bytes of a file of 16 MiB");
}

#[test]
fn a_log_of_another_database_is_told() {
    let (disk, _) = closed();
    let other = DatabaseId([7; 16]);
    let error = read_log(&disk, other, START, |_| Ok::<(), LogError>(())).unwrap_err();
    assert!(matches!(error, LogError::OfAnother { .. }), "{error}");
}

#[test]
fn a_last_file_that_was_cut_off_from_outside_is_damage() {
    let disk = SimulatedDisk::new(1);
    let (mut writer, buffers) = create(&disk).unwrap();
    for at in 1..=5 {
        say(&buffers, at);
        writer.step(Timestamp(at)).unwrap();
    }
    // As a crash would have left it.
    let name = disk
        .list(Path::new("log"))
        .unwrap()
        .last()
        .unwrap()
        .name
        .clone();
    let file = disk
        .open(&Path::new("log").join(name), Access::ReadWrite)
        .unwrap();
    assert_eq!(read(&disk, 0).unwrap().end.through.0, 5);
    let length = file.len().unwrap();
    for cut in (0..length).step_by(13) {
        file.set_len(cut).unwrap();
        assert!(
            matches!(read(&disk, 0), Err(LogError::Damaged { .. })),
            "{cut} bytes"
        );
    }
}
