//! `max_by(value, key)` and `min_by(value, key)`: the value in the row with the greatest or least key.
//!
//! ```text
//! of each group:   key bytes │ value bytes      in Arrow's row format, in which bytes order as the keys do
//!                      └ compared with every row of the group; the first of equal keys stays
//! ```
//!
//! Rows in which one of the two is NULL do not count. Of equal keys any one may win, for rows have no order.
//!
//! **Adds** what DataFusion does not have.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use datafusion::arrow::compute::{nullif, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, DocSection, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, Signature, Volatility,
};
use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

/// Which row is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Extreme {
    Greatest,
    Least,
}

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExtremeRow {
    extreme: Extreme,
    aliases: Vec<String>,
    signature: Signature,
}

impl ExtremeRow {
    /// `max_by`, also called `arg_max`.
    pub fn greatest() -> Self {
        Self::new(Extreme::Greatest, "arg_max")
    }

    /// `min_by`, also called `arg_min`.
    pub fn least() -> Self {
        Self::new(Extreme::Least, "arg_min")
    }

    fn new(extreme: Extreme, alias: &str) -> Self {
        ExtremeRow {
            extreme,
            aliases: vec![alias.to_owned()],
            signature: Signature::any(2, Volatility::Immutable),
        }
    }

    fn rows(&self, args: &AccumulatorArgs<'_>) -> Result<BestRows> {
        let types = args.expr_fields.iter().map(|field| field.data_type());
        BestRows::new(self.extreme, &types.collect::<Vec<_>>())
    }
}

static GREATEST: LazyLock<Documentation> = LazyLock::new(|| documentation("max_by", "greatest"));
static LEAST: LazyLock<Documentation> = LazyLock::new(|| documentation("min_by", "least"));

fn documentation(name: &str, which: &str) -> Documentation {
    let description = format!("The value in the row with the {which} key.");
    let general = DocSection {
        include: true,
        label: "General Functions",
        description: None,
    };
    Documentation::builder(general, description, format!("{name}(value, key)")).build()
}

impl AggregateUDFImpl for ExtremeRow {
    fn name(&self) -> &str {
        match self.extreme {
            Extreme::Greatest => "max_by",
            Extreme::Least => "min_by",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let fields = args.input_fields.iter().zip(["value", "key"]);
        let fields = fields.map(|(field, what)| {
            let name = format_state_name(args.name, what);
            Arc::new(Field::new(name, field.data_type().clone(), true))
        });
        Ok(fields.collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(self.rows(&args)?))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.rows(&args)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(match self.extreme {
            Extreme::Greatest => &GREATEST,
            Extreme::Least => &LEAST,
        })
    }
}

/// A group's best row so far.
#[derive(Debug, Default)]
struct Best {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Best {
    fn bytes(&self) -> usize {
        self.key.capacity() + self.value.capacity()
    }
}

/// The best row of each group.
#[derive(Debug)]
struct BestRows {
    extreme: Extreme,
    keys: RowConverter,
    values: RowConverter,
    value_type: DataType,
    key_type: DataType,
    groups: Vec<Option<Best>>,
    /// What the groups' rows take.
    bytes: usize,
}

impl BestRows {
    fn new(extreme: Extreme, types: &[&DataType]) -> Result<Self> {
        let converter =
            |data_type: &DataType| RowConverter::new(vec![SortField::new(data_type.clone())]);
        Ok(BestRows {
            extreme,
            keys: converter(types[1])?,
            values: converter(types[0])?,
            value_type: types[0].clone(),
            key_type: types[1].clone(),
            groups: Vec::new(),
            bytes: 0,
        })
    }

