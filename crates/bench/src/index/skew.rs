//! Lookups that follow Zipf's law, on small and on huge pages, as inserted and reorganised. These are the TLB paper's
//! Figures 2 to 5 and Tables 2 to 4 (*TLB misses – the missing issue of adaptive radix tree?*).
//!
//! ```text
//!              4 KiB pages                    huge pages
//! as inserted  [tree]                         [tree]            the same keys in the same order
//! reorganised  [tree] ◄─ samples of ─► anew for each exponent ─► [tree]
//!                        as many lookups as are timed
//! ```
//! All four are asked in turn. A translation buffer that nobody can ask is modelled: that of the paper's processor, and
//! that of a Zen 4. The paper's Figure 2, the share of time that goes into misses, is bounded from above by what huge
//! pages save.

use super::error::IndexBenchError;
use super::keys::{BATCH, KeySequence, Random};
use super::progress::Spinner;
use super::zipf::Zipf;
use crate::report::{BenchReport, median};
use eris_engine::Settings;
use eris_index::model::{Counts, Model, Pages, Processor, SANDY_BRIDGE, ZEN4};
use eris_index::{Art, Reorganization, Samples};
use eris_numa::{HugePages, Memory};
use eris_types::{NodeId, ObjectId};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Lookups of a run; fewer of few keys.
const LOOKUPS: usize = 1 << 19;
const LOOKUPS_PER_KEY: usize = 4;
/// Lookups that fill the model, and that it counts.
const MODEL_FILL: usize = 1 << 17;
const MODEL_LOOKUPS: usize = 1 << 16;
/// The exponents of the paper's tables.
const TABLED: [f64; 2] = [1.0, 1.4];

/// A tree on pages of one size, in one layout.
struct Case {
    pages: Pages,
    is_reorganised: bool,
    tree: Art<u64>,
}

