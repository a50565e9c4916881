//! What one statement reads of one table: always the same snapshot, however often the statement names the table.

use crate::catalog::Table;
use crate::maintenance::recoding::Recodings;
use crate::plan::fragment_exec::FragmentExec;
use crate::plan::statistics::TableStatistics;
use crate::plan::translate::Scope;
use crate::progress::Progress;
use async_trait::async_trait;
use datafusion::arrow::array::StringViewArray;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr as LogicalExpr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use eris_fragment::{BinaryOp, Executor, Expr, Output, Scalar, ScanOptions, Type};
use eris_home::HeldSnapshot;
use eris_types::ColumnId;
use std::sync::Arc;

/// A table at a snapshot, and who executes fragments on it.
#[derive(Debug)]
pub(crate) struct Scan {
    pub table: Arc<Table>,
    /// Its columns, and perhaps the rows' ids behind them.
    pub schema: SchemaRef,
    /// Their types, and behind them those of the plan's parameters.
    pub types: Vec<Type>,
    /// The parameters' values, once they are known.
    pub values: Vec<Scalar>,
    /// None in a plan that is only kept, for that must not keep deleted rows.
    pub snapshot: Option<HeldSnapshot>,
    pub statistics: TableStatistics,
    pub executor: Arc<dyn Executor>,
    /// Streams over which its rows arrive.
    pub streams: usize,
    pub options: ScanOptions,
    /// Of the statement.
    pub progress: Progress,
    /// Who hears of joins; `None` if nobody wants that.
    pub recodings: Option<Arc<Recodings>>,
}

impl Scan {
    /// The same with a last column for the rows' ids. They can be handed out, but not computed with.
    pub fn with_row_ids(mut self, name: &str) -> Self {
        let ids = Field::new(name, DataType::Int64, false);
        let fields = self.schema.fields().iter().cloned();
        let fields: Vec<_> = fields.chain([Arc::new(ids)]).collect();
        self.schema = Arc::new(Schema::new(fields));
        self.types.push(Type::Int64);
        self
    }

    /// The scan of the same table among others.
    pub fn among<'a>(&self, scans: &'a [Arc<Scan>]) -> Option<&'a Arc<Scan>> {
        let mut scans = scans.iter();
        scans.find(|scan| Arc::ptr_eq(&scan.table, &self.table))
    }

    /// What the column at a position is to the engine.
    pub fn column_id(&self, column: usize) -> ColumnId {
        match column < self.table.types.len() {
            true => ColumnId(column as u32),
            false => ColumnId::ROW_ID,
        }
    }

    /// All strings that a column's rows may have, in the order of their codes; `None` if that is not known.
    pub fn strings(&self, column: usize) -> Option<StringViewArray> {
        let (object, column) = (self.table.object, self.column_id(column));
        self.executor.strings(object, column)
    }

    /// Where the plan's parameters begin among the types.
    pub fn parameters(&self) -> usize {
        self.schema.fields().len()
    }

    /// Whether a filter lets at most one row pass, for it names a value of the key.
    pub fn is_of_one_key(&self, filter: &[Expr]) -> bool {
        let Some(key) = &self.table.key else {
            return false;
        };
        let columns = self.parameters();
        // A parameter is a column behind those of the table.
        let is_constant = |expr: &Expr| match expr {
            Expr::Literal(_) => true,
            Expr::Column(position) => *position >= columns,
            _ => false,
        };
        let is_told = |key: usize| {
            filter.iter().any(|conjunct| match conjunct {
                Expr::Binary {
                    op: BinaryOp::Eq,
                    left,
                    right,
                } => {
                    **left == Expr::Column(key) && is_constant(right)
                        || **right == Expr::Column(key) && is_constant(left)
                }
                _ => false,
            })
        };
        key.columns
            .iter()
            .all(|column| self.table.schema.index_of(column).is_ok_and(is_told))
    }

    /// The filter over the table's columns; `None` if a fragment cannot evaluate it.
    fn translate(&self, filter: &LogicalExpr) -> Option<Vec<Expr>> {
        let inputs: Vec<_> = (0..self.table.types.len())
            .map(|column| Some(Expr::Column(column)))
            .collect();
        let scope = Scope {
            schema: &self.table.schema,
            inputs: &inputs,
            types: &self.types,
            parameters: self.parameters(),
        };
        let properties = ExecutionProps::new();
        let context = PhysicalPlanningContext::default();
        let conjuncts = split_conjunction(filter).into_iter().map(|conjunct| {
            let plain = unnormalize_col(conjunct.clone());
            let physical =
                create_physical_expr(&plain, &self.table.names, &properties, &context).ok()?;
            scope.translate(&physical)
        });
        conjuncts.collect()
    }
}

/// A [`Scan`] as DataFusion's planner sees it.
#[derive(Debug)]
pub(crate) struct ScannedTable(pub Arc<Scan>);

#[async_trait]
impl TableProvider for ScannedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&LogicalExpr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = |filter: &&LogicalExpr| match self.0.translate(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(supported).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[LogicalExpr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filter = filters.iter().map(|filter| {
            self.0
                .translate(filter)
                .expect("only filters that were accepted come back")
        });
        let (schema, columns) = match projection {
            Some(projection) => (
                Arc::new(self.0.schema.project(projection)?),
                projection.clone(),
            ),
            None => (self.schema(), (0..self.0.schema.fields().len()).collect()),
        };
        let output = Output::Rows {
            columns: columns.into_iter().map(Expr::Column).collect(),
            limit: limit.map(|limit| limit as u64),
        };
        let filter = filter.flatten().collect();
        Ok(Arc::new(FragmentExec::new(
            Arc::clone(&self.0),
            filter,
            output,
            schema,
        )))
    }
}
