//! Histories of processes, each of which ends somehow.

use crate::common::careless::Careless;
use crate::common::{DATABASE, Random, seeds};
use crate::mistakes::Mistake;
use crate::process::{Known, Process, SMALL, check};
use eris_disk::{Disk, EntryKind, Fault, Operation, SimulatedDisk};
use eris_log::ChunkFiles;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// What a history has met, to see that it meets all.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    chunks: usize,
    files: usize,
    rewrites: usize,
}

/// Several processes, and what each of them finds. The error says what is wrong.
fn history(seed: u64, mistake: Mistake) -> Result<Met, String> {
    let mut random = Random::new(seed + 1);
    let mut disk = SimulatedDisk::new(seed);
    disk.set_short_writes(seed.is_multiple_of(2));
    let (mut known, mut met) = (Known::default(), Met::default());
    for _ in 0..5 {
        plan(&disk, &mut random);
        let careless: Arc<dyn Disk> = Arc::new(Careless(disk.clone(), mistake));
        if let Ok(mut process) = Process::start(careless, &known)? {
            if mistake == Mistake::None {
                check_lengths(&disk, &process);
            }
            for _ in 0..random.below(60) {
                process.act(&mut known, &mut random)?;
            }
            if random.below(3) == 0 {
                process.close(&mut known);
            }
            met.chunks = met.chunks.max(known.referred_to.len());
            met.files = met.files.max(process.files.usage().len());
            met.rewrites += process.rewrites;
        }
        disk = match random.below(2) {
            0 => disk.crash(),
            _ => disk.kill(),
        };
        look(&disk, &known)?;
    }
    Ok(met)
}

/// What is referred to is there.
fn look(disk: &SimulatedDisk, known: &Known) -> Result<(), String> {
    let files = ChunkFiles::open(Arc::new(disk.clone()), DATABASE);
    let files = files.map_err(|error| error.to_string())?;
    (known.referred_to.iter()).try_for_each(|number| check(&files, *number))
}

/// No file is longer than its entries, whatever a crash has left. On a disk that may fail.
fn check_lengths(disk: &SimulatedDisk, process: &Process) {
    let Ok(entries) = disk.list(Path::new("chunks")) else {
        return;
    };
    let found = entries.into_iter().map(|entry| entry.kind);
    let known = process.files.usage().into_iter();
    assert!(found.eq(known.map(|file| EntryKind::File(file.bytes))));
}

/// Some operation will fail, or the machine will stop at it, or the disk will be full; or nothing will.
fn plan(disk: &SimulatedDisk, random: &mut Random) {
    let fault = Fault::at(1 + random.below(200));
    disk.set_capacity(None);
    match random.below(7) {
        0 | 1 => disk.plan(fault.stop()),
        2 => disk.plan(fault),
        3 => disk.plan(Fault::at(1 + random.below(40)).of(Operation::Flush)),
        4 => disk.plan(Fault::at(1 + random.below(12)).of(Operation::FlushDirectory)),
        5 => disk.set_capacity(Some(20_000 + random.below(60_000))),
        _ => {}
    }
}

