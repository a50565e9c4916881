//! The same operations on a real disk and on a simulated one without faults do the same.

mod common;

use common::{Random, for_seeds, tree};
use eris_disk::{
    Access, Disk, DiskError, File, HeldLock, Holder, Lock, RealDisk, Reason, SimulatedDisk,
};
use std::fmt::Debug;
use std::io::IoSlice;
use std::path::Path;

/// The directories and files that operations are about.
const PATHS: [&str; 14] = [
    "", "a", "b", "a/c", "x", "y", "a/x", "a/y", "b/x", "a/c/x", "x/y", "../x", "x/", "a//y",
];

/// Two disks, and what is open on both.
struct Both {
    real: RealDisk,
    simulated: SimulatedDisk,
    files: Vec<(Box<dyn File>, Box<dyn File>)>,
    locks: Vec<(HeldLock, HeldLock)>,
    done: [usize; 2],
}

impl Both {
    /// Whether both did the same, and what each has.
    fn compare<T, U>(
        &mut self,
        what: &str,
        real: Result<T, DiskError>,
        simulated: Result<U, DiskError>,
    ) -> Option<(T, U)> {
        let told = |disk: &dyn Disk, error: &DiskError| {
            let within = error.path.strip_prefix(disk.root()).unwrap().to_path_buf();
            let to = error
                .to
                .as_ref()
                .map(|to| to.strip_prefix(disk.root()).unwrap().to_path_buf());
            // The simulated disk has no system that tells which process reads, and not every system tells it.
            let reason = match &error.reason {
                Reason::Locked(Holder::Readers(reader)) => {
                    assert!(reader.is_none_or(|pid| pid == std::process::id()), "{what}");
                    Reason::Locked(Holder::Readers(None))
                }
                reason => reason.clone(),
            };
            (error.operation, within, to, error.extent, reason)
        };
        match (real, simulated) {
            (Ok(real), Ok(simulated)) => {
                self.done[0] += 1;
                Some((real, simulated))
            }
            (Err(real), Err(simulated)) => {
                assert_eq!(
                    told(&self.real, &real),
                    told(&self.simulated, &simulated),
                    "{what}"
                );
                self.done[1] += 1;
                None
            }
            (real, simulated) => {
                panic!("{what}: {:?} and {:?}", real.err(), simulated.err())
            }
        }
    }

    fn same<T: PartialEq + Debug>(
        &mut self,
        what: &str,
        real: Result<T, DiskError>,
        simulated: Result<T, DiskError>,
    ) {
        if let Some((real, simulated)) = self.compare(what, real, simulated) {
            assert_eq!(real, simulated, "{what}");
        }
    }

    /// One operation on names.
    fn name(&mut self, random: &mut Random) {
        let path = Path::new(random.of(&PATHS));
        let to = Path::new(random.of(&PATHS));
        let access = if random.below(4) == 0 {
            Access::Read
        } else {
            Access::ReadWrite
        };
        let lock = if random.below(2) == 0 {
            Lock::Shared
        } else {
            Lock::Exclusive
        };
        let operation = random.below(20);
        let what = format!("operation {operation} on {path:?} and {to:?}");
        let (real, simulated) = (&self.real, &self.simulated);
        match operation {
            0..4 => {
                let (real, simulated) = (real.create(path), simulated.create(path));
                let files = self.compare(&what, real, simulated);
                self.files.extend(files);
            }
            4..8 => {
                let (real, simulated) = (real.open(path, access), simulated.open(path, access));
                let files = self.compare(&what, real, simulated);
                self.files.extend(files);
            }
            8..11 => {
                let (real, simulated) = (real.rename(path, to), simulated.rename(path, to));
                self.same(&what, real, simulated);
            }
            11 => {
                let (real, simulated) = (real.remove(path), simulated.remove(path));
                self.same(&what, real, simulated);
            }
            12 => {
                let (real, simulated) = (
                    real.remove_directory(path),
                    simulated.remove_directory(path),
                );
                self.same(&what, real, simulated);
            }
            13..15 => {
                let (real, simulated) = (
                    real.create_directory(path),
                    simulated.create_directory(path),
                );
                self.same(&what, real, simulated);
            }
            15..17 => {
                let (real, simulated) = (real.list(path), simulated.list(path));
                self.same(&what, real, simulated);
            }
            17..19 => {
                let path = Path::new("lock");
                let (real, simulated) = (real.lock(path, lock), simulated.lock(path, lock));
                let locks = self.compare(&what, real, simulated);
                self.locks.extend(locks);
            }
            // Flushes of the real disk take milliseconds.
            _ if random.below(4) == 0 => {
                let (real, simulated) =
                    (real.flush_directory(path), simulated.flush_directory(path));
                self.same(&what, real, simulated);
            }
            _ => {
                // Dropping a lock gives it back on both.
                let held = self.locks.len() as u64;
                if held > 0 {
                    drop(self.locks.swap_remove(random.below(held) as usize));
                }
            }
        }
    }

    /// One operation on an open file.
    fn file(&mut self, random: &mut Random) {
        if self.files.is_empty() {
            return;
        }
        let number = random.below(self.files.len() as u64) as usize;
        let (real, simulated) = self.files.swap_remove(number);
        let offset = random.below(9000);
        let parts: Vec<Vec<u8>> = (0..random.below(4)).map(|_| random.bytes(1500)).collect();
        let slices: Vec<IoSlice> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let operation = random.below(16);
        let what = format!(
            "operation {operation} at {offset} of {}",
            simulated.path().display()
        );
        match operation {
            0..6 => self.same(
                &what,
                real.write_at(&slices, offset),
                simulated.write_at(&slices, offset),
            ),
            6..10 => {
                let mut buffers = [(); 2].map(|_| vec![0; parts.concat().len()]);
                let [mine, other] = &mut buffers;
                let read = (real.read_at(mine, offset), simulated.read_at(other, offset));
                if self.compare(&what, read.0, read.1).is_some() {
                    assert_eq!(buffers[0], buffers[1], "{what}");
                }
            }
            10 => self.same(&what, real.allocate(offset), simulated.allocate(offset)),
            11..13 => self.same(&what, real.set_len(offset), simulated.set_len(offset)),
            13 => self.same(&what, real.len(), simulated.len()),
            14 if random.below(4) == 0 => self.same(&what, real.flush(), simulated.flush()),
            14 => {}
            // Closed.
            _ => return,
        }
        self.files.push((real, simulated));
    }
}

#[test]
fn a_real_and_a_simulated_disk_do_the_same() {
    let mut done = [0; 2];
    for_seeds(60, |seed| {
        let directory = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let mut both = Both {
            real: RealDisk::new(directory.path()),
            simulated: SimulatedDisk::new(seed),
            files: Vec::new(),
            locks: Vec::new(),
            done: [0; 2],
        };
        both.simulated.set_short_writes(seed.is_multiple_of(2));
        for _ in 0..500 {
            if random.below(2) == 0 {
                both.name(&mut random)
            } else {
                both.file(&mut random)
            }
        }
        assert_eq!(tree(&both.real), tree(&both.simulated));
        done = [done[0] + both.done[0], done[1] + both.done[1]];
    });
    // Both what goes well and what does not is compared often.
    assert!(done.iter().all(|done| *done > 100), "{done:?}");
}
