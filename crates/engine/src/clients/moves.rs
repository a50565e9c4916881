//! Rows of tables that become another owner's: a statement that changes nothing but where they are.
//!
//! ```text
//!              former owner                             new owner
//! write lock ─ OfferChunks ─▶ sealed chunks, living rows ─ Adopt ─▶ linked columns, or copies, uncommitted
//!      ─ Delete ─▶ the rows are to be deleted
//!      ─ Commit ─▶ they are deleted          ── T ──     they are inserted
//! ```
//!
//! One commit deletes the rows at the former owner and inserts them at the new one. So every snapshot finds each row
//! once. Work queues, paths, statistics and secondary indexes need not know that anything was moved. What the former
//! owner has left is garbage, and collected like any other.
//!
//! A move has the object's write lock, so that nobody else deletes rows meanwhile. It is cut into statements of a few
//! chunks, between which others have theirs.
//!
//! Rows with a key go by [ranges of it](keys): within a node as they are, with their ids.
//!
//! Why by a commit: docs/decisions/0023.

pub(crate) mod key_shift;
pub(crate) mod keys;

use super::engine::Engine;
use crate::error::EngineError;
use crate::protocol::statements::OfferChunks;
use eris_home::Moved;
use eris_types::{AeuId, ObjectId, RowId};

/// So many chunks are moved by one statement: others wait for the write lock as long as these take to copy.
const CHUNKS: u64 = 4;

impl Engine {
    /// Gives about so many rows of a data object without a key to another owner, whole sealed chunks of them, and
    /// returns once they are there. Chunks in which no row was deleted are linked within a node; others are copied.
    ///
    /// # Errors
    /// There is no such object, no memory at the new owner, or an owner panicked. What was moved before stays where it
    /// is now.
    ///
    /// # Panics
    /// If the object has a key.
    pub async fn move_rows(
        &self,
        id: ObjectId,
        from: AeuId,
        to: AeuId,
        rows: u64,
    ) -> Result<Moved, EngineError> {
        let mut moved = Moved::default();
        // An owner has its own rows already.
        while from != to && moved.keys < rows {
            let more = self.move_some(id, from, to, rows - moved.keys).await?;
            if more.keys == 0 {
                break;
            }
            moved.keys += more.keys;
            moved.linked += more.linked;
            moved.copied += more.copied;
        }
        Ok(moved)
    }

    /// One statement of it; nothing has moved if there is no chunk that is small enough.
    pub(crate) async fn move_some(
        &self,
        id: ObjectId,
        from: AeuId,
        to: AeuId,
        rows: u64,
    ) -> Result<Moved, EngineError> {
        let mut writer = self.mover(id).await?;
        assert!(
            !writer.object().is_ranged_by_key(),
            "rows with a key are moved by ranges of it"
        );
        let name = &writer.object().name;
        let wanted = OfferChunks {
            rows,
            chunks: CHUNKS,
        };
        let offered = self.ask([from], id, name, wanted).await?;
        let topology = self.topology();
        let is_near = topology.node_of(from) == topology.node_of(to);
        let mut moved = Moved::default();
        for one in offered.into_iter().flat_map(|chunks| chunks.0) {
            let (rows, bytes) = (one.living.count() as u64, one.chunk.bytes() as u64);
            moved.keys += rows;
            let ids = one.living.iter_ones().map(|row| one.chunk.ids().get(row));
            writer.delete(ids.collect::<Vec<RowId>>().into_iter())?;
            let is_linked = is_near && one.living.is_all();
            match is_linked {
                true => moved.linked += bytes,
                false => moved.copied += bytes * rows / one.chunk.rows() as u64,
            }
            writer.adopt(to, one, is_linked).await?;
        }
        writer.commit().await?;
        Ok(moved)
    }
}
