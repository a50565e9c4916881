//! Queries for constants alone, such as `SELECT 1`: what pools of connections ask to see whether somebody is there.
//!
//! ```text
//! SELECT 'done 17' AS state, 4   ─ mask ─▶   SELECT #s AS state, #n   planned once: names and types of the columns
//!                                                                     from then on: the constants as one row
//! ```

use super::NotShort;
use super::constant::unquoted;
use super::mask::Masked;
use crate::context::StatementContext;
use crate::context::Variables;
use crate::plan::planning;
use crate::text::statement::Statement;
use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Value};
use std::sync::Arc;

/// Digits that fit a BIGINT whatever they are. Other numbers have types of their own.
const DIGITS: usize = 18;

/// The row of constants that a text is.
#[derive(Debug)]
pub(super) struct Constants {
    variables: Variables,
    /// A column without a name of its own is called as its constant is written.
    is_named: Vec<bool>,
    schema: SchemaRef,
}

impl Constants {
    /// Plans a query; `None` if it asks for anything but constants, or has an error, which the general path tells
    /// better.
    pub async fn plan(
        context: &StatementContext,
        query: &Query,
        masked: &Masked<'_>,
        statement: &Statement,
    ) -> Option<Constants> {
        let is_named = named(query)?;
        let plan = planning::plan(context, query.clone(), statement)
            .await
            .ok()?;
        let constants = Constants {
            variables: context.variables().clone(),
            is_named,
            schema: plan.shown(),
        };
        // Not where a type depends on more than the kind of the constant.
        let row = constants.row(masked)?;
        (row.schema().fields().len() == masked.len()).then_some(constants)
    }

    /// The query with these constants.
    ///
    /// # Errors
    /// One is of another type, or the session's variables have changed.
    pub fn run(
        &self,
        context: &StatementContext,
        masked: &Masked<'_>,
    ) -> Result<SendableRecordBatchStream, NotShort> {
        if *context.variables() != self.variables {
            return Err(NotShort::Outdated);
        }
        let row = self.row(masked).ok_or(NotShort::Value)?;
        let rows = futures::stream::iter([Ok(row.clone())]);
        Ok(Box::pin(RecordBatchStreamAdapter::new(row.schema(), rows)))
    }

    fn row(&self, masked: &Masked<'_>) -> Option<RecordBatch> {
        let columns = self.schema.fields().iter().zip(&self.is_named).enumerate();
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns
            .map(|(number, (field, is_named))| {
                let text = masked.literal(number);
                let mut field = field.as_ref().clone();
                if !is_named {
                    field.set_name(text.to_owned());
                }
                Some((field.clone(), column(text, field.data_type())?))
            })
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).ok()
    }
}

/// Of a query for constants alone, whether each of them has a name.
fn named(query: &Query) -> Option<Vec<bool>> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let is_named = select.projection.iter().map(|item| {
        let (value, is_named) = match item {
            SelectItem::UnnamedExpr(Expr::Value(value)) => (value, false),
            SelectItem::ExprWithAlias {
                expr: Expr::Value(value),
                ..
            } => (value, true),
            _ => return None,
        };
        let is_constant = matches!(
            value.value,
            Value::Number(_, false) | Value::SingleQuotedString(_)
        );
        is_constant.then_some(is_named)
    });
    let is_named = is_named.collect::<Option<Vec<_>>>()?;
    // Whatever else a query may have would show.
    let items: Vec<_> = select.projection.iter().map(ToString::to_string).collect();
    (query.to_string() == format!("SELECT {}", items.join(", "))).then_some(is_named)
}

/// One constant as a column of this type; `None` if it has another.
fn column(text: &str, data_type: &DataType) -> Option<ArrayRef> {
    Some(match data_type {
        DataType::Int64 if text.len() <= DIGITS && text.bytes().all(|b| b.is_ascii_digit()) => {
            Arc::new(Int64Array::from(vec![text.parse::<i64>().ok()?]))
        }
        DataType::Utf8 => Arc::new(StringArray::from(vec![unquoted(text)?])),
        DataType::Utf8View => Arc::new(StringViewArray::from(vec![unquoted(text)?])),
        _ => return None,
    })
}
