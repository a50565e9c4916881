//! CREATE TABLE, also AS a query, OR REPLACE, LIKE another table.

use crate::catalog::{
    CatalogChange, ColumnRules, Course, Definition, Identity, PrimaryKey, RelationName, Sequence,
    Table, TableBalancing, TableOrView, retire,
};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::running::outcome::Begun;
use crate::statements::ddl::columns::{
    NamedColumns, add_checks, add_unique, column, table_check, table_key, table_unique,
};
use crate::statements::ddl::references::{self, WrittenKey};
use crate::statements::ddl::row_order::row_order;
use crate::statements::ddl::{
    check_schema, dependents, excerpt, excerpt_of, exists, generated, sequence,
};
use crate::statements::insert::write_plan;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::coerce::{Target, storable};
use crate::write::locks;
use crate::write::locks::{Writable, retire_all};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use datafusion::sql::sqlparser::ast::{
    self, CreateTable, CreateTableLikeDefaults, CreateTableLikeKind, CreateTableOptions,
    ObjectName, OnCommit, SqlOption, TableConstraint, Value,
};
use eris_home::Partitioning;
use eris_syntax::are_equal;
use eris_types::ColumnId;
use eris_types::most_similar;
use std::collections::HashSet;
use std::sync::Arc;

const TAG: &str = "CREATE TABLE";
const HINT: &str = "CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE";

/// CREATE TABLE, also AS a query.
pub(super) async fn create(
    context: &StatementContext,
    create: CreateTable,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    reject_the_rest(&create)?;
    let full = context.new_name(&create.name, create.temporary, statement)?;
    if create.temporary {
        context.make_temporary_schema().await;
    }
    check_schema(&context.catalog.contents(), &full, &create.name, statement)?;
    let publication = Publication {
        name: &create.name,
        or_replace: create.or_replace,
        if_not_exists: create.if_not_exists,
        statement,
    };
    // Known already that it is not needed, or not possible.
    if let Some(relation) = context.catalog.contents().get(&full)
        && publication.is_in_the_way(relation)?
    {
        return Ok(Begun::Done { tag: TAG });
    }
    let query = match create.query.clone() {
        None => {
            let definition = definition(context, &create, full, statement).await?;
            let table = Arc::new(Table::create(&context.data_source(), definition).await?);
            publication.publish(context, table).await?;
            return Ok(Begun::Done { tag: TAG });
        }
        Some(query) => query,
    };
    if !create.columns.is_empty() || !create.constraints.is_empty() || create.like.is_some() {
        return Err(SqlError::not_supported("CREATE TABLE with columns and AS"));
    }
    let plan = planning::plan(context, *query, statement).await?;
    let schema = storable(&plan.columns(), &full.to_string())?;
    let definition = Definition {
        rules: vec![ColumnRules::default(); schema.fields().len()],
        checks: Vec::new(),
        key: None,
        uniques: Vec::new(),
        foreign_keys: Vec::new(),
        partitioning: partitioning(&create.table_options, &schema)?,
        row_order: row_order(create.order_by.as_ref(), &schema, statement)?,
        comment: None,
        balancing: TableBalancing::default(),
        schema,
        name: full,
    };
    let table = Arc::new(Table::create(&context.data_source(), definition).await?);
    let targets = (0..table.types.len()).map(Target::Source).collect();
    let target = Writable::unpublished(&table);
    let written = write_plan(context, &target, plan, targets).await;
    drop(target);
    match written {
        Ok(rows) => {
            publication.publish(context, table).await?;
            Ok(Begun::Count {
                rows,
                tag: "CREATE TABLE AS",
            })
        }
        Err(error) => {
            retire([table]).await?;
            Err(error)
        }
    }
}

/// How a new table gets its name.
struct Publication<'a> {
    name: &'a ObjectName,
    or_replace: bool,
    if_not_exists: bool,
    statement: &'a Statement,
}

