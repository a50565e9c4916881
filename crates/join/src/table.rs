//! The table, and where a code's rows are.

use crate::NO_ROW;
use crate::dense::Dense;
use crate::hashed::Hashed;
use crate::rows::{Located, Scattered};
use crate::spread::Spread;
use eris_kernels::prefetch;

/// Codes whose places are on their way at once.
const AHEAD: usize = 32;

/// A table.
#[derive(Debug)]
pub struct JoinTable {
    spread: Spread,
    parts: Vec<TablePart>,
    is_unique: bool,
}

/// A part of a table, in one piece: the buckets that one worker has gathered.
#[derive(Debug)]
pub struct TablePart(pub(crate) PartKind);

#[derive(Debug)]
pub(crate) enum PartKind {
    Dense(Dense),
    Hashed(Hashed),
}

impl TablePart {
    pub(crate) fn new(spread: &Spread, part: usize, scattered: &[Scattered]) -> Self {
        TablePart(match spread.is_dense() {
            true => PartKind::Dense(Dense::new(spread, part, scattered)),
            false => PartKind::Hashed(Hashed::new(spread, part, scattered)),
        })
    }

    fn size(&self) -> usize {
        match &self.0 {
            PartKind::Dense(dense) => dense.size(),
            PartKind::Hashed(hashed) => hashed.size(),
        }
    }

    fn is_unique(&self) -> bool {
        match &self.0 {
            PartKind::Dense(dense) => matches!(dense, Dense::Single(_)),
            PartKind::Hashed(hashed) => hashed.is_unique(),
        }
    }
}

impl Spread {
    /// A part of the table, of what all workers have scattered.
    pub fn gather(&self, part: usize, scattered: &[Scattered]) -> TablePart {
        TablePart::new(self, part, scattered)
    }
}

impl JoinTable {
    /// The table of all parts, in their order.
    ///
    /// # Panics
    /// If there are too few or too many.
    pub fn new(spread: Spread, parts: Vec<TablePart>) -> Self {
        assert_eq!(parts.len(), spread.parts(), "the table's parts");
        JoinTable {
            is_unique: parts.iter().all(TablePart::is_unique),
            spread,
            parts,
        }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.parts.iter().map(TablePart::size).sum()
    }

    /// All rows in the order of their codes; `None` unless codes lie close together.
    pub fn rows_by_code(&self) -> Option<Vec<u32>> {
        let mut all = Vec::new();
        for part in &self.parts {
            match &part.0 {
                PartKind::Dense(Dense::Single(rows)) => {
                    all.extend(rows.iter().copied().filter(|row| *row != NO_ROW));
                }
                PartKind::Dense(Dense::Several { rows, .. }) => all.extend_from_slice(rows),
                PartKind::Hashed(_) => return None,
            }
        }
        Some(all)
    }

    /// Whether no code has several rows.
    pub(crate) fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// The part of a code that has rows.
    #[inline(always)]
    pub(crate) fn part(&self, code: u64) -> &PartKind {
        let part = match self.spread.is_dense() {
            true => self.spread.in_part(code).0,
            false => self.spread.part_of(self.spread.in_hashed_bucket(code).0).0,
        };
        &self.parts[part].0
    }

    /// Appends where the rows of each code are.
    pub fn locate(&self, codes: &[u64], out: &mut Vec<Located>) {
        out.reserve(codes.len());
        match self.spread.is_dense() {
            true => pipelined(
                codes,
                |code| {
                    let (part, place) = self.spread.in_part(code);
                    let dense = self.dense(part);
                    dense.inspect(|dense| dense.ask(place));
                    (dense, place)
                },
                |_, (dense, place)| {
                    out.push(dense.map_or(Located::default(), |dense| dense.locate(place)));
                },
            ),
            false => pipelined(
                codes,
                |code| {
                    let (bucket, fraction) = self.spread.in_hashed_bucket(code);
                    let (part, bucket) = self.spread.part_of(bucket);
                    let hashed = self.hashed(part);
                    hashed.inspect(|hashed| prefetch(hashed.home(bucket, fraction)));
                    (hashed, bucket, fraction)
                },
                |code, (hashed, bucket, fraction)| {
                    let locate = |hashed: &Hashed| hashed.locate(bucket, fraction, code);
                    out.push(hashed.map_or(Located::default(), locate));
                },
            ),
        }
    }

    fn dense(&self, part: usize) -> Option<&Dense> {
        match self.parts.get(part).map(|part| &part.0) {
            Some(PartKind::Dense(dense)) => Some(dense),
            _ => None,
        }
    }

    fn hashed(&self, part: usize) -> Option<&Hashed> {
        match self.parts.get(part).map(|part| &part.0) {
            Some(PartKind::Hashed(hashed)) => Some(hashed),
            _ => None,
        }
    }
}

/// Asks for the place of each code, and looks at it when the places of some more have been asked for.
#[inline(always)]
fn pipelined<P: Copy>(codes: &[u64], ask: impl Fn(u64) -> P, mut look: impl FnMut(u64, P)) {
    let Some(&first) = codes.first() else {
        return;
    };
    let mut asked = [ask(first); AHEAD];
    for (place, &code) in asked.iter_mut().zip(codes) {
        *place = ask(code);
    }
    let mut batches = codes.chunks(AHEAD).peekable();
    while let Some(now) = batches.next() {
        match batches.peek() {
            Some(next) => {
                for (at, &code) in now.iter().enumerate() {
                    let place = asked[at];
                    if let Some(&code) = next.get(at) {
                        asked[at] = ask(code);
                    }
                    look(code, place);
                }
            }
            None => now
                .iter()
                .zip(asked)
                .for_each(|(&code, place)| look(code, place)),
        }
    }
}
