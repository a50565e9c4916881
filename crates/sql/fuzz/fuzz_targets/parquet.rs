//! Bytes chosen by coverage as a Parquet file: `cargo +nightly fuzz run parquet` in `crates/sql`.

#![no_main]

#[path = "../../tests/database/wrong/inputs.rs"]
#[allow(dead_code, reason = "the other targets use the rest")]
mod inputs;

use inputs::Inputs;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static INPUTS: LazyLock<Inputs> = LazyLock::new(Inputs::new);

fuzz_target!(|input: &[u8]| INPUTS.parquet(input));
