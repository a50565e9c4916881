//! What a statement leads to.

use crate::running::query::QueryStream;
use datafusion::physical_plan::SendableRecordBatchStream;

/// What a statement led to. Inside of this crate the rows are also other things than a stream for clients.
#[derive(Debug)]
pub enum Outcome<Rows = QueryStream> {
    /// Rows, as they are computed.
    Rows(Rows),
    /// A number of rows that were written.
    Count {
        /// How many.
        rows: u64,
        /// `INSERT` or `CREATE TABLE AS`.
        tag: &'static str,
    },
    /// Nothing to be shown.
    Done {
        /// The kind of statement, such as `DROP TABLE`.
        tag: &'static str,
    },
}

/// A statement that has begun, or is done already.
pub(crate) type Begun = Outcome<SendableRecordBatchStream>;
