//! Tables: names for data objects, and the rules of their rows.

use crate::catalog::data::{Data, DataSource};
use crate::catalog::{ForeignKey, RelationName, Sequence, TableBalancing, TableIndex, positions};
use crate::error::{SqlError, Violation};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::sql::sqlparser::ast;
use eris_atomics::WriteLock;
use eris_fragment::Type;
use eris_home::{HomeError, ObjectDefinition, Partitioning};
use eris_types::{ColumnId, ObjectId};
use std::fmt;
use std::sync::Arc;

/// A version of a table: what changes it puts a new `Table` into the catalogue, and statements that run meanwhile keep
/// the one they have found, with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub name: RelationName,
    pub object: ObjectId,
    pub schema: SchemaRef,
    /// The same schema, NULL allowed everywhere: that of rows on their way in, before the table's rules have been
    /// applied.
    pub unruled: SchemaRef,
    /// The same schema as DataFusion's planner wants it, without qualifiers.
    pub names: DFSchema,
    pub types: Vec<Type>,
    pub rules: Vec<ColumnRules>,
    pub checks: Vec<Check>,
    pub key: Option<PrimaryKey>,
    pub uniques: Vec<Unique>,
    pub foreign_keys: Vec<ForeignKey>,
    pub partitioning: Partitioning,
    /// ORDER BY: columns by which rows that others refer to are numbered.
    pub row_order: Vec<String>,
    /// COMMENT ON TABLE.
    pub comment: Option<String>,
    /// CALL eris.balance.
    pub balancing: TableBalancing,
    /// Beside that of the key.
    pub indexes: Vec<TableIndex>,
    /// Keeps the data object.
    pub data: Arc<Data>,
    /// Shared by all versions of one table: held shared by who writes rows, alone by who changes the table, so that no
    /// row is written to what is being replaced; in the same way by who refers to its rows, and by who takes rows away
    /// to which others may refer. Readers need it not.
    pub lock: Arc<WriteLock>,
}

/// What an insert has to know of a column beyond its type and nullability.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnRules {
    /// Most characters of a text.
    pub max_characters: Option<u64>,
    /// DEFAULT.
    pub default: Option<DefaultValue>,
    /// GENERATED … AS IDENTITY: the default takes numbers of a sequence that is the column's own.
    pub identity: Option<Identity>,
    /// GENERATED ALWAYS AS (expression).
    pub generated: Option<GeneratedColumn>,
    /// COMMENT ON COLUMN.
    pub comment: Option<String>,
}

/// A column whose values are computed from others of the row, whenever that is written.
#[derive(Clone)]
pub(crate) struct GeneratedColumn {
    /// Columns are named without their table.
    pub expr: ast::Expr,
    /// Whether the definition says STORED; all of them are.
    pub says_stored: bool,
    /// Its place in the order in which they are computed.
    pub order: usize,
}

impl fmt::Display for GeneratedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GENERATED ALWAYS AS ({})", self.expr)?;
        match self.says_stored {
            true => f.write_str(" STORED"),
            false => Ok(()),
        }
    }
}

/// As SQL: the debug output of trees is long, and long to compile.
impl fmt::Debug for GeneratedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A column that numbers rows.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Whether statements can give it no other value.
    pub always: bool,
    pub sequence: Arc<Sequence>,
}

/// The value of a column that an insert leaves out. `Display` gives it as SQL.
#[derive(Clone)]
pub(crate) struct DefaultValue {
    /// As it was written.
    pub expr: ast::Expr,
    /// Its value as one of the column, if it is the same for every row at all times.
    pub constant: Option<ScalarValue>,
    /// Of which it takes numbers.
    pub sequences: Vec<RelationName>,
    /// If it takes some: the same with the full names of sequences.
    pub bound: Option<Box<ast::Expr>>,
}

impl DefaultValue {
    /// What is evaluated: it means the same whatever schema is current.
    pub fn evaluated(&self) -> &ast::Expr {
        self.bound.as_deref().unwrap_or(&self.expr)
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

/// As SQL: the debug output of trees is long, and long to compile.
impl fmt::Debug for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DEFAULT {self}")
    }
}

/// CHECK: an expression over the columns that is false for no row.
#[derive(Clone)]
pub(crate) struct Check {
    pub name: String,
    /// Columns are named without their table.
    pub expr: ast::Expr,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CHECK ({})", self.name, self.expr)
    }
}