impl Publication<'_> {
    /// Whether the statement ends without doing anything because of what has the name.
    ///
    /// # Errors
    /// It can neither be replaced nor left as it is.
    fn is_in_the_way(&self, relation: &TableOrView) -> Result<bool, SqlError> {
        match relation {
            _ if self.if_not_exists => Ok(true),
            TableOrView::Table(_) if self.or_replace => Ok(false),
            relation => {
                let hint = matches!(relation, TableOrView::Table(_)).then_some(HINT);
                let error = exists(relation.kind(), relation.name(), hint);
                Err(error.at(excerpt(self.name, self.statement)))
            }
        }
    }

    /// Gives the table its name. Another session may have been faster.
    async fn publish(&self, context: &StatementContext, table: Arc<Table>) -> Result<(), SqlError> {
        let full = table.name.clone();
        // Also the tables to which it refers: whoever writes to them then knows that it does.
        let affected = || {
            let contents = context.catalog.contents();
            let old = contents.table(&full).cloned();
            let mut tables = references::referenced(&contents, &table);
            tables.extend(old.into_iter().filter(|_| self.or_replace));
            Ok(tables)
        };
        loop {
            let locked = locks::exclusive(context, affected).await?;
            let mut change = context.catalog.change().await;
            let taken = check_schema(&change, &full, self.name, self.statement);
            let taken = taken.and_then(|()| match change.get(&full) {
                Some(relation) => self.is_in_the_way(relation),
                None => Ok(false),
            });
            let taken = taken.and_then(|is_taken| {
                if is_taken {
                    return Ok(true);
                }
                references::check(&change, &table)?;
                match references::first_to(&change, std::slice::from_ref(&full)) {
                    Some(found) => Err(found.error("replaced")),
                    None => Ok(false),
                }
            });
            match taken {
                Ok(false) => {}
                Ok(true) => return retire([table]).await,
                Err(error) => {
                    retire([table]).await?;
                    return Err(error);
                }
            }
            let mut affected = references::referenced(&change, &table);
            affected.extend(change.table(&full).cloned());
            let is_locked = |table: &Arc<Table>| {
                (locked.iter()).any(|locked| Arc::ptr_eq(&locked.table.lock, &table.lock))
            };
            if !affected.iter().all(is_locked) {
                continue;
            }
            let replaced = change.put(TableOrView::Table(Arc::clone(&table)));
            if let Err(error) = exchange_sequences(&mut change, replaced, &table) {
                drop(change);
                retire([table]).await?;
                return Err(error);
            }
            if let Err(error) = dependents::keep(context, &mut change, &full, "table", false).await
            {
                drop(change);
                retire([table]).await?;
                return Err(error);
            }
            if let Err(error) = change.commit().await {
                retire([table]).await?;
                return Err(error);
            }
            return retire_all(locked).await;
        }
    }
}

/// Drops the sequences of the columns of a table that is replaced, and adds those of the new one.
fn exchange_sequences(
    change: &mut CatalogChange<'_>,
    replaced: Option<TableOrView>,
    table: &Table,
) -> Result<(), SqlError> {
    if let Some(TableOrView::Table(replaced)) = replaced {
        let names: Vec<_> = sequence::own(&replaced)
            .map(|own| own.name.clone())
            .collect();
        sequence::check_unused(change, &names, |other| other.name == table.name)?;
        change.remove_own_sequences(&replaced);
    }
    for own in sequence::own(table) {
        let other = change.sequence(&own.name);
        if other.is_some_and(|other| !Arc::ptr_eq(other, own)) {
            return Err(exists("sequence", &own.name, None));
        }
        change.put_sequence(Arc::clone(own));
    }
    Ok(())
}

/// The sequence of a column of a new table. Its name is free, or that of one which goes with the table of this name.
fn column_sequence(
    context: &StatementContext,
    table: &RelationName,
    column: &str,
    course: Course,
) -> Result<Arc<Sequence>, SqlError> {
    if context.is_opening() {
        let before = context.sequence_before(table, column);
        return before.ok_or_else(|| {
            let message = format!("the sequence of column \"{column}\" is missing");
            SqlError::invalid(Mistake::UndefinedTable, message)
        });
    }
    let contents = context.catalog.contents();
    let old = contents.table(table);
    let name = format!("{}_{column}_seq", table.name);
    let numbered = (1..).map(|number| format!("{name}{number}"));
    let names = std::iter::once(name.clone()).chain(numbered);
    let mut names = names.map(|name| RelationName::new(table.schema.as_str(), name));
    let is_own = |found: &Arc<Sequence>| {
        old.is_some_and(|old| sequence::own(old).any(|own| Arc::ptr_eq(own, found)))
    };
    let free = names.find(|name| contents.sequence(name).is_none_or(is_own));
    Ok(Sequence::new(free.expect("numbers do not end"), course))
}

