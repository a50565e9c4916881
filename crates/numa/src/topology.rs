//! The topology of a machine as a value: nodes, their CPUs, memory and distances, and where the AEUs work.

use crate::caches::Cache;
use crate::error::TopologyError;
use crate::pages::PageSizes;
use crate::profile::{Profile, ProfileError};
use eris_types::{AeuId, NodeId};
use serde::Serialize;
use std::sync::Arc;

/// Distances as firmware reports them when it has measured nothing.
pub(crate) const LOCAL: u32 = 10;
pub(crate) const REMOTE: u32 = 20;

/// Nodes, and the places of the AEUs on them. A plain value: cloning or changing one moves nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    pub(crate) aeus: Vec<AeuPlace>,
    pub(crate) fake: bool,
    pub(crate) caches: Vec<Cache>,
    pub(crate) page_sizes: PageSizes,
    /// Per node: CPUs in the order in which AEUs are bound to them; every core's first thread before any second one.
    #[serde(skip)]
    pub(crate) pin_order: Vec<Vec<u32>>,
    /// Per node: physical cores, the number of AEUs it gets by itself.
    pub(crate) cores: Vec<u32>,
    /// The machine whose links are imitated; `None`: links are as fast as they are.
    #[serde(skip)]
    pub(crate) machine: Option<Arc<Profile>>,
    /// Links are as slow as that machine's.
    #[serde(skip)]
    pub(crate) paced: bool,
}

/// A NUMA node (the paper's *multiprocessor*).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Dense from zero.
    pub id: NodeId,
    /// The operating system's number of the node whose memory this is; `None` on a fake topology.
    pub os_node: Option<u32>,
    /// CPUs (hardware threads) of this node that this process may use, ascending. Empty if the node has memory alone,
    /// and on a fake topology whose AEUs are not bound.
    pub cpus: Vec<u32>,
    /// Installed memory in bytes; on a fake topology an equal share of the machine's.
    pub memory_bytes: u64,
    /// The firmware's distance to every node by [`NodeId`], 10 to itself.
    pub distances: Vec<u32>,
}

/// Where one AEU works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AeuPlace {
    /// Dense from zero, ascending with the node.
    pub aeu: AeuId,
    /// The node whose memory is local to it.
    pub node: NodeId,
    /// The CPU it is bound to; `None`: not bound, the operating system moves it.
    pub cpu: Option<u32>,
}

impl Topology {
    /// The same nodes with `n` AEUs, spread over the nodes in proportion to their cores.
    ///
    /// They stay bound to CPUs of their node as long as every node has one for each of them: first one per core, then
    /// the cores' further hardware threads. Beyond that none is bound.
    ///
    /// # Errors
    /// [`TopologyError::AeuCount`] if `n` is zero or more than 65,535.
    pub fn with_aeus(mut self, n: usize) -> Result<Self, TopologyError> {
        if n == 0 || n > usize::from(u16::MAX) {
            return Err(TopologyError::AeuCount { asked: n });
        }
        let mut shares = vec![0u32; self.nodes.len()];
        for _ in 0..n {
            // The node that would be loaded least with one more; the first one among equals. Compared as fractions
            // (share + 1) / cores without dividing.
            let next = (0..shares.len())
                .filter(|&i| self.cores[i] > 0)
                .min_by(|&a, &b| {
                    let load =
                        |i: usize, j: usize| u64::from(shares[i] + 1) * u64::from(self.cores[j]);
                    load(a, b).cmp(&load(b, a))
                })
                .ok_or(TopologyError::NoCpus)?;
            shares[next] += 1;
        }
        self.aeus = place(&shares, &self.pin_order);
        Ok(self)
    }

    /// All nodes, by [`NodeId`]; at least one.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All AEUs, by [`AeuId`]; at least one. A node without CPUs has none.
    pub fn aeus(&self) -> &[AeuPlace] {
        &self.aeus
    }

    /// Whether the nodes are logical ones only.
    pub fn is_fake(&self) -> bool {
        self.fake
    }

    /// The node on which an AEU works.
    ///
    /// # Panics
    /// If this topology has no such AEU.
    pub fn node_of(&self, aeu: AeuId) -> NodeId {
        self.aeus[aeu.index()].node
    }

    /// The kinds of CPU caches, the innermost first. Empty if the machine does not tell.
    pub fn caches(&self) -> &[Cache] {
        &self.caches
    }

    /// The machine's page sizes.
    pub fn page_sizes(&self) -> &PageSizes {
        &self.page_sizes
    }

    /// Physical cores of a node, as far as this process may use them; on a fake topology the logical ones.
    ///
    /// # Panics
    /// If this topology has no such node.
    pub fn cores_of(&self, node: NodeId) -> u32 {
        self.cores[node.index()]
    }

