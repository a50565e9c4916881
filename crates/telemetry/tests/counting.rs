//! Counters keep apart by AEU and rank, add up, and can be read while they are written.

use eris_telemetry::{AeuSnapshot, Snapshot, Telemetry};
use eris_types::{AeuId, NodeId};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn counts_stay_with_their_aeu_and_rank() {
    let telemetry = Telemetry::new(3);
    telemetry.of(AeuId(1)).received[2].add(5);
    telemetry.of(AeuId(1)).rows_scanned.add(65_536);
    telemetry.of(AeuId(2)).rows_scanned.increment();
    let snapshot = telemetry.snapshot();
    assert_eq!(snapshot.aeus[0], AeuSnapshot::default());
    assert_eq!(snapshot.aeus[1].received, [0, 0, 5, 0]);
    assert_eq!(snapshot.total().rows_scanned, 65_537);
    assert_eq!(snapshot.total().received, [0, 0, 5, 0]);
}

#[test]
fn what_was_counted_since_an_earlier_snapshot() {
    let telemetry = Telemetry::new(2);
    telemetry.of(AeuId(0)).tasks.add(7);
    telemetry.of(AeuId(0)).sent[3].add(1);
    let earlier = telemetry.snapshot();
    telemetry.of(AeuId(0)).tasks.add(2);
    telemetry.of(AeuId(1)).sent[3].add(4);
    let since = telemetry.snapshot().since(&earlier);
    assert_eq!(
        since.aeus[0],
        AeuSnapshot {
            tasks: 2,
            ..Default::default()
        }
    );
    assert_eq!(
        since.aeus[1],
        AeuSnapshot {
            sent: [0, 0, 0, 4],
            ..Default::default()
        }
    );
}

#[test]
fn counters_wrap_around_and_differences_stay_right() {
    let telemetry = Telemetry::new(1);
    telemetry.of(AeuId(0)).busy_nanoseconds.add(u64::MAX);
    let earlier = telemetry.snapshot();
    telemetry.of(AeuId(0)).busy_nanoseconds.add(3);
    assert_eq!(telemetry.snapshot().aeus[0].busy_nanoseconds, 2);
    assert_eq!(
        telemetry.snapshot().since(&earlier).aeus[0].busy_nanoseconds,
        3
    );
}

#[test]
#[should_panic(expected = "snapshots of one engine")]
fn snapshots_of_different_engines_cannot_be_subtracted() {
    Telemetry::new(2).snapshot().since(&Snapshot::default());
}

#[test]
fn one_counts_while_another_reads() {
    const COUNTS: u64 = 100_000;
    let telemetry = Telemetry::new(2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u16)
            .map(|aeu| {
                let telemetry = telemetry.clone();
                scope.spawn(move || {
                    (0..COUNTS).for_each(|_| telemetry.of(AeuId(aeu)).slices.increment())
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let now = telemetry.snapshot().total().slices;
                assert!(
                    now >= last,
                    "counters never run backwards: {now} after {last}"
                );
                last = now;
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(telemetry.snapshot().total().slices, 2 * COUNTS);
}

#[test]
fn neighbours_share_no_cache_line() {
    let telemetry = Telemetry::new(2);
    let address = |aeu| std::ptr::from_ref(telemetry.of(AeuId(aeu))).addr();
    assert!(address(0).is_multiple_of(64));
    assert!(
        address(1) - address(0) >= size_of::<eris_telemetry::AeuCounters>().next_multiple_of(64)
    );
}

#[test]
fn what_crosses_is_counted_by_node_and_kind() {
    let telemetry = Telemetry::new(1);
    let crossed = &telemetry.of(AeuId(0)).crossed;
    assert_eq!(crossed.read().count(), 0);
    for (node, kind, bytes) in [(2, 1, 100), (0, 7, 5), (2, 1, 11)] {
        crossed.add(3, NodeId(node), kind, bytes);
    }
    let all: Vec<_> = crossed.read().collect();
    assert_eq!(all, [(NodeId(0), 7, 1, 5), (NodeId(2), 1, 2, 111)]);
}
