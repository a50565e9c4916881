//! System tables and the standard's views of the catalogue: relations that queries can filter and join like any other.
//!
//! ```text
//! eris.eris.*                   what the engine is made of and does: tables, segments, memory, queries …
//! eris.information_schema.*     what there is, with the standard's names
//! eris.<schema>.*               users' tables
//! ```
//!
//! A relation is computed when a statement that names it is planned, once per mention: rows of one moment, like a
//! snapshot. Nothing is computed for those that are not named.

mod activity;
mod balancing;
mod definitions;
pub(crate) mod described;
mod durability;
pub(crate) mod functions;
mod indexes;
mod information;
mod keys;
mod objects;
mod placement;
mod recodings;
mod relation;
mod reorganizations;
mod sampled;

use crate::catalog::CATALOG;
use crate::context::StatementContext;
use crate::error::SqlError;
use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemTable, SchemaProvider, TableProvider,
};
use datafusion::error::Result;
use relation::SystemTable;
use std::fmt;
use std::sync::Arc;

/// The schema of the system tables.
pub(crate) const SYSTEM: &str = "eris";
/// The schema of the standard's views.
pub(crate) const INFORMATION: &str = "information_schema";

/// The relations of a schema; none if it is not one of ours.
pub(crate) fn relations(schema: &str) -> impl Iterator<Item = &'static SystemTable> + use<> {
    let parts: [&'static [SystemTable]; 8] = match schema {
        SYSTEM => [
            &objects::RELATIONS,
            &definitions::RELATIONS,
            &placement::RELATIONS,
            &reorganizations::RELATIONS,
            &recodings::RELATIONS,
            &balancing::RELATIONS,
            &durability::RELATIONS,
            &activity::RELATIONS,
        ],
        INFORMATION => [&information::RELATIONS, &[], &[], &[], &[], &[], &[], &[]],
        _ => [&[]; 8],
    };
    parts.into_iter().flatten()
}

/// Whether there is such a system table.
pub(crate) fn has(schema: &str, name: &str) -> bool {
    relations(schema).any(|relation| relation.name == name)
}

/// Names that one statement can see: users' tables, and the system's.
pub(crate) struct SystemNames {
    users: Arc<dyn CatalogProviderList>,
    context: StatementContext,
}

impl SystemNames {
    /// Adds the system's names to the users'.
    pub fn new(users: impl CatalogProviderList + 'static, context: &StatementContext) -> Self {
        SystemNames {
            users: Arc::new(users),
            context: context.clone(),
        }
    }
}

impl CatalogProviderList for SystemNames {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.users.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let users = self.users.catalog(name)?;
        Some(match name == CATALOG {
            true => Arc::new(Catalog {
                users,
                context: self.context.clone(),
            }),
            false => users,
        })
    }
}

impl fmt::Debug for SystemNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} and system tables", self.users)
    }
}

/// The only catalogue.
struct Catalog {
    users: Arc<dyn CatalogProvider>,
    context: StatementContext,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.users.schema_names();
        names.extend([SYSTEM.to_owned(), INFORMATION.to_owned()]);
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        match [SYSTEM, INFORMATION]
            .into_iter()
            .find(|known| *known == name)
        {
            Some(schema) => Some(Arc::new(Schema {
                schema,
                context: self.context.clone(),
            })),
            None => self.users.schema(name),
        }
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} and system tables", self.users)
    }
}

/// A schema of system tables.
struct Schema {
    schema: &'static str,
    context: StatementContext,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        relations(self.schema)
            .map(|relation| relation.name.to_owned())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(relation) = relations(self.schema).find(|relation| relation.name == name) else {
            return Ok(None);
        };
        let rows = relation.compute(&self.context).await;
        let batch = rows.map_err(SqlError::into_datafusion)?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        has(self.schema, name)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.schema)
    }
}
