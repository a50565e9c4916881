//! What each kernel costs on each instruction set, in cycles a row and GB/s, beside the machine's read bandwidth
//! measured in the same run.
//!
//! ```text
//! cargo run --release -p eris-kernels --example kernels [part of a kernel's name] [width ...]
//! ```
//!
//! Each number is the least of some rounds: on a shared machine, the cost of the code and not of its neighbours.
//! Cycles are those of a chain of dependent one-cycle operations, timed before each line.

use eris_kernels::{Isa, MASK_WORDS, PassedValues, RangeTest, VECTOR, pack};
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

const WIDTHS: &[u8] = &[
    1, 3, 4, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48, 63, 64,
];
/// In cache: 8 vectors are 8 KiB of bytes, 64 KiB of 64-bit values.
const CACHED: usize = 8;
/// From memory: far more than any cache.
const MEMORY_BYTES: usize = 192 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let name = arguments
        .next_if(|a| a.parse::<u8>().is_err())
        .unwrap_or_default();
    let mut widths: Vec<u8> = arguments
        .map(|a| a.parse().expect("a width, 1 to 64"))
        .collect();
    if widths.is_empty() {
        widths = WIDTHS.to_vec();
    }
    println!(
        "clock {:.2} GHz, read bandwidth {:.1} GB/s, one core",
        gigahertz(),
        read_bandwidth()
    );
    let isas: Vec<Isa> = Isa::supported().collect();

    let heading = |title: &str| {
        let names: String = isas
            .iter()
            .map(|isa| format!("{:>10}", isa.name()))
            .collect();
        println!("\n{title}\n{:>24}{names}", "");
    };
    let wanted = |kernel: &str| kernel.contains(&name);

    for kernel in PACKED.iter().filter(|kernel| wanted(kernel.name)) {
        heading(&format!("{}, cycles/row in cache", kernel.name));
        for &width in widths.iter().filter(|&&width| width <= kernel.max_width) {
            let data = Data::new(width, CACHED);
            line(&format!("width {width}"), &isas, |isa| {
                cycles_per_row(CACHED * VECTOR, || (kernel.run)(isa, &data))
            });
        }
    }
    if wanted("memory") {
        heading("count_between, GB/s from memory");
        for &width in &widths {
            let data = Data::new(width, MEMORY_BYTES / (128 * width as usize));
            let bytes = (data.words().len() * 8) as f64;
            line(&format!("width {width}"), &isas, |isa| {
                bytes / least_nanoseconds(5, || count(isa, &data))
            });
        }
        heading("plain values, GB/s from memory");
        plain_from_memory(&isas);
    }
    if wanted("plain") {
        heading("plain values, cycles/row in cache");
        plain_in_cache(&isas);
    }
}

fn line(label: &str, isas: &[Isa], measure: impl Fn(Isa) -> f64) {
    let numbers: String = isas
        .iter()
        .map(|&isa| format!("{:>10.3}", measure(isa)))
        .collect();
    println!("{label:>24}{numbers}");
}

/// On a cache line of its own, as the node's memory is in the database.
#[repr(align(64))]
struct CacheLine<T>(T);

struct Data {
    width: u8,
    /// The packed words from `skip` on begin on a cache line.
    store: Vec<u64>,
    skip: usize,
    /// Masks with all, 50, 10, 3 and 1 per cent of their bits set.
    masks: [Vec<u64>; 5],
    lo: u64,
    hi: u64,
}

const SELECTED: [f64; 5] = [1.0, 0.5, 0.1, 0.03, 0.01];

impl Data {
    fn new(width: u8, vectors: usize) -> Self {
        let mut next = numbers();
        let max = u64::MAX >> (64 - width as u32);
        let mut store = vec![0; vectors * 16 * width as usize + 8];
        let skip = store.as_ptr().align_offset(64);
        let words = &mut store[skip..][..vectors * 16 * width as usize];
        let mut values = [0; VECTOR];
        // A few vectors of random values, repeated, are random enough.
        let mut packed = vec![0; 64 * 16 * width as usize];
        for out in packed.chunks_exact_mut(16 * width as usize) {
            values.fill_with(|| next() & max);
            pack(&values, width, out);
        }
        for out in words.chunks_mut(packed.len()) {
            out.copy_from_slice(&packed[..out.len()]);
        }
        let masks = SELECTED.map(|part| {
            let mut bit = |i| ((next() as f64) < part * u64::MAX as f64) as u64 * (1u64 << i);
            (0..vectors.min(64) * MASK_WORDS)
                .map(|_| (0..64).map(&mut bit).sum())
                .collect()
        });
        Data {
            width,
            store,
            skip,
            masks,
            lo: max / 5,
            hi: max / 2,
        }
    }

