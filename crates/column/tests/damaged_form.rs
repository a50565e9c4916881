//! A stored form that is damaged is an error, or another column that is as sound as any: never a panic, never answers
//! that contradict each other.

mod common;

use arrow_array::Int64Array;
use arrow_schema::DataType;
use common::forms::*;
use common::*;
use eris_column::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What became of forms that were damaged.
#[derive(Debug, Default)]
struct Outcomes {
    columns: usize,
    errors: BTreeMap<String, usize>,
}

impl Outcomes {
    /// Reads a form; what it yields is compared with what its values are if they are encoded.
    fn take(&mut self, form: &[u8], column: &Column, rows: usize) {
        let (array, dictionary) = column;
        // Nothing of a small form is shared.
        let both: [fn(&[u8], &DataType, usize) -> _; 2] = [read, read_shared];
        for read in both.into_iter().take(1 + form.len() / 4096) {
            match read(form, array.data_type(), rows) {
                Ok(chunk) => {
                    self.columns += 1;
                    // The caller looks whether codes are those of its dictionary.
                    let known = dictionary.as_ref().map(|dictionary| dictionary.len());
                    let has_all = match chunk.zone().range {
                        ZoneRange::Codes(_, greatest) => known > Some(greatest as usize),
                        _ => !chunk.is_coded() || known.is_some(),
                    };
                    if has_all {
                        check_sound(&chunk, column);
                    }
                }
                Err(error) => *self.errors.entry(kind(&error)).or_default() += 1,
            }
        }
    }
}

/// What is wrong, without the numbers.
fn kind(error: &FormError) -> String {
    match error {
        FormError::Damaged(damage) => damage.to_string(),
        other => {
            let name = |letter: &char| letter.is_alphabetic();
            format!("{other:?}").chars().take_while(name).collect()
        }
    }
}

#[test]
fn every_bit_of_small_forms() {
    let mut outcomes = Outcomes::default();
    for rows in [1, 2, 7, 40] {
        for column in columns(rows) {
            let form = form(&encode(&column), 0);
            for bit in 0..form.len() * 8 {
                let mut damaged = form.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                outcomes.take(&damaged, &column, rows);
            }
        }
    }
    println!("{outcomes:#?}");
    assert!(outcomes.columns > 1000, "{outcomes:?}");
    assert!(outcomes.errors.len() > 12, "{outcomes:?}");
}

#[test]
fn forms_that_are_cut() {
    for rows in [1, 2, 40, 1500] {
        for column in columns(rows) {
            let form = form(&encode(&column), 0);
            for len in (0..form.len()).step_by(form.len() / 300 + 1) {
                for read in [read, read_shared] {
                    let read = read(&form[..len], column.0.data_type(), rows);
                    assert!(
                        matches!(read, Err(FormError::Short)),
                        "{len} of {}: {read:?}",
                        form.len()
                    );
                }
            }
        }
    }
}

/// Forms of several vectors, with large sections, changed in some places: heads more often than the rest.
#[test]
fn random_places_of_large_forms() {
    let seed = std::env::var("ERIS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(11);
    println!("ERIS_SEED={seed}");
    let mut random = Random(seed);
    let mut outcomes = Outcomes::default();
    let mut damaged_chunks = 0;
    for rows in [1500, 6000] {
        for column in columns(rows) {
            let form = form(&encode(&column), 0);
            for round in 0..60 {
                let mut damaged = form.clone();
                let most = if round % 2 == 0 {
                    64
                } else {
                    form.len() as u64
                };
                for _ in 0..=random.below(2) {
                    let place = random.below(most.min(form.len() as u64)) as usize;
                    damaged[place] = match random.below(3) {
                        0 => random.next() as u8,
                        1 => random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                        _ => damaged[place] ^ 1 << random.below(8),
                    };
                }
                damaged_chunks += 1;
                outcomes.take(&damaged, &column, rows);
            }
        }
    }
    println!("{outcomes:#?}");
    assert!(outcomes.columns > damaged_chunks / 30, "{outcomes:?}");
    assert!(outcomes.errors.len() > 15, "{outcomes:?}");
}

/// A dictionary of the chunk has the strings of its rows, each once.
#[test]
fn dictionaries_with_strings_too_many() {
    let rows = 5000;
    let text = |row: usize| {
        Some(format!(
            "like {}",
            if row == 3 { 9 } else { row * 7919 % 991 % 9 }
        ))
    };
    let texts: Vec<_> = (0..rows).map(text).collect();
    let column: Column = (Arc::new(string_array(&texts)), None);
    let form = form(&encode(&column), 0);
    let damage = |form: &[u8]| {
        read(form, column.0.data_type(), rows)
            .map_err(|error| kind(&error))
            .err()
    };
    assert_eq!(damage(&form), None);
    let mut twice = form.clone();
    let place = form
        .windows(6)
        .position(|text| text == b"like 3")
        .expect("a view");
    twice[place + 5] = b'4';
    assert_eq!(
        damage(&twice).as_deref(),
        Some("a string that is there twice")
    );
    // The only row of its string gets another one.
    let mut damages = (0..form.len() * 8).map(|bit| {
        let mut other = form.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        damage(&other)
    });
    assert!(damages.any(|damage| damage.as_deref() == Some("a string that no row has")));
}

/// Bytes that say that very much follows ask for no memory.
#[test]
fn lengths_that_are_not_there_ask_for_no_memory() {
    let many = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let column: Column = (Arc::new(Int64Array::from(vec![1, 300, 5])), None);
    let used = MEMORY.budget().used();
    for tag in 0..0x80u8 {
        for rows in [1, 3, 65_536] {
            let form = [&[tag][..], &many, &many, &many].concat();
            for data_type in [column.0.data_type(), &DataType::Utf8View] {
                if let Ok(chunk) = read(&form, data_type, rows) {
                    assert!(chunk.bytes() <= 65_536 / 8);
                }
            }
        }
    }
    // Others may be testing beside.
    assert!(MEMORY.budget().used() < used + (64 << 20));
}
