//! The catalogue of a database that is salvaged: what can be made again of the definitions that are left.
//!
//! ```text
//! table a  ─────────────────────────────────────────────▶ as it was
//! table b  its default takes numbers of a lost sequence ─▶ without defaults
//! table c  its definition is lost, its rows are there  ──▶ CREATE TABLE c, of the columns and the key of its rows
//! view v   reads a table that is lost                  ──▶ left out
//! ```
//!
//! Whole rows are not lost for want of a definition. What is made says less than what was there: comments, defaults,
//! checks, and names that a column has got later.

use super::{Opener, TABLES, in_order, rank};
use crate::catalog::{Contents, RelationName, SCHEMA, Table, definition_of, quoted};
use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::text::identifier::normalize;
use crate::text::parse::{parse, parse_with};
use crate::text::statement::split;
use datafusion::sql::sqlparser::ast::{self, ColumnOption, TableConstraint};
use eris_exact::types::sql_name;
use eris_home::{Definition, DefinitionChange, HomeError, ObjectDefinition, Partitioning};
use eris_types::ObjectId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Kinds of definitions that are in a schema.
const SEQUENCE: &str = "sequence";
const TABLE: &str = "table";
const VIEW: &str = "view";

/// What has become of definitions. Each is named with what it is: `table public.t`.
#[derive(Debug, Default)]
pub(crate) struct Reopened {
    /// What was left out, and why.
    pub left_out: Vec<(String, String)>,
    /// What was made with less than it had, and what that was.
    pub reduced: Vec<(String, String)>,
    /// Tables whose definitions were made of their rows.
    pub made: Vec<String>,
}

/// Makes as much of the catalogue as can be made, and has the home keep the definitions of that. If definitions may be
/// lost that nobody knows, tables are made of objects that no definition leads to.
///
/// # Errors
/// The home cannot keep what has changed.
pub(crate) async fn open_remains(
    context: &StatementContext,
    may_have_lost: bool,
) -> Result<Reopened, SqlError> {
    let Some(definitions) = context.home.definitions() else {
        return Ok(Reopened::default());
    };
    let stored = in_order(definitions.stored());
    let mut remains = Remains {
        opener: Opener::new(context),
        may_have_lost,
        objects: definitions.unopened().into_iter().collect(),
        orphans: BTreeMap::new(),
        without_rows: BTreeMap::new(),
        keys: BTreeSet::new(),
        changes: Vec::new(),
        reopened: Reopened::default(),
    };
    let (tables, others) = stored.split_at(stored.partition_point(|one| rank(one) <= TABLES));
    for definition in tables {
        remains.open_or_leave_out(definition).await?;
    }
    remains.make_tables().await?;
    remains.add_foreign_keys().await?;
    for definition in others {
        remains.open_or_leave_out(definition).await?;
    }
    remains.leave_out_views();
    definitions.note(remains.changes)?;
    definitions.opened().await?;
    Ok(remains.reopened)
}

struct Remains {
    opener: Opener,
    may_have_lost: bool,
    /// All objects that are there.
    objects: BTreeMap<ObjectId, ObjectDefinition>,
    /// The rows of tables that were left out, and the names of these.
    orphans: BTreeMap<ObjectId, String>,
    /// Definitions of tables whose rows are lost, or are in another object by now, by their names.
    without_rows: BTreeMap<String, Definition>,
    /// Objects that have the keys of UNIQUE constraints.
    keys: BTreeSet<ObjectId>,
    changes: Vec<DefinitionChange>,
    reopened: Reopened,
}

impl Remains {
    fn contents(&self) -> Arc<Contents> {
        self.opener.context.catalog.contents()
    }

