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
use crate::remote::Crossing;
use eris_column::{CHUNK_ROWS, Zone};
use eris_cost::help::Reading as HowRead;
use eris_cost::spread::{Place, spread};
use eris_exec::Program;
use eris_fragment::{Copied, Estimate, Fragment, NumaStrategy};
use eris_numa::ScanKernel;
use eris_types::{ColumnId, NodeId};

/// Help that ends later than at this share of the time is not worth a word.
const LITTLE: f64 = 0.9;

/// What there is to be read.
#[derive(Clone, Copy, Default)]
struct Reading {
    rows: f64,
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
            all.rows += reading.rows;
            all.bytes += reading.bytes;
            all.seconds += reading.seconds;
        }
        if all.bytes == 0.0 {
            return Some(Estimate::default());
        }
        let chunk = all.bytes / all.rows * CHUNK_ROWS as f64;
        let scan = all.bytes / all.seconds;
        let spread = self.spread(&places, chunk, scan, fragment.options.strategy);
        Some(spread.unwrap_or_default())
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
        let mut reading = Reading {
            rows,
            ..Reading::default()
        };
        for column in fragment.columns.iter().filter_map(summary) {
            let bytes = column.bytes as f64;
            reading.bytes += bytes;
            reading.seconds += bytes / self.remote.scan(ScanKernel::Compare, 8.0 * bytes / rows);
        }
        reading
    }

    /// The same if one AEU reads so many bytes per second, and a chunk has so many.
    fn spread(
        &self,
        places: &[Place],
        chunk: f64,
        scan: f64,
        strategy: NumaStrategy,
    ) -> Option<Estimate> {
        let crossing = |helper: usize, home: usize| {
            (self.remote).crossing(NodeId(helper as u16), NodeId(home as u16), scan)
        };
        let rate = |helper: usize, home: usize| crossing(helper, home).way.rate(chunk, scan);
        let spread = spread(places, scan, rate);
        // Rows may have come to a node since it was asked who works there.
        if !spread.pushed.is_finite() {
            return None;
        }
        // Who gains less does not show it.
        let gains = spread.pulled < LITTLE * spread.pushed;
        Some(match (strategy, gains) {
            (NumaStrategy::Auto | NumaStrategy::Pull, true) => Estimate {
                pushed: spread.pushed,
                expected: spread.pulled,
                moved: spread.moved as u64,
                copied: best_way(places, rate)
                    .map(|(helper, home)| crossing(helper, home))
                    .filter(|crossing| {
                        strategy == NumaStrategy::Pull
                            || crossing.way.reading(chunk, scan) == HowRead::Copied
                    })
                    .map(copied),
            },
            // What help that does not pay would take is not known.
            (NumaStrategy::Pull, false) => Estimate::default(),
            (NumaStrategy::Auto | NumaStrategy::Push, _) => Estimate {
                pushed: spread.pushed,
                expected: spread.pushed,
                moved: 0,
                copied: None,
            },
        })
    }
}

/// A helper and a home: the node that has most, and the one with workers that reads it fastest.
fn best_way(places: &[Place], rate: impl Fn(usize, usize) -> f64) -> Option<(usize, usize)> {
    let nodes = || 0..places.len();
    let home = nodes().max_by(|&a, &b| places[a].bytes.total_cmp(&places[b].bytes))?;
    let helpers = nodes().filter(|&helper| helper != home && places[helper].workers > 0.0);
    let best = helpers.max_by(|&a, &b| rate(a, home).total_cmp(&rate(b, home)));
    best.map(|helper| (helper, home))
}

fn copied(crossing: Crossing) -> Copied {
    Copied {
        engine: crossing.engine.name(),
        block: crossing.way.copy.block as u64,
    }
}
