//! Constraints that are added, dropped or renamed.

use super::Altered;
use crate::catalog::{Definition, ForeignKey, RelationName, quoted};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::statements::ddl::columns::{
    NamedColumns, add_checks, add_unique, table_check, table_key, table_unique,
};
use crate::statements::ddl::create_table::primary_key;
use crate::statements::ddl::references::{self, WrittenKey};
use crate::statements::ddl::{excerpt_of, generated};
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{self, Ident};
use eris_home::Partitioning;
use eris_types::most_similar;

/// A constraint by its place in the definition.
enum Constraint {
    Key,
    Unique(usize),
    Foreign(usize),
    Check(usize),
}

impl Altered {
    pub(super) fn add_constraint(
        &mut self,
        context: &StatementContext,
        constraint: &ast::TableConstraint,
        statement: &Statement,
    ) -> Result<(), SqlError> {
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
        add_checks(context, &mut self.definition, vec![check], statement)
    }

    pub(super) fn add_foreign_key(
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
    pub(super) fn referring(&self) -> impl Iterator<Item = (&RelationName, &ForeignKey)> {
        let own = self.definition.foreign_keys.iter();
        let own = own.filter(|key| key.table == self.definition.name);
        let own = own.map(|key| (&self.definition.name, key));
        let incoming = self.incoming.iter().map(|(by, key)| (&by.name, key));
        own.chain(incoming)
    }

    /// Rejects to take away a key to which foreign keys refer; with `cascade`, takes these away.
    pub(super) fn keep_keys(
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
        let Definition { schema, rules, .. } = &self.definition;
        generated::reject("PRIMARY KEY", &key.columns, schema, rules)?;
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
        if let Some(position) = uniques.iter().position(|unique| unique.name == plain) {
            if uniques[position].of_index {
                let message = format!("\"{plain}\" is an index, not a constraint");
                return Err(SqlError::invalid(Mistake::WrongObjectType, message)
                    .at(excerpt_of(name, statement))
                    .with_hint(Some(format!("DROP INDEX {}", quoted(&plain)))));
            }
            return Ok(Constraint::Unique(position));
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

    pub(super) fn drop_constraint(
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

    pub(super) fn rename_constraint(
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