    fn words(&self) -> &[u64] {
        &self.store[self.skip..][..self.store.len() - 8]
    }

    fn vectors(&self) -> impl Iterator<Item = &[u64]> {
        self.words().chunks_exact(16 * self.width as usize)
    }
}

/// splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn numbers() -> impl FnMut() -> u64 {
    let mut seed = 1u64;
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

struct Kernel {
    name: &'static str,
    max_width: u8,
    run: fn(Isa, &Data),
}

const PACKED: &[Kernel] = &[
    Kernel {
        name: "count_between",
        max_width: 64,
        run: count,
    },
    Kernel {
        name: "between",
        max_width: 64,
        run: |isa, d| between(isa, d),
    },
    Kernel {
        name: "between_and",
        max_width: 64,
        run: |isa, d| between_and(isa, d),
    },
    Kernel {
        name: "eight between_and, one after the other",
        max_width: 64,
        run: |isa, d| (0..8).for_each(|_| between_and(isa, d)),
    },
    Kernel {
        name: "between_each of eight",
        max_width: 64,
        run: |isa, d| between_each(isa, d, 8),
    },
    Kernel {
        name: "between_each of two",
        max_width: 64,
        run: |isa, d| between_each(isa, d, 2),
    },
    Kernel {
        name: "between_each of one",
        max_width: 64,
        run: |isa, d| between_each(isa, d, 1),
    },
    Kernel {
        name: "count_each of eight",
        max_width: 64,
        run: |isa, d| count_each(isa, d, 8),
    },
    Kernel {
        name: "unpack",
        max_width: 64,
        run: unpack,
    },
    Kernel {
        name: "unpack_u32",
        max_width: 32,
        run: unpack_u32,
    },
    Kernel {
        name: "probe_and, 256 bits",
        max_width: 64,
        run: |i, d| probe(i, d, 4, 0),
    },
    Kernel {
        name: "probe_and, 2,560 bits",
        max_width: 64,
        run: |i, d| probe(i, d, 40, 0),
    },
    Kernel {
        name: "probe_and, 8,192 bits",
        max_width: 64,
        run: |i, d| probe(i, d, 128, 0),
    },
    Kernel {
        name: "probe_and, 16 KiB",
        max_width: 64,
        run: |i, d| probe(i, d, 2 << 10, 0),
    },
    Kernel {
        name: "probe_and, 256 KiB",
        max_width: 64,
        run: |i, d| probe(i, d, 32 << 10, 0),
    },
    Kernel {
        name: "probe_and, 16 KiB, 10 % left",
        max_width: 64,
        run: |i, d| probe(i, d, 2 << 10, 2),
    },
    Kernel {
        name: "probe_and, 16 KiB, 3 % left",
        max_width: 64,
        run: |i, d| probe(i, d, 2 << 10, 3),
    },
    Kernel {
        name: "probe_and, 16 KiB, 1 % left",
        max_width: 64,
        run: |i, d| probe(i, d, 2 << 10, 4),
    },
    Kernel {
        name: "gather_packed of 50 %",
        max_width: 64,
        run: |isa, d| gather(isa, d, 1),
    },
    Kernel {
        name: "gather_packed of 10 %",
        max_width: 64,
        run: |isa, d| gather(isa, d, 2),
    },
    Kernel {
        name: "gather_packed of 3 %",
        max_width: 64,
        run: |isa, d| gather(isa, d, 3),
    },
    Kernel {
        name: "gather_packed of 1 %",
        max_width: 64,
        run: |isa, d| gather(isa, d, 4),
    },
];

fn count(isa: Isa, d: &Data) {
    black_box(isa.count_between(d.width, black_box(d.words()), d.lo, d.hi));
}

fn between(isa: Isa, d: &Data) {
    let mut masks = [0; CACHED * MASK_WORDS];
    isa.between(
        d.width,
        black_box(d.words()),
        d.lo,
        d.hi,
        black_box(&mut masks),
    );
}

