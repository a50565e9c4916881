//! Snapshot files: what was pushed comes back in few bytes at a time, or an error says why not.

use crate::common::{DATABASE, Random, paths};
use eris_disk::{Access, Disk, Fault, Operation, SimulatedDisk};
use eris_log::{DatabaseId, LogError, SnapshotStart, SnapshotWriter, read_snapshot};
use eris_types::Timestamp;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

const START: SnapshotStart = SnapshotStart {
    number: 3,
    at: Timestamp(77),
};
const PATH: &str = "snapshots/000000000003.snapshot";

fn create(disk: &SimulatedDisk, start: SnapshotStart) -> Result<SnapshotWriter, LogError> {
    SnapshotWriter::create(Arc::new(disk.clone()), DATABASE, start)
}

fn write(disk: &SimulatedDisk, start: SnapshotStart, records: &[Vec<u8>]) -> Result<u64, LogError> {
    let mut writer = create(disk, start)?;
    for record in records {
        writer.push(record)?;
    }
    writer.finish()
}

/// The records of each group.
fn read(disk: &SimulatedDisk, start: SnapshotStart) -> Result<Vec<Vec<Vec<u8>>>, LogError> {
    let mut groups = Vec::new();
    read_snapshot::<LogError>(disk, DATABASE, start, |group| {
        assert_eq!(group.through, start.at);
        let records = group.records().map(|record| {
            let record = record.expect("its checksum is right");
            assert_eq!(record.at, start.at);
            record.body.to_vec()
        });
        groups.push(records.collect());
        Ok(())
    })?;
    Ok(groups)
}

/// Records that are small, empty, and some longer than a group.
fn records(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    let record = |_| {
        let length = match random.below(20) {
            0 => random.below(3 << 20),
            1..=5 => random.below(200_000),
            6 => 0,
            _ => random.below(300),
        };
        vec![random.below(256) as u8; length as usize]
    };
    (0..60).map(record).collect()
}

#[test]
fn what_was_pushed_comes_back_in_groups() {
    for seed in 0..8 {
        let disk = SimulatedDisk::new(seed);
        disk.set_short_writes(true);
        let records = records(seed);
        let bytes = write(&disk, START, &records).unwrap();
        let file = disk.open(Path::new(PATH), Access::Read).unwrap();
        assert_eq!(file.len().unwrap(), bytes);
        // One for the header, one at the end, and one for all eight MiB.
        let flushes = disk.counts().of(Operation::Flush);
        assert_eq!(flushes, 2 + (bytes - 64) / (8 << 20), "seed {seed}");
        let found = disk.crash();
        let groups = read(&found, START).unwrap();
        // The header, and at most the header and the whole of each group; the last one says that it was closed.
        let reads = found.counts().of(Operation::Read);
        assert!(reads <= 1 + 2 * (groups.len() as u64 + 1), "seed {seed}");
        assert!(found.longest_read() < 4 << 20, "seed {seed}");
        for group in &groups {
            let bytes: usize = group.iter().map(Vec::len).sum();
            assert!(group.len() == 1 || bytes <= 1 << 20, "seed {seed}");
        }
        assert_eq!(groups.concat(), records, "seed {seed}");
    }
}

#[test]
fn a_snapshot_of_nothing_is_one() {
    let disk = SimulatedDisk::new(1);
    write(&disk, START, &[]).unwrap();
    assert_eq!(read(&disk, START).unwrap(), Vec::<Vec<Vec<u8>>>::new());
}

#[test]
fn what_is_not_finished_is_removed() {
    let disk = SimulatedDisk::new(1);
    let mut writer = create(&disk, START).unwrap();
    writer.push(&vec![7; 2 << 20]).unwrap();
    writer.push(b"more").unwrap();
    assert_eq!(paths(&disk, "snapshots"), [Path::new(PATH)]);
    drop(writer);
    assert!(paths(&disk, "snapshots").is_empty());
    // If the power fails before, what is left is no snapshot.
    let mut writer = create(&disk, START).unwrap();
    writer.push(&vec![7; 2 << 20]).unwrap();
    writer.push(b"more").unwrap();
    for _ in 0..20 {
        let error = read(&disk.crash(), START).unwrap_err();
        assert!(error.to_string().contains(PATH), "{error}");
    }
}

