//! Functions of a column with few values: computed once for each value, and looked up for each row.
//!
//! ```text
//! AggregateExec Partial, gby=[upper(s)]           FragmentExec t, lookups=[s → (upper)], groups=[upper]
//!   FragmentExec t: columns=[s]            ──►      ProjectionExec s, upper(s)
//!                                                     AggregateExec s
//!                                                       FragmentExec t: groups=[s]
//! ```
//!
//! If the column's dictionary has all strings, they come [from there](DictionaryExec), and need not be so few.
//!
//! It is a [star join](crate::plan::star_rule) with a relation that is made for it. So the fragment groups by numbers,
//! whatever the function is. What the function says of NULL has to be NULL, for rows with NULL find nothing. If the
//! function fails for any of the values, all is executed as it was planned: the row may not be asked for at all.

use crate::plan::dictionary_exec::{DictionaryExec, has_few_strings};
use crate::plan::fragment_exec::{BuildSide, FragmentExec, SideJoin, Star};
use crate::plan::one_column::{of_null, on_column, only_column};
use crate::plan::translate::is_key;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CaseExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use eris_fragment::{Expr, Output, Type};
use std::sync::Arc;

/// Values for which a function is computed, at most.
const VALUES: f64 = 65_536.0;
/// Rows that make it worth doing so for one value.
const ROWS_PER_VALUE: f64 = 16.0;

/// The same partial aggregate over a fragment that has the results of functions as columns; `None` if it is no better.
pub(super) fn with_computed(aggregate: &AggregateExec) -> Result<Option<AggregateExec>> {
    if *aggregate.mode() != AggregateMode::Partial {
        return Ok(None);
    }
    let (fragment, projection) = match aggregate.input().downcast_ref::<ProjectionExec>() {
        None => (aggregate.input(), None),
        Some(projection) => (projection.input(), Some(projection)),
    };
    let Some(fragment) = fragment.downcast_ref::<FragmentExec>() else {
        return Ok(None);
    };
    let Some(columns) = fragment.open_rows().filter(|_| fragment.computes_values()) else {
        return Ok(None);
    };
    let mut computing = Computing {
        fragment,
        columns,
        projection,
        added: Vec::new(),
    };
    let by = aggregate.group_expr();
    let keys = by
        .expr()
        .iter()
        .map(|(key, name)| Ok((computing.replace(key)?, name.clone())));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let functions = aggregate.aggr_expr().iter();
    let functions = functions.map(|function| computing.replace_in(function));
    let Some(functions) = functions.collect::<Result<Option<Vec<_>>>>()? else {
        return Ok(None);
    };
    let filters = aggregate.filter_expr().iter();
    let filters = filters.map(|filter| filter.as_ref().map(|of| computing.replace(of)).transpose());
    let filters = filters.collect::<Result<Vec<_>>>()?;
    if computing.added.is_empty() {
        return Ok(None);
    }
    let input = Arc::new(computing.fragment()?);
    let schema = input.schema();
    let (null_keys, sets) = (by.null_expr().to_vec(), by.groups().to_vec());
    let by = PhysicalGroupBy::new(keys, null_keys, sets, by.has_grouping_set());
    let mode = AggregateMode::Partial;
    AggregateExec::try_new(mode, by, functions, filters, input, schema).map(Some)
}

struct Computing<'a> {
    fragment: &'a FragmentExec,
    /// What the fragment's columns are.
    columns: &'a [Expr],
    /// What lies between it and the aggregate.
    projection: Option<&'a ProjectionExec>,
    added: Vec<Computed>,
}

/// A function of one column.
struct Computed {
    /// Over the fragment's columns.
    function: PhysicalExprRef,
    /// The column of the table.
    column: usize,
    /// The same in the fragment's output.
    place: usize,
    field: FieldRef,
    data_type: Type,
    /// Whether the values are known without reading rows.
    has_strings: bool,
}

