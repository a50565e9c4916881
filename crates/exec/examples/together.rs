//! What several programs over the same chunks cost together, beside one by one and beside the least that is possible.
//!
//! ```text
//! cargo run --release -p eris-exec --example together [part of a case's name] [threads] [programs]
//!
//! one        a program alone over all chunks, which come from memory
//! in turn    each chunk for one program after the other, as slices of a pass take it
//! together   each chunk for all programs at once
//! cached     all programs over a small chunk that stays in the second-level cache
//! least      the bytes read once, at the bandwidth measured beside it, and then what the programs cost cached; for
//!            counts, the comparisons of values in the first-level cache
//! ```
//!
//! Numbers are nanoseconds a row and thread, of all programs; the least of some rounds in which all ways take turns. On
//! a shared machine that is the cost of the code and not of its neighbours.

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, Schema};
use eris_column::{ColumnChunk, ObjectMemory};
use eris_exec::{Member, Partial, Program, Work, run_together};
use eris_fragment::*;
use eris_kernels::{Isa, PassedValues, RangeTest, VECTOR, pack};
use eris_numa::{HugePages, Memory, Topology};
use eris_store::{Chunk, ChunkView, InsertedRun, RowIds};
use eris_types::{ColumnId, NodeId, ObjectId, RowId, Timestamp};
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::Instant;

const ROWS: usize = 65_536;
/// Encoded bytes of all chunks of a thread: far more than any cache.
const BYTES: usize = 192 << 20;
const ROUNDS: usize = 9;
/// Rows of the chunk that stays in a cache.
const CACHED_ROWS: usize = 16_384;

/// What a case scans, and how.
struct Case {
    name: &'static str,
    /// Bits of each column.
    widths: &'static [u8],
    fragment: fn(usize) -> Fragment,
}

const CASES: &[Case] = &[
    Case {
        name: "count, 4 bits",
        widths: &[4],
        fragment: |number| fragment(vec![between(0, 4, number)], count()),
    },
    Case {
        name: "count, 13 bits",
        widths: &[13],
        fragment: |number| fragment(vec![between(0, 13, number)], count()),
    },
    Case {
        name: "count, 32 bits",
        widths: &[32],
        fragment: |number| fragment(vec![between(0, 32, number)], count()),
    },
    Case {
        name: "count, 63 bits",
        widths: &[63],
        fragment: |number| fragment(vec![between(0, 63, number)], count()),
    },
    Case {
        name: "count, 4 or 63 bits",
        widths: &[4, 63],
        fragment: |number| match number % 2 {
            0 => fragment(vec![between(0, 4, number)], count()),
            _ => fragment(vec![between(1, 63, number)], count()),
        },
    },
    Case {
        name: "count, 4 and 63 bits",
        widths: &[4, 63],
        fragment: |number| fragment(vec![between(0, 4, number), between(1, 63, number)], count()),
    },
    Case {
        name: "sum, filter 63 bits, sum 24",
        widths: &[63, 24],
        fragment: |number| fragment(vec![between(0, 63, number)], sum(1)),
    },
    Case {
        name: "sum, filter 13 bits, sum 63",
        widths: &[13, 63],
        fragment: |number| fragment(vec![between(0, 13, number)], sum(1)),
    },
    Case {
        name: "sum, filter 63 bits, sum 63",
        widths: &[63, 63],
        fragment: |number| fragment(vec![between(0, 63, number)], sum(1)),
    },
    Case {
        name: "three sums, 63 bits each",
        widths: &[63, 63, 63],
        fragment: |number| fragment(vec![between(number % 3, 63, number)], sums(&[0, 1, 2])),
    },
    Case {
        name: "counts, sums, groups",
        widths: &[4, 24, 63],
        fragment: |number| match number % 4 {
            0 => fragment(vec![between(0, 4, number)], count()),
            1 => fragment(vec![between(0, 4, number), between(1, 24, 7)], sum(2)),
            2 => fragment(vec![between(1, 24, number)], by(0, 2)),
            _ => fragment(vec![between(2, 63, number)], sum(1)),
        },
    },
    Case {
        name: "sum of 63 bits by 4 bits",
        widths: &[13, 63, 4],
        fragment: |number| fragment(vec![between(0, 13, number)], by(2, 1)),
    },
];

/// A range of a few per cent to a half of the values of a column, another one for each number.
fn between(column: usize, width: u8, number: usize) -> Expr {
    let (values, number) = (1i128 << width, number % 8);
    let low = values * number as i128 / 20;
    let high = low + values * (1 + number as i128) / 18;
    let compare = |op, value| Expr::Binary {
        op,
        left: Box::new(Expr::Column(column)),
        right: Box::new(Expr::Literal(Scalar {
            data_type: Type::Int64,
            value: Value::Integer(value),
        })),
    };
    Expr::Binary {
        op: BinaryOp::And,
        left: Box::new(compare(BinaryOp::GtEq, low)),
        right: Box::new(compare(BinaryOp::LtEq, high)),
    }
}

