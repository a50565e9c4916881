//! The way to a fragment's rows: which index leads to them, and by which keys; or none.
//!
//! ```text
//! index on (a, b), WHERE a IN (1, 7) AND b > 5 AND c = 3
//!
//! a:  1 · 7 (values)     b: 5 … (a range)        keys from (1, 5] to before (2), from (7, 5] to before (8)
//!                                                c = 3 is the filter's business, which looks at all conditions again
//! ```
//!
//! Columns of the index are taken in order as long as conditions leave single values of them, and one more with a range. A
//! path leads to all rows that pass, and may lead to others. Whether it pays off is estimated here and found out by the owner,
//! who leaves it when it leads to more rows than a scan would need.

use crate::coding::{Coding, MOST_KEYS, Span, Spans, intersection, successor};
use crate::object::DataObject;
use crate::secondary::{IndexKind, KEY_BYTES};
use eris_column::{Domain, ZoneRange, from_integer};
use eris_fragment::{Access, AggregateFunction, Expr, Fragment, Output, Value};
use eris_types::{AeuId, ColumnId};

/// One row in so many: a range that leads to more is faster found by reading all (docs/decisions/0013).
const ROWS_PER_LOOKUP: u64 = 4096;
/// The same of single keys, for which a scan has to look up every row in a set.
const ROWS_PER_KEY: u64 = 1024;
/// The same where the first rows in order are enough, for which all others would have to be compared.
const ROWS_IN_ORDER: u64 = 512;
/// So few rows are always worth it.
const ALWAYS: u64 = 64;

impl Path {
    /// How many rows it may lead to in a partition before a scan is better. More than was planned with: part of the way has
    /// been gone already.
    pub fn most_rows(&self, partition_rows: u64) -> usize {
        let share = match self.enough {
            Enough::All => ROWS_PER_LOOKUP / 4,
            Enough::First(_) | Enough::Ends { .. } => ROWS_IN_ORDER / 4,
        };
        (partition_rows / share).max(4 * ALWAYS) as usize
    }
}

/// Which rows are enough of those that the keys lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    All,
    /// So many that the snapshot sees, from the end at which the walk begins.
    First(usize),
    /// The first and the last that the snapshot sees.
    Ends {
        first: bool,
        last: bool,
    },
}

/// An index and keys in it.
#[derive(Debug)]
pub(crate) struct Path {
    /// The number of a secondary index; `None`: that of the key.
    pub index: Option<u32>,
    columns: Vec<ColumnId>,
    /// In the order of the walk.
    pub spans: Spans,
    /// Whether each span is one whole key.
    pub is_points: bool,
    /// Each span is walked from its end.
    pub descending: bool,
    pub enough: Enough,
    /// Who holds the keys of each span, if it is a whole key, by ranges of them.
    pub owners: Vec<AeuId>,
    conditions: Vec<usize>,
    probes: Vec<usize>,
    rows: Option<u64>,
}

/// What is to be known of an index.
struct Candidate {
    index: Option<u32>,
    kind: IndexKind,
    columns: Vec<ColumnId>,
    codings: Vec<Coding>,
    /// Rows per value, if that is known.
    rows_per_value: Option<f64>,
}

impl Path {
    /// The best path for a fragment, if any promises to be better than reading all.
    pub fn of(fragment: &Fragment, object: &DataObject) -> Option<Path> {
        let total = || -> u64 { object.total_rows() };
        let mut best: Option<Path> = None;
        if !object.key.is_empty() {
            let types: Vec<_> = object
                .key
                .iter()
                .map(|column| object.schema.field(column.index()).data_type())
                .collect();
            let word = matches!(types[..], [one] if Domain::of(one) == Some(Domain::Integer));
            let candidate = Candidate {
                index: None,
                kind: IndexKind::Ordered,
                columns: object.key.to_vec(),
                codings: types
                    .iter()
                    .map(|data_type| Coding::new(data_type, false, word))
                    .collect(),
                rows_per_value: Some(1.0),
            };
            best = candidate.path(fragment, object);
            // At most one row: there is no better one.
            if best
                .as_ref()
                .is_some_and(|path| path.is_points && path.spans.len() <= 1)
            {
                return best;
            }
        }
        for index in object.indexes().iter().filter(|index| index.is_ready()) {
            let columns = index.columns.iter();
            let types: Vec<_> = columns
                .map(|column| object.schema.field(column.index()).data_type())
                .collect();
            let (entries, keys) = index.size();
            let word = index.has_words(object);
            let candidate = Candidate {
                index: Some(index.id),
                kind: index.kind,
                columns: index.columns.to_vec(),
                codings: types
                    .iter()
                    .map(|data_type| Coding::new(data_type, true, word))
                    .collect(),
                rows_per_value: (keys > 0).then(|| entries as f64 / keys as f64),
            };
            let path = candidate.path(fragment, object);
            best = match (best, path) {
                (Some(best), Some(path)) => Some(if path.cost() < best.cost() {
                    path
                } else {
                    best
                }),
                (best, path) => best.or(path),
            };
        }
        best.filter(|path| {
            let share = if path.is_points {
                ROWS_PER_KEY
            } else {
                ROWS_PER_LOOKUP
            };
            let few = |rows| rows <= ALWAYS || rows <= total() / share;
            path.enough != Enough::All || path.rows.is_none_or(few)
        })
    }

