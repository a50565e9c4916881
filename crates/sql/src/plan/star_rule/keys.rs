//! By which columns a fact can be joined to its sides.

use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;
use eris_fragment::{Expr, Type};
use std::sync::Arc;

/// The column of the fact that a key is, and what it is cast to: by the join, or already where the fact is read.
pub(super) fn key_column(
    expr: &Expr,
    cast: Option<&DataType>,
) -> Option<(usize, Option<DataType>)> {
    match (expr, cast) {
        (Expr::Column(column), cast) => Some((*column, cast.cloned())),
        (Expr::Cast { operand, to }, None) => match **operand {
            Expr::Column(column) => Some((column, Some(to.into()))),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a lookup can compare a column of the fact, perhaps widened, with the key of a side.
pub(super) fn is_key(
    types: &[Type],
    column: usize,
    widened: Option<&DataType>,
    key: &PhysicalExprRef,
    build_side: &Arc<dyn ExecutionPlan>,
) -> Result<bool> {
    let Some(own) = types.get(column) else {
        return Ok(false);
    };
    let Ok(key) = Type::try_from(&key.data_type(&build_side.schema())?) else {
        return Ok(false);
    };
    let whole = |data_type: &Type| {
        let fraction = matches!(
            data_type,
            Type::Float32 | Type::Float64 | Type::Decimal { .. } | Type::UInt64
        );
        data_type.is_number() && !fraction
    };
    let simple = match own {
        Type::Float32 | Type::Float64 | Type::Boolean => false,
        Type::Decimal { precision, .. } => *precision <= 18,
        _ => true,
    };
    Ok(match widened {
        None => simple && *own == key,
        Some(to) => {
            let to = Type::try_from(to).ok();
            to.as_ref() == Some(&key) && whole(own) && whole(&key) && widens(own, &key)
        }
    })
}

/// Whether each value of an integer type is one of another. A cast to any other type may fail.
fn widens(from: &Type, to: &Type) -> bool {
    let (from, to) = (DataType::from(from), DataType::from(to));
    let (narrow, wide) = (from.primitive_width(), to.primitive_width());
    match (from.is_signed_integer(), to.is_signed_integer()) {
        (true, true) | (false, false) => narrow <= wide,
        (false, true) => narrow < wide,
        (true, false) => false,
    }
}
