//! Databases that end and are opened again, over a home that keeps their definitions.

mod failing;
mod numbers;
mod random;

use crate::common::{block_on_threads, must, values};
use crate::keeping_home::KeepingHome;
use crate::keeping_home::dump::{assert_same, dump, lines};
use eris_sql::{Database, Session};
use std::time::{Duration, Instant};

fn open(home: &KeepingHome) -> Database {
    Database::open(home.home()).unwrap_or_else(|error| panic!("{error}"))
}

async fn fails(session: &Session, sql: &str) -> String {
    match session.execute(sql).await {
        Ok(_) => panic!("{sql}: succeeds"),
        Err(error) => error.to_string(),
    }
}

/// Ends a database, and opens it anew; all that it says of itself is the same.
async fn reopened(home: &KeepingHome, database: Database) -> Database {
    let before = dump(&database.session()).await;
    drop(database);
    let database = open(home);
    let after = dump(&database.session()).await;
    assert_same(&before, &after, "opened again");
    database
}

/// Waits until nothing is left of what has no name.
async fn until_clean(home: &KeepingHome, when: &str) {
    let began = Instant::now();
    while home.objects() != home.defined_objects() {
        let (objects, defined) = (home.objects(), home.defined_objects());
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{when}: {objects:?}, defined are {defined:?}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Statements that make something of every kind.
pub const SCHEMA: [&str; 45] = [
    "CREATE SCHEMA \"Odd schema\"",
    "CREATE SCHEMA s",
    "COMMENT ON SCHEMA s IS 'it''s'",
    "COMMENT ON SCHEMA public IS 'all'",
    "CREATE SEQUENCE s.numbers START 5 INCREMENT 3 MAXVALUE 50 CYCLE",
    "CREATE SEQUENCE down INCREMENT -1",
    "CREATE TABLE p (k BIGINT PRIMARY KEY, a INTEGER, b VARCHAR(20), CONSTRAINT \"a and b\" UNIQUE (a, b), UNIQUE (b))",
    "CREATE TABLE \"Odd schema\".\"A table; with 'all'\" (\"The key\" VARCHAR, \"select\" DECIMAL(8, 2) DEFAULT 9.99, CONSTRAINT \"Key; one\" PRIMARY KEY (\"The key\"))",
    "CREATE TABLE c (id INTEGER GENERATED ALWAYS AS IDENTITY, p BIGINT REFERENCES p, n BIGINT DEFAULT nextval('s.numbers'), at TIMESTAMP DEFAULT now(), twice BIGINT GENERATED ALWAYS AS (n * 2), CHECK (n > 0)) ORDER BY (p)",
    "CREATE TABLE ranged (d DATE, u UUID, i INTERVAL, t TIMESTAMPTZ, v BLOB) WITH (partition_by = 'd')",
    "CREATE TABLE self (k INTEGER PRIMARY KEY, parent INTEGER REFERENCES self)",
    "CREATE TABLE one (k INTEGER PRIMARY KEY, other INTEGER)",
    "CREATE TABLE two (k INTEGER PRIMARY KEY, other INTEGER REFERENCES one)",
    "ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES two",
    "CREATE INDEX ON p (a)",
    "CREATE INDEX \"by both\" ON p USING hash (a, b)",
    "CREATE INDEX \"of all\" ON p USING blink (b, a)",
    "CREATE UNIQUE INDEX once ON c (p, n)",
    "ALTER TABLE c ADD CONSTRAINT later UNIQUE (id)",
    "CREATE UNIQUE INDEX twice ON c (id, p)",
    "COMMENT ON TABLE p IS 'parents; all of them'",
    "COMMENT ON COLUMN p.a IS 'a'",
    "INSERT INTO p SELECT i, i, 'b' || i FROM range(1000) r(i)",
    "INSERT INTO c (p) VALUES (7), (8), (9)",
    "INSERT INTO \"Odd schema\".\"A table; with 'all'\" VALUES ('x', 1)",
    "INSERT INTO one VALUES (1, NULL)",
    "INSERT INTO two VALUES (1, 1)",
    "UPDATE one SET other = 1",
    "INSERT INTO ranged VALUES ('2024-01-01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', INTERVAL '1 day', now(), 'a'::BLOB)",
    "CREATE TABLE copied AS SELECT k, b FROM p WHERE k < 20",
    "CREATE MACRO doubled(x, y := 2) AS x * y, (x, y, z) AS x * y * z",
    "CREATE VIEW v AS SELECT *, doubled(k) AS d FROM p -- with a comment",
    "CREATE VIEW s.over (x, \"Y\") AS SELECT max(d), b FROM v GROUP BY b",
    "COMMENT ON VIEW v IS 'a view'",
    "COMMENT ON COLUMN v.d IS 'twice k'",
    "CREATE VIEW lists AS SELECT [k, 2] AS l, {'a': k, 'b': 'x'} AS s FROM p WHERE k < 3",
    "CREATE VIEW constant AS SELECT 1 AS one",
    "CREATE MACRO top(n) AS TABLE SELECT k FROM p ORDER BY k LIMIT n",
    "COMMENT ON MACRO TABLE top IS 'the first'",
    "COMMENT ON MACRO doubled IS 'times'",
    "CREATE MACRO abs(x) AS -x",
    "SELECT nextval('s.numbers')",
    "SELECT setval('down', -7)",
    "CREATE TEMP TABLE own (a INTEGER PRIMARY KEY, b SERIAL UNIQUE)",
    "CREATE TEMP VIEW mine AS SELECT 1",
];

#[test]
fn everything_is_there_again() {
    for (nodes, cores) in [(1, 1), (4, 2)] {
        block_on_threads(async {
            let home = KeepingHome::new(nodes, cores);
            let database = open(&home);
            let session = database.session();
            for sql in SCHEMA {
                must(&session, sql).await;
            }
            // In another schema, names mean something else.
            must(&session, "USE s").await;
            must(
                &session,
                "CREATE TABLE p (z INTEGER, n BIGINT DEFAULT nextval('numbers'))",
            )
            .await;
            must(&session, "CREATE VIEW of_s AS SELECT * FROM p").await;
            must(
                &session,
                "CREATE MACRO count_of_s() AS (SELECT count(*) FROM p)",
            )
            .await;
            must(&session, "INSERT INTO p (z) VALUES (1)").await;
            drop(session);
            let defined = home.durable();
            for name in defined.keys() {
                assert!(!name.contains("temp"), "{name}");
            }
            let mut database = reopened(&home, database).await;
            until_clean(&home, "opened").await;
            for round in 0..2 {
                let session = database.session();
                // What was added to a table later is none of a view's.
                must(
                    &session,
                    &format!("ALTER TABLE p ADD COLUMN new{round} INTEGER DEFAULT 1"),
                )
                .await;
                let count = values(&session, "SELECT s.count_of_s()").await.unwrap();
                assert_eq!(count, [["1"]]);
                let wrong = [
                    ("INSERT INTO p (k) VALUES (7)", "PRIMARY KEY"),
                    ("INSERT INTO p (k, a, b) VALUES (10000, 7, 'b8')", "UNIQUE"),
                    ("INSERT INTO c (p) VALUES (123456)", "FOREIGN KEY"),
                    ("INSERT INTO c (p, n) VALUES (1, -1)", "CHECK"),
                    ("DELETE FROM two", "FOREIGN KEY"),
                    ("UPDATE one SET other = 77", "FOREIGN KEY"),
                    ("DROP TABLE p", "refer"),
                    ("DROP SEQUENCE s.numbers", "DEFAULT"),
                    ("DROP SEQUENCE c_id_seq", "column"),
                ];
                for (sql, expected) in wrong {
                    let message = fails(&session, sql).await;
                    assert!(message.contains(expected), "{sql}: {message}");
                }
                must(&session, "INSERT INTO c (p) VALUES (1), (2)").await;
                let ids = values(&session, "SELECT count(*), count(DISTINCT id) FROM c").await;
                let expected = (3 + 2 * (round + 1)).to_string();
                assert_eq!(ids.unwrap(), [[expected.as_str(), expected.as_str()]]);
                drop(session);
                database = reopened(&home, database).await;
            }
        });
    }
}

#[test]
fn what_is_dropped_is_gone() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let session = database.session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        for sql in [
            "DROP VIEW s.over",
            "DROP SCHEMA s CASCADE",
            "DROP MACRO doubled",
            "DROP MACRO TABLE top",
            "DROP MACRO abs",
            "DROP INDEX once, twice, \"by both\"",
            "ALTER TABLE one DROP CONSTRAINT one_other_fkey",
        ] {
            if sql.contains("SCHEMA s") {
                must(&session, "ALTER TABLE c ALTER COLUMN n DROP DEFAULT").await;
            }
            must(&session, sql).await;
            must(&session, "CREATE SCHEMA IF NOT EXISTS s").await;
        }
        until_clean(&home, "dropped").await;
        drop(session);
        let database = reopened(&home, database).await;
        let session = database.session();
        for relation in ["v", "lists", "constant"] {
            must(&session, &format!("DROP VIEW {relation}")).await;
        }
        must(&session, "DROP TABLE c, p, self, two, one, ranged, copied").await;
        must(&session, "DROP SCHEMA \"Odd schema\", s CASCADE").await;
        must(&session, "DROP SEQUENCE down").await;
        must(&session, "COMMENT ON SCHEMA public IS NULL").await;
        until_clean(&home, "all is dropped").await;
        assert_eq!(home.durable().into_keys().collect::<Vec<_>>(), [""; 0]);
        drop(session);
        reopened(&home, database).await;
    });
}