impl Case {
    fn params(&self) -> [(&'static str, Value); 2] {
        let pages = match self.pages {
            Pages::Small => "4 KiB",
            Pages::Huge => "huge",
        };
        let layout = match self.is_reorganised {
            false => "as inserted",
            true => "reorganised",
        };
        [("pages", json!(pages)), ("layout", json!(layout))]
    }
}

/// The exponents for these keys, each with all four trees.
pub fn run(
    settings: &Settings,
    keys: KeySequence,
    exponents: &[f64],
    runs: usize,
    report: &mut BenchReport,
    progress: &Spinner,
) -> Result<(), IndexBenchError> {
    let mut cases = Vec::new();
    for (pages, huge) in [
        (Pages::Small, HugePages::Never),
        (Pages::Huge, HugePages::Auto),
    ] {
        for is_reorganised in [false, true] {
            progress.begin(format!("{} {} keys, filling", keys.count, keys.order()));
            cases.push(Case {
                pages,
                is_reorganised,
                tree: filled(settings, huge, keys)?,
            });
        }
    }
    for &exponent in exponents {
        progress.begin(format!(
            "{} {} keys, zipf {exponent}",
            keys.count,
            keys.order()
        ));
        let zipf = Zipf::new(keys.count, exponent);
        let common = || {
            [
                ("keys", json!(keys.count)),
                ("order", json!(keys.order())),
                ("zipf", json!(exponent)),
            ]
        };
        for case in cases.iter_mut().filter(|case| case.is_reorganised) {
            let (hottest, moved, seconds) = reorganise(&mut case.tree, keys, &zipf)?;
            let params = || common().into_iter().chain(case.params());
            report.row("reorganize", params(), "ms", vec![seconds * 1e3], None);
            let each = seconds * 1e9 / moved.max(1) as f64;
            report.row("reorganize node", params(), "ns", vec![each], None);
            report.row("hot keys", params(), "keys", vec![hottest as f64], None);
        }
        for batch in [1, BATCH] {
            let mut rates = vec![Vec::new(); cases.len()];
            for run in 0..runs as u64 {
                let asked = draw(keys, &zipf, run + 1, lookups(keys));
                for (case, rates) in cases.iter().zip(&mut rates) {
                    rates.push(rate(&case.tree, &asked, batch)?);
                }
            }
            for (case, rates) in cases.iter().zip(&rates) {
                let params = common().into_iter().chain(case.params());
                let params = params.chain([("batch", json!(batch))]);
                report.row("skewed lookup", params, "million/s", rates.clone(), None);
            }
            gains(&cases, &rates, common, batch, report);
        }
        let asked = draw(
            keys,
            &zipf,
            99,
            lookups(keys).min(MODEL_FILL + MODEL_LOOKUPS),
        );
        for case in &cases {
            for processor in [SANDY_BRIDGE, ZEN4] {
                let (counts, counted) = modelled(&case.tree, &processor, case.pages, &asked);
                let mut row = |case_name, event: &str, count: u64| {
                    let params = common().into_iter().chain(case.params());
                    let params = params.chain([
                        ("processor", json!(processor.name)),
                        ("event", json!(event)),
                    ]);
                    let each = count as f64 / counted as f64;
                    report.row(case_name, params, "per lookup", vec![each], None);
                };
                row("model", "TLB miss", counts.walks);
                if TABLED.contains(&exponent) && processor == SANDY_BRIDGE {
                    row("model", "TLB visit", counts.reads);
                    row("model", "L1 TLB miss", counts.first_misses);
                    let [l1, l2, l3] = counts.cache_misses;
                    row("model", "L1 miss", l1);
                    row("model", "L2 miss", l2);
                    row("model", "L3 miss", l3);
                }
            }
        }
    }
    let footprint = cases[0].tree.footprint();
    let params = [("keys", json!(keys.count)), ("order", json!(keys.order()))];
    let mib = footprint.held as f64 / (1 << 20) as f64;
    report.row("footprint", params, "MiB", vec![mib], None);
    Ok(())
}

/// How many times as fast what differs in one thing is, run by run: huge pages as small ones (Figure 3), reorganised as
/// inserted (Figure 4).
fn gains<const N: usize>(
    cases: &[Case],
    rates: &[Vec<f64>],
    common: impl Fn() -> [(&'static str, Value); N],
    batch: usize,
    report: &mut BenchReport,
) {
    let find = |pages, is_reorganised| {
        let found = |case: &Case| case.pages == pages && case.is_reorganised == is_reorganised;
        let at = cases.iter().position(found);
        &rates[at.expect("all four are there")]
    };
    let mut row = |of: &str, after: &[f64], before: &[f64]| {
        let each = after
            .iter()
            .zip(before)
            .map(|(after, before)| after / before);
        let params = common().into_iter();
        let params = params.chain([("of", json!(of)), ("batch", json!(batch))]);
        report.row("gain", params, "times", each.collect(), None);
    };
    use Pages::{Huge, Small};
    row("huge pages", find(Huge, false), find(Small, false));
    row(
        "reorganisation, 4 KiB",
        find(Small, true),
        find(Small, false),
    );
    row("reorganisation, huge", find(Huge, true), find(Huge, false));
    if batch == 1 {
        let saved = median(find(Small, false)) / median(find(Huge, false));
        let params = common();
        let percent = (1.0 - saved).max(0.0) * 100.0;
        report.row("stalls at most", params, "%", vec![percent], None);
    }
}

/// How many lookups a run of these keys has.
fn lookups(keys: KeySequence) -> usize {
    LOOKUPS.min(keys.count as usize * LOOKUPS_PER_KEY)
}

/// The number of the key of a rank: hot keys have nothing to do with each other.
fn number(keys: KeySequence, rank: u64) -> u64 {
    // A prime, so that no two ranks below it have one number.
    (u128::from(rank) * 4_294_967_291 % u128::from(keys.count)) as u64
}

/// So many keys by the law.
pub(super) fn draw(keys: KeySequence, zipf: &Zipf, seed: u64, count: usize) -> Vec<u64> {
    let mut random = Random(seed << 40);
    let key = |_| keys.key(number(keys, zipf.draw(|| random.bits())));
    (0..count).map(key).collect()
}

/// A tree of the keys, put in in an order that has nothing to do with how often they are asked for.
fn filled(
    settings: &Settings,
    huge: HugePages,
    keys: KeySequence,
) -> Result<Art<u64>, IndexBenchError> {
    let memory = Memory::new(&settings.topology, huge, settings.memory_limit);
    let memory = memory.map_err(|error| IndexBenchError::Memory(error.to_string()))?;
    let mut tree = Art::new(memory.node(NodeId(0)), ObjectId(1));
    let mut before = vec![None; BATCH];
    // Another prime than that of the ranks.
    let at = |n: u64| (u128::from(n) * 2_654_435_761 % u128::from(keys.count)) as u64;
    let mut numbers = (0..keys.count).map(at).peekable();
    while numbers.peek().is_some() {
        let some = numbers.by_ref().take(BATCH).map(|n| keys.key(n));
        let entries: Vec<(u64, u64)> = some.map(|key| (key, key ^ 1)).collect();
        let put = tree.upsert_many(&entries, &mut before[..entries.len()]);
        put.map_err(|rejected| rejected.error)?;
    }
    Ok(tree)
}

/// Reorganises by samples of as many lookups as a run has: how many keys are hot, nodes moved, and seconds.
fn reorganise(
    tree: &mut Art<u64>,
    keys: KeySequence,
    zipf: &Zipf,
) -> Result<(usize, usize, f64), IndexBenchError> {
    // All of them: what is asked for once in a while is in the tail of the law, which an engine's few samples do not
    // see.
    let mut samples: Samples<u64> = Samples::new(lookups(keys), 1);
    samples.note(&draw(keys, zipf, 0, lookups(keys)));
    let begun = Instant::now();
    let hottest = samples.hottest();
    let hot = hottest.len();
    let hottest = hottest.into_iter().map(|(key, _)| key);
    let mut reorganization = Reorganization::begin(tree, hottest);
    while !reorganization.step(tree, 256)? {}
    Ok((hot, reorganization.moved(), begun.elapsed().as_secs_f64()))
}

/// Lookups per second, in millions.
fn rate(tree: &Art<u64>, asked: &[u64], batch: usize) -> Result<f64, IndexBenchError> {
    let begun = Instant::now();
    let mut found = 0;
    if batch == 1 {
        for key in asked {
            found += u64::from(tree.get(*key) == Some(*key ^ 1));
        }
    } else {
        let mut values = vec![None; batch];
        for keys in asked.chunks(batch) {
            let values = &mut values[..keys.len()];
            tree.get_many(keys, values);
            let right = keys.iter().zip(&*values);
            found += right
                .filter(|(key, value)| **value == Some(**key ^ 1))
                .count() as u64;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    if black_box(found) != asked.len() as u64 {
        return Err(IndexBenchError::WrongAnswer {
            structure: "the tree under skew".to_owned(),
            found,
            asked: asked.len() as u64,
        });
    }
    Ok(asked.len() as f64 / seconds / 1e6)
}

/// What the last of the lookups miss in a processor that the others have filled, and how many are the last.
pub(super) fn modelled(
    tree: &Art<u64>,
    processor: &Processor,
    pages: Pages,
    asked: &[u64],
) -> (Counts, usize) {
    let mut model = Model::new(processor, pages);
    let (fill, counted) = asked.split_at(MODEL_FILL.min(asked.len() * 2 / 3));
    let mut follow = |asked: &[u64]| {
        asked
            .iter()
            .for_each(|key| tree.trace(*key, |visit| model.visit(&visit)));
        model.take_counts()
    };
    follow(fill);
    (follow(counted), counted.len())
}

/// Figure 5 and Table 4: what it takes to reorganise everything, hottest first, and memory, by number of keys.
pub fn sizes(
    settings: &Settings,
    counts: &[u64],
    report: &mut BenchReport,
    progress: &Spinner,
) -> Result<(), IndexBenchError> {
    for &count in counts {
        for keys in [KeySequence::dense(count), KeySequence::random(count)] {
            progress.begin(format!("{count} {} keys, all moved", keys.order()));
            let mut tree = filled(settings, HugePages::Auto, keys)?;
            let params = || [("keys", json!(count)), ("order", json!(keys.order()))];
            let each = tree.footprint().held as f64 / count as f64;
            report.row("size", params(), "bytes/key", vec![each], None);
            let mut all: Vec<u64> = draw(keys, &Zipf::new(count, 1.0), 0, lookups(keys));
            all.extend((0..count).map(|n| keys.key(n)));
            let begun = Instant::now();
            let mut reorganization = Reorganization::begin(&mut tree, all);
            while !reorganization.step(&mut tree, 256)? {}
            let ms = begun.elapsed().as_secs_f64() * 1e3;
            report.row("reorganize all", params(), "ms", vec![ms], None);
        }
    }
    Ok(())
}

/// Figure 10 by the model: misses of the last cache, of one socket that asks for keys of a whole index, and of one that
/// asks for those of its partition, which is one of `parts`.
pub fn sockets(
    settings: &Settings,
    counts: &[u64],
    parts: u64,
    report: &mut BenchReport,
    progress: &Spinner,
) -> Result<(), IndexBenchError> {
    for &count in counts {
        progress.begin(format!("{count} random keys, last-level cache"));
        for (structure, count_here) in [("shared", count), ("partition", count / parts)] {
            let keys = KeySequence::random(count_here.max(1));
            let tree = filled(settings, HugePages::Auto, keys)?;
            let asked = draw(
                keys,
                &Zipf::new(keys.count, 0.0),
                5,
                lookups(keys).min(2 * MODEL_FILL),
            );
            let asked = &asked[..];
            let (counts, _) = modelled(&tree, &SANDY_BRIDGE, Pages::Huge, asked);
            let [_, l2, l3] = counts.cache_misses;
            let params = [
                ("keys", json!(count)),
                ("structure", json!(structure)),
                ("sockets", json!(parts)),
            ];
            let ratio = 100.0 * l3 as f64 / l2.max(1) as f64;
            report.row("L3 miss ratio, model", params, "%", vec![ratio], None);
        }
    }
    Ok(())
}