/// The table that is defined by its columns, or by another table.
async fn definition(
    context: &StatementContext,
    create: &CreateTable,
    full: RelationName,
    statement: &Statement,
) -> Result<Definition, SqlError> {
    let (mut fields, mut rules) = match &create.like {
        Some(like) => columns_like(context, like, statement)?,
        None => Default::default(),
    };
    let mut names: HashSet<String> = fields.iter().map(|field| field.name().clone()).collect();
    let mut unchecked = Vec::new();
    let mut keys: Vec<NamedColumns> = Vec::new();
    let mut uniques: Vec<NamedColumns> = Vec::new();
    let mut foreign_keys: Vec<WrittenKey> = Vec::new();
    for definition in &create.columns {
        let column = column(context, definition, statement).await?;
        let name = column.field.name().clone();
        if !names.insert(name.clone()) {
            return Err(SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("column \"{name}\" occurs twice"),
            )
            .at(excerpt_of(&definition.name, statement)));
        }
        let mut column_rules = column.rules;
        if let Some((course, always)) = column.identity {
            let sequence = column_sequence(context, &full, &name, course)?;
            column_rules.default = Some(sequence::default_of(&sequence));
            column_rules.identity = Some(Identity { always, sequence });
        }
        fields.push(Arc::new(column.field));
        rules.push(column_rules);
        unchecked.extend(column.checks);
        foreign_keys.extend(column.references);
        let this = || vec![definition.name.clone()];
        keys.extend(column.primary.map(|named| (named, this())));
        uniques.extend(column.unique.map(|named| (named, this())));
    }
    if fields.is_empty() {
        return Err(SqlError::invalid(
            Mistake::InvalidTableDefinition,
            "a table needs at least one column",
        )
        .at(excerpt(&create.name, statement)));
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => keys.push(table_key(key)?),
            TableConstraint::Unique(unique) => uniques.push(table_unique(unique)?),
            TableConstraint::ForeignKey(key) => {
                foreign_keys.push(WrittenKey::of_table(key, statement)?);
            }
            other => unchecked.push(table_check(other)?),
        }
    }
    if keys.len() > 1 {
        return Err(SqlError::invalid(
            Mistake::InvalidTableDefinition,
            "a table has one PRIMARY KEY at most",
        )
        .at(excerpt(&create.name, statement)));
    }
    let key = match keys.pop() {
        Some((named, columns)) => Some(primary_key(&mut fields, named, columns, &full, statement)?),
        None => None,
    };
    generated::resolve(context, &full, &mut fields, &mut rules, statement)?;
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    if let Some(key) = &key {
        generated::reject("PRIMARY KEY", &key.columns, &schema, &rules)?;
    }
    let partitioning = partitioning(&create.table_options, &schema)?;
    if key.is_some() && partitioning != Partitioning::Size {
        return Err(SqlError::not_supported("PRIMARY KEY with partition_by")
            .with_hint(Some("a table with a key is partitioned by it")));
    }
    let mut definition = Definition {
        row_order: row_order(create.order_by.as_ref(), &schema, statement)?,
        comment: None,
        balancing: TableBalancing::default(),
        partitioning,
        name: full,
        schema,
        rules,
        checks: Vec::new(),
        key,
        uniques: Vec::new(),
        foreign_keys: Vec::new(),
    };
    add_checks(context, &mut definition, unchecked, statement)?;
    for unique in uniques {
        add_unique(&mut definition, unique, statement)?;
    }
    for key in &foreign_keys {
        references::add(context, &mut definition, key, statement)?;
    }
    Ok(definition)
}