impl Computing<'_> {
    /// The expression over the fragment's columns and those that are added to them.
    fn replace(&mut self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let inlined = match self.projection {
            None => Arc::clone(expr),
            Some(projection) => inlined(expr, projection)?,
        };
        let schema = self.fragment.schema();
        let inputs: Vec<_> = self.columns.iter().cloned().map(Some).collect();
        let fragment = self.fragment;
        let replaced = inlined.transform_down(|part| {
            let is_known = fragment.scope(&schema, &inputs).translate(&part).is_some();
            // Fragments compute CASE row by row.
            let computed = match is_known && !part.exists(|one| Ok(one.is::<CaseExpr>()))? {
                true => None,
                false => self.computed(&part, &schema)?,
            };
            Ok(match computed {
                Some(column) => Transformed::new(column, true, TreeNodeRecursion::Jump),
                None if is_known => Transformed::new(part, false, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        });
        replaced.data()
    }

    fn replace_in(
        &mut self,
        function: &Arc<AggregateFunctionExpr>,
    ) -> Result<Option<Arc<AggregateFunctionExpr>>> {
        if !function.order_bys().is_empty() {
            return Ok(None);
        }
        let arguments = function.expressions();
        let arguments = arguments.iter().map(|argument| self.replace(argument));
        let replaced = function.with_new_expressions(arguments.collect::<Result<_>>()?, Vec::new());
        Ok(replaced.map(Arc::new))
    }

    /// The column that has the results of a function, if it is one of a column with few values.
    fn computed(
        &mut self,
        function: &PhysicalExprRef,
        schema: &SchemaRef,
    ) -> Result<Option<PhysicalExprRef>> {
        let known = self
            .added
            .iter()
            .position(|added| added.function.as_ref() == function.as_ref());
        let number = match known {
            Some(number) => number,
            None => {
                let Some(computed) = self.of_few_values(function, schema)? else {
                    return Ok(None);
                };
                self.added.push(computed);
                self.added.len() - 1
            }
        };
        let name = self.added[number].field.name();
        Ok(Some(Arc::new(Column::new(
            name,
            self.columns.len() + number,
        ))))
    }

    fn of_few_values(
        &self,
        function: &PhysicalExprRef,
        schema: &SchemaRef,
    ) -> Result<Option<Computed>> {
        let Some(place) = only_column(function)? else {
            return Ok(None);
        };
        let scan = self.fragment.scan();
        let Expr::Column(column) = self.columns[place] else {
            return Ok(None);
        };
        if column >= scan.table.types.len() {
            return Ok(None);
        }
        let of_column = &scan.types[column];
        let Some(values) = scan.statistics.distinct(column) else {
            return Ok(None);
        };
        let result = function.data_type(schema)?;
        let (true, Ok(data_type)) = (is_result(&result), Type::try_from(&result)) else {
            return Ok(None);
        };
        let rows = self.fragment.expected_rows();
        let has_strings = *of_column == Type::String && has_few_strings(scan, column, rows);
        let is_few = has_strings || values <= VALUES && values * ROWS_PER_VALUE <= rows;
        let is_of_key = is_key(of_column) || *of_column == Type::String;
        if !is_few
            || !is_of_key
            || !(of_null(function, place, schema)?.is_some_and(|result| result.is_null(0)))
        {
            return Ok(None);
        }
        let nullable = function.nullable(schema)?;
        // As it was written, without the number of its column.
        let name = function.to_string().replace(&format!("@{place}"), "");
        Ok(Some(Computed {
            function: Arc::clone(function),
            column,
            place,
            field: Arc::new(Field::new(name, result, nullable)),
            data_type,
            has_strings,
        }))
    }

    /// The fragment with what was added.
    fn fragment(&self) -> Result<FragmentExec> {
        let schema = self.fragment.schema();
        let sides = self
            .added
            .iter()
            .map(|computed| computed.side(self.fragment, &schema));
        let sides = sides.collect::<Result<Vec<_>>>()?;
        let first = self.fragment.types().len();
        let star: Star = self.fragment.star_with(sides);
        let added = (0..self.added.len()).map(|number| Expr::Column(first + number));
        let output = Output::Rows {
            columns: self.columns.iter().cloned().chain(added).collect(),
            limit: None,
        };
        let fields = self
            .added
            .iter()
            .map(|computed| Arc::clone(&computed.field));
        let fields: Vec<_> = schema.fields().iter().cloned().chain(fields).collect();
        Ok(self
            .fragment
            .joined(star, output, Arc::new(Schema::new(fields))))
    }
}

impl Computed {
    /// The values of the column, and what the function says of each.
    fn side(&self, fragment: &FragmentExec, schema: &SchemaRef) -> Result<BuildSide> {
        let field = Arc::clone(&schema.fields()[self.place]);
        let name = field.name().clone();
        if self.has_strings {
            let function = on_column(&self.function, &name, 0)?;
            let result = Arc::clone(&self.field);
            let strings = DictionaryExec::new(fragment.scan(), self.column, function, result);
            if let Some(strings) = strings {
                return Ok(self.of_plan(Arc::new(strings)));
            }
        }
        let values = fragment.distinct(self.column, field);
        let schema = values.schema();
        let key: PhysicalExprRef = Arc::new(Column::new(&name, 0));
        let by = PhysicalGroupBy::new_single(vec![(Arc::clone(&key), name.clone())]);
        let values = Arc::new(CoalescePartitionsExec::new(Arc::new(values)));
        let mode = AggregateMode::Single;
        let values = AggregateExec::try_new(mode, by, vec![], vec![], values, schema)?;
        let result = on_column(&self.function, &name, 0)?;
        let columns = [
            ProjectionExpr::new(key, name),
            ProjectionExpr::new(result, self.field.name().clone()),
        ];
        let values = ProjectionExec::try_new(columns, Arc::new(values))?;
        Ok(self.of_plan(Arc::new(values)))
    }

    fn of_plan(&self, plan: Arc<dyn ExecutionPlan>) -> BuildSide {
        BuildSide {
            plan,
            column: self.column,
            types: vec![self.data_type.clone()],
            join: SideJoin::Computed,
            origin: None,
        }
    }
}

/// The expression over the projection's input.
fn inlined(expr: &PhysicalExprRef, projection: &ProjectionExec) -> Result<PhysicalExprRef> {
    let replaced = Arc::clone(expr).transform_up(|part| {
        Ok(match part.downcast_ref::<Column>() {
            Some(column) => {
                let expr = &projection.expr()[column.index()].expr;
                Transformed::yes(Arc::clone(expr))
            }
            None => Transformed::no(part),
        })
    });
    replaced.data()
}

/// Whether a result can be kept beside a key.
fn is_result(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Timestamp, Utf8View};
    data_type.is_integer()
        || data_type.is_floating()
        || data_type.is_decimal()
        || matches!(data_type, Boolean | Date32 | Timestamp(..) | Utf8View)
}
