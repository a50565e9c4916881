//! Whether rows of a table that is scanned move, and how many.
//!
//! Of a table that is scanned, every byte is as likely to be read as any other: the load that owners should share is
//! bytes, and a little for each row. AEUs with little data help the others, so uneven partitions cost less than they
//! seem to. The gain is the time that the busiest AEU needs beyond the others, and a part of the remote reads.

use super::Balancing;
use super::experience::{Experience, HORIZON, Move, Offer};
use super::loads::{deviation, gain, imbalance, max, progress, whole_gain};
use super::target::{and_wider, targets};
use crate::Shift;
use crate::object::load::Load;
use eris_column::CHUNK_ROWS;
use eris_numa::Topology;
use eris_types::AeuId;
use std::time::Duration;

/// Rows per second that are linked: what takes time is to mark them as deleted.
const LINK_RATE: f64 = 20e6;
/// Rows per second that are copied, before any were.
pub(super) const FIRST_RATE: f64 = 1e6;
/// What one statement takes that moves rows.
const STATEMENT: f64 = 2e-3;
/// The part of the time of reading other nodes' bytes by which reading one's own is shorter.
const REMOTE: f64 = 0.5;
/// What a row takes besides its bytes, as bytes: columns may be encoded to almost nothing, and differ much in that from
/// chunk to chunk.
const ROW: f64 = 1.0;
/// The least that is moved: chunks are moved as a whole.
const LEAST_ROWS: f64 = CHUNK_ROWS as f64;

/// What an AEU has of a table, and what it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    /// Rows that were not deleted, and their bytes.
    pub rows: u64,
    pub bytes: u64,
    pub load: Load,
}

impl Holding {
    /// What it takes to read all of it, in bytes.
    pub fn weight(&self) -> f64 {
        self.bytes as f64 + self.rows as f64 * ROW
    }
}

/// What is to be moved.
#[derive(Debug)]
pub(super) struct RowMove {
    pub from: AeuId,
    pub to: AeuId,
    pub rows: u64,
}

/// Looks at the holdings of all AEUs and what they were asked for in some time; `None`: all stays. `must` be even,
/// whether or not that pays; within a node, whether chunks are linked.
pub(super) fn decide(
    holdings: &[Holding],
    time: Duration,
    topology: &Topology,
    balancing: Balancing,
    must: bool,
    links: bool,
    experience: &mut Experience,
) -> Option<(Vec<RowMove>, f64)> {
    let algorithm = balancing.algorithm?;
    let loads: Vec<f64> = holdings.iter().map(Holding::weight).collect();
    let all: f64 = loads.iter().sum();
    if all == 0.0 || deviation(&loads) <= balancing.threshold && !must {
        return None;
    }
    // Rows of one owner may be encoded better than others'.
    let per_row = holdings
        .iter()
        .map(|one| one.weight() / (one.rows as f64).max(1.0));
    let per_row: Vec<f64> = per_row.collect();
    let distributed =
        |algorithm| distribute(&loads, &targets(&loads, algorithm), &per_row, topology);
    let even = vec![all / loads.len() as f64; loads.len()];
    let whole = whole_gain(&loads, &even)?;
    let scanning = || holdings.iter().map(|one| one.load.scanning.as_secs_f64());
    let total: f64 = scanning().sum();
    let node = |aeu: usize| topology.node_of(AeuId(aeu as u16));
    let (read, helped) = holdings.iter().fold((0, 0), |(read, helped), one| {
        (read + one.load.read, helped + one.load.helped)
    });
    let others = topology.aeus().iter().filter(|place| place.node != node(0));
    let far = others.count() as f64 / loads.len() as f64;
    let away = total * helped as f64 / (read as f64).max(1.0) * far * REMOTE;
    let ways = and_wider(algorithm, loads.len()).map(distributed);
    let mut offers = ways.filter_map(|(moved, after)| {
        let part = gain(whole, &loads, &after, &even)?;
        let later = max(scanning()) - total / loads.len() as f64;
        let gained = later * progress(&loads, &after, &even) + away * part;
        let (mut linked, mut copied) = (0.0, 0.0);
        let moves = moved.iter().map(|one: &RowMove| {
            match links && node(one.from.index()) == node(one.to.index()) {
                true => linked += one.rows as f64,
                false => copied += one.rows as f64,
            }
            Move {
                shift: everything(one.to),
                from: one.from,
                keys: one.rows as f64,
                others: 0.0,
            }
        });
        let moves: Vec<Move> = moves.collect();
        let statements = STATEMENT * moves.len() as f64;
        Some(Offer {
            plan: moved,
            moves,
            gain: gained / time.as_secs_f64().max(1e-3) * HORIZON.as_secs_f64(),
            cost: copied / experience.rate() + linked / LINK_RATE + statements,
        })
    });
    let offer = match must {
        true => offers.next(),
        false => experience.first_that_pays(offers),
    };
    Some((offer?.plan, imbalance(&loads)))
}

