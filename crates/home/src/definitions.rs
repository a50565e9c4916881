//! What has been defined, where a home outlives its process: it keeps definitions in the order of commits.
//!
//! ```text
//! CREATE TABLE ─ create ─▶ object 12 ─ store [table public.t: text, object 12] ─▶ durable ─ published
//! ···················································································· the process ends
//! open ─ stored [table public.t: text, object 12] ─ reopen 12 ─▶ as before, with its rows ─ opened: others are dropped
//! ```
//!
//! A home does not know what a definition says. It keeps what each *is*, not what was done to it. So nothing has to be
//! done again in order.

use crate::{HomeError, ObjectDefinition};
use eris_types::ObjectId;
use futures::future::BoxFuture;

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What is defined, in words of whoever defines: no two definitions have the same name.
    pub name: String,
    /// What it is.
    pub text: String,
    /// The data objects that it leads to, in an order that the text gives.
    pub objects: Vec<ObjectId>,
}

/// A definition that is new or changed, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionChange {
    /// This takes the place of what had its name, if there was something.
    Is(Definition),
    /// There is none of this name any more.
    IsGone(String),
}

/// Definitions that outlive the process.
pub trait Definitions: Send + Sync {
    /// What was defined when the home was opened, by name.
    fn stored(&self) -> Vec<Definition>;

    /// Makes changes durable: all of them at one timestamp, behind all commits that anybody has been shown.
    ///
    /// # Errors
    /// There is no room: nothing was stored. Or the disk has failed: whether they are stored is open.
    fn store(&self, changes: Vec<DefinitionChange>) -> BoxFuture<'_, Result<(), HomeError>>;

    /// The same without waiting. They become durable at the latest with whatever commits from now on, and with a
    /// [barrier](crate::Home::barrier).
    ///
    /// # Errors
    /// There is no room, or the disk has failed before: nothing was stored.
    fn note(&self, changes: Vec<DefinitionChange>) -> Result<(), HomeError>;

    /// An object that a definition leads to is in use again, with its rows. Names may have changed since it was made:
    /// its own, and those of its columns.
    ///
    /// # Errors
    /// There is none of this number, or it is not made like that: of columns of these types, with this key, cut like
    /// this.
    fn reopen(&self, object: ObjectId, definition: &ObjectDefinition) -> Result<(), HomeError>;

    /// The objects that no definition has [reopened](Self::reopen) so far, and how they are made.
    fn unopened(&self) -> Vec<(ObjectId, ObjectDefinition)>;

    /// All definitions are in use again. Objects that none has [reopened](Self::reopen) are dropped.
    fn opened(&self) -> BoxFuture<'_, Result<(), HomeError>>;
}
