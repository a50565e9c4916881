//! What a simulated disk keeps after a crash, and that it does lose all else.

mod common;

use common::{Random, contents, for_seeds, tree};
use eris_disk::{Access, Disk, Fault, Lock, Operation, Reason, SimulatedDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// As many crashes as it takes for each thing that may be lost to be lost.
const CRASHES: u64 = 3000;
const SECTOR: usize = 512;

fn write(disk: &dyn Disk, path: &str, bytes: &[u8], offset: u64) {
    let file = disk.open(Path::new(path), Access::ReadWrite).unwrap();
    file.write_at(&[IoSlice::new(bytes)], offset).unwrap();
}

fn flush(disk: &dyn Disk, path: &str) {
    disk.open(Path::new(path), Access::Read)
        .unwrap()
        .flush()
        .unwrap();
}

/// A disk with a file of these bytes, all of it durable.
fn durable(seed: u64, files: &[(&str, &[u8])]) -> SimulatedDisk {
    let disk = SimulatedDisk::new(seed);
    for (path, bytes) in files {
        drop(disk.create(Path::new(path)).unwrap());
        write(&disk, path, bytes, 0);
        flush(&disk, path);
    }
    disk.flush_directory(Path::new("")).unwrap();
    disk
}

/// What is found by chance after `history`, over many crashes.
fn outcomes<T: Ord>(
    files: &[(&str, &[u8])],
    history: impl Fn(&SimulatedDisk),
    look: impl Fn(&SimulatedDisk) -> T,
) -> BTreeSet<T> {
    let crashes = (0..CRASHES).map(|seed| {
        let disk = durable(seed, files);
        history(&disk);
        look(&disk.crash())
    });
    crashes.collect()
}

/// Which of some names are there.
fn there(disk: &SimulatedDisk) -> String {
    let names = tree(disk)
        .into_keys()
        .map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_sector_is_found_old_or_new_by_itself() {
    let found = outcomes(
        &[("x", &[b'a'; 4 * SECTOR])],
        |disk| write(disk, "x", &[b'b'; 4 * SECTOR], 0),
        |disk| {
            let bytes = contents(disk, Path::new("x"));
            let sectors = bytes.chunks(SECTOR).map(|sector| {
                assert!(
                    sector.iter().all(|byte| *byte == sector[0]),
                    "a sector is torn"
                );
                sector[0] as char
            });
            sectors.collect::<String>()
        },
    );
    assert_eq!(found.len(), 16, "{found:?}");
    assert!(
        found
            .iter()
            .all(|sectors| sectors.chars().all(|sector| "ab".contains(sector)))
    );
}

#[test]
fn any_version_since_the_flush_may_be_found_and_none_before() {
    let found = outcomes(
        &[("x", b"0")],
        |disk| {
            write(disk, "x", b"1", 0);
            flush(disk, "x");
            write(disk, "x", b"2", 0);
            write(disk, "x", b"3", 0);
        },
        |disk| contents(disk, Path::new("x")),
    );
    assert_eq!(found, [b"1", b"2", b"3"].map(|bytes| bytes.to_vec()).into());
}

#[test]
fn a_length_is_old_new_or_between_and_what_is_not_there_is_zero() {
    let found = outcomes(
        &[("x", &[b'a'; 1000])],
        |disk| write(disk, "x", &[b'b'; 2000], 1000),
        |disk| {
            let bytes = contents(disk, Path::new("x"));
            assert!(
                bytes[..1000].iter().all(|byte| *byte == b'a'),
                "what was flushed is lost"
            );
            assert!(bytes[1000..].iter().all(|byte| [0, b'b'].contains(byte)));
            let zeros = bytes[1000..].contains(&0);
            (bytes.len(), zeros)
        },
    );
    for (len, zeros) in [(1000, false), (3000, false), (3000, true)] {
        assert!(
            found.contains(&(len, zeros)),
            "never {len} bytes with zeros: {zeros}"
        );
    }
    assert!(found.iter().any(|(len, _)| (1001..3000).contains(len)));

    let found = outcomes(
        &[("x", &[b'a'; 1000])],
        |disk| {
            disk.open(Path::new("x"), Access::ReadWrite)
                .unwrap()
                .set_len(10)
                .unwrap()
        },
        |disk| contents(disk, Path::new("x")).len(),
    );
    assert!(found.first() == Some(&10) && found.last() == Some(&1000) && found.len() > 2);
}

#[test]
fn names_are_there_or_not_each_by_itself() {
    let found = outcomes(
        &[("old", b"")],
        |disk| {
            for name in ["a", "b"] {
                disk.create(Path::new(name)).unwrap().flush().unwrap();
            }
            disk.remove(Path::new("old")).unwrap();
        },
        there,
    );
    let all = ["", "a", "b", "a b", "old", "a old", "b old", "a b old"];
    assert_eq!(found, all.map(String::from).into());

    let found = outcomes(
        &[],
        |disk| {
            disk.create_directory(Path::new("d")).unwrap();
            disk.create(Path::new("d/x")).unwrap().flush().unwrap();
            disk.flush_directory(Path::new("d")).unwrap();
        },
        there,
    );
    assert_eq!(found, ["", "d d/x"].map(String::from).into());
}

#[test]
fn a_rename_is_one_change() {
    let found = outcomes(
        &[("new", b"new"), ("old", b"old")],
        |disk| disk.rename(Path::new("new"), Path::new("old")).unwrap(),
        |disk| {
            tree(disk)
                .into_values()
                .flatten()
                .collect::<Vec<_>>()
                .concat()
        },
    );
    assert_eq!(found, [b"newold".to_vec(), b"new".to_vec()].into());

    // Its flush is not one of what the file has.
    let found = outcomes(
        &[],
        |disk| {
            drop(disk.create(Path::new("new")).unwrap());
            write(disk, "new", b"new", 0);
            disk.rename(Path::new("new"), Path::new("old")).unwrap();
            disk.flush_directory(Path::new("")).unwrap();
        },
        |disk| contents(disk, Path::new("old")),
    );
    assert!(
        found.contains(b"".as_slice())
            && found.contains(b"new".as_slice())
            && found.contains([0; 3].as_slice()),
        "{found:?}"
    );
}

/// What a random history may rely on: the contents of files that were flushed, under names that were.
#[derive(Default)]
struct Relied {
    bytes: BTreeMap<PathBuf, Vec<u8>>,
    flushed: BTreeSet<PathBuf>,
    named: BTreeSet<PathBuf>,
}

impl Relied {
    fn step(&mut self, disk: &SimulatedDisk, random: &mut Random) {
        let directory = Path::new(random.of(&["", "a", "b"]));
        let path = directory.join(random.of(&["x", "y", "z"]));
        let other = directory.join(random.of(&["x", "y", "z"]));
        let is_there = self.bytes.contains_key(&path);
        match random.below(10) {
            0 if !is_there => {
                drop(disk.create(&path).unwrap());
                self.forget(&path);
                self.bytes.insert(path, Vec::new());
            }
            1..5 if is_there => {
                let bytes = random.bytes(1500);
                let offset = random.below(3000) as usize;
                write(disk, path.to_str().unwrap(), &bytes, offset as u64);
                self.flushed.remove(&path);
                if !bytes.is_empty() {
                    let all = self.bytes.get_mut(&path).unwrap();
                    all.resize(all.len().max(offset + bytes.len()), 0);
                    all[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
            }
            5 if is_there => {
                let len = random.below(3000);
                disk.open(&path, Access::ReadWrite)
                    .unwrap()
                    .set_len(len)
                    .unwrap();
                self.bytes.get_mut(&path).unwrap().resize(len as usize, 0);
                self.flushed.remove(&path);
            }
            6 if is_there => {
                disk.remove(&path).unwrap();
                self.forget(&path);
            }
            7 if is_there && path != other => {
                disk.rename(&path, &other).unwrap();
                let (bytes, flushed) = (
                    self.bytes.remove(&path).unwrap(),
                    self.flushed.contains(&path),
                );
                self.forget(&path);
                self.forget(&other);
                self.bytes.insert(other.clone(), bytes);
                self.flushed.extend(flushed.then_some(other));
            }
            8 if is_there => {
                flush(disk, path.to_str().unwrap());
                self.flushed.insert(path);
            }
            9 => {
                disk.flush_directory(directory).unwrap();
                let here = self
                    .bytes
                    .keys()
                    .filter(|path| path.parent() == Some(directory));
                self.named.extend(here.cloned());
            }
            _ => {}
        }
    }

    fn forget(&mut self, path: &Path) {
        self.bytes.remove(path);
        self.flushed.remove(path);
        self.named.remove(path);
    }
}

#[test]
fn what_was_flushed_under_a_name_that_was_flushed_is_always_there() {
    let mut checked = 0;
    for_seeds(300, |seed| {
        let mut random = Random(seed);
        let mut disk = SimulatedDisk::new(seed);
        disk.create_directory(Path::new("a")).unwrap();
        disk.create_directory(Path::new("b")).unwrap();
        disk.flush_directory(Path::new("")).unwrap();
        for _ in 0..4 {
            let mut relied = Relied::default();
            for (path, bytes) in tree(&disk) {
                relied.bytes.extend(bytes.map(|bytes| (path, bytes)));
            }
            for _ in 0..random.below(100) {
                relied.step(&disk, &mut random);
            }
            let seen = tree(&disk);
            for (path, bytes) in &relied.bytes {
                assert_eq!(
                    seen[path].as_ref(),
                    Some(bytes),
                    "{path:?} before the crash"
                );
            }
            if random.below(4) == 0 {
                disk = disk.kill();
                assert_eq!(tree(&disk), seen);
            }
            disk = disk.crash();
            let found = tree(&disk);
            for path in relied.flushed.intersection(&relied.named) {
                assert_eq!(
                    found.get(path),
                    Some(&Some(relied.bytes[path].clone())),
                    "{path:?}"
                );
                checked += 1;
            }
        }
    });
    assert!(checked > 0, "no file was relied on");
}

#[test]
fn a_killed_process_loses_nothing_and_what_it_wrote_may_still_be_lost() {
    let found = outcomes(
        &[],
        |_| {},
        |disk| {
            drop(disk.create(Path::new("x")).unwrap());
            write(disk, "x", b"written", 0);
            let disk = disk.kill();
            assert_eq!(contents(&disk, Path::new("x")), b"written");
            there(&disk.crash())
        },
    );
    assert_eq!(found, ["", "x"].map(String::from).into());
}

#[test]
fn a_failed_flush_may_lose_what_was_written_for_good() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..CRASHES {
        let disk = durable(seed, &[("x", b"old")]);
        let file = disk.open(Path::new("x"), Access::ReadWrite).unwrap();
        file.write_at(&[IoSlice::new(b"new")], 0).unwrap();
        disk.plan(Fault::at(1).of(Operation::Flush));
        let error = file.flush().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot flush /simulated/x: Input/output error (os error 5)"
        );
        let seen = contents(&disk, Path::new("x"));
        // The mistake that it is there for: the second flush goes well.
        file.flush().unwrap();
        outcomes.insert((seen, contents(&disk.crash(), Path::new("x"))));
    }
    let pair = |seen: &str, found: &str| (seen.as_bytes().to_vec(), found.as_bytes().to_vec());
    assert_eq!(
        outcomes,
        [pair("old", "old"), pair("new", "old"), pair("new", "new")].into()
    );
}

#[test]
fn a_failed_flush_of_a_directory_may_lose_names_for_good() {
    let found = outcomes(
        &[],
        |disk| {
            disk.create(Path::new("x")).unwrap().flush().unwrap();
            disk.plan(Fault::at(1).of(Operation::FlushDirectory));
            disk.flush_directory(Path::new("")).unwrap_err();
            disk.flush_directory(Path::new("")).unwrap();
            assert_eq!(there(disk), "x");
        },
        there,
    );
    assert_eq!(found, ["", "x"].map(String::from).into());
}

#[test]
fn a_disk_that_stopped_does_nothing_any_more() {
    let stops: [fn(&SimulatedDisk); 3] = [
        |disk| drop(disk.crash()),
        |disk| drop(disk.kill()),
        |disk| {
            disk.plan(Fault::at(1).stop());
            disk.free().unwrap_err();
        },
    ];
    for stop in stops {
        let disk = durable(1, &[("x", b"x")]);
        let clone: Box<dyn Disk> = Box::new(disk.clone());
        let file = disk.open(Path::new("x"), Access::ReadWrite).unwrap();
        let _held = disk.lock(Path::new("lock"), Lock::Exclusive).unwrap();
        stop(&disk);
        assert!(disk.is_stopped());
        let path = Path::new("x");
        let all = [
            file.read_at(&mut [0], 0),
            file.write_at(&[], 0),
            file.allocate(1),
            file.set_len(1),
            file.len().map(drop),
            file.flush(),
            clone.create(path).map(drop),
            clone.open(path, Access::Read).map(drop),
            clone.rename(path, path),
            clone.remove(path),
            clone.list(Path::new("")).map(drop),
            clone.create_directory(path),
            clone.remove_directory(path),
            clone.flush_directory(Path::new("")),
            clone.free().map(drop),
            clone.lock(path, Lock::Shared).map(drop),
        ];
        assert_eq!(all.len(), Operation::ALL.len());
        for result in all {
            assert_eq!(result.unwrap_err().reason, Reason::Stopped);
        }
        // What it was is still to be found.
        assert_eq!(contents(&disk.crash(), path), b"x");
    }
}

#[test]
fn a_disk_is_full_at_its_capacity() {
    const BLOCK: usize = 4096;
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(Some(4 * BLOCK as u64));
    let reserved = disk.create(Path::new("reserved")).unwrap();
    reserved.allocate(2 * BLOCK as u64).unwrap();
    let file = disk.create(Path::new("file")).unwrap();
    let error = file
        .write_at(&[IoSlice::new(&[7; 3 * BLOCK])], 0)
        .unwrap_err();
    assert_eq!(
        error.reason,
        Reason::Full {
            asked: 3 * BLOCK as u64,
            free: Some(0)
        }
    );
    assert_eq!(
        file.len().unwrap(),
        2 * BLOCK as u64,
        "what had room was written"
    );
    assert_eq!(disk.free().unwrap(), 0);
    // What was reserved is there.
    reserved
        .write_at(&[IoSlice::new(&[8; 2 * BLOCK])], 0)
        .unwrap();
    let full = reserved
        .write_at(&[IoSlice::new(b"9")], 2 * BLOCK as u64)
        .unwrap_err();
    assert_eq!(
        full.reason,
        Reason::Full {
            asked: 1,
            free: Some(0)
        }
    );
    let full = reserved.allocate(3 * BLOCK as u64).unwrap_err().reason;
    assert_eq!(
        full,
        Reason::Full {
            asked: BLOCK as u64,
            free: Some(0)
        }
    );
    assert_eq!(reserved.len().unwrap(), 2 * BLOCK as u64);

    let holes = disk.create(Path::new("holes")).unwrap();
    holes.set_len(9 * BLOCK as u64).unwrap();
    let full = holes.allocate(BLOCK as u64).unwrap_err().reason;
    assert_eq!(
        full,
        Reason::Full {
            asked: BLOCK as u64,
            free: Some(0)
        }
    );

    file.set_len(1).unwrap();
    assert_eq!(disk.free().unwrap(), BLOCK as u64);
    disk.remove(Path::new("file")).unwrap();
    assert_eq!(
        disk.free().unwrap(),
        BLOCK as u64,
        "a file that is open takes room without a name"
    );
    drop(file);
    assert_eq!(disk.free().unwrap(), 2 * BLOCK as u64);
    disk.create(Path::new("other"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    assert_eq!(
        disk.free().unwrap(),
        2 * BLOCK as u64,
        "a hole takes no room"
    );

    let [left, replaced] = ["left", "replaced"].map(|name| disk.create(Path::new(name)).unwrap());
    left.allocate(BLOCK as u64).unwrap();
    replaced.allocate(BLOCK as u64).unwrap();
    drop(replaced);
    disk.rename(Path::new("left"), Path::new("replaced"))
        .unwrap();
    assert_eq!(
        disk.free().unwrap(),
        BLOCK as u64,
        "what is replaced gives its room back"
    );
    disk.remove(Path::new("replaced")).unwrap();
    assert_eq!(
        disk.kill().free().unwrap(),
        2 * BLOCK as u64,
        "no handle outlives its process"
    );
    drop(left);
}

#[test]
fn room_that_was_reserved_is_kept_if_it_was_flushed() {
    const BLOCK: u64 = 4096;
    let found = outcomes(
        &[("x", b"")],
        |disk| {
            disk.set_capacity(Some(10 * BLOCK));
            let file = disk.open(Path::new("x"), Access::ReadWrite).unwrap();
            file.allocate(2 * BLOCK).unwrap();
            file.flush().unwrap();
            file.allocate(5 * BLOCK).unwrap();
        },
        |disk| disk.free().unwrap() / BLOCK,
    );
    assert_eq!(found, [8].into(), "what is not flushed has no room");

    let found = outcomes(
        &[("x", &[1; 3 * BLOCK as usize])],
        |disk| {
            disk.set_capacity(Some(10 * BLOCK));
            disk.open(Path::new("x"), Access::ReadWrite)
                .unwrap()
                .set_len(0)
                .unwrap();
            assert_eq!(disk.free().unwrap(), 10 * BLOCK);
        },
        |disk| disk.free().unwrap() / BLOCK,
    );
    assert_eq!(
        found,
        [7, 8, 9, 10].into(),
        "what comes back takes room again"
    );
}

#[test]
fn faults_are_of_a_kind_and_of_a_path() {
    let disk = durable(1, &[("x", b"x"), ("y", b"y")]);
    let [x, y] = ["x", "y"].map(|name| disk.open(Path::new(name), Access::ReadWrite).unwrap());
    let before = disk.counts();
    disk.plan(Fault::at(2).of(Operation::Read).on("y").and_later());
    disk.plan(Fault::at(3).of(Operation::Write).full());
    let mut buffer = [0];
    x.read_at(&mut buffer, 0).unwrap();
    y.read_at(&mut buffer, 0).unwrap();
    x.read_at(&mut buffer, 0).unwrap();
    for _ in 0..2 {
        assert_eq!(
            y.read_at(&mut buffer, 0).unwrap_err().reason,
            Reason::System(5)
        );
    }
    let write = || x.write_at(&[IoSlice::new(b"z")], 0);
    write().unwrap();
    write().unwrap();
    assert_eq!(
        write().unwrap_err().reason,
        Reason::Full {
            asked: 1,
            free: None
        }
    );
    write().unwrap();
    assert_eq!(
        disk.counts().of(Operation::Read) - before.of(Operation::Read),
        5
    );
    assert_eq!(disk.counts().total() - before.total(), 9);
}

#[test]
fn the_operation_at_which_the_machine_stops_may_have_been_done() {
    let mut found = BTreeSet::new();
    for seed in 0..100 {
        let disk = durable(seed, &[("x", b"old")]);
        let file = disk.open(Path::new("x"), Access::ReadWrite).unwrap();
        disk.plan(Fault::at(1).of(Operation::Write).stop());
        let written = file.write_at(&[IoSlice::new(b"new")], 0);
        assert_eq!(written.unwrap_err().reason, Reason::Stopped);
        found.insert(contents(&disk.kill(), Path::new("x")));
    }
    assert_eq!(found, [b"old".to_vec(), b"new".to_vec()].into());
}

#[test]
fn a_write_that_fails_may_have_written_a_part() {
    let mut lens = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let file = disk.create(Path::new("x")).unwrap();
        disk.plan(Fault::at(1).of(Operation::Write));
        file.write_at(&[IoSlice::new(b"ab"), IoSlice::new(b"c")], 0)
            .unwrap_err();
        let written = contents(&disk, Path::new("x"));
        assert!(b"abc".starts_with(&written));
        lens.insert(written.len());
    }
    assert_eq!(lens, [0, 1, 2, 3].into());
}

#[test]
fn the_same_seed_and_operations_give_the_same() {
    let found = |seed: u64, history: u64| {
        let mut random = Random(history);
        let disk = SimulatedDisk::new(seed);
        disk.create_directory(Path::new("a")).unwrap();
        disk.create_directory(Path::new("b")).unwrap();
        let mut relied = Relied::default();
        for _ in 0..150 {
            relied.step(&disk, &mut random);
        }
        [tree(&disk.crash()), tree(&disk.crash())]
    };
    let mut differ = [0; 2];
    for_seeds(50, |seed| {
        assert_eq!(found(seed, seed), found(seed, seed));
        differ[0] += (found(seed, seed) != found(seed + 1, seed)) as usize;
        let [one, other] = found(seed, seed);
        differ[1] += (one != other) as usize;
    });
    assert!(differ.iter().all(|differ| *differ > 0), "{differ:?}");
}
