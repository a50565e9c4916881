//! Frames: what a statement reads of the calling program.

use crate::common::{TOPOLOGIES, block_on, database, must, run, values};
use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use eris_sql::{
    Comparison, Condition, ConditionTest, Frame, FrameBatches, FrameError, FrameFaultKind, Frames,
    Session, SqlErrorKind,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A frame that notes what it is asked for.
#[derive(Debug)]
struct Noted {
    batches: Vec<RecordBatch>,
    takes_conditions: bool,
    /// It fails behind its first batch.
    fails: AtomicBool,
    asked: Mutex<Vec<(Vec<usize>, Vec<Condition>)>>,
}

#[derive(Debug)]
struct Boom(u32);

impl fmt::Display for Boom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boom {}", self.0)
    }
}

impl std::error::Error for Boom {}

impl Frame for Noted {
    fn kind(&self) -> &str {
        "test.Noted"
    }

    fn schema(&self) -> SchemaRef {
        self.batches[0].schema()
    }

    fn rows(&self) -> Option<u64> {
        Some(
            self.batches
                .iter()
                .map(|batch| batch.num_rows() as u64)
                .sum(),
        )
    }

    fn takes_conditions(&self) -> bool {
        self.takes_conditions
    }

    fn read(
        &self,
        columns: &[usize],
        conditions: &[Condition],
    ) -> Result<FrameBatches, FrameError> {
        let mut asked = self.asked.lock().unwrap();
        asked.push((columns.to_vec(), conditions.to_vec()));
        let columns = columns.to_vec();
        let batches = self.batches.clone().into_iter();
        let batches = batches.map(move |batch| batch.project(&columns).map_err(FrameError::new));
        match self.fails.load(Ordering::Relaxed) {
            false => Ok(Box::new(batches)),
            true => Ok(Box::new(
                batches.take(1).chain([Err(FrameError::new(Boom(7)))]),
            )),
        }
    }
}

/// The variables of a program, and for which of them it was asked.
#[derive(Debug, Default)]
struct Variables {
    frames: HashMap<String, Arc<Noted>>,
    asked: Mutex<Vec<String>>,
}

impl Frames for Variables {
    fn frame(&self, name: &str) -> Result<Option<Arc<dyn Frame>>, FrameError> {
        self.asked.lock().unwrap().push(name.to_owned());
        if name == "number" {
            return Err(FrameError::new(Boom(42)));
        }
        let found = self.frames.get(name).cloned();
        Ok(found.map(|frame| frame as Arc<dyn Frame>))
    }
}

fn noted(rows: std::ops::Range<i64>, batches: i64) -> Arc<Noted> {
    let each = (rows.end - rows.start) / batches;
    let batches = (0..batches).map(|number| {
        let first = rows.start + number * each;
        let keys = Int64Array::from_iter_values(first..first + each);
        let texts =
            (first..first + each).map(|i| (i % 5 != 0).then(|| format!("text {}", i % 100)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let keys: ArrayRef = Arc::new(keys);
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("s", texts, true)]).unwrap()
    });
    Arc::new(Noted {
        batches: batches.collect(),
        takes_conditions: false,
        fails: AtomicBool::new(false),
        asked: Mutex::default(),
    })
}

fn with(session: &Session, named: &[(&str, &Arc<Noted>)]) -> (Session, Arc<Variables>) {
    let frames = named
        .iter()
        .map(|(name, frame)| ((*name).to_owned(), Arc::clone(frame)));
    let variables = Arc::new(Variables {
        frames: frames.collect(),
        asked: Mutex::default(),
    });
    (session.with_frames(Arc::clone(&variables) as _), variables)
}

