//! The seam between SQL and whoever holds tables: a *home* of data objects.
//!
//! ```text
//! doors ─ sql ─[home]─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! ```text
//!             sql
//!              │ dyn Home
//!    ┌─────────┴──────────────────────────────────────────────────┐
//!    │ Executor (crate fragment): runs fragments                  │
//!    │ Home: creates and drops data objects, holds snapshots,     │  every home has these
//!    │       knows statistics, finds rows by key, writes,         │
//!    │       describes itself                                     │
//!    ├────────────────────────────────────────────────────────────┤
//!    │ SingleRows · SecondaryIndexes · KeyOrders · KeyIndexes ·   │  a home may have these
//!    │ Ownership · Balancer · Definitions · Durability            │
//!    └─────────┬──────────────────────────────────────────────────┘
//!            engine                      later: a memory cluster
//! ```
//!
//! A data object has a schema, a number and perhaps a key. Names, defaults, CHECK and foreign keys are the business of
//! SQL. What a home must do, each home does; what only some homes can do is an optional capability, and SQL has another
//! way where it is missing.
//!
//! A method waits (it returns a future) where the home of another machine would have to ask somebody. What this process
//! must know anyway, such as statistics, is told at once.
//!
//! This crate has traits and plain data. It does no I/O, and it knows neither SQL above it nor the workers below it.

#![forbid(unsafe_code)]

mod balance;
mod definitions;
mod describe;
mod durability;
mod error;
mod home;
mod index;
mod key_order;
mod object;
mod ownership;
mod reorganize;
mod rows;
mod samples;
mod single;
mod snapshot;
mod statistics;
mod traffic;
mod write;

pub use balance::{Algorithm, Balanced, Balancer, Balancing, Moved};
pub use definitions::{Definition, DefinitionChange, Definitions};
pub use describe::{
    BUFFERS, ChunkInspection, ColumnChunkInspection, DictionaryInspection, Inspection,
    NodeDescription, ReadBandwidth, SegmentInspection, WorkDescription, WorkerDescription,
};
pub use durability::{
    Checkpoint, Durability, DurabilityStatus, DurableFile, DurableFileKind, FailedCheckpoint,
    FlushTimes, LogStatus, MadeCheckpoint, NotSynchronous, SnapshotStatus, Synchronous,
};
pub use eris_numa::{Budget, HugePages, OutOfMemory, Usage};
pub use eris_telemetry::AeuSnapshot;
pub use error::HomeError;
pub use home::Home;
pub use index::{IndexKind, IndexStatistics, SecondaryIndexes, SharedIndexStatistics};
pub use key_order::{KeyOrder, KeyOrders, OrderSize, WeakKeyOrder};
pub use object::{ObjectDefinition, Partitioning};
pub use ownership::{Ownership, PartLocation, PartitionStatus, StoredPart};
pub use reorganize::{
    IndexReorganization, KeyIndexes, ReorganizationCause, ReorganizationEffect, ReorganizationState,
};
pub use rows::{Found, KeyBounds, Newest};
pub use samples::{SampledRows, Samples};
pub use single::{Becomes, Compute, Computed, Kept, RowChanges, RowClient, SingleRows};
pub use snapshot::HeldSnapshot;
pub use statistics::{ColumnStatistics, ObjectStatistics};
pub use traffic::{Traffic, TrafficKind};
pub use write::{Appending, Write};