fn between_and(isa: Isa, d: &Data) {
    let mut masks: [u64; CACHED * MASK_WORDS] = d.masks[1][..].try_into().unwrap();
    isa.between_and(
        d.width,
        black_box(d.words()),
        d.lo,
        d.hi,
        black_box(&mut masks),
    );
}

fn between_each(isa: Isa, d: &Data, ranges: u64) {
    let before: [u64; CACHED * MASK_WORDS] = d.masks[1][..].try_into().unwrap();
    let mut masks = vec![before; ranges as usize];
    let test = |(i, masks)| RangeTest {
        lo: d.lo + i as u64,
        hi: d.hi,
        outside: false,
        passed: PassedValues::Kept(masks),
    };
    let masks = masks.iter_mut().map(|masks| &mut masks[..]);
    let mut tests: Vec<RangeTest<'_>> = masks.enumerate().map(test).collect();
    let words = black_box(d.words());
    isa.between_each(d.width, words, CACHED, black_box(&mut tests));
}

fn count_each(isa: Isa, d: &Data, ranges: usize) {
    let mut counts = vec![0; ranges];
    let test = |count| RangeTest {
        lo: d.lo,
        hi: d.hi,
        outside: false,
        passed: PassedValues::Counted(count),
    };
    let mut tests: Vec<RangeTest<'_>> = counts.iter_mut().map(test).collect();
    let words = black_box(d.words());
    isa.between_each(d.width, words, CACHED, black_box(&mut tests));
}

fn unpack(isa: Isa, d: &Data) {
    let mut out = CacheLine([0; VECTOR]);
    for words in d.vectors() {
        isa.unpack(d.width, black_box(words), 77, black_box(&mut out.0));
    }
}

fn unpack_u32(isa: Isa, d: &Data) {
    let mut out = CacheLine([0; VECTOR]);
    for words in d.vectors() {
        isa.unpack_u32(d.width, black_box(words), black_box(&mut out.0));
    }
}

/// The bitmap covers the middle half of the values, or as many as it has bits for.
fn probe(isa: Isa, d: &Data, bitmap_words: usize, mask: usize) {
    thread_local!(static BITMAP: Vec<u64> = {
        let mut next = numbers();
        (0..32 << 10).map(|_| next()).collect()
    });
    let first = (u64::MAX >> (64 - d.width as u32)) / 4;
    let mut masks: [u64; CACHED * MASK_WORDS] = d.masks[mask][..].try_into().unwrap();
    BITMAP.with(|bitmap| {
        let bitmap = black_box(&bitmap[..bitmap_words]);
        isa.probe_and(
            d.width,
            black_box(d.words()),
            bitmap,
            first,
            black_box(&mut masks),
        );
    });
}

fn gather(isa: Isa, d: &Data, mask: usize) {
    let mut out = CacheLine([0; VECTOR]);
    for (words, mask) in d.vectors().zip(d.masks[mask].chunks_exact(MASK_WORDS)) {
        let mask = black_box(mask.try_into().unwrap());
        black_box(isa.gather_packed(d.width, black_box(words), 77, mask, black_box(&mut out.0)));
    }
}