#[test]
fn a_frame_has_the_rows_that_a_table_of_it_has() {
    for (nodes, cores) in TOPOLOGIES {
        block_on(async {
            let plain = database(nodes, cores).session();
            let (session, _) = with(&plain, &[("f", &noted(0..300_000, 3))]);
            must(&session, "CREATE TABLE t AS SELECT * FROM f").await;
            must(
                &session,
                "CREATE TABLE d AS SELECT i AS k, i % 7 AS g FROM range(0, 1000) r(i)",
            )
            .await;
            for query in [
                "SELECT count(*), sum(k), count(s), max(s) FROM #",
                "SELECT s, count(*), sum(k) FROM # GROUP BY s ORDER BY s",
                "SELECT g, count(*) FROM # JOIN d USING (k) GROUP BY g ORDER BY g",
                "SELECT count(*) FROM # a JOIN # b ON a.k = b.k + 1 WHERE a.s LIKE 'text 1%'",
                "SELECT k FROM # WHERE s IS NULL ORDER BY k DESC LIMIT 3",
                "SELECT count(*) FROM # WHERE k IN (SELECT k FROM d) OR s = 'text 99'",
            ] {
                let of_frame = values(&session, &query.replace('#', "f")).await.unwrap();
                let of_table = values(&plain, &query.replace('#', "t")).await.unwrap();
                assert_eq!(of_frame, of_table, "{query} on {nodes}x{cores}");
            }
        });
    }
}

#[test]
fn the_catalogue_goes_first_and_the_program_is_asked_for_the_rest() {
    block_on(async {
        let plain = database(1, 2).session();
        must(&plain, "CREATE TABLE t (k BIGINT)").await;
        let frame = noted(0..10, 1);
        let (session, variables) = with(&plain, &[("t", &frame), ("f", &frame), ("Mixed", &frame)]);
        let count = async |sql: &str| values(&session, sql).await.unwrap()[0][0].clone();
        assert_eq!(count("SELECT count(*) FROM t").await, "0");
        assert!(variables.asked.lock().unwrap().is_empty());
        assert_eq!(count("SELECT count(*) FROM f").await, "10");
        assert_eq!(count("SELECT count(*) FROM F, f AS g").await, "100");
        assert_eq!(count("SELECT count(*) FROM \"Mixed\"").await, "10");
        assert_eq!(
            count("WITH f AS (SELECT 1) SELECT count(*) FROM f").await,
            "1"
        );
        // A name with a schema is one of the catalogue.
        for wrong in [
            "SELECT * FROM public.f",
            "SELECT * FROM mixed",
            "SELECT * FROM f, nothing",
        ] {
            let error = run(&session, wrong).await.unwrap_err();
            assert_eq!(error.sqlstate().code(), "42P01", "{wrong}");
            assert!(error.position().is_some(), "{error}");
        }
        let error = run(&plain, "SELECT * FROM f").await.unwrap_err();
        assert_eq!(error.sqlstate().code(), "42P01");
        // What outlives the statement reads no frame.
        for wrong in [
            "CREATE VIEW v AS SELECT * FROM f",
            "CREATE TABLE u (k BIGINT CHECK (k IN (SELECT k FROM f)))",
        ] {
            assert!(run(&session, wrong).await.is_err(), "{wrong}");
        }
        let error = run(&session, "CREATE VIEW v AS SELECT * FROM f")
            .await
            .unwrap_err();
        assert!(error.hint().unwrap().contains("CREATE TABLE"), "{error}");
        let plan = values(&session, "EXPLAIN SELECT k FROM f").await.unwrap();
        let plan: Vec<String> = plan.into_iter().flatten().collect();
        let leaf = "FrameExec: frame=f (test.Noted), columns=[k], workers=1";
        assert!(plan.iter().any(|line| line.trim() == leaf), "{plan:?}");
    });
}

