//! The keys that one AEU owns.

use super::batch::{KeyBatch, Operation};
use crate::reorganize::{Reorganizable, Watched};
use eris_numa::NodeMemory;
use eris_route::Header;
use eris_types::ObjectId;

/// Lookups of fewer keys than this gain by being done together with others.
const FEW: usize = 32;

/// The part of an index that belongs to one AEU.
pub(crate) struct OwnedKeys {
    tree: Watched<u64>,
    /// Keys of several batches, and their values.
    keys: Vec<u64>,
    values: Vec<Option<u64>>,
}

impl OwnedKeys {
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        OwnedKeys {
            tree: Watched::new(memory, object),
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// For what has nothing to do with the keys.
    pub fn index(&mut self) -> &mut dyn Reorganizable {
        &mut self.tree
    }

    /// Executes batches in their order; small lookups that follow each other become one.
    pub fn execute(&mut self, batches: &mut [(Header, Box<KeyBatch>)]) {
        let is_few =
            |batch: &KeyBatch| matches!(batch.operation, Operation::Get) && batch.keys.len() < FEW;
        for run in batches.chunk_by_mut(|a, b| is_few(&a.1) && is_few(&b.1)) {
            match run {
                [(_, batch)] => self.execute_one(batch),
                lookups => self.get_together(lookups),
            }
        }
    }

    fn execute_one(&mut self, batch: &mut KeyBatch) {
        let KeyBatch {
            operation,
            keys,
            entries,
            values,
            failure,
            ..
        } = batch;
        match *operation {
            Operation::Get => {
                values.resize(keys.len(), None);
                self.tree.get_many(keys, values);
            }
            Operation::Put => {
                values.resize(entries.len(), None);
                *failure = self
                    .tree
                    .upsert_many(entries, values)
                    .err()
                    .map(|e| e.error);
            }
            Operation::Remove => {
                values.resize(keys.len(), None);
                self.tree.remove_many(keys, values);
            }
            Operation::Range { first, last, limit } => {
                entries.extend(self.tree.range(first..=last).take(limit));
            }
        }
    }

    fn get_together(&mut self, lookups: &mut [(Header, Box<KeyBatch>)]) {
        self.keys.clear();
        for (_, batch) in lookups.iter() {
            self.keys.extend_from_slice(&batch.keys);
        }
        self.values.clear();
        self.values.resize(self.keys.len(), None);
        self.tree.get_many(&self.keys, &mut self.values);
        let mut rest = &self.values[..];
        for (_, batch) in lookups {
            let (values, others) = rest.split_at(batch.keys.len());
            batch.values.extend_from_slice(values);
            rest = others;
        }
    }
}
