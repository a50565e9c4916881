//! Columns at rest: encodings, immutable chunks, dictionaries, and the predicates that run on encoded values.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ [column]·kernels
//!
//!  Arrow array ──encode──▶ ColumnChunk ──filter──▶ Selection ──gather──▶ Arrow array
//!  + Dictionary            Zone │ values │ validity        ▲
//!                            ColumnPredicate ──────────────┘   excludes(zone) · covers(zone) · words of bits
//! ```
//!
//! A [`ColumnChunk`] holds up to [`CHUNK_ROWS`] values of one column in node-local memory. Its values belong to one
//! [`Domain`], and each Arrow type maps to one in order. The caller remembers the Arrow type.
//!
//! ```text
//! constant     one value for all rows; also for "only NULLs"
//! packed(w)    value - least value, in w bits, in vectors of 1,024 (the kernels' layout); the last one padded with 0
//! run-length   packed(w) values of the runs, and the last row of each run (u16)
//! short-runs   packed(w) values of the runs, and a bit per row for where they start
//! framed       packed per vector, with a base and a width of its own
//! delta        the same, of differences from the value before
//! dictionary   text: packed numbers of strings that the chunk keeps itself
//! fsst         text: a byte for each symbol of up to eight bytes
//! plain        floats, 128-bit decimals, text that does not compress: Arrow's own layout
//! ```
//!
//! The encoding is chosen by size from one pass over the values: their range gives the width, their changes the runs,
//! their differences the frames. One that takes longer to read has to be a quarter smaller (`docs/decisions/0008`).
//! NULLs are a validity bitmap beside the values; the slot of a NULL repeats the value before it, so that it costs
//! neither width nor runs. Filters of packed values and runs never decode: they compare with shifted bounds, many
//! vectors a call; those of frames and FSST decode vector by vector into the first-level cache. Several predicates on
//! one column read its values once (`docs/decisions/0028`). Of rows that are few, whose positions are listed, values
//! are taken one by one (`docs/decisions/0018`).
//!
//! A column chunk has a *stored form*, for logs and files: its bytes as they are in memory, and what has to be known of
//! them (docs/formats/column-chunk.md). Reading one checks everything.
//!
//! What this crate must not know: rows of several columns, versions, segments, plans, expressions.

#![forbid(unsafe_code)]

mod chunk;
mod compressed;
mod copied;
mod copier;
mod data;
mod dictionary;
mod distinct;
mod domain;
mod encode;
mod encoding;
mod error;
mod filter;
mod floats;
mod form;
mod framed;
mod gather;
mod key_order;
mod object_memory;
mod packed;
mod pick;
mod predicate;
mod ranks;
mod resident;
mod retain;
mod runs;
mod selection;
mod short_runs;
mod stored_by;
mod strings;
mod take;
mod together;
mod validity;
mod value;
mod zone;

pub use chunk::ColumnChunk;
pub use dictionary::{DICTIONARY_LIMIT, Dictionary, Unknown};
pub use distinct::DistinctCount;
pub use domain::{Domain, from_integer, to_integer, wide_array, wide_of_intervals, wide_of_uuids};
pub use encoding::Encoding;
pub use error::EncodeError;
pub use form::{FormError, FormReader, FormWriter, StoredColumns};
pub use key_order::{KeyOrder, OrdinalSet};
pub use object_memory::ObjectMemory;
pub use pick::PICKED_ROWS;
pub use predicate::{ColumnPredicate, StringTest};
pub use ranks::RankArray;
pub use selection::Selection;
pub use take::FEW_ROWS;
pub use together::{ColumnTest, PassedRows};
pub use value::ColumnValue;
pub use zone::{Zone, ZoneRange};

/// Rows of a full chunk. Small enough that a chunk's selection (8 KiB) stays in the first-level cache and a row
/// number fits in 16 bits, large enough for full scan speed (elastic OLAP paper, Figure 3: 1,000 values suffice).
/// Measured in docs/decisions/0006.
pub const CHUNK_ROWS: usize = 65_536;