    /// Makes a definition again; or says what is wrong with it.
    ///
    /// # Errors
    /// Something else went wrong, such as that there is no memory.
    async fn open(&mut self, definition: &Definition) -> Result<Option<SqlError>, SqlError> {
        match Box::pin(self.opener.open(definition)).await {
            Ok(()) => Ok(None),
            Err(error) if is_of_definition(&error) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    async fn open_or_leave_out(&mut self, definition: &Definition) -> Result<(), SqlError> {
        self.keys.extend(definition.objects.iter().skip(1));
        if let Some((SEQUENCE | TABLE | VIEW, name)) = definition.name.split_once(' ') {
            self.make_schema(&named(name).schema).await?;
        }
        let name = definition.name.clone();
        if definition
            .objects
            .iter()
            .any(|object| !self.objects.contains_key(object))
        {
            self.without_rows.insert(name.clone(), definition.clone());
            self.changes.push(DefinitionChange::IsGone(name.clone()));
            self.reopened
                .left_out
                .push((name, "what its columns are is lost".to_owned()));
            return Ok(());
        }
        let Some(error) = self.open(definition).await? else {
            return Ok(());
        };
        if rank(definition) == TABLES {
            self.forget(&name).await;
            if self.open_without_defaults(definition).await? {
                let what = format!("defaults and numbering of its columns: {}", error.message());
                self.reopened.reduced.push((name, what));
                return Ok(());
            }
            let rows = definition.objects.first();
            self.orphans.extend(rows.map(|rows| (*rows, name.clone())));
        }
        self.changes.push(DefinitionChange::IsGone(name.clone()));
        self.reopened
            .left_out
            .push((name, error.message().to_owned()));
        Ok(())
    }

    /// Takes what has been made of a table out of the catalogue.
    async fn forget(&mut self, definition: &str) {
        self.opener.late.retain(|(name, _)| name != definition);
        let contents = self.contents();
        if let Some(table) = table_of(&contents, definition) {
            let mut change = self.opener.context.catalog.change().await;
            change.drop_relation(&table.name);
            // Nothing is stored that could fail.
            let _ = change.commit().await;
        }
    }

    async fn open_without_defaults(&mut self, definition: &Definition) -> Result<bool, SqlError> {
        let Some(text) = without_defaults(&definition.text) else {
            return Ok(false);
        };
        let reduced = Definition {
            text,
            ..definition.clone()
        };
        if self.open(&reduced).await?.is_some() {
            self.forget(&definition.name).await;
            return Ok(false);
        }
        self.has_changed(&definition.name);
        Ok(true)
    }

    /// The table of a definition is another one by now.
    fn has_changed(&mut self, definition: &str) {
        let contents = self.contents();
        let table = table_of(&contents, definition);
        let changed = table.map(|table| DefinitionChange::Is(definition_of(table)));
        self.changes.extend(changed);
    }

    /// Makes tables of rows that no definition leads to.
    async fn make_tables(&mut self) -> Result<(), SqlError> {
        let home = Arc::clone(&self.opener.context.home);
        let definitions = home.definitions().expect("it keeps them");
        let unopened: BTreeMap<_, _> = definitions.unopened().into_iter().collect();
        let mut left = self.objects.clone().into_iter().collect::<Vec<_>>();
        left.retain(|(object, _)| {
            let is_lost = self.may_have_lost && unopened.contains_key(object);
            (is_lost || self.orphans.contains_key(object)) && !self.keys.contains(object)
        });
        let mut namesakes: BTreeSet<String> = BTreeSet::new();
        // The keys of a UNIQUE constraint are an object of the same name, with fewer columns.
        left.sort_by_key(|(object, made)| (Reverse(made.schema.fields().len()), *object));
        for (object, made) in left {
            let contents = self.contents();
            let known = self.orphans.get(&object).cloned();
            let has_all_in_key = made.key.len() == made.schema.fields().len();
            let mut tables = contents.tables();
            let is_namesake = namesakes.contains(&made.name)
                || tables.any(|table| table.name.to_string() == made.name);
            if known.is_none() && has_all_in_key && is_namesake {
                continue;
            }
            let name = match &known {
                Some(definition) => named(definition.strip_prefix("table ").unwrap_or_default()),
                None => name_of(&made.name),
            };
            namesakes.insert(made.name.clone());
            self.make_schema(&name.schema).await?;
            let name = free(&self.contents(), name);
            if self.open_as_before(&name, object).await? {
                continue;
            }
            let definition = Definition {
                name: format!("table {}", name.full()),
                text: create_statement(&name, &made),
                objects: vec![object],
            };
            match self.open(&definition).await? {
                None => {
                    self.reopened.made.push(definition.name.clone());
                    self.reopened
                        .left_out
                        .retain(|(left, _)| *left != definition.name);
                    self.changes.push(DefinitionChange::Is(definition));
                }
                Some(error) => {
                    let why = error.message().to_owned();
                    self.reopened.left_out.push((definition.name, why));
                }
            }
        }
        Ok(())
    }

    /// Makes a table that has got other rows, as TRUNCATE gives it, by the definition that it had before.
    async fn open_as_before(
        &mut self,
        name: &RelationName,
        object: ObjectId,
    ) -> Result<bool, SqlError> {
        let name = format!("table {}", name.full());
        let Some(before) = self.without_rows.get(&name) else {
            return Ok(false);
        };
        let definition = Definition {
            objects: vec![object],
            ..before.clone()
        };
        if self.open(&definition).await?.is_some() {
            self.forget(&name).await;
            return Ok(false);
        }
        self.reopened.left_out.retain(|(left, _)| *left != name);
        self.reopened.made.push(name);
        self.changes.push(DefinitionChange::Is(definition));
        Ok(true)
    }

    async fn make_schema(&mut self, schema: &str) -> Result<(), SqlError> {
        if self.contents().has_schema(schema) {
            return Ok(());
        }
        let definition = Definition {
            name: format!("schema {}", quoted(schema)),
            text: format!("CREATE SCHEMA {}", quoted(schema)),
            objects: Vec::new(),
        };
        if self.open(&definition).await?.is_none() {
            self.changes.push(DefinitionChange::Is(definition));
        }
        Ok(())
    }

    /// Adds those whose tables are there.
    async fn add_foreign_keys(&mut self) -> Result<(), SqlError> {
        for (name, keys) in std::mem::take(&mut self.opener.late) {
            let mut has_changed = false;
            for key in keys.each() {
                let Err(error) = key.add(&self.opener.context).await else {
                    continue;
                };
                if !is_of_definition(&error) {
                    return Err(error);
                }
                has_changed = true;
                let what = format!("a foreign key: {}", error.message());
                self.reopened.reduced.push((name.clone(), what));
            }
            if has_changed {
                self.has_changed(&name);
            }
        }
        Ok(())
    }

    /// Views that read what is not there any more, or such views.
    fn leave_out_views(&mut self) {
        let contents = self.contents();
        let mut gone: BTreeSet<&RelationName> = BTreeSet::new();
        loop {
            let next = contents.views().find_map(|view| {
                let mut reads = view.reads.iter().map(|read| &read.name);
                let is_missing =
                    |name: &&RelationName| contents.get(name).is_none() || gone.contains(name);
                let missing = reads.find(is_missing)?;
                (!gone.contains(&view.name)).then_some((&view.name, missing))
            });
            let Some((view, missing)) = next else {
                return;
            };
            gone.insert(view);
            let name = format!("view {}", view.full());
            self.changes.push(DefinitionChange::IsGone(name.clone()));
            let why = format!("it reads \"{missing}\", which is lost");
            self.reopened.left_out.push((name, why));
        }
    }
}

/// Whether an error says that something cannot be defined like that.
fn is_of_definition(error: &SqlError) -> bool {
    match error.kind() {
        SqlErrorKind::Syntax(_)
        | SqlErrorKind::NotSupported(_)
        | SqlErrorKind::Invalid(..)
        | SqlErrorKind::Constraint(..) => true,
        SqlErrorKind::Home(error) => matches!(
            **error,
            HomeError::Open(_)
                | HomeError::NoSuchObject(_)
                | HomeError::Type { .. }
                | HomeError::KeyColumn { .. }
                | HomeError::PartitionColumn { .. }
        ),
        _ => false,
    }
}

/// The table that a definition has made.
fn table_of<'a>(contents: &'a Contents, definition: &str) -> Option<&'a Table> {
    let (_, name) = definition.split_once(' ')?;
    let mut tables = contents.tables();
    tables
        .find(|table| table.name.full() == name)
        .map(|table| &**table)
}

