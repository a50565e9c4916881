//! Rows of a fragment that are written where they are found.

use super::Writer;
use crate::clients::fragments::{HELPLESS_ROWS, reporter};
use crate::error::EngineError;
use crate::protocol::append::Append;
use eris_fragment::{Fragment, FragmentError};
use eris_home::Appending;
use futures::StreamExt;

/// Rows of a smaller data object are sent to whoever has the fewest: else a statement that doubles a small table would
/// leave all of it with one owner. In a larger one, whoever has time helps, and keeps what it finds.
const LEAST_ROWS: u64 = HELPLESS_ROWS;

impl Writer {
    /// Adds the rows of a fragment, of the object's columns with exactly its types, where they are found: no row passes
    /// through here. `None`: they have to be read, and appended. That is so if each row has an owner whoever finds it,
    /// or if there are few.
    ///
    /// # Errors
    /// The fragment cannot be begun. After an error of what this returns, or if that is dropped, the statement is lost.
    pub fn append_from(
        &mut self,
        fragment: &Fragment,
    ) -> Result<Option<Appending<'_>>, EngineError> {
        self.append_rows_from(fragment, LEAST_ROWS)
    }

    /// The same with another idea of what is few.
    pub(crate) fn append_rows_from(
        &mut self,
        fragment: &Fragment,
        least_rows: u64,
    ) -> Result<Option<Appending<'_>>, EngineError> {
        self.check_failure()?;
        if self.object.is_ranged() {
            return Ok(None);
        }
        let append = Append::new(self.object.clone(), self.statement.clone());
        let begun = self.shared.execute_into(fragment, append, least_rows)?;
        let Some((run, mut stream)) = begun else {
            return Ok(None);
        };
        for share in &run.shares {
            self.load[share.aeu.index()].written = true;
        }
        self.leaves_nothing = false;
        // Until all of it is there.
        self.failure = Some(FragmentError::Cancelled.into());
        let report = reporter(&run);
        let done = async move {
            while let Some(result) = stream.next().await {
                if let Err(error) = result {
                    let append = run.append.as_ref().expect("its rows are appended");
                    let failure = append.failure().cloned();
                    let error = failure.unwrap_or_else(|| error.into());
                    self.failure = Some(error.clone());
                    return Err(error);
                }
            }
            self.failure = None;
            let mut appended = 0;
            for (aeu, rows) in run.rows_by_aeu() {
                self.load[aeu.index()].rows += rows;
                appended += rows;
            }
            self.rows += appended;
            Ok(appended)
        };
        Ok(Some(Appending {
            report,
            done: Box::pin(done),
        }))
    }
}