    /// Looks at rows, each of the group that `group_of` says.
    fn add(
        &mut self,
        columns: &[ArrayRef],
        group_of: impl Fn(usize) -> usize,
        filter: Option<&BooleanArray>,
    ) -> Result<()> {
        let [values, keys] = [&columns[0], &columns[1]];
        let rows = self.keys.convert_columns(std::slice::from_ref(keys))?;
        let (values_null, keys_null) = (values.logical_nulls(), keys.logical_nulls());
        let better = match self.extreme {
            Extreme::Greatest => Ordering::Greater,
            Extreme::Least => Ordering::Less,
        };
        // A later row of the same group is the better one.
        let (mut won, mut groups) = (Vec::new(), Vec::new());
        for row in 0..keys.len() {
            let counts = filter.is_none_or(|passed| passed.is_valid(row) && passed.value(row))
                && values_null.as_ref().is_none_or(|nulls| nulls.is_valid(row))
                && keys_null.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            if !counts {
                continue;
            }
            let key = rows.row(row);
            let key = key.as_ref();
            let group = group_of(row);
            let known = self.groups[group].as_ref();
            if known.is_some_and(|best| key.cmp(&best.key[..]) != better) {
                continue;
            }
            let best = self.groups[group].get_or_insert_default();
            self.bytes -= best.bytes();
            best.key.clear();
            best.key.extend_from_slice(key);
            self.bytes += best.bytes();
            won.push(row as u32);
            groups.push(group);
        }
        let won = take(values, &UInt32Array::from(won), None)?;
        let won = self.values.convert_columns(&[won])?;
        for (value, group) in won.iter().zip(groups) {
            let best = self.groups[group].get_or_insert_default();
            self.bytes -= best.bytes();
            best.value.clear();
            best.value.extend_from_slice(value.as_ref());
            self.bytes += best.bytes();
        }
        Ok(())
    }

    fn take(&mut self, emit: EmitTo) -> Vec<Option<Best>> {
        let taken = emit.take_needed(&mut self.groups);
        self.bytes -= taken.iter().flatten().map(Best::bytes).sum::<usize>();
        taken
    }

    fn values_of(&self, groups: &[Option<Best>]) -> Result<ArrayRef> {
        column(&self.values, &self.value_type, groups, |best| &best.value)
    }

    fn keys_of(&self, groups: &[Option<Best>]) -> Result<ArrayRef> {
        column(&self.keys, &self.key_type, groups, |best| &best.key)
    }
}

/// Bytes of each group as a column again; NULL for groups without a row.
fn column(
    converter: &RowConverter,
    data_type: &DataType,
    groups: &[Option<Best>],
    bytes: impl Fn(&Best) -> &[u8],
) -> Result<ArrayRef> {
    let null = RowConverter::new(vec![SortField::new(data_type.clone())])?
        .convert_columns(&[new_null_array(data_type, 1)])?;
    let parser = converter.parser();
    let rows = groups.iter().map(|best| match best {
        Some(best) => parser.parse(bytes(best)),
        None => parser.parse(null.row(0).data()),
    });
    Ok(converter.convert_rows(rows)?.remove(0))
}

impl GroupsAccumulator for BestRows {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        self.groups.resize_with(all, || None);
        self.add(columns, |row| groups[row], filter)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        GroupsAccumulator::update_batch(self, states, groups, None, all)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let taken = self.take(emit);
        self.values_of(&taken)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let taken = self.take(emit);
        Ok(vec![self.values_of(&taken)?, self.keys_of(&taken)?])
    }

    /// Each row as a group of its own; one that the filter stops has no key.
    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let Some(filter) = filter else {
            return Ok(columns.to_vec());
        };
        let stopped: BooleanArray = filter
            .iter()
            .map(|passed| Some(passed != Some(true)))
            .collect();
        Ok(vec![
            Arc::clone(&columns[0]),
            nullif(&columns[1], &stopped)?,
        ])
    }

    fn size(&self) -> usize {
        self.bytes
            + self.groups.capacity() * size_of::<Option<Best>>()
            + self.keys.size()
            + self.values.size()
    }
}

/// Of a single group.
impl Accumulator for BestRows {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.groups.resize_with(1, || None);
        self.add(columns, |_| 0, None)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        Accumulator::update_batch(self, states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.groups.resize_with(1, || None);
        let (value, key) = (self.values_of(&self.groups)?, self.keys_of(&self.groups)?);
        Ok(vec![
            ScalarValue::try_from_array(&value, 0)?,
            ScalarValue::try_from_array(&key, 0)?,
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.groups.resize_with(1, || None);
        ScalarValue::try_from_array(&self.values_of(&self.groups)?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(self)
    }
}
