//! A check finds all that is wrong, and nothing else; and it changes nothing.

use crate::common::{DATABASE, Random, paths};
use crate::damage::{files, put, replace, written};
use crate::mistakes::Mistake;
use crate::process::{Commit, Failure, Found, Known, Process, look};
use eris_disk::{Access, Disk, Lock, SimulatedDisk};
use eris_log::{Checked, ChunkInfo, Directory, Finding, Group, LogError, Look, Origin, Part};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Puts a database together from what a check shows.
struct Looks {
    found: Found,
    /// What it says of each.
    complains_of: Option<&'static str>,
}

impl Looks {
    fn commit_of(&self, chunk: u64) -> &Commit {
        let mut commits = self.found.state.values();
        let found = commits.find(|commit| commit.chunk == Some(chunk));
        found.expect("it is referred to")
    }

    fn complain(&self, what: &str) -> Result<(), String> {
        match self.complains_of {
            Some(complaint) if complaint == what => Err(format!("a bad {what}")),
            _ => Ok(()),
        }
    }
}

impl Look for Looks {
    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String> {
        self.found.take(origin, group)?;
        self.complain("group")
    }

    fn referred_to(&mut self) -> BTreeSet<u64> {
        let commits = self.found.state.values();
        commits.filter_map(|commit| commit.chunk).collect()
    }

    fn form(&mut self, number: u64, _: ChunkInfo, form: &[u8]) -> Result<(), String> {
        assert_eq!(form, self.commit_of(number).bytes());
        self.complain("form")
    }
}

