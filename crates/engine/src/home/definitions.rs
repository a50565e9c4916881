//! The engine as a home whose definitions outlive the process.

use crate::clients::engine::Engine;
use crate::error::EngineError;
use arrow_schema::{DataType, SchemaRef};
use eris_home::{Definition, DefinitionChange, Definitions, HomeError, ObjectDefinition};
use eris_types::ObjectId;
use futures::future::BoxFuture;

impl Definitions for Engine {
    fn stored(&self) -> Vec<Definition> {
        self.kept().definitions()
    }

    fn store(&self, changes: Vec<DefinitionChange>) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(async move {
            let at = self.kept().say_definitions(&changes).await?;
            self.shared().visible(at).await
        })
    }

    fn note(&self, changes: Vec<DefinitionChange>) -> Result<(), HomeError> {
        self.kept().note_definitions(&changes)
    }

    fn reopen(&self, object: ObjectId, definition: &ObjectDefinition) -> Result<(), HomeError> {
        let stored = self.object(object)?.stored();
        let types = |schema: &SchemaRef| -> Vec<DataType> {
            let fields = schema.fields().iter();
            fields.map(|field| field.data_type().clone()).collect()
        };
        let is_same = types(&stored.schema) == types(&definition.schema)
            && stored.key == definition.key
            && stored.partitioning == definition.partitioning;
        match is_same && self.kept().reopen(object) {
            true => Ok(()),
            false => Err(EngineError::Open(format!(
                "the database is damaged: {object} is not what table {} is defined as",
                definition.name
            ))),
        }
    }

    fn unopened(&self) -> Vec<(ObjectId, ObjectDefinition)> {
        let objects = self.kept().unopened().into_iter();
        let objects = objects.filter_map(|object| self.object(object).ok());
        let stored = objects.map(|object| object.stored());
        let definitions = stored.map(|stored| {
            let definition = ObjectDefinition {
                name: stored.name,
                schema: stored.schema,
                partitioning: stored.partitioning,
                key: stored.key,
                is_temporary: false,
            };
            (stored.id, definition)
        });
        definitions.collect()
    }

    fn opened(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(async move {
            for object in self.kept().opened() {
                self.drop(object).await?;
            }
            Ok(())
        })
    }
}
