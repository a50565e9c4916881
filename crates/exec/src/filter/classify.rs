//! Sorting conjuncts: what one column decides becomes a test on its encoded values.

use super::interval::IntervalSet;
use super::predicate::{Tests, tests};
use super::truth::{Truth, solve};
use crate::by_order::ByOrder;
use crate::columns::FragmentColumns;
use crate::expr::{Expression, Frame, columns_of};
use crate::lookup::joined_fields;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray, new_null_array};
use eris_column::{ColumnPredicate, Dictionary, Domain, StringTest, Zone};
use eris_fragment::{
    BinaryOp, Expr, Fragment, FragmentError, KeySet, PhaseKind, Scalar, Type, Value,
};
use std::sync::Arc;

/// A compiled filter.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// No row can pass.
    pub(crate) never: bool,
    /// Conditions on encoded columns.
    pub(crate) tests: Vec<Test>,
    /// All other conditions, in the order they were given.
    pub(crate) residual: Vec<Expression>,
    /// What each of them is: the tests, then the others.
    pub(crate) phases: Vec<PhaseKind>,
}

/// A condition on one encoded column.
#[derive(Debug)]
pub(crate) struct Test {
    /// A position in the fragment's columns.
    pub(crate) column: usize,
    /// For the values of the column's domain; for strings: for codes, if the column has a dictionary.
    pub(crate) predicate: Arc<ColumnPredicate>,
    /// For chunks of plain strings.
    pub(crate) plain: Option<Arc<ColumnPredicate>>,
    /// For chunks that are stored by an order of keys.
    pub(crate) by_order: ByOrder<ColumnPredicate>,
    /// NULL passes too.
    pub(crate) or_null: bool,
}

impl Filter {
    /// Whether no row passes of a part of the table with these zones.
    pub(crate) fn excludes(&self, zone: impl Fn(usize) -> Option<Zone>) -> bool {
        let excludes = |test: &Test| {
            let zone = zone(test.column);
            zone.is_some_and(|zone| {
                test.predicate.excludes(&zone) && !(test.or_null && zone.nulls > 0)
            })
        };
        self.never || self.tests.iter().any(excludes)
    }

    pub(crate) fn compile(
        fragment: &Fragment,
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
        let mut conjuncts = Vec::new();
        for conjunct in &fragment.filter {
            // Whatever becomes of it: it has to be well formed.
            Expression::condition(conjunct, columns)?;
            flatten(conjunct, &mut conjuncts);
        }
        let mut sorter = Sorter {
            columns,
            solved: columns.ids.iter().map(|_| None).collect(),
            strings: columns.ids.iter().map(|_| None).collect(),
            residual: Vec::new(),
            kind: PhaseKind::Output,
            ranges: Vec::new(),
            filter: Filter::default(),
        };
        for conjunct in conjuncts {
            sorter.conjunct(conjunct)?;
        }
        for probe in &fragment.probes {
            sorter.kind = key_phase(probe.column, &probe.keys, Vec::new());
            sorter.probe(probe.column, &probe.keys)?;
        }
        for lookup in &fragment.lookups {
            let column = lookup.column;
            if lookup.outer {
                continue;
            }
            let Some(keys) = lookup.required() else {
                let reason = "a lookup by values that are no keys";
                return Err(FragmentError::Malformed { reason });
            };
            let joined = joined_fields(&lookup.rows).map(|field| field.name().clone());
            sorter.kind = key_phase(column, keys, joined.collect());
            sorter.probe(column, keys)?;
        }
        sorter.finish()
    }
}

/// A set of keys, as a phase.
fn key_phase(column: usize, keys: &KeySet, joined: Vec<String>) -> PhaseKind {
    PhaseKind::Keys {
        column,
        keys: keys.len(),
        joined,
    }
}

/// The conjuncts of a condition.
fn flatten<'a>(condition: &'a Expr, conjuncts: &mut Vec<&'a Expr>) {
    match condition {
        Expr::Binary {
            op: BinaryOp::And,
            left,
            right,
        } => {
            flatten(left, conjuncts);
            flatten(right, conjuncts);
        }
        other => conjuncts.push(other),
    }
}

