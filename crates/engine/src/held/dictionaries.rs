//! The owner's side of a column's dictionary: it alone gives out codes.
//!
//! Whether text repeats shows late: of 60,000 values 40,000 are new in the first 65,536 rows, and none after ten times
//! as many. So what has come is compared with what the greatest dictionary that pays would have seen by then, rather
//! than with its rows:
//!
//! ```text
//! values
//!   1 M ┤                                ............·········   LIMIT equally frequent values, of which
//!       │                  ......·······                         LIMIT · (1 - e^(-rows / LIMIT)) have come:
//!       │          ...·····                                      above it text is stored as it is from now on
//!       │     ..···
//!       │  .··   ─────────────────────────────────────────────   300,000 values that repeat
//!       └┴───────────────────────────────────────────────────▶ rows
//! ```

use crate::durability::{Denied, Log, records};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use eris_column::{CHUNK_ROWS, DICTIONARY_LIMIT, Dictionary};
use eris_log::Purpose;
use eris_numa::{Budget, OutOfMemory, Reservation};
use eris_types::Timestamp;
use std::sync::Arc;

/// What a string takes beside its bytes: a view, and a slot in the index.
const ENTRY_BYTES: usize = 32;

/// So many rows tell whether a column's text repeats at all.
const FEW_ROWS: u64 = 4_096;
/// Or so many bytes of strings that are all different, of which some may be long.
const MANY_BYTES: usize = 16 << 20;

/// Strings of a column that may have no codes yet.
pub(crate) struct NewStrings {
    pub object: Arc<DataObject>,
    pub column: usize,
    pub values: Arc<[String]>,
    /// The rows among which these were found.
    pub rows: usize,
}

/// The dictionary of one column at its owner. Codes outlive the statement that asked for them, also when it fails: they
/// are in no row then, and found when the text comes again.
#[derive(Default)]
pub(crate) struct Numbering {
    dictionary: Dictionary,
    /// What the dictionary's strings take of the budget.
    reserved: Vec<Reservation>,
    /// The rows of which some had no code yet when they came.
    rows: u64,
    /// The bytes of its strings.
    bytes: usize,
    /// Text of this column repeats too little; new rows are stored as they are.
    closed: bool,
}

/// What has become of strings.
pub(crate) enum Interning {
    /// All have codes.
    Coded(Dictionary),
    /// The column's text is not worth coding.
    Plain,
    /// Nothing: there is no room in the log at present.
    Later,
}

impl Numbering {
    /// The dictionary of a column of an object with so many rows, as it was before the process; `closed`: text of the
    /// column repeats too little.
    ///
    /// # Errors
    /// The budget has no room for its strings.
    pub fn restored(
        dictionary: Dictionary,
        rows: u64,
        closed: bool,
        budget: &Budget,
    ) -> Result<Self, OutOfMemory> {
        let strings = dictionary.values().iter().flatten();
        let bytes = strings.map(str::len).sum();
        let reserved = budget.try_reserve((bytes + dictionary.len() * ENTRY_BYTES) as u64)?;
        Ok(Numbering {
            // Some had all their codes: it is told apart a little later that text repeats too little.
            rows,
            bytes,
            dictionary,
            reserved: vec![reserved],
            closed,
        })
    }