#[test]
fn what_is_referred_to_is_there_after_any_end() {
    let mut all = Met::default();
    for seed in seeds(1_500) {
        match history(seed, Mistake::None) {
            Ok(met) => {
                all.chunks = all.chunks.max(met.chunks);
                all.files = all.files.max(met.files);
                all.rewrites += met.rewrites;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println!("{all:?}");
    if std::env::var_os("ERIS_SEED").is_none() {
        assert!(all.chunks > 20 && all.files > 8 && all.rewrites > 100);
    }
}

#[test]
fn each_mistake_is_found() {
    for mistake in [
        Mistake::FileNotFlushed,
        Mistake::DirectoryNotFlushed,
        Mistake::FileFlushTriedAgain,
        Mistake::DirectoryFlushTriedAgain,
    ] {
        let found = (0..3_000).try_for_each(|seed| match history(seed, mistake) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break((seed, error)),
        });
        let (seed, error) =
            (found.break_value()).unwrap_or_else(|| panic!("{mistake:?} is not found"));
        println!("{mistake:?} is found with seed {seed}: {error}");
    }
}

/// One process that does a bit of everything, after others have left something to be written anew.
fn one(disk: &SimulatedDisk, known: &mut Known) -> Result<(), String> {
    let mut random = Random::new(5);
    if let Ok(mut process) = Process::start(Arc::new(disk.clone()), known)? {
        for _ in 0..50 {
            process.act(known, &mut random)?;
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
        let disk = disk.kill();
        (disk, known)
    };
    let (disk, mut known) = prepared();
    let before = disk.list(Path::new("chunks")).unwrap();
    one(&disk, &mut known).unwrap();
    let after = disk.list(Path::new("chunks")).unwrap();
    assert!(before.len() > 1 && before.iter().any(|file| !after.contains(file)));
    for nth in 1..=disk.counts().total() {
        for fault in [Fault::at(nth), Fault::at(nth).full(), Fault::at(nth).stop()] {
            let (disk, mut known) = prepared();
            disk.plan(fault);
            one(&disk, &mut known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            for found in [
                disk.kill(),
                disk.crash(),
                disk.crash(),
                disk.crash(),
                disk.crash(),
            ] {
                look(&found, &known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            }
            // And whoever goes on from there, whatever happens then.
            let found = disk.kill();
            found.plan(Fault::at(1 + nth % 40).stop());
            let gone_on = one(&found, &mut known).and_then(|()| look(&found.crash(), &known));
            gone_on.unwrap_or_else(|error| panic!("operation {nth}, and on: {error}"));
        }
    }
}

/// Copies that are torn though what follows them is there are not taken.
#[test]
fn copies_count_once_all_of_them_are_on_the_medium() {
    let (disk, mut known) = (SimulatedDisk::new(2), Known::default());
    let begin = |disk: &SimulatedDisk, known: &Known| {
        Process::start(Arc::new(disk.clone()), known).map(Result::unwrap)
    };
    let mut process = begin(&disk, &known).unwrap();
    known.referred_to = (0..30).filter_map(|_| process.push().ok()).collect();
    process.close(&mut known);
    drop(process);
    known.referred_to.retain(|number| number % 3 == 0);
    let before = disk.kill();
    for nth in 1.. {
        let disk = before.kill();
        let process = begin(&disk, &known).unwrap();
        disk.plan(Fault::at(nth).stop());
        let copied = process.rewrite_all();
        for _ in 0..30 {
            look(&disk.crash(), &known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
        }
        if copied.is_ok() {
            assert!(nth > 20, "{nth} operations");
            return;
        }
    }
}

#[test]
fn a_rewrite_that_has_failed_is_not_tried_again_and_loses_nothing() {
    for nth in 1.. {
        let (disk, mut known) = (SimulatedDisk::new(2), Known::default());
        let mut process = Process::start(Arc::new(disk.clone()), &known)
            .unwrap()
            .unwrap();
        known.referred_to = (0..30).filter_map(|_| process.push().ok()).collect();
        process.close(&mut known);
        known.referred_to.retain(|number| number % 3 == 0);
        let stays = |number| known.referred_to.contains(&number);
        process.files.retain(stays).unwrap();
        let mut rewrite = process.files.rewrite(SMALL).expect("little is in use");
        disk.plan(Fault::at(nth));
        let copied = loop {
            match rewrite.step() {
                Ok(false) => {}
                copied => break copied,
            }
        };
        let Err(error) = copied else {
            assert!(nth > 10, "{nth} operations");
            return;
        };
        // The disk has recovered.
        assert_eq!(rewrite.step().unwrap_err().to_string(), error.to_string());
        drop(rewrite);
        process.rewrite_all().unwrap();
        let is_there = |number| check(&process.files, number).is_ok();
        assert!(known.referred_to.iter().copied().all(is_there));
        look(&disk.crash(), &known).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
    }
}
