//! What is the real disk's own.

use eris_disk::{Access, Disk, Entry, EntryKind, RealDisk, Reason};
use std::io::IoSlice;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

#[test]
fn the_directory_is_made_with_those_above_it_and_nothing_is_touched_before() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("some/where/database");
    let disk = RealDisk::new(&root);
    assert_eq!(
        disk.list(Path::new("")).unwrap_err().reason,
        Reason::NotFound
    );
    assert_eq!(
        disk.create(Path::new("x")).unwrap_err().reason,
        Reason::NotFound
    );
    assert!(above.path().read_dir().unwrap().next().is_none());
    disk.create_directory(Path::new("log/old")).unwrap();
    disk.flush_directory(Path::new("log")).unwrap();
    disk.flush_directory(Path::new("")).unwrap();
    assert!(root.join("log/old").is_dir());

    let disk = RealDisk::new(Path::new("here"));
    assert_eq!(disk.root(), std::env::current_dir().unwrap().join("here"));
}

#[test]
fn a_file_is_written_flushed_renamed_and_found() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(directory.path());
    let file = disk.create(Path::new("manifest.new")).unwrap();
    file.write_at(
        &[
            IoSlice::new(b"one "),
            IoSlice::new(b""),
            IoSlice::new(b"two"),
        ],
        3,
    )
    .unwrap();
    file.flush().unwrap();
    assert_eq!(
        disk.create(Path::new("manifest.new")).unwrap_err().reason,
        Reason::AlreadyExists
    );
    disk.rename(Path::new("manifest.new"), Path::new("manifest"))
        .unwrap();
    disk.flush_directory(Path::new("")).unwrap();
    let name = "manifest".into();
    assert_eq!(
        disk.list(Path::new("")).unwrap(),
        [Entry {
            name,
            kind: EntryKind::File(10)
        }]
    );
    let file = disk.open(Path::new("manifest"), Access::Read).unwrap();
    let mut found = [1; 10];
    file.read_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"\0\0\0one two");
    assert_eq!(
        file.read_at(&mut found, 1).unwrap_err().reason,
        Reason::EndOfFile { len: 10 }
    );
    assert_eq!(file.set_len(0).unwrap_err().reason, Reason::ReadOnly);
    disk.remove(Path::new("manifest")).unwrap();
    assert_eq!(
        disk.open(Path::new("manifest"), Access::Read)
            .unwrap_err()
            .reason,
        Reason::NotFound
    );
}

#[test]
fn room_that_is_reserved_is_taken() {
    const LEN: u64 = 8 << 20;
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(directory.path());
    let free = disk.free().unwrap();
    assert!(free > LEN, "the test needs room");
    let file = disk.create(Path::new("log")).unwrap();
    file.allocate(LEN).unwrap();
    assert_eq!(file.len().unwrap(), LEN);
    let found = std::fs::metadata(file.path()).unwrap();
    assert!(
        found.blocks() * 512 >= LEN,
        "only {} blocks",
        found.blocks()
    );
    file.allocate(4096).unwrap();
    assert_eq!(file.len().unwrap(), LEN);

    // More than any disk has: the error says so, and the file is what it was.
    let reason = file.allocate(1 << 43).unwrap_err().reason;
    assert!(
        matches!(reason, Reason::Full { asked, free: Some(_) } if asked == (1 << 43) - LEN),
        "{reason}"
    );
    assert_eq!(file.len().unwrap(), LEN);
}

#[test]
fn what_is_no_file_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(directory.path());
    symlink("/dev/zero", directory.path().join("device")).unwrap();
    let error = disk.open(Path::new("device"), Access::Read).unwrap_err();
    assert_eq!(error.reason, Reason::NotAFile);
    assert_eq!(error.path, directory.path().join("device"));
    assert_eq!(disk.list(Path::new("")).unwrap()[0].kind, EntryKind::Other);
    for outside in ["/etc/passwd", "../x", "a/../../x"] {
        assert_eq!(
            disk.open(Path::new(outside), Access::Read)
                .unwrap_err()
                .reason,
            Reason::Outside
        );
    }
}
