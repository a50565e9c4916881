//! A client that asks short statements and knows their answers.

use super::StatementBenchError;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_sql::{Outcome, PreparedStatement, Session, TableRows};
use futures::executor::block_on;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A sum over the rows that pass a filter.
    Scan,
    /// The row with a key.
    Lookup,
    /// A row is put in, or replaces another.
    Upsert,
    /// One is added to the value of a row.
    Increment,
}

/// How it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    Planned,
    Text,
    Prepared,
    Rows,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Scan, Kind::Lookup, Kind::Upsert, Kind::Increment];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Scan => "sum by a scan",
            Kind::Lookup => "lookup",
            Kind::Upsert => "upsert",
            Kind::Increment => "increment",
        }
    }

    pub fn ways(self) -> &'static [Way] {
        match self {
            Kind::Lookup | Kind::Upsert => &[Way::Planned, Way::Text, Way::Prepared, Way::Rows],
            Kind::Scan | Kind::Increment => &[Way::Planned, Way::Text, Way::Prepared],
        }
    }

    /// The statement with `$1` for the key and `$2` for a value.
    fn sql(self) -> &'static str {
        match self {
            Kind::Scan => "SELECT sum(v) FROM scanned WHERE k = $1",
            Kind::Lookup => "SELECT v, a, b FROM keyed WHERE k = $1",
            Kind::Upsert => {
                "INSERT INTO keyed (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
            }
            Kind::Increment => "UPDATE keyed SET v = v + 1 WHERE k = $1",
        }
    }
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Planned => "planned",
            Way::Text => "text",
            Way::Prepared => "prepared",
            Way::Rows => "rows",
        }
    }
}

pub struct StatementClient {
    session: Session,
    prepared: HashMap<Kind, PreparedStatement>,
    rows: TableRows,
    scanned: u64,
    keys: u64,
    /// The values of rows that were changed.
    changed: HashMap<i64, i64>,
    asked: u64,
}

impl StatementClient {
    pub fn new(session: &Session, scanned: u64, keys: u64) -> Result<Self, StatementBenchError> {
        let prepare = |kind: Kind| Ok((kind, block_on(session.prepare(kind.sql()))?));
        let prepared = Kind::ALL.into_iter().map(prepare);
        let prepared: Result<_, StatementBenchError> = prepared.collect();
        Ok(StatementClient {
            prepared: prepared?,
            rows: session.rows("keyed")?,
            session: session.clone(),
            scanned,
            keys,
            changed: HashMap::new(),
            asked: 0,
        })
    }

    /// Rows of the table that a statement is about.
    pub fn rows(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Scan => self.scanned,
            _ => self.keys,
        }
    }

    /// Asks about some row; how long it took.
    pub fn ask(&mut self, kind: Kind, way: Way) -> Result<Duration, StatementBenchError> {
        self.asked += 1;
        let key = (self.asked.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8) % self.rows(kind);
        let (key, value) = (key as i64, self.asked as i64);
        let expected = match kind {
            Kind::Scan => key * 3,
            _ => self.changed.get(&key).copied().unwrap_or(key * 3),
        };
        let mut text = kind.sql().replace("$1", &key.to_string());
        text = text.replace("$2", &value.to_string());
        if way == Way::Planned {
            text.push_str(" -- planned");
        }
        let (took, got) = match way {
            Way::Rows => self.by_rows(kind, key, value)?,
            _ => self.by_sql(kind, way, &text, key, value)?,
        };
        let expected = match kind {
            Kind::Scan | Kind::Lookup => expected,
            // The number of rows.
            Kind::Upsert | Kind::Increment => 1,
        };
        match kind {
            Kind::Upsert => drop(self.changed.insert(key, value)),
            Kind::Increment => *self.changed.entry(key).or_insert(key * 3) += 1,
            Kind::Scan | Kind::Lookup => {}
        }
        match got == Some(expected) {
            true => Ok(took),
            false => Err(StatementBenchError::WrongAnswer {
                statement: text,
                got,
                expected,
            }),
        }
    }

    fn by_sql(
        &self,
        kind: Kind,
        way: Way,
        text: &str,
        key: i64,
        value: i64,
    ) -> Result<(Duration, Option<i64>), StatementBenchError> {
        let prepared = &self.prepared[&kind];
        let values = [key.into(), value.into()];
        let values = &values[..if kind == Kind::Upsert { 2 } else { 1 }];
        let begun = Instant::now();
        let (batches, count) = block_on(async {
            let outcome = match way {
                Way::Prepared => prepared.execute(values).await?,
                _ => self.session.execute(text).await?,
            };
            match outcome {
                Outcome::Rows(rows) => Ok((rows.collect().await?, None)),
                Outcome::Count { rows, .. } => Ok((Vec::new(), Some(rows as i64))),
                Outcome::Done { .. } => Ok::<_, StatementBenchError>((Vec::new(), None)),
            }
        })?;
        let took = begun.elapsed();
        let mut rows = batches.iter().filter(|batch| batch.num_rows() == 1);
        let value = rows
            .next()
            .map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        Ok((took, count.or(value)))
    }

    /// The same without SQL.
    fn by_rows(
        &mut self,
        kind: Kind,
        key: i64,
        value: i64,
    ) -> Result<(Duration, Option<i64>), StatementBenchError> {
        let column = |value| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        if kind == Kind::Lookup {
            let begun = Instant::now();
            let found = block_on(self.rows.get(&[column(key)], &["v", "a", "b"]))?.rows;
            let took = begun.elapsed();
            let value = (found.num_rows() == 1)
                .then(|| found.column(0).as_primitive::<Int64Type>().value(0));
            return Ok((took, value));
        }
        let schema = Schema::new(vec![
            Field::new("k", DataType::Int64, false),
            Field::new("v", DataType::Int64, true),
            Field::new("a", DataType::Int32, true),
            Field::new("b", DataType::Float64, true),
        ]);
        let columns = vec![
            column(key),
            column(value),
            Arc::new(Int32Array::from(vec![1])) as ArrayRef,
            Arc::new(Float64Array::from(vec![0.5])) as ArrayRef,
        ];
        let row =
            RecordBatch::try_new(Arc::new(schema), columns).expect("the columns of the table");
        let begun = Instant::now();
        block_on(self.rows.put(&row))?;
        Ok((begun.elapsed(), Some(1)))
    }
}