#[test]
fn a_disk_that_is_full_or_fails_loses_no_room_and_leaves_no_file() {
    let records = records(3);
    let bytes = write(&SimulatedDisk::new(1), START, &records).unwrap();
    for capacity in (0..bytes).step_by(bytes as usize / 40) {
        let disk = SimulatedDisk::new(1);
        disk.set_capacity(Some(capacity));
        let free = disk.free().unwrap();
        let error = write(&disk, START, &records).unwrap_err();
        assert!(error.to_string().contains(PATH), "{error}");
        assert!(paths(&disk, "snapshots").is_empty());
        assert_eq!(disk.free().unwrap(), free);
    }
    let disk = SimulatedDisk::new(1);
    let _ = write(&disk, START, &records);
    for nth in 1..=disk.counts().total() {
        let disk = SimulatedDisk::new(nth);
        disk.plan(Fault::at(nth));
        assert!(write(&disk, START, &records).is_err(), "operation {nth}");
        assert!(paths(&disk, "snapshots").is_empty(), "operation {nth}");
    }
}

#[test]
fn behind_a_failure_nothing_is_written() {
    let disk = SimulatedDisk::new(1);
    let mut writer = create(&disk, START).unwrap();
    disk.plan(Fault::at(1).of(Operation::Write));
    writer.push(&vec![7; 1 << 20]).unwrap();
    let error = writer.push(b"behind it").unwrap_err();
    // The disk has recovered, but a group is missing.
    let again = writer.push(&vec![7; 2 << 20]).unwrap_err();
    assert_eq!(error.to_string(), again.to_string());
    let again = writer.finish().unwrap_err();
    assert_eq!(error.to_string(), again.to_string());
    assert!(paths(&disk, "snapshots").is_empty());
}

#[test]
fn another_snapshot_is_not_accepted() {
    let disk = SimulatedDisk::new(1);
    let records = [b"some".to_vec()];
    write(&disk, START, &records).unwrap();
    let at = SnapshotStart {
        at: Timestamp(78),
        ..START
    };
    let error = read(&disk, at).unwrap_err().to_string();
    assert!(error.contains("at 77, and not the one at 78"), "{error}");
    let number = SnapshotStart { number: 4, ..START };
    let error = read(&disk, number).unwrap_err();
    assert!(matches!(error, LogError::Missing { .. }), "{error}");
    let to = Path::new("snapshots/000000000004.snapshot");
    disk.rename(Path::new(PATH), to).unwrap();
    let error = read(&disk, number).unwrap_err();
    assert!(matches!(error, LogError::Damaged { .. }), "{error}");
    disk.rename(to, Path::new(PATH)).unwrap();
    let other = DatabaseId([7; 16]);
    let error = read_snapshot::<LogError>(&disk, other, START, |_| Ok(())).unwrap_err();
    assert!(matches!(error, LogError::OfAnother { .. }), "{error}");
    assert_eq!(read(&disk, START).unwrap(), [records]);
}

#[test]
fn any_damage_of_a_snapshot_is_found() {
    let disk = SimulatedDisk::new(1);
    let mut random = Random::new(5);
    let record = |_| vec![random.below(256) as u8; random.below(700_000) as usize];
    let records: Vec<Vec<u8>> = (0..6).map(record).collect();
    let bytes = write(&disk, START, &records).unwrap();
    let file = disk.open(Path::new(PATH), Access::ReadWrite).unwrap();
    let put = |bytes: &[u8], offset| file.write_at(&[IoSlice::new(bytes)], offset).unwrap();
    let is_found = |at: u64| match read(&disk, START).unwrap_err() {
        LogError::Damaged { path, offset, .. } => {
            assert!(path.ends_with(PATH) && offset <= at, "byte {at}: {offset}");
        }
        LogError::Foreign { path } | LogError::OfAnother { path } => assert!(path.ends_with(PATH)),
        LogError::Newer { path, .. } => assert!(path.ends_with(PATH)),
        error => panic!("byte {at}: {error}"),
    };
    // All of the headers and of the end, and some of the rest.
    let steps = (0..200).chain((200..bytes).step_by(20_011));
    for offset in steps.clone().chain(bytes - 80..bytes) {
        let mut byte = [0];
        file.read_at(&mut byte, offset).unwrap();
        put(&[byte[0] ^ 1 << (offset % 8)], offset);
        is_found(offset);
        put(&byte, offset);
    }
    let mut whole = vec![0; bytes as usize];
    file.read_at(&mut whole, 0).unwrap();
    for cut in steps.chain(bytes - 80..bytes) {
        file.set_len(cut).unwrap();
        is_found(cut);
        put(&whole[cut as usize..], cut);
    }
    for more in [&[0][..], &[0; 64], &whole[64..], b"more"] {
        put(more, bytes);
        is_found(bytes);
        file.set_len(bytes).unwrap();
    }
    assert_eq!(read(&disk, START).unwrap().concat(), records);
}
