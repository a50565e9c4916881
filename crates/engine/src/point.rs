//! Fragments that want the row with one key: their owner looks into its index first.
//!
//! ```text
//! k = 17 AND …  ──▶ owner of 17 alone ──▶ index ──┬── a row that the snapshot sees ──▶ its chunk alone is scanned
//!                                                 ├── nothing, and no key has gone since the snapshot ──▶ no chunk
//!                                                 └── anything else ──▶ all chunks
//! ```
//!
//! The index is that of the newest rows, with those of a statement that is about to commit. But at any snapshot at most one
//! row has the key; so one that is found and seen is the one, whatever the index says of later times.

use crate::keys::Keys;
use crate::object::DataObject;
use eris_column::to_integer;
use eris_fragment::{BinaryOp, Expr, Fragment, Value};
use eris_types::AeuId;

/// A key that all rows of a fragment have, and its owner.
pub(crate) struct Point {
    pub keys: Keys,
    pub owner: AeuId,
}

impl Point {
    /// The key that the fragment's filter names, if the object's key is one number, and a row may have it.
    pub fn of(fragment: &Fragment, object: &DataObject) -> Option<Point> {
        let [key] = object.key[..] else {
            return None;
        };
        let is_key = |expr: &Expr| match expr {
            Expr::Column(position) => fragment.columns.get(*position) == Some(&key),
            _ => false,
        };
        let value = fragment.filter.iter().find_map(|conjunct| {
            let Expr::Binary {
                op: BinaryOp::Eq,
                left,
                right,
            } = conjunct
            else {
                return None;
            };
            let literal = match (&**left, &**right) {
                (column, Expr::Literal(literal)) if is_key(column) => literal,
                (Expr::Literal(literal), column) if is_key(column) => literal,
                _ => return None,
            };
            match literal.value {
                Value::Integer(value) => Some(value),
                _ => None,
            }
        })?;
        let data_type = object.schema.field(key.index()).data_type();
        let word = to_integer(data_type, value);
        let keys = Keys::Words(vec![word as u64 ^ (1 << 63)]);
        let owner = object.ranges.get()?.get(word);
        Some(Point { keys, owner })
    }
}