#[test]
fn a_text_that_cannot_be_run_is_named_and_nothing_is_lost() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let session = database.session();
        for sql in SCHEMA {
            must(&session, sql).await;
        }
        drop(session);
        drop(database);
        let objects = home.objects();
        for (name, text, expected) in [
            ("table public.x", "CREATE TABLE x (a QUBIT)", "QUBIT"),
            (
                "table public.x",
                "CREATE TABLE x (a INTEGER)",
                "data object",
            ),
            (
                "view public.x",
                "CREATE VIEW x AS SELECT nothing FROM p",
                "nothing",
            ),
            ("trigger public.x", "CREATE TRIGGER x", "kind"),
            ("numbers public.down", "behind you", "behind you"),
            ("sequence public.x", "CREATE SEQUENCE", "syntax"),
        ] {
            home.put(name, text);
            let error = Database::open(home.home()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert!(error.contains(expected), "{error}");
            home.remove(name);
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(home.objects(), objects, "nothing was dropped");
        }
        home.put("numbers public.down", "behind -7");
        let database = open(&home);
        let rows = lines(&database.session(), "SELECT count(*) FROM p").await;
        assert_eq!(rows.unwrap(), ["1000"]);
    });
}

#[test]
fn a_change_that_is_being_stored_goes_on_without_its_client() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let (session, other) = (database.session(), database.session());
        must(&session, "CREATE TABLE t (a INTEGER)").await;
        must(&session, "INSERT INTO t VALUES (1), (2)").await;
        home.close_gate();
        let mut altered = Box::pin(session.execute("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5"));
        while home.at_gate() == 0 {
            let wait = tokio::time::sleep(Duration::from_millis(1));
            tokio::select! {
                _ = &mut altered => panic!("it waits for the disk"),
                () = wait => {}
            }
        }
        assert!(!altered.canceller().cancel(), "it takes effect");
        drop(altered);
        // No row is written to the table that is being replaced.
        let insert = tokio::spawn(async move { must(&other, "INSERT INTO t VALUES (3, 7)").await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!insert.is_finished(), "the table is locked");
        assert_eq!(
            lines(&session, "SELECT * FROM t").await.unwrap(),
            ["1", "2"]
        );
        home.open_gate();
        assert_eq!(insert.await.unwrap(), 1);
        let rows = lines(&session, "SELECT a, b FROM t").await.unwrap();
        assert_eq!(rows, ["1|5", "2|5", "3|7"]);
        drop(session);
        reopened(&home, database).await;
    });
}

