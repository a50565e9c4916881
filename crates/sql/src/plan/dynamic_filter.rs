//! Filters that become known only while a plan runs: a hash join that has read its build side tells the scan of its
//! probe side which keys can match.
//!
//! ```text
//! key >= 3 AND key <= 900 AND hash_lookup(key) AND key in {3, 8, …}      what the join says
//!    └──── range ────┘         │                      └ the set, if there is one: it says all
//!                              └ else asked for each key of the range: a bitmap
//! ```
//!
//! Everything here only leaves out rows that the join would leave out; what is not understood is not applied. A filter
//! that would let NULL pass is never made a key set, for a key set lets none pass.

use crate::plan::statistics::TableStatistics;
use crate::plan::translate::{Scope, constant, is_key};
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_physical_expr;
use eris_exact::KeySetExpr;
use eris_fragment::{Expr, KeySet, Probe, Type, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that are asked for one by one, at most; a bitmap of 512 KiB.
const ASKED: u64 = 4 << 20;
/// Rows of the table that make it worth asking for one key.
const ROWS_PER_KEY: u64 = 4;
/// Keys asked for at once, within a millisecond or so; and so many are worth it for every table.
const BATCH: i64 = 1 << 16;

/// What a fragment can do of some filters. Columns are those of the table.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Harvest {
    pub filter: Vec<Expr>,
    pub probes: Vec<Probe>,
}

/// Reads filters as they are now. Gives way to other tasks between batches of keys.
pub(crate) async fn harvest(
    filters: &[Arc<dyn PhysicalExpr>],
    scope: &Scope<'_>,
    statistics: &TableStatistics,
) -> Result<Harvest> {
    let mut harvest = Harvest::default();
    let mut ranges = BTreeMap::<usize, (i64, i64)>::new();
    let mut opaque = Vec::new();
    for filter in filters {
        let filter = snapshot_physical_expr(Arc::clone(filter))?;
        for conjunct in split_conjunction(&filter) {
            if let Some((column, low, high)) = bound(conjunct, scope) {
                let range = ranges.entry(column).or_insert((i64::MIN, i64::MAX));
                *range = (range.0.max(low), range.1.min(high));
            } else if let Some(probe) = list(conjunct, scope).or_else(|| set(conjunct, scope)) {
                harvest.probes.push(probe);
            } else if let Some(expr) = scope.translate(conjunct) {
                if !is_true(&expr) {
                    harvest.filter.push(expr);
                }
            } else if let Some((position, column)) = only_key(conjunct, scope) {
                opaque.push((Arc::clone(conjunct), position, column));
            }
        }
    }
    for (conjunct, position, column) in opaque {
        // All its keys are known.
        if harvest.probes.iter().any(|probe| probe.column == column) {
            continue;
        }
        let known = statistics.range(column).unwrap_or((i64::MIN, i64::MAX));
        let range = ranges.get(&column).copied().unwrap_or((i64::MIN, i64::MAX));
        let range = (range.0.max(known.0), range.1.min(known.1));
        let worth = (statistics.rows() / ROWS_PER_KEY).max(BATCH as u64);
        let most = ASKED.min(worth);
        let field = scope.schema.field(position);
        if let Some(keys) = ask(&conjunct, field, range, most).await? {
            harvest.probes.push(Probe { column, keys });
        }
    }
    for (column, (low, high)) in ranges {
        // A set that was asked for within the range, or a list, says more than the range.
        if !harvest.probes.iter().any(|probe| probe.column == column) {
            harvest.probes.push(Probe {
                column,
                keys: KeySet::Range { low, high },
            });
        }
    }
    Ok(harvest)
}