/// The statements of a table without what they say of values that rows do not give.
fn without_defaults(text: &str) -> Option<String> {
    let mut statements = Vec::new();
    for statement in &split(text).ok()? {
        let tree = parse(statement).ok()?;
        let ast::Statement::CreateTable(mut create) = tree else {
            statements.push(statement.text().to_owned());
            continue;
        };
        for column in &mut create.columns {
            column.options.retain(|option| match &option.option {
                ColumnOption::Default(_) => false,
                ColumnOption::Generated {
                    generation_expr, ..
                } => generation_expr.is_some(),
                _ => true,
            });
        }
        statements.push(ast::Statement::CreateTable(create).to_string());
    }
    Some(statements.join(";\n"))
}

/// The name in a definition's name: `sales."Item"`.
fn named(full: &str) -> RelationName {
    let statements = split(&format!("TABLE {full}")).unwrap_or_default();
    let parts = statements.first().and_then(|statement| {
        let name = parse_with(statement, |parser| {
            parser.next_token();
            parser.parse_object_name(false)
        });
        name.ok()
    });
    let parts = parts.iter().flat_map(|name| &name.0);
    let parts: Vec<String> = parts
        .filter_map(|part| part.as_ident())
        .map(normalize)
        .collect();
    match &parts[..] {
        [schema, name] => RelationName::new(schema.as_str(), name.as_str()),
        _ => RelationName::new(SCHEMA, full),
    }
}

