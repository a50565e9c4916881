//! What the operations of ALTER TABLE make of a table's definition.

mod columns;
mod constraints;

use crate::catalog::{Contents, Definition, ForeignKey, RelationName, Table};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::statements::ddl::excerpt;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{
    self, AlterTableOperation, DropBehavior, ObjectName, RenameTableNameKind,
};
use std::sync::Arc;

/// The table as it is to be.
pub(super) struct Altered {
    pub definition: Definition,
    /// Where the values of each column come from.
    pub sources: Vec<ColumnSource>,
    /// Rows have to be looked at, for a rule was added.
    pub recheck: bool,
    /// Rows belong elsewhere, for there is another PRIMARY KEY.
    pub rekeyed: bool,
    /// Views that would fail are dropped.
    pub cascade: bool,
    /// Foreign keys of other tables that refer to it, as they are to be, and these tables as they are.
    pub incoming: Vec<(Arc<Table>, ForeignKey)>,
    /// The names of foreign keys that the rows may not keep.
    unverified: Vec<String>,
}

/// Where the values of a column come from.
#[derive(Clone)]
pub(super) enum ColumnSource {
    /// The column at this position before.
    Old(usize),
    /// An expression over the columns before, as ALTER COLUMN TYPE … USING gives it.
    Using(Box<ast::Expr>),
    /// The column's default.
    Default,
}

impl Altered {
    pub fn of(table: &Table, incoming: Vec<(Arc<Table>, ForeignKey)>) -> Self {
        Altered {
            incoming,
            unverified: Vec::new(),
            definition: table.definition(),
            sources: (0..table.types.len()).map(ColumnSource::Old).collect(),
            recheck: false,
            rekeyed: false,
            cascade: false,
        }
    }

    /// Whether the rows of `old` are not those of the new table.
    pub fn needs_rewrite(&self, old: &Table) -> bool {
        let in_place = self.sources.len() == old.types.len()
            && (self.sources.iter().enumerate()).all(
                |(position, source)| matches!(source, ColumnSource::Old(old) if *old == position),
            );
        let same_types = (self
            .definition
            .schema
            .fields()
            .iter()
            .zip(old.schema.fields()))
        .all(|(new, old)| new.data_type() == old.data_type());
        self.rekeyed || !(in_place && same_types)
    }

    /// The foreign keys that the rows have yet to be seen to keep, and the tables to which they refer; none for the
    /// table itself.
    pub fn added_keys(&self, contents: &Contents) -> Vec<(ForeignKey, Option<Arc<Table>>)> {
        let keys = self.definition.foreign_keys.iter();
        let keys = keys.filter(|key| self.unverified.contains(&key.name));
        keys.map(|key| (key.clone(), contents.table(&key.table).cloned()))
            .map(|(key, other)| {
                let is_own = key.table == self.definition.name;
                (key, other.filter(|_| !is_own))
            })
            .collect()
    }

    /// Applies one operation after the others.
    pub async fn apply(
        &mut self,
        context: &StatementContext,
        operation: &AlterTableOperation,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        use AlterTableOperation as Op;
        match operation {
            Op::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => {
                self.add_column(context, column_def, *if_not_exists, statement)
                    .await
            }
            Op::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                let cascade = *drop_behavior == Some(DropBehavior::Cascade);
                self.cascade |= cascade;
                for name in column_names {
                    self.drop_column(name, *if_exists, cascade, statement)?;
                }
                Ok(())
            }
            Op::RenameColumn {
                old_column_name,
                new_column_name,
            } => self.rename_column(old_column_name, new_column_name, statement),
            Op::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => self.rename(name, statement),
            Op::AlterColumn { column_name, op } => {
                self.alter_column(context, column_name, op, statement).await
            }
            Op::AddConstraint {
                constraint,
                not_valid: false,
            } => self.add_constraint(context, constraint, statement),
            Op::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => {
                self.drop_constraint(name, *if_exists, statement)?;
                let cascade = *drop_behavior == Some(DropBehavior::Cascade);
                self.keep_keys(cascade, name, statement)
            }
            Op::RenameConstraint { old_name, new_name } => {
                self.rename_constraint(old_name, new_name, statement)
            }
            other => Err(SqlError::not_supported(format!("ALTER TABLE … {other}"))),
        }
    }

    fn set_fields(&mut self, fields: Vec<Arc<Field>>) {
        self.definition.schema = Arc::new(Schema::new(fields));
    }

    fn fields(&self) -> Vec<Arc<Field>> {
        self.definition.schema.fields().to_vec()
    }

    fn rename(&mut self, name: &ObjectName, statement: &Statement) -> Result<(), SqlError> {
        let [part] = &name.0[..] else {
            return Err(
                SqlError::not_supported("RENAME TO another schema").at(excerpt(name, statement))
            );
        };
        let new = part.as_ident().map_or_else(|| part.to_string(), normalize);
        let schema = self.definition.name.schema.clone();
        let new = RelationName::new(schema, new);
        let old = std::mem::replace(&mut self.definition.name, new.clone());
        let own = self.definition.foreign_keys.iter_mut();
        let incoming = self.incoming.iter_mut().map(|(_, key)| key);
        let referring = own.chain(incoming).filter(|key| key.table == old);
        referring.for_each(|key| key.table = new.clone());
        Ok(())
    }
}