#[test]
fn only_what_is_wanted_is_read() {
    block_on(async {
        let plain = database(1, 2).session();
        let takes = Arc::new(Noted {
            takes_conditions: true,
            batches: noted(0..100, 2).batches.clone(),
            fails: AtomicBool::new(false),
            asked: Mutex::default(),
        });
        let (session, _) = with(&plain, &[("f", &takes)]);
        // The frame leaves no row out: they are tested again.
        let query =
            "SELECT k FROM f WHERE 90 <= k AND s IS NOT NULL AND k IN (91, 95, 96) AND k % 2 = 0";
        assert_eq!(values(&session, query).await.unwrap(), [["96"]]);
        let asked = takes.asked.lock().unwrap().clone();
        let [(columns, conditions)] = asked.as_slice() else {
            panic!("read once: {asked:?}");
        };
        assert!(columns.contains(&0));
        let mut tests = conditions
            .iter()
            .map(|condition| (condition.column.as_str(), &condition.test));
        assert!(tests.any(|test| matches!(
            test,
            ("k", ConditionTest::Compare(Comparison::GtEq, value)) if value.len() == 1
        )));
        let has = |wanted: &dyn Fn(&ConditionTest) -> bool| {
            conditions.iter().any(|condition| wanted(&condition.test))
        };
        assert!(has(&|test| matches!(test, ConditionTest::IsNotNull)));
        assert!(has(
            &|test| matches!(test, ConditionTest::OneOf(values) if values.len() == 3)
        ));
        // A limit is not applied before conditions are.
        let query = "SELECT k FROM f WHERE k >= 98 LIMIT 1";
        assert_eq!(values(&session, query).await.unwrap().len(), 1);
        assert_eq!(
            values(&session, "SELECT count(*) FROM f").await.unwrap(),
            [["100"]]
        );
        assert_eq!(takes.asked.lock().unwrap().last().unwrap().0, [0]);
    });
}

#[test]
fn what_the_program_fails_with_comes_back_as_it_was() {
    block_on(async {
        let plain = database(1, 2).session();
        must(&plain, "CREATE TABLE t (k BIGINT PRIMARY KEY, s VARCHAR)").await;
        let frame = noted(0..100_000, 4);
        frame.fails.store(true, Ordering::Relaxed);
        let (session, _) = with(&plain, &[("f", &frame)]);
        for (sql, number) in [
            ("SELECT sum(k) FROM f", 7),
            ("INSERT INTO t SELECT * FROM f", 7),
            ("CREATE TABLE u AS SELECT * FROM f", 7),
            ("SELECT * FROM number", 42),
        ] {
            let error = run(&session, sql).await.unwrap_err();
            assert_eq!(error.sqlstate().code(), "38000", "{sql}");
            let SqlErrorKind::Frame(fault) = error.kind() else {
                panic!("{sql}: {error}");
            };
            let FrameFaultKind::Raised(raised) = fault.kind() else {
                panic!("{sql}: {error}");
            };
            let Boom(found) = raised.get().downcast_ref().unwrap();
            assert_eq!(*found, number, "{sql}");
        }
        assert_eq!(
            values(&plain, "SELECT count(*) FROM t").await.unwrap(),
            [["0"]]
        );
        assert!(run(&plain, "SELECT * FROM u").await.is_err());
        frame.fails.store(false, Ordering::Relaxed);
        must(&session, "INSERT INTO t SELECT * FROM f").await;
        assert_eq!(
            values(&plain, "SELECT count(*) FROM t").await.unwrap(),
            [["100000"]]
        );
    });
}

#[test]
fn prepared_statements_read_frames_too() {
    block_on(async {
        let plain = database(1, 2).session();
        let (session, _) = with(&plain, &[("f", &noted(0..100, 1))]);
        let prepared = session
            .prepare("SELECT count(*) FROM f WHERE k < $1")
            .await
            .unwrap();
        for most in [10, 20] {
            let outcome = prepared.execute(&[most.into()]).await.unwrap();
            let found = crate::common::values_of(outcome).await.unwrap();
            assert_eq!(found, [[most.to_string()]]);
        }
    });
}
