//! Dates and times as strings, and strings as dates and times.

pub(crate) mod age;
pub(crate) mod bin;
pub(crate) mod bucket;
pub(crate) mod difference;
pub(crate) mod epoch;
mod part;
pub(crate) mod series;
pub(crate) mod strptime;
pub(crate) mod ticks;
pub(crate) mod to_char;
pub(crate) mod truncated;
pub(crate) mod with_seconds;

use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::util::display::FormatOptions;

/// What is out of range is an error, not NULL.
const FAILING: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};
