//! Aggregates that are called in another way here.

use super::text;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, Value,
};

/// The aggregate that is any value but NULL. DataFusion's one does not sort.
pub(super) const ANY: &str = "any_value";

pub(super) fn is_sorted(function: &Function) -> bool {
    let is_order =
        |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    match &function.args {
        FunctionArguments::List(list) => list.clauses.iter().any(is_order),
        _ => false,
    }
}

/// Drops numbers from the order of an aggregate's rows. The planner takes them for columns of FROM.
pub(super) fn without_constant_keys(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    for clause in &mut list.clauses {
        if let FunctionArgumentClause::OrderBy(keys) = clause {
            keys.retain(|key| !matches!(&key.expr, Expr::Value(value) if matches!(value.value, Value::Number(..))));
        }
    }
    list.clauses.retain(|clause| match clause {
        FunctionArgumentClause::OrderBy(keys) => !keys.is_empty(),
        _ => true,
    });
}

/// Lets the aggregate see no NULL.
pub(super) fn without_null(function: &mut Function) {
    let FunctionArguments::List(list) = &function.args else {
        return;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = &list.args[..] else {
        return;
    };
    let is_value = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
    let filter = match function.filter.take() {
        None => is_value,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter)),
            op: BinaryOperator::And,
            right: Box::new(is_value),
        },
    };
    function.filter = Some(Box::new(filter));
}

/// `list_aggregate(l, 'sum')` as `list_sum(l)`: the name of the function.
pub(super) fn aggregate_of_list(function: &mut Function) -> Option<String> {
    let FunctionArguments::List(list) = &mut function.args else {
        return None;
    };
    let aggregate = match list.args.get(1)? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => text(expr)?.to_lowercase(),
        _ => return None,
    };
    list.args.remove(1);
    let name = format!("list_{aggregate}");
    function.name = ObjectName::from(vec![Ident::new(name.as_str())]);
    Some(name)
}

pub(super) fn with_comma(function: &mut Function) {
    if let FunctionArguments::List(list) = &mut function.args
        && list.args.len() == 1
    {
        let comma = Expr::value(Value::SingleQuotedString(",".to_owned()));
        list.args
            .push(FunctionArg::Unnamed(FunctionArgExpr::Expr(comma)));
    }
}
