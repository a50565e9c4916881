//! The process really shrinks when buffers are dropped. In a process of its own, for its size is what is looked at.

#![cfg(not(miri))]

use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::sync::Mutex;

const MODES: [HugePages; 3] = [HugePages::Auto, HugePages::Always, HugePages::Never];

/// One test at a time.
static PROCESS: Mutex<()> = Mutex::new(());

fn memory(huge: HugePages) -> Memory {
    Memory::new(&Topology::fake(1, 1), huge, Some(1 << 30)).unwrap()
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_dropped_buffer_leaves_the_process() {
    const BYTES: usize = 256 << 20;
    let _alone = PROCESS.lock().unwrap();
    for huge in MODES {
        let memory = memory(huge);
        let before = resident();
        let mut large = memory.node(NodeId(0)).allocate(ObjectId(1), BYTES).unwrap();
        assert!(
            resident() < before + BYTES as u64 / 2,
            "pages come when they are touched"
        );
        large.as_mut_slice::<u64>().fill(1);
        let full = resident();
        assert!(full > before + BYTES as u64 * 9 / 10, "{before} to {full}");
        drop(large);
        assert!(
            resident() < before + BYTES as u64 / 4,
            "{huge:?}: {before} to {full} to {}",
            resident()
        );
    }
}

#[test]
fn many_dropped_runs_leave_the_process_although_others_stay() {
    const COUNT: usize = 4096;
    const BYTES: usize = 64 << 10;
    let _alone = PROCESS.lock().unwrap();
    let memory = memory(HugePages::Never);
    let before = resident();
    let fill = |_| {
        let mut buffer = memory.node(NodeId(0)).allocate(ObjectId(1), BYTES).unwrap();
        buffer.as_mut_slice::<u64>().fill(1);
        buffer
    };
    let mut all: Vec<_> = (0..COUNT).map(fill).collect();
    let full = resident();
    assert!(full > before + (COUNT * BYTES) as u64 * 9 / 10);
    // Every fourth one stays, so that no region becomes empty.
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        index % 4 == 0
    });
    let kept = (COUNT * BYTES / 4) as u64;
    // What lies idle is bounded by an eighth of the regions (or 32 MiB).
    assert!(
        resident() < before + kept + (COUNT * BYTES / 8) as u64 + (32 << 20),
        "{before} {full} {}",
        resident()
    );
    memory.trim();
    assert!(
        resident() < before + kept + (32 << 20),
        "{before} {full} {}",
        resident()
    );
    assert!(
        all.iter()
            .all(|buffer| buffer.as_slice::<u64>().iter().all(|&word| word == 1))
    );
    drop(all);
    assert_eq!(memory.node(NodeId(0)).mapped_bytes(), 0);
}
