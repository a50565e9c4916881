//! The columns that a fragment reads, with everything that is known of them at compile time.

use crate::lookup::{CompiledLookup, Lookups, TableMemory, joined_fields};
use arrow_schema::{DataType, Schema};
use eris_column::{Dictionary, Domain};
use eris_fragment::{Fragment, FragmentError, Type};
use eris_types::ColumnId;

/// Parallel lists, in the order of `Fragment::columns`, and behind them, but for the ids, the columns of lookups.
#[derive(Debug)]
pub(crate) struct FragmentColumns {
    pub(crate) ids: Vec<ColumnId>,
    pub(crate) names: Vec<String>,
    pub(crate) types: Vec<Type>,
    pub(crate) data_types: Vec<DataType>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) dictionaries: Vec<Option<Dictionary>>,
    pub(crate) lookups: Lookups,
}

impl FragmentColumns {
    pub(crate) fn resolve(
        fragment: &Fragment,
        schema: &Schema,
        dictionaries: &[Option<Dictionary>],
        memory: Option<&TableMemory>,
    ) -> Result<Self, FragmentError> {
        let count = fragment.columns.len();
        let mut columns = FragmentColumns {
            ids: fragment.columns.clone(),
            names: Vec::with_capacity(count),
            types: Vec::with_capacity(count),
            data_types: Vec::with_capacity(count),
            domains: Vec::with_capacity(count),
            dictionaries: Vec::with_capacity(count),
            lookups: Lookups::default(),
        };
        for id in &fragment.columns {
            if *id == ColumnId::ROW_ID {
                columns.names.push("row id".to_owned());
                columns.data_types.push(DataType::Int64);
                columns.types.push(Type::Int64);
                columns.domains.push(Domain::Integer);
                columns.dictionaries.push(None);
                continue;
            }
            let field = schema
                .fields()
                .get(id.index())
                .ok_or(FragmentError::Malformed {
                    reason: "a column that the table does not have",
                })?;
            let unsupported = FragmentError::Malformed {
                reason: "a column of a type that is not stored",
            };
            let data_type = Type::try_from(field.data_type()).map_err(|_| unsupported.clone())?;
            columns.names.push(field.name().clone());
            columns.data_types.push((&data_type).into());
            columns.types.push(data_type);
            columns
                .domains
                .push(Domain::of(field.data_type()).ok_or(unsupported)?);
            columns
                .dictionaries
                .push(dictionaries.get(id.index()).cloned().flatten());
        }
        for lookup in &fragment.lookups {
            let compiled = CompiledLookup::compile(lookup, &columns, memory)?;
            for (number, field) in joined_fields(&lookup.rows).enumerate() {
                let unsupported = FragmentError::Malformed {
                    reason: "a lookup with a column of a type that is not stored",
                };
                let data_type = Type::try_from(field.data_type());
                let data_type = data_type.map_err(|_| unsupported.clone())?;
                columns.names.push(field.name().clone());
                columns.data_types.push(field.data_type().clone());
                columns.types.push(data_type);
                columns
                    .domains
                    .push(Domain::of(field.data_type()).ok_or(unsupported)?);
                columns.dictionaries.push(None);
                let lookup = columns.lookups.all.len();
                columns.lookups.joined.push((lookup, number));
            }
            columns.lookups.all.push(compiled);
        }
        Ok(columns)
    }

    /// How many there are, those of lookups included.
    pub(crate) fn len(&self) -> usize {
        self.types.len()
    }

    /// The fragment's own columns that are read for some columns, ascending, each once: those they come from, and those
    /// that lead to matches.
    pub(crate) fn sources(&self, mut columns: Vec<usize>) -> Vec<usize> {
        for column in &mut columns {
            if let Some((lookup, _)) = self.joined(*column) {
                *column = self.lookups.all[lookup].column;
            }
        }
        let lookups = self.lookups.all.iter();
        let paired = lookups.filter(|lookup| lookup.matches().is_some());
        columns.extend(paired.map(|lookup| lookup.column));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The lookup that a column comes from, and which of its columns it is; `None`: it is the fragment's own.
    pub(crate) fn joined(&self, position: usize) -> Option<(usize, usize)> {
        let number = position.checked_sub(self.ids.len())?;
        self.lookups.joined.get(number).copied()
    }

    /// Whether the column at a position is not stored, but the row's id.
    pub(crate) fn is_row_id(&self, position: usize) -> bool {
        self.ids.get(position) == Some(&ColumnId::ROW_ID)
    }

    /// The name of the column at a position, for messages.
    pub(crate) fn name(&self, position: usize) -> String {
        match self.names.get(position) {
            Some(name) => name.clone(),
            None => format!("#{position}"),
        }
    }
}
