//! Why a statement goes the general path.

use thiserror::Error;

/// What keeps a statement from the short way. `EXPLAIN` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum NotShort {
    // What may be otherwise the next time.
    #[error("it has not been planned yet")]
    NotPlanned,
    #[error("what its plan depends on has changed")]
    Outdated,
    #[error("a value is no exact value of its column's type")]
    Value,
    #[error("another row has its key, or others came in between too often")]
    InTheWay,
    #[error("the row that it refers to is not there")]
    NoParent,
    #[error("a part of the key is NULL")]
    NullKey,
    #[error("planned for any constants it fails")]
    Fails,
    #[error("it has more or fewer values than parameters")]
    ValueCount,

    // Texts.
    #[error("only SELECT, INSERT, UPDATE and DELETE are kept")]
    Kind,
    #[error("its text is too long")]
    LongText,
    #[error("its text has comments, parameters, or constants that are rarely written so")]
    UnusualText,
    #[error("a parameter has a declared type")]
    DeclaredTypes,

    // Queries.
    #[error("it is not one SELECT")]
    NotOneSelect,
    #[error("it has WITH, FOR UPDATE or a query within")]
    QueryWithin,
    #[error("it reads something else than tables")]
    NotTables,
    #[error("it has an outer join")]
    OuterJoin,
    #[error("it asks for the first of joined rows")]
    FirstOfJoined,
    #[error("no column is compared with a constant or parameter")]
    NoComparison,
    #[error("a parameter stands elsewhere than in comparisons with columns of one type")]
    OtherParameters,
    #[error("it calls functions whose results change")]
    Volatile,
    #[error("its plan has operators that cannot begin anew")]
    Operators,

    // Writes.
    #[error("it does not write to one table")]
    NotOneTable,
    #[error("its table's home changes no single rows")]
    NoSingleRows,
    #[error("it takes keys away that other rows may refer to")]
    KeysReferred,
    #[error("its rows are not written out as VALUES")]
    NotValues,
    #[error("ON CONFLICT is for several rows")]
    SeveralRows,
    #[error("ON CONFLICT does not name the primary key")]
    OtherConflict,
    #[error("DO UPDATE has a query within, or a column without the name of its table")]
    Ambiguous,
    #[error("it changes the primary key, or assigns several columns at once")]
    ChangesKey,
    #[error("it reads other tables")]
    Joined,
    #[error("its condition does not fix the primary key by constants or parameters")]
    NoKey,
    #[error("a value is neither a constant nor a parameter")]
    Computed,
    #[error("it computes with a parameter that is no number")]
    ParameterType,
    #[error("it assigns a default that changes")]
    ChangingDefault,
    #[error("what it computes is more than steps over one row")]
    NotSteps,
}

impl NotShort {
    /// Whether it may go the short way once it has been planned.
    pub fn may_be_planned(self) -> bool {
        matches!(self, NotShort::NotPlanned | NotShort::Outdated)
    }
}
