//! Columns that are added, dropped, renamed, or get other rules or another type.

use super::{Altered, ColumnSource};
use crate::catalog::{Definition, ForeignKey, Unique};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::statements::ddl::columns::{
    add_checks, add_unique, column, columns_of, default_value, rename_in,
};
use crate::statements::ddl::{excerpt_of, generated, sequence};
use crate::text::identifier::normalize;
use crate::text::mistakes::unknown_type;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{self, AlterColumnOperation, Ident};
use eris_exact::types::column_type;
use eris_home::Partitioning;
use eris_types::{ColumnId, most_similar};
use std::sync::Arc;

impl Altered {
    pub(super) async fn add_column(
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
        if added.identity.is_some() {
            let hint = "CREATE SEQUENCE, and ADD COLUMN … DEFAULT nextval('…')";
            return Err(
                SqlError::not_supported("ADD COLUMN … AS IDENTITY or SERIAL")
                    .at(excerpt_of(&definition.name, statement))
                    .with_hint(Some(hint)),
            );
        }
        let unique = added.unique.clone();
        let mut fields = self.fields();
        fields.push(Arc::new(added.field));
        self.definition.rules.push(added.rules);
        let Definition { name, rules, .. } = &mut self.definition;
        generated::resolve(context, name, &mut fields, rules, statement)?;
        self.set_fields(fields);
        self.sources.push(ColumnSource::Default);
        add_checks(context, &mut self.definition, added.checks, statement)?;
        if let Some(named) = unique {
            let columns = vec![definition.name.clone()];
            add_unique(&mut self.definition, (named, columns), statement)?;
        }
        let mut references = added.references.iter();
        references.try_for_each(|key| self.add_foreign_key(context, key, statement))
    }

    pub(super) fn drop_column(
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
        if let Some(of) = self.generated_of(&plain) {
            let reason = format!("generated column \"{of}\" is computed from it");
            return Err(rejected(reason, Some("DROP that COLUMN first")));
        }
        let uniques = &mut self.definition.uniques;
        // As a CHECK: what is of this column alone goes with it.
        // Whether an index of it may go is asked when the others are taken over.
        let wide = |unique: &&Unique| {
            unique.is_constraint() && unique.columns.contains(&plain) && unique.columns.len() > 1
        };
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

    pub(super) fn rename_column(
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
        for generated in self
            .definition
            .rules
            .iter_mut()
            .filter_map(|rules| rules.generated.as_mut())
        {
            rename_in(&mut generated.expr, &old, &new);
        }
        for check in &mut self.definition.checks {
            rename_in(&mut check.expr, &old, &new);
        }
        Ok(())
    }

    pub(super) async fn alter_column(
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
        if let AlterColumnOperation::SetDataType { .. } = operation
            && let Some(of) = self.generated_of(field.name())
        {
            let message = format!(
                "the type of column \"{}\" cannot be changed: generated column \"{of}\" is computed from it",
                field.name()
            );
            return Err(SqlError::invalid(Mistake::DependentObjects, message)
                .at(place())
                .with_hint(Some("DROP that COLUMN first")));
        }
        let rules = &mut self.definition.rules[position];
        match operation {
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::SetDataType { .. }
                if rules.generated.is_some() =>
            {
                let message = format!("column \"{}\" is generated", field.name());
                return Err(
                    SqlError::invalid(Mistake::InvalidColumnDefinition, message).at(place())
                );
            }
            AlterColumnOperation::SetDefault { .. }
            | AlterColumnOperation::DropDefault
            | AlterColumnOperation::DropNotNull
                if rules.identity.is_some() =>
            {
                let message = format!("column \"{}\" numbers rows", field.name());
                return Err(
                    SqlError::invalid(Mistake::InvalidColumnDefinition, message).at(place())
                );
            }
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
                    unknown_type(data_type, format!("{reason} of column \"{plain}\"")).at(place())
                })?;
                let is_other = known.data_type != *field.data_type();
                if is_other || using.is_some() {
                    self.keep_type(name, is_other, statement)?;
                }
                let rules = &mut self.definition.rules[position];
                // A shorter text has to be looked for.
                self.recheck |= known.max_characters.is_some();
                rules.max_characters = known.max_characters;
                let known_type = known.data_type.clone();
                let field = field.with_data_type(known.data_type);
                if rules.identity.is_some() && !sequence::is_integer(&known_type) {
                    let message =
                        format!("column \"{}\" numbers rows: it is an integer", field.name());
                    return Err(
                        SqlError::invalid(Mistake::InvalidColumnDefinition, message).at(place())
                    );
                }
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

    /// A generated column that is computed from this one.
    fn generated_of(&self, column: &str) -> Option<String> {
        let rules = self.definition.rules.iter();
        let mut columns = rules.zip(self.definition.schema.fields());
        columns.find_map(|(rules, field)| {
            let generated = rules.generated.as_ref()?;
            let names = columns_of(&generated.expr);
            names.contains(column).then(|| field.name().clone())
        })
    }

    /// Whether a column is part of the PRIMARY KEY.
    fn is_key(&self, column: &str) -> bool {
        let key = self.definition.key.as_ref();
        key.is_some_and(|key| key.columns.iter().any(|name| name == column))
    }
}
