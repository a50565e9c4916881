//! Pure functions over slices: unpack, compare, probe, select, aggregate; one file per instruction set.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column ─ [kernels]
//!
//!   packed · positions · plain · runs · mask   what a caller sees: methods of the token `Isa`, checked slices
//!        │ one `match` per call, over as many vectors as the caller has
//!   portable │ avx2 │ avx512   what runs
//!        │       └─ x86 ┘       what the two have in common
//!        └───────┴──────┘
//!            layout            where a packed value lies
//! ```
//!
//! Kernels never allocate, keep no state, and know no column, encoding, null, chunk or Arrow array: only
//! words and numbers. What the plain code in `portable` computes is the definition; every other
//! instruction set is tested against it.
//!
//! # Vectors, masks and packing
//!
//! A *vector* is [`VECTOR`] = 1,024 values; a *mask* of a vector is [`MASK_WORDS`] = 16 words, bit `i % 64` of word `i
//! / 64` standing for row `i`. Packed at `w` bits (0 to 64) a vector takes `16 * w` words. It is cut into `L = 1024 /
//! T` *lanes* of `T` bits, `T` being the smallest of 8, 16, 32, 64 that holds `w`. Value `i` belongs to lane `i % L`,
//! where it is number `i / L`. Each lane is a stream of bits, lowest first, in words of `T` bits that are interleaved
//! with those of the other lanes:
//!
//! ```text
//! w = 3, T = 8, L = 128:    byte 0 of lane l = words[l], byte 1 = words[128 + l], byte 2 = words[256 + l]
//!
//!   byte 0:  2 2 1 1 1 0 0 0    bits 7..0; digit = number of the value in the lane (its row)
//!   byte 1:  5 4 4 4 3 3 3 2    row 2 lies across two bytes, in every lane alike
//!   byte 2:  7 7 7 6 6 6 5 5
//!
//! row r of all lanes = values r*128 .. r*128+128, so unpacking row after row gives natural order, and each
//! step (load, shift, mask) is the same for all lanes: one SIMD operation over consecutive bytes.
//! ```
//!
//! The idea is FastLanes' (Afroozeh and Boncz, PVLDB 16(9), 2023) without its transposed order.

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod condition;
mod isa;
mod layout;
mod mask;
mod packed;
mod plain;
mod portable;
mod positions;
mod ranges;
mod runs;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use ahead::prefetch;
pub use isa::Isa;
pub use layout::pack;
pub use mask::{and, and_not, not, or};
pub use positions::{SPARE_POSITIONS, popcount};
pub use ranges::{PassedValues, RangeTest};

/// Values in a vector.
pub const VECTOR: usize = 1024;

/// Words in the mask of a vector.
pub const MASK_WORDS: usize = VECTOR / 64;
