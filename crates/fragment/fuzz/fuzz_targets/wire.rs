//! No bytes make the reader of fragments panic, and what it takes it can write and read again:
//! `cargo +nightly fuzz run wire` in `crates/fragment`.
//!
//! ```text
//! input   0 │ body                   the body of a fragment, as it is
//!         1 │ edit edit edit …       a fragment that has everything, changed in some places
//!
//! edit    place, 2 bytes │ kind: replace, insert, remove, cut │ byte
//! ```
//!
//! The checksum is made right each time, so that the body is really read.

#![no_main]

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId, Timestamp};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

/// Magic, version and checksum.
const HEADER: usize = 7;

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| whole().to_bytes());

/// A fragment that has everything.
fn whole() -> Fragment {
    let column = |position| Box::new(Expr::Column(position));
    let five = || Scalar {
        data_type: Type::Decimal {
            precision: 9,
            scale: 2,
        },
        value: Value::Integer(500),
    };
    let equal = Expr::Binary {
        op: BinaryOp::Eq,
        left: column(0),
        right: Box::new(Expr::Literal(five())),
    };
    let case = Expr::Case {
        branches: vec![(equal.clone(), Expr::Negate(column(0)))],
        otherwise: Some(Box::new(Expr::Cast {
            operand: column(1),
            to: Type::Timestamp {
                unit: TimeUnit::Second,
                zone: Some("UTC".to_owned()),
            },
        })),
    };
    let like = Expr::Like {
        operand: column(1),
        pattern: "%a_".to_owned(),
        negated: false,
        case_insensitive: true,
    };
    let list = Expr::InList {
        operand: column(0),
        list: vec![five(), five()],
        negated: true,
    };
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![3, 4, 9]));
    let names: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("x"),
        None,
        Some("long enough for a buffer"),
    ]));
    let rows = RecordBatch::try_from_iter([("key", keys), ("name", names)]).expect("two columns");
    let probes = [
        KeySet::Range { low: -1, high: 7 },
        KeySet::Bitmap {
            first: 3,
            words: vec![9, 1],
        },
        KeySet::Integers(vec![1, 8]),
        KeySet::Strings(vec!["a".to_owned(), "b".to_owned()]),
    ];
    let count = Aggregate {
        function: AggregateFunction::Count,
        input: None,
        filter: Some(Expr::IsNotNull(column(1))),
        state: Type::Int64,
    };
    Fragment {
        object: ObjectId(7),
        snapshot: Timestamp(300),
        columns: vec![ColumnId(0), ColumnId(5)],
        filter: vec![equal, like, list, Expr::Not(column(2))],
        probes: probes.map(|keys| Probe { column: 1, keys }).to_vec(),
        lookups: vec![Lookup::new(0, rows)],
        output: Output::Groups {
            keys: vec![case],
            aggregates: vec![count],
        },
        order: None,
        options: ScanOptions::default(),
    }
}

/// A fragment's body with edits.
fn edited(body: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    for edit in edits.as_chunks::<4>().0 {
        let place = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (body.len() + 1);
        match edit[2] % 4 {
            0 if place < body.len() => body[place] = edit[3],
            1 => body.insert(place, edit[3]),
            2 if place < body.len() => drop(body.remove(place)),
            3 => body.truncate(place),
            _ => {}
        }
    }
    body
}

/// A message with this body.
fn message(body: &[u8]) -> Vec<u8> {
    let mut message = WHOLE[..HEADER].to_vec();
    message[HEADER - 4..].copy_from_slice(&twox_hash::XxHash32::oneshot(0, body).to_le_bytes());
    message.extend_from_slice(body);
    message
}

fuzz_target!(|input: &[u8]| {
    let body = match input.split_first() {
        Some((0, body)) => body.to_vec(),
        Some((_, edits)) => edited(&WHOLE[HEADER..], edits),
        None => return,
    };
    if let Ok(fragment) = Fragment::from_bytes(&message(&body)) {
        // Not compared by their values: a NaN is not equal to itself.
        let bytes = fragment.to_bytes();
        let again = Fragment::from_bytes(&bytes).expect("what was written can be read");
        assert_eq!(again.to_bytes(), bytes);
    }
});