/// PRIMARY KEY: columns of which no two rows have the same values, and none NULL.
#[derive(Clone, Debug)]
pub(crate) struct PrimaryKey {
    pub name: String,
    pub columns: Vec<String>,
}

/// UNIQUE: columns of which no two rows have the same values, unless one of these is NULL.
#[derive(Clone, Debug)]
pub(crate) struct Unique {
    pub name: String,
    pub columns: Vec<String>,
    /// Whether it is that of a UNIQUE INDEX, which is among the table's indexes by the same name, and no constraint.
    pub of_index: bool,
    /// The data object of its keys; none before the table is made.
    pub keys: Option<Arc<Data>>,
}

impl Unique {
    /// The data object of its keys.
    pub fn object(&self) -> ObjectId {
        self.keys.as_ref().expect("the table is made").object()
    }

    /// Whether it is a constraint, to which a foreign key can refer.
    pub fn is_constraint(&self) -> bool {
        !self.of_index
    }

    /// Whether it is another version of the same constraint, on the same keys.
    pub fn is_same(&self, other: &Unique) -> bool {
        self.keys.is_some()
            && self.keys.as_ref().map(Arc::as_ptr) == other.keys.as_ref().map(Arc::as_ptr)
    }

    /// The positions of its columns.
    pub fn positions(&self, table: &Table) -> Vec<usize> {
        positions(&self.columns, &table.schema)
    }

    /// Makes the data object of its keys.
    async fn make(
        &mut self,
        source: &DataSource,
        table: &RelationName,
        schema: &Schema,
    ) -> Result<(), SqlError> {
        let columns = self.columns.iter();
        let fields = columns.map(|column| schema.field_with_name(column).cloned());
        let fields: Vec<Field> = fields.collect::<Result<_, _>>()?;
        let key: Vec<ColumnId> = (0..fields.len() as u32).map(ColumnId).collect();
        let fields: Vec<Field> = fields
            .into_iter()
            .map(|field| field.with_nullable(true))
            .collect();
        let keys = source.data(ObjectDefinition {
            name: table.to_string(),
            schema: Arc::new(Schema::new(fields)),
            partitioning: Partitioning::Size,
            key,
            is_temporary: table.is_temporary(),
        });
        self.keys = Some(keys.await?);
        Ok(())
    }
}

/// A table's parts that are given; the rest follows from them.
pub(crate) struct Definition {
    pub name: RelationName,
    pub schema: SchemaRef,
    pub rules: Vec<ColumnRules>,
    pub checks: Vec<Check>,
    pub key: Option<PrimaryKey>,
    pub uniques: Vec<Unique>,
    pub foreign_keys: Vec<ForeignKey>,
    pub partitioning: Partitioning,
    pub row_order: Vec<String>,
    pub comment: Option<String>,
    pub balancing: TableBalancing,
}

impl Definition {
    /// Makes the data objects of UNIQUE constraints that are new.
    pub async fn make_keys(&mut self, source: &DataSource) -> Result<(), SqlError> {
        let new = self.uniques.iter_mut();
        for unique in new.filter(|unique| unique.keys.is_none()) {
            unique.make(source, &self.name, &self.schema).await?;
        }
        Ok(())
    }

    /// Whether a constraint has this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
            || self.key.iter().any(|key| key.name == name)
            || self.uniques.iter().any(|unique| unique.name == name)
            || self.foreign_keys.iter().any(|key| key.name == name)
    }
}

impl Table {
    /// A table without rows, which no name leads to yet.
    pub async fn create(source: &DataSource, definition: Definition) -> Result<Self, SqlError> {
        Self::with_lock(source, definition, Arc::default()).await
    }

    /// The next version of `self`, on a data object of its own without rows.
    pub async fn successor(
        &self,
        source: &DataSource,
        definition: Definition,
    ) -> Result<Self, SqlError> {
        Self::with_lock(source, definition, Arc::clone(&self.lock)).await
    }

    async fn with_lock(
        source: &DataSource,
        mut definition: Definition,
        lock: Arc<WriteLock>,
    ) -> Result<Self, SqlError> {
        // What the table's columns reject, also NULL, is rejected before rows get to the object, so that rules can
        // change without it.
        let key = definition.key.iter().flat_map(|key| &key.columns);
        let key = key.map(|column| {
            let position = definition.schema.index_of(column);
            ColumnId(position.expect("a key is of columns of the table") as u32)
        });
        let data = source.data(ObjectDefinition {
            name: definition.name.to_string(),
            schema: unruled(&definition.schema),
            partitioning: definition.partitioning,
            key: key.collect(),
            is_temporary: definition.name.is_temporary(),
        });
        let data = data.await?;
        for unique in &mut definition.uniques {
            let made = unique.make(source, &definition.name, &definition.schema);
            made.await?;
        }
        Self::assemble(definition, data, lock)
    }

