//! Where the memory of what an owner has lies.

use crate::held::partition::Partition;
use eris_home::StoredPart;
use eris_numa::{Extent, Placement};
use eris_types::{AeuId, NodeId};

/// What one owner has of a data object, and where.
#[derive(Clone, Debug)]
pub struct Located {
    /// The owner.
    pub aeu: AeuId,
    /// Its node, on which all of it should be.
    pub node: NodeId,
    /// The operating system's number of that node; `None` if the topology is made up.
    pub os_node: Option<u32>,
    /// What it is.
    pub part: StoredPart,
    pub(crate) extents: Vec<Extent>,
}

impl Located {
    /// Bytes that were allocated.
    pub fn bytes(&self) -> u64 {
        self.extents
            .iter()
            .map(|extent| extent.bytes() as u64)
            .sum()
    }

    /// Where they are. `None` if the operating system does not tell.
    pub fn placement(&self) -> Option<Placement> {
        Placement::of(self.extents.iter().copied())
    }
}

impl Partition {
    pub fn row_extents(&self, all: &mut Vec<Extent>) {
        for segment in &self.segments {
            for (chunk, _) in segment.stored() {
                let columns = chunk.columns().iter();
                columns.for_each(|column| column.extents(all));
            }
        }
    }
}