    fn cost(&self) -> u64 {
        match self.enough {
            Enough::All => self.rows.unwrap_or(u64::MAX / 2),
            Enough::First(rows) => rows as u64,
            Enough::Ends { .. } => 2,
        }
    }

    /// Whether at most one owner has at most one row.
    pub fn is_point(&self) -> bool {
        self.index.is_none() && self.is_points && self.spans.len() <= 1
    }

    /// The owners of the keys, ascending, if rows are dealt by ranges of these.
    pub fn holders(&mut self, object: &DataObject) -> Option<Vec<AeuId>> {
        if self.index.is_some() {
            return None;
        }
        let ranges = object.ranges.get()?;
        let mut holders: Vec<AeuId> = Vec::new();
        for span in &self.spans {
            if self.is_points {
                let owner = ranges.owner_of(&span.low);
                self.owners.push(owner);
                holders.push(owner);
            } else {
                holders.extend(ranges.owners_between(&span.low, span.high.as_deref()));
            }
        }
        holders.sort_unstable();
        holders.dedup();
        if holders.is_empty() {
            holders.push(AeuId(0));
        }
        Some(holders)
    }

    /// What planners may know of it.
    pub fn access(&self) -> Access {
        Access {
            index: self.index,
            columns: self.columns.clone(),
            conditions: self.conditions.clone(),
            probes: self.probes.clone(),
            rows: match self.enough {
                Enough::All => self.rows,
                Enough::First(rows) => Some(rows as u64),
                Enough::Ends { first, last } => Some(u64::from(first) + u64::from(last)),
            },
            ordered: self.enough != Enough::All,
        }
    }
}

/// What conditions say of one column.
struct Said {
    spans: Spans,
    conditions: Vec<usize>,
    probes: Vec<usize>,
}

impl Candidate {
    fn path(&self, fragment: &Fragment, object: &DataObject) -> Option<Path> {
        let said: Vec<Option<Said>> = (0..self.columns.len())
            .map(|number| self.said(fragment, number))
            .collect();
        let mut path = Path {
            index: self.index,
            columns: self.columns.clone(),
            spans: vec![Span::new(Vec::new(), None)],
            is_points: false,
            descending: false,
            enough: Enough::All,
            owners: Vec::new(),
            conditions: Vec::new(),
            probes: Vec::new(),
            rows: None,
        };
        let mut depth = 0;
        // Columns of which there is one value.
        let mut fixed = 0;
        // The share of the rows.
        let mut share = Some(1.0);
        let mut values_only = true;
        for said in said.iter().map_while(Option::as_ref) {
            let values = said.spans.iter().all(|span| span.is_value);
            let count = path.spans.len() as u64 * said.spans.len() as u64;
            if count > MOST_KEYS {
                return None;
            }
            share = share
                .zip(self.share(depth, &said.spans, object))
                .map(|(a, b)| a * b);
            path.spans = product(&path.spans, &said.spans);
            path.conditions.extend(&said.conditions);
            path.probes.extend(&said.probes);
            depth += 1;
            if values && said.spans.len() == 1 && fixed + 1 == depth {
                fixed = depth;
            }
            if !values {
                values_only = false;
                break;
            }
        }
        path.is_points = values_only && depth == self.columns.len();
        let is_exact = path.conditions.len() == fragment.filter.len()
            && path.probes.len() == fragment.probes.len();
        let total = object.total_rows();
        path.rows = match (path.is_points, self.rows_per_value) {
            (true, Some(rows)) => Some((path.spans.len() as f64 * rows).ceil() as u64),
            _ => share.map(|share| (share * total as f64).ceil() as u64),
        };
        self.shorten(&mut path);
        if self.kind == IndexKind::Hashed {
            return path.is_points.then_some(path);
        }
        if is_exact && self.order(&mut path, fragment, fixed, total) {
            return Some(path);
        }
        (depth > 0).then_some(path)
    }