    /// The next version of `self`, on the same rows: `definition` has as many columns, of the same types. The objects
    /// of its UNIQUE constraints [are made](Definition::make_keys).
    pub fn redefined(&self, definition: Definition) -> Result<Self, SqlError> {
        let mut table = Self::assemble(definition, Arc::clone(&self.data), Arc::clone(&self.lock))?;
        table.indexes = self.indexes.clone();
        Ok(table)
    }

    fn assemble(
        definition: Definition,
        data: Arc<Data>,
        lock: Arc<WriteLock>,
    ) -> Result<Self, SqlError> {
        let Definition {
            name,
            schema,
            rules,
            checks,
            key,
            uniques,
            foreign_keys,
            partitioning,
            row_order,
            comment,
            balancing,
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
            object: data.object(),
            unruled: unruled(&schema),
            schema,
            names,
            types,
            rules,
            checks,
            key,
            uniques,
            foreign_keys,
            partitioning,
            row_order,
            comment,
            balancing,
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
            uniques: self.uniques.clone(),
            foreign_keys: self.foreign_keys.clone(),
            partitioning: self.partitioning,
            row_order: self.row_order.clone(),
            comment: self.comment.clone(),
            balancing: self.balancing.clone(),
        }
    }

    /// Why rows could not be written, in the table's terms.
    pub fn write_error(&self, error: HomeError) -> SqlError {
        let HomeError::DuplicateKey {
            object,
            key: values,
            ..
        } = &error
        else {
            return error.into();
        };
        let mut uniques = self.uniques.iter();
        let (kind, name, columns) = match uniques.find(|unique| unique.object() == *object) {
            Some(unique) if unique.of_index => ("UNIQUE INDEX", &unique.name, &unique.columns),
            Some(unique) => ("UNIQUE", &unique.name, &unique.columns),
            None => match &self.key {
                Some(key) => ("PRIMARY KEY", &key.name, &key.columns),
                None => return error.into(),
            },
        };
        SqlError::constraint(
            Violation::Unique,
            format!(
                "table \"{}\": {kind} \"{name}\" does not hold: there is a row with ({}) = ({values}) already",
                self.name,
                columns.join(", ")
            ),
        )
    }

    /// The columns of the PRIMARY KEY or UNIQUE constraint that a data object has for its key.
    pub fn key_columns(&self, object: ObjectId) -> Option<&[String]> {
        let mut uniques = self.uniques.iter();
        match uniques.find(|unique| unique.object() == object) {
            Some(unique) => Some(&unique.columns),
            None => self.key.as_ref().map(|key| key.columns.as_slice()),
        }
    }

    /// The columns of its UNIQUE constraints, each once.
    pub fn unique_columns(&self) -> Vec<usize> {
        let positions: Vec<Vec<usize>> = self
            .uniques
            .iter()
            .map(|unique| unique.positions(self))
            .collect();
        unique_columns(positions.iter())
    }

    /// The names of its columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
    }
}

/// A schema that allows NULL everywhere.
fn unruled(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Lets go of tables that no name leads to. Those that no statement reads are gone, with their memory, when this
/// returns; the others go with their last statement.
pub(crate) async fn retire(tables: impl IntoIterator<Item = Arc<Table>>) -> Result<(), SqlError> {
    // All of them are let go of even if this is cancelled on the way.
    let tables = tables.into_iter().filter_map(Arc::into_inner);
    let data = tables.flat_map(|table| {
        let keys = table.uniques.into_iter().filter_map(|unique| unique.keys);
        std::iter::once(table.data).chain(keys)
    });
    let data: Vec<_> = data.filter_map(Arc::into_inner).collect();
    for data in data {
        data.remove().await?;
    }
    Ok(())
}

/// The columns of several constraints, each once, in the table's order.
fn unique_columns<'a>(of: impl Iterator<Item = &'a Vec<usize>>) -> Vec<usize> {
    let mut all: Vec<usize> = of.flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
