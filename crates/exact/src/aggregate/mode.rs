//! `mode(value)`: the value that occurs most often.
//!
//! Of values that occur equally often the least one wins, so that the answer does not depend on the order of rows.
//!
//! **Adds** what DataFusion does not have.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, DocSection, Documentation, ReversedUDAF, Signature, Volatility,
};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mode {
    signature: Signature,
}

impl Default for Mode {
    fn default() -> Self {
        Mode {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let general = DocSection {
        include: true,
        label: "General Functions",
        description: None,
    };
    let description = "The value that occurs most often; of several, the least.";
    Documentation::builder(general, description, "mode(value)").build()
});

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |what: &str, of: DataType| {
            let name = format_state_name(args.name, what);
            Arc::new(Field::new_list(name, Field::new_list_field(of, true), true))
        };
        let value = args.input_fields[0].data_type().clone();
        Ok(vec![
            list("values", value),
            list("counts", DataType::UInt64),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Counts {
            data_type: args.expr_fields[0].data_type().clone(),
            counts: HashMap::new(),
            bytes: 0,
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}

/// How often each value occurs.
#[derive(Debug)]
struct Counts {
    data_type: DataType,
    counts: HashMap<ScalarValue, u64>,
    /// What the values take.
    bytes: usize,
}

impl Counts {
    fn add(&mut self, values: &ArrayRef, times: impl Fn(usize) -> u64) -> Result<()> {
        let nulls = values.logical_nulls();
        for row in 0..values.len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let value = unsigned_zero(ScalarValue::try_from_array(values, row)?);
            match self.counts.get_mut(&value) {
                Some(count) => *count += times(row),
                None => {
                    self.bytes += value.size() + size_of::<u64>();
                    self.counts.insert(value, times(row));
                }
            }
        }
        Ok(())
    }
}

/// -0.0 and 0.0 are one value.
fn unsigned_zero(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(value + 0.0)),
        ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(value + 0.0)),
        other => other,
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(&columns[0], |_| 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for (values, counts) in values.iter().zip(counts.iter()) {
            if let (Some(values), Some(counts)) = (values, counts) {
                let counts = counts.as_primitive::<UInt64Type>();
                self.add(&values, |row| counts.value(row))?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<_>, Vec<_>) = self
            .counts
            .iter()
            .map(|(value, count)| (value.clone(), ScalarValue::UInt64(Some(*count))))
            .unzip();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.data_type)),
            ScalarValue::List(ScalarValue::new_list_nullable(&counts, &DataType::UInt64)),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let most = self
            .counts
            .iter()
            .max_by(|(one, times), (other, times_of_other)| {
                let least = || other.partial_cmp(one).unwrap_or(Ordering::Equal);
                times.cmp(times_of_other).then_with(least)
            });
        match most {
            Some((value, _)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let nulls = columns[0].logical_nulls();
        for row in 0..columns[0].len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let value = unsigned_zero(ScalarValue::try_from_array(&columns[0], row)?);
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.bytes -= value.size() + size_of::<u64>();
                    self.counts.remove(&value);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