/// `column >= constant` and its like over keys, as a range.
fn bound(conjunct: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<(usize, i64, i64)> {
    let binary = conjunct.downcast_ref::<BinaryExpr>()?;
    let (_, column) = key_column(binary.left(), scope)?;
    let constant = constant(binary.right())?;
    let Value::Integer(value) = constant.value else {
        return None;
    };
    if constant.data_type != scope.types[column] {
        return None;
    }
    let value = i64::try_from(value).ok()?;
    match binary.op() {
        Operator::GtEq => Some((column, value, i64::MAX)),
        Operator::LtEq => Some((column, i64::MIN, value)),
        Operator::Eq => Some((column, value, value)),
        _ => None,
    }
}

/// `column IN (…)` over keys or texts, as a set.
fn list(conjunct: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<Probe> {
    let list = conjunct.downcast_ref::<InListExpr>()?;
    if list.negated() {
        return None;
    }
    let (_, column) = column(list.expr(), scope)?;
    let data_type = &scope.types[column];
    if *data_type != Type::String && !is_key(data_type) {
        return None;
    }
    let mut integers = Vec::with_capacity(list.len());
    let mut texts = Vec::new();
    for value in list.list() {
        let value = constant(value)?;
        if value.data_type != *data_type {
            return None;
        }
        match value.value {
            // A NULL in the list makes no key pass, and whatever is not in the list does not pass anyway.
            Value::Null => {}
            Value::Integer(value) => integers.push(i64::try_from(value).ok()?),
            Value::String(value) => texts.push(value),
            _ => return None,
        }
    }
    integers.sort_unstable();
    integers.dedup();
    texts.sort_unstable();
    texts.dedup();
    let keys = match data_type {
        Type::String => KeySet::Strings(texts),
        _ => KeySet::of_sorted(integers),
    };
    Some(Probe { column, keys })
}

/// The keys of a join's build side, if they are compared with a column of their type.
fn set(conjunct: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<Probe> {
    let set = conjunct.downcast_ref::<KeySetExpr>()?;
    let (position, column) = column(&set.key, scope)?;
    let data_type = Type::try_from(scope.schema.field(position).data_type()).ok()?;
    let has_keys = match &*set.keys {
        KeySet::Strings(_) => data_type == Type::String,
        KeySet::Range { .. } | KeySet::Bitmap { .. } | KeySet::Integers(_) => is_key(&data_type),
    };
    (has_keys && data_type == scope.types[column]).then(|| Probe {
        column,
        keys: KeySet::clone(&set.keys),
    })
}

fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(scalar) if scalar.value == Value::Boolean(true))
}

/// The position in the scope's schema and the table's column of a plain column.
fn column(expr: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<(usize, usize)> {
    let position = expr.downcast_ref::<Column>()?.index();
    match scope.inputs.get(position)? {
        Some(Expr::Column(column)) => Some((position, *column)),
        _ => None,
    }
}

/// The same, of a column of integer-like keys.
fn key_column(expr: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<(usize, usize)> {
    column(expr, scope).filter(|(_, column)| is_key(&scope.types[*column]))
}

/// The only column that a predicate depends on, if its values are keys.
fn only_key(predicate: &Arc<dyn PhysicalExpr>, scope: &Scope<'_>) -> Option<(usize, usize)> {
    let mut only: Option<Arc<dyn PhysicalExpr>> = None;
    let mut several = false;
    let visit = predicate.apply(|expr| {
        if let Some(column) = expr.downcast_ref::<Column>() {
            let seen = only.get_or_insert_with(|| Arc::clone(expr));
            several |= seen.downcast_ref::<Column>() != Some(column);
        }
        several |= expr.is_volatile_node();
        Ok(if several {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    visit.ok()?;
    only.filter(|_| !several)
        .and_then(|column| key_column(&column, scope))
}

/// The keys of a range for which a predicate over one column is true; `None` if there are more than `most` to ask for,
/// or if NULL passes as well.
async fn ask(
    predicate: &Arc<dyn PhysicalExpr>,
    field: &Field,
    (low, high): (i64, i64),
    most: u64,
) -> Result<Option<KeySet>> {
    if low > high {
        return Ok(Some(KeySet::Range { low, high }));
    }
    if high.abs_diff(low) >= most {
        return Ok(None);
    }
    let schema = Arc::new(Schema::new(vec![Field::new(
        field.name(),
        field.data_type().clone(),
        true,
    )]));
    let alone = Arc::clone(predicate).transform(|expr| {
        Ok(match expr.downcast_ref::<Column>() {
            Some(column) => Transformed::yes(Arc::new(Column::new(column.name(), 0)) as _),
            None => Transformed::no(expr),
        })
    });
    let alone = alone.data()?;
    let passes = |keys: ArrayRef| -> Result<BooleanArray> {
        let rows = keys.len();
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![keys])?;
        let result = alone.evaluate(&batch)?.into_array(rows)?;
        Ok(datafusion::common::cast::as_boolean_array(&result)?.clone())
    };
    let null = passes(new_null_array(field.data_type(), 1))?;
    if null.is_valid(0) && null.value(0) {
        return Ok(None);
    }
    let mut words = vec![0u64; (high.abs_diff(low) / 64 + 1) as usize];
    let mut from = low;
    loop {
        let to = high.min(from.saturating_add(BATCH - 1));
        let result = passes(keys(field.data_type(), from..=to)?)?;
        for (at, passed) in result.iter().enumerate() {
            if passed == Some(true) {
                let bit = from.abs_diff(low) as usize + at;
                words[bit / 64] |= 1 << (bit % 64);
            }
        }
        if to == high {
            return Ok(Some(KeySet::Bitmap { first: low, words }));
        }
        from = to + 1;
        // A statement that has been cancelled ends here.
        tokio::task::yield_now().await;
    }
}

/// The keys of a range as values of a type.
fn keys(data_type: &DataType, range: std::ops::RangeInclusive<i64>) -> Result<ArrayRef> {
    if let DataType::Decimal128(precision, scale) = data_type {
        let keys = Decimal128Array::from_iter_values(range.map(i128::from));
        return Ok(Arc::new(keys.with_precision_and_scale(*precision, *scale)?));
    }
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    Ok(match data_type {
        DataType::Date32 => cast(&cast(&keys, &DataType::Int32)?, data_type)?,
        _ => cast(&keys, data_type)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{
        DynamicFilterPhysicalExpr, binary, case, in_list, is_null, lit,
    };
    use eris_home::ObjectStatistics;
    use eris_types::Timestamp;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("k", DataType::Int32, true),
            Field::new("t", DataType::Utf8View, true),
            Field::new("d", DataType::Date32, true),
        ])
    }

    fn read(filter: Arc<dyn PhysicalExpr>) -> Harvest {
        let schema = schema();
        let types = [Type::Int32, Type::String, Type::Date];
        let inputs = [
            Some(Expr::Column(0)),
            Some(Expr::Column(1)),
            Some(Expr::Column(2)),
        ];
        let scope = Scope {
            schema: &schema,
            inputs: &inputs,
            types: &types,
            parameters: types.len(),
        };
        let object = ObjectStatistics {
            rows: 1 << 20,
            ..ObjectStatistics::default()
        };
        let statistics = TableStatistics::new(object, Timestamp(0));
        let children = vec![key(), column_of("t", 1), column_of("d", 2)];
        let dynamic = DynamicFilterPhysicalExpr::new(children, lit(true));
        dynamic.update(filter).unwrap();
        let filters: [Arc<dyn PhysicalExpr>; 1] = [Arc::new(dynamic)];
        futures::executor::block_on(harvest(&filters, &scope, &statistics)).unwrap()
    }

    fn column_of(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(name, index))
    }

    fn key() -> Arc<dyn PhysicalExpr> {
        column_of("k", 0)
    }

    fn op(
        left: Arc<dyn PhysicalExpr>,
        op: Operator,
        right: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        binary(left, op, right, &schema()).unwrap()
    }

    fn between(low: i32, high: i32) -> Arc<dyn PhysicalExpr> {
        op(
            op(key(), Operator::GtEq, lit(low)),
            Operator::And,
            op(key(), Operator::LtEq, lit(high)),
        )
    }

    /// `CASE k % 2 WHEN 0 THEN …`: what a join of two hash partitions says.
    fn routed() -> Arc<dyn PhysicalExpr> {
        let routing = op(key(), Operator::BitwiseAnd, lit(1));
        let branches = vec![
            (
                lit(0),
                in_list(key(), vec![lit(4), lit(8)], &false, &schema()).unwrap(),
            ),
            (
                lit(1),
                in_list(key(), vec![lit(5), lit(8)], &false, &schema()).unwrap(),
            ),
        ];
        case(Some(routing), branches, Some(lit(false))).unwrap()
    }

    #[test]
    fn a_filter_that_says_nothing_yet_is_nothing() {
        assert_eq!(read(lit(true)), Harvest::default());
    }

    #[test]
    fn bounds_become_a_range() {
        let probes = read(between(3, 900)).probes;
        assert_eq!(
            probes,
            [Probe {
                column: 0,
                keys: KeySet::Range { low: 3, high: 900 }
            }]
        );
    }

    #[test]
    fn lists_become_sets() {
        let numbers = in_list(key(), vec![lit(9), lit(3), lit(9)], &false, &schema()).unwrap();
        let probes = read(op(between(3, 9), Operator::And, numbers)).probes;
        assert_eq!(
            probes,
            [Probe {
                column: 0,
                keys: KeySet::Integers(vec![3, 9])
            }]
        );
        let text = |text: &str| lit(ScalarValue::Utf8View(Some(text.into())));
        let texts = in_list(
            column_of("t", 1),
            vec![text("b"), text("a")],
            &false,
            &schema(),
        )
        .unwrap();
        let probes = read(texts).probes;
        assert_eq!(
            probes,
            [Probe {
                column: 1,
                keys: KeySet::Strings(vec!["a".into(), "b".into()])
            }]
        );
    }

    #[test]
    fn what_depends_on_one_key_is_asked_for_every_key() {
        let probes = read(op(between(0, 70), Operator::And, routed())).probes;
        let words = vec![1 << 4 | 1 << 5 | 1 << 8, 0];
        assert_eq!(
            probes,
            [Probe {
                column: 0,
                keys: KeySet::Bitmap { first: 0, words }
            }]
        );
    }

    #[test]
    fn the_keys_of_a_build_side_are_a_set() {
        let keys = KeySet::Integers(vec![4, 60]);
        let known: Arc<dyn PhysicalExpr> = Arc::new(KeySetExpr {
            key: key(),
            keys: Arc::new(keys.clone()),
        });
        let said = op(between(0, 70), Operator::And, routed());
        let probes = read(op(said, Operator::And, known)).probes;
        assert_eq!(probes, [Probe { column: 0, keys }]);
    }

    #[test]
    fn a_filter_that_lets_null_pass_is_no_key_set() {
        let preserved = op(is_null(key()).unwrap(), Operator::Or, routed());
        assert_eq!(read(preserved), Harvest::default());
    }

    #[test]
    fn too_many_keys_are_not_asked_for() {
        assert_eq!(
            read(op(between(0, i32::MAX), Operator::And, routed()))
                .probes
                .len(),
            1
        );
    }

    #[test]
    fn dates_are_keys_too() {
        let day = |day| lit(ScalarValue::Date32(Some(day)));
        let days = op(column_of("d", 2), Operator::GtEq, day(10));
        let probes = read(days).probes;
        assert_eq!(
            probes,
            [Probe {
                column: 2,
                keys: KeySet::Range {
                    low: 10,
                    high: i64::MAX
                }
            }]
        );
        let array = keys(&DataType::Date32, 3..=5).unwrap();
        assert_eq!(array.data_type(), &DataType::Date32);
    }
}
