//! Where the memory of a data object is: what each owner has of it, and on which of the machine's nodes its pages really lie.
//!
//! ```text
//! session ── LOCATE ──▶ every AEU ◀── LOCATED: of its chunks and indexes, addresses and lengths
//!         ── move_pages ──▶ system: the node of each page
//! ```
//!
//! An owner says where its part lies and nothing more; whoever asked looks at the pages on its own thread. Meanwhile some of it may be given
//! back, and be nowhere or even another's: the answer is a measurement, not a promise.

use crate::clients::ask::Question;
use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::held::partition::Partition;
use crate::key_index::KeyIndex;
use crate::protocol::commands::{LOCATE, LOCATED, header};
use crate::tasks::owner::{Context, Owner};
use eris_home::StoredPart;
use eris_numa::{Extent, Placement};
use eris_route::{Header, Parcel};
use eris_types::{AeuId, NodeId, ObjectId};

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
    extents: Vec<Extent>,
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

impl Engine {
    /// Asks the owners where the memory of a data object is: those parts that take any, by owner and kind.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn locate(&self, id: ObjectId) -> Result<Vec<Located>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.locate_parts(id, &name).await
    }

    async fn locate_parts(&self, id: ObjectId, name: &str) -> Result<Vec<Located>, EngineError> {
        let question = Question {
            kind: LOCATE,
            answer: LOCATED,
        };
        let answers: Vec<Vec<Located>> = self.ask(self.owners(), id, name, question, &[]).await?;
        let mut all = answers.concat();
        all.sort_by_key(|located| (located.aeu, located.part));
        Ok(all)
    }
}

impl KeyIndex {
    /// [`Engine::locate`] for this index.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    pub async fn locate(&self) -> Result<Vec<Located>, EngineError> {
        self.engine().locate_parts(self.id(), self.name()).await
    }
}

impl Owner {
    /// LOCATE.
    pub(crate) fn locate(&mut self, request: &Header, cx: &mut Context<'_>) {
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
        if let Some(keys) = self.key_indexes.get(&request.object) {
            add(StoredPart::Key, &|all| keys.extents(all));
        }
        if let Some(partition) = self.partitions.get(&request.object) {
            add(StoredPart::Rows, &|all| partition.row_extents(all));
            if let Some(index) = &partition.index {
                add(StoredPart::Key, &|all| index.extents(all));
            }
            for index in &partition.secondary {
                add(StoredPart::Index(index.index.id), &|all| index.extents(all));
            }
        }
        let reply = header(LOCATED, request.object, cx.endpoint(), request.callback);
        cx.send(request.sender, reply, &[], Some(Parcel::owned(parts)));
    }
}

impl Partition {
    fn row_extents(&self, all: &mut Vec<Extent>) {
        for segment in &self.segments {
            for (chunk, _) in segment.stored() {
                let columns = chunk.columns().iter();
                columns.for_each(|column| column.extents(all));
            }
        }
    }
}
