//! The owner's side of a column's dictionary: it alone gives out codes.

use crate::error::EngineError;
use crate::object::worth_coding;
use crate::protocol::Intern;
use eris_column::Dictionary;
use eris_numa::{Budget, Reservation};

/// What a string takes beside its bytes: a view, and a slot in the index.
const ENTRY_BYTES: usize = 32;

/// The dictionary of one column at its owner. Codes outlive the statement that asked for them, also when it fails: they are
/// in no row then, and found when the text comes again.
#[derive(Default)]
pub(crate) struct Numbering {
    dictionary: Dictionary,
    /// What the dictionary's strings take of the budget.
    reserved: Vec<Reservation>,
    /// Text of this column repeats too little; new rows are stored as they are.
    closed: bool,
}

impl Numbering {
    /// Gives codes to what has none and publishes the result; `None` if the column's text is not worth coding.
    ///
    /// # Errors
    /// The budget has no room for the new strings.
    pub fn intern(
        &mut self,
        request: &Intern,
        budget: &Budget,
    ) -> Result<Option<Dictionary>, EngineError> {
        if self.closed {
            return Ok(None);
        }
        let unknown = || {
            let values = request.values.iter().map(String::as_str);
            values.filter(|value| self.dictionary.code(value).is_none())
        };
        let missing = unknown().count();
        if !worth_coding(&self.dictionary, missing, request.rows) {
            self.closed = true;
            return Ok(None);
        }
        if missing > 0 {
            let bytes: usize = unknown().map(|value| value.len() + ENTRY_BYTES).sum();
            let reserved = budget.try_reserve(bytes as u64);
            self.reserved
                .push(reserved.map_err(|error| EngineError::OutOfMemory {
                    table: request.object.name.clone(),
                    reason: error.to_string(),
                })?);
            self.dictionary = self.dictionary.extend(unknown());
            let published = self.dictionary.clone();
            request.object.publish(request.column, published);
        }
        Ok(Some(self.dictionary.clone()))
    }
}
