//! Measuring the machine gives plausible numbers for every pair, in time.

use eris_numa::measure::{MeasureError, Measurements, Options, ReadBandwidth, measure};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{AeuId, NodeId};
use std::time::Duration;

fn options() -> Options {
    Options {
        time: Duration::from_millis(300),
        runs: 3,
        buffer_bytes: Some(16 << 20),
    }
}

#[test]
fn every_pair_of_a_made_up_topology_is_measured() {
    let topology = Topology::fake(2, 1);
    let memory = Memory::new(&topology, HugePages::Auto, Some(64 << 20)).unwrap();
    let measured = measure(&topology, &memory, &options()).unwrap();
    let pairs: Vec<_> = measured
        .pairs
        .iter()
        .map(|p| (p.source.0, p.home.0, p.distance))
        .collect();
    assert_eq!(pairs, [(0, 0, 10), (0, 1, 20), (1, 0, 20), (1, 1, 10)]);
    for pair in &measured.pairs {
        assert!(
            pair.bandwidth.min > 0.0 && pair.bandwidth.max < 1e13,
            "{pair:?}"
        );
        assert!(pair.latency.min > 0.5, "{pair:?}");
        assert!(
            pair.bandwidth.min <= pair.bandwidth.median
                && pair.bandwidth.median <= pair.bandwidth.max
        );
        assert_eq!((pair.threads, pair.latency.runs.len()), (1, 3));
    }
    assert_eq!(memory.budget().used(), 0);
}

#[test]
fn a_pair_that_was_not_measured_is_like_the_next_best() {
    let topology = Topology::fake(2, 1);
    let memory = Memory::new(&topology, HugePages::Auto, Some(64 << 20)).unwrap();
    let mut measured = measure(&topology, &memory, &options()).unwrap();
    let (a, b) = (NodeId(0), NodeId(1));
    measured.pairs[0].latency.median = 80.0;
    measured.pairs[1].latency.median = 130.0;
    measured.pairs.truncate(2);
    let latency = |source, home| measured.latency_nanoseconds(&topology, source, home);
    assert_eq!(
        [latency(a, a), latency(a, b), latency(b, a), latency(b, b)],
        [80.0, 130.0, 130.0, 80.0]
    );
    assert_eq!(
        measured.bandwidth(&topology, b, b),
        measured.pairs[0].bandwidth.median
    );
    let text = serde_json::to_string(&measured).unwrap();
    let stored: Measurements = serde_json::from_str(&text).unwrap();
    assert_eq!(stored.latency_nanoseconds(&topology, b, a), 130.0);
    assert_eq!(stored.pairs[1].latency.runs.len(), 3);
}

#[test]
fn without_memory_there_is_an_error_and_nothing_is_kept() {
    let topology = Topology::fake(1, 1);
    let memory = Memory::new(&topology, HugePages::Auto, Some(1 << 20)).unwrap();
    let error = measure(&topology, &memory, &options()).unwrap_err();
    assert!(matches!(error, MeasureError::Memory(_)), "{error}");
    assert_eq!(memory.budget().used(), 0);
}

#[test]
fn what_aeus_read_adds_up_to_what_their_nodes_deliver() {
    let topology = Topology::fake(2, 2);
    let memory = Memory::new(&topology, HugePages::Auto, Some(1 << 30)).unwrap();
    let measured = ReadBandwidth::measure(&topology, &memory).unwrap();
    let of = |aeu| measured.of_aeu(AeuId(aeu));
    assert!(
        (0..4).all(|aeu| of(aeu) > 1e6 && of(aeu) < 1e13),
        "{measured:?}"
    );
    assert_eq!(measured.of_node(NodeId(0)), of(0) + of(1));
    assert_eq!(measured.of_node(NodeId(1)), of(2) + of(3));
    assert_eq!((of(4), measured.of_node(NodeId(2))), (0.0, 0.0));
    assert_eq!(memory.budget().used(), 0, "given back");
    let little = Memory::new(&topology, HugePages::Auto, Some(1 << 20)).unwrap();
    let denied = ReadBandwidth::measure(&topology, &little);
    assert!(matches!(denied, Err(MeasureError::Memory(_))), "{denied:?}");
}