    /// What the conditions on a column say together.
    fn said(&self, fragment: &Fragment, number: usize) -> Option<Said> {
        let column = fragment
            .columns
            .iter()
            .position(|column| *column == self.columns[number])?;
        let coding = &self.codings[number];
        let mut said: Option<Said> = None;
        let mut add = |spans: Spans, condition: Option<usize>, probe: Option<usize>| {
            let said = said.get_or_insert_with(|| Said {
                spans: vec![Span::new(Vec::new(), None)],
                conditions: Vec::new(),
                probes: Vec::new(),
            });
            said.spans = intersection(&said.spans, &spans);
            said.conditions.extend(condition);
            said.probes.extend(probe);
        };
        for (position, condition) in fragment.filter.iter().enumerate() {
            if let Some(spans) = coding.spans(condition, column) {
                add(spans, Some(position), None);
            }
        }
        for (position, probe) in fragment.probes.iter().enumerate() {
            if probe.column == column
                && let Some(spans) = coding.spans_of_keys(&probe.keys)
            {
                add(spans, None, Some(position));
            }
        }
        said
    }

    /// Which share of the rows has a value in the spans, if all values were as frequent.
    fn share(&self, number: usize, spans: &Spans, object: &DataObject) -> Option<f64> {
        let column = self.columns[number];
        let rows = object.total_rows().max(1) as f64;
        let (min, max) = match object.column_range(column)? {
            ZoneRange::Integer(min, max) => {
                let data_type = object.schema.field(column.index()).data_type();
                (from_integer(data_type, min), from_integer(data_type, max))
            }
            _ => return None,
        };
        let place = |bytes: &[u8]| {
            let mut first = [0; 8];
            let bytes = &bytes[usize::from(self.codings[number].is_nullable()).min(bytes.len())..];
            let common = bytes.len().min(8);
            first[..common].copy_from_slice(&bytes[..common]);
            i128::from(u64::from_be_bytes(first))
        };
        let coded = |value: i128| self.codings[number].bytes(&Value::Integer(value));
        let (low, high) = (place(&coded(min)?), place(&coded(max)?));
        let distinct = ((max - min) as f64 + 1.0).min(rows);
        let unit = (high - low) / (max - min).max(1);
        let (end, all) = (high + unit, (high - low + unit).max(1));
        let mut share = 0.0;
        for span in spans {
            share += if span.is_value {
                1.0 / distinct
            } else {
                let from = if span.low.len() > 1 {
                    place(&span.low)
                } else {
                    low
                };
                let to = match &span.high {
                    Some(high) if high.len() > 1 => place(high),
                    _ => end,
                };
                let inside = to.min(end) - from.max(low);
                (inside as f64 / all as f64).clamp(0.0, 1.0)
            };
        }
        Some(share.min(1.0))
    }

    /// Cuts keys off where the index does.
    fn shorten(&self, path: &mut Path) {
        if self.index.is_none() {
            return;
        }
        for span in &mut path.spans {
            if span.low.len() > KEY_BYTES {
                span.low.truncate(KEY_BYTES);
            }
            if let Some(high) = span.high.take_if(|high| high.len() > KEY_BYTES) {
                span.high = successor(&high[..KEY_BYTES]);
            }
        }
    }