/// How many rows go from whom to whom, first within nodes, so that owners have the loads that are wanted, or nearly;
/// and those that they have then.
fn distribute(
    loads: &[f64],
    wanted: &[f64],
    per_row: &[f64],
    topology: &Topology,
) -> (Vec<RowMove>, Vec<f64>) {
    let over = loads.iter().zip(wanted);
    let mut over: Vec<f64> = over.map(|(load, wanted)| load - wanted).collect();
    let (mut moved, mut after) = (Vec::new(), loads.to_vec());
    let node = |aeu: usize| topology.node_of(AeuId(aeu as u16));
    for is_near in [true, false] {
        for from in 0..over.len() {
            for to in 0..over.len() {
                let some = over[from].min(-over[to]);
                let rows = some / per_row[from];
                if rows.is_nan() || rows < LEAST_ROWS || (node(from) == node(to)) != is_near {
                    continue;
                }
                over[from] -= some;
                over[to] += some;
                let rows = rows as u64;
                after[from] -= rows as f64 * per_row[from];
                after[to] += rows as f64 * per_row[from];
                moved.push(RowMove {
                    from: AeuId(from as u16),
                    to: AeuId(to as u16),
                    rows,
                });
            }
        }
    }
    (moved, after)
}

/// All keys: what is moved by size has no range of them.
pub(super) fn everything(to: AeuId) -> Shift {
    Shift {
        low: 0,
        high: u64::MAX,
        to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::Algorithm;

    const SECOND: Duration = Duration::from_secs(1);

    /// Some million rows each, scanned for so many seconds, a part of the bytes by helpers.
    fn holdings(rows: &[u64], scanned: &[f64], helped: f64) -> Vec<Holding> {
        let holdings = rows.iter().zip(scanned).map(|(&rows, &scanned)| Holding {
            rows: rows * 1_000_000,
            bytes: rows * 40_000_000,
            load: Load {
                scanning: Duration::from_secs_f64(scanned),
                read: 1 << 30,
                helped: ((1 << 30) as f64 * helped) as u64,
                ..Load::default()
            },
        });
        holdings.collect()
    }

    fn decided(topology: &Topology, holdings: &[Holding], must: bool) -> Option<Vec<RowMove>> {
        let balancing = Balancing {
            algorithm: Some(Algorithm::OneShot),
            ..Balancing::default()
        };
        let experience = &mut Experience::of(FIRST_RATE);
        let decided = decide(
            holdings, SECOND, topology, balancing, must, true, experience,
        );
        decided.map(|(moves, _)| moves)
    }

    #[test]
    fn what_is_even_or_not_read_stays() {
        let topology = Topology::fake(2, 2);
        let busy = [0.5; 4];
        assert!(decided(&topology, &holdings(&[10, 11, 9, 10], &busy, 0.3), false).is_none());
        assert!(decided(&topology, &holdings(&[40, 0, 0, 0], &[0.0; 4], 0.0), false).is_none());
        assert!(decided(&topology, &holdings(&[0; 4], &busy, 0.3), false).is_none());
        // Copied, it would take longer than what is gained in a while.
        let little = [0.004, 0.0, 0.0, 0.0];
        assert!(decided(&topology, &holdings(&[40, 0, 0, 0], &little, 0.0), false).is_none());
        assert!(decided(&topology, &holdings(&[40, 0, 0, 0], &little, 0.0), true).is_some());
    }

    #[test]
    fn a_few_chunks_too_many_are_not_worth_it() {
        let mut few = holdings(&[1, 1], &[0.5, 0.4], 0.0);
        few[0].rows = 40_000;
        few[1].rows = 0;
        (few[0].bytes, few[1].bytes) = (1 << 20, 0);
        assert!(decided(&Topology::fake(1, 2), &few, true).is_none());
    }

    #[test]
    fn rows_are_as_heavy_as_their_owners_are() {
        let topology = Topology::fake(1, 2);
        let mut uneven = holdings(&[6, 2], &[1.0, 0.3], 0.0);
        uneven[1].bytes *= 2;
        let moves = decided(&topology, &uneven, false).expect("it pays");
        // 6 million of 41 against 2 million of 81 bytes: 42 million bytes are too many.
        assert_eq!(moves[0].rows, 42_000_000 / 41);
        // Encoded to nothing, here more so than there.
        uneven[0].bytes = 50_000;
        uneven[1].bytes = 600_000;
        let moves = decided(&topology, &uneven, false).expect("it pays");
        assert!((1_650_000..1_750_000).contains(&moves[0].rows), "{moves:?}");
    }

    #[test]
    fn rows_go_to_the_same_node_first() {
        let topology = Topology::fake(2, 2);
        let uneven = holdings(&[3, 0, 1, 0], &[1.0, 0.0, 0.3, 0.0], 0.0);
        let moves = decided(&topology, &uneven, false).expect("it pays");
        let moves: Vec<_> = moves
            .iter()
            .map(|one| (one.from.0, one.to.0, one.rows / 1_000_000))
            .collect();
        assert_eq!(moves, [(0, 1, 1), (0, 3, 1)]);
    }
}
