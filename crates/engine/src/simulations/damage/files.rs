//! The files of a database as a test takes them apart and puts them together.

use eris_disk::{Access, Disk, EntryKind, Lock, SimulatedDisk};
use eris_log::{DatabaseId, Directory, Group, LogError, Manifest, SnapshotWriter, read_snapshot};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a database, by their paths in its directory.
pub type Files = BTreeMap<PathBuf, Arc<[u8]>>;

/// The bodies of the records of the snapshot.
pub fn records_of_snapshot(files: &Files) -> Vec<Vec<u8>> {
    let (manifest, disk) = manifest_of(files);
    let snapshot = manifest.snapshot.expect("there is one");
    let mut bodies = Vec::new();
    let take = |group: Group| {
        bodies.extend(group.records().map(|record| record.unwrap().body.to_vec()));
        Ok::<_, LogError>(())
    };
    read_snapshot(&disk, manifest.database, snapshot, take).unwrap();
    bodies
}

/// The files with a snapshot that has these records instead, and is whole.
pub fn with_snapshot(files: &Files, records: &[Vec<u8>]) -> Files {
    let (manifest, disk) = manifest_of(files);
    let snapshot = manifest.snapshot.expect("there is one");
    let path = files.keys().find(|path| path.starts_with("snapshots"));
    disk.remove(path.expect("there is one")).unwrap();
    let mut writer =
        SnapshotWriter::create(Arc::new(disk.clone()), manifest.database, snapshot).unwrap();
    records.iter().for_each(|body| writer.push(body).unwrap());
    writer.finish().unwrap();
    files_of(&disk)
}

fn manifest_of(files: &Files) -> (Manifest, SimulatedDisk) {
    let disk = disk_of(files);
    let directory = Directory::open(Arc::new(disk.clone()), Lock::Shared, DatabaseId([0; 16]));
    (directory.unwrap().manifest().unwrap(), disk)
}

/// The files of a disk.
pub fn files_of(disk: &SimulatedDisk) -> Files {
    let mut files = Files::new();
    for directory in ["", "log", "chunks", "snapshots"] {
        let directory = Path::new(directory);
        for entry in disk.list(directory).unwrap_or_default() {
            let path = directory.join(&entry.name);
            if let EntryKind::File(length) = entry.kind
                // They say nothing.
                && !["lock", "ballast"].iter().any(|none| path == Path::new(none))
            {
                let mut bytes = vec![0; length as usize];
                let file = disk.open(&path, Access::Read).unwrap();
                file.read_at(&mut bytes, 0).unwrap();
                files.insert(path, bytes.into());
            }
        }
    }
    files
}

/// A disk that has these files.
pub fn disk_of(files: &Files) -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    for directory in ["", "log", "chunks", "snapshots"] {
        disk.create_directory(Path::new(directory)).unwrap();
    }
    for (path, bytes) in files {
        let file = disk.create(path).unwrap();
        file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
    }
    // Only who writes makes it.
    drop(disk.lock(Path::new("lock"), Lock::Exclusive).unwrap());
    disk
}
