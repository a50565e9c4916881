//! Programs that run over chunks together, against the same programs one by one: the same batches bit by bit, the same
//! errors, the same counts.

mod common;

use arrow_array::RecordBatch;
use common::random::{Generator, binary};
use common::table::{SNAPSHOT, Table, columns};
use common::{Rng, finish, seeds};
use eris_exec::{Member, Partial, Program, Work, run_together};
use eris_fragment::*;
use eris_numa::Budget;
use eris_store::{ChunkView, DeleteVector};
use eris_types::{ColumnId, ObjectId, Timestamp};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A fragment over few columns, so that several have tests on the same ones.
fn simple(rng: &mut Rng) -> Fragment {
    let all = columns();
    let few = *rng.pick(&[&[3, 4][..], &[3], &[3, 4, 16, 13, 10], &[2, 11, 7, 17, 0]]);
    let ids: Vec<usize> = few.to_vec();
    let types: Vec<Type> = ids
        .iter()
        .map(|&id| (&all[id].1).try_into().unwrap())
        .collect();
    let conditions = rng.below(4);
    let mut generator = Generator { rng, types };
    let filter: Vec<Expr> = (0..conditions)
        .map(|_| {
            let column = generator.rng.below(generator.types.len());
            let data_type = generator.types[column].clone();
            let ops = [
                BinaryOp::Lt,
                BinaryOp::LtEq,
                BinaryOp::Gt,
                BinaryOp::GtEq,
                BinaryOp::NotEq,
                BinaryOp::Eq,
            ];
            let op = *generator.rng.pick(&ops);
            let other = Expr::Literal(generator.literal(&data_type));
            let compared = binary(op, Expr::Column(column), other);
            match generator.rng.one_in(4) {
                true => {
                    let null = Expr::IsNull(Box::new(Expr::Column(column)));
                    binary(BinaryOp::Or, null, compared)
                }
                false => compared,
            }
        })
        .collect();
    let output = match generator.rng.below(4) {
        0 => Output::Rows {
            columns: (0..generator.types.len()).map(Expr::Column).collect(),
            limit: generator.rng.one_in(2).then_some(300),
        },
        1 => Output::Groups {
            keys: vec![],
            aggregates: vec![generator.aggregate()],
        },
        _ => Output::Groups {
            keys: vec![],
            aggregates: vec![Aggregate {
                function: AggregateFunction::Count,
                input: None,
                filter: None,
                state: Type::Int64,
            }],
        },
    };
    Fragment {
        object: ObjectId(1),
        snapshot: SNAPSHOT,
        order: None,
        options: ScanOptions::default(),
        columns: ids.into_iter().map(|id| ColumnId(id as u32)).collect(),
        filter,
        probes: vec![],
        lookups: vec![],
        output,
    }
}

/// The chunk as a snapshot sees it: with deleted rows of its own, and now and then some rows that an index has led to.
fn seen(view: &ChunkView, snapshot: Timestamp, rng: &mut Rng) -> ChunkView {
    let mut view = view.clone();
    let rows = view.chunk.rows();
    view.deleted = match rng.below(3) {
        0 => None,
        _ => {
            let mut deletes = DeleteVector::default();
            let deleted = (0..rows).filter(|_| rng.one_in(5)).collect();
            let budget = Budget::new(1 << 20);
            deletes.delete(rows, deleted, Timestamp(2), Timestamp::ZERO, &budget);
            deletes.at(snapshot).cloned()
        }
    };
    view.rows = None;
    if rng.one_in(6) {
        let share = *rng.pick(&[2, 50, 300]);
        let wanted = (0..rows as u32).filter(|_| rng.one_in(share));
        view.rows = Some(wanted.collect::<Vec<_>>().into());
    }
    view
}

/// Batches, or what went wrong.
type Answer = Result<Vec<RecordBatch>, String>;

fn said(result: Result<Vec<RecordBatch>, FragmentError>) -> Answer {
    result.map_err(|error| error.to_string())
}

/// A program with two shares: one that runs with others, and one that runs alone.
struct Pair {
    program: Program,
    snapshot: Timestamp,
    together: Partial,
    alone: Partial,
    work: (Work, Work),
    failed: bool,
}

impl Pair {
    fn new(fragment: &Fragment, table: &Table) -> Self {
        let program = Program::compile(fragment, &table.schema, &table.dictionaries).unwrap();
        Pair {
            together: program.start(),
            alone: program.start(),
            program,
            snapshot: fragment.snapshot,
            work: Default::default(),
            failed: false,
        }
    }

    /// Compares what both shares have come to.
    fn compare(&mut self, what: &dyn Fn() -> String) {
        assert_eq!(self.work.0.bytes, self.work.1.bytes, "{}", what());
        let shared = self.work.0.bytes_shared;
        let same = Work {
            bytes_shared: shared,
            ..self.work.1
        };
        assert_eq!(self.work.0, same, "{}", what());
        assert_eq!(self.together.phases(), self.alone.phases(), "{}", what());
        assert_eq!(self.together.groups(), self.alone.groups(), "{}", what());
        while self.alone.is_midway() && !self.failed {
            let one = said(self.program.go_on(&mut self.alone));
            let other = said(self.program.go_on(&mut self.together));
            self.failed = one.is_err();
            assert_eq!(one, other, "{}", what());
        }
        assert!(self.failed || !self.together.is_midway(), "{}", what());
    }
}

