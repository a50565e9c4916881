//! Properties of the generated data, seen from outside the crate.

mod integrity;
mod reproducible;
mod selectivity;
mod tables;
