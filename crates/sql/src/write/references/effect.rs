//! What a statement does to the rows of its table, as far as its text tells: which foreign keys it may break.

use crate::catalog::{Contents, ForeignKey, Table};
use crate::text::identifier::last_name;
use crate::write::references::Affected;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, MergeAction, OnConflictAction, OnInsert,
};
use std::sync::Arc;

/// What becomes of a table's rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effect {
    /// There are new ones.
    pub adds: bool,
    /// Some end.
    pub ends: bool,
    /// These columns of some are given other values.
    pub sets: Vec<String>,
    /// Any column of some may be given another value.
    pub sets_any: bool,
}

impl Effect {
    /// Rows are added.
    pub fn adding() -> Self {
        Effect {
            adds: true,
            ..Effect::default()
        }
    }

    /// Rows end.
    pub fn ending() -> Self {
        Effect {
            ends: true,
            ..Effect::default()
        }
    }

    /// Of INSERT, UPDATE, DELETE and MERGE.
    pub fn of(tree: &ast::Statement) -> Self {
        let mut effect = Effect::default();
        match tree {
            ast::Statement::Insert(insert) => return Effect::of_insert(insert),
            ast::Statement::Update(update) => effect.set(&update.assignments),
            ast::Statement::Delete(_) => return Effect::ending(),
            ast::Statement::Merge(merge) => {
                for clause in &merge.clauses {
                    match &clause.action {
                        MergeAction::Insert(_) => effect.adds = true,
                        MergeAction::Update(update) => effect.set(&update.assignments),
                        MergeAction::Delete { .. } => effect.ends = true,
                    }
                }
            }
            _ => {}
        }
        effect
    }

    /// Of an INSERT.
    pub fn of_insert(insert: &ast::Insert) -> Self {
        let mut effect = Effect::adding();
        effect.sets_any = insert.or.is_some();
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on
            && let OnConflictAction::DoUpdate(update) = &conflict.action
        {
            effect.set(&update.assignments);
        }
        effect
    }

    fn set(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            let names = match &assignment.target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names,
            };
            self.sets.extend(names.iter().filter_map(last_name));
        }
    }

    fn sets_any(&self, columns: &[String]) -> bool {
        self.sets_any || columns.iter().any(|column| self.sets.contains(column))
    }

    /// The foreign keys that a statement with this effect on a table may break. A table that is referred to and does
    /// not exist is left out.
    pub fn affected(&self, table: &Arc<Table>, contents: &Contents) -> Affected {
        let takes_away = |key: &ForeignKey| self.ends || self.sets_any(&key.referenced);
        let incoming = contents.referencing(&table.name);
        let incoming = incoming.filter(|(_, key)| takes_away(key));
        let incoming: Vec<_> = incoming
            .map(|(by, key)| (key.clone(), Arc::clone(by)))
            .collect();
        let writes = self.adds || !self.sets.is_empty();
        let outgoing = table.foreign_keys.iter().filter(|key| {
            let is_own = key.table == table.name;
            self.adds || self.sets_any(&key.columns) || (is_own && writes && takes_away(key))
        });
        let outgoing = outgoing.filter_map(|key| {
            let referenced = contents.table(&key.table)?;
            Some((key.clone(), Arc::clone(referenced)))
        });
        Affected {
            outgoing: outgoing.collect(),
            incoming,
        }
    }
}
