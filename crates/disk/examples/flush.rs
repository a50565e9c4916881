//! What a flush takes: some bytes written behind those before, then flushed, as a log does it.
//!
//! ```text
//! cargo run --release -p eris-disk --example flush [DIRECTORY [ROUNDS]]
//! ```
//!
//! The cases are interleaved: each has one flush in each round. `written` is a file that has had zeros written to it,
//! `allocated` one whose room is only reserved, and `growing` one that has neither. `std` does the first one without
//! this crate.

use eris_disk::{Disk, File, RealDisk};
use std::error::Error;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Writes some bytes at an offset and flushes them.
type Write = Box<dyn Fn(&[u8], u64) -> Result<(), Box<dyn Error>>>;

struct Case {
    name: &'static str,
    bytes: usize,
    write: Write,
    times: Vec<Duration>,
}

/// How a file is made ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    Written,
    Allocated,
    Growing,
}

fn file(
    disk: &RealDisk,
    name: &str,
    len: u64,
    ready: Ready,
) -> Result<Box<dyn File>, Box<dyn Error>> {
    let file = disk.create(Path::new(name))?;
    if ready != Ready::Growing {
        file.allocate(len)?;
    }
    if ready == Ready::Written {
        let zeros = vec![0; 64 << 10];
        for offset in (0..len).step_by(zeros.len()) {
            file.write_at(&[IoSlice::new(&zeros)], offset)?;
        }
    }
    file.flush()?;
    Ok(file)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let below = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds: usize = arguments.next().map_or(Ok(200), |rounds| rounds.parse())?;
    let directory = tempfile::tempdir_in(below)?;
    let disk = RealDisk::new(directory.path());

    let mut cases = Vec::new();
    for (name, bytes, ready) in [
        ("4 KiB, written", 4 << 10, Ready::Written),
        ("4 KiB, allocated", 4 << 10, Ready::Allocated),
        ("4 KiB, growing", 4 << 10, Ready::Growing),
        ("64 KiB, written", 64 << 10, Ready::Written),
        ("64 KiB, allocated", 64 << 10, Ready::Allocated),
        ("64 KiB, growing", 64 << 10, Ready::Growing),
    ] {
        let len = (rounds * bytes).next_multiple_of(64 << 10) as u64;
        let file = file(&disk, name, len, ready)?;
        let write: Write = Box::new(move |bytes, offset| {
            file.write_at(&[IoSlice::new(bytes)], offset)?;
            Ok(file.flush()?)
        });
        cases.push(Case {
            name,
            bytes,
            write,
            times: Vec::new(),
        });
    }
    let len = (rounds * (4 << 10)).next_multiple_of(64 << 10) as u64;
    drop(file(&disk, "std", len, Ready::Written)?);
    let std = std::fs::File::options()
        .write(true)
        .open(directory.path().join("std"))?;
    cases.push(Case {
        name: "4 KiB, written, std",
        bytes: 4 << 10,
        write: Box::new(move |bytes, offset| {
            std.write_all_at(bytes, offset)?;
            Ok(std.sync_data()?)
        }),
        times: Vec::new(),
    });
    disk.flush_directory(Path::new(""))?;

    let bytes = vec![7; 64 << 10];
    for round in 0..rounds {
        for case in &mut cases {
            let begun = Instant::now();
            (case.write)(&bytes[..case.bytes], (round * case.bytes) as u64)?;
            case.times.push(begun.elapsed());
        }
    }
    println!("{:<22}{:>10}{:>10}", "", "p50 ms", "p99 ms");
    for case in &mut cases {
        case.times.sort_unstable();
        let at =
            |share: f64| case.times[((rounds - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!("{:<22}{:>10.2}{:>10.2}", case.name, at(0.5), at(0.99));
    }
    Ok(())
}
