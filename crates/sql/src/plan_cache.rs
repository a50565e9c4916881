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
//! do; it is part of the catalogue's contents and ends with them, and holds as long as the session's variables are what they were, and the
//! table is as large that it is read over as many streams. A constant that is no exact value of its column's type is left to the planner.

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
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use template::Template;

/// So many texts are known; then the cache begins anew, which costs each text one planning.
const TEXTS: usize = 1024;
/// So many templates of one text, which differ in constants that are part of the plan.
const TEMPLATES: usize = 8;

/// The templates of all sessions for one state of the catalogue.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    texts: Mutex<HashMap<String, Known>>,
    /// The newest templates of prepared statements, which themselves only know where these are.
    prepared: Mutex<VecDeque<Arc<Template>>>,
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

/// Begins the query by a template, if there is one.
pub(crate) fn recall(core: &Core, statement: &Statement) -> Option<SendableRecordBatchStream> {
    recall_if(core, statement, |_| true)
}

/// The same, if its plan does next to nothing above the fragment.
pub(crate) fn recall_light(
    core: &Core,
    statement: &Statement,
) -> Option<SendableRecordBatchStream> {
    recall_if(core, statement, Template::is_light)
}

fn recall_if(
    core: &Core,
    statement: &Statement,
    is_wanted: impl Fn(&Template) -> bool,
) -> Option<SendableRecordBatchStream> {
    let masked = Masked::new(statement.text())?;
    let contents = core.catalog.contents();
    let found = contents.plans.find(&masked)?;
    is_wanted(&found.template).then_some(())?;
    found.template.run(core, found.parameters(&masked)?)
}

/// Makes a template of a query that has none, and begins the query by it. `None`: it has to be planned as it is.
pub(crate) async fn learn(
    core: &Core,
    query: &ast::Query,
    statement: &Statement,
) -> Option<SendableRecordBatchStream> {
    let masked = Masked::new(statement.text())?;
    let contents = core.catalog.contents();
    if contents.plans.is_hopeless(&masked) {
        return None;
    }
    // There is one, but not for such constants.
    if let Some(known) = contents.plans.find(&masked)
        && known.parameters(&masked).is_none()
    {
        return None;
    }
    let template = text_template(core, query, &masked, statement).await;
    let Some(template) = template.map(Arc::new) else {
        contents.plans.give_up(&masked);
        return None;
    };
    // The contents that it was planned with, which may be newer.
    if let Some(contents) = template.template.contents() {
        contents.plans.remember(&masked, &template);
    }
    template.template.run(core, template.parameters(&masked)?)
}

async fn text_template(
    core: &Core,
    query: &ast::Query,
    masked: &Masked<'_>,
    statement: &Statement,
) -> Option<TextTemplate> {
    let mut query = query.clone();
    let (table, sources) = conditions::parameterize(core, &mut query, masked)?;
    let types = sources.iter().map(|source| source.data_type.clone());
    let template = Template::plan(core, query, &table, types.collect(), statement).await?;
    let is_fixed = |number: &usize| sources.iter().all(|source| source.literal != *number);
    let fixed = (0..masked.len()).filter(is_fixed);
    let fixed = fixed.map(|number| (number, masked.literal(number).to_owned()));
    Some(TextTemplate {
        fixed: fixed.collect(),
        template,
        sources,
    })
}

impl PlanCache {
    /// The template of a text with just these fixed constants.
    fn find(&self, masked: &Masked<'_>) -> Option<Arc<TextTemplate>> {
        let texts = self.texts();
        let Known::Templates(templates) = texts.get(masked.key())? else {
            return None;
        };
        let fits = |template: &&Arc<TextTemplate>| {
            let mut fixed = template.fixed.iter();
            fixed.all(|(number, text)| masked.literal(*number) == text)
        };
        templates.iter().find(fits).cloned()
    }

    fn is_hopeless(&self, masked: &Masked<'_>) -> bool {
        matches!(self.texts().get(masked.key()), Some(Known::Never))
    }

    fn give_up(&self, masked: &Masked<'_>) {
        self.change(masked, |known| *known = Known::Never);
    }

    fn remember(&self, masked: &Masked<'_>, template: &Arc<TextTemplate>) {
        self.change(masked, |known| {
            if let Known::Templates(templates) = known {
                templates.retain(|other| other.fixed != template.fixed);
                if templates.len() == TEMPLATES {
                    templates.remove(0);
                }
                templates.push(Arc::clone(template));
            }
        });
    }

    /// Changes what is known of a text, which at first is nothing.
    fn change(&self, masked: &Masked<'_>, change: impl FnOnce(&mut Known)) {
        let mut texts = self.texts();
        if texts.len() >= TEXTS && !texts.contains_key(masked.key()) {
            texts.clear();
        }
        let known = texts.entry(masked.key().to_owned());
        change(known.or_insert_with(|| Known::Templates(Vec::new())));
    }

    /// Keeps the template of a prepared statement.
    fn keep(&self, template: Arc<Template>) {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.len() == TEXTS {
            prepared.pop_front();
        }
        prepared.push_back(template);
    }

    /// What is known, also behind a panic: every change is complete or did not happen.
    fn texts(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
