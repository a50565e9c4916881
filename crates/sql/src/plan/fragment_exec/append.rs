//! A leaf whose rows a table takes in where they are found.

use super::FragmentExec;
use super::star::{BuildSides, into_fragment_error};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use eris_fragment::{Expr, Fragment, FragmentError, Output};
use std::sync::Arc;

/// A fragment that is known in full, with what its joins keep of the budget.
pub(crate) struct Bound {
    pub fragment: Fragment,
    _held: Option<Arc<MemoryReservation>>,
}

impl FragmentExec {
    /// The leaf of a plan that hands on its rows as they are: all of them, in no order.
    pub fn all_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&FragmentExec> {
        if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
            let is_all = fragment.open_rows().is_some() && fragment.order.is_none();
            return Some(fragment).filter(|_| is_all);
        }
        let hands_on = plan.is::<CoalescePartitionsExec>() || plan.is::<CooperativeExec>();
        match &plan.children()[..] {
            [input] if hands_on && plan.fetch().is_none() => Self::all_of(input),
            _ => None,
        }
    }

    /// Whether an expression is a column of the table as it is stored.
    pub fn is_stored(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Column(column) if *column < self.scan.table.types.len())
    }

    /// Whether floats that an expression yields have one form only: those of the table have, and what is computed of
    /// them has. What is joined may come from anywhere.
    pub fn has_one_nan(&self, expr: &Expr) -> bool {
        let mut is_own = true;
        expr.for_each_column(&mut |column| is_own &= column < self.scan.table.types.len());
        let is_computed = matches!(expr, Expr::Binary { .. } | Expr::Negate(_));
        self.is_stored(expr) || is_own && is_computed
    }

    /// The fragment that yields these expressions instead of its own, as columns of a schema; what is joined has been
    /// read. `None`: there is no room for that.
    pub async fn bind(
        &self,
        columns: Vec<Expr>,
        schema: SchemaRef,
        context: &Arc<TaskContext>,
    ) -> Result<Option<Bound>, FragmentError> {
        let output = Output::Rows {
            columns,
            limit: None,
        };
        let plan = self.with_output(output, schema);
        let mut build_sides = None;
        if let Some(star) = &plan.star {
            build_sides = star.read(context).await.map_err(into_fragment_error)?;
            if build_sides.is_none() {
                return Ok(None);
            }
            star.tell(&plan.scan);
        }
        let held = build_sides.as_ref().map(BuildSides::held);
        let fragment = plan.fragment(build_sides).await;
        Ok(Some(Bound {
            fragment: fragment.map_err(into_fragment_error)?,
            _held: held,
        }))
    }
}
