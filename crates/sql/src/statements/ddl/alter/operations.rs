//! What the operations of ALTER TABLE make of a table's definition.

use crate::catalog::{Contents, Definition, ForeignKey, RelationName, Table, Unique};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::statements::ddl::columns::{
    NamedColumns, add_checks, add_unique, column, columns_of, default_value, rename_in,
    table_check, table_key, table_unique,
};
use crate::statements::ddl::create_table::primary_key;
use crate::statements::ddl::references::{self, WrittenKey};
use crate::statements::ddl::{excerpt, excerpt_of};
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, DropBehavior, Ident, ObjectName,
    RenameTableNameKind,
};
use eris_exact::types::column_type;
use eris_home::Partitioning;
use eris_types::ColumnId;
use eris_types::most_similar;
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

    fn add_foreign_key(
        &mut self,
        context: &StatementContext,
        key: &WrittenKey,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        references::add(context, &mut self.definition, key, statement)?;
        let added = self.definition.foreign_keys.last();
        self.unverified.extend(added.map(|key| key.name.clone()));
        Ok(())
    }

    /// The foreign keys that refer to the table, and what the tables are called that have them.
    fn referring(&self) -> impl Iterator<Item = (&RelationName, &ForeignKey)> {
        let own = self.definition.foreign_keys.iter();
        let own = own.filter(|key| key.table == self.definition.name);
        let own = own.map(|key| (&self.definition.name, key));
        let incoming = self.incoming.iter().map(|(by, key)| (&by.name, key));
        own.chain(incoming)
    }

    /// Rejects to take away a key to which foreign keys refer; with `cascade`, takes these away.
    fn keep_keys(
        &mut self,
        cascade: bool,
        name: &Ident,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let lost = self
            .referring()
            .find(|(_, key)| !key.has_key(&self.definition));
        let Some((by, key)) = lost else {
            return Ok(());
        };
        if !cascade {
            let message = format!(
                "\"{}\" cannot be dropped: table \"{by}\" refers to ({}) by FOREIGN KEY \"{}\"",
                normalize(name),
                key.referenced.join(", "),
                key.name
            );
            return Err(SqlError::invalid(Mistake::DependentObjects, message)
                .at(excerpt_of(name, statement))
                .with_hint(Some(
                    "CASCADE drops the foreign key too; or ALTER TABLE … DROP CONSTRAINT first",
                )));
        }
        let definition = &self.definition;
        self.incoming.retain(|(_, key)| key.has_key(definition));
        let mut own = std::mem::take(&mut self.definition.foreign_keys);
        let table = &self.definition.name;
        own.retain(|key| key.table != *table || key.has_key(&self.definition));
        self.definition.foreign_keys = own;
        Ok(())
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
            } => {
                if let ast::TableConstraint::ForeignKey(key) = constraint {
                    let key = WrittenKey::of_table(key, statement)?;
                    return self.add_foreign_key(context, &key, statement);
                }
                self.recheck = true;
                match constraint {
                    ast::TableConstraint::Unique(unique) => {
                        return add_unique(&mut self.definition, table_unique(unique)?, statement);
                    }
                    ast::TableConstraint::PrimaryKey(key) => {
                        return self.add_key(table_key(key)?, statement);
                    }
                    _ => {}
                }
                let check = table_check(constraint)?;
                let Definition {
                    name,
                    schema,
                    checks,
                    ..
                } = &mut self.definition;
                add_checks(context, checks, vec![check], &name.name, schema, statement)
            }
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

    fn position(&self, name: &Ident, statement: &Statement) -> Result<usize, SqlError> {
        let plain = normalize(name);
        let schema = &self.definition.schema;
        schema.index_of(&plain).map_err(|_| {
            let all = schema.fields().iter().map(|field| field.name().as_str());
            let similar = most_similar(&plain, all);
            SqlError::invalid(
                Mistake::UndefinedColumn,
                format!(
                    "table \"{}\" has no column \"{plain}\"",
                    self.definition.name
                ),
            )
            .at(excerpt_of(name, statement))
            .with_hint(similar.map(|name| format!("did you mean \"{name}\"?")))
        })
    }

    fn check_free(&self, name: &Ident, statement: &Statement) -> Result<(), SqlError> {
        let plain = normalize(name);
        if self.definition.schema.index_of(&plain).is_ok() {
            let table = &self.definition.name;
            let message = format!("table \"{table}\" has a column \"{plain}\" already");
            return Err(SqlError::invalid(Mistake::DuplicateColumn, message)
                .at(excerpt_of(name, statement)));
        }
        Ok(())
    }

    async fn add_column(
        &mut self,
        context: &StatementContext,
        definition: &ast::ColumnDef,
        if_not_exists: bool,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let known = self
            .definition
            .schema
            .index_of(&normalize(&definition.name));
        if if_not_exists && known.is_ok() {
            return Ok(());
        }
        self.check_free(&definition.name, statement)?;
        let added = column(context, definition, statement).await?;
        if added.primary.is_some() {
            return Err(SqlError::not_supported("ADD COLUMN … PRIMARY KEY")
                .at(excerpt_of(&definition.name, statement)));
        }
        let unique = added.unique.clone();
        let mut fields = self.fields();
        fields.push(Arc::new(added.field));
        self.set_fields(fields);
        self.definition.rules.push(added.rules);
        self.sources.push(ColumnSource::Default);
        let Definition {
            name,
            schema,
            checks,
            ..
        } = &mut self.definition;
        add_checks(context, checks, added.checks, &name.name, schema, statement)?;
        if let Some(named) = unique {
            let columns = vec![definition.name.clone()];
            add_unique(&mut self.definition, (named, columns), statement)?;
        }
        let mut references = added.references.iter();
        references.try_for_each(|key| self.add_foreign_key(context, key, statement))
    }

    /// Makes columns the PRIMARY KEY, by which the rows are partitioned then.
    fn add_key(
        &mut self,
        (named, columns): NamedColumns,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let table = self.definition.name.clone();
        if self.definition.key.is_some() {
            let message = format!("table \"{table}\" has a PRIMARY KEY already");
            return Err(SqlError::invalid(Mistake::InvalidTableDefinition, message));
        }
        if self.definition.partitioning != Partitioning::Size {
            return Err(SqlError::not_supported("PRIMARY KEY with partition_by")
                .with_hint(Some("a table with a key is partitioned by it")));
        }
        let mut fields = self.fields();
        let key = primary_key(&mut fields, named, columns, &table, statement)?;
        if self.definition.has_constraint(&key.name) {
            let message = format!(
                "table \"{table}\" has a constraint \"{}\" already",
                key.name
            );
            return Err(SqlError::invalid(Mistake::DuplicateObject, message));
        }
        self.set_fields(fields);
        self.definition.key = Some(key);
        self.rekeyed = true;
        Ok(())
    }

    fn drop_column(
        &mut self,
        name: &Ident,
        if_exists: bool,
        cascade: bool,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let plain = normalize(name);
        if if_exists && self.definition.schema.index_of(&plain).is_err() {
            return Ok(());
        }
        let position = self.position(name, statement)?;
        let rejected = |reason: String, hint: Option<&str>| {
            let table = &self.definition.name;
            let message =
                format!("column \"{plain}\" of table \"{table}\" cannot be dropped: {reason}");
            SqlError::invalid(Mistake::DependentObjects, message)
                .at(excerpt_of(name, statement))
                .with_hint(hint)
        };
        if self.sources.len() == 1 {
            return Err(rejected("it is the only one".into(), Some("DROP TABLE")));
        }
        if self.is_key(&plain) {
            return Err(rejected("it is part of the PRIMARY KEY".into(), None));
        }
        let uniques = &mut self.definition.uniques;
        // As a CHECK: what is of this column alone goes with it.
        let wide = |unique: &&Unique| unique.columns.contains(&plain) && unique.columns.len() > 1;
        if let Some(unique) = uniques.iter().find(wide)
            && !cascade
        {
            let reason = format!("UNIQUE constraint \"{}\" also names others", unique.name);
            let hint = "ALTER TABLE … DROP CONSTRAINT first, or DROP COLUMN … CASCADE";
            return Err(rejected(reason, Some(hint)));
        }
        uniques.retain(|unique| !unique.columns.contains(&plain));
        let wide = |key: &&ForeignKey| key.columns.contains(&plain) && key.columns.len() > 1;
        let foreign_keys = &mut self.definition.foreign_keys;
        if let Some(key) = foreign_keys.iter().find(wide)
            && !cascade
        {
            let reason = format!("FOREIGN KEY \"{}\" also names others", key.name);
            let hint = "ALTER TABLE … DROP CONSTRAINT first, or DROP COLUMN … CASCADE";
            return Err(rejected(reason, Some(hint)));
        }
        foreign_keys.retain(|key| !key.columns.contains(&plain));
        let partitioning = match self.definition.partitioning {
            Partitioning::Range(column) if column.index() == position => {
                return Err(rejected("the table is partitioned by it".into(), None));
            }
            Partitioning::Range(column) if column.index() > position => {
                Partitioning::Range(ColumnId(column.index() as u32 - 1))
            }
            other => other,
        };
        // A CHECK of this column alone goes with it; one that also speaks of others is not silently lost.
        let mut kept = Vec::new();
        for check in &self.definition.checks {
            let columns = columns_of(&check.expr);
            if !columns.contains(&plain) {
                kept.push(check.clone());
            } else if columns.len() > 1 && !cascade {
                let reason = format!("CHECK constraint \"{}\" also names others", check.name);
                let hint = "ALTER TABLE … DROP CONSTRAINT first, or DROP COLUMN … CASCADE";
                return Err(rejected(reason, Some(hint)));
            }
        }
        self.definition.checks = kept;
        self.definition.row_order.retain(|column| *column != plain);
        self.definition.partitioning = partitioning;
        let mut fields = self.fields();
        fields.remove(position);
        self.set_fields(fields);
        self.definition.rules.remove(position);
        self.sources.remove(position);
        self.keep_keys(cascade, name, statement)
    }

    fn rename_column(
        &mut self,
        old: &Ident,
        new: &Ident,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let position = self.position(old, statement)?;
        self.check_free(new, statement)?;
        let (old, new) = (normalize(old), normalize(new));
        let mut fields = self.fields();
        fields[position] = Arc::new(fields[position].as_ref().clone().with_name(&new));
        self.set_fields(fields);
        let key = self.definition.key.iter_mut();
        let uniques = self.definition.uniques.iter_mut();
        let uniques = uniques.flat_map(|unique| &mut unique.columns);
        for column in key.flat_map(|key| &mut key.columns).chain(uniques) {
            if *column == old {
                column.clone_from(&new);
            }
        }
        let table = &self.definition.name;
        let rename = |columns: &mut Vec<String>| {
            let renamed = columns.iter_mut().filter(|column| **column == old);
            renamed.for_each(|column| column.clone_from(&new));
        };
        rename(&mut self.definition.row_order);
        for key in &mut self.definition.foreign_keys {
            rename(&mut key.columns);
            if key.table == *table {
                rename(&mut key.referenced);
            }
        }
        for (_, key) in &mut self.incoming {
            rename(&mut key.referenced);
        }
        for check in &mut self.definition.checks {
            rename_in(&mut check.expr, &old, &new);
        }
        Ok(())
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

    async fn alter_column(
        &mut self,
        context: &StatementContext,
        name: &Ident,
        operation: &AlterColumnOperation,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let position = self.position(name, statement)?;
        let place = || excerpt_of(name, statement);
        let mut fields = self.fields();
        let field = fields[position].as_ref().clone();
        let keyed = self.is_key(field.name());
        let rules = &mut self.definition.rules[position];
        match operation {
            AlterColumnOperation::SetNotNull => {
                self.recheck = true;
                fields[position] = Arc::new(field.with_nullable(false));
                self.set_fields(fields);
            }
            AlterColumnOperation::DropNotNull if keyed => {
                let message = format!("column \"{}\" is part of the PRIMARY KEY", field.name());
                return Err(SqlError::invalid(Mistake::InvalidTableDefinition, message).at(place()));
            }
            AlterColumnOperation::DropNotNull => {
                fields[position] = Arc::new(field.with_nullable(true));
                self.set_fields(fields);
            }
            AlterColumnOperation::SetDefault { value } => {
                let default = default_value(context, value, &field, rules, statement).await;
                rules.default = Some(default.map_err(|error| error.at(place()))?);
            }
            AlterColumnOperation::DropDefault => rules.default = None,
            AlterColumnOperation::SetDataType {
                data_type, using, ..
            } => {
                let known = column_type(data_type).map_err(|reason| {
                    let plain = normalize(name);
                    SqlError::not_supported(format!("{reason} of column \"{plain}\"")).at(place())
                })?;
                let is_other = known.data_type != *field.data_type();
                if is_other || using.is_some() {
                    self.keep_type(name, is_other, statement)?;
                }
                let rules = &mut self.definition.rules[position];
                // A shorter text has to be looked for.
                self.recheck |= known.max_characters.is_some();
                rules.max_characters = known.max_characters;
                let field = field.with_data_type(known.data_type);
                if let Some(default) = &rules.default {
                    let expr = default.expr.clone();
                    let default = default_value(context, &expr, &field, rules, statement).await;
                    rules.default = Some(default.map_err(|error| {
                        let hint = "ALTER COLUMN … DROP DEFAULT first";
                        error.at(place()).with_hint(Some(hint))
                    })?);
                }
                if let Some(using) = using {
                    self.sources[position] = ColumnSource::Using(Box::new(using.clone()));
                }
                fields[position] = Arc::new(field);
                self.set_fields(fields);
            }
            AlterColumnOperation::AddGenerated { .. } => {
                return Err(SqlError::not_supported("ALTER COLUMN … ADD GENERATED").at(place()));
            }
        }
        Ok(())
    }

    /// Rejects to give a column other values, or another type, if a foreign key would not hold then.
    fn keep_type(
        &mut self,
        column: &Ident,
        is_other: bool,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let plain = normalize(column);
        let refers = |key: &ForeignKey| key.referenced.contains(&plain);
        let found = self.referring().find(|(_, key)| refers(key));
        let has = |key: &&ForeignKey| key.columns.contains(&plain);
        let own = self.definition.foreign_keys.iter().find(has);
        let own = own.filter(|_| is_other);
        let found = found.or(own.map(|key| (&self.definition.name, key)));
        if let Some((by, key)) = found {
            let message = format!(
                "the type of column \"{plain}\" cannot be changed: FOREIGN KEY \"{}\" of table \"{by}\" is about it",
                key.name
            );
            return Err(SqlError::invalid(Mistake::DependentObjects, message)
                .at(excerpt_of(column, statement))
                .with_hint(Some("ALTER TABLE … DROP CONSTRAINT first")));
        }
        let own = self.definition.foreign_keys.iter().filter(has);
        let names: Vec<String> = own.map(|key| key.name.clone()).collect();
        self.unverified.extend(names);
        Ok(())
    }

    /// Whether a column is part of the PRIMARY KEY.
    fn is_key(&self, column: &str) -> bool {
        let key = self.definition.key.as_ref();
        key.is_some_and(|key| key.columns.iter().any(|name| name == column))
    }

    fn constraint(&self, name: &Ident, statement: &Statement) -> Result<Constraint, SqlError> {
        let plain = normalize(name);
        let Definition {
            name: table,
            key,
            checks,
            uniques,
            foreign_keys,
            ..
        } = &self.definition;
        if key.as_ref().is_some_and(|key| key.name == plain) {
            return Ok(Constraint::Key);
        }
        if let Some(unique) = uniques.iter().position(|unique| unique.name == plain) {
            return Ok(Constraint::Unique(unique));
        }
        let mut foreign = foreign_keys.iter();
        if let Some(key) = foreign.position(|key| key.name == plain) {
            return Ok(Constraint::Foreign(key));
        }
        let check = checks.iter().position(|check| check.name == plain);
        check.map(Constraint::Check).ok_or_else(|| {
            let checks = checks.iter().map(|check| check.name.as_str());
            let uniques = uniques.iter().map(|unique| unique.name.as_str());
            let foreign = foreign_keys.iter().map(|key| key.name.as_str());
            let similar = most_similar(&plain, checks.chain(uniques).chain(foreign));
            SqlError::invalid(
                Mistake::UndefinedObject,
                format!("table \"{table}\" has no constraint \"{plain}\""),
            )
            .at(excerpt_of(name, statement))
            .with_hint(similar.map(|name| format!("did you mean \"{name}\"?")))
        })
    }

    fn drop_constraint(
        &mut self,
        name: &Ident,
        if_exists: bool,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        match self.constraint(name, statement) {
            Ok(Constraint::Check(position)) => {
                self.definition.checks.remove(position);
            }
            Ok(Constraint::Unique(position)) => {
                self.definition.uniques.remove(position);
            }
            Ok(Constraint::Foreign(position)) => {
                self.definition.foreign_keys.remove(position);
            }
            Ok(Constraint::Key) => {
                self.definition.key = None;
                self.rekeyed = true;
            }
            Err(_) if if_exists => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn rename_constraint(
        &mut self,
        old: &Ident,
        new: &Ident,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let constraint = self.constraint(old, statement)?;
        let name = normalize(new);
        if self.definition.has_constraint(&name) {
            let table = &self.definition.name;
            let message = format!("table \"{table}\" has a constraint \"{name}\" already");
            return Err(
                SqlError::invalid(Mistake::DuplicateObject, message).at(excerpt_of(new, statement))
            );
        }
        match constraint {
            Constraint::Check(position) => self.definition.checks[position].name = name,
            Constraint::Unique(position) => self.definition.uniques[position].name = name,
            Constraint::Foreign(position) => {
                let key = &mut self.definition.foreign_keys[position];
                let unverified = self.unverified.iter_mut().filter(|name| **name == key.name);
                unverified.for_each(|other| other.clone_from(&name));
                key.name = name;
            }
            Constraint::Key => {
                if let Some(key) = &mut self.definition.key {
                    key.name = name;
                }
            }
        }
        Ok(())
    }
}

/// A constraint by its place in the definition.
enum Constraint {
    Key,
    Unique(usize),
    Foreign(usize),
    Check(usize),
}