fn check(seed: u64, outcomes: &mut HashMap<&'static str, u64>) {
    let mut rng = Rng(seed);
    let table = Table::random(&mut rng);
    let similar = rng.one_in(2);
    let members = 1 + rng.below(11);
    let fragments: Vec<Fragment> = (0..members)
        .map(|_| {
            let mut fragment = match similar || rng.one_in(2) {
                true => simple(&mut rng),
                false => Generator::fragment(&mut rng),
            };
            fragment.snapshot = Timestamp(*rng.pick(&[2, 10, 10, 15]));
            fragment
        })
        .collect();
    let what = || format!("ERIS_SEED={seed}\n{fragments:#?}");
    let mut pairs: Vec<Pair> = fragments
        .iter()
        .map(|fragment| Pair::new(fragment, &table))
        .collect();
    for _ in 0..2 {
        for chunk in &table.chunks {
            let mut views = Vec::new();
            let mut alone = Vec::new();
            for pair in &mut pairs {
                let view = seen(&chunk.view, pair.snapshot, &mut rng);
                let takes_part = !pair.failed && !rng.one_in(5);
                views.push(takes_part.then_some(view));
            }
            for (pair, view) in pairs.iter_mut().zip(&views) {
                alone.push(
                    view.as_ref()
                        .map(|view| (pair.program).run(view, &mut pair.alone, &mut pair.work.1)),
                );
            }
            let mut members = Vec::new();
            for (pair, view) in pairs.iter_mut().zip(&views) {
                if let Some(view) = view {
                    let (program, partial) = (&pair.program, &mut pair.together);
                    members.push(Member::new(program, view, partial, &mut pair.work.0));
                }
            }
            run_together(&mut members);
            let together: Vec<_> = members.into_iter().map(|member| member.outcome).collect();
            let taking_part = pairs.iter_mut().zip(alone);
            let taking_part = taking_part.filter_map(|(pair, alone)| Some((pair, alone?)));
            for ((pair, alone), together) in taking_part.zip(together) {
                let together = together.unwrap_or_else(|_| panic!("it panicked: {}", what()));
                pair.failed = alone.is_err();
                assert_eq!(said(together), said(alone), "{}", what());
                pair.compare(&what);
            }
        }
    }
    for pair in pairs {
        let shared = pair.work.0.bytes_shared;
        *outcomes.entry("shared bytes").or_default() += u64::from(shared > 0);
        if pair.failed {
            *outcomes.entry("failed").or_default() += 1;
            continue;
        }
        let (together, alone) = (
            said(finish(&pair.program, pair.together)),
            said(finish(&pair.program, pair.alone)),
        );
        assert_eq!(together, alone, "{}", what());
        *outcomes.entry("finished").or_default() += 1;
    }
}

#[test]
fn programs_together_are_programs_one_by_one() {
    let mut outcomes = HashMap::new();
    let seeds = seeds(2_000);
    for &seed in &seeds {
        check(seed, &mut outcomes);
    }
    println!("{outcomes:?}");
    if seeds.len() > 1 {
        for outcome in ["finished", "failed", "shared bytes"] {
            assert!(outcomes[outcome] > seeds.len() as u64 / 8, "{outcomes:?}");
        }
    }
}

#[test]
fn a_panic_is_that_of_its_member() {
    let mut tables = (1..).map(|seed| Table::random(&mut Rng(seed)));
    let has_text = |table: &Table| {
        let chunk = &table.chunks[0].view.chunk;
        chunk.column(ColumnId(14)).nulls() < chunk.rows()
    };
    let table = tables.find(has_text).unwrap();
    let count = |column: u32, literal: Scalar| Fragment {
        columns: vec![ColumnId(column)],
        filter: vec![binary(
            BinaryOp::Gt,
            Expr::Column(0),
            Expr::Literal(literal),
        )],
        output: Output::Groups {
            keys: vec![],
            aggregates: vec![Aggregate {
                function: AggregateFunction::Count,
                input: None,
                filter: None,
                state: Type::Int64,
            }],
        },
        ..simple(&mut Rng(2))
    };
    let number = |value| Scalar {
        data_type: Type::Int32,
        value: Value::Integer(value),
    };
    let compile = |fragment: &Fragment| {
        Program::compile(fragment, &table.schema, &table.dictionaries).unwrap()
    };
    let program = compile(&count(3, number(0)));
    // It takes a column of text for numbers.
    let mut schema = table.schema.fields().to_vec();
    schema.swap(3, 14);
    let wrong = Program::compile(
        &Fragment {
            columns: vec![ColumnId(14)],
            ..count(3, number(0))
        },
        &arrow_schema::Schema::new(schema),
        &vec![None; table.dictionaries.len()],
    )
    .unwrap();
    let view = &table.chunks[0].view;
    let (mut first, mut second, mut third) = (program.start(), wrong.start(), program.start());
    let mut works = [Work::default(); 3];
    let [a, b, c] = &mut works;
    let mut members = [
        Member::new(&program, view, &mut first, a),
        Member::new(&wrong, view, &mut second, b),
        Member::new(&program, view, &mut third, c),
    ];
    run_together(&mut members);
    let outcomes = members.map(|member| member.outcome.is_ok());
    assert_eq!(outcomes, [true, false, true]);
    let mut alone = program.start();
    let ran = program.run(view, &mut alone, &mut Work::default());
    assert!(ran.is_ok());
    let expected = said(finish(&program, alone));
    for partial in [first, third] {
        assert_eq!(said(finish(&program, partial)), expected);
    }
    let run = || wrong.run(view, &mut wrong.start(), &mut Work::default());
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}
