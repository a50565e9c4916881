//! Foreign keys hold: whatever random statements do, as in a model of two tables; and whoever comes in between, in
//! several sessions.

use crate::common::{Random, TOPOLOGIES, block_on_threads, count, database, must};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use eris_sql::{Outcome, Session, SqlErrorKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

/// The rows of a query whose columns are BIGINT.
async fn rows(session: &Session, sql: &str) -> Vec<Vec<Option<i64>>> {
    let Ok(Outcome::Rows(rows)) = session.execute(sql).await else {
        panic!("{sql} has no rows");
    };
    let mut all = Vec::new();
    for batch in rows.collect().await.unwrap() {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| column.as_primitive::<Int64Type>())
            .collect();
        all.extend((0..batch.num_rows()).map(|row| {
            let values = columns.iter().map(|column| column.iter().nth(row).unwrap());
            values.collect()
        }));
    }
    all
}

/// A number, or NULL.
fn value(random: &mut Random, limit: i64) -> Option<i64> {
    Some(random.below(limit)).filter(|_| random.below(6) > 0)
}

/// Two tables: `p (k PRIMARY KEY, a, b, UNIQUE (a, b))`, and `c (k PRIMARY KEY, p, a, b, up)` whose `p` refers to a key
/// of `p`, whose `b, a` to its UNIQUE constraint, and whose `up` to its own key.
#[derive(Clone, Default, Debug, PartialEq)]
struct Model {
    p: BTreeMap<i64, [Option<i64>; 2]>,
    c: BTreeMap<i64, [Option<i64>; 4]>,
}

const TABLES: [&str; 3] = [
    "CREATE TABLE p (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, UNIQUE (a, b))",
    "CREATE TABLE c (k BIGINT PRIMARY KEY, p BIGINT REFERENCES p, a BIGINT, b BIGINT, up BIGINT,
        FOREIGN KEY (b, a) REFERENCES p (b, a), CONSTRAINT up FOREIGN KEY (up) REFERENCES c (k))",
    "CREATE INDEX of_p ON c (p)",
];

impl Model {
    /// Whether all constraints hold.
    fn holds(&self) -> bool {
        let pairs = |values: &[Option<i64>]| Some((values[0]?, values[1]?));
        let mut unique: Vec<_> = self.p.values().filter_map(|row| pairs(row)).collect();
        unique.sort_unstable();
        let all = unique.len();
        unique.dedup();
        unique.len() == all
            && self.c.values().all(|row| {
                row[0].is_none_or(|p| self.p.contains_key(&p))
                    && pairs(&row[1..3]).is_none_or(|pair| unique.binary_search(&pair).is_ok())
                    && row[3].is_none_or(|up| self.c.contains_key(&up))
            })
    }
}

