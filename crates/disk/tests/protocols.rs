//! A protocol that is right never fails on the simulated disk, and four that are wrong are found.
//!
//! A value is replaced: written to a new file, flushed, renamed, and the directory flushed. Each mistake leaves one
//! step out, or repeats one that must not be repeated.

mod common;

use common::for_seeds;
use eris_disk::{Access, Disk, DiskError, Fault, Reason, SimulatedDisk};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::Path;

const LEN: usize = 2000;
const VALUES: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    FileNotFlushed,
    DirectoryNotFlushed,
    FileFlushTriedAgain,
    DirectoryFlushTriedAgain,
}

/// Makes `value` the one that is stored.
fn store(disk: &dyn Disk, value: u8, mistake: Mistake) -> Result<(), DiskError> {
    let (new, name) = (Path::new("value.new"), Path::new("value"));
    let flush = |again: Mistake, flush: &dyn Fn() -> Result<(), DiskError>| match flush() {
        Err(_) if mistake == again => flush(),
        other => other,
    };
    let file = disk.create(new)?;
    file.write_at(
        &[
            IoSlice::new(&[value; LEN / 2]),
            IoSlice::new(&[value; LEN / 2]),
        ],
        0,
    )?;
    if mistake != Mistake::FileNotFlushed {
        flush(Mistake::FileFlushTriedAgain, &|| file.flush())?;
    }
    disk.rename(new, name)?;
    if mistake != Mistake::DirectoryNotFlushed {
        flush(Mistake::DirectoryFlushTriedAgain, &|| {
            disk.flush_directory(Path::new(""))
        })?;
    }
    Ok(())
}

/// The value that is stored; zero if none is. The error says what is wrong with it.
fn recover(disk: &dyn Disk) -> Result<u8, String> {
    match disk.remove(Path::new("value.new")) {
        Err(error) if error.reason != Reason::NotFound => return Err(error.to_string()),
        _ => {}
    }
    let file = match disk.open(Path::new("value"), Access::Read) {
        Err(error) if error.reason == Reason::NotFound => return Ok(0),
        other => other.map_err(|error| error.to_string())?,
    };
    let mut bytes = [0; LEN];
    file.read_at(&mut bytes, 0)
        .map_err(|error| error.to_string())?;
    match bytes.iter().all(|byte| *byte == bytes[0]) && bytes[0] != 0 {
        true => Ok(bytes[0]),
        false => Err("the value is torn".to_string()),
    }
}

/// Stores values until one fails, loses the power or only the process, and looks at what is found.
fn run(seed: u64, fault: Option<Fault>, power: bool, mistake: Mistake) -> Result<u64, String> {
    let disk = SimulatedDisk::new(seed);
    disk.set_short_writes(seed.is_multiple_of(2));
    fault.into_iter().for_each(|fault| disk.plan(fault));
    let stored = (1..=VALUES)
        .take_while(|value| store(&disk, *value, mistake).is_ok())
        .count() as u8;
    let operations = disk.counts().total();
    let mut found = if power { disk.crash() } else { disk.kill() };
    for _ in 0..2 {
        let value = recover(&found)?;
        // The last one may be there though nobody was told so.
        if value < stored || value > stored + 1 {
            return Err(format!("{stored} was stored, and {value} is found"));
        }
        if power {
            found = found.crash();
        }
    }
    Ok(operations)
}

/// The runs of one seed: each operation once fails and once is the last one.
fn runs(seed: u64, mistake: Mistake) -> Result<(), String> {
    let told = |what: &'static str, n: u64| move |error: String| format!("{what} {n}: {error}");
    let what = "no fault".to_string();
    let operations = run(seed, None, true, mistake).map_err(|error| format!("{what}: {error}"))?;
    for n in 1..=operations {
        for power in [true, false] {
            run(seed, Some(Fault::at(n)), power, mistake).map_err(told("failed operation", n))?;
            run(seed, Some(Fault::at(n).full()), power, mistake)
                .map_err(told("full at operation", n))?;
            run(seed, Some(Fault::at(n).stop()), power, mistake)
                .map_err(told("stopped at operation", n))?;
        }
    }
    Ok(())
}

#[test]
fn the_right_protocol_never_fails() {
    for_seeds(300, |seed| {
        if let Err(error) = runs(seed, Mistake::None) {
            panic!("seed {seed}: {error}");
        }
    });
}

#[test]
fn each_mistake_is_found() {
    for mistake in [
        Mistake::FileNotFlushed,
        Mistake::DirectoryNotFlushed,
        Mistake::FileFlushTriedAgain,
        Mistake::DirectoryFlushTriedAgain,
    ] {
        let found = (0..300).try_for_each(|seed| match runs(seed, mistake) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break((seed, error)),
        });
        let (seed, error) = found
            .break_value()
            .unwrap_or_else(|| panic!("{mistake:?} is not found"));
        println!("{mistake:?} is found with seed {seed}: {error}");
    }
}
