//! The owner's side of a column's dictionary: it alone gives out codes.

use crate::object::worth_coding;
use crate::protocol::Intern;
use eris_column::Dictionary;

/// The dictionary of one column at its owner.
#[derive(Default)]
pub(crate) struct Numbering {
    dictionary: Dictionary,
    /// Text of this column repeats too little; new rows are stored as they are.
    closed: bool,
}

impl Numbering {
    /// Gives codes to what has none and publishes the result; `None` if the column's text is not worth coding.
    pub fn intern(&mut self, request: &Intern) -> Option<Dictionary> {
        if self.closed {
            return None;
        }
        let unknown = || {
            let values = request.values.iter().map(String::as_str);
            values.filter(|value| self.dictionary.code(value).is_none())
        };
        let missing = unknown().count();
        if !worth_coding(&self.dictionary, missing, request.rows) {
            self.closed = true;
            return None;
        }
        if missing > 0 {
            self.dictionary = self.dictionary.extend(unknown());
            let published = self.dictionary.clone();
            request.object.publish(request.column, published);
        }
        Some(self.dictionary.clone())
    }
}
