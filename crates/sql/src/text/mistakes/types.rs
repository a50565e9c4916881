//! Types: whether there is one of this name.

use super::{Search, found};
use crate::error::{Mistake, SqlError};
use crate::text::parse::place_of;
use datafusion::sql::sqlparser::ast::DataType;
use eris_exact::types::column_type;

/// The error of a type that cannot be had; `what` names it. PostgreSQL has the types that the parser has a word for.
pub(crate) fn unknown_type(data_type: &DataType, what: String) -> SqlError {
    match data_type {
        DataType::Custom(..) => {
            SqlError::invalid(Mistake::UndefinedObject, format!("{what} does not exist"))
        }
        _ => SqlError::not_supported(what),
    }
}

/// There is a type of the name in CAST. Other types are left to the planner.
pub(super) fn known(data_type: &DataType) -> Search {
    match (data_type, column_type(data_type)) {
        (DataType::Custom(name, _), Err(what)) => {
            let hint = "CREATE TABLE and CAST know the types that docs/manual/sql.md lists";
            let error = unknown_type(data_type, what).with_hint(Some(hint));
            found(error, place_of(name))
        }
        _ => Search::Continue(()),
    }
}
