//! What a command's callback is to whoever sent it. On its way it is a number; here each meaning has a type.

use eris_types::StatementId;

/// A callback.
pub(crate) trait Callback: Copy {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! callbacks {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub u64);

        impl Callback for $name {
            fn to_bits(self) -> u64 {
                self.0
            }

            fn from_bits(bits: u64) -> Self {
                $name(bits)
            }
        })*
    };
}

callbacks! {
    /// An execution of a fragment.
    RunId,
    /// Keys on their way from owner to owner.
    TransferId,
    /// A question to owners, whose answers are told apart by their senders.
    QuestionId,
    /// A part of a batch of keys or rows, which comes back with what was done.
    PartId,
    /// Rows at an owner that wait for codes of their strings.
    EncodingId,
    /// What passes between two owners of keys: a transfer, or the part of a batch that is forwarded.
    HandOverId,
}

impl From<TransferId> for HandOverId {
    fn from(transfer: TransferId) -> Self {
        HandOverId(transfer.0)
    }
}

impl From<PartId> for HandOverId {
    fn from(part: PartId) -> Self {
        HandOverId(part.0)
    }
}

impl HandOverId {
    /// The transfer, of what is no batch.
    pub fn transfer(self) -> TransferId {
        TransferId(self.0)
    }

    /// The part, of a batch.
    pub fn part(self) -> PartId {
        PartId(self.0)
    }
}

impl Callback for StatementId {
    fn to_bits(self) -> u64 {
        self.0
    }

    fn from_bits(bits: u64) -> Self {
        StatementId(bits)
    }
}

/// A secondary index of the object, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexNumber(pub u32);

impl Callback for IndexNumber {
    fn to_bits(self) -> u64 {
        self.0.into()
    }

    fn from_bits(bits: u64) -> Self {
        IndexNumber(bits as u32)
    }
}

/// Of what nobody answers.
impl Callback for () {
    fn to_bits(self) -> u64 {
        0
    }

    fn from_bits(_: u64) -> Self {}
}
