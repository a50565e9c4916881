//! What planners know of a table's values, by all of them: `ANALYZE`.
//!
//! ```text
//! session ── Inspect ──▶ every AEU ◀── its chunks, as of now
//!    │ counts the values of those that have no sketch, on its own threads
//!    └────── Analyze ──▶ every AEU: sketches are merged, rows sampled ──▶ published
//! ```
//!
//! Only chunks that were written before there were sketches have none. So AEUs read no more than sampled rows.

use super::engine::Engine;
use crate::error::EngineError;
use crate::protocol::objects::{Analyze, Inspect};
use eris_column::ColumnChunk;
use eris_types::ObjectId;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Engine {
    /// Counts and samples the values of all rows again.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn analyze(&self, id: ObjectId) -> Result<(), EngineError> {
        let object = self.object(id)?;
        let parts = self.ask(self.owners(), id, &object.name, Inspect).await?;
        let segments = parts.iter().flat_map(|part| &part.0);
        let chunks = segments.flat_map(|segment| &segment.chunks);
        let columns = chunks.flat_map(|(chunk, _)| chunk.columns());
        let uncounted = columns.filter(|column| !column.is_counted());
        count(uncounted.cloned().collect()).await;
        self.ask(self.owners(), id, &object.name, Analyze).await?;
        Ok(())
    }
}

/// Counts the values of columns, a share on each thread.
async fn count(columns: Vec<Arc<ColumnChunk>>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = columns.len().div_ceil(threads).max(1);
    let shares = columns.chunks(share).map(|columns| {
        let columns = columns.to_vec();
        let (done, is_done) = oneshot::channel();
        std::thread::spawn(move || {
            columns.iter().for_each(|column| column.count_values());
            // Whoever asked may have gone.
            let _ = done.send(());
        });
        is_done
    });
    for share in shares.collect::<Vec<_>>() {
        share.await.expect("values can be counted");
    }
}
