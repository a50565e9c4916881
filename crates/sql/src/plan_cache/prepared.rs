//! The template of a prepared statement.

use super::conditions::parameter_types;
use super::template::Template;
use crate::core::Core;
use crate::parameter::Parameter;
use crate::statement::Statement;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a prepared statement knows of its plan.
#[derive(Debug, Default)]
pub(crate) struct PreparedPlan(Mutex<Known>);

#[derive(Clone, Debug, Default)]
enum Known {
    #[default]
    Nothing,
    /// Where it is, as long as it is there.
    Template(Weak<Template>),
    /// Its plan is no template.
    Never,
}

impl PreparedPlan {
    /// Begins the query by its template, if that is there and light.
    pub fn recall_light(
        &self,
        core: &Core,
        values: &[Parameter],
    ) -> Option<SendableRecordBatchStream> {
        let Known::Template(template) = self.known() else {
            return None;
        };
        let template = template.upgrade().filter(|template| template.is_light())?;
        template.run(core, template.bind(values)?)
    }

    /// Begins the query with these values for its parameters. `None`: it has to be planned with them.
    pub async fn begin(
        &self,
        core: &Core,
        tree: &ast::Statement,
        values: &[Parameter],
        statement: &Statement,
    ) -> Option<SendableRecordBatchStream> {
        let ast::Statement::Query(query) = tree else {
            return None;
        };
        match self.known() {
            Known::Template(template) => {
                if let Some(template) = template.upgrade() {
                    let values = template.bind(values)?;
                    if let Some(rows) = template.run(core, values) {
                        return Some(rows);
                    }
                }
            }
            Known::Nothing => {}
            Known::Never => return None,
        }
        // The first time, or what it depends on has changed.
        let template = plan(core, query, values.len(), statement).await;
        self.learn(match &template {
            Some(template) => Known::Template(Arc::downgrade(template)),
            None => Known::Never,
        });
        let template = template?;
        if let Some(contents) = template.contents() {
            contents.plans.keep(Arc::clone(&template));
        }
        template.run(core, template.bind(values)?)
    }

    fn known(&self) -> Known {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn learn(&self, known: Known) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

async fn plan(
    core: &Core,
    query: &ast::Query,
    parameters: usize,
    statement: &Statement,
) -> Option<Arc<Template>> {
    let mut query = query.clone();
    let (table, types) = parameter_types(core, &mut query, parameters)?;
    if types.is_empty() {
        return None;
    }
    let template = Template::plan(core, query, &table, types, statement).await;
    template.map(Arc::new)
}