    /// Installed memory of all nodes in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.memory_bytes).sum()
    }

    /// The same nodes, as far apart as the first ones of another machine, and [`Links`](crate::Links) between them as
    /// slow as its. See [`Topology::planned_as`].
    ///
    /// # Errors
    /// The same.
    pub fn paced_as(self, machine: Arc<Profile>) -> Result<Self, ProfileError> {
        let mut planned = self.planned_as(machine)?;
        planned.paced = true;
        Ok(planned)
    }

    /// The same nodes, with what is known of the first ones of another machine: distances follow its latencies. AEUs
    /// and their places stay, and links are as fast as they are.
    ///
    /// # Errors
    /// [`ProfileError::FewNodes`] if that machine has fewer nodes.
    pub fn planned_as(mut self, machine: Arc<Profile>) -> Result<Self, ProfileError> {
        if machine.nodes() < self.nodes.len() {
            return Err(ProfileError::FewNodes {
                machine: machine.name.clone(),
                has: machine.nodes(),
                needed: self.nodes.len(),
            });
        }
        for node in &mut self.nodes {
            let local = machine.link(node.id, node.id).nanoseconds;
            for (home, distance) in node.distances.iter_mut().enumerate() {
                let remote = machine.link(node.id, NodeId(home as u16)).nanoseconds;
                *distance = (f64::from(LOCAL) * remote / local).round() as u32;
            }
        }
        self.machine = Some(machine);
        Ok(self)
    }

    /// Whether links are as slow as those of the machine.
    pub fn is_paced(&self) -> bool {
        self.paced
    }

    /// The machine of which nodes and links are known, if it is not this one.
    pub fn machine(&self) -> Option<&Arc<Profile>> {
        self.machine.as_ref()
    }

    /// One AEU per physical core.
    pub(crate) fn with_aeu_per_core(mut self) -> Result<Self, TopologyError> {
        let cores: usize = self.cores.iter().map(|&c| c as usize).sum();
        if cores == 0 {
            return Err(TopologyError::NoCpus);
        }
        if cores > usize::from(u16::MAX) {
            return Err(TopologyError::AeuCount { asked: cores });
        }
        self.aeus = place(&self.cores, &self.pin_order);
        Ok(self)
    }

    /// Counts no memory of nodes outside of `allowed` (the cgroup's cpuset), and leaves them out if they had nothing
    /// else.
    pub(crate) fn withhold_memory(&mut self, allowed: &[u32]) {
        for node in &mut self.nodes {
            if node.os_node.is_some_and(|os| !allowed.contains(&os)) {
                node.memory_bytes = 0;
            }
        }
        self.retain_nodes(|node| !node.cpus.is_empty() || node.memory_bytes > 0);
    }

    /// Keeps the nodes that `keep` names, numbers them anew and cuts the distances accordingly. The AEUs must all be
    /// on kept nodes.
    pub(crate) fn retain_nodes(&mut self, keep: impl Fn(&Node) -> bool) {
        let kept: Vec<usize> = (0..self.nodes.len())
            .filter(|&i| keep(&self.nodes[i]))
            .collect();
        let pick = |i: usize, node: &Node| Node {
            id: NodeId(i as u16),
            distances: kept.iter().map(|&to| node.distances[to]).collect(),
            ..node.clone()
        };
        self.nodes = kept
            .iter()
            .enumerate()
            .map(|(i, &old)| pick(i, &self.nodes[old]))
            .collect();
        self.pin_order = kept
            .iter()
            .map(|&old| std::mem::take(&mut self.pin_order[old]))
            .collect();
        self.cores = kept.iter().map(|&old| self.cores[old]).collect();
        for place in &mut self.aeus {
            let new = kept.iter().position(|&old| old == place.node.index());
            place.node = NodeId(new.expect("a node with an AEU was left out") as u16);
        }
    }
}

/// Numbers `shares[node]` AEUs node by node, bound if every node has a CPU for each of its AEUs.
pub(crate) fn place(shares: &[u32], pin_order: &[Vec<u32>]) -> Vec<AeuPlace> {
    let bound = shares
        .iter()
        .zip(pin_order)
        .all(|(&share, cpus)| share as usize <= cpus.len());
    let seats = shares
        .iter()
        .enumerate()
        .flat_map(|(node, &share)| (0..share as usize).map(move |i| (node, i)));
    let place = |(aeu, (node, i)): (usize, (usize, usize))| AeuPlace {
        aeu: AeuId(aeu as u16),
        node: NodeId(node as u16),
        cpu: bound.then(|| pin_order[node][i]),
    };
    seats.enumerate().map(place).collect()
}
