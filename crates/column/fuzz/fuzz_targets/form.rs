//! No bytes make the reader of stored forms panic, and what it takes is as sound as what was encoded:
//! `cargo +nightly fuzz run form` in `crates/column`.
//!
//! ```text
//! input   column, 1 byte │ rows, 1 byte │ 0 │ form             a form, as it is
//!                                       │ 1 │ edit edit …      the form of this column, changed in some places
//!
//! edit    place, 2 bytes │ kind: replace, insert, remove, cut │ byte
//! ```
//!
//! Every other place of an edit is in the head.

#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::forms::*;
use eris_column::ZoneRange;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const ROWS: [usize; 4] = [3, 40, 700, 2100];

/// The columns of each number of rows, and their forms.
static COLUMNS: LazyLock<Vec<Vec<(Column, Vec<u8>)>>> = LazyLock::new(|| {
    let with_form = |column: Column| {
        let form = form(&encode(&column), 0);
        (column, form)
    };
    let of = |rows| columns(rows).into_iter().map(with_form).collect();
    ROWS.into_iter().map(of).collect()
});

fn edited(form: &[u8], edits: &[u8]) -> Vec<u8> {
    const HEAD: usize = 48;
    let mut form = form.to_vec();
    for (number, edit) in edits.as_chunks::<4>().0.iter().enumerate() {
        let places = if number % 2 == 0 {
            form.len() + 1
        } else {
            HEAD
        };
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % places;
        match edit[2] % 4 {
            0 if place < form.len() => form[place] = edit[3],
            1 if place <= form.len() => form.insert(place, edit[3]),
            2 if place < form.len() => drop(form.remove(place)),
            3 if number % 2 == 0 => form.truncate(place),
            _ => {}
        }
    }
    form
}

fuzz_target!(|input: &[u8]| {
    let Some((&[column, rows, is_edited], rest)) = input.split_first_chunk() else {
        return;
    };
    let rows = usize::from(rows) % ROWS.len();
    let columns = &COLUMNS[rows];
    let (column, form) = &columns[usize::from(column) % columns.len()];
    let form = match is_edited % 2 {
        0 => rest.to_vec(),
        _ => edited(form, rest),
    };
    let (array, dictionary) = column;
    let known = dictionary.as_ref().map(|dictionary| dictionary.len());
    for read in [read, read_shared] {
        let Ok(chunk) = read(&form, array.data_type(), ROWS[rows]) else {
            continue;
        };
        let has_all = match chunk.zone().range {
            ZoneRange::Codes(_, greatest) => known > Some(greatest as usize),
            _ => !chunk.is_coded() || known.is_some(),
        };
        if has_all {
            check_sound(&chunk, column);
        }
    }
});
