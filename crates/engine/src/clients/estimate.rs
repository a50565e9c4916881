//! What a fragment is expected to take, by where its rows are worked on.

use super::shared::EngineState;
use crate::object::data_object::DataObject;
use crate::remote::Remote;
use eris_cost::spread::{Place, spread};
use eris_fragment::{Estimate, Fragment, NumaStrategy};
use eris_numa::Topology;
use eris_types::NodeId;

/// What one AEU scans per second, in bytes.
const SCAN: f64 = 8e9;

/// Help that ends later than at this share of the time is not worth a word.
const LITTLE: f64 = 0.9;

/// A block that is taken from another node, in bytes.
const BLOCK: f64 = (256 << 10) as f64;

impl EngineState {
    /// What a fragment would take on this engine now: by the bytes of its columns on each node, as far as statistics
    /// tell.
    /// `None` on one node, or if an owner would not be helped.
    pub fn estimate(&self, fragment: &Fragment, object: &DataObject) -> Option<Estimate> {
        if self.topology.nodes().len() < 2 {
            return None;
        }
        let scanners = self.scanners(object);
        let bytes = bytes_by_node(fragment, object, &self.topology);
        let places: Vec<Place> = (self.topology.nodes().iter().zip(bytes))
            .map(|(node, bytes)| Place {
                bytes,
                workers: scanners
                    .iter()
                    .filter(|(aeu, _)| self.topology.node_of(*aeu) == node.id)
                    .count() as f64,
            })
            .collect();
        Some(estimate(&places, &self.remote, fragment.options.strategy))
    }
}

/// Encoded bytes of the fragment's columns, by node.
fn bytes_by_node(fragment: &Fragment, object: &DataObject, topology: &Topology) -> Vec<f64> {
    let mut bytes = vec![0.0; topology.nodes().len()];
    for place in topology.aeus() {
        let statistics = object.partition_statistics(place.aeu);
        let columns = fragment.columns.iter();
        let columns = columns.filter_map(|column| statistics.columns.get(column.index()));
        let read: u64 = columns.map(|column| column.bytes).sum();
        bytes[place.node.index()] += read as f64;
    }
    bytes
}

fn estimate(places: &[Place], remote: &Remote, strategy: NumaStrategy) -> Estimate {
    let rate = |helper: usize, home: usize| {
        let way = remote.way(NodeId(helper as u16), NodeId(home as u16));
        way.rate(BLOCK, SCAN)
    };
    let spread = spread(places, SCAN, rate);
    // Who gains less does not show it.
    let gains = spread.pulled < LITTLE * spread.pushed;
    match strategy {
        NumaStrategy::Auto | NumaStrategy::Pull if gains => Estimate {
            pushed: spread.pushed,
            expected: spread.pulled,
            moved: spread.moved as u64,
        },
        _ => Estimate {
            pushed: spread.pushed,
            expected: spread.pushed,
            moved: 0,
        },
    }
}
