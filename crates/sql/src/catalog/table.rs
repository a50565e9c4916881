//! Tables: names for data objects, and the rules of their rows.

use crate::catalog::{RelationName, TableIndex};
use crate::error::SqlError;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::sql::sqlparser::ast;
use eris_engine::{Engine, EngineError, Partitioning};
use eris_fragment::Type;
use eris_types::{ColumnId, ObjectId};
use std::fmt;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::RwLock;

/// A table at one moment: what changes it puts a new `Table` into the catalogue, and statements that run meanwhile keep
/// the one they have found, with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub name: RelationName,
    pub object: ObjectId,
    pub schema: SchemaRef,
    /// The same schema as DataFusion's planner wants it, without qualifiers.
    pub names: DFSchema,
    pub types: Vec<Type>,
    pub rules: Vec<ColumnRules>,
    pub checks: Vec<Check>,
    pub key: Option<PrimaryKey>,
    pub partitioning: Partitioning,
    /// Beside that of the key.
    pub indexes: Vec<TableIndex>,
    /// Keeps the data object.
    pub data: Arc<Data>,
    /// Shared by all moments of one table: held shared by who writes rows, alone by who changes the table, so that
    /// no row is written to what is being replaced. Readers need it not.
    pub lock: Arc<RwLock<()>>,
}

/// What an insert has to know of a column beyond its type and nullability.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnRules {
    /// Most characters of a text.
    pub max_characters: Option<u64>,
    /// DEFAULT.
    pub default: Option<DefaultValue>,
}

/// The value of a column that an insert leaves out. `Display` gives it as SQL.
#[derive(Clone, Debug)]
pub(crate) struct DefaultValue {
    /// As it was written.
    pub expr: ast::Expr,
    /// Its value as one of the column, if it is the same for every row at all times.
    pub constant: Option<ScalarValue>,
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

/// CHECK: an expression over the columns that is false for no row.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub name: String,
    /// Columns are named without their table.
    pub expr: ast::Expr,
}

/// PRIMARY KEY: columns of which no two rows have the same values, and none NULL.
#[derive(Clone, Debug)]
pub(crate) struct PrimaryKey {
    pub name: String,
    pub columns: Vec<String>,
}

/// A table's parts that are given; the rest follows from them.
pub(crate) struct Definition {
    pub name: RelationName,
    pub schema: SchemaRef,
    pub rules: Vec<ColumnRules>,
    pub checks: Vec<Check>,
    pub key: Option<PrimaryKey>,
    pub partitioning: Partitioning,
}

impl Table {
    /// A table without rows, which no name leads to yet.
    pub fn create(engine: &Engine, definition: Definition) -> Result<Self, SqlError> {
        Self::with_lock(engine, definition, Arc::default())
    }

    /// The next moment of `self`, on a data object of its own without rows.
    pub fn successor(&self, engine: &Engine, definition: Definition) -> Result<Self, SqlError> {
        Self::with_lock(engine, definition, Arc::clone(&self.lock))
    }

    fn with_lock(
        engine: &Engine,
        definition: Definition,
        lock: Arc<RwLock<()>>,
    ) -> Result<Self, SqlError> {
        // What the table's columns refuse, also NULL, is refused before rows get to the object, so that rules can change
        // without it.
        let fields = definition.schema.fields().iter();
        let fields: Vec<_> = fields
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let name = definition.name.to_string();
        let key = definition.key.iter().flat_map(|key| &key.columns);
        let key = key.map(|column| {
            let position = definition.schema.index_of(column);
            ColumnId(position.expect("a key is of columns of the table") as u32)
        });
        let key: Vec<ColumnId> = key.collect();
        let object = engine.create_with_key(&name, schema, definition.partitioning, &key)?;
        let data = Arc::new(Data::new(engine.clone(), object));
        Self::assemble(definition, data, lock)
    }

    /// The next moment of `self`, on the same rows: `definition` has as many columns, of the same types.
    pub fn redefined(&self, definition: Definition) -> Result<Self, SqlError> {
        let mut table = Self::assemble(definition, Arc::clone(&self.data), Arc::clone(&self.lock))?;
        table.indexes = self.indexes.clone();
        Ok(table)
    }

    fn assemble(
        definition: Definition,
        data: Arc<Data>,
        lock: Arc<RwLock<()>>,
    ) -> Result<Self, SqlError> {
        let Definition {
            name,
            schema,
            rules,
            checks,
            key,
            partitioning,
        } = definition;
        let types = schema
            .fields()
            .iter()
            .map(|field| Type::try_from(field.data_type()));
        let types = types
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| SqlError::not_supported(error.0))?;
        let names = DFSchema::try_from(Arc::clone(&schema)).map_err(SqlError::from_datafusion)?;
        Ok(Table {
            name,
            object: data.object,
            schema,
            names,
            types,
            rules,
            checks,
            key,
            partitioning,
            indexes: Vec::new(),
            data,
            lock,
        })
    }

    /// What it is made of, to be changed.
    pub fn definition(&self) -> Definition {
        Definition {
            name: self.name.clone(),
            schema: Arc::clone(&self.schema),
            rules: self.rules.clone(),
            checks: self.checks.clone(),
            key: self.key.clone(),
            partitioning: self.partitioning,
        }
    }

    /// Why rows could not be written, in the table's terms.
    pub fn write_error(&self, error: EngineError) -> SqlError {
        match (error, &self.key) {
            (EngineError::DuplicateKey { key: values, .. }, Some(key)) => {
                SqlError::constraint(format!(
                    "table \"{}\": PRIMARY KEY \"{}\" does not hold: there is a row with ({}) = ({values}) already",
                    self.name,
                    key.name,
                    key.columns.join(", ")
                ))
            }
            (error, _) => error.into(),
        }
    }

    /// The names of its columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
    }
}

/// A data object, for as long as a name leads to it or a statement holds a [`Table`] on it.
#[derive(Debug)]
pub(crate) struct Data {
    object: ObjectId,
    /// `None` once it is removed.
    engine: Option<Engine>,
    /// Where the removal waits for the AEUs if nobody else does.
    runtime: Option<Handle>,
}

impl Data {
    fn new(engine: Engine, object: ObjectId) -> Self {
        Data {
            object,
            engine: Some(engine),
            runtime: Handle::try_current().ok(),
        }
    }

    async fn remove(mut self) -> Result<(), SqlError> {
        match self.engine.clone() {
            Some(engine) => {
                engine.drop(self.object).await?;
                self.engine = None;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // Dropping an object takes answers from all AEUs, so it is left to a task of its own.
        if let (Some(engine), Some(runtime)) = (self.engine.take(), self.runtime.take()) {
            let object = self.object;
            runtime.spawn(async move { engine.drop(object).await });
        }
    }
}

/// Lets go of tables that no name leads to. Those that no statement reads are gone, with their memory, when this returns;
/// the others go with their last statement.
pub(crate) async fn retire(tables: impl IntoIterator<Item = Arc<Table>>) -> Result<(), SqlError> {
    // All of them are let go of even if this is cancelled on the way.
    let data: Vec<_> = (tables.into_iter().filter_map(Arc::into_inner))
        .filter_map(|table| Arc::into_inner(table.data))
        .collect();
    for data in data {
        data.remove().await?;
    }
    Ok(())
}
