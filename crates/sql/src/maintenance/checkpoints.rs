//! Checkpoints: when somebody asks for one, and when the log has become long.

use eris_home::{Checkpoint, Home, HomeError};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// How long nobody tries again after a checkpoint that was not made. All is in the log meanwhile.
const PAUSE: Duration = Duration::from_secs(10);

/// Makes a checkpoint, on a thread of its own: it writes files.
///
/// # Errors
/// As [`Durability::checkpoint`](eris_home::Durability::checkpoint).
///
/// # Panics
/// If the home does not outlive its process.
pub(crate) async fn make(home: &Arc<dyn Home>) -> Result<Checkpoint, HomeError> {
    let (home, runtime) = (Arc::clone(home), Handle::current());
    let made = spawn_blocking(move || {
        let durability = home.durability();
        let durability = durability.expect("whoever asks has looked");
        runtime.block_on(durability.checkpoint())
    });
    made.await.unwrap_or_else(|panic| {
        Err(HomeError::Panicked {
            worker: "a checkpoint".to_owned(),
            table: "the database".to_owned(),
            message: panic.to_string(),
        })
    })
}

/// Makes one whenever the log has become long, as long as it can be written.
pub(crate) async fn make_when_due(home: Arc<dyn Home>) {
    while let Some(durability) = home.durability() {
        durability.checkpoint_due().await;
        match make(&home).await {
            Ok(_) => {}
            Err(HomeError::LogFailed { .. }) => return,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
