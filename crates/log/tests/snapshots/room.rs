//! A log that goes on in a new file keeps its promises of room.

use eris_disk::{Disk, Fault, Operation, SimulatedDisk};
use eris_log::{
    DatabaseId, Entry, LogBuffer, LogSettings, LogWriter, Purpose, RECORD_BYTES, ReservedRoom,
};
use eris_types::Timestamp;
use std::path::Path;
use std::sync::Arc;

const SETTINGS: LogSettings = LogSettings {
    file_bytes: 1 << 20,
};

fn create(disk: &SimulatedDisk) -> (LogWriter, LogBuffer) {
    let disk = Arc::new(disk.clone());
    let created = LogWriter::create(disk, DatabaseId([42; 16]), 1, 1, SETTINGS);
    let (writer, mut buffers) = created.unwrap();
    (writer, buffers.pop().unwrap())
}

fn reserve(writer: &LogWriter, body: u64) -> Option<ReservedRoom> {
    let bytes = body + RECORD_BYTES;
    writer.room().reserve(bytes, Purpose::Adding).ok()
}

fn say(buffer: &LogBuffer, at: u64, body: u64, room: Option<ReservedRoom>) {
    buffer.push(Entry {
        at: Timestamp(at),
        body: vec![at as u8; body as usize],
        room,
    });
}

#[test]
fn a_new_file_begins_behind_all_that_was_written() {
    let disk = SimulatedDisk::new(1);
    let (mut writer, buffer) = create(&disk);
    say(&buffer, 1, 100, None);
    // It is not complete yet, so it comes behind.
    say(&buffer, 3, 100, None);
    writer.step(Timestamp(2)).unwrap();
    let start = writer.begin_file(None).unwrap();
    assert_eq!(
        (start.file, start.group, start.through),
        (2, 3, Timestamp(2))
    );
    writer.close(Timestamp(3)).unwrap();
    let mut seen = Vec::new();
    let take = |group: eris_log::Group| {
        seen.extend(group.records().map(|record| record.unwrap().at.0));
        Ok::<(), eris_log::LogError>(())
    };
    let read = eris_log::read_log(&disk, DatabaseId([42; 16]), start, take).unwrap();
    assert_eq!((read.files, seen), (vec![2], vec![3]));
}

#[test]
fn without_room_for_a_new_file_the_log_goes_on_as_it_was() {
    for fault in [
        Fault::at(1).of(Operation::Allocate).full().and_later(),
        Fault::at(1).of(Operation::Create),
    ] {
        let disk = SimulatedDisk::new(1);
        let (mut writer, buffer) = create(&disk);
        let room = reserve(&writer, 500_000).unwrap();
        disk.plan(fault);
        writer.begin_file(None).unwrap_err();
        assert!(!writer.has_failed());
        let more = reserve(&writer, 300_000);
        assert!(more.is_some(), "there is as much room as before");
        say(&buffer, 1, 500_000, Some(room));
        say(&buffer, 2, 300_000, more);
        assert_eq!(writer.step(Timestamp(2)).unwrap(), Timestamp(2));
    }
}

#[test]
fn a_disk_that_fails_ends_the_log() {
    let disk = SimulatedDisk::new(1);
    let (mut writer, _buffer) = create(&disk);
    writer.step(Timestamp(1)).unwrap();
    disk.plan(Fault::at(1).of(Operation::Flush).on("000000000001.log"));
    writer.begin_file(None).unwrap_err();
    assert!(writer.has_failed());
    assert!(reserve(&writer, 1).is_none());
}

/// What was reserved before is there, though the disk is full by then.
#[test]
fn what_was_reserved_fits_into_the_new_file() {
    let mut smaller = 0;
    for reserved in (0..=9).map(|tenth| tenth * 90_000) {
        for free in (0..=20).map(|part| part << 16) {
            let disk = SimulatedDisk::new(1);
            let (mut writer, buffer) = create(&disk);
            let room = reserve(&writer, reserved).unwrap();
            disk.set_capacity(Some((1 << 20) + 4096 + free));
            let begun = writer.begin_file(None);
            smaller += u64::from(begun.is_ok() && free < 1 << 20);
            disk.set_capacity(Some(0));
            say(&buffer, 1, reserved, Some(room));
            let written = writer.step(Timestamp(1));
            assert!(
                written.is_ok(),
                "{reserved} bytes, {free} free: {written:?}"
            );
        }
    }
    assert!(smaller > 20, "small files are made");
}

/// The next file was made when the disk was nearly full.
#[test]
fn what_was_reserved_fits_though_the_next_file_is_small() {
    let disk = SimulatedDisk::new(1);
    let (mut writer, buffer) = create(&disk);
    say(&buffer, 1, 600_000, None);
    writer.step(Timestamp(1)).unwrap();
    disk.set_capacity(Some((1 << 20) + (100 << 10)));
    writer.prepare().unwrap();
    let room = reserve(&writer, 300_000).unwrap();
    writer.begin_file(None).unwrap_err();
    assert!(!writer.has_failed());
    disk.set_capacity(None);
    writer.begin_file(None).unwrap();
    disk.set_capacity(Some(0));
    say(&buffer, 2, 300_000, Some(room));
    writer.step(Timestamp(2)).unwrap();
}

#[test]
fn a_file_that_was_made_is_used_unless_the_log_has_passed_it() {
    let disk = SimulatedDisk::new(1);
    let (mut writer, buffer) = create(&disk);
    let made = |writer: &LogWriter| Some(writer.files().make().unwrap());
    let there = || -> Vec<String> {
        let entries = disk.list(Path::new("log")).unwrap().into_iter();
        let mut names: Vec<String> = entries
            .map(|entry| entry.name.into_string().unwrap())
            .collect();
        names.sort();
        names
            .iter()
            .map(|name| name.trim_matches('0').into())
            .collect()
    };
    let number_two = made(&writer);
    assert_eq!(writer.begin_file(number_two).unwrap().file, 2);
    let number_three = made(&writer);
    // Meanwhile it goes on in a later one.
    assert_eq!(writer.begin_file(None).unwrap().file, 4);
    assert_eq!(writer.begin_file(number_three).unwrap().file, 5);
    assert_eq!(there(), ["1.log", "2.log", "4.log", "5.log"]);
    // Another one is ready.
    say(&buffer, 1, SETTINGS.file_bytes * 3 / 4, None);
    writer.step(Timestamp(1)).unwrap();
    writer.prepare().unwrap();
    let number_seven = made(&writer);
    assert_eq!(writer.begin_file(number_seven).unwrap().file, 6);
    writer.close(Timestamp(1)).unwrap();
    assert_eq!(there(), ["1.log", "2.log", "4.log", "5.log", "6.log"]);
}