fn plain_in_cache(isas: &[Isa]) {
    let values = CacheLine(std::array::from_fn(|i| i as i64 * 3));
    let narrow = CacheLine(std::array::from_fn(|i| i as u32));
    let floats = CacheLine(values.0.map(|v| v as f64));
    let d = Data::new(8, CACHED);
    let mut masks = [0; MASK_WORDS];
    let mut out = CacheLine([0; VECTOR]);
    let (wide, thin) = (
        RefCell::new(CacheLine([0; VECTOR])),
        RefCell::new(CacheLine([0; VECTOR])),
    );
    let measure = |f: &mut dyn FnMut()| cycles_per_row(VECTOR, f);
    let (values, narrow, floats) = (
        black_box(&values.0),
        black_box(&narrow.0),
        black_box(&floats.0),
    );
    type Run<'a> = (String, Box<dyn FnMut(Isa) + 'a>);
    let mut runs: Vec<Run> = vec![
        (
            "between_i64".into(),
            Box::new(|isa| isa.between_i64(values, 1, 900, black_box(&mut masks))),
        ),
        (
            "sum_i64".into(),
            Box::new(|isa| _ = black_box(isa.sum_i64(values))),
        ),
        (
            "min_max_i64".into(),
            Box::new(|isa| _ = black_box(isa.min_max_i64(values))),
        ),
        (
            "sum_f64".into(),
            Box::new(|isa| _ = black_box(isa.sum_f64(floats))),
        ),
    ];
    for (part, masks) in SELECTED.iter().zip(&d.masks) {
        let mask: &[u64; MASK_WORDS] = black_box(masks[..MASK_WORDS].try_into().unwrap());
        let per_cent = part * 100.0;
        runs.push((
            format!("select_i64, {per_cent} %"),
            Box::new(|isa| {
                _ = black_box(isa.select_i64(values, mask, &mut black_box(wide.borrow_mut()).0))
            }),
        ));
        runs.push((
            format!("select_u32, {per_cent} %"),
            Box::new(|isa| {
                _ = black_box(isa.select_u32(narrow, mask, &mut black_box(thin.borrow_mut()).0))
            }),
        ));
        runs.push((
            format!("expand_i64, {per_cent} %"),
            Box::new(|isa| {
                _ = black_box(isa.expand_i64(values, mask, 0, &mut black_box(wide.borrow_mut()).0))
            }),
        ));
    }
    runs.push((
        "unpack_one".into(),
        Box::new(|_| {
            for (i, out) in out.0.iter_mut().enumerate() {
                *out = Isa::unpack_one(8, d.words(), i * 5 % VECTOR);
            }
            black_box(&mut out.0);
        }),
    ));
    for (label, mut run) in runs {
        let numbers: String = isas
            .iter()
            .map(|&isa| format!("{:>10.3}", measure(&mut || run(isa))))
            .collect();
        println!("{label:>24}{numbers}");
    }
}

fn plain_from_memory(isas: &[Isa]) {
    let values = vec![3i64; MEMORY_BYTES / 8];
    let floats = vec![0.5; MEMORY_BYTES / 8];
    let singles = vec![0.5f32; MEMORY_BYTES / 4];
    let masks = RefCell::new(vec![0; singles.len() / 64]);
    let short = values.len() / 64;
    let gbs = |f: &dyn Fn()| MEMORY_BYTES as f64 / least_nanoseconds(5, f);
    line("between_i64", isas, |isa| {
        gbs(&|| isa.between_i64(&values, 1, 2, &mut masks.borrow_mut()[..short]))
    });
    line("between_f64", isas, |isa| {
        gbs(&|| isa.between_f64(&floats, 1., 2., &mut masks.borrow_mut()[..short]))
    });
    line("between_f32", isas, |isa| {
        gbs(&|| isa.between_f32(&singles, 1., 2., &mut masks.borrow_mut()))
    });
    line("sum_i64", isas, |isa| {
        gbs(&|| _ = black_box(isa.sum_i64(&values)))
    });
    line("min_max_i64", isas, |isa| {
        gbs(&|| _ = black_box(isa.min_max_i64(&values)))
    });
    line("sum_f64", isas, |isa| {
        gbs(&|| _ = black_box(isa.sum_f64(&floats)))
    });
}

fn cycles_per_row(rows: usize, mut run: impl FnMut()) -> f64 {
    // Long enough for the clock, short enough to fit between two interruptions.
    let repeat = (1 << 17) / rows;
    let round = || (0..repeat).for_each(|_| run());
    least_nanoseconds(25, round) * gigahertz() / (repeat * rows) as f64
}

fn least_nanoseconds(rounds: usize, mut run: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64
    };
    (0..=rounds).map(round).fold(f64::INFINITY, f64::min)
}

/// Cycles a nanosecond: `(x ^ a) + b` takes two cycles and cannot be shortened.
fn gigahertz() -> f64 {
    const STEPS: usize = 20_000;
    let (a, b) = black_box((0x5555, 7u64));
    let nanoseconds = least_nanoseconds(30, || {
        black_box((0..STEPS).fold(1u64, |x, _| (x ^ a).wrapping_add(b)));
    });
    2.0 * STEPS as f64 / nanoseconds
}

fn read_bandwidth() -> f64 {
    let words = vec![1u64; MEMORY_BYTES / 8];
    let nanoseconds = least_nanoseconds(10, || {
        black_box(words.iter().fold(0, |all, word| all ^ word));
    });
    MEMORY_BYTES as f64 / nanoseconds
}