    /// Gives codes to what has none, logs them, and publishes the result.
    ///
    /// # Errors
    /// The budget has no room for the new strings, or the disk has none.
    pub fn intern(
        &mut self,
        request: &NewStrings,
        budget: &Budget,
        log: Option<&Log>,
    ) -> Result<Interning, EngineError> {
        if self.closed {
            return Ok(Interning::Plain);
        }
        let values = request.values.iter().map(String::as_str);
        let unknown: Vec<&str> = values
            .filter(|value| self.dictionary.code(value).is_none())
            .collect();
        let missing = unknown.len();
        let bytes: usize = unknown.iter().map(|value| value.len()).sum();
        let record = log.filter(|_| missing > 0).map(|log| {
            let strings = unknown.iter().copied();
            let first = self.dictionary.len();
            let body = records::strings(request.object.id, request.column, first, strings);
            let room = log.reserve(body.len() as u64, Purpose::Adding, &request.object.name);
            room.map(|room| (log, body, room))
        });
        let record = match record.transpose() {
            Ok(record) => record,
            Err(Denied::Later) => return Ok(Interning::Later),
            Err(Denied::Failed(error)) => return Err(error),
        };
        self.rows += request.rows as u64;
        let values = self.dictionary.len() + missing;
        let is_large = self.bytes + bytes > MANY_BYTES && values as u64 == self.rows;
        if is_large || !pays(values, missing, request.rows, self.rows) {
            self.closed = true;
            request.object.set_plain(request.column);
            return Ok(Interning::Plain);
        }
        if missing > 0 {
            let reserved = budget.try_reserve((bytes + missing * ENTRY_BYTES) as u64);
            self.reserved
                .push(reserved.map_err(|error| EngineError::OutOfMemory {
                    table: request.object.name.clone(),
                    reason: error.to_string(),
                })?);
            self.bytes += bytes;
            self.dictionary = self.dictionary.extend(unknown.into_iter());
            if let Some((log, body, room)) = record {
                log.say(Timestamp::ZERO, body, Some(room));
            }
            let published = self.dictionary.clone();
            request.object.publish(request.column, published);
        }
        Ok(Interning::Coded(self.dictionary.clone()))
    }
}

/// Whether text of which `values` different ones came in `all` rows, `missing` of them for the first time in the last
/// `rows`, is worth coding: codes that are nearly as many as rows save nothing and cost a lookup each.
fn pays(values: usize, missing: usize, rows: usize, all: u64) -> bool {
    if values > DICTIONARY_LIMIT {
        return false;
    }
    let limit = DICTIONARY_LIMIT as f64;
    let expected = limit * -(-(all as f64) / limit).exp_m1();
    // Of so many rows some would be alike.
    let is_unique = all >= FEW_ROWS && values as u64 == all;
    let is_early = all < CHUNK_ROWS as u64 && !is_unique;
    // Some values may be frequent and all others unique: these show when those of the greatest dictionary would repeat.
    let repeats = missing * 2 <= rows || rows < CHUNK_ROWS / 16 || expected * 2.0 < limit;
    is_early || values as f64 <= expected && repeats
}

#[cfg(test)]
mod tests {
    use super::{FEW_ROWS, pays};
    use eris_column::{CHUNK_ROWS, DICTIONARY_LIMIT};
    use std::collections::HashSet;

    /// The rows after which text is stored as it is, if ever: of twenty million, which come `step` at a time.
    fn ends(step: usize, mut value: impl FnMut(u64) -> u64) -> Option<u64> {
        let mut known = HashSet::new();
        let mut all = 0;
        while all < 20_000_000 {
            let before = known.len();
            known.extend((all..all + step as u64).map(&mut value));
            let missing = known.len() - before;
            if missing > 0 {
                all += step as u64;
                if !pays(known.len(), missing, step, all) {
                    return Some(all);
                }
            } else {
                return None;
            }
        }
        None
    }

    fn mixed(row: u64) -> u64 {
        let mut x = row.wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    #[test]
    fn text_that_repeats_is_coded_however_late_that_shows() {
        for step in [100, 8_192, CHUNK_ROWS] {
            for values in [1, 1_000, 60_000, 300_000, 900_000] {
                let end = ends(step, |row| mixed(row) % values);
                assert_eq!(end, None, "{values} values, {step} rows at a time");
            }
        }
    }

    #[test]
    fn text_that_does_not_repeat_is_given_up_soon() {
        for step in [100, 8_192, CHUNK_ROWS] {
            let unique = ends(step, |row| row).expect("never repeats");
            assert!(unique <= FEW_ROWS + step as u64, "{unique}");
            let many = ends(step, |row| mixed(row) % (1 << 23)).expect("eight times the limit");
            assert!(many <= (CHUNK_ROWS + step) as u64, "{many}");
            // One row in three has a value of its own.
            let third = ends(step, |row| if row % 3 == 0 { row } else { row % 100 });
            assert!(third.is_some());
        }
        // Two in three.
        let most = ends(CHUNK_ROWS, |row| if row % 3 == 0 { row % 100 } else { row });
        assert!(most.expect("mostly new") < DICTIONARY_LIMIT as u64);
    }
}