#[test]
fn views_of_files_are_there_without_the_files() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let session = database.session();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.csv").display().to_string();
        std::fs::write(&file, "a,b\n1,x\n2,y\n").unwrap();
        must(
            &session,
            &format!("CREATE VIEW f AS SELECT * FROM read_csv('{file}')"),
        )
        .await;
        must(&session, "CREATE VIEW g AS SELECT max(a) AS m FROM f").await;
        drop(session);
        let database = reopened(&home, database).await;
        let found = lines(&database.session(), "SELECT m FROM g").await;
        assert_eq!(found.unwrap(), ["2"]);
        std::fs::rename(&file, format!("{file}.away")).unwrap();
        let database = reopened(&home, database).await;
        let message = fails(&database.session(), "SELECT m FROM g").await;
        assert!(message.contains("a.csv"), "{message}");
        std::fs::rename(format!("{file}.away"), &file).unwrap();
        let found = lines(&database.session(), "SELECT m FROM g").await;
        assert_eq!(found.unwrap(), ["2"]);
    });
}

/// Names and types that could not be given any more in the order in which definitions are made again.
#[test]
fn what_was_valid_stays_valid() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let database = open(&home);
        let session = database.session();
        for sql in [
            "CREATE TABLE z (a INTEGER, b INTEGER)",
            "CREATE INDEX x ON z (a)",
            "CREATE UNIQUE INDEX y ON z (b)",
            "CREATE TABLE a (a INTEGER, CONSTRAINT x UNIQUE (a), CONSTRAINT y PRIMARY KEY (a))",
            "ALTER TABLE z ADD CONSTRAINT x CHECK (a > 0)",
            "CREATE TABLE n (id INTEGER GENERATED ALWAYS AS IDENTITY, b INTEGER, g INTEGER GENERATED ALWAYS AS (1))",
            "ALTER TABLE n ALTER COLUMN id TYPE SMALLINT",
            "ALTER TABLE n RENAME COLUMN id TO number",
            "ALTER TABLE n RENAME TO m",
            "INSERT INTO m (b) VALUES (1), (2)",
            "CREATE MACRO zero(x) AS x * 0",
            "CREATE TABLE d (a INTEGER DEFAULT zero(7), CHECK (zero(a) = 0))",
            "CREATE VIEW called AS SELECT zero(b) AS z FROM m",
            "CREATE OR REPLACE MACRO zero(x) AS x * 0 + 1",
            "CREATE TABLE read (k INTEGER)",
            "CREATE MACRO reads() AS TABLE SELECT k FROM read",
            "CREATE MACRO calls() AS (SELECT zero(k) FROM reads())",
            "DROP TABLE read",
            "CREATE TABLE e (a INTEGER, b INTEGER)",
            "CREATE VIEW star AS SELECT *, a AS c FROM e",
            "ALTER TABLE e ADD COLUMN z INTEGER",
            "CREATE VIEW later AS SELECT * FROM star",
            "CREATE SEQUENCE s",
            "CREATE TABLE t (n BIGINT DEFAULT nextval('s') + 1)",
            "CREATE TABLE s (s INTEGER)",
        ] {
            must(&session, sql).await;
        }
        drop(session);
        let database = reopened(&home, database).await;
        let session = database.session();
        must(&session, "INSERT INTO d DEFAULT VALUES").await;
        assert_eq!(lines(&session, "SELECT a FROM d").await.unwrap(), ["0"]);
        assert_eq!(
            lines(&session, "SELECT z FROM called").await.unwrap(),
            ["0", "0"]
        );
        must(&session, "INSERT INTO m (b) VALUES (3)").await;
        assert_eq!(
            lines(&session, "SELECT max(number) FROM m").await.unwrap(),
            ["3"]
        );
        let columns = lines(&session, "DESCRIBE star").await.unwrap();
        assert_eq!(columns.len(), 3, "{columns:?}");
        drop(session);
        reopened(&home, database).await;
    });
}