fn sql(value: Option<i64>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

fn list(values: &[Option<i64>]) -> String {
    let values: Vec<String> = values.iter().copied().map(sql).collect();
    values.join(", ")
}

/// A random statement, and the tables after it; `None` if a key would occur twice.
fn statement(random: &mut Random, model: &Model) -> (String, Option<Model>) {
    let mut after = model.clone();
    let key = random.below(12);
    let (from, until) = (key, key + random.below(4));
    let among = move |k: &i64| (from..=until).contains(k);
    let values = |random: &mut Random| {
        let pair = [value(random, 4), value(random, 3)];
        [value(random, 12), pair[0], pair[1], value(random, 14)]
    };
    let mut is_twice = false;
    let text = match random.below(14) {
        0 | 1 => {
            let row = [value(random, 4), value(random, 3)];
            is_twice = after.p.insert(key, row).is_some();
            format!("INSERT INTO p VALUES ({key}, {})", list(&row))
        }
        2..=4 => {
            let count = 1 + random.below(3);
            let mut rows = Vec::new();
            for number in 0..count {
                let row = values(random);
                is_twice |= after.c.insert(key + number, row).is_some();
                rows.push(format!("({}, {})", key + number, list(&row)));
            }
            format!("INSERT INTO c VALUES {}", rows.join(", "))
        }
        5 => {
            after.p.retain(|k, _| !among(k));
            format!("DELETE FROM p WHERE k BETWEEN {from} AND {until}")
        }
        6 => {
            after.c.retain(|k, _| !among(k));
            format!("DELETE FROM c WHERE k BETWEEN {from} AND {until}")
        }
        7 => {
            // Keys move, some of them to where others were.
            let step = random.below(5) - 2;
            let moved = |k: i64| if k >= from { k + step } else { k };
            let rows = model.p.iter().map(|(k, row)| (moved(*k), *row));
            after.p = rows.collect();
            is_twice = after.p.len() < model.p.len();
            format!("UPDATE p SET k = k + {step} WHERE k >= {from}")
        }
        8 => {
            let step = random.below(3) - 1;
            let moved = |k: i64| if k >= from { k + step } else { k };
            let with_up = random.below(2) == 0;
            let rows = model.c.iter().map(|(k, row)| {
                let mut row = *row;
                if with_up && *k >= from {
                    row[3] = row[3].map(|up| up + step);
                }
                (moved(*k), row)
            });
            after.c = rows.collect();
            is_twice = after.c.len() < model.c.len();
            let up = if with_up {
                format!(", up = up + {step}")
            } else {
                String::new()
            };
            format!("UPDATE c SET k = k + {step}{up} WHERE k >= {from}")
        }
        9 => {
            let pair = [value(random, 4), value(random, 3)];
            if let Some(row) = after.p.get_mut(&key) {
                *row = pair;
            }
            format!(
                "UPDATE p SET a = {}, b = {} WHERE k = {key}",
                sql(pair[0]),
                sql(pair[1])
            )
        }
        10 => {
            let row = values(random);
            for (k, old) in &mut after.c {
                if among(k) {
                    *old = row;
                }
            }
            format!(
                "UPDATE c SET (p, a, b, up) = ({}) WHERE k BETWEEN {from} AND {until}",
                list(&row)
            )
        }
        11 => {
            let row = values(random);
            after.c.insert(key, row);
            format!(
                "INSERT INTO c VALUES ({key}, {}) ON CONFLICT (k) DO UPDATE \
                    SET p = excluded.p, a = excluded.a, b = excluded.b, up = excluded.up",
                list(&row)
            )
        }
        12 => {
            // Those that are there go, the others come.
            for k in from..=until {
                if after.p.remove(&k).is_none() {
                    after.p.insert(k, [None, Some(k)]);
                }
            }
            format!(
                "MERGE INTO p USING (SELECT i FROM range({from}, {until} + 1) AS r(i)) AS s ON p.k = s.i \
                    WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.i, NULL, s.i)"
            )
        }
        _ => {
            after.p.clear();
            if random.below(3) == 0 {
                after.c.clear();
                "TRUNCATE p, c".to_owned()
            } else {
                "DELETE FROM p".to_owned()
            }
        }
    };
    (text, (!is_twice).then_some(after))
}

async fn contents(session: &Session) -> Model {
    let p = rows(session, "SELECT k, a, b FROM p").await.into_iter();
    let c = rows(session, "SELECT k, p, a, b, up FROM c")
        .await
        .into_iter();
    Model {
        p: p.map(|row| (row[0].unwrap(), [row[1], row[2]])).collect(),
        c: c.map(|row| (row[0].unwrap(), [row[1], row[2], row[3], row[4]]))
            .collect(),
    }
}

#[test]
fn random_statements_keep_foreign_keys_or_leave_no_trace() {
    let mut random = Random::new();
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            for table in TABLES {
                must(&session, table).await;
            }
            let mut model = Model::default();
            let (mut kept, mut rejected) = (0, 0);
            for number in 0..500 {
                let (text, after) = statement(&mut random, &model);
                let expected = after.filter(Model::holds);
                match (count(&session, &text).await, expected) {
                    (Ok(_), Some(after)) => {
                        kept += u64::from(after != model);
                        model = after;
                    }
                    (Err(error), None) => {
                        rejected += 1;
                        let is_constraint = matches!(error.kind(), SqlErrorKind::Constraint(..));
                        assert!(is_constraint, "statement {number}: {text}: {error}");
                    }
                    (Ok(_), None) => {
                        panic!("statement {number} is not rejected: {text}\n{model:?}")
                    }
                    (Err(error), Some(_)) => {
                        panic!("statement {number}: {text}: {error}\n{model:?}")
                    }
                }
                assert_eq!(
                    contents(&session).await,
                    model,
                    "statement {number}: {text}"
                );
            }
            assert!(
                kept > 50 && rejected > 50,
                "{kept} kept, {rejected} rejected"
            );
        });
    }
}

