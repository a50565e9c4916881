//! What a fragment is expected to take, by where its rows are worked on.
//!
//! ```text
//! statistics of each partition ─▶ bytes by node, without partitions that their zones exclude ┐
//! scans under way at each AEU  ─▶ the part of its time that is for one more                  ├─▶ spread ─▶ seconds
//! what is known of the machine ─▶ scans by kernel and width, links                           ┘
//! ```

use super::shared::EngineState;
use crate::object::data_object::DataObject;
use crate::object::statistics::PartitionStatistics;
use eris_column::Zone;
use eris_cost::spread::{Place, spread};
use eris_exec::Program;
use eris_fragment::{Estimate, Fragment, NumaStrategy};
use eris_numa::ScanKernel;
use eris_types::{ColumnId, NodeId};

/// Help that ends later than at this share of the time is not worth a word.
const LITTLE: f64 = 0.9;

/// A block that is taken from another node, in bytes.
const BLOCK: f64 = (256 << 10) as f64;

/// What there is to be read.
#[derive(Clone, Copy, Default)]
struct Reading {
    bytes: f64,
    /// Of one AEU.
    seconds: f64,
}

impl EngineState {
    /// What a fragment would take on this engine now: by the bytes of its columns on each node, as far as statistics
    /// and zones tell. Zeros if something is still to be known of it, such as its build sides. `None` on one node.
    pub fn estimate(&self, fragment: &Fragment, object: &DataObject) -> Option<Estimate> {
        let nodes = self.topology.nodes();
        if nodes.len() < 2 {
            return None;
        }
        self.machine.need();
        let mut places: Vec<Place> = nodes
            .iter()
            .map(|_| Place {
                bytes: 0.0,
                workers: 0.0,
            })
            .collect();
        for (aeu, _) in self.scanners(object) {
            // Scans take turns, so that one more has a part of the AEU's time.
            let share = 1.0 / f64::from(1 + self.remote.scans(aeu));
            places[self.topology.node_of(aeu).index()].workers += share;
        }
        let dictionaries = vec![None; object.schema.fields().len()];
        let Ok(program) = Program::compile(fragment, &object.schema, &dictionaries) else {
            return Some(Estimate::default());
        };
        let mut all = Reading::default();
        for place in self.topology.aeus() {
            let statistics = object.partition_statistics(place.aeu);
            let reading = self.reading(fragment, &program, &statistics);
            places[place.node.index()].bytes += reading.bytes;
            all.bytes += reading.bytes;
            all.seconds += reading.seconds;
        }
        if all.bytes == 0.0 {
            return Some(Estimate::default());
        }
        Some(self.spread(&places, all.bytes / all.seconds, fragment.options.strategy))
    }

    /// What one AEU has to read of a partition.
    fn reading(
        &self,
        fragment: &Fragment,
        program: &Program,
        statistics: &PartitionStatistics,
    ) -> Reading {
        let summary = |column: &ColumnId| statistics.columns.get(column.index());
        let zone = |position: usize| {
            let summary = summary(fragment.columns.get(position)?)?;
            Some(Zone {
                nulls: summary.nulls as usize,
                range: summary.range.clone()?,
            })
        };
        let rows = statistics.rows as f64;
        if rows == 0.0 || program.excludes(zone) {
            return Reading::default();
        }
        let mut reading = Reading::default();
        for column in fragment.columns.iter().filter_map(summary) {
            let bytes = column.bytes as f64;
            reading.bytes += bytes;
            reading.seconds += bytes / self.remote.scan(ScanKernel::Compare, 8.0 * bytes / rows);
        }
        reading
    }

    /// The same if one AEU reads so many bytes per second.
    fn spread(&self, places: &[Place], scan: f64, strategy: NumaStrategy) -> Estimate {
        let rate = |helper: usize, home: usize| {
            let way = self.remote.way(NodeId(helper as u16), NodeId(home as u16));
            way.rate(BLOCK, scan)
        };
        let spread = spread(places, scan, rate);
        // Who gains less does not show it.
        let gains = spread.pulled < LITTLE * spread.pushed;
        match strategy {
            NumaStrategy::Auto | NumaStrategy::Pull if gains => Estimate {
                pushed: spread.pushed,
                expected: spread.pulled,
                moved: spread.moved as u64,
            },
            _ => Estimate {
                pushed: spread.pushed,
                expected: spread.pushed,
                moved: 0,
            },
        }
    }
}
