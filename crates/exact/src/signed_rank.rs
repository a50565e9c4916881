//! `row_number`, `rank`, `dense_rank` and `ntile` are BIGINT.
//!
//! **Stands for** DataFusion's, which are unsigned. What is computed with those becomes decimal, which is slow, and a
//! difference of two may fail.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::{ntile, rank, row_number};
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF,
    WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

/// One of these functions, with its name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SignedRank(Arc<WindowUDF>);

impl SignedRank {
    /// All of them.
    pub fn functions() -> [WindowUDF; 4] {
        let unsigned = [
            row_number::row_number_udwf(),
            rank::rank_udwf(),
            rank::dense_rank_udwf(),
            ntile::ntile_udwf(),
        ];
        unsigned.map(|function| WindowUDF::from(SignedRank(function)))
    }
}

impl WindowUDFImpl for SignedRank {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let unsigned = self.0.partition_evaluator_factory(args)?;
        Ok(Box::new(SignedEvaluator(unsigned)))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let unsigned = self.0.field(args)?;
        let signed = Field::new(unsigned.name(), DataType::Int64, unsigned.is_nullable());
        Ok(Arc::new(signed))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.0.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.0.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.0.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct SignedEvaluator(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for SignedEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(signed(&self.0.evaluate_all(values, rows)?))
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        // Asked of each row: a cast would make arrays.
        Ok(match self.0.evaluate(values, range)? {
            ScalarValue::UInt64(rank) => ScalarValue::Int64(rank.map(|rank| rank as i64)),
            other => other,
        })
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(signed(&self.0.evaluate_all_with_rank(rows, ranks)?))
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}

/// The same numbers, none of which is so large that it makes a difference.
fn signed(unsigned: &ArrayRef) -> ArrayRef {
    let numbers = unsigned.as_primitive::<UInt64Type>();
    let values = numbers.values().inner().clone();
    Arc::new(Int64Array::new(values.into(), numbers.nulls().cloned()))
}
