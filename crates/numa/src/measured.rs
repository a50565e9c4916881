//! A machine profile of what was measured.

use crate::measure::{Measurements, Pair};
use crate::profile::{Link, MOST_LINKS, Profile};
use crate::topology::Topology;
use eris_types::NodeId;
use std::collections::BTreeMap;

impl Profile {
    /// What has been measured, with one link per pair, or per distance if these are more than 36. A pair that was not
    /// measured has the link of the most similar one.
    pub fn measured(name: &str, topology: &Topology, measurements: &Measurements) -> Self {
        let nodes = topology.nodes();
        let by_pair = measurements.pairs.len() <= MOST_LINKS;
        let mut numbers = BTreeMap::new();
        let mut links = Vec::new();
        let mut number_of = |pair: &Pair| {
            let key = match by_pair {
                true => (pair.source.index(), pair.home.index()),
                false => (pair.distance as usize, 0),
            };
            *numbers.entry(key).or_insert_with(|| {
                links.push(Link {
                    name: match by_pair {
                        true => format!("{} to memory of {}", pair.source, pair.home),
                        false => format!("distance {}", pair.distance),
                    },
                    gigabytes_per_second: rounded(pair.bandwidth.median / 1e9),
                    nanoseconds: rounded(pair.latency.median),
                    copies: Vec::new(),
                });
                (links.len() - 1).min(MOST_LINKS - 1) as u8
            })
        };
        let mut line = |source: NodeId| -> Vec<u8> {
            let homes = nodes.iter();
            homes
                .map(|home| number_of(measurements.like(topology, source, home.id)))
                .collect()
        };
        let pairs = nodes.iter().map(|node| line(node.id)).collect();
        links.truncate(MOST_LINKS);
        let aeus = topology.aeus().len().div_ceil(nodes.len());
        Profile::new(
            name.to_owned(),
            format!("measured by eris {}", env!("CARGO_PKG_VERSION")),
            u16::try_from(aeus).unwrap_or(u16::MAX),
            pairs,
            links,
        )
    }
}

/// Three digits say all that a measurement knows.
fn rounded(number: f64) -> f64 {
    let unit = 10f64.powf(number.abs().max(1e-9).log10().floor() - 2.0);
    // Divided by a power of ten in the end, so that the file has no tail of nines.
    match unit < 1.0 {
        true => (number / unit).round() / (1.0 / unit).round(),
        false => (number / unit).round() * unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::CopyEngine;
    use crate::measure::Spread;
    use crate::profile::CopySpeed;
    use crate::speeds::Speeds;

    fn node(number: u16) -> NodeId {
        NodeId(number)
    }

    #[test]
    fn what_was_measured_is_read_again() {
        let topology = Topology::fake(2, 3);
        let spread = |number: f64| Spread {
            median: number,
            min: number,
            max: number,
            runs: vec![number],
        };
        let pair = |source, home, bandwidth, latency| Pair {
            source: node(source),
            home: node(home),
            distance: if source == home { 10 } else { 20 },
            threads: 3,
            bandwidth: spread(bandwidth),
            latency: spread(latency),
        };
        let measurements = Measurements {
            buffer_bytes: 1 << 20,
            pairs: vec![
                pair(0, 0, 24.123e9, 101.26),
                pair(0, 1, 8.0e9, 203.0),
                pair(1, 1, 23.0e9, 1234.0),
            ],
        };
        let profile = Profile::measured("here", &topology, &measurements);
        assert_eq!(profile.link(node(0), node(0)).gigabytes_per_second, 24.1);
        assert_eq!(profile.link(node(0), node(0)).nanoseconds, 101.0);
        // Not measured, but as far as the other way.
        assert_eq!(
            profile.link(node(1), node(0)),
            profile.link(node(0), node(1))
        );
        assert_eq!(profile.link(node(1), node(1)).nanoseconds, 1230.0);
        assert_eq!(profile.aeus_per_node, 3);
        assert_eq!(Profile::parse(&profile.to_toml(), "m").unwrap(), profile);
        let copy = CopySpeed {
            engine: CopyEngine::Streaming,
            block: 65536,
            gigabytes_per_second: 9.5,
        };
        let link = profile.link_number(node(0), node(1));
        let with_copies = profile.with_copies(vec![Vec::new(), vec![copy]]);
        assert_eq!(with_copies.links()[link].copies, [copy]);
        let with_speeds = with_copies.with_speeds(Speeds::usual());
        let read = Profile::parse(&with_speeds.to_toml(), "m").unwrap();
        assert_eq!(read, with_speeds);
    }
}
