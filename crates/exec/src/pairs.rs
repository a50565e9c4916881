//! The pairs of rows and their matches, piece by piece.
//!
//! ```text
//! rows of a window          0    1         2               row 1 has two matches in one relation,
//! matches                   a    b c       d e  ×  x y     row 2 two in each of two
//!
//! pairs   rows              0    1 1       2 2 2 2
//!         places, relation  a    b c       d d e e         the last relation's matches change fastest
//!         … and the other   x    x x       x y x y
//! ```
//!
//! There may be any number of pairs of a row, so they are made in pieces of a bounded number, and whoever has made
//! enough of them can come back to the next one.

use arrow_buffer::NullBuffer;
use std::ops::Range;

/// Matches of a row that are written at once.
const FEW: usize = 4;

/// The pairs of some rows.
#[derive(Debug)]
pub(crate) struct Pairs {
    relations: Vec<RelationMatches>,
    next: Pair,
    /// Of the piece at hand: per pair, its row.
    rows: Vec<u32>,
}

/// One relation.
#[derive(Debug)]
struct RelationMatches {
    /// The lookup that it is the relation of.
    lookup: usize,
    /// Per row, the place of its first match, and how many there are.
    starts: Vec<u32>,
    counts: Vec<u32>,
    /// Of the piece at hand: per pair, the place of its match.
    places: Vec<u32>,
}

/// A pair: the row, and its number among the pairs of that row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    row: usize,
    number: u64,
}

impl Pairs {
    /// Of rows that have, in the relations of these lookups, so many matches each from some place on, one at least.
    pub(crate) fn new(ranges: impl IntoIterator<Item = (usize, (Vec<u32>, Vec<u32>))>) -> Self {
        let relation = |(lookup, (starts, counts))| RelationMatches {
            lookup,
            starts,
            counts,
            places: Vec::new(),
        };
        Pairs {
            relations: ranges.into_iter().map(relation).collect(),
            next: Pair::default(),
            rows: Vec::new(),
        }
    }

    /// Whether each row has one match in each relation.
    pub(crate) fn are_rows(&self) -> bool {
        let one = |relation: &RelationMatches| relation.counts.iter().all(|&count| count == 1);
        self.relations.iter().all(one)
    }

    /// All of them; `None` if they cannot be counted.
    pub(crate) fn count(&self) -> Option<u64> {
        let rows = 0..self
            .relations
            .first()
            .map_or(0, |relation| relation.counts.len());
        let mut of_rows = rows.map(|row| {
            let mut counts = self
                .relations
                .iter()
                .map(|relation| u64::from(relation.counts[row]));
            counts.try_fold(1u64, u64::checked_mul)
        });
        of_rows.try_fold(0u64, |sum, count| sum.checked_add(count?))
    }

    /// The first pair of the next piece.
    pub(crate) fn next(&self) -> Pair {
        self.next
    }

    /// Makes a pair the first of the next piece.
    pub(crate) fn skip_to(&mut self, pair: Pair) {
        self.next = pair;
    }

    /// Makes the next piece, of so many pairs at most; `false` if there is none.
    pub(crate) fn advance(&mut self, most: usize) -> bool {
        self.rows.clear();
        self.relations
            .iter_mut()
            .for_each(|relation| relation.places.clear());
        match &mut self.relations[..] {
            [relation] => advance_one(relation, &mut self.next, &mut self.rows, most),
            relations => advance_several(relations, &mut self.next, &mut self.rows, most),
        }
        !self.rows.is_empty()
    }

    /// Per pair of the piece, its row.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The lookups, each with the places of the matches.
    pub(crate) fn take_places(&mut self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        let relations = self.relations.iter_mut();
        relations.map(|relation| (relation.lookup, std::mem::take(&mut relation.places)))
    }

    /// The same if each row has one match: these are there at once.
    pub(crate) fn into_places(self) -> impl Iterator<Item = (usize, Vec<u32>)> {
        self.relations
            .into_iter()
            .map(|relation| (relation.lookup, relation.starts))
    }

    /// The rows' values, pair by pair.
    pub(crate) fn spread<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.rows.iter().map(|&row| values[row as usize]).collect()
    }

    /// Their validity, pair by pair.
    pub(crate) fn spread_nulls(&self, nulls: &NullBuffer) -> NullBuffer {
        let valid = self.rows.iter().map(|&row| nulls.is_valid(row as usize));
        valid.collect()
    }
}

fn advance_one(relation: &mut RelationMatches, next: &mut Pair, rows: &mut Vec<u32>, most: usize) {
    let counts = &relation.counts[next.row.min(relation.counts.len())..];
    if next.number == 0 {
        // As many rows as fit with all their matches.
        let mut pairs = 0;
        let fits = |&&count: &&u32| {
            pairs += count as usize;
            pairs <= most
        };
        let whole = counts.iter().take_while(fits).count();
        fill(relation, next.row..next.row + whole, rows);
        next.row += whole;
        if whole > 0 {
            return;
        }
    }
    let Some(&count) = relation.counts.get(next.row) else {
        return;
    };
    // Fits, since the number is that of a match.
    let done = next.number as u32;
    let taken = (count - done).min(u32::try_from(most).unwrap_or(u32::MAX));
    let start = relation.starts[next.row] + done;
    rows.extend(std::iter::repeat_n(next.row as u32, taken as usize));
    relation.places.extend(start..start + taken);
    next.number += u64::from(taken);
    if done + taken == count {
        next.row += 1;
        next.number = 0;
    }
}