fn aggregate(function: AggregateFunction, input: Option<usize>) -> Aggregate {
    Aggregate {
        function,
        input: input.map(Expr::Column),
        filter: None,
        state: Type::Int64,
    }
}

fn count() -> Output {
    Output::Groups {
        keys: vec![],
        aggregates: vec![aggregate(AggregateFunction::Count, None)],
    }
}

fn sum(column: usize) -> Output {
    sums(&[column])
}

fn sums(columns: &[usize]) -> Output {
    by_keys(vec![], columns)
}

fn by(key: usize, column: usize) -> Output {
    by_keys(vec![Expr::Column(key)], &[column])
}

fn by_keys(keys: Vec<Expr>, columns: &[usize]) -> Output {
    let sum = |&column: &usize| aggregate(AggregateFunction::Sum, Some(column));
    Output::Groups {
        keys,
        aggregates: columns.iter().map(sum).collect(),
    }
}

fn fragment(filter: Vec<Expr>, output: Output) -> Fragment {
    Fragment {
        object: ObjectId(0),
        snapshot: Timestamp(1),
        order: None,
        options: ScanOptions::default(),
        columns: (0..3).map(ColumnId).collect(),
        filter,
        probes: vec![],
        lookups: vec![],
        output,
    }
}

fn random(seed: u64, row: usize) -> u64 {
    let mixed = (row as u64 ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

/// Chunks of random values in memory of their own, of so many rows, that take so many bytes.
fn chunks(widths: &[u8], rows: usize, bytes: usize, memory: &Memory) -> Vec<ChunkView> {
    let node = memory.node(NodeId(0));
    let home = ObjectMemory {
        memory: &node,
        object: ObjectId(0),
    };
    let bits: usize = widths.iter().map(|&width| usize::from(width)).sum();
    let chunks = (bytes / (rows / 8 * bits)).max(1);
    let chunk = |number: usize| {
        let column = |(seed, &width): (usize, &u8)| {
            let value = |row| (random(seed as u64, number * rows + row) >> (64 - width)) as i64;
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(value)));
            ColumnChunk::encode(&values, None, home).expect("encoded")
        };
        let columns = widths.iter().enumerate().map(column).collect();
        let inserted = InsertedRun {
            at: Timestamp(1),
            end: rows,
        };
        let ids = RowIds::from(RowId(0), rows);
        ChunkView {
            chunk: Arc::new(Chunk::new(columns, ids, vec![inserted])),
            deleted: None,
            rows: None,
        }
    };
    (0..chunks).map(chunk).collect()
}

/// Programs, each with its share.
fn start(programs: &[Program]) -> Vec<Partial> {
    programs.iter().map(Program::start).collect()
}

fn one(program: &Program, views: &[ChunkView]) {
    let mut partial = program.start();
    for view in views {
        let mut work = Work::default();
        black_box(program.run(view, &mut partial, &mut work).expect("it runs"));
    }
}

fn in_turn(programs: &[Program], views: &[ChunkView]) {
    let mut partials = start(programs);
    for view in views {
        for (program, partial) in programs.iter().zip(&mut partials) {
            let mut work = Work::default();
            black_box(program.run(view, partial, &mut work).expect("it runs"));
        }
    }
}

fn together(programs: &[Program], views: &[ChunkView]) {
    let mut partials = start(programs);
    for view in views {
        let mut works = vec![Work::default(); programs.len()];
        let members = programs.iter().zip(&mut partials).zip(&mut works);
        let members =
            members.map(|((program, partial), work)| Member::new(program, view, partial, work));
        let mut members: Vec<_> = members.collect();
        run_together(&mut members);
        for member in members {
            black_box(member.outcome.expect("no panic").expect("it runs"));
        }
    }
}

/// Nanoseconds to read the bytes of a row from memory.
fn read(words: &[i64], bytes_of_row: f64) -> f64 {
    let start = Instant::now();
    black_box(Isa::best().sum_i64(words));
    start.elapsed().as_nanos() as f64 / (words.len() * 8) as f64 * bytes_of_row
}

