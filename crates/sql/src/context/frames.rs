//! Frames that the calling program has beside the catalogue.

use eris_files::{Frame, FrameError};
use std::fmt;
use std::sync::Arc;

/// Where a statement looks for a name without a schema that the catalogue does not have. It is asked on a thread that
/// may wait, and may be asked for the same name several times.
pub trait Frames: Send + Sync + fmt::Debug {
    /// The frame with this name. Names that are not quoted are in lower case, as SQL has it.
    ///
    /// # Errors
    /// Whatever the program fails with, such as that what has this name is no relation.
    fn frame(&self, name: &str) -> Result<Option<Arc<dyn Frame>>, FrameError>;
}
