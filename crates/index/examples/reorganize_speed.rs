//! What it gains to move hot nodes together: two trees of the same random keys, one of them reorganised, asked in turn
//! by single lookups that follow Zipf's law. (art-tlb-misses, Figures 4c and 4d.)
//!
//! ```text
//! ERIS_HUGE_PAGES=never cargo run --release -p eris-index --example reorganize_speed -- 4
//! ```
//! The argument is millions of keys. Shown are medians of millions of lookups per second, and how many pages of 4 KiB a
//! thousand lookups in a row touch.

use eris_index::{Art, Reorganization, Samples};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

const LOOKUPS: usize = 1 << 20;
const ROUNDS: usize = 9;

/// A bijection that scatters numbers over all 64 bits.
fn scatter(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Keys by Zipf's law: the one of rank r with a weight of r to the power of `-exponent`.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Zipf(sums.collect())
    }

    fn draw(&self, seed: u64) -> Vec<u64> {
        let all = self.0[self.0.len() - 1];
        let draw = |i: u64| {
            let at = scatter(seed << 32 | i) as f64 / u64::MAX as f64 * all;
            scatter(self.0.partition_point(|&sum| sum < at) as u64)
        };
        (0..LOOKUPS as u64).map(draw).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Distinct pages that a thousand lookups touch, on average.
fn pages(tree: &Art<u64>, keys: &[u64]) -> usize {
    let mut all = 0;
    for keys in keys[..100_000].chunks(1000) {
        let mut pages = BTreeSet::new();
        for key in keys {
            tree.trace(*key, |visit| {
                pages.extend(visit.reads.map(|read| read >> 12));
            });
        }
        all += pages.len();
    }
    all / 100
}

fn main() {
    let millions = std::env::args()
        .nth(1)
        .and_then(|millions| millions.parse::<u64>().ok());
    let keys = millions.expect("millions of keys, a number") << 20;
    let pages_wanted = match std::env::var("ERIS_HUGE_PAGES").as_deref() {
        Ok("never") => HugePages::Never,
        _ => HugePages::Auto,
    };
    let memory = Memory::new(&Topology::fake(1, 1), pages_wanted, None).expect("memory");
    println!("{keys} random keys, huge pages: {pages_wanted:?}");
    println!("zipf   as inserted   reorganised   gain   pages before, after   moved");
    for exponent in [0.0, 0.8, 1.0, 1.2, 1.4, 2.0] {
        let mut trees = [0; 2].map(|_| {
            let mut tree: Art<u64> = Art::new(memory.node(NodeId(0)), ObjectId(1));
            // In an order that has nothing to do with how often they are asked for.
            for i in 0..keys {
                let key = scatter(i.wrapping_mul(0x9E37_79B1) % keys);
                tree.upsert(key, key).expect("memory");
            }
            tree
        });
        let mut samples: Samples<u64> = Samples::new(1 << 18, 4);
        let zipf = Zipf::new(keys, exponent);
        samples.note(&zipf.draw(1));
        let hottest = samples.hottest().into_iter().map(|(key, _)| key);
        let mut reorganization = Reorganization::begin(&mut trees[1], hottest);
        while !reorganization.step(&mut trees[1], 1000).expect("memory") {}
        let mut rates = [const { Vec::new() }; 2];
        for round in 0..ROUNDS as u64 {
            let keys = zipf.draw(2 + round);
            for (tree, rates) in trees.iter().zip(&mut rates) {
                let start = Instant::now();
                let sum = keys.iter().fold(0u64, |sum, key| {
                    sum.wrapping_add(tree.get(*key).unwrap_or(0))
                });
                rates.push(LOOKUPS as f64 / start.elapsed().as_secs_f64() / 1e6);
                black_box(sum);
            }
        }
        let asked = zipf.draw(99);
        let touched = trees.each_ref().map(|tree| pages(tree, &asked));
        let [before, after] = rates.map(median);
        println!(
            "{exponent:4.1} {before:13.2} {after:13.2} {:6.2} {:>21} {:7}",
            after / before,
            format!("{}, {}", touched[0], touched[1]),
            reorganization.moved()
        );
    }
}
