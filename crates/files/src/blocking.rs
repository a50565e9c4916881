//! Work that may wait for a disk, on threads that may wait.

use crate::error::FileError;

/// Runs work on such a thread. A panic in it is one of the caller.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(FileError::Cancelled),
        },
    }
}
