//! `string_agg` hands its groups on without having all of them twice.
//!
//! ```text
//!  groups' strings  ▓▓▓▓▓▓▓▓▓▓▓▓      column so far  ░
//!                   ░░░░░░▓▓▓▓▓▓                     ▓▓▓▓▓▓    what is copied is freed, a sixteenth at a time
//! ```
//!
//! Groups may leave memory for files. They are read by the thousand again, whatever they take. So wide groups stay, and
//! the statement fails where they have no room.
//!
//! **Stands for** DataFusion's function, which copies all strings, and only then frees them. It also rejects two of
//! different orders, though each sorts its strings itself, and sorts distinct ones the wrong way round beside others.

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, LargeStringBuilder};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::string_agg::StringAgg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    Signature,
};
use eris_numa::{Budget, Bytes};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How often the strings are there when groups leave memory: as they are, in a column, and sorted for a file or cut for
/// an exchange.
const COPIES: usize = 3;
/// Pieces in which groups are handed on.
const PIECES: usize = 16;

/// Rows of a batch, as which groups are read from files.
const BATCH_ROWS: usize = 8192;
/// Groups are wide if a batch of them takes more than this part of the memory.
const WIDE_SHARE: u64 = 8;

/// The function.
#[derive(Debug)]
pub(crate) struct PiecewiseStringAgg {
    other: StringAgg,
    budget: Budget,
}

impl PiecewiseStringAgg {
    /// Groups have room in this budget.
    pub fn new(budget: &Budget) -> Self {
        PiecewiseStringAgg {
            other: StringAgg::new(),
            budget: budget.clone(),
        }
    }
}

/// There is one such function.
impl PartialEq for PiecewiseStringAgg {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PiecewiseStringAgg {}

impl Hash for PiecewiseStringAgg {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl AggregateUDFImpl for PiecewiseStringAgg {
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
        Ok(Box::new(Piecewise {
            strings: self.other.create_groups_accumulator(args)?,
            groups: 0,
            accounted: 0,
            budget: self.budget.clone(),
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // It sorts what comes sorted, too.
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}

/// The strings of all groups.
struct Piecewise {
    strings: Box<dyn GroupsAccumulator>,
    groups: usize,
    /// What the operator has asked memory for.
    accounted: usize,
    budget: Budget,
}

impl Piecewise {
    /// Rejects wide groups that take more than half of what they could have.
    fn check(&mut self) -> Result<()> {
        let size = self.size();
        let others = self.budget.used().saturating_sub(self.accounted as u64);
        self.accounted = size;
        let strings = size / COPIES;
        let batch = strings / self.groups.max(1) * self.groups.min(BATCH_ROWS);
        let is_wide = batch as u64 > self.budget.limit() / WIDE_SHARE;
        if !is_wide || (size as u64) < self.budget.limit().saturating_sub(others) / 2 {
            return Ok(());
        }
        Err(DataFusionError::ResourcesExhausted(format!(
            "out of memory: string_agg has {} in {} groups, which take {} to hand on; of {}, others use {}",
            Bytes(strings as u64),
            self.groups,
            Bytes(size as u64),
            Bytes(self.budget.limit()),
            Bytes(others),
        )))
    }
}

impl GroupsAccumulator for Piecewise {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        self.groups = all;
        self.strings.update_batch(values, groups, filter, all)?;
        self.check()
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        self.groups = all;
        self.strings.merge_batch(states, groups, all)?;
        self.check()
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let count = match emit {
            EmitTo::All => self.groups,
            EmitTo::First(count) => count,
        };
        self.groups -= count;
        let mut column = LargeStringBuilder::with_capacity(count, self.strings.size());
        let mut left = count;
        while left > 0 {
            let piece = left.min(count.div_ceil(PIECES));
            let strings = self.strings.evaluate(EmitTo::First(piece))?;
            column.append_array(strings.as_string::<i64>())?;
            left -= piece;
        }
        Ok(Arc::new(column.finish()))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.strings.convert_to_state(values, filter)
    }

    /// With what it takes to hand them on.
    fn size(&self) -> usize {
        COPIES * self.strings.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{Column, lit};

    #[test]
    fn groups_keep_their_order() {
        let field = Arc::new(Field::new("s", DataType::Utf8, true));
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("s", 0));
        let args = AccumulatorArgs {
            return_field: Arc::new(Field::new("s", DataType::LargeUtf8, true)),
            schema: &Schema::new(vec![Arc::clone(&field)]),
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: "string_agg(s)",
            is_distinct: false,
            exprs: &[column, lit("-")],
            expr_fields: &[Arc::clone(&field), field],
        };
        let function = PiecewiseStringAgg::new(&Budget::new(u64::MAX));
        let mut groups = function.create_groups_accumulator(args).unwrap();
        let strings = (0..100).map(|row| (row != 7).then(|| row.to_string()));
        let strings: ArrayRef = Arc::new(StringArray::from_iter(strings));
        let numbers: Vec<usize> = (0..100).map(|row| row % 50).collect();
        groups.update_batch(&[strings], &numbers, None, 50).unwrap();
        let expected = |group: usize| match group {
            7 => "57".to_owned(),
            _ => format!("{group}-{}", group + 50),
        };
        let first = groups.evaluate(EmitTo::First(20)).unwrap();
        let rest = groups.evaluate(EmitTo::All).unwrap();
        let found = (first.as_string::<i64>().iter()).chain(rest.as_string::<i64>().iter());
        let found: Vec<_> = found.map(|text| text.unwrap().to_owned()).collect();
        assert_eq!(found, (0..50).map(expected).collect::<Vec<_>>());
    }
}
