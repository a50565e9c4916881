//! Plans of queries that differ only in the constants that their conditions compare columns with.
//!
//! ```text
//! SELECT sum(v) FROM t WHERE k = 17 AND d < DATE '2024-01-01' LIMIT 5
//!    │ mask
//!    ▼
//! SELECT sum(v) FROM t WHERE k = #n AND d < DATE #s LIMIT #n       + 17, '2024-01-01', 5
//!    │ look up                                                                 │
//!    ▼                                                                         │
//! template: LIMIT is 5; a fragment with k = $1, d < $2  ◄── bind: 17, 2024-01-01 as values of k's and d's types
//!    │ at the newest snapshot
//!    ▼
//! the query's own plan
//! ```
//!
//! Planning takes longer than reading a million rows. What is kept is a physical plan, never an answer. A template is
//! made of queries over one table whose conditions end up in the fragment, as all comparisons of a column with a constant
//! do; it holds as long as the catalogue and the session's variables are what they were, and the table is as large that it
//! is read over as many streams. A constant that is no exact value of its column's type is left to the planner.

mod conditions;
mod constant;
mod mask;
mod parameter;
mod prepared;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use parameter::PlanParameter;
pub(crate) use prepared::PreparedPlan;

use crate::core::Core;
use crate::statement::Statement;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use eris_fragment::Scalar;
use mask::Masked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use template::Template;

/// So many texts are known; then the cache begins anew, which costs each text one planning.
const TEXTS: usize = 1024;
/// So many templates of one text, which differ in constants that are part of the plan.
const TEMPLATES: usize = 8;

/// The templates of all sessions.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    texts: Mutex<HashMap<String, Known>>,
}

#[derive(Debug)]
enum Known {
    Templates(Vec<Arc<TextTemplate>>),
    /// No plan of this text is a template.
    Never,
}

/// A template of a text.
#[derive(Debug)]
struct TextTemplate {
    template: Template,
    /// The constants that are part of the plan: which of the text's it is, and how it is written.
    fixed: Vec<(usize, String)>,
    /// Where the parameters come from.
    sources: Vec<conditions::Source>,
}

impl TextTemplate {
    fn parameters(&self, masked: &Masked<'_>) -> Option<Vec<Scalar>> {
        let types = self.template.parameters().iter();
        let values = self.sources.iter().zip(types);
        values
            .map(|(source, to)| constant::read(masked.literal(source.literal), source, to))
            .collect()
    }
}

impl PlanCache {
    /// Begins the query by a template, if there is one.
    pub fn recall(&self, core: &Core, statement: &Statement) -> Option<SendableRecordBatchStream> {
        self.recall_if(core, statement, |_| true)
    }

    /// The same, if its plan does next to nothing above the fragment.
    pub fn recall_light(
        &self,
        core: &Core,
        statement: &Statement,
    ) -> Option<SendableRecordBatchStream> {
        self.recall_if(core, statement, Template::is_light)
    }

    fn recall_if(
        &self,
        core: &Core,
        statement: &Statement,
        is_wanted: impl Fn(&Template) -> bool,
    ) -> Option<SendableRecordBatchStream> {
        let masked = Masked::new(statement.text())?;
        let templates = match self.texts().get(masked.key())? {
            Known::Templates(templates) => templates.clone(),
            Known::Never => return None,
        };
        let fits = |template: &&Arc<TextTemplate>| {
            let mut fixed = template.fixed.iter();
            fixed.all(|(number, text)| masked.literal(*number) == text)
        };
        let found = templates.iter().find(fits)?;
        is_wanted(&found.template).then_some(())?;
        found.template.run(core, found.parameters(&masked)?)
    }

    /// Makes a template of a query that has none, and begins the query by it. `None`: it has to be planned as it is.
    pub async fn learn(
        &self,
        core: &Core,
        query: &ast::Query,
        statement: &Statement,
    ) -> Option<SendableRecordBatchStream> {
        let masked = Masked::new(statement.text())?;
        if let Some(Known::Never) = self.texts().get(masked.key()) {
            return None;
        }
        let mut query = query.clone();
        let Some((table, sources)) = conditions::parameterize(core, &mut query, &masked) else {
            self.remember(&masked, None);
            return None;
        };
        let types = sources.iter().map(|source| source.data_type.clone());
        let template = Template::plan(core, query, &table, types.collect(), statement).await;
        let Some(template) = template else {
            self.remember(&masked, None);
            return None;
        };
        let is_fixed = |number: &usize| sources.iter().all(|source| source.literal != *number);
        let fixed = (0..masked.len()).filter(is_fixed);
        let fixed = fixed.map(|number| (number, masked.literal(number).to_owned()));
        let template = Arc::new(TextTemplate {
            fixed: fixed.collect(),
            template,
            sources,
        });
        self.remember(&masked, Some(&template));
        template.template.run(core, template.parameters(&masked)?)
    }

    fn remember(&self, masked: &Masked<'_>, template: Option<&Arc<TextTemplate>>) {
        let mut texts = self.texts();
        if texts.len() >= TEXTS && !texts.contains_key(masked.key()) {
            texts.clear();
        }
        let known = texts.entry(masked.key().to_owned());
        let known = known.or_insert_with(|| Known::Templates(Vec::new()));
        match (known, template) {
            (Known::Templates(templates), Some(template)) => {
                templates.retain(|other| other.fixed != template.fixed);
                if templates.len() == TEMPLATES {
                    templates.remove(0);
                }
                templates.push(Arc::clone(template));
            }
            // One that was made before the catalogue changed is not worth keeping either.
            (known, None) => *known = Known::Never,
            (Known::Never, Some(_)) => {}
        }
    }

    /// What is known, also behind a panic: every change is complete or did not happen.
    fn texts(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
