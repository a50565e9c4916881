//! CREATE TABLE and DROP TABLE.
//!
//! What is written but would not hold is refused, never accepted in silence: a table that says PRIMARY KEY has one.

use crate::catalog::{ColumnRules, Table, exists, most_similar};
use crate::coerce::{Target, storable};
use crate::core::{Begun, Core, normalize, table_name};
use crate::error::SqlError;
use crate::insert::{collect_one, write};
use crate::parse::place_of;
use crate::position::Position;
use crate::statement::Statement;
use crate::types::column_type;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::sql::sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use datafusion::sql::sqlparser::ast::{
    self, ColumnOption, CreateTable, CreateTableOptions, Ident, ObjectName, ObjectType, SqlOption,
    Value,
};
use eris_engine::Partitioning;
use eris_fragment::Type;
use eris_types::{ColumnId, ObjectId};
use std::collections::HashSet;
use std::sync::Arc;

/// CREATE TABLE, also AS a query.
pub(crate) async fn create(
    core: &Core,
    create: CreateTable,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = table_name(&create.name)?;
    refuse_the_rest(&create)?;
    if create.or_replace && create.query.is_none() {
        return Err(SqlError::not_supported(
            "CREATE OR REPLACE TABLE without AS",
        ));
    }
    if !create.or_replace && core.catalog.get(&name).is_some() {
        let place = place_of(&create.name).map(|place| statement.excerpt(place));
        return if create.if_not_exists {
            Ok(Begun::Done {
                tag: "CREATE TABLE",
            })
        } else {
            Err(exists(&name).at(place))
        };
    }
    match create.query {
        None => {
            let (schema, rules) = columns(core, &create.columns, statement).await?;
            let partitioning = partitioning(&create.table_options, &schema)?;
            let new = NewTable::create(core, &name, schema, rules, partitioning)?;
            new.publish(core, create.if_not_exists).await?;
            Ok(Begun::Done {
                tag: "CREATE TABLE",
            })
        }
        Some(query) => {
            if !create.columns.is_empty() {
                return Err(SqlError::not_supported("CREATE TABLE with columns and AS"));
            }
            let plan = core.plan(*query, statement).await?;
            let schema = storable(&plan.physical.schema(), &name)?;
            let rules = vec![ColumnRules::default(); schema.fields().len()];
            let partitioning = partitioning(&create.table_options, &schema)?;
            let new = NewTable::create(core, &name, schema, rules, partitioning)?;
            let targets = (0..new.table.types.len()).map(Target::Source).collect();
            let rows = match write(core, &new.table, plan.run()?, targets).await {
                Ok(rows) => rows,
                Err(error) => {
                    new.discard().await;
                    return Err(error);
                }
            };
            new.replace(core, create.or_replace).await?;
            Ok(Begun::Count {
                rows,
                tag: "CREATE TABLE AS",
            })
        }
    }
}

/// A table whose data object no name leads to yet. Dropped unpublished, for instance by a cancelled CREATE TABLE AS, it
/// is removed from the engine.
struct NewTable {
    table: Arc<Table>,
    guard: Nameless,
}

/// A data object that no name leads to, not yet or no longer: removed from the engine when this is dropped.
pub(crate) struct Nameless(Option<(eris_engine::Engine, ObjectId)>);

impl Nameless {
    pub fn new(core: &Core, object: ObjectId) -> Self {
        Nameless(Some((core.engine.clone(), object)))
    }

    /// A name leads to it now.
    fn keep(&mut self) {
        self.0 = None;
    }

    /// Removes it, and waits until it is gone.
    async fn remove(&mut self) -> Result<(), SqlError> {
        match self.0.take() {
            Some((engine, object)) => Ok(engine.drop(object).await?),
            None => Ok(()),
        }
    }
}

impl Drop for Nameless {
    fn drop(&mut self) {
        // Dropping an object takes answers from all AEUs, so it is left to a task of its own.
        if let (Some((engine, object)), Ok(runtime)) =
            (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move { engine.drop(object).await });
        }
    }
}

