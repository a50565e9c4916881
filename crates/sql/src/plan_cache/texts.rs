//! Plans by the text that they are for, without its constants.

use super::NotShort;
use super::mask::Masked;
use super::uncacheable::Uncacheable;
use crate::context::StatementContext;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many texts are known; then the cache begins anew, which costs each text one planning.
pub(super) const TEXTS: usize = 1024;
/// So many plans of one text, which differ in constants that are part of the plan.
const PLANS: usize = 8;

/// What is known of texts.
#[derive(Debug)]
pub(super) struct Texts<T>(Mutex<HashMap<String, TextEntry<T>>>);

#[derive(Debug)]
enum TextEntry<T> {
    Plans(Vec<Arc<TextPlan<T>>>),
    /// No plan of this text can be used again.
    None(Uncacheable),
}

/// A plan of a text.
#[derive(Debug)]
pub(super) struct TextPlan<T> {
    pub plan: T,
    /// The constants that are part of the plan: which of the text's it is, and how it is written.
    fixed: Vec<(usize, String)>,
}

impl<T> TextPlan<T> {
    /// `is_free` says of a constant of the text, by its number, that it is no part of the plan.
    pub fn new(plan: T, masked: &Masked<'_>, is_free: impl Fn(usize) -> bool) -> Self {
        let fixed = (0..masked.len()).filter(|number| !is_free(*number));
        let fixed = fixed.map(|number| (number, masked.literal(number).to_owned()));
        TextPlan {
            fixed: fixed.collect(),
            plan,
        }
    }

    fn fits(&self, masked: &Masked<'_>) -> bool {
        let mut fixed = self.fixed.iter();
        fixed.all(|(number, text)| masked.literal(*number) == text)
    }
}

impl<T> Texts<T> {
    /// The plan of a text with just these fixed constants.
    ///
    /// # Errors
    /// There is none yet, or there cannot be any.
    pub fn find(
        &self,
        context: &StatementContext,
        masked: &Masked<'_>,
    ) -> Result<Arc<TextPlan<T>>, NotShort> {
        match self.texts().get(&*key(context, masked)) {
            Some(TextEntry::Plans(plans)) => {
                let plan = plans.iter().find(|plan| plan.fits(masked));
                plan.cloned().ok_or(NotShort::NotPlanned)
            }
            Some(TextEntry::None(why)) => Err(why.reason(context).unwrap_or(NotShort::NotPlanned)),
            None => Err(NotShort::NotPlanned),
        }
    }

    /// No plan of the text can be used again.
    pub fn give_up(
        &self,
        context: &StatementContext,
        masked: &Masked<'_>,
        uncacheable: Uncacheable,
    ) {
        self.change(&key(context, masked), |known| {
            *known = TextEntry::None(uncacheable)
        });
    }

    /// Keeps a plan.
    pub fn remember(
        &self,
        context: &StatementContext,
        masked: &Masked<'_>,
        plan: &Arc<TextPlan<T>>,
    ) {
        self.change(&key(context, masked), |known| match known {
            TextEntry::Plans(plans) => {
                plans.retain(|other| other.fixed != plan.fixed);
                if plans.len() == PLANS {
                    plans.remove(0);
                }
                plans.push(Arc::clone(plan));
            }
            TextEntry::None(_) => *known = TextEntry::Plans(vec![Arc::clone(plan)]),
        });
    }

    /// Changes what is known of a text, which at first is nothing.
    fn change(&self, key: &str, change: impl FnOnce(&mut TextEntry<T>)) {
        let mut texts = self.texts();
        if texts.len() >= TEXTS && !texts.contains_key(key) {
            texts.clear();
        }
        let known = texts.entry(key.to_owned());
        change(known.or_insert_with(|| TextEntry::Plans(Vec::new())));
    }

    /// How many texts have a plan.
    #[cfg(test)]
    pub fn planned(&self) -> usize {
        let known = self.texts();
        let known = known.values();
        known
            .filter(|known| matches!(known, TextEntry::Plans(_)))
            .count()
    }

    /// What is known, also behind a panic: every change is complete or did not happen.
    fn texts(&self) -> MutexGuard<'_, HashMap<String, TextEntry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By what a text is known. Where a session has temporary tables, its names may mean what they mean to nobody else.
fn key<'a>(context: &StatementContext, masked: &Masked<'a>) -> Cow<'a, str> {
    match &context.variables().temporary {
        None => Cow::Borrowed(masked.key()),
        Some(temporary) => Cow::Owned(format!("{temporary} {}", masked.key())),
    }
}

impl<T> Default for Texts<T> {
    fn default() -> Self {
        Texts(Mutex::default())
    }
}