#[test]
fn nobody_comes_between_a_row_and_the_row_it_refers_to() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            // Each refers to the other, and the second to itself.
            must(&session, "CREATE TABLE a (k BIGINT PRIMARY KEY, b BIGINT)").await;
            must(
                &session,
                "CREATE TABLE b (k BIGINT PRIMARY KEY, a BIGINT REFERENCES a, b BIGINT REFERENCES b)",
            )
            .await;
            must(&session, "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b").await;
            must(
                &session,
                "INSERT INTO a SELECT i, NULL FROM range(8) AS r(i)",
            )
            .await;
            let done = Arc::new([const { AtomicU64::new(0) }; 2]);
            let sessions = (0..4_u64).map(|number| {
                let (session, done) = (database.session(), done.clone());
                tokio::spawn(async move {
                    let mut random = Random::seeded(number * 7919 + 12_345);
                    for round in 0..40 {
                        let (x, y) = (random.below(8), random.below(8));
                        let sql = match (number + round) % 4 {
                            0 => format!("INSERT INTO b VALUES ({y}, {x}, {y}) ON CONFLICT (k) DO UPDATE SET a = {x}"),
                            1 => format!("DELETE FROM a WHERE k = {x}"),
                            2 => format!("MERGE INTO a USING (VALUES ({x})) AS s(k) ON a.k = s.k \
                                WHEN MATCHED THEN UPDATE SET b = {y} WHEN NOT MATCHED THEN INSERT VALUES (s.k, NULL)"),
                            _ => format!("DELETE FROM b WHERE k = {y} OR b = {x}"),
                        };
                        // Some are given up on the way, and may have committed or not.
                        let patience = Duration::from_micros(random.below(3_000) as u64);
                        let patience = if round % 5 == 4 { patience } else { Duration::MAX };
                        match timeout(patience, count(&session, &sql)).await {
                            Ok(Ok(_)) => _ = done[0].fetch_add(1, Ordering::Relaxed),
                            Ok(Err(error)) => {
                                let is_constraint = matches!(error.kind(), SqlErrorKind::Constraint(..));
                                assert!(is_constraint, "{sql}: {error}");
                                done[1].fetch_add(1, Ordering::Relaxed);
                            }
                            Err(_) => {}
                        }
                        let orphans = rows(
                            &session,
                            "SELECT b.k FROM b WHERE b.a IS NOT NULL AND b.a NOT IN (SELECT k FROM a)
                             UNION ALL SELECT b.k FROM b WHERE b.b IS NOT NULL AND b.b NOT IN (SELECT k FROM b)
                             UNION ALL SELECT a.k FROM a WHERE a.b IS NOT NULL AND a.b NOT IN (SELECT k FROM b)",
                        );
                        assert_eq!(orphans.await, Vec::<Vec<Option<i64>>>::new(), "after {sql}");
                    }
                })
            });
            for session in sessions.collect::<Vec<_>>() {
                session.await.unwrap();
            }
            let [kept, rejected] = [&done[0], &done[1]].map(|done| done.load(Ordering::Relaxed));
            assert!(kept > 0 && rejected > 0, "{kept} kept, {rejected} rejected");
            must(&session, "TRUNCATE a, b").await;
            must(&session, "DROP TABLE a, b").await;
        });
    }
}

#[test]
fn loads_and_definitions_wait_for_each_other() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            must(&session, "CREATE TABLE p (k BIGINT PRIMARY KEY)").await;
            must(&session, "INSERT INTO p SELECT i FROM range(1000) AS r(i)").await;
            must(&session, "CREATE TABLE c (p BIGINT)").await;
            let writers = (0..2).map(|number| {
                let session = database.session();
                tokio::spawn(async move {
                    for round in 0..20 {
                        let load = "INSERT INTO c SELECT i % 1000 FROM range(20000) AS r(i)";
                        let taken = format!("DELETE FROM p WHERE k = {}", 2 * round + number);
                        let again = format!("INSERT INTO p VALUES ({})", 2 * round + number);
                        let deleted = count(&session, &taken).await;
                        let _ = count(&session, load).await;
                        if deleted.is_ok() {
                            must(&session, &again).await;
                        }
                    }
                })
            });
            let writers: Vec<_> = writers.collect();
            let mut added = 0;
            for _ in 0..20 {
                if count(
                    &session,
                    "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p",
                )
                .await
                .is_ok()
                {
                    added += 1;
                    let orphans = "SELECT p FROM c WHERE p NOT IN (SELECT k FROM p)";
                    assert!(rows(&session, orphans).await.is_empty());
                    must(&session, "ALTER TABLE c DROP CONSTRAINT f").await;
                }
                must(&session, "TRUNCATE c").await;
            }
            for writer in writers {
                writer.await.unwrap();
            }
            must(&session, "TRUNCATE c").await;
            must(
                &session,
                "ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p",
            )
            .await;
            assert!(added <= 20);
        });
    }
}

