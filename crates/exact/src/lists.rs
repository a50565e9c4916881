//! `length([1, 2, 3])` is 3, as in DuckDB.
//!
//! **Stands for** DataFusion's functions of strings, some of which take a list for the string that shows it: its length
//! would be 9 characters. Here such a call is one of the function of lists.
//!
//! `m[[1, 2]]` of a MAP looks for the list among its keys. DataFusion's function panics there.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions_nested::expr_fn::{
    array_element, array_length, array_position, array_reverse, map_keys, map_values,
};
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit};

/// A function of strings as one of lists, if it has a list.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(rewritten(expr, schema))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &expr else {
        return Transformed::no(expr);
    };
    if let ("get_field", [map, key]) = (function.func.name(), &function.args[..]) {
        let types = [map, key].map(|part| part.get_type(schema));
        return match types {
            [Ok(DataType::Map(..)), Ok(key_type)] if key_type.is_nested() => {
                let place = array_position(map_keys(map.clone()), key.clone(), lit(1_i64));
                let place = cast(place, DataType::Int64);
                Transformed::yes(array_element(map_values(map.clone()), place))
            }
            _ => Transformed::no(expr),
        };
    }
    let [list] = &function.args[..] else {
        return Transformed::no(expr);
    };
    let is_list = list.get_type(schema).is_ok_and(|of| {
        use DataType::{FixedSizeList, LargeList, List};
        matches!(of, List(_) | LargeList(_) | FixedSizeList(..))
    });
    match function.func.name() {
        "character_length" if is_list => {
            let length = array_length(list.clone());
            Transformed::yes(cast(length, DataType::Int64))
        }
        "reverse" if is_list => Transformed::yes(array_reverse(list.clone())),
        _ => Transformed::no(expr),
    }
}
