//! The input decides what the driver of the differential test does: `cargo +nightly fuzz run art` in `crates/index`.

#![no_main]

#[path = "../../tests/index/driver.rs"]
#[allow(dead_code, reason = "the differential test uses more of it")]
mod driver;

use driver::{Choices, Pair, TestKey, memory};
use libfuzzer_sys::fuzz_target;

/// Choices that end with the input.
struct Input<'a>(&'a [u8]);

impl Choices for Input<'_> {
    fn below(&mut self, end: u64) -> Option<u64> {
        let bytes = (u64::BITS - (end - 1).leading_zeros()).div_ceil(8) as usize;
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(
            taken
                .iter()
                .fold(0, |number, &byte| number << 8 | u64::from(byte))
                % end,
        )
    }
}

fn run<K: TestKey + ?Sized>(mut input: Input<'_>) {
    let mut pair: Pair<K> = Pair::new(memory(64 << 20));
    while pair.step(&mut input).is_some() {}
    pair.check();
}

fuzz_target!(|input: &[u8]| {
    match input.split_first() {
        Some((0..128, rest)) => run::<u64>(Input(rest)),
        Some((_, rest)) => run::<[u8]>(Input(rest)),
        None => {}
    }
});
