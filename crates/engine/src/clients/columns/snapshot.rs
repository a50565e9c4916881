//! A column as of a snapshot, and the operators that are pushed down to its owners (Section 4.2): scan, materialise,
//! join-probe.

use super::{Column, ColumnError, ColumnPosition, POSITION, VALUE, positions};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use eris_fragment::{
    Aggregate, AggregateFunction, BinaryOp, Executor, Expr, Fragment, KeySet, Output, Probe,
    Scalar, ScanOptions, Type, Value,
};
use eris_home::HeldSnapshot;
use eris_types::{ColumnId, RowId};
use futures::TryStreamExt;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The columns of the fragments here, by their positions.
const OF_POSITION: usize = 0;
const OF_VALUE: usize = 1;

/// A column at one timestamp. Its values stay readable as long as this lives.
#[derive(Clone, Debug)]
pub struct ColumnSnapshot {
    column: Column,
    held: HeldSnapshot,
}

impl ColumnSnapshot {
    pub(super) fn new(column: Column, held: HeldSnapshot) -> Self {
        ColumnSnapshot { column, held }
    }

    /// Number of values.
    ///
    /// # Errors
    /// The table cannot be read. So for all operations here.
    pub async fn size(&self) -> Result<u64, ColumnError> {
        let count = Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        };
        let output = Output::Groups {
            keys: Vec::new(),
            aggregates: vec![count],
        };
        let counts = self
            .read(&[POSITION], Vec::new(), Vec::new(), output)
            .await?;
        Ok(integers(&counts, 0).map(|count| count as u64).sum())
    }

    /// The positions at which all of one or two conditions hold: of the given ones, in their order, or of all,
    /// ascending. A condition compares the column's value, on the left, with the given one. Strings compare byte by
    /// byte.
    ///
    /// # Errors
    /// A value is of the wrong type, a position does not exist, there are no conditions or more than two, or one is no
    /// comparison.
    pub async fn scan(
        &self,
        conditions: &[(BinaryOp, Value)],
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        if !(1..=2).contains(&conditions.len()) {
            return Err(ColumnError::Conditions(conditions.len()));
        }
        let mut filter = Vec::with_capacity(conditions.len());
        for (comparator, value) in conditions {
            self.column.array(std::slice::from_ref(value))?;
            filter.push(Expr::Binary {
                op: *comparator,
                left: Box::new(Expr::Column(OF_VALUE)),
                right: Box::new(Expr::Literal(Scalar {
                    data_type: self.column.data_type.clone(),
                    value: value.clone(),
                })),
            });
        }
        self.positions(filter, Vec::new(), positions).await
    }

    /// The positions whose values are among the keys (the primary keys of a dimension's rows that passed): of the given
    /// ones, in their order, or of all, ascending.
    ///
    /// # Errors
    /// A key is of the wrong type, or a position does not exist.
    pub async fn join_probe(
        &self,
        keys: &[Value],
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        let keys = probe(OF_VALUE, &self.column.array(keys)?);
        self.positions(Vec::new(), vec![keys], positions).await
    }

    /// The values at the positions, in their order, or all values.
    ///
    /// # Errors
    /// A position does not exist.
    pub async fn materialize(
        &self,
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<Value>, ColumnError> {
        let probes = self.probe_of(positions).await?;
        let read = [POSITION, VALUE];
        let batches = self
            .read(&read, Vec::new(), probes, rows(&[OF_POSITION, OF_VALUE]))
            .await?;
        let values = batches
            .iter()
            .flat_map(|batch| self.column.values(batch.column(1)));
        let found = integers(&batches, 0).zip(values);
        let Some(positions) = positions else {
            let mut all: Vec<(i64, Value)> = found.collect();
            all.sort_unstable_by_key(|(position, _)| *position);
            return Ok(all.into_iter().map(|(_, value)| value).collect());
        };
        let found: HashMap<i64, Value> = found.collect();
        let value = |position: &ColumnPosition| found[&(position.0 as i64)].clone();
        Ok(positions.iter().map(value).collect())
    }

    /// The ids of the table's rows.
    pub(super) async fn row_ids(&self) -> Result<Vec<RowId>, ColumnError> {
        let read = [ColumnId::ROW_ID];
        let ids = self.read(&read, Vec::new(), Vec::new(), rows(&[0])).await?;
        Ok(integers(&ids, 0).map(|id| RowId(id as u64)).collect())
    }

    /// The positions whose rows pass: of the given ones, in their order, or of all, ascending.
    async fn positions(
        &self,
        filter: Vec<Expr>,
        mut probes: Vec<Probe>,
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        probes.extend(self.probe_of(positions).await?);
        let read = [POSITION, VALUE];
        let batches = self
            .read(&read, filter, probes, rows(&[OF_POSITION]))
            .await?;
        let passed = integers(&batches, 0).map(|position| ColumnPosition(position as u64));
        let Some(positions) = positions else {
            let mut passed: Vec<ColumnPosition> = passed.collect();
            passed.sort_unstable();
            return Ok(passed);
        };
        let passed: HashSet<ColumnPosition> = passed.collect();
        let wanted = positions.iter().copied();
        Ok(wanted
            .filter(|position| passed.contains(position))
            .collect())
    }

    /// Positions as a probe; none for the whole column.
    async fn probe_of(&self, of: Option<&[ColumnPosition]>) -> Result<Option<Probe>, ColumnError> {
        let Some(of) = of else {
            return Ok(None);
        };
        if let Some(&position) = of.iter().max() {
            let size = self.size().await?;
            if position.0 >= size {
                return Err(ColumnError::Position { position, size });
            }
        }
        Ok(Some(probe(OF_POSITION, &positions(of))))
    }

    /// What a fragment over the table yields at the snapshot.
    async fn read(
        &self,
        columns: &[ColumnId],
        filter: Vec<Expr>,
        probes: impl IntoIterator<Item = Probe>,
        output: Output,
    ) -> Result<Vec<RecordBatch>, ColumnError> {
        let fragment = Fragment {
            object: self.column.object,
            snapshot: self.held.at(),
            columns: columns.to_vec(),
            filter,
            probes: probes.into_iter().collect(),
            lookups: Vec::new(),
            output,
            order: None,
            options: ScanOptions::default(),
        };
        let execution = self.column.engine.execute(Arc::new(fragment), 1)?;
        let batches = futures::stream::select_all(execution.streams);
        Ok(batches.try_collect().await?)
    }
}

/// Some columns of the rows that pass.
fn rows(columns: &[usize]) -> Output {
    Output::Rows {
        columns: columns.iter().copied().map(Expr::Column).collect(),
        limit: None,
    }
}

/// A probe of a column for some values.
fn probe(column: usize, keys: &ArrayRef) -> Probe {
    let (keys, _) = KeySet::of_values(keys).expect("integers and strings are keys");
    Probe { column, keys }
}

/// A column of integers of all batches.
fn integers(batches: &[RecordBatch], column: usize) -> impl Iterator<Item = i64> {
    batches.iter().flat_map(move |batch| {
        let integers = batch.column(column).as_primitive::<Int64Type>();
        debug_assert_eq!(integers.null_count(), 0);
        integers.values().iter().copied()
    })
}
