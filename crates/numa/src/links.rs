//! The links between the nodes of a topology: as fast as they are, or paced as those of another machine.
//!
//! ```text
//!            home 0    home 1
//! source 0      ─      ▓ paced      a token bucket and a latency per ordered pair of nodes; none within a node
//! source 1   ▓ paced      ─
//! ```

use crate::paced::{Arrival, PacedLink};
use crate::topology::Topology;
use eris_types::NodeId;

/// The links of a topology. Shared by all who read other nodes' memory.
#[derive(Debug)]
pub struct Links {
    nodes: usize,
    /// By source, then home; empty if nothing is paced.
    paced: Box<[Option<PacedLink>]>,
}

impl Links {
    /// The links of this topology; [paced](Topology::paced_as) if it imitates a machine.
    pub fn of(topology: &Topology) -> Self {
        let nodes = || topology.nodes().iter().map(|node| node.id);
        let machine = topology.machine().filter(|_| topology.is_paced());
        let paced = machine.map(|machine| {
            let pairs = nodes().flat_map(|source| nodes().map(move |home| (source, home)));
            let link = |(source, home)| {
                (source != home).then(|| PacedLink::new(machine.link(source, home)))
            };
            pairs.map(link).collect()
        });
        Links {
            nodes: topology.nodes().len(),
            paced: paced.unwrap_or_default(),
        }
    }

    /// Asks for bytes of `home` from a core of `source`. Without pacing they are there at once: loads take as long as
    /// they take.
    pub fn request(&self, source: NodeId, home: NodeId, bytes: u64) -> Arrival {
        let link = self.paced.get(source.index() * self.nodes + home.index());
        match link {
            Some(Some(link)) => link.request(bytes),
            _ => Arrival::NOW,
        }
    }

    /// Seconds that so many bytes take on a link that nobody else uses; 0 if it is not paced.
    pub fn seconds(&self, source: NodeId, home: NodeId, bytes: u64) -> f64 {
        let link = self.paced.get(source.index() * self.nodes + home.index());
        link.and_then(Option::as_ref)
            .map_or(0.0, |link| link.seconds(bytes))
    }

    /// Whether they are paced.
    pub fn are_paced(&self) -> bool {
        !self.paced.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[test]
    fn only_links_between_nodes_are_paced_and_only_of_a_given_machine() {
        let node = NodeId;
        let own = Links::of(&Topology::fake(2, 1));
        assert!(!own.are_paced() && own.request(node(0), node(1), 1 << 40).is_there());

        let amd = Arc::new(Profile::known("eris-amd").unwrap());
        let paced = Links::of(&Topology::fake(2, 1).paced_as(amd).unwrap());
        assert!(paced.are_paced() && paced.request(node(1), node(1), 1 << 40).is_there());
        let begun = Instant::now();
        let arrival = paced.request(node(0), node(1), 1 << 28);
        assert!(!arrival.is_there());
        arrival.wait();
        // At most 5.8 GB/s between processors.
        assert!(begun.elapsed() > Duration::from_millis(46));
    }

    #[test]
    fn distances_follow_the_machine_and_it_must_have_enough_nodes() {
        let sgi = Arc::new(Profile::known("eris-sgi").unwrap());
        let topology = Topology::fake(4, 2).paced_as(sgi).unwrap();
        assert_eq!(topology.nodes()[0].distances, [10, 49, 63, 63]);
        assert_eq!(topology.machine().unwrap().nodes(), 64);
        let intel = Arc::new(Profile::known("eris-intel").unwrap());
        let error = Topology::fake(5, 1).paced_as(intel).unwrap_err();
        assert!(
            error.to_string().contains("has 4 nodes, the topology 5"),
            "{error}"
        );
    }
}
