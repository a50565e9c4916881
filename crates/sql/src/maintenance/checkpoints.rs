//! Checkpoints: when somebody asks for one, and when the log has become long. And backups.

use eris_home::{Checkpoint, Durability, Home, HomeError};
use futures::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// How long nobody tries again after a checkpoint that was not made; after each further one twice as long. All is in
/// the log meanwhile, and each attempt takes a file of it.
const PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Makes a checkpoint.
///
/// # Errors
/// As [`Durability::checkpoint`].
///
/// # Panics
/// If the home does not outlive its process.
pub(crate) async fn make(home: &Arc<dyn Home>) -> Result<Checkpoint, HomeError> {
    blocking(home, |durability| durability.checkpoint()).await
}

/// Writes a copy of the database into a directory.
///
/// # Errors
/// As [`Durability::backup`].
///
/// # Panics
/// If the home does not outlive its process.
pub(crate) async fn back_up(
    home: &Arc<dyn Home>,
    directory: PathBuf,
) -> Result<Checkpoint, HomeError> {
    blocking(home, |durability| durability.backup(directory)).await
}

/// Writes files on a thread of its own, until nobody waits for them any more.
async fn blocking(
    home: &Arc<dyn Home>,
    write: impl FnOnce(&dyn Durability) -> BoxFuture<'_, Result<Checkpoint, HomeError>> + Send + 'static,
) -> Result<Checkpoint, HomeError> {
    let (home, runtime) = (Arc::clone(home), Handle::current());
    // It is dropped with whoever waits here.
    let (_waits, gives_up) = oneshot::channel::<()>();
    let written = spawn_blocking(move || {
        let durability = home.durability();
        let writes = write(durability.expect("whoever asks has looked"));
        runtime.block_on(async {
            tokio::select! {
                written = writes => Some(written),
                _ = gives_up => None,
            }
        })
    });
    match written.await {
        Ok(written) => written.expect("somebody waits"),
        Err(panic) => Err(HomeError::Panicked {
            worker: "a thread that writes files".to_owned(),
            table: "the database".to_owned(),
            message: panic.to_string(),
        }),
    }
}

/// Makes one whenever the log has become long, as long as it can be written.
pub(crate) async fn make_when_due(home: Arc<dyn Home>) {
    let mut pause = PAUSE;
    while let Some(durability) = home.durability() {
        durability.checkpoint_due().await;
        match make(&home).await {
            Ok(_) => pause = PAUSE,
            Err(HomeError::LogFailed { .. }) => return,
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(2 * pause);
            }
        }
    }
}
