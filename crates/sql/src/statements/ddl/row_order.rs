//! `CREATE TABLE … ORDER BY (…)`: how rows follow each other where their order is for Eris to choose.

use crate::error::{Mistake, SqlError};
use crate::statements::ddl::excerpt_of;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{Expr, OneOrManyWithParens};
use eris_types::most_similar;

/// The columns, in the order in which they were named.
///
/// # Errors
/// One is no column, or named twice.
pub(super) fn row_order(
    order: Option<&OneOrManyWithParens<Expr>>,
    schema: &Schema,
    statement: &Statement,
) -> Result<Vec<String>, SqlError> {
    let mut columns: Vec<String> = Vec::new();
    for expr in order.into_iter().flatten() {
        let Expr::Identifier(name) = expr else {
            return Err(SqlError::not_supported(format!("ORDER BY {expr}"))
                .with_hint(Some("a table is ordered by columns: ORDER BY (a, b)")));
        };
        let plain = normalize(name);
        let problem = match schema.index_of(&plain) {
            Err(_) => {
                let names = schema.fields().iter().map(|field| field.name().as_str());
                let similar = most_similar(&plain, names);
                SqlError::invalid(
                    Mistake::UndefinedColumn,
                    format!("ORDER BY: the table has no column \"{plain}\""),
                )
                .with_hint(similar.map(|name| format!("did you mean \"{name}\"?")))
            }
            Ok(_) if columns.contains(&plain) => SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("ORDER BY: column \"{plain}\" is named twice"),
            ),
            Ok(_) => {
                columns.push(plain);
                continue;
            }
        };
        return Err(problem.at(excerpt_of(name, statement)));
    }
    Ok(columns)
}
