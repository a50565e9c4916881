//! Random fragments over random tables, against an evaluator that takes one row at a time.

mod common;

use common::oracle::{Failed, Oracle, aggregate};
use common::random::Generator;
use common::table::Table;
use common::{Rng, rows_of, run, run_repartitioning, same, seeds};
use eris_fragment::*;
use std::collections::HashMap;

/// What the oracle says of a fragment.
#[derive(Debug)]
struct Expected {
    /// `None`: it has to fail.
    rows: Option<Vec<Vec<Value>>>,
    /// It may fail: a condition fails on a row that another condition excludes.
    may_fail: bool,
}

enum Verdict {
    Passes,
    Fails,
    Excluded { may_fail: bool },
}

fn verdict(fragment: &Fragment, relations: &Relations, oracle: &Oracle<'_>) -> Verdict {
    let mut excluded = false;
    let mut failed = false;
    for condition in &fragment.filter {
        match oracle.truth(condition) {
            Ok(truth) => excluded |= truth != Some(true),
            Err(Failed) => failed = true,
        }
    }
    for probe in &fragment.probes {
        let found = match (&oracle.row[probe.column], &probe.keys) {
            (Value::Integer(key), KeySet::Range { low, high }) => {
                (*low as i128..=*high as i128).contains(key)
            }
            (Value::Integer(key), KeySet::Bitmap { first, words }) => {
                let bit = key - *first as i128;
                (0..words.len() as i128 * 64).contains(&bit)
                    && words[bit as usize / 64] >> (bit % 64) & 1 == 1
            }
            (Value::Boolean(key), keys) => {
                let row = [Value::Integer(*key as i128)];
                let key = Oracle {
                    types: &[Type::Int64],
                    row: &row,
                };
                let probe = Probe {
                    column: 0,
                    keys: keys.clone(),
                };
                let alone = Fragment {
                    filter: vec![],
                    probes: vec![probe],
                    lookups: vec![],
                    ..fragment.clone()
                };
                matches!(
                    verdict(&alone, &Relations::of(&alone), &key),
                    Verdict::Passes
                )
            }
            (Value::Integer(key), KeySet::Integers(keys)) => {
                keys.iter().any(|&member| member as i128 == *key)
            }
            (Value::String(key), KeySet::Strings(keys)) => keys.contains(key),
            (Value::Null, _) => false,
            other => panic!("{other:?}"),
        };
        excluded |= !found;
    }
    excluded |= relations.join(oracle.row).is_empty();
    match (excluded, failed) {
        (true, may_fail) => Verdict::Excluded { may_fail },
        (false, true) => Verdict::Fails,
        (false, false) => Verdict::Passes,
    }
}

/// Rows of a relation, without their keys, by these.
type ByKey = HashMap<String, Vec<Vec<Value>>>;

/// The relations of lookups, each with the column that it is joined by; and of outer joins what a row without a match
/// is joined to.
struct Relations(Vec<(usize, ByKey, Option<Vec<Value>>)>);

impl Relations {
    fn of(fragment: &Fragment) -> Self {
        let relation = |lookup: &Lookup| {
            let rows = rows_of(std::slice::from_ref(&lookup.rows)).into_iter();
            let mut by_key = ByKey::new();
            for mut row in rows {
                let key = format!("{:?}", row.remove(0));
                by_key.entry(key).or_default().push(row);
            }
            let nulls = vec![Value::Null; lookup.joined().len()];
            (lookup.column, by_key, lookup.outer.then_some(nulls))
        };
        Relations(fragment.lookups.iter().map(relation).collect())
    }

    /// The row with each of the rows that are joined to it; none if a key is not found.
    fn join(&self, row: &[Value]) -> Vec<Vec<Value>> {
        let mut joined = vec![row.to_vec()];
        for (column, by_key, no_match) in &self.0 {
            let nobody: Vec<Vec<Value>> = no_match.iter().cloned().collect();
            let rows = by_key
                .get(&format!("{:?}", row[*column]))
                .unwrap_or(&nobody);
            let pairs = |row: &Vec<Value>| {
                rows.iter()
                    .map(|more| [&row[..], more].concat())
                    .collect::<Vec<_>>()
            };
            joined = joined.iter().flat_map(pairs).collect();
        }
        joined
    }
}

/// The types of all columns that a fragment's output can name.
fn types_of(fragment: &Fragment, table: &Table) -> Vec<Type> {
    let own = fragment.columns.iter();
    let own = own.map(|id| table.types[id.index()].clone());
    let joined = fragment.lookups.iter().flat_map(|lookup| {
        let columns = lookup.joined().iter();
        columns.map(|column| column.data_type().try_into().unwrap())
    });
    own.chain(joined).collect()
}

