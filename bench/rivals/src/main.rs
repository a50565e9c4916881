//! Indexes that those of Eris are compared with: `eris bench index --rivals …` starts one in a process of its own and
//! asks it line by line. `crates/bench/src/index/rival.rs` says what the lines mean.
//!
//! ```text
//! shared                a radix tree of our own for all threads, with optimistic lock coupling ([`olc`])
//! congee                another's, of the same kind
//! BTreeMap, hashbrown   one thread, for orientation
//! ```

#[path = "../../../crates/bench/src/index/keys.rs"]
#[allow(dead_code, reason = "the benchmark uses more of it")]
mod keys;
mod olc;
mod structures;
#[path = "../../../crates/bench/src/index/threads.rs"]
mod threads;

use keys::KeySequence;
use std::io::{BufRead, Write};
use structures::{Structure, names, structure};

/// As Eris has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_allow_large_os_pages` of mimalloc.h.
const LARGE_PAGES: std::ffi::c_int = 6;

const USAGE: &str = "rivals list THREADS\nrivals NAME dense|random KEYS THREADS [--huge-pages]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list", threads] => names(number(threads) as usize)
            .iter()
            .for_each(|name| println!("{name}")),
        [name, order, count, threads, ref rest @ ..] => {
            if rest == ["--huge-pages"] {
                // SAFETY: sets one of the allocator's options, which may be done at any time from any thread.
                unsafe { libmimalloc_sys::mi_option_set(LARGE_PAGES, 1) }
            }
            let keys = match order {
                "dense" => KeySequence::dense(number(count)),
                _ => KeySequence::random(number(count)),
            };
            match structure(name, keys, number(threads) as usize) {
                Some(structure) => answer(structure),
                None => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2);
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| usage())
}

/// Answers requests until there are no more.
fn answer(mut structure: Box<dyn Structure>) {
    let mut out = std::io::stdout();
    for request in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = match reply(&mut *structure, &request) {
            Ok(Some(number)) => number.to_string(),
            Ok(None) => "none".to_owned(),
            Err(error) => format!("error {error}"),
        };
        if writeln!(out, "{answer}")
            .and_then(|()| out.flush())
            .is_err()
        {
            // Nobody listens any more.
            return;
        }
    }
}

/// The answer to one request.
fn reply(structure: &mut dyn Structure, request: &str) -> Result<Option<u64>, String> {
    let mut words = request.split(' ');
    let kind = words.next().unwrap_or_default();
    let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>();
    let numbers = numbers.map_err(|error| format!("{request}: {error}"))?;
    match (kind, &numbers[..]) {
        ("insert", &[first, end]) => structure.insert(first..end).map(|()| Some(0)),
        ("lookup", &[seed, count]) => Ok(Some(structure.lookup(seed, count))),
        ("ranges", &[seed, count, length]) => Ok(structure.ranges(seed, count, length as usize)),
        ("bytes", []) => Ok(structure.bytes()),
        _ => Err(format!("unknown request {request}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rival_finds_what_was_put_in() {
        assert_eq!(names(1).len(), 4);
        assert_eq!(names(2).len(), 2);
        for threads in [1, 2] {
            for keys in [KeySequence::dense(20_000), KeySequence::random(20_000)] {
                for name in names(threads) {
                    let mut one = structure(name, keys, threads).unwrap();
                    assert_eq!(reply(&mut *one, "insert 0 10000"), Ok(Some(0)));
                    assert_eq!(reply(&mut *one, "insert 10000 20000"), Ok(Some(0)));
                    let found = reply(&mut *one, "lookup 3 5000");
                    assert_eq!(found, Ok(Some(5000)), "{name} of {} keys", keys.order());
                    let ranges = reply(&mut *one, "ranges 1 100 100").unwrap();
                    assert!(ranges.is_none_or(|entries| entries > 100), "{name}");
                    assert_eq!(ranges.is_some(), *name == "BTreeMap");
                    let bytes = reply(&mut *one, "bytes").unwrap();
                    assert_eq!(bytes.is_some(), *name == "shared");
                }
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_told() {
        let mut one = structure("congee", KeySequence::dense(1), 1).unwrap();
        for request in ["", "insert 1", "lookup a b", "forget 1"] {
            assert!(reply(&mut *one, request).is_err(), "{request}");
        }
        assert!(structure("other", KeySequence::dense(1), 1).is_none());
    }
}
