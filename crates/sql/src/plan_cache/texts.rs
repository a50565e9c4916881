//! Plans by the text that they are for, without its constants.

use super::NotShort;
use super::mask::Masked;
use super::uncacheable::Uncacheable;
use crate::context::StatementContext;
use arc_swap::ArcSwap;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// So many texts are known; then the cache begins anew, which costs each text one planning.
pub(super) const TEXTS: usize = 1024;
/// So many plans of one text, which differ in constants that are part of the plan.
const PLANS: usize = 8;

/// What is known of texts. It is replaced as a whole, so that who looks for a plan waits for nobody. That copies a
/// reference for each text, which is little beside the planning before it.
#[derive(Debug)]
pub(super) struct Texts<T>(ArcSwap<KnownTexts<T>>);

type KnownTexts<T> = HashMap<Arc<str>, TextEntry<T>>;

#[derive(Debug)]
enum TextEntry<T> {
    Plans(Vec<Arc<TextPlan<T>>>),
    /// No plan of this text can be used again.
    None(Arc<Uncacheable>),
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
        match self.0.load().get(&*key(context, masked)) {
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
        let uncacheable = Arc::new(uncacheable);
        self.change(&key(context, masked), |known| {
            *known = TextEntry::None(Arc::clone(&uncacheable))
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
    fn change(&self, key: &str, change: impl Fn(&mut TextEntry<T>)) {
        self.0.rcu(|texts| {
            let mut texts = match texts.len() >= TEXTS && !texts.contains_key(key) {
                true => HashMap::new(),
                false => KnownTexts::clone(texts),
            };
            let known = texts.entry(key.into());
            change(known.or_insert_with(|| TextEntry::Plans(Vec::new())));
            texts
        });
    }

    /// How many texts have a plan.
    #[cfg(test)]
    pub fn planned(&self) -> usize {
        let known = self.0.load();
        let known = known.values();
        known
            .filter(|known| matches!(known, TextEntry::Plans(_)))
            .count()
    }
}

impl<T> Clone for TextEntry<T> {
    fn clone(&self) -> Self {
        match self {
            TextEntry::Plans(plans) => TextEntry::Plans(plans.clone()),
            TextEntry::None(why) => TextEntry::None(Arc::clone(why)),
        }
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
        Texts(ArcSwap::default())
    }
}