fn check_with(
    disk: &SimulatedDisk,
    complains_of: Option<&'static str>,
) -> Result<(Checked, Looks), LogError> {
    // A manifest that is damaged is found by the check.
    let directory = Directory::open(Arc::new(disk.clone()), Lock::Shared, DATABASE);
    let manifest = directory.ok().and_then(|directory| directory.manifest());
    let mut looks = Looks {
        found: Found::new(manifest),
        complains_of,
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Ok((eris_log::check(&disk, &mut looks)?, looks))
}

pub fn findings(disk: &SimulatedDisk) -> Vec<Finding> {
    check_with(disk, None).unwrap().0.findings
}

#[test]
fn all_that_is_intact_is_counted_and_shown() {
    let (disk, known, _) = written();
    let before = files(&disk);
    let (checked, looks) = check_with(&disk, None).unwrap();
    assert_eq!(files(&disk), before);
    assert_eq!(checked.findings, []);
    assert_eq!(looks.found.state, known.state());
    for (directory, counted) in [
        ("snapshots", checked.snapshot),
        ("log", checked.log),
        ("chunks", checked.chunks),
    ] {
        let files = before
            .iter()
            .filter(|(path, _)| path.starts_with(directory));
        let bytes: u64 = files.clone().map(|(_, bytes)| bytes.len() as u64).sum();
        let groups: usize = files.clone().map(|(_, bytes)| groups(bytes).len()).sum();
        assert_eq!(
            (counted.files, counted.bytes),
            (files.count() as u64, bytes)
        );
        match directory {
            "chunks" => {
                let state = known.state();
                let chunks = state.values().filter(|commit| commit.chunk.is_some());
                let chunks = chunks.count() as u64;
                assert!(chunks > 0 && counted.parts == chunks, "{chunks}");
            }
            _ => assert_eq!(counted.parts, groups as u64),
        }
    }
}

/// Where groups are.
fn groups(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks(8).zip(0..);
    let groups = words.filter(|(word, _)| word.starts_with(b"EGRP"));
    groups.map(|(_, word)| 8 * word).collect()
}

/// Every other group of each file that has another one behind it is damaged at once.
#[test]
fn all_damaged_groups_are_found_at_once() {
    let (disk, _, _) = written();
    let mut wanted = BTreeSet::new();
    for (path, bytes) in files(&disk) {
        let groups = groups(&bytes);
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        for at in groups.iter().rev().skip(1).step_by(2) {
            put(&*file, &[bytes[*at as usize + 33] ^ 1], at + 33);
            wanted.insert((disk.root().join(&path), *at));
        }
    }
    let found = findings(&disk).into_iter();
    let found: BTreeSet<_> = found.map(|found| (found.path, found.offset)).collect();
    println!("{} groups", wanted.len());
    assert!(wanted.len() > 2);
    assert_eq!(found, wanted);
}

/// Files that are missing or have lost their headers do not keep it from looking at later ones.
#[test]
fn a_check_goes_on_behind_a_file_that_is_of_no_use() {
    let (disk, ..) = written();
    let logs = paths(&disk, "log");
    assert!(logs.len() > 2);
    let snapshot = paths(&disk, "snapshots").pop().unwrap();
    let file = disk.open(&snapshot, Access::ReadWrite).unwrap();
    put(&*file, b"?", 70);
    for path in &logs[..logs.len() - 1] {
        let hidden = path.with_file_name("hidden");
        disk.rename(path, &hidden).unwrap();
        let (checked, _) = check_with(&disk, None).unwrap();
        let found: Vec<_> = checked
            .findings
            .iter()
            .map(|found| (&found.path, found.offset))
            .collect();
        let (first, second) = (disk.root().join(&snapshot), disk.root().join(path));
        assert_eq!(found, [(&first, 64), (&second, 0)]);
        assert_eq!(checked.log.files as usize, logs.len() - 1);
        disk.rename(&hidden, path).unwrap();
        let file = disk.open(path, Access::ReadWrite).unwrap();
        let mut before = [0; 8];
        file.read_at(&mut before, 32).unwrap();
        put(&*file, b"????????", 32);
        let (checked, _) = check_with(&disk, None).unwrap();
        assert_eq!(checked.findings.len(), 2);
        // Its groups know where they are, and are looked at nevertheless.
        assert_eq!(checked.log.files as usize, logs.len());
        put(&*file, &before, 32);
    }
}

/// The group that says where the log goes on is the last one of its file.
#[test]
fn where_the_log_does_not_go_on_is_one_finding() {
    let (disk, ..) = written();
    let logs = paths(&disk, "log");
    for path in &logs[..logs.len() - 1] {
        let bytes = &files(&disk)[path];
        let at = *groups(bytes).last().unwrap();
        let file = disk.open(path, Access::ReadWrite).unwrap();
        put(&*file, &[bytes[at as usize + 8] ^ 1], at + 8);
        let [found] = &findings(&disk)[..] else {
            panic!("{:?}", findings(&disk));
        };
        assert_eq!((&found.path, found.offset), (&disk.root().join(path), at));
        assert!(found.what.contains("the log ends here"), "{}", found.what);
        put(&*file, &bytes[at as usize..], at);
    }
}

#[test]
fn chunk_files_are_looked_at_though_one_is_damaged() {
    let (disk, ..) = written();
    let all = check_with(&disk, None).unwrap().0.chunks;
    let chunks = paths(&disk, "chunks");
    assert!(chunks.len() > 1);
    for path in chunks {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        put(&*file, b"?", 0);
        let checked = check_with(&disk, None).unwrap().0;
        assert_eq!(checked.chunks.files, all.files - 1);
        // Each chunk that was in it is missing.
        let missing = checked.findings.len() as u64 - 1;
        assert_eq!(checked.chunks.parts + missing, all.parts);
        put(&*file, b"E", 0);
    }
}

#[test]
fn nobody_writes_while_a_check_reads() {
    let (disk, ..) = written();
    let open = |access| Directory::open(Arc::new(disk.clone()), access, DATABASE);
    let writer = open(Lock::Exclusive).unwrap();
    assert!(matches!(check_with(&disk, None), Err(LogError::Disk(_))));
    drop(writer);
    let _reader = open(Lock::Shared).unwrap();
    assert_eq!(findings(&disk), []);
}

/// Whether a check agrees with whoever opens the database. Its findings name the file.
fn agrees(disk: &SimulatedDisk, known: &Known, path: &Path, what: &str) -> bool {
    let found = findings(disk);
    let opened = look(disk, known, Lock::Shared);
    if let Err(Failure::Wrong(what)) = opened {
        panic!("{what}");
    }
    let case = format!("{what} of {}: {opened:?}, {found:?}", path.display());
    assert_eq!(opened.is_ok(), found.is_empty(), "{case}");
    let whole = disk.root().join(path);
    let names = |found: &Finding| found.path == whole || path.starts_with("chunks");
    assert!(found.is_empty() || found.iter().any(names), "{case}");
    !found.is_empty()
}

#[test]
fn a_check_finds_what_is_told_when_the_database_is_opened() {
    let (disk, known, _) = written();
    let mut found = 0;
    for (path, bytes) in files(&disk) {
        let file = disk.open(&path, Access::ReadWrite).unwrap();
        for offset in (0..bytes.len()).step_by(67) {
            put(&*file, &[bytes[offset] ^ 1 << (offset % 8)], offset as u64);
            found += usize::from(agrees(&disk, &known, &path, &format!("byte {offset}")));
            put(&*file, &bytes[offset..=offset], offset as u64);
        }
        for cut in groups(&bytes)
            .into_iter()
            .chain([0, 30, bytes.len() as u64 - 1])
        {
            file.set_len(cut).unwrap();
            found += usize::from(agrees(&disk, &known, &path, &format!("a cut at {cut}")));
            put(&*file, &bytes[cut as usize..], cut);
        }
        for more in [&b"more"[..], &bytes] {
            put(&*file, more, bytes.len() as u64);
            found += usize::from(agrees(&disk, &known, &path, "an end that is longer"));
            file.set_len(bytes.len() as u64).unwrap();
        }
        for (other, others) in files(&disk).iter().filter(|(other, _)| **other != path) {
            replace(&*file, others);
            let what = format!("{} instead", other.display());
            found += usize::from(agrees(&disk, &known, &path, &what));
            replace(&*file, &bytes);
        }
        if path != Path::new("eris.db") {
            let hidden = path.with_file_name("hidden");
            disk.rename(&path, &hidden).unwrap();
            found += usize::from(agrees(&disk, &known, &path, "the name"));
            disk.rename(&hidden, &path).unwrap();
        }
    }
    println!("{found} found");
    assert!(found > 100 && findings(&disk).is_empty());
}

#[test]
fn what_a_crash_has_left_is_no_damage() {
    let (mut disk, mut known) = (SimulatedDisk::new(1), Known::default());
    let mut random = Random::new(7);
    let mut remarks = 0;
    for life in 0..200 {
        let handle = Arc::new(disk.clone());
        let process = Process::start(handle, &mut known, Mistake::None, 0).unwrap();
        let mut process = process.expect("nothing fails");
        for _ in 0..random.below(40) {
            process.act(&mut known, &mut random).unwrap();
        }
        disk = disk.crash();
        let checked = check_with(&disk, None).unwrap().0;
        assert_eq!(checked.findings, [], "life {life}");
        remarks += checked.remarks.len();
    }
    println!("{remarks} remarks");
    assert!(known.checkpoints > 50 && remarks > 50);
}

#[test]
fn what_groups_and_chunks_say_is_anothers_business() {
    let (disk, ..) = written();
    let (checked, _) = check_with(&disk, Some("group")).unwrap();
    let groups = checked.findings;
    assert!(groups.len() > 2 && groups.iter().all(|found| found.what == "a bad group"));
    let (checked, _) = check_with(&disk, Some("form")).unwrap();
    assert_eq!(checked.findings.len() as u64, checked.chunks.parts);
    let files: BTreeSet<_> = paths(&disk, "chunks").into_iter().collect();
    for found in checked.findings {
        let path = found.path.strip_prefix(disk.root()).unwrap();
        assert!(found.what.ends_with(": a bad form") && files.contains(path));
    }
}

#[test]
fn a_finding_says_which_commits_are_hit() {
    let (disk, ..) = written();
    let files = files(&disk);
    let log = files.iter().filter(|(path, _)| path.starts_with("log"));
    let all = log.flat_map(|(path, bytes)| groups(bytes).into_iter().map(move |at| (path, at)));
    let all: Vec<_> = all.collect();
    let through = |(path, at): (&PathBuf, u64)| {
        let word = &files[path][at as usize + 16..at as usize + 24];
        u64::from_le_bytes(word.try_into().unwrap())
    };
    assert!(all.len() > 4);
    for window in all.windows(3) {
        let &[before, at, next] = window else {
            unreachable!("there are three");
        };
        let file = disk.open(at.0, Access::ReadWrite).unwrap();
        put(&*file, b"?", at.1);
        let found = findings(&disk).remove(0);
        put(&*file, b"E", at.1);
        let Part::Commits { behind, up_to } = found.part else {
            panic!("{found:?}");
        };
        assert_eq!(behind.0, through(before), "{found:?}");
        let up_to = up_to.expect("a group follows").0;
        assert!((through(at)..=through(next)).contains(&up_to), "{found:?}");
    }
}

#[test]
fn a_chunk_that_nothing_refers_to_is_no_damage() {
    let (disk, ..) = written();
    let whole = check_with(&disk, None).unwrap().0;
    assert_eq!(whole.remarks, []);
    let mut dead = 0;
    for (path, bytes) in files(&disk) {
        let lines = bytes.chunks(64).zip((0..).step_by(64));
        let entries = lines.filter(|(line, _)| line.starts_with(b"ECHK"));
        for at in entries.map(|(_, at)| at) {
            let file = disk.open(&path, Access::ReadWrite).unwrap();
            let form = at as usize + 64;
            put(&*file, &[bytes[form] ^ 1], form as u64);
            let checked = check_with(&disk, None).unwrap().0;
            put(&*file, &bytes[form..=form], form as u64);
            match &checked.remarks[..] {
                [] => assert_eq!(checked.findings.len(), 1),
                [remark] => {
                    assert_eq!(checked.findings, []);
                    assert_eq!(checked.unused.parts, whole.unused.parts - 1);
                    assert_eq!(
                        (&remark.path, remark.offset),
                        (&disk.root().join(&path), at)
                    );
                    dead += 1;
                }
                more => panic!("{more:?}"),
            }
        }
    }
    assert!(dead > 0 && dead == whole.unused.parts);
}

#[test]
fn a_damaged_manifest_is_a_finding_and_a_missing_one_an_error() {
    let (disk, ..) = written();
    let path = Path::new("eris.db");
    let file = disk.open(path, Access::ReadWrite).unwrap();
    file.set_len(40).unwrap();
    let (checked, _) = check_with(&disk, None).unwrap();
    assert_eq!((checked.manifest, checked.findings.len()), (None, 1));
    assert_eq!(checked.findings[0].path, disk.root().join(path));
    disk.remove(path).unwrap();
    let error = check_with(&disk, None).err().expect("it is missing");
    assert!(matches!(error, LogError::NoManifest { .. }), "{error}");
    let none = SimulatedDisk::new(1);
    let error = check_with(&none, None).err().expect("there is none");
    assert!(matches!(error, LogError::NoDatabase { .. }), "{error}");
}
