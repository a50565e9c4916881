//! Tells the probe side of a hash join which keys its build side has.
//!
//! ```text
//! build ─ feed ─▶ hash table
//!           │
//!           └─ all partitions ended ─▶ KeySet of each key, before the probe side is read for the first time:
//!                                      key in {3, 8, …, 900}
//! ```
//!
//! A set of the keys can be tested where the rows are, without decoding them, and zones of whole chunks can be left out
//! by it. Of many keys that lie far apart, only the range is told.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use eris_fragment::{KeySet, integer_keys};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Keys that are tested one by one, at most: more of them, far apart, cost more than what they leave out.
const LISTED: usize = 4 << 10;
/// Bits of a set for each of its keys, at most: a row that is left out by a bit costs far less than one that is not.
const BITS_PER_KEY: u64 = 1 << 10;
/// The most bits, 8 MiB: the fragment and its program have copies of them.
const BITS: u64 = 64 << 20;

/// The keys of the build sides of a join, as they come.
pub(crate) struct BuildKeys {
    filter: Arc<dyn PhysicalExpr>,
    /// Of the build side and of the probe side.
    on: Vec<[Arc<dyn PhysicalExpr>; 2]>,
    state: Mutex<KeysState>,
}

#[derive(Default)]
struct KeysState {
    /// Build sides that have not ended.
    left: usize,
    /// By key of the join, the values of all build sides so far.
    values: Vec<Vec<ArrayRef>>,
    /// What the probe side is told, until it is.
    sets: Vec<KeySetExpr>,
}

impl BuildKeys {
    /// None if nobody on the probe side wants to be told.
    pub fn of(join: &HashJoinExec, builds: usize) -> Result<Option<Self>> {
        let Some(filter) = join.dynamic_expressions_produced().pop() else {
            return Ok(None);
        };
        // Else a NULL might match, and no set has one.
        let is_plain = join.null_equality() == NullEquality::NullEqualsNothing;
        if !is_plain || !is_used(&filter, join.right())? {
            return Ok(None);
        }
        let on = join.on().iter();
        let on = on.map(|(build, probe)| [Arc::clone(build), Arc::clone(probe)]);
        Ok(Some(BuildKeys {
            filter,
            on: on.collect(),
            state: Mutex::new(KeysState {
                left: builds,
                values: vec![Vec::new(); join.on().len()],
                sets: Vec::new(),
            }),
        }))
    }

    /// A build side has ended, all of which these batches are.
    pub fn ended(&self, batches: &[RecordBatch], memory: &MemoryReservation) -> Result<()> {
        let values = self.on.iter().map(|[build, _]| {
            let values = batches.iter().map(|batch| {
                let values = build.evaluate(batch)?;
                values.into_array(batch.num_rows())
            });
            values.collect::<Result<Vec<_>>>()
        });
        self.ended_with(values.collect::<Result<_>>()?, memory);
        Ok(())
    }

    /// The same: by key of the join, its values in all batches.
    pub fn ended_with(&self, values: Vec<Vec<ArrayRef>>, memory: &MemoryReservation) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) = state.left.checked_sub(1) else {
            // The plan is executed again: its filter knows the keys already.
            return;
        };
        state.left = left;
        for (values, all) in values.into_iter().zip(&mut state.values) {
            all.extend(values);
        }
        if left > 0 {
            return;
        }
        let values = std::mem::take(&mut state.values);
        for ([_, probe], values) in self.on.iter().zip(values) {
            if let Some(keys) = set_of(&values, memory) {
                state.sets.push(KeySetExpr {
                    key: Arc::clone(probe),
                    keys: Arc::new(keys),
                });
            }
        }
    }

    /// The probe side is about to be read: tells it, once.
    pub fn tell(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sets = std::mem::take(&mut state.sets);
        let has_ended = state.left == 0;
        drop(state);
        let Some(filter) = self.filter.downcast_ref::<DynamicFilterPhysicalExpr>() else {
            return Ok(());
        };
        if !sets.is_empty() {
            let said = filter.current()?;
            let all = sets.into_iter().fold(said, |said, set| {
                Arc::new(BinaryExpr::new(said, Operator::And, Arc::new(set)))
            });
            filter.update(all)?;
        }
        if has_ended {
            filter.mark_complete();
        }
        Ok(())
    }
}

/// Whether a plan has a filter among its expressions.
fn is_used(filter: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let wanted = filter.expression_id();
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(&mut |expr| {
            expr.apply(|part| {
                found |= wanted.is_some() && part.expression_id() == wanted;
                Ok(match found {
                    true => TreeNodeRecursion::Stop,
                    false => TreeNodeRecursion::Continue,
                })
            })
        })
    })?;
    Ok(found)
}

/// The set of some values, or their range, if a set is too large to be worth it. NULL is in none.
fn set_of(values: &[ArrayRef], memory: &MemoryReservation) -> Option<KeySet> {
    let room = memory.new_empty();
    KeySet::of_pieces(values, LISTED, |keys, width| {
        let is_dense = width < BITS.min(BITS_PER_KEY.saturating_mul(keys as u64));
        is_dense && room.try_grow((width / 8) as usize).is_ok()
    })
}

