//! What an owner says of a data object as a whole, and that it has to forget one.

use super::owner::Owner;
use crate::held::located::Located;
use crate::held::partition::Partition;
use crate::held::segment_view::FrozenSegment;
use crate::protocol::answers::{Done, Frozen, Indexes, LocatedParts, Segments};
use crate::protocol::asked::Asked;
use crate::protocol::callback::IndexNumber;
use crate::protocol::message::Context;
use crate::protocol::objects::{Analyze, DropObject, Freeze, Inspect, Locate, Reorganize};
use eris_home::StoredPart;
use eris_numa::Extent;
use eris_types::{ObjectId, Timestamp};

impl Owner {
    pub fn drop_object<T>(&mut self, asked: Asked<DropObject>, cx: &mut Context<'_, T>) {
        let dropped = asked.object;
        self.partitions.remove(&dropped);
        self.key_indexes.remove(&dropped);
        self.rejected.retain(|(object, _)| *object != dropped);
        self.numberings.retain(|(object, _), _| *object != dropped);
        asked.answer(Done, cx);
    }

    pub fn drop_index(&mut self, object: ObjectId, index: IndexNumber) {
        if let Some(partition) = self.existing(object) {
            partition.drop_index(index.0);
        }
    }

    /// Shows the segments of an object; there may be none here.
    pub fn inspect<T>(&self, asked: Asked<Inspect>, cx: &mut Context<'_, T>) {
        let partition = self.partitions.get(&asked.object);
        let segments = partition.map_or_else(Vec::new, Partition::segment_views);
        asked.answer(Segments(segments), cx);
    }

    /// Counts and samples the values of all rows again; there may be none here.
    pub fn analyze<T>(&mut self, asked: Asked<Analyze>, cx: &mut Context<'_, T>) {
        if let Some(partition) = self.existing(asked.object) {
            partition.analyze();
        }
        asked.answer(Done, cx);
    }

    /// Shows what a snapshot that is held sees of an object; there may be nothing here.
    pub fn freeze<T>(&mut self, at: Timestamp, asked: Asked<Freeze>, cx: &mut Context<'_, T>) {
        let aeu = self.aeu;
        let frozen = (self.existing(asked.object)).map_or_else(Vec::new, |partition| {
            let segments = partition.segments.iter();
            let frozen = segments.map(|segment| FrozenSegment {
                id: segment.id(),
                aeu,
                chunks: segment.view(at).collect(),
            });
            frozen.collect()
        });
        asked.answer(Frozen(frozen), cx);
    }

    /// Says where the memory lies.
    pub fn locate<T>(&mut self, asked: Asked<Locate>, cx: &mut Context<'_, T>) {
        let node = self.memory.node();
        let mut parts = Vec::new();
        let mut add = |part, add_extents: &dyn Fn(&mut Vec<Extent>)| {
            let mut extents = Vec::new();
            add_extents(&mut extents);
            if !extents.is_empty() {
                parts.push(Located {
                    aeu: self.aeu,
                    node,
                    os_node: self.topology.nodes()[node.index()].os_node,
                    part,
                    extents,
                });
            }
        };
        if let Some(keys) = self.key_indexes.get(&asked.object) {
            add(StoredPart::Key, &|all| keys.extents(all));
        }
        if let Some(partition) = self.partitions.get(&asked.object) {
            add(StoredPart::Rows, &|all| partition.row_extents(all));
            if let Some(index) = &partition.index {
                add(StoredPart::Key, &|all| index.extents(all));
            }
            for index in &partition.secondary {
                add(StoredPart::Index(index.index.id), &|all| index.extents(all));
            }
        }
        asked.answer(LocatedParts(parts), cx);
    }

    /// Begins to reorganise an index, if that is asked for, and tells how things are. Says whether a task has to be
    /// begun: whoever asks also keeps work going that lookups have left.
    pub fn reorganize<T>(
        &mut self,
        what: Reorganize,
        asked: Asked<Reorganize>,
        cx: &mut Context<'_, T>,
    ) -> bool {
        let (aeu, object, mut all) = (self.aeu, asked.object, Vec::new());
        let Some(index) = self.index(object) else {
            asked.answer(Indexes(all), cx);
            return false;
        };
        if what == Reorganize::Begin {
            index.begin();
        }
        index.status(aeu, cx.node(), &mut all);
        let is_at_work = index.is_at_work();
        asked.answer(Indexes(all), cx);
        is_at_work && self.reorganizing.insert(object)
    }
}
