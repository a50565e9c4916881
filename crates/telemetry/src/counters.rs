//! The counters of an AEU, and those of all.

use crate::counter::Counter;
use crate::crossed::Crossed;
use crate::snapshot::{AeuSnapshot, Snapshot};
use crate::work::Work;
use crate::{RANKS, snapshot};
use crossbeam_utils::CachePadded;
use eris_types::AeuId;
use std::sync::Arc;

/// Makes the two forms of the counters from one list: [`AeuCounters`], which are written, and [`AeuSnapshot`], which is
/// read, added and subtracted.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $kind:tt,)*) => {
        /// The counters of one AEU.
        ///
        /// Written by *the AEU*: whoever holds its run token and steps it; or by its *thread*, which also runs while
        /// another thread holds the token. Each counter has one of these two as its only writer.
        #[derive(Debug, Default)]
        pub struct AeuCounters {
            $($(#[$doc])* pub $name: counters!(@counter $kind),)*
            /// What it has sent to other nodes. Not part of a snapshot: it is of another form. Written by the AEU.
            pub crossed: Crossed,
            /// What kinds of work it does. Not part of a snapshot, either. Written by the AEU.
            pub work: Work,
        }

        impl AeuCounters {
            /// All values, each as it was some time during the call.
            pub fn snapshot(&self) -> AeuSnapshot {
                AeuSnapshot { $($name: snapshot::Read::read(&self.$name),)* }
            }
        }

        impl AeuSnapshot {
            /// Adds the values of another AEU.
            pub fn add(&mut self, other: &AeuSnapshot) {
                $(snapshot::Number::add(&mut self.$name, other.$name);)*
            }

            /// What has been counted since `earlier`, a snapshot of the same AEU.
            pub fn since(&self, earlier: &AeuSnapshot) -> AeuSnapshot {
                AeuSnapshot { $($name: snapshot::Number::since(self.$name, earlier.$name),)* }
            }
        }
    };
    (@counter one) => { Counter };
    (@counter by_rank) => { [Counter; RANKS] };
}

counters! {
    /// Commands taken from the inbox, by rank. Unit: commands. Written by the AEU.
    received: by_rank,
    /// Commands put into outgoing buffers, by rank; a multicast counts once per target. Unit: commands. Written by the
    /// AEU.
    sent: by_rank,
    /// Batches of commands of one data object and kind that were executed together. `received` divided by this is the
    /// coalescing achieved. Unit: groups. Written by the AEU.
    groups: one,
    /// Tasks that were run to their end, cancelled and failed ones included. Unit: tasks. Written by the AEU.
    tasks: one,
    /// Slices of tasks that were run. Unit: slices. Written by the AEU.
    slices: one,
    /// Steps of the AEU's loop that found something to do. Unit: steps. Written by the AEU.
    steps_busy: one,
    /// Steps that found nothing. Unit: steps. Written by the AEU.
    steps_idle: one,
    /// Time spent in steps that found something to do. Unit: nanoseconds. Written by the AEU.
    busy_nanoseconds: one,
    /// How often the AEU's thread went to sleep because nothing came while it was spinning. Unit: times. Written by the
    /// thread.
    parks: one,
    /// How often the thread was woken from that sleep. Unit: times. Written by the thread (not by who wakes it).
    wakes: one,
    /// Rows looked at by scans, whether they qualified or not. Unit: rows. Written by the AEU that scans, not the
    /// owner.
    rows_scanned: one,
    /// Bytes of encoded data that scans have read. Unit: bytes. Written by the AEU that scans.
    bytes_scanned: one,
    /// Chunks that scans have read. Unit: chunks. Written by the AEU that scans.
    chunks_scanned: one,
    /// Chunks that scans passed over, because their minimum and maximum exclude every row. Unit: chunks. Written by the
    /// AEU that scans.
    chunks_skipped: one,
    /// Chunks among `chunks_scanned` that belong to another AEU, which was helped. Unit: chunks. Written by the helper.
    chunks_helped: one,
    /// Panics caught while executing a group or a task; each failed its statement alone. Unit: panics. Written by the
    /// AEU.
    panics: one,
}

/// The counters of all AEUs. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<[CachePadded<AeuCounters>]>);

impl Telemetry {
    /// Counters for so many AEUs, all zero.
    pub fn new(aeus: usize) -> Self {
        Telemetry((0..aeus).map(|_| CachePadded::default()).collect())
    }

    /// The counters of one AEU: to write for it alone, to read for anyone.
    ///
    /// # Panics
    /// If there is no such AEU.
    pub fn of(&self, aeu: AeuId) -> &AeuCounters {
        &self.0[aeu.index()]
    }

    /// All values of all AEUs, by [`AeuId`].
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            aeus: self.0.iter().map(|counters| counters.snapshot()).collect(),
        }
    }
}
