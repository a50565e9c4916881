//! Text in any of Arrow's forms, as dictionary codes.

use crate::dictionary::Dictionary;
use crate::error::EncodeError;
use arrow_array::cast::AsArray;
use arrow_array::{Array, StringViewArray};
use arrow_schema::DataType;

/// The codes of an array of text; those of NULLs are unspecified.
pub(super) fn codes(array: &dyn Array, dictionary: &Dictionary) -> Result<Vec<u32>, EncodeError> {
    match array.data_type() {
        DataType::Dictionary(..) => dictionary.codes_of_dictionary(array.as_any_dictionary()),
        DataType::Utf8View => of_views(array.as_string_view(), dictionary),
        _ => {
            let views = arrow_cast::cast(array, &DataType::Utf8View)?;
            of_views(views.as_string_view(), dictionary)
        }
    }
}

fn of_views(array: &StringViewArray, dictionary: &Dictionary) -> Result<Vec<u32>, EncodeError> {
    (dictionary.look_up([array]))
        .map_err(|unknown| EncodeError::NotInDictionary(unknown.strings()[0].clone()))
}
