//! A scan of the engine whose rows all lie on one node, with another node's AEU that helps: the copies of the engine
//! itself, beside what its links and its scan allow.
//!
//! ```text
//!   node 0   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   its own rows
//!   node 1   ─▒▒▓▒▒▓▒▒▓▒▒▓▒▒▓▒▒▓   chunks of node 0, over the link: time of the scan / rows that came = ns a row
//! ```

use super::CopyBenchError;
use crate::report::{BenchReport, median};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_engine::{Engine, Partitioning, Settings};
use eris_fragment::{
    Aggregate, AggregateFunction, BinaryOp, Executor, Expr, Fragment, FragmentReport, NumaStrategy,
    Output, Scalar, ScanOptions, Type, Value,
};
use eris_numa::{HugePages, Profile, Topology};
use eris_types::{AeuId, ColumnId, NodeId, ObjectId};
use futures::StreamExt;
use futures::executor::block_on;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Bits of a value.
const WIDTH: u32 = 10;

/// Rows that are inserted at a time.
const BATCH: usize = 1 << 20;

/// Adds rows of the scan with help and without, between the first two nodes of a machine. What the helper would reach
/// if there were no distance is measured, too: cores of one machine share its memory.
pub(super) fn measure(
    machine: Arc<Profile>,
    rows: usize,
    runs: usize,
    report: &mut BenchReport,
) -> Result<(), CopyBenchError> {
    let link = machine.link(NodeId(1), NodeId(0)).clone();
    let near = Topology::fake(2, 1);
    let far = near.clone().paced_as(machine);
    let far = Filled::new(far.expect("a machine with links has two nodes"), rows)?;
    let near = Filled::new(near, rows)?;
    let cases = [
        (&far, NumaStrategy::Push),
        (&near, NumaStrategy::Auto),
        (&far, NumaStrategy::Pull),
    ];
    let mut times = [const { Vec::new() }; 3];
    let mut own = [const { Vec::new() }; 3];
    for (filled, strategy) in &cases {
        // Blocks and threads are there from the second scan on.
        filled.scan(*strategy)?;
    }
    let mut expected = None;
    for _ in 0..runs {
        for (number, (filled, strategy)) in cases.iter().enumerate() {
            let Scanned {
                nanoseconds,
                passed,
                helped,
            } = filled.scan(*strategy)?;
            assert_eq!(*expected.get_or_insert(passed), passed, "{strategy:?}");
            times[number].push(nanoseconds / rows as f64);
            if helped > 0 {
                own[number].push(nanoseconds / helped as f64);
            }
        }
    }
    let crosses = f64::from(WIDTH) / 8.0 / link.gigabytes_per_second;
    let scans = match own[1].is_empty() {
        true => f64::INFINITY,
        false => median(&own[1]),
    };
    let limits = [None, None, Some(scans.max(crosses))];
    let ways = [
        "the owner alone",
        "with a helper without a distance",
        "with a helper",
    ];
    let mut row = |case: &str, way: &str, times: Vec<f64>, limit| {
        let params = [
            ("link", json!(link.name)),
            ("rows", json!(rows)),
            ("way", json!(way)),
        ];
        report.row(case, params, "ns per row", times, limit);
    };
    for (way, times) in ways.into_iter().zip(times) {
        row("scan by the engine", way, times, None);
    }
    let helpers = ways.into_iter().zip(own).zip(limits).skip(1);
    let case = "scan by the engine, rows of the helper";
    for ((way, own), limit) in helpers.filter(|((_, own), _)| !own.is_empty()) {
        row(case, way, own, limit.filter(|limit| limit.is_finite()));
    }
    if scans.is_finite() {
        row(
            case,
            "if link and scan took turns",
            vec![scans + crosses],
            None,
        );
    }
    Ok(())
}

/// An engine with a column of scattered values, all of them at the first AEU.
struct Filled {
    engine: Engine,
    object: ObjectId,
}

/// What a scan took and did.
struct Scanned {
    nanoseconds: f64,
    passed: u64,
    /// Rows that the helper worked on.
    helped: u64,
}

impl Filled {
    fn new(topology: Topology, rows: usize) -> Result<Self, CopyBenchError> {
        let engine = Engine::start(Settings {
            topology,
            huge_pages: HugePages::Auto,
            memory_limit: None,
            database: None,
        })?;
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
        let object = engine.create("copied", Arc::clone(&schema), Partitioning::Size)?;
        let mut writer = engine.writer(object)?;
        for first in (0..rows).step_by(BATCH) {
            let numbers = first..rows.min(first + BATCH);
            let scattered = |number: usize| {
                ((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - WIDTH)) as i64
            };
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.map(scattered)));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![values]);
            block_on(writer.append(batch.expect("it is the schema's column")))?;
        }
        block_on(writer.commit())?;
        block_on(engine.move_rows(object, AeuId(1), AeuId(0), rows as u64))?;
        Ok(Filled { engine, object })
    }

    /// A count of the lower half of the values.
    fn scan(&self, strategy: NumaStrategy) -> Result<Scanned, CopyBenchError> {
        let bound = Scalar {
            data_type: Type::Int64,
            value: Value::Integer(1 << (WIDTH - 1)),
        };
        let count = Aggregate {
            function: AggregateFunction::Count,
            input: None,
            filter: None,
            state: Type::Int64,
        };
        let fragment = Fragment {
            object: self.object,
            snapshot: self.engine.snapshot(),
            order: None,
            columns: vec![ColumnId(0)],
            filter: vec![Expr::Binary {
                op: BinaryOp::Lt,
                left: Box::new(Expr::Column(0)),
                right: Box::new(Expr::Literal(bound)),
            }],
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Groups {
                keys: Vec::new(),
                aggregates: vec![count],
            },
            options: ScanOptions {
                strategy,
                ..ScanOptions::default()
            },
        };
        let began = Instant::now();
        let mut execution = self.engine.execute(Arc::new(fragment), 1)?;
        let mut stream = execution.streams.remove(0);
        while let Some(batch) = block_on(stream.next()) {
            batch?;
        }
        let nanoseconds = began.elapsed().as_nanos() as f64;
        drop(stream);
        let report: FragmentReport = (execution.report)();
        let helpers = report.workers.iter().filter(|worker| worker.node == 1);
        Ok(Scanned {
            nanoseconds,
            passed: report.workers.iter().map(|worker| worker.rows_passed).sum(),
            helped: helpers.map(|worker| worker.rows_scanned).sum(),
        })
    }
}
