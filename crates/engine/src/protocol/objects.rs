//! Commands about whole data objects, and questions about what owners have of them.

use super::answers::{Done, Frozen, Indexes, LocatedParts, Segments};
use super::callback::{IndexNumber, QuestionId};
use super::request::{NoReply, Request};
use super::words::{Words, without_words};
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use eris_column::KeyOrder;
use eris_route::Rank;
use eris_types::{ColumnId, ObjectId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// All that the owner has of the object is given back.
pub(crate) struct DropObject;

impl Request for DropObject {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Done;
}

/// Rows that nobody can see any more are worth being collected.
pub(crate) struct CollectGarbage;

impl Request for CollectGarbage {
    const RANK: Rank = Rank::Scan;
    type Callback = ();
    type Reply = NoReply;
}

/// A secondary index, of which every owner makes its part.
#[derive(Clone)]
pub(crate) struct Build {
    pub object: Arc<DataObject>,
    pub index: Arc<Index>,
    pub step: BuildStep,
}

/// What is to be done of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BuildStep {
    /// Everything, by entering row after row.
    Enter,
    /// A step of the [building of a tree for all owners](crate::object::shared_index::SharedBuild).
    Sample,
    Gather,
    Fill,
    Finish,
}

impl Request for Build {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Done;
}

/// A secondary index is dropped; the callback says which.
pub(crate) struct DropIndex;

impl Request for DropIndex {
    const RANK: Rank = Rank::Control;
    type Callback = IndexNumber;
    type Reply = NoReply;
}

/// A column to be stored by an order of keys.
#[derive(Clone)]
pub(crate) struct Recode(pub Arc<Recoding>);

/// What the owners of a column share that is being recoded.
pub(crate) struct Recoding {
    pub object: ObjectId,
    pub name: String,
    pub column: ColumnId,
    pub order: Arc<KeyOrder>,
    /// Rows that owners have left as they are. Read when all have answered.
    pub left: AtomicU64,
}

impl Request for Recode {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Done;
}

/// How is the order of the object's key indexes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reorganize {
    /// Only to tell.
    Ask,
    /// Begin to improve it, too.
    Begin,
}

impl Request for Reorganize {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Indexes;
}

impl Words for Reorganize {
    const LEN: usize = 1;

    fn to_words(&self) -> [u64; 2] {
        [u64::from(*self == Reorganize::Begin), 0]
    }

    fn of(words: &[u64]) -> Self {
        match words[0] {
            0 => Reorganize::Ask,
            _ => Reorganize::Begin,
        }
    }
}

/// Which segments are there?
#[derive(Clone, Copy)]
pub(crate) struct Inspect;

impl Request for Inspect {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Segments;
}

/// The values of all rows are counted and sampled again.
#[derive(Clone, Copy)]
pub(crate) struct Analyze;

impl Request for Analyze {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Done;
}

/// What does a snapshot that is held see?
#[derive(Clone, Copy)]
pub(crate) struct Freeze(pub Timestamp);

impl Request for Freeze {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Frozen;
}

impl Words for Freeze {
    const LEN: usize = 1;

    fn to_words(&self) -> [u64; 2] {
        [self.0.0, 0]
    }

    fn of(words: &[u64]) -> Self {
        Freeze(Timestamp(words[0]))
    }
}

/// Where does the memory lie?
#[derive(Clone, Copy)]
pub(crate) struct Locate;

impl Request for Locate {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = LocatedParts;
}

without_words!(
    DropObject,
    CollectGarbage,
    DropIndex,
    Inspect,
    Analyze,
    Locate
);
