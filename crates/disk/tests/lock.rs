//! The lock of a database, between processes and within one.

use eris_disk::{Disk, Holder, Lock, RealDisk, Reason, SimulatedDisk};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const DIRECTORY: &str = "ERIS_TEST_LOCK_DIRECTORY";
const KIND: &str = "ERIS_TEST_LOCK_KIND";
const LOCK: &str = "lock";

fn reason(disk: &dyn Disk, lock: Lock) -> Reason {
    disk.lock(Path::new(LOCK), lock).unwrap_err().reason
}

/// Another process that has the lock, until it is killed.
fn holder(directory: &Path, lock: &str) -> (Child, impl BufRead + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "held_by_another_process", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(KIND, lock)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Read from for as long as the process lives: it still has to say that its test went well.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let told = output
        .by_ref()
        .lines()
        .any(|line| line.unwrap().contains("locked"));
    assert!(told, "the other process has no lock");
    (child, output)
}

/// In the other process: holds the lock until the input ends. In the test itself: nothing is held.
#[test]
fn held_by_another_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        let directory = tempfile::tempdir().unwrap();
        let (mut child, _output) = holder(directory.path(), "exclusive");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let _held = RealDisk::new(directory.path())
            .lock(Path::new(LOCK), Lock::Exclusive)
            .unwrap();
        return;
    };
    let lock = if std::env::var(KIND).unwrap() == "shared" {
        Lock::Shared
    } else {
        Lock::Exclusive
    };
    let _held = RealDisk::new(Path::new(&directory))
        .lock(Path::new(LOCK), lock)
        .unwrap();
    println!("locked");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_second_process_is_told_the_first_and_a_killed_one_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(directory.path());
    let (mut child, _output) = holder(directory.path(), "exclusive");
    let writer = Reason::Locked(Holder::Writer(Some(child.id())));
    assert_eq!(reason(&disk, Lock::Exclusive), writer);
    assert_eq!(reason(&disk, Lock::Shared), writer);
    child.kill().unwrap();
    child.wait().unwrap();

    // The number of the killed one is still in the file. It is not taken for the one of those that read now.
    let (mut child, _output) = holder(directory.path(), "shared");
    // Not every system tells who reads.
    let Reason::Locked(Holder::Readers(told)) = reason(&disk, Lock::Exclusive) else {
        panic!("somebody reads");
    };
    assert!(told.is_none_or(|pid| pid == child.id()), "{told:?}");
    drop(disk.lock(Path::new(LOCK), Lock::Shared).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let held = disk.lock(Path::new(LOCK), Lock::Exclusive).unwrap();
    assert_eq!(
        reason(&disk, Lock::Shared),
        Reason::Locked(Holder::Writer(Some(std::process::id())))
    );
    drop(held);
}

#[test]
fn one_writes_or_many_read() {
    let directory = tempfile::tempdir().unwrap();
    let disks: [Box<dyn Disk>; 2] = [
        Box::new(RealDisk::new(directory.path())),
        Box::new(SimulatedDisk::new(1)),
    ];
    for disk in disks {
        let lock = |lock| disk.lock(Path::new(LOCK), lock);
        assert_eq!(lock(Lock::Shared).unwrap_err().reason, Reason::NotFound);
        let writer = lock(Lock::Exclusive).unwrap();
        let here = Reason::Locked(Holder::Writer(Some(std::process::id())));
        assert_eq!(lock(Lock::Exclusive).unwrap_err().reason, here);
        assert_eq!(lock(Lock::Shared).unwrap_err().reason, here);
        drop(writer);
        let readers = [lock(Lock::Shared).unwrap(), lock(Lock::Shared).unwrap()];
        let denied = lock(Lock::Exclusive).unwrap_err().reason;
        assert!(matches!(denied, Reason::Locked(Holder::Readers(_))));
        drop(readers);
        let _writer = lock(Lock::Exclusive).unwrap();
    }
}

#[test]
fn a_simulated_process_that_ends_gives_its_locks_back() {
    let disk = SimulatedDisk::new(7);
    let _held = disk.lock(Path::new(LOCK), Lock::Exclusive).unwrap();
    let disk = disk.kill();
    let _held = disk.lock(Path::new(LOCK), Lock::Exclusive).unwrap();
    let disk = disk.crash();
    let _held = disk.lock(Path::new(LOCK), Lock::Exclusive).unwrap();
}