/// The name of a table by that of its object: `sales.Item`.
fn name_of(object: &str) -> RelationName {
    match object.split_once('.') {
        Some((schema, name)) => RelationName::new(schema, name),
        None => RelationName::new(SCHEMA, object),
    }
}

/// A name like this one that nothing has.
fn free(contents: &Contents, name: RelationName) -> RelationName {
    let numbered = (2..).map(|number| format!("{}_{number}", name.name));
    let names = std::iter::once(name.name.clone()).chain(numbered);
    let mut names = names.map(|free| RelationName::new(name.schema.as_str(), free));
    names
        .find(|name| contents.get(name).is_none())
        .expect("numbers do not end")
}

/// How a table is made that has such rows.
fn create_statement(name: &RelationName, made: &ObjectDefinition) -> String {
    let fields = made.schema.fields();
    let mut lines: Vec<String> = fields
        .iter()
        .map(|field| {
            let nullable = if field.is_nullable() { "" } else { " NOT NULL" };
            let data_type = sql_name(field.data_type(), None);
            format!("{} {data_type}{nullable}", quoted(field.name()))
        })
        .collect();
    let column = |place: usize| fields[place].name();
    if !made.key.is_empty() {
        let key = made.key.iter().map(|place| quoted(column(place.index())));
        let key: Vec<_> = key.collect();
        lines.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    let options = match made.partitioning {
        Partitioning::Size => String::new(),
        Partitioning::Range(place) => {
            let column = column(place.index()).replace('\'', "''");
            format!(" WITH (partition_by = '{column}')")
        }
    };
    let lines = lines.join(",\n    ");
    format!("CREATE TABLE {} (\n    {lines}\n){options}", name.full())
}

/// By the definition of a table, the columns of its UNIQUE constraints and indexes, in the order of its objects.
/// `None`: it is of no table, or cannot be read.
pub(crate) fn unique_columns(definition: &Definition) -> Option<Vec<Vec<usize>>> {
    if rank(definition) != TABLES {
        return None;
    }
    let (mut columns, mut uniques) = (Vec::new(), Vec::new());
    for statement in &split(&definition.text).ok()? {
        let parts = match parse(statement).ok()? {
            ast::Statement::CreateTable(create) => {
                columns = create
                    .columns
                    .iter()
                    .map(|column| normalize(&column.name))
                    .collect();
                let constraints = create.constraints.into_iter();
                let constraints = constraints.filter_map(|constraint| match constraint {
                    TableConstraint::Unique(unique) => Some(unique.columns),
                    _ => None,
                });
                constraints.collect()
            }
            ast::Statement::CreateIndex(create) if create.unique => vec![create.columns],
            _ => Vec::new(),
        };
        for part in parts {
            let places = part.iter().map(|column| match &column.column.expr {
                ast::Expr::Identifier(name) => {
                    let name = normalize(name);
                    columns.iter().position(|other: &String| *other == name)
                }
                _ => None,
            });
            uniques.push(places.collect::<Option<Vec<usize>>>()?);
        }
    }
    (uniques.len() + 1 == definition.objects.len()).then_some(uniques)
}