fn conjunction(left: Expr, right: Expr) -> Expr {
    Expr::Binary {
        op: BinaryOp::And,
        left: Box::new(left),
        right: Box::new(right),
    }
}

struct Sorter<'a> {
    columns: &'a FragmentColumns,
    /// Per column, all that was solved of it, with the conjuncts it stands for.
    solved: Vec<Option<(Truth, Vec<Expr>)>>,
    /// Per column of strings, the conjunction of its conditions.
    strings: Vec<Option<Expr>>,
    /// The rest, in the order given.
    residual: Vec<Expr>,
    /// What the next tests are.
    kind: PhaseKind,
    /// Key sets that are ranges, by their columns: they are among what was solved.
    ranges: Vec<(usize, PhaseKind)>,
    filter: Filter,
}

impl Sorter<'_> {
    fn conjunct(&mut self, conjunct: &Expr) -> Result<(), FragmentError> {
        let column = match columns_of(conjunct)[..] {
            [] => return self.constant(conjunct),
            [column] => column,
            _ => {
                self.residual.push(conjunct.clone());
                return Ok(());
            }
        };
        if self.columns.domains[column] == Domain::String {
            // A condition that may fail must fail only on rows that get that far.
            if Expression::condition(conjunct, self.columns)?.infallible {
                let all = match self.strings[column].take() {
                    Some(others) => conjunction(others, conjunct.clone()),
                    None => conjunct.clone(),
                };
                self.strings[column] = Some(all);
                return Ok(());
            }
        } else if let Some(truth) = solve(conjunct, column, self.columns) {
            self.add(column, truth, conjunct.clone());
            return Ok(());
        }
        self.residual.push(conjunct.clone());
        Ok(())
    }

    fn constant(&mut self, conjunct: &Expr) -> Result<(), FragmentError> {
        let condition = Expression::condition(conjunct, self.columns)?;
        let frame = Frame {
            rows: 1,
            columns: Vec::new(),
        };
        match condition.holds(&frame) {
            Ok(holds) => self.filter.never |= !holds.value(0),
            // It fails if there is a row to evaluate it for.
            Err(_) => self.residual.push(conjunct.clone()),
        }
        Ok(())
    }

    fn add(&mut self, column: usize, truth: Truth, conjunct: Expr) {
        self.solved[column] = Some(match self.solved[column].take() {
            Some((others, mut conjuncts)) => {
                conjuncts.push(conjunct);
                (others.and(truth), conjuncts)
            }
            None => (truth, vec![conjunct]),
        });
    }

    fn test(&mut self, column: usize, predicate: ColumnPredicate, or_null: bool) {
        self.push(Test {
            column,
            predicate: predicate.into(),
            plain: None,
            by_order: ByOrder::default(),
            or_null,
        });
    }

    fn push(&mut self, test: Test) {
        self.filter.tests.push(test);
        self.filter.phases.push(self.kind.clone());
    }

    fn probe(&mut self, column: usize, keys: &KeySet) -> Result<(), FragmentError> {
        let Some(domain) = self.columns.domains.get(column) else {
            return Err(FragmentError::Malformed {
                reason: "a probe of a column that the fragment does not read",
            });
        };
        match (domain, keys) {
            (Domain::String, KeySet::Strings(keys)) => self.string_keys(column, keys),
            (Domain::Integer, KeySet::Range { low, high }) => {
                let condition = self.range_condition(column, *low, *high);
                let truth = solve(&condition, column, self.columns);
                self.add(column, truth.expect("a range of integers"), condition);
                self.ranges.push((column, self.kind.clone()));
            }
            (Domain::Integer, KeySet::Integers(keys)) => self.integer_keys(column, keys.clone()),
            (Domain::Integer, KeySet::Bitmap { first, words }) => {
                let unsigned = self.columns.types[column] == Type::UInt64;
                if unsigned && *first < 0 {
                    self.integer_keys(column, bits(*first, words).collect());
                } else if keys.is_empty() {
                    self.filter.never = true;
                } else {
                    let first = if unsigned { first ^ i64::MIN } else { *first };
                    let words = words.clone().into();
                    self.test(
                        column,
                        ColumnPredicate::IntegerBitmap { first, words },
                        false,
                    );
                }
            }
            // No predicate of chunks covers 128-bit decimals.
            (Domain::Wide, KeySet::Range { low, high }) => {
                self.residual
                    .push(self.range_condition(column, *low, *high));
            }
            (Domain::Wide, KeySet::Integers(keys)) => {
                self.residual.push(self.list_condition(column, keys));
            }
            (Domain::Wide, KeySet::Bitmap { first, words }) => {
                let keys: Vec<i64> = bits(*first, words).collect();
                self.residual.push(self.list_condition(column, &keys));
            }
            _ => {
                return Err(FragmentError::Malformed {
                    reason: "a probe with keys of another type than its column",
                });
            }
        }
        Ok(())
    }

    /// Keys of a column of integers, ascending.
    fn integer_keys(&mut self, column: usize, mut keys: Vec<i64>) {
        let data_type = &self.columns.types[column];
        if *data_type == Type::UInt64 {
            keys.retain(|&key| key >= 0);
            keys.iter_mut().for_each(|key| *key ^= i64::MIN);
        }
        let truth = Truth::member(IntervalSet::points(keys.clone()));
        let tests = tests(&truth, data_type, Domain::Integer);
        match tests {
            Some(Tests::Each(predicates)) => {
                for predicate in predicates {
                    self.test(column, predicate, false);
                }
            }
            Some(_) => self.filter.never = true,
            None => self.test(column, ColumnPredicate::IntegerSet(keys.into()), false),
        }
    }

    fn key(&self, column: usize, key: i64) -> Scalar {
        Scalar {
            data_type: self.columns.types[column].clone(),
            value: Value::Integer(key as i128),
        }
    }

    fn range_condition(&self, column: usize, low: i64, high: i64) -> Expr {
        let compare = |op, key| Expr::Binary {
            op,
            left: Box::new(Expr::Column(column)),
            right: Box::new(Expr::Literal(self.key(column, key))),
        };
        conjunction(compare(BinaryOp::GtEq, low), compare(BinaryOp::LtEq, high))
    }

    fn list_condition(&self, column: usize, keys: &[i64]) -> Expr {
        Expr::InList {
            operand: Box::new(Expr::Column(column)),
            list: keys.iter().map(|&key| self.key(column, key)).collect(),
            negated: false,
        }
    }

    fn string_keys(&mut self, column: usize, keys: &[String]) {
        let plain = one_of(keys.iter().map(String::as_str));
        let predicate = match &self.columns.dictionaries[column] {
            Some(dictionary) => codes_of(dictionary, keys.iter().map(String::as_str)),
            None => plain.clone(),
        };
        self.filter.never |= keys.is_empty();
        self.push(Test {
            column,
            predicate: predicate.into(),
            plain: Some(plain.into()),
            by_order: ByOrder::default(),
            or_null: false,
        });
    }

    /// Tests for a condition on a column of strings: evaluated now for each string of the dictionary, later for each
    /// string of chunks without.
    fn string_condition(&mut self, column: usize, condition: &Expr) -> Result<(), FragmentError> {
        let equal = equal_to(condition);
        self.kind = PhaseKind::Conditions(vec![condition.clone()]);
        let condition = Arc::new(Expression::condition(condition, self.columns)?);
        let frame_of = {
            let count = self.columns.ids.len();
            move |strings: ArrayRef| {
                let mut columns = vec![None; count];
                let rows = strings.len();
                columns[column] = Some(strings);
                Frame { rows, columns }
            }
        };
        let null = new_null_array(&self.columns.data_types[column], 1);
        let or_null = condition.holds(&frame_of(null))?.value(0);
        let predicate = match (&self.columns.dictionaries[column], &equal) {
            // A dictionary knows the codes of a few strings faster than all of its strings are compared with them.
            (Some(dictionary), Some(ColumnPredicate::StringSet(strings))) => {
                Some(codes_of(dictionary, strings.iter().map(AsRef::as_ref)))
            }
            (Some(dictionary), _) => Some(codes(dictionary, |strings| {
                condition.holds(&frame_of(strings))
            })?),
            (None, _) => None,
        };
        let test: StringTest = Arc::new(move |strings: &StringViewArray| {
            let frame = frame_of(Arc::new(strings.clone()));
            let result = condition
                .evaluate(&frame)
                .expect("it was compiled as infallible");
            result.as_boolean().clone()
        });
        let plain = equal.unwrap_or(ColumnPredicate::StringTest(test));
        self.push(Test {
            column,
            predicate: predicate.unwrap_or_else(|| plain.clone()).into(),
            plain: Some(plain.into()),
            by_order: ByOrder::default(),
            or_null,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<Filter, FragmentError> {
        for column in 0..self.columns.ids.len() {
            if let Some(condition) = self.strings[column].take() {
                self.string_condition(column, &condition)?;
            }
            let Some((truth, conjuncts)) = self.solved[column].take() else {
                continue;
            };
            let (data_type, domain) = (&self.columns.types[column], self.columns.domains[column]);
            let tests = tests(&truth, data_type, domain);
            if tests.is_some() {
                let range = self.ranges.iter().find(|(other, _)| *other == column);
                self.kind = match range {
                    Some((_, keys)) if conjuncts.len() == 1 => keys.clone(),
                    _ => PhaseKind::Conditions(conjuncts.clone()),
                };
            }
            match tests {
                Some(Tests::Always) => {}
                Some(Tests::Never) => self.filter.never = true,
                Some(Tests::Each(predicates)) => {
                    for predicate in predicates {
                        self.test(column, predicate, false);
                    }
                }
                Some(Tests::OrNull(predicate)) => self.test(column, predicate, true),
                None => self.residual.extend(conjuncts),
            }
        }
        for condition in self.residual {
            let compiled = Expression::condition(&condition, self.columns)?;
            self.filter.residual.push(compiled);
            self.filter
                .phases
                .push(PhaseKind::Conditions(vec![condition]));
        }
        Ok(self.filter)
    }
}

/// The string is one of these.
fn one_of<'a>(strings: impl Iterator<Item = &'a str>) -> ColumnPredicate {
    let mut strings: Vec<Box<str>> = strings.map(Box::from).collect();
    strings.sort_unstable();
    strings.dedup();
    ColumnPredicate::StringSet(strings.into())
}

/// A condition on one column of strings that is nothing but `column = constant` or `column IN (constants)`.
fn equal_to(condition: &Expr) -> Option<ColumnPredicate> {
    let string = |scalar: &Scalar| match &scalar.value {
        Value::String(string) => Some(string.clone()),
        _ => None,
    };
    let strings: Vec<String> = match condition {
        Expr::Binary {
            op: BinaryOp::Eq,
            left,
            right,
        } => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(_), Expr::Literal(scalar)) | (Expr::Literal(scalar), Expr::Column(_)) => {
                vec![string(scalar)?]
            }
            _ => return None,
        },
        Expr::InList {
            operand,
            list,
            negated: false,
        } if matches!(operand.as_ref(), Expr::Column(_)) => {
            list.iter().map(string).collect::<Option<_>>()?
        }
        _ => return None,
    };
    Some(one_of(strings.iter().map(String::as_str)))
}

/// The codes of these strings.
fn codes_of<'a>(
    dictionary: &Dictionary,
    strings: impl Iterator<Item = &'a str>,
) -> ColumnPredicate {
    let mut words = vec![0u64; dictionary.len().div_ceil(64)];
    for code in strings.filter_map(|string| dictionary.code(string)) {
        words[code.index() / 64] |= 1 << (code.index() % 64);
    }
    ColumnPredicate::Codes(words.into())
}

/// The codes of the strings that pass.
fn codes(
    dictionary: &Dictionary,
    holds: impl Fn(ArrayRef) -> Result<arrow_buffer::BooleanBuffer, FragmentError>,
) -> Result<ColumnPredicate, FragmentError> {
    let passing = holds(Arc::new(dictionary.values().clone()))?;
    let mut words = vec![0u64; passing.len().div_ceil(64)];
    for code in passing.set_indices() {
        words[code / 64] |= 1 << (code % 64);
    }
    Ok(ColumnPredicate::Codes(words.into()))
}

/// The keys of a bitmap.
fn bits(first: i64, words: &[u64]) -> impl Iterator<Item = i64> + '_ {
    (0..words.len() * 64)
        .filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
        .filter_map(move |bit| first.checked_add(bit as i64))
}
