//! SUM that never wraps.
//!
//! **Stands for** DataFusion's function of the same name, which wraps around silently.
//!
//! ```text
//!  sum of what was added  =  wraps · 2^bits + low        kept exactly, however often it leaves the type in between
//!                              └ 0, and low within the decimal's digits, or else an error when the sum is asked for
//! ```
//!
//! So a sum fails if and only if it does not fit its type, whatever the order of the rows. This holds for each place
//! where a sum is handed on: a worker's partial sum has to fit as well.
//!
//! Names, types and states are those of DataFusion's function, which also does what has nothing to do with overflow:
//! sums of floating-point numbers. Intervals have [their own](super::interval_total).

mod distinct;
mod groups;
mod total;

use super::interval_total::{self, Figure};
use crate::arithmetic::interval::INTERVAL;
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef,
    Int64Type, UInt64Type,
};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature,
};
use distinct::DistinctSum;
use groups::GroupSums;
use std::hash::{Hash, Hasher};
use total::{PlainSum, SumType, Summand};

/// The function. Statistics never answer it, for nobody says how their sums were made.
#[derive(Debug, Default)]
pub(crate) struct ExactSum {
    other: Sum,
}

/// There is one such function. What it takes need not be compared and hashed with every expression that calls it:
/// planning 2,000 sums would spend a third of its time so.
impl PartialEq for ExactSum {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ExactSum {}

impl Hash for ExactSum {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Makes something for the type of a sum, if sums of that type can overflow.
macro_rules! exact {
    ($args:expr, $make:ident) => {
        match $args.return_field.data_type() {
            DataType::Int64 => Some($make::<Int64Type>($args, None)),
            DataType::UInt64 => Some($make::<UInt64Type>($args, None)),
            DataType::Decimal32(digits, _) => Some(decimal!($args, $make, Decimal32Type, *digits)),
            DataType::Decimal64(digits, _) => Some(decimal!($args, $make, Decimal64Type, *digits)),
            DataType::Decimal128(digits, _) => {
                Some(decimal!($args, $make, Decimal128Type, *digits))
            }
            DataType::Decimal256(digits, _) => {
                Some(decimal!($args, $make, Decimal256Type, *digits))
            }
            _ => None,
        }
    };
}

/// The same for one type of decimals, with the largest number of these digits.
macro_rules! decimal {
    ($args:expr, $make:ident, $type:ty, $digits:expr) => {
        $make::<$type>(
            $args,
            Some(<$type>::MAX_FOR_EACH_PRECISION[usize::from($digits)]),
        )
    };
}

fn plain<T: Summand>(args: &AccumulatorArgs<'_>, most: Option<T::Native>) -> Box<dyn Accumulator> {
    Box::new(PlainSum::new(SumType::<T>::new(args, most)))
}

fn distinct<T: Summand>(
    args: &AccumulatorArgs<'_>,
    most: Option<T::Native>,
) -> Box<dyn Accumulator> {
    Box::new(DistinctSum::new(SumType::<T>::new(args, most)))
}

fn groups<T: Summand>(
    args: &AccumulatorArgs<'_>,
    most: Option<T::Native>,
) -> Box<dyn GroupsAccumulator> {
    Box::new(GroupSums::new(SumType::<T>::new(args, most)))
}

/// The accumulator of all rows seen; it can also forget the oldest ones, for windows.
fn accumulator(args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    match args.is_distinct {
        true => exact!(args, distinct),
        false if *args.return_field.data_type() == INTERVAL => {
            Some(interval_total::of_rows(Figure::Sum))
        }
        false => exact!(args, plain),
    }
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.other.return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        accumulator(&args).map_or_else(|| self.other.accumulator(args), Ok)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match *args.return_field.data_type() == INTERVAL && !args.is_distinct {
            true => Ok(interval_total::state_fields(args.name)),
            false => self.other.state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let is_interval = *args.return_field.data_type() == INTERVAL;
        is_interval && !args.is_distinct || self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if *args.return_field.data_type() == INTERVAL {
            return Ok(interval_total::of_groups(Figure::Sum));
        }
        let exact = exact!(&args, groups);
        exact.map_or_else(|| self.other.create_groups_accumulator(args), Ok)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        accumulator(&args).map_or_else(|| self.other.create_sliding_accumulator(args), Ok)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.other.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.other.order_sensitivity()
    }

    /// `sum(x + 1)` as `sum(x) + count(x)` only where nothing can overflow: the operators outside of the sum may wrap.
    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        match literal {
            Expr::Literal(value, _) if value.data_type().is_floating() => self
                .other
                .simplify_expr_op_literal(function, argument, operator, literal, is_left),
            _ => Ok(None),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.other.set_monotonicity(data_type)
    }
}
