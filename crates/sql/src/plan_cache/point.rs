//! Queries for the row with one key: answered by a lookup, without a fragment.
//!
//! ```text
//! SELECT a, b + 1 FROM t WHERE k = $1         key ─▶ row ─▶ columns a, b ─▶ steps ─▶ answer
//! ```

use super::steps::{Steps, with_schema};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::fragment_exec::{FragmentExec, PlainRows};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use eris_exact::scalar;
use eris_fragment::{Expr, Scalar};
use eris_home::Newest;
use eris_types::ColumnId;
use std::sync::Arc;

/// A plan that reads the row of one key.
#[derive(Debug)]
pub(super) struct Point {
    table: Arc<Table>,
    /// Per column of the key, its value.
    key: Vec<KeyPart>,
    columns: Arc<[ColumnId]>,
    /// What the columns are to the steps.
    read: SchemaRef,
    steps: Arc<Steps>,
    schema: SchemaRef,
}

#[derive(Debug)]
enum KeyPart {
    Constant(Scalar),
    Parameter(usize),
}

impl Point {
    /// `None`: the plan does something else.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Point> {
        let (steps, leaf) = Steps::above_leaf(plan)?;
        let fragment = leaf.downcast_ref::<FragmentExec>()?;
        let table = Arc::clone(&fragment.scan().table);
        let PlainRows {
            columns,
            conditions,
        } = fragment.plain_rows()?;
        let key = &table.key.as_ref()?.columns;
        if conditions.len() != key.len() {
            return None;
        }
        let key = key.iter().map(|name| {
            let position = table.schema.index_of(name).ok()?;
            let mut values = conditions.iter().filter(|(column, _)| *column == position);
            match values.next()?.1 {
                Expr::Literal(value) if value.data_type == table.types[position] => {
                    Some(KeyPart::Constant(value.clone()))
                }
                Expr::Column(behind) => {
                    Some(KeyPart::Parameter(behind.checked_sub(table.types.len())?))
                }
                _ => None,
            }
        });
        Some(Point {
            key: key.collect::<Option<_>>()?,
            columns: columns
                .into_iter()
                .map(|column| ColumnId(column as u32))
                .collect(),
            read: leaf.schema(),
            steps: Arc::new(steps),
            schema: plan.schema(),
            table,
        })
    }

    /// Begins the query with these values for its parameters.
    pub fn run(
        &self,
        context: &StatementContext,
        values: &[Scalar],
    ) -> Option<SendableRecordBatchStream> {
        let key = self.key.iter().map(|part| match part {
            KeyPart::Constant(value) => key_array(value),
            KeyPart::Parameter(number) => key_array(&values[*number]),
        });
        let key: Vec<ArrayRef> = key.collect::<Option<_>>()?;
        let rows = context.home.single_rows()?;
        let mut rows = rows.client(self.table.object).ok()?;
        let (columns, steps) = (Arc::clone(&self.columns), Arc::clone(&self.steps));
        let read = Arc::clone(&self.read);
        let answer = async move {
            let found = rows.get(&key, columns, Newest::Visible).await;
            let found = found.map_err(|error| SqlError::from(error).into_datafusion())?;
            steps.apply(with_schema(&read, found.rows)?)
        };
        let answer = futures::stream::once(answer);
        Some(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            answer,
        )))
    }
}

/// A part of a key in an array of its own.
fn key_array(value: &Scalar) -> Option<ArrayRef> {
    let value: ScalarValue = scalar::to_datafusion(value)?;
    value.to_array().ok()
}