#[test]
fn other_ways_to_write_keep_them_or_are_rejected() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    block_on_threads(async {
        let first = database(1, 2);
        let session = first.session();
        for sql in [
            "CREATE TABLE z (k BIGINT PRIMARY KEY, up BIGINT REFERENCES z)",
            "CREATE TABLE a (k BIGINT REFERENCES z)",
            "CREATE TABLE m (k BIGINT PRIMARY KEY, n BIGINT)",
            "CREATE TABLE n (k BIGINT PRIMARY KEY, m BIGINT REFERENCES m)",
            "INSERT INTO z VALUES (1, 2), (2, NULL)",
            "INSERT INTO a VALUES (1), (NULL)",
            "INSERT INTO m VALUES (1, NULL), (2, NULL)",
            "INSERT INTO n VALUES (1, 2), (2, 1)",
            "UPDATE m SET n = 3 - k",
            "ALTER TABLE m ADD CONSTRAINT around FOREIGN KEY (n) REFERENCES n",
        ] {
            must(&session, sql).await;
        }

        // Rows by their keys, without SQL.
        let keys = |keys: &[i64]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("k", keys(&[7])), ("up", keys(&[8]))]).unwrap();
        let mut rows_of_z = session.rows("z").unwrap();
        let error = rows_of_z.put(&batch).await.unwrap_err().to_string();
        assert!(
            error.contains(
                "\"z_up_fkey\" (up) does not hold: table \"z\" has no row with (k) = (8)"
            ),
            "{error}"
        );
        let error = rows_of_z
            .remove(&[keys(&[1])])
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("\"a_k_fkey\""), "{error}");
        let circle = [("k", keys(&[7, 8])), ("up", keys(&[8, 7]))];
        let circle = RecordBatch::try_from_iter(circle).unwrap();
        assert_eq!(rows_of_z.put(&circle).await.unwrap(), 0);
        assert_eq!(rows_of_z.put(&batch).await.unwrap(), 1);
        assert!(rows_of_z.remove(&[keys(&[7])]).await.is_err());
        assert_eq!(rows_of_z.remove(&[keys(&[7, 8, 9, 8])]).await.unwrap(), 2);
        let found = rows_of_z.get(&[keys(&[1])], &["up"]).await.unwrap();
        assert_eq!(found.of, [0]);

        // Statements of one row that are kept, once there are foreign keys.
        must(
            &session,
            "CREATE TABLE late (k BIGINT PRIMARY KEY, z BIGINT)",
        )
        .await;
        must(&session, "PREPARE put AS INSERT INTO late VALUES ($1, $2)").await;
        must(&session, "PREPARE cut AS DELETE FROM z WHERE k = $1").await;
        must(&session, "EXECUTE put (1, 1)").await;
        must(&session, "EXECUTE cut (99)").await;
        must(
            &session,
            "ALTER TABLE late ADD FOREIGN KEY (z) REFERENCES z",
        )
        .await;
        assert!(count(&session, "EXECUTE put (2, 9)").await.is_err());
        assert!(count(&session, "EXECUTE cut (1)").await.is_err());
        must(&session, "EXECUTE put (2, 2)").await;
        must(&session, "DROP TABLE late").await;

        // COPY says which file is wrong.
        std::fs::write(path("a.csv"), "k\n2\n3\n").unwrap();
        let copy = format!("COPY a FROM '{}'", path("a.csv"));
        let error = count(&session, &copy).await.unwrap_err().to_string();
        assert!(
            error.contains("a.csv': table \"a\": FOREIGN KEY"),
            "{error}"
        );
        assert_eq!(rows(&session, "SELECT count(*) FROM a").await, [[Some(2)]]);

        // An export makes all of them again, circles included.
        must(&session, &format!("EXPORT DATABASE '{}'", path("export"))).await;
        let second = database(4, 2);
        let session = second.session();
        must(&session, &format!("IMPORT DATABASE '{}'", path("export"))).await;
        for (sql, key) in [
            ("INSERT INTO a VALUES (3)", "a_k_fkey"),
            ("DELETE FROM z WHERE k = 2", "z_up_fkey"),
            ("DELETE FROM m WHERE k = 1", "n_m_fkey"),
            ("DELETE FROM n WHERE k = 1", "around"),
        ] {
            let error = count(&session, sql).await.unwrap_err().to_string();
            assert!(error.contains(key), "{sql}: {error}");
        }
        for table in ["a, z", "m, n"] {
            must(&session, &format!("DROP TABLE {table}")).await;
        }
        assert_eq!(second.home().budget().used(), 0);
        // One whose rows do not fit makes nothing.
        std::fs::remove_file(path("export/a.parquet")).unwrap();
        let load = std::fs::read_to_string(path("export/load.sql")).unwrap();
        let load = load.replace(
            "a.parquet' (FORMAT 'parquet')",
            "a.csv' (FORMAT 'csv', HEADER true)",
        );
        std::fs::write(path("export/load.sql"), load).unwrap();
        std::fs::rename(path("a.csv"), path("export/a.csv")).unwrap();
        let import = format!("IMPORT DATABASE '{}'", path("export"));
        let error = count(&session, &import).await.unwrap_err().to_string();
        assert!(error.contains("a_k_fkey"), "{error}");
        assert!(session.rows("z").is_err());
    });
}
