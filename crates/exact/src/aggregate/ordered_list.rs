//! `array_agg` with an order, beside another one with the opposite order.
//!
//! **Stands for** DataFusion's function, which may be called the other way round where its rows are sorted like that.
//! With DISTINCT it then sorts its values the other way round, too. This one is called as it was written. It sorts by
//! itself what does not come in its order.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::array_agg::ArrayAgg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The function.
#[derive(Debug)]
pub(crate) struct OrderedList {
    other: Arc<dyn AggregateUDFImpl>,
    /// Whether its rows come in its order.
    is_sorted: bool,
}

impl Default for OrderedList {
    fn default() -> Self {
        OrderedList {
            other: Arc::new(ArrayAgg::default()),
            is_sorted: false,
        }
    }
}

impl PartialEq for OrderedList {
    fn eq(&self, other: &Self) -> bool {
        self.is_sorted == other.is_sorted
    }
}

impl Eq for OrderedList {}

impl Hash for OrderedList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_sorted.hash(state);
    }
}

impl AggregateUDFImpl for OrderedList {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.other.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.other.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.other.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.other.create_groups_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_sorted: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let other = Arc::clone(&self.other).with_beneficial_ordering(is_sorted)?;
        Ok(other.map(|other| Arc::new(OrderedList { other, is_sorted }) as _))
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.other.supports_null_handling_clause()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}