/// The PRIMARY KEY, whose columns become NOT NULL.
pub(super) fn primary_key(
    fields: &mut [Arc<datafusion::arrow::datatypes::Field>],
    named: Option<ast::Ident>,
    columns: Vec<ast::Ident>,
    table: &RelationName,
    statement: &Statement,
) -> Result<PrimaryKey, SqlError> {
    let mut key = PrimaryKey {
        name: named.map_or_else(|| format!("{}_pkey", table.name), |name| normalize(&name)),
        columns: Vec::new(),
    };
    for column in &columns {
        let plain = normalize(column);
        let wrong = |mistake, message: String| {
            Err(SqlError::invalid(mistake, message).at(excerpt_of(column, statement)))
        };
        let Some(field) = fields.iter_mut().find(|field| *field.name() == plain) else {
            return wrong(
                Mistake::UndefinedColumn,
                format!("PRIMARY KEY: there is no column \"{plain}\""),
            );
        };
        if key.columns.contains(&plain) {
            return wrong(
                Mistake::DuplicateColumn,
                format!("PRIMARY KEY: column \"{plain}\" occurs twice"),
            );
        }
        *field = Arc::new(field.as_ref().clone().with_nullable(false));
        key.columns.push(plain);
    }
    Ok(key)
}

type FieldsAndRules = (
    Vec<Arc<datafusion::arrow::datatypes::Field>>,
    Vec<ColumnRules>,
);

/// The columns of another table, with their NOT NULL and, if asked for, their defaults.
fn columns_like(
    context: &StatementContext,
    like: &CreateTableLikeKind,
    statement: &Statement,
) -> Result<FieldsAndRules, SqlError> {
    let (CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like)) = like;
    let other = context.table(&like.name, statement)?;
    let mut rules = other.rules.clone();
    for rules in &mut rules {
        rules.comment = None;
        rules.generated = None;
        // As PostgreSQL without INCLUDING IDENTITY: the other table's numbers are its own.
        if rules.identity.take().is_some() {
            rules.default = None;
        }
    }
    if like.defaults != Some(CreateTableLikeDefaults::Including) {
        rules.iter_mut().for_each(|rules| rules.default = None);
    }
    Ok((other.schema.fields().to_vec(), rules))
}

/// Rejects every clause that is not looked at elsewhere: the statement made anew of what is looked at has to be the
/// same.
fn reject_the_rest(create: &CreateTable) -> Result<(), SqlError> {
    if create.or_replace && create.if_not_exists {
        return Err(SqlError::invalid(
            Mistake::Syntax,
            "CREATE TABLE with both OR REPLACE and IF NOT EXISTS",
        ));
    }
    let known = CreateTableBuilder::new(create.name.clone())
        .or_replace(create.or_replace)
        .if_not_exists(create.if_not_exists)
        .temporary(create.temporary)
        .on_commit(create.on_commit.filter(|on| *on == OnCommit::PreserveRows))
        .columns(create.columns.clone())
        .constraints(create.constraints.clone())
        .table_options(create.table_options.clone())
        .like(create.like.clone())
        .order_by(create.order_by.clone())
        .query(create.query.clone())
        .build();
    if !are_equal(&known, create) {
        return Err(SqlError::not_supported(
            "CREATE TABLE with other clauses than columns, LIKE, WITH (partition_by = …), ORDER BY and AS",
        ));
    }
    Ok(())
}

/// `WITH (partition_by = 'column')`.
fn partitioning(options: &CreateTableOptions, schema: &Schema) -> Result<Partitioning, SqlError> {
    let options = match options {
        CreateTableOptions::None => return Ok(Partitioning::Size),
        CreateTableOptions::With(options) => options,
        other => return Err(SqlError::not_supported(format!("table options {other}"))),
    };
    let mut partitioning = Partitioning::Size;
    for option in options {
        let rejected = || {
            let message = format!("there is no table option {option}");
            SqlError::invalid(Mistake::InvalidParameterValue, message)
                .with_hint(Some("the only table option is partition_by = 'column'"))
        };
        let column = match option {
            SqlOption::KeyValue { key, value } if normalize(key) == "partition_by" => match value {
                ast::Expr::Identifier(column) => normalize(column),
                ast::Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(column) => column.clone(),
                    _ => return Err(rejected()),
                },
                _ => return Err(rejected()),
            },
            _ => return Err(rejected()),
        };
        let position = schema.index_of(&column).map_err(|_| {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            SqlError::invalid(
                Mistake::UndefinedColumn,
                format!("partition_by: the table has no column \"{column}\""),
            )
            .with_hint(most_similar(&column, names).map(|name| format!("did you mean \"{name}\"?")))
        })?;
        partitioning = Partitioning::Range(ColumnId(position as u32));
    }
    Ok(partitioning)
}