/// Whether a key is in a set. NULL is not.
#[derive(Clone, Debug)]
pub struct KeySetExpr {
    /// The key.
    pub key: Arc<dyn PhysicalExpr>,
    /// The set.
    pub keys: Arc<KeySet>,
}

impl PartialEq for KeySetExpr {
    fn eq(&self, other: &Self) -> bool {
        *self.key == *other.key && Arc::ptr_eq(&self.keys, &other.keys)
    }
}

impl Eq for KeySetExpr {}

impl Hash for KeySetExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        Arc::as_ptr(&self.keys).hash(state);
    }
}

impl fmt::Display for KeySetExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} keys", self.key, self.keys.len())
    }
}

impl PhysicalExpr for KeySetExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.key.evaluate(batch)?.into_array(batch.num_rows())?;
        let passes: BooleanArray = match integer_keys(&values) {
            Some(keys) => (0..keys.len())
                .map(|row| Some(values.is_valid(row) && self.keys.has_integer(keys[row])))
                .collect(),
            // It only leaves out what the join would leave out.
            None => vec![true; values.len()].into(),
        };
        Ok(ColumnarValue::Array(Arc::new(passes)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.key]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(KeySetExpr {
            key: children.remove(0),
            keys: Arc::clone(&self.keys),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt_sql(f)?;
        write!(f, " in {} keys", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int32Array, StringViewArray};
    use datafusion::execution::memory_pool::{
        GreedyMemoryPool, MemoryConsumer, MemoryPool, UnboundedMemoryPool,
    };
    use datafusion::physical_expr::expressions::Column;

    fn of(values: Vec<ArrayRef>, pool: impl MemoryPool + 'static) -> Option<KeySet> {
        let pool: Arc<dyn MemoryPool> = Arc::new(pool);
        set_of(&values, &MemoryConsumer::new("test").register(&pool))
    }

    fn numbers(values: impl IntoIterator<Item = Option<i32>>) -> ArrayRef {
        Arc::new(values.into_iter().collect::<Int32Array>())
    }

    #[test]
    fn a_set_has_all_values_but_null() {
        let pieces = vec![numbers([Some(9), None]), numbers([Some(3), Some(9)])];
        let set = of(pieces.clone(), UnboundedMemoryPool::default()).unwrap();
        assert_eq!(set, KeySet::Integers(vec![3, 9]));
        assert!(
            of(pieces, GreedyMemoryPool::new(8)).is_some(),
            "a short list takes none"
        );
        let all_null = of(vec![numbers([None])], UnboundedMemoryPool::default()).unwrap();
        assert!(all_null.is_empty());
        let nothing = of(Vec::new(), UnboundedMemoryPool::default()).unwrap();
        assert!(nothing.is_empty(), "no row of the other side has a match");
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
        let set = of(vec![texts], UnboundedMemoryPool::default());
        assert_eq!(set, Some(KeySet::Strings(vec!["a".into()])));
        let many = (0..=LISTED).map(|number| Some(number.to_string()));
        let many: ArrayRef = Arc::new(many.collect::<StringViewArray>());
        assert_eq!(of(vec![many], UnboundedMemoryPool::default()), None);
    }

    #[test]
    fn many_keys_are_bits_if_they_lie_close_together_or_else_a_range() {
        let range = |step: i64| KeySet::Range {
            low: 0,
            high: 9_999 * step,
        };
        let every = |step: i32| numbers((0..10_000).map(|number| Some(number * step)));
        let set = of(vec![every(700)], UnboundedMemoryPool::default()).unwrap();
        assert!(matches!(set, KeySet::Bitmap { .. }), "{set:?}");
        let denied = of(vec![every(700)], GreedyMemoryPool::new(1 << 10));
        assert_eq!(denied, Some(range(700)), "there is no memory");
        assert_eq!(set.len(), 10_000);
        let far_apart = of(vec![every(100_000)], UnboundedMemoryPool::default());
        assert_eq!(far_apart, Some(range(100_000)));
    }

    #[test]
    fn values_pass_that_are_in_the_set() {
        let schema = Schema::new(vec![datafusion::arrow::datatypes::Field::new(
            "k",
            DataType::Int32,
            true,
        )]);
        let values = numbers([Some(2), None, Some(3), Some(-1), Some(700)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
        for (keys, expected) in [
            (
                KeySet::Integers(vec![3, 9]),
                [false, false, true, false, false],
            ),
            (
                KeySet::Range { low: 2, high: 3 },
                [true, false, true, false, false],
            ),
            (
                KeySet::Bitmap {
                    first: 2,
                    words: vec![0b10],
                },
                [false, false, true, false, false],
            ),
        ] {
            let set = KeySetExpr {
                key: Arc::new(Column::new("k", 0)),
                keys: Arc::new(keys),
            };
            let passes = set.evaluate(&batch).unwrap().into_array(5).unwrap();
            let expected: ArrayRef = Arc::new(BooleanArray::from(expected.to_vec()));
            assert_eq!(&passes, &expected, "{set}");
        }
    }
}