/// Nanoseconds a row of comparisons with so many ranges, of values that lie in the first-level cache: by one kernel
/// call for all, and by one for each.
fn compare(width: u8, ranges: usize) -> (f64, f64) {
    let per_vector = 16 * usize::from(width);
    // Half of the cache.
    let vectors = (16 << 10) / (8 * per_vector);
    let mut words = vec![0; vectors * per_vector];
    for (vector, words) in words.chunks_exact_mut(per_vector).enumerate() {
        let values = std::array::from_fn(|row| random(vector as u64, row) >> (64 - width));
        pack(&values, width, words);
    }
    let isa = Isa::best();
    let (low, high) = (1u64 << width >> 3, 1u64 << width >> 1);
    let mut counts = vec![0; ranges];
    let repeat = 256usize.div_ceil(vectors);
    let rows = (repeat * vectors * VECTOR) as f64;
    let each = |counts: &mut [u64]| {
        let test = |count| RangeTest {
            lo: low,
            hi: high,
            outside: false,
            passed: PassedValues::Counted(count),
        };
        let mut tests: Vec<_> = counts.iter_mut().map(test).collect();
        let start = Instant::now();
        for _ in 0..repeat {
            isa.between_each(width, black_box(&words), vectors, &mut tests);
        }
        start.elapsed().as_nanos() as f64 / rows
    };
    let alone = || {
        let start = Instant::now();
        for _ in 0..repeat * ranges {
            black_box(isa.count_between(width, black_box(&words), low, high));
        }
        start.elapsed().as_nanos() as f64 / rows
    };
    let rounds = (0..30).map(|_| (each(&mut counts), alone()));
    rounds.fold((f64::INFINITY, f64::INFINITY), |least, round| {
        (least.0.min(round.0), least.1.min(round.1))
    })
}

/// The least of the rounds, in which the ways take turns.
fn measure(case: &Case, members: usize, barrier: &Barrier) -> [f64; 5] {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, None).expect("memory");
    let views = chunks(case.widths, ROWS, BYTES, &memory);
    let cached = vec![chunks(case.widths, CACHED_ROWS, 0, &memory).remove(0); 64];
    let fields = (0..3).map(|number| Field::new(format!("c{number}"), DataType::Int64, false));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let programs: Vec<Program> = (0..members)
        .map(|number| {
            let mut fragment = (case.fragment)(number);
            fragment.columns.truncate(case.widths.len());
            Program::compile(&fragment, &schema, &[const { None }; 3]).expect("compiled")
        })
        .collect();
    let node = memory.node(NodeId(0));
    let mut buffer = node.allocate(ObjectId(0), BYTES).expect("memory");
    buffer.as_mut_slice::<i64>().fill(1);
    let words = buffer.as_slice::<i64>();
    let bits: usize = case.widths.iter().map(|&width| usize::from(width)).sum();
    let rows = views.len() * ROWS;
    let timed = |rows: usize, run: &dyn Fn()| {
        barrier.wait();
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / rows as f64
    };
    let mut least = [f64::INFINITY; 5];
    for _ in 0..ROUNDS {
        let round = [
            timed(rows, &|| one(&programs[(members - 1) / 2], &views)),
            timed(rows, &|| in_turn(&programs, &views)),
            timed(rows, &|| together(&programs, &views)),
            timed(64 * CACHED_ROWS, &|| together(&programs, &cached)),
            {
                barrier.wait();
                read(words, bits as f64 / 8.0)
            },
        ];
        for (least, this) in least.iter_mut().zip(round) {
            *least = least.min(this);
        }
    }
    least
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let mut number = |other| {
        let given = arguments.next();
        given.map_or(other, |given| given.parse().expect("a number"))
    };
    let (threads, members) = (number(1), number(8));
    println!(
        "ns a row, {members} programs, {threads} threads, {:?}",
        Isa::best()
    );
    println!(
        "{:>28} {:>6} {:>7} {:>8} {:>6} {:>6} {:>6} │ {:>6} {:>9} {:>8}",
        "",
        "one",
        "in turn",
        "together",
        "read",
        "cached",
        "least",
        "× one",
        "× in turn",
        "of least"
    );
    for case in CASES.iter().filter(|case| case.name.contains(&name)) {
        let barrier = Barrier::new(threads);
        let measured: Vec<[f64; 5]> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads)
                .map(|_| scope.spawn(|| measure(case, members, &barrier)))
                .collect();
            all.into_iter()
                .map(|one| one.join().expect("measured"))
                .collect()
        });
        let mean = |way: usize| {
            let all = measured.iter().map(|least| least[way]);
            all.sum::<f64>() / threads as f64
        };
        let (one, turn, all, cached, read) = (mean(0), mean(1), mean(2), mean(3), mean(4));
        let compared = match case.widths {
            [width] => Some(compare(*width, members)),
            _ => None,
        };
        let least = read + compared.map_or(cached, |(together, _)| together);
        print!(
            "{:>28} {one:>6.3} {turn:>7.3} {all:>8.3} {read:>6.3} {cached:>6.3} {least:>6.3} │ {:>6.2} {:>9.2} {:>8.2}",
            case.name,
            members as f64 * one / all,
            turn / all,
            least / all,
        );
        match compared {
            Some((each, alone)) => println!("  (compared: together {each:.3}, each {alone:.3})"),
            None => println!(),
        }
    }
}
