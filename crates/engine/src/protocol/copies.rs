//! What a fragment looks its rows up in, once for each node.
//!
//! ```text
//! build side ──▶ client compiles it ──▶ node 0: the first AEU that begins compiles it again ──▶ keys, values, tables
//!                                       node 1: the same, in its own memory
//! ```
//!
//! A table is looked at for every row that is scanned, at a place that nobody can foretell. If it is larger than what
//! the caches of a core keep, each look goes to memory: so it should be the memory of the node (ERIS paper,
//! Section 3.1). Numbers of keys and of combinations follow the order of the build side's rows. So they are the same in
//! all copies, and groups by them can be merged.
//!
//! When that is done, and what it costs: docs/decisions/0032.

use crate::object::data_object::DataObject;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use eris_column::Dictionary;
use eris_exec::{Program, TableMemory};
use eris_fragment::{Fragment, KeySet};
use eris_home::BUFFERS;
use eris_numa::{NodeAccount, NodeMemory, NodeReservation};
use std::sync::{Arc, OnceLock};

/// Smaller build sides stay in the second-level cache of each core, which is a copy already, in bytes.
const CACHED_BYTES: usize = 1 << 20;

/// What a row of a build side takes beside its values: its key as an integer, and its number.
const BYTES_PER_ROW: usize = 16;

/// A program for each node.
pub(crate) struct Copies {
    fragment: Fragment,
    object: Arc<DataObject>,
    dictionaries: Vec<Option<Dictionary>>,
    /// What one of them takes beside its tables.
    bytes: u64,
    /// Made by whoever begins first on a node; the others of the node wait. `None`: there was no memory.
    of_nodes: Box<[OnceLock<Option<Copy>>]>,
}

struct Copy {
    program: Arc<Program>,
    _reserved: NodeReservation,
}

impl Copies {
    /// For so many nodes; `None` if one program does for all.
    pub fn new(
        fragment: &Fragment,
        object: &Arc<DataObject>,
        dictionaries: &[Option<Dictionary>],
        nodes: usize,
    ) -> Option<Self> {
        if nodes < 2 {
            return None;
        }
        let sides = fragment.lookups.iter().map(|lookup| {
            let values = lookup.rows.get_array_memory_size();
            values + BYTES_PER_ROW * lookup.rows.num_rows()
        });
        let sets = fragment.probes.iter().map(|probe| set_bytes(&probe.keys));
        let bytes = sides.chain(sets).sum::<usize>();
        (bytes > CACHED_BYTES).then(|| Copies {
            fragment: fragment.clone(),
            object: object.clone(),
            dictionaries: dictionaries.to_vec(),
            bytes: bytes as u64,
            of_nodes: (0..nodes).map(|_| OnceLock::new()).collect(),
        })
    }

    /// The program of the caller's node; `None` if the node has no memory for it.
    pub fn on(&self, memory: &NodeMemory, account: &NodeAccount) -> Option<Arc<Program>> {
        let copy = &self.of_nodes[memory.node().index()];
        let copy = copy.get_or_init(|| self.make(memory, account));
        copy.as_ref().map(|copy| copy.program.clone())
    }

    fn make(&self, memory: &NodeMemory, account: &NodeAccount) -> Option<Copy> {
        let reserved = account.try_reserve(self.bytes).ok()?;
        let lookups = self.fragment.lookups.iter();
        let lookups = lookups.map(|lookup| Some(lookup.with_copy(copied(&lookup.rows)?)));
        let fragment = Fragment {
            lookups: lookups.collect::<Option<_>>()?,
            ..self.fragment.clone()
        };
        let tables = TableMemory {
            memory: memory.clone(),
            object: BUFFERS,
        };
        let (schema, dictionaries) = (&self.object.schema, &self.dictionaries);
        let program = Program::compile_on(&fragment, schema, dictionaries, Some(&tables));
        Some(Copy {
            program: Arc::new(program.ok()?),
            _reserved: reserved,
        })
    }
}

/// The rows, written anew by the thread that is here, and so into its node's memory. Strings of more than a few bytes
/// stay where they are: they are only handed out.
fn copied(rows: &RecordBatch) -> Option<RecordBatch> {
    let all = UInt32Array::from_iter_values(0..rows.num_rows() as u32);
    take_record_batch(rows, &all).ok()
}

fn set_bytes(keys: &KeySet) -> usize {
    match keys {
        KeySet::Range { .. } => 0,
        KeySet::Bitmap { words, .. } => size_of_val(&words[..]),
        KeySet::Integers(keys) => size_of_val(&keys[..]),
        KeySet::Strings(keys) => keys.iter().map(|key| size_of::<String>() + key.len()).sum(),
    }
}
