//! A machine that is imitated, slower by a factor.

use eris_numa::{Arrival, Link, PacedLink, Profile};
use eris_types::NodeId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Links and memory controllers of some nodes.
pub(super) struct SlowMachine {
    nodes: usize,
    /// By source, then home.
    links: Vec<PacedLink>,
    controllers: Vec<PacedLink>,
    /// Bytes that went from node to node.
    crossed: AtomicU64,
    /// Links are slower by so much.
    pub factor: f64,
}

/// When the bytes of one request are there.
#[must_use = "bytes that nobody waits for are there at once"]
pub(super) struct Request(Vec<Arrival>);

impl Request {
    pub fn wait(self) {
        self.0.into_iter().for_each(Arrival::wait);
    }
}

impl SlowMachine {
    pub fn new(profile: &Profile, nodes: usize, factor: f64) -> Self {
        let link = |source: usize, home: usize| {
            profile
                .link(NodeId(source as u16), NodeId(home as u16))
                .clone()
        };
        let slow = |link: Link| {
            PacedLink::new(&Link {
                gigabytes_per_second: link.gigabytes_per_second / factor,
                nanoseconds: link.nanoseconds * factor,
                ..link
            })
        };
        let pairs = (0..nodes).flat_map(|source| (0..nodes).map(move |home| (source, home)));
        SlowMachine {
            nodes,
            links: pairs
                .map(|(source, home)| slow(link(source, home)))
                .collect(),
            controllers: (0..nodes)
                .map(|home| {
                    // The time of a request is that of the link.
                    slow(Link {
                        nanoseconds: 0.0,
                        ..link(home, home)
                    })
                })
                .collect(),
            crossed: AtomicU64::new(0),
            factor,
        }
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Asks for bytes of one home.
    pub fn request(&self, source: usize, home: usize, bytes: u64) -> Request {
        let mut all = Request(Vec::with_capacity(2));
        self.ask(source, home, bytes, &mut all);
        all
    }

    /// Asks for bytes that lie on all nodes in turns.
    pub fn request_interleaved(&self, source: usize, bytes: u64) -> Request {
        let mut all = Request(Vec::with_capacity(2 * self.nodes));
        let each = bytes / self.nodes as u64;
        (0..self.nodes).for_each(|home| self.ask(source, home, each, &mut all));
        all
    }

    /// Commands go to all other nodes, and answers come back, from cache to cache. Nobody waits for them, but they take
    /// their part of the links.
    pub fn exchange(&self, source: usize, command_bytes: u64, answer_bytes: u64) {
        for other in (0..self.nodes).filter(|&other| other != source) {
            for (from, to, bytes) in [
                (other, source, command_bytes),
                (source, other, answer_bytes),
            ] {
                self.crossed.fetch_add(bytes, Relaxed);
                let _ = self.links[from * self.nodes + to].request(bytes);
            }
        }
    }

    fn ask(&self, source: usize, home: usize, bytes: u64, all: &mut Request) {
        if source != home {
            self.crossed.fetch_add(bytes, Relaxed);
        }
        all.0.push(self.controllers[home].request(bytes));
        all.0
            .push(self.links[source * self.nodes + home].request(bytes));
    }

    /// Bytes that went from node to node since the last call.
    pub fn take_crossed(&self) -> u64 {
        self.crossed.swap(0, Relaxed)
    }
}
