//! What an index can do for a fragment: conditions on its columns as ranges of its keys, how many rows these lead to,
//! and whether the fragment wants rows in its order.

use super::{ALWAYS, Enough, Path, ROWS_IN_ORDER};
use crate::object::coding::{ByteRange, ByteRanges, Coding, MOST_KEYS, intersection, successor};
use crate::object::data_object::DataObject;
use crate::object::indexes::key_bytes;
use eris_column::{ZoneRange, from_integer};
use eris_fragment::{AggregateFunction, Expr, Fragment, Output, Value};
use eris_home::IndexKind;
use eris_types::ColumnId;

/// What is to be known of an index.
pub(super) struct Candidate {
    pub index: Option<u32>,
    pub kind: IndexKind,
    pub columns: Vec<ColumnId>,
    pub codings: Vec<Coding>,
    /// Rows per value, if that is known.
    pub rows_per_value: Option<f64>,
}

/// What conditions say of one column.
struct Said {
    ranges: ByteRanges,
    conditions: Vec<usize>,
    probes: Vec<usize>,
}

impl Candidate {
    /// The path by this index, if conditions or an order name what it begins with.
    pub fn path(&self, fragment: &Fragment, object: &DataObject) -> Option<Path> {
        let said: Vec<Option<Said>> = (0..self.columns.len())
            .map(|number| self.said(fragment, number))
            .collect();
        let mut path = Path {
            index: self.index,
            columns: self.columns.clone(),
            ranges: vec![ByteRange::new(Vec::new(), None)],
            is_points: false,
            descending: false,
            enough: Enough::All,
            owners: Vec::new(),
            conditions: Vec::new(),
            probes: Vec::new(),
            rows: None,
            found: None,
            asked: self.asked(object),
        };
        let mut depth = 0;
        // Columns of which there is one value.
        let mut fixed = 0;
        // The share of the rows.
        let mut share = Some(1.0);
        let mut values_only = true;
        for said in said.iter().map_while(Option::as_ref) {
            let values = said.ranges.iter().all(|range| range.is_value);
            let count = path.ranges.len() as u64 * said.ranges.len() as u64;
            if count > MOST_KEYS {
                return None;
            }
            share = share
                .zip(self.share(depth, &said.ranges, object))
                .map(|(a, b)| a * b);
            path.ranges = product(&path.ranges, &said.ranges);
            path.conditions.extend(&said.conditions);
            path.probes.extend(&said.probes);
            depth += 1;
            if values && said.ranges.len() == 1 && fixed + 1 == depth {
                fixed = depth;
            }
            if !values {
                values_only = false;
                break;
            }
        }
        path.is_points = values_only && depth == self.columns.len();
        let is_exact = path.conditions.len() == fragment.filter.len()
            && path.probes.len() == fragment.probes.len()
            && fragment.lookups.is_empty();
        let total = object.total_rows();
        path.rows = match (path.is_points, self.rows_per_value) {
            (true, Some(rows)) => Some((path.ranges.len() as f64 * rows).ceil() as u64),
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

    /// How many owners are asked: those of ranges of the key are mostly one.
    fn asked(&self, object: &DataObject) -> u64 {
        match self.index {
            None => 1,
            Some(_) => object.holders().count().max(1) as u64,
        }
    }

    /// What the conditions on a column say together.
    fn said(&self, fragment: &Fragment, number: usize) -> Option<Said> {
        let column = fragment
            .columns
            .iter()
            .position(|column| *column == self.columns[number])?;
        let coding = &self.codings[number];
        let mut said: Option<Said> = None;
        let mut add = |ranges: ByteRanges, condition: Option<usize>, probe: Option<usize>| {
            let said = said.get_or_insert_with(|| Said {
                ranges: vec![ByteRange::new(Vec::new(), None)],
                conditions: Vec::new(),
                probes: Vec::new(),
            });
            said.ranges = intersection(&said.ranges, &ranges);
            said.conditions.extend(condition);
            said.probes.extend(probe);
        };
        for (position, condition) in fragment.filter.iter().enumerate() {
            if let Some(ranges) = coding.ranges(condition, column) {
                add(ranges, Some(position), None);
            }
        }
        for (position, probe) in fragment.probes.iter().enumerate() {
            if probe.column == column
                && let Some(ranges) = coding.ranges_of_keys(&probe.keys)
            {
                add(ranges, None, Some(position));
            }
        }
        // Their rows are looked up all the same, but only for rows that have one.
        for lookup in &fragment.lookups {
            if lookup.column == column
                && let Some(keys) = lookup.required()
                && let Some(ranges) = coding.ranges_of_keys(keys)
            {
                add(ranges, None, None);
            }
        }
        said
    }

    /// Which share of the rows has a value in the ranges, if all values were as frequent.
    fn share(&self, number: usize, ranges: &ByteRanges, object: &DataObject) -> Option<f64> {
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
        for range in ranges {
            share += if range.is_value {
                1.0 / distinct
            } else {
                let from = if range.low.len() > 1 {
                    place(&range.low)
                } else {
                    low
                };
                let to = match &range.high {
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
        let most = key_bytes(self.kind);
        for range in &mut path.ranges {
            if range.low.len() > most {
                range.low.truncate(most);
            }
            if let Some(high) = range.high.take_if(|high| high.len() > most) {
                range.high = successor(&high[..most]);
            }
        }
    }

    /// Makes the path one that ends when there are enough rows, if the fragment is content with the first by the order
    /// of the index, or with the least or greatest.
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
            // Each owner passes the rows of all others.
            let owners = match self.kind {
                IndexKind::Shared => path.asked,
                IndexKind::Ordered | IndexKind::Hashed => 1,
            };
            let few = order.rows <= (total / (ROWS_IN_ORDER * owners)).max(ALWAYS);
            let (Some(first), true, true) = (keys.first(), covers, few) else {
                return false;
            };
            path.descending = first.descending;
            path.enough = Enough::First(order.rows as usize);
            let nulls_come_first = coding.is_nullable() && first.nulls_first;
            path.ranges = self.arranged(&path.ranges, fixed, nulls_come_first, first.descending);
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
        let prefix = self.prefix(&path.ranges, fixed);
        let values = beneath(&prefix, &coding.values());
        path.ranges = intersection(&path.ranges, &values);
        true
    }

    /// The bytes of the columns of which there is one value.
    fn prefix(&self, ranges: &ByteRanges, fixed: usize) -> Vec<u8> {
        // All ranges begin with them; how long they are is known from a path that has only these.
        match (fixed, ranges.first()) {
            (0, _) | (_, None) => Vec::new(),
            (_, Some(range)) => {
                let mut end = 0;
                for coding in &self.codings[..fixed] {
                    end += coding.length(&range.low[end..]);
                }
                range.low[..end].to_vec()
            }
        }
    }

    /// The ranges in the order of a walk, NULLs of the ordering column where they are wanted.
    fn arranged(
        &self,
        ranges: &ByteRanges,
        fixed: usize,
        nulls_first: bool,
        descending: bool,
    ) -> ByteRanges {
        let coding = &self.codings[fixed];
        let prefix = self.prefix(ranges, fixed);
        let mut values = intersection(ranges, &beneath(&prefix, &coding.values()));
        let mut nulls = intersection(ranges, &beneath(&prefix, &coding.null()));
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

/// Ranges of a column behind a prefix of other columns.
fn beneath(prefix: &[u8], ranges: &ByteRanges) -> ByteRanges {
    let range = ByteRange {
        low: prefix.to_vec(),
        high: successor(prefix),
        is_value: true,
    };
    product(&vec![range], ranges)
}

/// Ranges of several columns from those of the first, which are single values, and those of the next.
fn product(prefixes: &ByteRanges, ranges: &ByteRanges) -> ByteRanges {
    let mut all = Vec::with_capacity(prefixes.len() * ranges.len());
    for prefix in prefixes {
        for range in ranges {
            let high = match &range.high {
                Some(high) => Some([&prefix.low[..], high].concat()),
                None => successor(&prefix.low),
            };
            all.push(ByteRange {
                low: [&prefix.low[..], &range.low].concat(),
                high,
                is_value: range.is_value,
            });
        }
    }
    all
}
