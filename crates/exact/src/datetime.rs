//! Dates and times as strings, and strings as dates and times.

pub(crate) mod age;
pub(crate) mod difference;
pub(crate) mod series;
pub(crate) mod to_char;
pub(crate) mod with_seconds;
