//! What a participant of a run says of its work while it works. Whoever asks gets it without waiting.

use eris_fragment::{PhaseCounts, WorkerReport};
use eris_telemetry::Counter;
use eris_types::AeuId;
use std::sync::OnceLock;
use std::time::Duration;

/// Makes the counters and their names in a [`WorkerReport`] from one list.
macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// One participant's report. Written by that AEU alone, and read by whoever has the fragment. The end of a
        /// stream is sent after the last change, so that who has seen it reads all.
        #[derive(Debug)]
        pub(crate) struct ShareReport {
            worker: u32,
            node: u32,
            $(pub $name: Counter,)*
            busy_nanoseconds: Counter,
            /// What it did in each phase, and the bytes of all columns of the fragment; said once it is done.
            phases: OnceLock<(Box<[PhaseCounts]>, u64)>,
        }

        impl ShareReport {
            pub fn new(aeu: AeuId, node: u32) -> Self {
                ShareReport {
                    worker: aeu.0.into(),
                    node,
                    $($name: Counter::default(),)*
                    busy_nanoseconds: Counter::default(),
                    phases: OnceLock::new(),
                }
            }

            /// What has been said so far.
            pub fn read(&self) -> WorkerReport {
                let (phases, column_bytes) = match self.phases.get() {
                    Some((phases, column_bytes)) => (phases.to_vec(), *column_bytes),
                    None => (Vec::new(), 0),
                };
                WorkerReport {
                    worker: self.worker,
                    node: self.node,
                    $($name: self.$name.get(),)*
                    busy: Duration::from_nanos(self.busy_nanoseconds.get()),
                    column_bytes,
                    phases,
                }
            }
        }
    };
}

counters!(
    chunks,
    chunks_skipped,
    chunks_helped,
    chunks_copied,
    bytes_shared,
    bytes_moved,
    rows_scanned,
    rows_skipped,
    rows_passed,
    rows_sent,
    groups_repartitioned,
    groups_merged,
    bytes,
);

impl ShareReport {
    /// So much more time was spent.
    pub fn add_busy(&self, time: Duration) {
        self.busy_nanoseconds.add(time.as_nanos() as u64);
    }

    /// The participant is done with its chunks. The first call counts.
    pub fn set_phases(&self, phases: &[PhaseCounts], column_bytes: u64) {
        let _ = self.phases.set((phases.into(), column_bytes));
    }
}
