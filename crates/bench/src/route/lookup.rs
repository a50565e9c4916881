//! Commands that do something: each looks up one key in the index of the AEU that it is sent to. All of a group are
//! looked up as one batch, which is what sending them together is for.

use super::{BURST, COMMAND_WORDS, DATA, header, race};
use eris_aeu::{AeuContext, Group, Handler, Panicked, Slice};
use eris_index::Art;
use eris_numa::{HugePages, Memory, PinError, Topology};
use eris_route::{BufferSizes, Endpoint};
use eris_types::{AeuId, ObjectId};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Keys of each AEU.
const KEYS: u64 = 1 << 20;

/// The n-th key of an AEU: scattered over its range.
fn key(aeu: u16, n: u64) -> u64 {
    (u64::from(aeu) << 48) | (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16)
}

/// The tree of every AEU.
pub(super) fn trees(topology: &Topology) -> Result<Vec<Arc<Art<u64>>>, String> {
    let memory = Memory::new(topology, HugePages::Auto, None);
    let memory = memory.map_err(|error| error.to_string())?;
    let places = topology.aeus().iter();
    let trees = places.map(|place| {
        let mut tree = Art::new(memory.node(place.node), ObjectId(1));
        for n in 0..KEYS {
            let inserted = tree.insert(key(place.aeu.0, n), n);
            inserted.map_err(|error| error.to_string())?;
        }
        Ok(Arc::new(tree))
    });
    trees.collect()
}

/// Lookups per second of threads that look up keys of their own, without any routing.
pub(super) fn alone(
    topology: &Topology,
    time: Duration,
    trees: &[Arc<Art<u64>>],
) -> Result<f64, PinError> {
    let keys_at_once = BURST * trees.len();
    race(topology, time, |place| {
        let tree = &trees[place.aeu.index()];
        let mut state = u64::from(place.aeu.0);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        move || {
            keys.clear();
            keys.extend((0..keys_at_once).map(|_| key(place.aeu.0, next(&mut state) % KEYS)));
            values.clear();
            values.resize(keys.len(), None);
            tree.get_many(&keys, &mut values);
            black_box(values.iter().flatten().count())
        }
    })
}

/// The next random number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
    *state >> 32
}

/// An AEU that asks for keys of all AEUs in its task, and looks up what it is asked for.
pub(super) struct Lookups {
    tree: Arc<Art<u64>>,
    sizes: BufferSizes,
    state: u64,
    keys: Vec<u64>,
    values: Vec<Option<u64>>,
    pub seen: usize,
}

impl Lookups {
    pub fn new(tree: Arc<Art<u64>>, sizes: BufferSizes, aeu: AeuId) -> Self {
        Lookups {
            tree,
            sizes,
            state: u64::from(aeu.0),
            keys: Vec::new(),
            values: Vec::new(),
            seen: 0,
        }
    }
}

impl Handler for Lookups {
    type Task = ();
    type Parcel = ();

    fn execute(&mut self, _: ObjectId, _: u16, commands: Group<'_>, _: &mut AeuContext<'_, ()>) {
        self.keys.clear();
        self.keys.extend(commands.map(|command| command.words[0]));
        self.values.clear();
        self.values.resize(self.keys.len(), None);
        self.tree.get_many(&self.keys, &mut self.values);
        let found = self.values.iter().flatten().count();
        assert_eq!(found, self.keys.len(), "every key is there");
        self.seen += black_box(found);
    }

    fn run(&mut self, _: &mut (), cx: &mut AeuContext<'_, ()>) -> Slice {
        let aeus = cx.topology().aeus().len() as u16;
        for _ in 0..BURST.max(self.sizes.outgoing / COMMAND_WORDS) {
            for to in 0..aeus {
                let wanted = key(to, next(&mut self.state) % KEYS);
                let words = [wanted; DATA];
                cx.send(
                    Endpoint::aeu(AeuId(to)),
                    header(cx.id(), self.state),
                    &words,
                    None,
                );
            }
        }
        Slice::Done
    }

    fn idle(&mut self, _: &mut AeuContext<'_, ()>) -> bool {
        false
    }

    fn panicked(&mut self, _: Panicked<'_, ()>, message: &str, _: &mut AeuContext<'_, ()>) {
        unreachable!("nothing here panics: {message}");
    }
}
