//! The commit itself: one timestamp for all owners.

use super::{Writer, WriterLock};
use crate::error::EngineError;
use crate::protocol::statements::{Commit, CommitPoint};
use eris_types::AeuId;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Commits writers, each at its owners, and waits until that is visible.
///
/// # Errors
/// An owner has panicked over it.
pub(super) async fn commit_at(
    writers: &mut [Writer],
    owners: &[Vec<AeuId>],
) -> Result<(), EngineError> {
    let shared = writers[0].shared.clone();
    let sequencer = &shared.sequencer;
    let at = poll_fn(|cx| sequencer.poll_draw(cx)).await;
    let count = owners.iter().map(Vec::len).sum();
    let point = Arc::new(CommitPoint::new(at, sequencer.clone(), count));
    let commit = Commit(point.clone());
    for (writer, owners) in writers.iter_mut().zip(owners) {
        if matches!(writer.write_lock, WriterLock::Held(_)) {
            writer.object.set_changed_alone(at);
        }
        if let Some(shift) = writer.shift.take() {
            // Before anybody can have a snapshot that shows what it has done.
            shift.publish(&writer.object, at);
        }
        writer.leaves_nothing = true;
        let (object, statement) = (writer.object.id, writer.statement.id);
        (writer.client).multicast(owners, object, statement, &commit);
        writer.client.flush_all();
    }
    // The owners' alone from here on.
    drop(commit);
    shared.applied(at).await;
    // Others build on it while it is being flushed.
    for writer in &mut *writers {
        writer.write_lock = WriterLock::None;
    }
    shared.visible(at).await?;
    for writer in writers.iter_mut().filter(|writer| writer.found > 0) {
        shared.collect_after(&writer.object, writer.found, at);
    }
    if point.is_broken.load(Ordering::Relaxed) {
        return Err(EngineError::Panicked {
            worker: "an owner".to_owned(),
            table: writers[0].object.name.clone(),
            message: "rows of the statement may be missing".to_owned(),
        });
    }
    Ok(())
}