impl NewTable {
    fn create(
        core: &Core,
        name: &str,
        schema: SchemaRef,
        rules: Vec<ColumnRules>,
        partitioning: Partitioning,
    ) -> Result<Self, SqlError> {
        let types = schema
            .fields()
            .iter()
            .map(|field| Type::try_from(field.data_type()));
        let types = types
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| SqlError::not_supported(error.0))?;
        let names = DFSchema::try_from(Arc::clone(&schema)).map_err(SqlError::from_datafusion)?;
        let object = core
            .engine
            .create(name, Arc::clone(&schema), partitioning)?;
        let guard = Nameless::new(core, object);
        let table = Table {
            name: name.to_owned(),
            object,
            schema,
            names,
            types,
            rules,
            partitioning,
        };
        Ok(NewTable {
            table: Arc::new(table),
            guard,
        })
    }

    /// Gives the table its name. Another session may have been faster.
    async fn publish(mut self, core: &Core, if_not_exists: bool) -> Result<(), SqlError> {
        match core.catalog.insert(Arc::clone(&self.table), false) {
            Ok(_) => {
                self.guard.keep();
                Ok(())
            }
            Err(error) => {
                self.discard().await;
                if if_not_exists { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Gives the table its name, which may be taken from another one.
    async fn replace(mut self, core: &Core, replace: bool) -> Result<(), SqlError> {
        match core.catalog.insert(Arc::clone(&self.table), replace) {
            Ok(old) => {
                self.guard.keep();
                if let Some(old) = old {
                    Nameless::new(core, old.object).remove().await?;
                }
                Ok(())
            }
            Err(error) => {
                self.discard().await;
                Err(error)
            }
        }
    }

    async fn discard(mut self) {
        // It exists, for nobody else knows it.
        let _ = self.guard.remove().await;
    }
}

/// Refuses every clause that is not looked at elsewhere: the statement made anew of what is looked at has to be the same.
fn refuse_the_rest(create: &CreateTable) -> Result<(), SqlError> {
    let known = CreateTableBuilder::new(create.name.clone())
        .or_replace(create.or_replace)
        .if_not_exists(create.if_not_exists)
        .columns(create.columns.clone())
        .constraints(create.constraints.clone())
        .table_options(create.table_options.clone())
        .query(create.query.clone())
        .build();
    if known != *create {
        return Err(SqlError::not_supported(
            "CREATE TABLE with other clauses than columns, WITH (partition_by = …) and AS",
        ));
    }
    match create.constraints.first() {
        Some(constraint) => Err(SqlError::not_supported(constraint_name(
            &constraint.to_string(),
        ))),
        None => Ok(()),
    }
}

/// The words with which a constraint begins.
fn constraint_name(constraint: &str) -> String {
    let name = constraint.split('(').next().unwrap_or_default().trim();
    format!("{name}, for it would not be enforced")
}

async fn columns(
    core: &Core,
    definitions: &[ast::ColumnDef],
    statement: &Statement,
) -> Result<(SchemaRef, Vec<ColumnRules>), SqlError> {
    if definitions.is_empty() {
        return Err(SqlError::invalid("a table needs at least one column"));
    }
    let mut names = HashSet::new();
    let mut fields = Vec::new();
    let mut rules = Vec::new();
    for definition in definitions {
        let place = || Some(statement.excerpt(place_of_ident(&definition.name)?));
        let name = normalize(&definition.name);
        if !names.insert(name.clone()) {
            return Err(SqlError::invalid(format!("column \"{name}\" occurs twice")).at(place()));
        }
        let known = column_type(&definition.data_type);
        let known = known.map_err(|reason| {
            SqlError::not_supported(format!("{reason} of column \"{name}\"")).at(place())
        })?;
        let mut nullable = true;
        let mut rule = ColumnRules {
            max_characters: known.max_characters,
            default: None,
        };
        let mut default = None;
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => nullable = false,
                ColumnOption::Default(value) => default = Some(value),
                other => {
                    let words = format!(
                        "{} of column \"{name}\"",
                        constraint_name(&other.to_string())
                    );
                    return Err(SqlError::not_supported(words).at(place()));
                }
            }
        }
        let field = Field::new(&name, known.data_type, nullable);
        if let Some(value) = default {
            rule.default = Some(
                constant(core, value, &field, &rule, statement)
                    .await
                    .map_err(|error| error.at(place()))?,
            );
        }
        fields.push(field);
        rules.push(rule);
    }
    Ok((Arc::new(Schema::new(fields)), rules))
}

fn place_of_ident(name: &Ident) -> Option<Position> {
    place_of(&ObjectName::from(vec![name.clone()]))
}

/// The value of a DEFAULT, which must be the same at all times.
async fn constant(
    core: &Core,
    value: &ast::Expr,
    field: &Field,
    rules: &ColumnRules,
    statement: &Statement,
) -> Result<ScalarValue, SqlError> {
    if !is_constant(value) {
        return Err(SqlError::not_supported(
            "DEFAULT with anything but a constant",
        ));
    }
    let (array, _) = collect_one(core, value, statement).await?;
    let array = crate::coerce::column(&array, field, rules, "DEFAULT", 1)?;
    ScalarValue::try_from_array(&array, 0).map_err(SqlError::from_datafusion)
}

fn is_constant(value: &ast::Expr) -> bool {
    match value {
        ast::Expr::Value(_) | ast::Expr::TypedString(_) => true,
        ast::Expr::UnaryOp { expr, .. }
        | ast::Expr::Nested(expr)
        | ast::Expr::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
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
        let refused = || {
            SqlError::not_supported(format!("table option {option}"))
                .with_hint(Some("the only table option is partition_by = 'column'"))
        };
        let column = match option {
            SqlOption::KeyValue { key, value } if normalize(key) == "partition_by" => match value {
                ast::Expr::Identifier(column) => normalize(column),
                ast::Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(column) => column.clone(),
                    _ => return Err(refused()),
                },
                _ => return Err(refused()),
            },
            _ => return Err(refused()),
        };
        let position = schema.index_of(&column).map_err(|_| {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            SqlError::invalid(format!(
                "partition_by: the table has no column \"{column}\""
            ))
            .with_hint(most_similar(&column, names).map(|name| format!("did you mean \"{name}\"?")))
        })?;
        partitioning = Partitioning::Range(ColumnId(position as u32));
    }
    Ok(partitioning)
}

/// DROP TABLE.
pub(crate) async fn drop(
    core: &Core,
    tree: &ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let ast::Statement::Drop {
        object_type,
        if_exists,
        names,
        cascade,
        ..
    } = tree
    else {
        unreachable!("called for DROP only");
    };
    if *object_type != ObjectType::Table {
        return Err(SqlError::not_supported(format!("DROP {object_type}")));
    }
    if *cascade {
        return Err(SqlError::not_supported("DROP TABLE … CASCADE"));
    }
    let plain = names.iter().map(table_name);
    let plain = plain.collect::<Result<Vec<_>, _>>()?;
    let removed = core.catalog.remove(&plain, *if_exists);
    let removed = removed.map_err(|missing| core.missing(&names[missing], statement))?;
    // Nobody else can drop them any more, so that has to happen even if this statement is cancelled in between.
    let mut nameless: Vec<_> = removed
        .iter()
        .map(|table| Nameless::new(core, table.object))
        .collect();
    for object in &mut nameless {
        object.remove().await?;
    }
    Ok(Begun::Done { tag: "DROP TABLE" })
}