/// All pairs of some rows.
fn fill(relation: &mut RelationMatches, of: Range<usize>, rows: &mut Vec<u32>) {
    let (starts, counts) = (&relation.starts[of.clone()], &relation.counts[of.clone()]);
    let pairs: usize = counts.iter().map(|&count| count as usize).sum();
    // Most rows have few matches: so many are written for each, whether they are there or not, and the next row's over
    // them.
    rows.resize(pairs + FEW, 0);
    relation.places.resize(pairs + FEW, 0);
    let mut at = 0;
    for ((row, &start), &count) in of.zip(starts).zip(counts) {
        let row = row as u32;
        let end = at + count as usize;
        rows[at..at + FEW].copy_from_slice(&[row; FEW]);
        let few = std::array::from_fn::<u32, FEW, _>(|more| start.wrapping_add(more as u32));
        relation.places[at..at + FEW].copy_from_slice(&few);
        if count as usize > FEW {
            rows[at + FEW..end].fill(row);
            let places = relation.places[at + FEW..end].iter_mut();
            places
                .zip(start + FEW as u32..)
                .for_each(|(place, more)| *place = more);
        }
        at = end;
    }
    rows.truncate(pairs);
    relation.places.truncate(pairs);
}

fn advance_several(
    relations: &mut [RelationMatches],
    next: &mut Pair,
    rows: &mut Vec<u32>,
    most: usize,
) {
    let all = relations
        .first()
        .map_or(0, |relation| relation.counts.len());
    while next.row < all && rows.len() < most {
        // More than 64 bits can count will not be made in this life.
        let counts = relations
            .iter()
            .map(|relation| u64::from(relation.counts[next.row]));
        let of_row = counts.fold(1, u64::saturating_mul);
        let taken = (of_row - next.number).min((most - rows.len()) as u64);
        rows.extend(std::iter::repeat_n(next.row as u32, taken as usize));
        let mut stride = 1u64;
        for relation in relations.iter_mut().rev() {
            let (start, count) = (
                relation.starts[next.row],
                u64::from(relation.counts[next.row]),
            );
            let pairs = next.number..next.number + taken;
            match count {
                1 => (relation.places).extend(std::iter::repeat_n(start, taken as usize)),
                _ => (relation.places)
                    .extend(pairs.map(|pair| start + (pair / stride % count) as u32)),
            }
            stride = stride.saturating_mul(count);
        }
        next.number += taken;
        if next.number == of_row {
            next.row += 1;
            next.number = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every pair of some rows: the row, and a place per relation.
    fn expected(relations: &[Vec<(u32, u32)>]) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        for row in 0..relations[0].len() {
            let mut of_row = vec![vec![row as u32]];
            for relation in relations {
                let (start, count) = relation[row];
                let longer = of_row.iter().flat_map(|pair| {
                    (start..start + count).map(|place| [&pair[..], &[place]].concat())
                });
                of_row = longer.collect();
            }
            all.extend(of_row);
        }
        all
    }

    proptest! {
        #[test]
        fn pieces_are_all_pairs(
            rows in prop::collection::vec(prop::collection::vec((0..1_000u32, 1..6u32), 3), 0..20),
            relations in 1..4usize, most in 1..9usize, left_at in 0..9usize,
        ) {
            let relations: Vec<Vec<(u32, u32)>> = (0..relations)
                .map(|relation| rows.iter().map(|row| row[relation]).collect())
                .collect();
            let ranges = || relations.iter().cloned().enumerate().map(|(lookup, relation)| (lookup + 5, relation.into_iter().unzip()));
            let mut pairs = Pairs::new(ranges());
            let expected = expected(&relations);
            prop_assert_eq!(pairs.count(), Some(expected.len() as u64));
            prop_assert_eq!(pairs.are_rows(), expected.len() == rows.len());
            let mut made: Vec<Vec<u32>> = Vec::new();
            let mut pieces = 0;
            while pairs.advance(most) {
                prop_assert!(pairs.rows().len() <= most);
                let begin = made.len();
                made.extend(pairs.rows().iter().map(|&row| vec![row]));
                for (relation, (lookup, places)) in pairs.take_places().enumerate() {
                    prop_assert_eq!(lookup, relation + 5);
                    prop_assert_eq!(places.len(), made.len() - begin);
                    made[begin..].iter_mut().zip(places).for_each(|(pair, place)| pair.push(place));
                }
                pieces += 1;
                if pieces == left_at {
                    let next = pairs.next();
                    pairs = Pairs::new(ranges());
                    pairs.skip_to(next);
                }
            }
            prop_assert_eq!(made, expected);
        }
    }

    #[test]
    fn what_cannot_be_counted_is_not() {
        let ranges = |_| (vec![0], vec![u32::MAX]);
        assert!(
            Pairs::new((0..2).map(|lookup| (lookup, ranges(lookup))))
                .count()
                .is_some()
        );
        assert_eq!(
            Pairs::new((0..3).map(|lookup| (lookup, ranges(lookup)))).count(),
            None
        );
    }
}
