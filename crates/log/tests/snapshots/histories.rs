//! Histories of processes, each of which ends somehow.

use crate::common::careless::Careless;
use crate::common::{Random, seeds};
use crate::mistakes::Mistake;
use crate::process::{Failure, Known, Process, look};
use eris_disk::{Disk, Fault, Lock, Operation, SimulatedDisk};
use std::ops::ControlFlow;
use std::sync::Arc;

fn look_at(disk: &SimulatedDisk, known: &Known) -> Result<(), String> {
    look(disk, known, Lock::Exclusive).map_err(|failure| match failure {
        Failure::Log(error) => error.to_string(),
        Failure::Wrong(what) => what,
    })?;
    match known.is_there {
        true => crate::check::findings(disk)
            .first()
            .map_or(Ok(()), |found| Err(format!("{found:?}"))),
        false => Ok(()),
    }
}

/// Several processes, and what each of them finds. The error says what is wrong.
fn history(seed: u64, mistake: Mistake) -> Result<Known, String> {
    let mut random = Random::new(seed + 1);
    let mut disk = SimulatedDisk::new(seed);
    disk.set_short_writes(seed.is_multiple_of(2));
    let mut known = Known::default();
    // Few snapshots have several groups: they take long.
    let padding = if seed % 40 == 7 { 300_000 } else { 0 };
    for _ in 0..5 {
        plan(&disk, &mut random);
        let careless: Arc<dyn Disk> = Arc::new(Careless(disk.clone(), mistake));
        if let Some(mut process) = Process::start(careless, &mut known, mistake, padding)? {
            process.makes_files = seed % 4 < 3;
            let mut actions = random.below(120);
            while actions > 0 && process.act(&mut known, &mut random)? {
                actions -= 1;
            }
            if actions == 0 && random.below(3) == 0 {
                process.close(&mut known);
            }
        }
        disk = match random.below(2) {
            0 => disk.crash(),
            _ => disk.kill(),
        };
        look_at(&disk, &known)?;
    }
    Ok(known)
}

/// Some operation will fail, or the machine will stop at it, or the disk will be full; or nothing will.
fn plan(disk: &SimulatedDisk, random: &mut Random) {
    let fault = Fault::at(1 + random.below(250));
    disk.set_capacity(None);
    match random.below(8) {
        0 | 1 => disk.plan(fault.stop()),
        2 => disk.plan(fault),
        3 => disk.plan(Fault::at(1 + random.below(60)).of(Operation::Flush)),
        4 => disk.plan(Fault::at(1 + random.below(20)).of(Operation::FlushDirectory)),
        5 => disk.plan(Fault::at(1 + random.below(3)).of(Operation::Remove)),
        6 => disk.set_capacity(Some(20_000 + random.below(60_000))),
        _ => {}
    }
}

#[test]
fn the_database_is_that_of_some_moment_after_any_end() {
    let (mut checkpoints, mut rejected) = (0, 0);
    for seed in seeds(1_500) {
        match history(seed, Mistake::None) {
            Ok(known) => {
                checkpoints += known.checkpoints;
                rejected += known.rejected;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{checkpoints} checkpoints, {rejected} were rejected");
    if std::env::var_os("ERIS_SEED").is_none() {
        assert!(checkpoints > 1_000 && rejected > 20);
    }
}

#[test]
fn each_mistake_is_found() {
    for mistake in [
        Mistake::SnapshotNotFlushed,
        Mistake::SnapshotNameNotFlushed,
        Mistake::ManifestNotFlushed,
        Mistake::ManifestNameNotFlushed,
        Mistake::ManifestNameFlushTriedAgain,
        Mistake::RemovedFirst,
    ] {
        let found = (0..6_000).try_for_each(|seed| match history(seed, mistake) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break((seed, error)),
        });
        let (seed, error) =
            (found.break_value()).unwrap_or_else(|| panic!("{mistake:?} is not found"));
        println!("{mistake:?} is found with seed {seed}: {error}");
    }
}

/// One process that makes two checkpoints, after another one.
fn one(disk: &SimulatedDisk, known: &mut Known) -> Result<(), String> {
    let mut random = Random::new(5);
    let before = known.checkpoints;
    let disk = Arc::new(disk.clone());
    if let Some(mut process) = Process::start(disk, known, Mistake::None, 0)? {
        for _ in 0..150 {
            if !process.act(known, &mut random)? {
                return Ok(());
            }
            if known.checkpoints == before + 2 {
                break;
            }
        }
        process.close(known);
    }
    Ok(())
}

#[test]
fn every_operation_once_stops_once_fails_and_once_finds_the_disk_full() {
    let prepared = || {
        let (disk, mut known) = (SimulatedDisk::new(9), Known::default());
        one(&disk, &mut known).unwrap();
        (disk.kill(), known)
    };
    let (disk, mut known) = prepared();
    one(&disk, &mut known).unwrap();
    assert_eq!((known.checkpoints, known.rejected), (4, 0));
    println!("{} operations", disk.counts().total());
    for nth in 1..=disk.counts().total() {
        for fault in [Fault::at(nth), Fault::at(nth).full(), Fault::at(nth).stop()] {
            let (disk, mut known) = prepared();
            disk.plan(fault);
            one(&disk, &mut known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            for found in [disk.kill(), disk.crash(), disk.crash(), disk.crash()] {
                look_at(&found, &known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            }
            // And whoever goes on from there, whatever happens then.
            let found = disk.kill();
            found.plan(Fault::at(1 + nth % 40).stop());
            let gone_on = one(&found, &mut known).and_then(|()| look_at(&found.crash(), &known));
            gone_on.unwrap_or_else(|error| panic!("operation {nth}, and on: {error}"));
        }
    }
}