fn expected(fragment: &Fragment, table: &Table) -> Expected {
    let types = types_of(fragment, table);
    let relations = Relations::of(fragment);
    let limit = match &fragment.output {
        Output::Rows { limit, .. } => limit.unwrap_or(u64::MAX),
        Output::Groups { .. } => u64::MAX,
    };
    let mut may_fail = false;
    let mut must_fail = false;
    // Rows that come after the last one that is wanted may have been looked at.
    may_fail |= limit < u64::MAX && fragment.lookups.iter().any(|lookup| !lookup.is_unique());
    let mut passing: Vec<Vec<Value>> = Vec::new();
    for chunk in &table.chunks {
        for (row, visible) in chunk.rows.iter().zip(&chunk.visible) {
            if !visible {
                continue;
            }
            let row: Vec<Value> = fragment
                .columns
                .iter()
                .map(|id| row[id.index()].clone())
                .collect();
            let oracle = Oracle {
                types: &types,
                row: &row,
            };
            let full = passing.len() as u64 >= limit;
            match verdict(fragment, &relations, &oracle) {
                Verdict::Passes if full => {}
                Verdict::Passes => passing.extend(relations.join(&row)),
                Verdict::Fails if full => may_fail = true,
                Verdict::Fails => must_fail = true,
                Verdict::Excluded { may_fail: may } => may_fail |= may,
            }
        }
    }
    passing.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let rows = match &fragment.output {
        _ if must_fail => Err(Failed),
        Output::Rows { columns, .. } => passing
            .iter()
            .map(|row| {
                let oracle = Oracle { types: &types, row };
                columns.iter().map(|expr| oracle.value(expr)).collect()
            })
            .collect(),
        Output::Groups { keys, aggregates } => groups(&types, &passing, keys, aggregates),
    };
    Expected {
        rows: rows.ok(),
        may_fail,
    }
}

fn groups(
    types: &[Type],
    passing: &[Vec<Value>],
    keys: &[Expr],
    aggregates: &[Aggregate],
) -> Result<Vec<Vec<Value>>, Failed> {
    let mut members: HashMap<String, (Vec<Value>, Vec<Vec<Value>>)> = HashMap::new();
    let nobody = || vec![Vec::new(); aggregates.len()];
    if keys.is_empty() {
        members.insert(String::new(), (vec![], nobody()));
    }
    for row in passing {
        let oracle = Oracle { types, row };
        let key: Vec<Value> = keys
            .iter()
            .map(|key| oracle.value(key))
            .collect::<Result<_, _>>()?;
        let (_, arguments) = members
            .entry(group_name(&key))
            .or_insert_with(|| (key, nobody()));
        for (aggregate, arguments) in aggregates.iter().zip(arguments) {
            if let Some(filter) = &aggregate.filter
                && oracle.truth(filter)? != Some(true)
            {
                continue;
            }
            arguments.push(match &aggregate.input {
                Some(input) => oracle.value(input)?,
                None => Value::Boolean(true),
            });
        }
    }
    members
        .into_values()
        .map(|(mut row, arguments)| {
            for (one, values) in aggregates.iter().zip(arguments) {
                let argument = one
                    .input
                    .as_ref()
                    .map(|input| input.data_type(types).unwrap());
                row.push(aggregate(one, argument.as_ref(), &values)?);
            }
            Ok(row)
        })
        .collect()
}

/// The same for keys that belong to one group. NaNs of different bits are different groups.
fn group_name(key: &[Value]) -> String {
    let mut name = String::new();
    for value in key {
        match value {
            Value::Float(value) => name += &format!("{:x},", (value + 0.0).to_bits()),
            other => name += &format!("{other:?},"),
        }
    }
    name
}

fn check(seed: u64) -> &'static str {
    let mut rng = Rng(seed);
    let table = Table::random(&mut rng);
    let fragment = Generator::fragment(&mut rng);
    let expected = expected(&fragment, &table);
    let context = || format!("ERIS_SEED={seed}\n{fragment:#?}");
    let grouped = matches!(&fragment.output, Output::Groups { keys, .. } if !keys.is_empty());
    let result = match grouped && rng.one_in(2) {
        true => run_repartitioning(&fragment, &table, &mut rng),
        false => run(&fragment, &table),
    };
    let (mut rows, expected) = match (result, expected) {
        (Err(FragmentError::Malformed { reason }), _) => panic!("{reason}: {}", context()),
        (Err(_), Expected { rows: None, .. }) => return "failed",
        (Err(_), Expected { may_fail: true, .. }) => return "failed early",
        (Err(error), _) => panic!("{error}: {}", context()),
        (Ok(_), Expected { rows: None, .. }) => panic!("it should fail: {}", context()),
        (
            Ok(batches),
            Expected {
                rows: Some(rows), ..
            },
        ) => {
            let types = types_of(&fragment, &table);
            for batch in &batches {
                let types = fragment.output_types(&types).unwrap();
                for (field, data_type) in batch.schema().fields().iter().zip(types) {
                    assert_eq!(field.data_type(), &(&data_type).into(), "{}", context());
                }
            }
            (rows_of(&batches), rows)
        }
    };
    let mut expected = expected;
    if let Output::Groups { keys, .. } = &fragment.output {
        rows.sort_by_cached_key(|row| group_name(&row[..keys.len()]));
        expected.sort_by_cached_key(|row| group_name(&row[..keys.len()]));
    }
    assert_eq!(rows.len(), expected.len(), "number of rows: {}", context());
    for (row, expected) in rows.iter().zip(&expected) {
        let same = row
            .iter()
            .zip(expected)
            .all(|(left, right)| same(left, right));
        assert!(same, "{row:?}\n{expected:?}\n{}", context());
    }
    if rows.is_empty() { "empty" } else { "rows" }
}

#[test]
fn random_fragments_agree_with_the_naive_evaluator() {
    let mut outcomes: HashMap<&str, u64> = HashMap::new();
    let seeds = seeds(3_000);
    for &seed in &seeds {
        *outcomes.entry(check(seed)).or_default() += 1;
    }
    println!("{outcomes:?}");
    if seeds.len() > 1 {
        // A generator that only makes failing or empty fragments would prove little.
        assert!(outcomes["rows"] > seeds.len() as u64 / 4, "{outcomes:?}");
    }
}
