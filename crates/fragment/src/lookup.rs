//! Lookups: the rows of small relations, joined to the rows of a scan by their keys.
//!
//! ```text
//! scanned row   … lo_custkey = 17 …                      positions of Expr::Column
//!                      │ Lookup::column                     0 …     columns of the fragment
//!                      ▼                                    then    columns of the first lookup's rows, keys left out
//! rows          key 17 │ 'ASIA' │ 'CHINA'                   then    those of the second, and so on
//! ```
//!
//! This is the probe of the RAMCloud paper's join-probe (Section 4), carried on to what the join is for: the values
//! beside the key.

use crate::KeySet;
use arrow_array::{ArrayRef, RecordBatch};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::io::Cursor;
use std::sync::Arc;

/// Joins each row to the rows of a relation that have its key. A row without such a row does not pass; NULL never does.
/// But if the join is an outer one, these rows pass and are joined to NULLs. Of a row that has several, there is one
/// joined row for each; and of several lookups, one for each combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ReceivedLookup")]
pub struct Lookup {
    /// The key column, a position in [`Fragment::columns`](crate::Fragment::columns): of integer-like values or text.
    pub column: usize,
    /// The relation. Its first column has the keys, none of them NULL: text like the key column, or of any type whose
    /// values are integers with the key column's meaning. The others are the columns that are joined.
    #[serde(serialize_with = "to_stream")]
    pub rows: RecordBatch,
    /// Whether rows stay that have no match.
    pub outer: bool,
    /// The keys as a set, if they are keys and anybody may ask for it.
    #[serde(skip)]
    set: Option<Arc<KeySet>>,
}

/// A lookup on its way: the set is found out by whoever receives it.
#[derive(Deserialize)]
struct ReceivedLookup {
    column: usize,
    #[serde(deserialize_with = "from_stream")]
    rows: RecordBatch,
    outer: bool,
}

impl From<ReceivedLookup> for Lookup {
    fn from(received: ReceivedLookup) -> Self {
        let ReceivedLookup {
            column,
            rows,
            outer,
        } = received;
        let set = set_of(&rows);
        Lookup {
            column,
            rows,
            outer,
            set,
        }
    }
}

impl Lookup {
    /// The relation `rows`, by the key column at this position.
    pub fn new(column: usize, rows: RecordBatch) -> Self {
        let set = set_of(&rows);
        Lookup {
            column,
            rows,
            outer: false,
            set,
        }
    }

    /// The same, by whoever knows already which keys the relation has.
    pub fn with_set(column: usize, rows: RecordBatch, set: KeySet) -> Self {
        Lookup {
            column,
            rows,
            outer: false,
            set: Some(Arc::new(set)),
        }
    }

    /// An outer join with a relation that has each key once. No set of the keys is made, for nobody asks for it.
    pub fn of_each_value(column: usize, rows: RecordBatch) -> Self {
        Lookup {
            column,
            rows,
            outer: true,
            set: None,
        }
    }

    /// The same as an outer join.
    pub fn into_outer(self) -> Self {
        Lookup {
            outer: true,
            ..self
        }
    }

    /// The same with a copy of the relation.
    pub fn with_copy(&self, rows: RecordBatch) -> Self {
        Lookup {
            rows,
            ..self.clone()
        }
    }

    /// The keys of which a row must have one to pass; `None` if every row passes, or if they are no keys.
    pub fn required(&self) -> Option<&KeySet> {
        self.set.as_deref().filter(|_| !self.outer)
    }

    /// Whether each key occurs once; values without a set are taken to do so.
    pub fn is_unique(&self) -> bool {
        let rows = self.rows.num_rows() as u64;
        self.set.as_ref().is_none_or(|set| set.len() == rows)
    }

    /// The keys.
    pub fn keys(&self) -> &ArrayRef {
        self.rows.column(0)
    }

    /// The columns beside the keys.
    pub fn joined(&self) -> &[ArrayRef] {
        &self.rows.columns()[1..]
    }
}

fn set_of(rows: &RecordBatch) -> Option<Arc<KeySet>> {
    KeySet::of_values(rows.column(0)).map(|(set, _)| Arc::new(set))
}

/// The rows in Arrow's own wire form.
fn to_stream<S: Serializer>(rows: &RecordBatch, serializer: S) -> Result<S::Ok, S::Error> {
    let write = || {
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &rows.schema())?;
        writer.write(rows)?;
        writer.into_inner()
    };
    let bytes: Vec<u8> = write().map_err(ser::Error::custom)?;
    bytes.serialize(serializer)
}

fn from_stream<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RecordBatch, D::Error> {
    let bytes = Vec::<u8>::deserialize(deserializer)?;
    let mut reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None)
        .map_err(de::Error::custom)?;
    match (reader.next(), reader.next()) {
        (Some(rows), None) => {
            let rows = rows.map_err(de::Error::custom)?;
            match rows.num_columns() {
                0 => Err(de::Error::custom("a lookup without keys")),
                _ => Ok(rows),
            }
        }
        _ => Err(de::Error::custom("a lookup that is not one batch")),
    }
}