    /// Makes the path one that ends when there are enough rows, if the fragment is content with the first by the order of
    /// the index, or with the least or greatest.
    fn order(&self, path: &mut Path, fragment: &Fragment, fixed: usize, total: u64) -> bool {
        let Some(coding) = self.codings.get(fixed).filter(|coding| coding.sorts()) else {
            return false;
        };
        let ordering = self.columns[fixed];
        if let Some(order) = &fragment.order {
            let column = |position: usize| fragment.columns.get(position);
            let is_fixed = |key: &&eris_fragment::OrderKey| {
                let at = self.columns[..fixed]
                    .iter()
                    .position(|other| Some(other) == column(key.column));
                at.is_none()
            };
            let keys: Vec<_> = order.keys.iter().filter(is_fixed).collect();
            let same = keys.iter().zip(&self.columns[fixed..]);
            let covers = keys.len() <= self.columns.len() - fixed
                && same.clone().all(|(key, own)| column(key.column) == Some(own))
                && keys.windows(2).all(|pair| pair[0].descending == pair[1].descending)
                && self.codings[fixed..].iter().take(keys.len()).all(Coding::sorts)
                // Only the first column's NULLs can be put where they are wanted.
                && (keys.len() <= 1 || self.index.is_none());
            let few = order.rows <= (total / ROWS_IN_ORDER).max(ALWAYS);
            let (Some(first), true, true) = (keys.first(), covers, few) else {
                return false;
            };
            path.descending = first.descending;
            path.enough = Enough::First(order.rows as usize);
            let nulls_come_first = coding.is_nullable() && first.nulls_first;
            path.spans = self.arranged(&path.spans, fixed, nulls_come_first, first.descending);
            return true;
        }
        let Output::Groups { keys, aggregates } = &fragment.output else {
            return false;
        };
        let is_extreme = |function| {
            aggregates
                .iter()
                .any(|aggregate| aggregate.function == function)
        };
        let (first, last) = (
            is_extreme(AggregateFunction::Min),
            is_extreme(AggregateFunction::Max),
        );
        let all = !aggregates.is_empty()
            && aggregates.iter().all(|aggregate| {
                let of = match &aggregate.input {
                    Some(Expr::Column(position)) => {
                        fragment.columns.get(*position) == Some(&ordering)
                    }
                    _ => false,
                };
                let extreme = matches!(
                    aggregate.function,
                    AggregateFunction::Min | AggregateFunction::Max
                );
                of && extreme && aggregate.filter.is_none()
            });
        if !keys.is_empty() || !all {
            return false;
        }
        path.enough = Enough::Ends { first, last };
        // NULL is neither the least nor the greatest.
        let prefix = self.prefix(&path.spans, fixed);
        let values = beneath(&prefix, &coding.values());
        path.spans = intersection(&path.spans, &values);
        true
    }

    /// The bytes of the columns of which there is one value.
    fn prefix(&self, spans: &Spans, fixed: usize) -> Vec<u8> {
        // All spans begin with them; how long they are is known from a path that has only these.
        match (fixed, spans.first()) {
            (0, _) | (_, None) => Vec::new(),
            (_, Some(span)) => {
                let mut end = 0;
                for coding in &self.codings[..fixed] {
                    end += coding.length(&span.low[end..]);
                }
                span.low[..end].to_vec()
            }
        }
    }

    /// The spans in the order of a walk, NULLs of the ordering column where they are wanted.
    fn arranged(&self, spans: &Spans, fixed: usize, nulls_first: bool, descending: bool) -> Spans {
        let coding = &self.codings[fixed];
        let prefix = self.prefix(spans, fixed);
        let mut values = intersection(spans, &beneath(&prefix, &coding.values()));
        let mut nulls = intersection(spans, &beneath(&prefix, &coding.null()));
        if descending {
            values.reverse();
            nulls.reverse();
        }
        match nulls_first {
            true => nulls.into_iter().chain(values).collect(),
            false => values.into_iter().chain(nulls).collect(),
        }
    }
}

/// Spans of a column behind a prefix of other columns.
fn beneath(prefix: &[u8], spans: &Spans) -> Spans {
    let span = Span {
        low: prefix.to_vec(),
        high: successor(prefix),
        is_value: true,
    };
    product(&vec![span], spans)
}

/// Spans of several columns from those of the first, which are single values, and those of the next.
fn product(prefixes: &Spans, spans: &Spans) -> Spans {
    let mut all = Vec::with_capacity(prefixes.len() * spans.len());
    for prefix in prefixes {
        for span in spans {
            let high = match &span.high {
                Some(high) => Some([&prefix.low[..], high].concat()),
                None => successor(&prefix.low),
            };
            all.push(Span {
                low: [&prefix.low[..], &span.low].concat(),
                high,
                is_value: span.is_value,
            });
        }
    }
    all
}
