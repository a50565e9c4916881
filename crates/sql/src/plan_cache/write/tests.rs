//! A comment in a text keeps it out of the cache: so the general path is the oracle.

use crate::Database;
use crate::Outcome;
use crate::Parameter;
use crate::Session;
use crate::cancel::CancelToken;
use crate::plan_cache::{Asked, Mask, PlanCache, Short, lookup};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::pretty::pretty_format_batches;
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

fn database(cores: u16) -> Session {
    let database = Database::open(
        Engine::home(Settings {
            topology: Topology::fake(1, cores),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
            database: None,
        })
        .unwrap(),
    );
    database.unwrap().session()
}

fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap()
}

fn outcome(result: Result<Outcome, crate::SqlError>, runtime: &Runtime) -> Result<String, String> {
    match result.map_err(|error| error.to_string())? {
        Outcome::Rows(rows) => {
            let schema = rows.schema().clone();
            let batches = runtime
                .block_on(rows.collect())
                .map_err(|error| error.to_string())?;
            let batch = concat_batches(&schema, &batches).unwrap();
            Ok(pretty_format_batches(&[batch]).unwrap().to_string())
        }
        Outcome::Count { rows, tag } => Ok(format!("{tag} {rows}")),
        Outcome::Done { tag } => Ok(tag.to_owned()),
    }
}

fn run(session: &Session, runtime: &Runtime, sql: &str) -> Result<String, String> {
    outcome(runtime.block_on(session.execute(sql)), runtime)
}

/// Writes that are known.
fn writes(session: &Session) -> usize {
    let contents = session.database().context().catalog.contents();
    contents.attached::<PlanCache>().writes.planned()
}

const TABLES: [&str; 7] = [
    "CREATE TABLE one (k INTEGER PRIMARY KEY, n BIGINT DEFAULT 7, small TINYINT, d DOUBLE, \
     price DECIMAL(9, 2), name VARCHAR(6), day DATE, flag BOOLEAN NOT NULL DEFAULT true)",
    "CREATE TABLE two (b INTEGER, a VARCHAR, n BIGINT, PRIMARY KEY (a, b))",
    "CREATE TABLE three (k INTEGER, n BIGINT NOT NULL)",
    "CREATE TABLE four (k REAL PRIMARY KEY, n BIGINT, at TIMESTAMP)",
    "CREATE TABLE parent (k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR, mail VARCHAR UNIQUE, n INTEGER, UNIQUE (a, b))",
    "CREATE TABLE child (k INTEGER PRIMARY KEY, p INTEGER REFERENCES parent, a INTEGER, b VARCHAR, \
     up INTEGER REFERENCES child, n INTEGER DEFAULT 5 CHECK (n > -2), day DATE DEFAULT current_date, \
     noise DOUBLE DEFAULT random() * 0, FOREIGN KEY (b, a) REFERENCES parent (b, a), \
     CONSTRAINT much CHECK (n < 100 OR p IS NOT NULL), CHECK (day <= current_date), CHECK (100 / n <> 7))",
    "CREATE TABLE loose (p INTEGER REFERENCES parent (k), a INTEGER UNIQUE, n INTEGER CHECK (n + 1 > 0))",
];

/// Queries over all that is in the tables.
const CONTENTS: [&str; 7] = [
    "SELECT * FROM one ORDER BY k",
    "SELECT * FROM two ORDER BY a, b",
    "SELECT * FROM three ORDER BY k, n",
    "SELECT * FROM four ORDER BY k",
    "SELECT * FROM parent ORDER BY k",
    "SELECT * FROM child ORDER BY k",
    "SELECT * FROM loose ORDER BY p, a, n",
];

/// A value for a column of any type; many fit only some.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (-3i64..12).prop_map(|n| n.to_string()),
        2 => (-300i64..300).prop_map(|n| n.to_string()),
        2 => (-30i64..30, 0..1000).prop_map(|(n, f)| format!("{n}.{f}")),
        2 => "'[a-c ]{0,8}'",
        1 => (1..13, 1..31).prop_map(|(month, day)| format!("'2024-{month:02}-{day:02}'")),
        1 => (1..13, 1..28).prop_map(|(month, day)| format!("DATE '2024-{month:02}-{day:02}'")),
        1 => Just("NULL".to_owned()),
        1 => Just("TRUE".to_owned()),
        1 => Just("DEFAULT".to_owned()),
        1 => Just("99999999999".to_owned()),
        1 => Just("1 + 2".to_owned()),
        1 => Just("random() * 0".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (-2i64..9).prop_map(|n| n.to_string()),
        1 => Just("NULL".to_owned()),
        1 => Just("2.5".to_owned()),
        1 => Just("3.0".to_owned()),
        1 => Just("'4'".to_owned()),
    ]
}

/// What a column of table `one` is set to. `other` is how another row than the one that is there is called.
fn set(other: &'static str) -> impl Strategy<Value = String> {
    let column = prop_oneof![
        Just("n"),
        Just("small"),
        Just("d"),
        Just("price"),
        Just("name"),
        Just("day"),
        Just("flag")
    ];
    let expr = prop_oneof![
        3 => value(),
        2 => (1i64..5).prop_map(|n| format!("one.n + {n}")),
        2 => Just("one.small * 100".to_owned()),
        1 => Just("one.name || 'x'".to_owned()),
        1 => Just(format!("{other}.n")),
        1 => Just(format!("coalesce({other}.n, one.n) + {other}.k")),
        1 => Just("(SELECT max(k) FROM two)".to_owned()),
    ];
    (column, expr).prop_map(|(column, expr)| format!("{column} = {expr}"))
}

fn rest() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => (-3i64..12).prop_map(|n| format!(" AND one.n > {n}")),
        1 => Just(" AND flag".to_owned()),
        1 => Just(" AND (d < 5 OR name IS NULL)".to_owned()),
        1 => Just(" AND k IN (SELECT b FROM two)".to_owned()),
    ]
}

fn statement() -> impl Strategy<Value = String> {
    let row = (key(), prop::collection::vec(value(), 7))
        .prop_map(|(key, values)| format!("({key}, {})", values.join(", ")));
    let short = || (key(), value()).prop_map(|(key, value)| format!("({key}, {value})"));
    let two = || (key(), "'[ab]'", value()).prop_map(|(b, a, n)| format!("({b}, {a}, {n})"));
    let on_key = || prop_oneof![3 => Just("ON CONFLICT (k)"), 1 => Just("ON CONFLICT")];
    prop_oneof![
        2 => row.prop_map(|row| format!("INSERT INTO one VALUES {row}")),
        4 => short().prop_map(|row| format!("INSERT INTO one (k, n) VALUES {row}")),
        1 => (short(), short())
            .prop_map(|(a, b)| format!("INSERT INTO one (k, d) VALUES {a}, {b}")),
        2 => (short(), on_key())
            .prop_map(|(row, on)| format!("INSERT INTO one (k, name) VALUES {row} {on} DO NOTHING")),
        6 => (short(), set("excluded"), prop_oneof![3 => Just(""), 1 => Just(" WHERE one.n < 20")])
            .prop_map(|(row, set, only)| format!(
                "INSERT INTO one (k, n) VALUES {row} ON CONFLICT (k) DO UPDATE SET {set}{only}"
            )),
        6 => (set("one"), key(), rest())
            .prop_map(|(set, key, rest)| format!("UPDATE one SET {set} WHERE k = {key}{rest}")),
        1 => (key(), key()).prop_map(|(a, b)| format!("UPDATE one SET k = {a} WHERE k = {b}")),
        2 => (key(), rest()).prop_map(|(key, rest)| format!("DELETE FROM one WHERE k = {key}{rest}")),
        2 => two().prop_map(|row| format!("INSERT INTO two VALUES {row}")),
        2 => two().prop_map(|row| format!(
            "INSERT INTO two VALUES {row} ON CONFLICT (b, a) DO UPDATE SET n = two.n + excluded.n"
        )),
        2 => (key(), "'[ab]'", value())
            .prop_map(|(b, a, n)| format!("UPDATE two AS t SET n = {n} WHERE t.a = {a} AND {b} = b")),
        1 => (key(), "'[ab]'").prop_map(|(b, a)| format!("DELETE FROM two WHERE b = {b} AND a = {a}")),
        1 => short().prop_map(|row| format!("INSERT INTO three VALUES {row}")),
        1 => key().prop_map(|key| format!("DELETE FROM one WHERE k = {key} LIMIT 0")),
        1 => (prop_oneof![Just("0.1"), Just("-0"), Just("-0.0"), Just("2")], value())
            .prop_map(|(key, n)| format!("INSERT INTO four VALUES ({key}, {n}, DATE '2024-01-01'), (7, {n}, '2024-01-02 10:00:00')")),
        1 => (prop_oneof![Just("0.1"), Just("-0"), Just("7")], value())
            .prop_map(|(key, n)| format!("UPDATE four SET n = {n} WHERE k = {key}")),
        1 => prop_oneof![Just("DELETE FROM four WHERE k = 0.1"), Just("DELETE FROM four WHERE k = 7")]
            .prop_map(str::to_owned),
    ]
}

/// Statements on tables whose rows have rules and refer to each other.
fn ruled() -> impl Strategy<Value = String> {
    let small =
        || prop_oneof![5 => (0i64..6).prop_map(|n| n.to_string()), 1 => Just("NULL".to_owned())];
    let word = || prop_oneof![4 => "'[ab]'", 1 => Just("NULL".to_owned())];
    let number = || prop_oneof![6 => (0i64..20).prop_map(|n| n.to_string()), 2 => (-3i64..130).prop_map(|n| n.to_string()), 1 => value()];
    let returning = || {
        prop_oneof![
            3 => Just(""),
            1 => Just(" RETURNING *"),
            1 => Just(" RETURNING k, n * 2 AS twice, b || 'x'"),
            1 => Just(" RETURNING k AS \"K\", n, n, 'a' || 7"),
            1 => Just(" RETURNING 10 / n"),
            1 => Just(" RETURNING (SELECT count(*) FROM one), k"),
            1 => Just(" RETURNING now() IS NULL, k"),
            1 => Just(" RETURNING count(*)"),
            1 => Just(" RETURNING missing"),
        ]
    };
    let parent = || {
        (small(), small(), word(), word(), number())
            .prop_map(|(k, a, b, mail, n)| format!("({k}, {a}, {b}, {mail}, {n})"))
    };
    let child = || {
        (small(), small(), small(), word(), small(), number())
            .prop_map(|(k, p, a, b, up, n)| format!("({k}, {p}, {a}, {b}, {up}, {n})"))
    };
    let into_child = "INSERT INTO child (k, p, a, b, up, n) VALUES";
    let of_child = || {
        prop_oneof![
            small().prop_map(|p| format!("p = {p}")),
            (small(), word()).prop_map(|(a, b)| format!("a = {a}, b = {b}")),
            small().prop_map(|up| format!("up = {up}")),
            number().prop_map(|n| format!("n = {n}")),
            Just("n = child.n * 10".to_owned()),
            Just("n = DEFAULT, day = DEFAULT".to_owned()),
            Just("day = '2999-01-01'".to_owned()),
            Just("noise = DEFAULT".to_owned()),
        ]
    };
    let of_parent = || {
        prop_oneof![
            3 => number().prop_map(|n| format!("n = {n}")),
            1 => small().prop_map(|a| format!("a = {a}")),
            2 => word().prop_map(|mail| format!("mail = {mail}")),
            1 => Just("n = parent.n + 1".to_owned()),
        ]
    };
    prop_oneof![
        6 => (parent(), returning()).prop_map(|(row, returning)| format!("INSERT INTO parent VALUES {row}{returning}")),
        1 => (parent(), parent()).prop_map(|(a, b)| format!("INSERT INTO parent VALUES {a}, {b}")),
        2 => (parent(), prop_oneof![Just("(k)"), Just("(mail)"), Just("")], returning())
            .prop_map(|(row, on, returning)| format!("INSERT INTO parent VALUES {row} ON CONFLICT {on} DO NOTHING{returning}")),
        3 => (parent(), of_parent(), returning())
            .prop_map(|(row, set, returning)| format!("INSERT INTO parent VALUES {row} ON CONFLICT (k) DO UPDATE SET {set}{returning}")),
        4 => (of_parent(), small(), returning())
            .prop_map(|(set, k, returning)| format!("UPDATE parent SET {set} WHERE k = {k}{returning}")),
        2 => (small(), returning()).prop_map(|(k, returning)| format!("DELETE FROM parent WHERE k = {k}{returning}")),
        8 => (child(), returning()).prop_map(move |(row, returning)| format!("{into_child} {row}{returning}")),
        1 => (child(), child(), returning()).prop_map(move |(a, b, returning)| format!("{into_child} {a}, {b}{returning}")),
        2 => (small(), returning()).prop_map(|(k, returning)| format!("INSERT INTO child (k) VALUES ({k}){returning}")),
        2 => (child(), returning())
            .prop_map(move |(row, returning)| format!("{into_child} {row} ON CONFLICT DO NOTHING{returning}")),
        4 => (child(), of_child(), returning())
            .prop_map(move |(row, set, returning)| format!("{into_child} {row} ON CONFLICT (k) DO UPDATE SET {set}{returning}")),
        6 => (of_child(), small(), returning())
            .prop_map(|(set, k, returning)| format!("UPDATE child SET {set} WHERE k = {k}{returning}")),
        3 => (small(), returning()).prop_map(|(k, returning)| format!("DELETE FROM child WHERE k = {k}{returning}")),
        1 => (small(), number(), returning())
            .prop_map(|(k, n, returning)| format!("DELETE FROM child AS c WHERE c.k = {k} AND c.n > {n}{returning}")),
        2 => (small(), small(), number()).prop_map(|(p, a, n)| format!("INSERT INTO loose VALUES ({p}, {a}, {n})")),
        1 => (small(), small(), number()).prop_map(|(p, a, n)| format!("INSERT INTO loose VALUES ({p}, {a}, {n}) RETURNING p, n + 1")),
    ]
}

#[test]
fn what_the_cache_writes_is_what_the_statement_writes() {
    compare(24, prop::collection::vec(statement(), 60));
}

#[test]
fn the_cache_keeps_the_rules_of_tables() {
    compare(12, prop::collection::vec(ruled(), 120));
}

/// Executes statements with the cache and without.
fn compare(cases: u32, statements: impl Strategy<Value = Vec<String>>) {
    let runtime = runtime();
    let mut runner = TestRunner::new(Config::with_cases(cases));
    let known = std::cell::Cell::new(0);
    let ran = runner.run(&statements, |statements| {
        let (cached, planned) = (database(2), database(2));
        for table in TABLES {
            run(&cached, &runtime, table).unwrap();
            run(&planned, &runtime, table).unwrap();
        }
        for sql in &statements {
            // Behind its first line an error shows the statement; and of several rows whose keys are taken it names
            // any.
            let essence = |error: String| {
                let line = error.lines().next().unwrap_or_default();
                line.split("there is a row with")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            let given = run(&cached, &runtime, sql).map_err(essence);
            let commented = format!("{sql} -- not cached");
            let expected = run(&planned, &runtime, &commented).map_err(essence);
            prop_assert_eq!(&given, &expected, "{}", sql);
        }
        for query in CONTENTS {
            prop_assert_eq!(
                run(&cached, &runtime, query),
                run(&planned, &runtime, query)
            );
        }
        known.set(known.get() + writes(&cached));
        Ok(())
    });
    ran.unwrap();
    assert!(known.get() > 0, "nothing was cached");
}

#[test]
fn prepared_writes_take_other_values() {
    let (runtime, session) = (runtime(), database(1));
    let execute = |sql: &str, values: Vec<Vec<Parameter>>| -> Vec<Result<String, String>> {
        let prepared = runtime.block_on(session.prepare(sql)).unwrap();
        let values = values.into_iter();
        values
            .map(|values| outcome(runtime.block_on(prepared.execute(&values)), &runtime))
            .collect()
    };
    run(&session, &runtime, TABLES[0]).unwrap();
    let inserted = execute(
        "INSERT INTO one (k, n, d, name) VALUES ($1, $2, $2, 'x')",
        vec![
            vec![1.into(), 10.into()],
            vec![2.into(), Parameter::NULL],
            vec!["3".into(), 2.into()],
            vec![1.into(), 1.into()],
            vec![4.into(), 1.5.into()],
        ],
    );
    let count = |rows: u64| Ok(format!("INSERT {rows}"));
    assert_eq!(inserted[..3], [count(1), count(1), count(1)]);
    assert!(
        inserted[3].as_ref().unwrap_err().contains("PRIMARY KEY"),
        "{inserted:?}"
    );
    let upsert = "INSERT INTO one (k, n) VALUES ($1, $2) \
                  ON CONFLICT (k) DO UPDATE SET n = one.n + excluded.n + $3";
    let upserted = execute(
        upsert,
        vec![
            vec![1.into(), 1.into(), 100.into()],
            vec![1.into(), 2.into(), 200.into()],
            vec![9.into(), 5.into(), 0.into()],
        ],
    );
    assert!(
        upserted.iter().all(|outcome| *outcome == count(1)),
        "{upserted:?}"
    );
    let updated = execute(
        "UPDATE one SET name = $2, price = $3 WHERE k = $1",
        vec![
            vec![1.into(), "a".into(), "1.25".into()],
            vec![77.into(), "b".into(), 2.into()],
            vec![2.into(), "too long".into(), 2.into()],
        ],
    );
    assert_eq!(
        updated[..2],
        [Ok("UPDATE 1".to_owned()), Ok("UPDATE 0".to_owned())]
    );
    assert!(
        updated[2]
            .as_ref()
            .unwrap_err()
            .contains("too long for VARCHAR(6)"),
        "{updated:?}"
    );
    let deleted = execute(
        "DELETE FROM one WHERE k = $1",
        vec![vec![2.into()], vec![2.into()]],
    );
    assert_eq!(
        deleted,
        [Ok("DELETE 1".to_owned()), Ok("DELETE 0".to_owned())]
    );
    let shown = run(
        &session,
        &runtime,
        "SELECT k, n, d, name, price FROM one WHERE k IN (1, 9) ORDER BY k",
    );
    assert_eq!(
        shown.unwrap(),
        "+---+-----+------+------+-------+\n\
         | k | n   | d    | name | price |\n\
         +---+-----+------+------+-------+\n\
         | 1 | 313 | 10.0 | a    | 1.25  |\n\
         | 9 | 5   |      |      |       |\n\
         +---+-----+------+------+-------+"
    );
}

#[test]
fn a_write_ends_with_its_table() {
    let (runtime, session) = (runtime(), database(1));
    for round in 0..3 {
        run(
            &session,
            &runtime,
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)",
        )
        .unwrap();
        for k in 0..4 {
            let sql = format!("INSERT INTO t VALUES ({k}, {round})");
            assert_eq!(run(&session, &runtime, &sql), Ok("INSERT 1".to_owned()));
        }
        run(&session, &runtime, "ALTER TABLE t RENAME COLUMN v TO w").unwrap();
        let gone = run(&session, &runtime, "UPDATE t SET v = 2 WHERE k = 1");
        assert!(gone.unwrap_err().contains("\"v\""));
        run(&session, &runtime, "UPDATE t SET w = 2 WHERE k = 1").unwrap();
        run(&session, &runtime, "DROP TABLE t").unwrap();
    }
}

/// Executes a text that is known as a write, and says whether it was done without a plan.
fn is_short(session: &Session, runtime: &Runtime, sql: &str) -> bool {
    let context = session.database().context().of_session(&session.data());
    let mask = Mask::new(sql).unwrap();
    let write = match lookup(&context, Asked::Text(mask.of(sql))) {
        Ok(write @ Short::Write(_)) => write,
        _ => panic!("{sql}: not known"),
    };
    let attempt = runtime.block_on(write.run(&context, &CancelToken::new(None)));
    attempt.unwrap().is_ok()
}

#[test]
fn rows_with_rules_go_the_short_way() {
    let (runtime, session) = (runtime(), database(2));
    for table in TABLES {
        run(&session, &runtime, table).unwrap();
    }
    run(
        &session,
        &runtime,
        "INSERT INTO parent VALUES (0, 0, 'a', NULL, 1)",
    )
    .unwrap();
    // The constants change, so that every statement is executed twice.
    run(
        &session,
        &runtime,
        "CREATE TABLE person (id INTEGER PRIMARY KEY, mail VARCHAR UNIQUE, tax INTEGER, n INTEGER, UNIQUE (n, tax))",
    )
    .unwrap();
    run(
        &session,
        &runtime,
        "INSERT INTO person VALUES (1, 'a', 1, 1), (2, 'b', NULL, 2), (9, NULL, NULL, NULL)",
    )
    .unwrap();
    let statements: [fn(i64) -> String; 17] = [
        |k| format!("INSERT INTO parent VALUES ({k}, {k}, 'a', NULL, 1) RETURNING k"),
        |k| {
            format!(
                "INSERT INTO parent VALUES ({k}, 9, 'x', 'mail{k}', {k}) ON CONFLICT (k) DO UPDATE SET n = excluded.n RETURNING *"
            )
        },
        |k| {
            format!(
                "INSERT INTO parent VALUES ({}, NULL, 'b', 'new{k}', 1) ON CONFLICT (k) DO NOTHING RETURNING mail",
                k + 20
            )
        },
        |k| format!("UPDATE person SET mail = 'mail{k}' WHERE id = {k} RETURNING *"),
        |k| format!("UPDATE person SET tax = tax + 1, n = 5 WHERE id = {k}"),
        |k| format!("UPDATE person SET tax = {k} WHERE id = 9"),
        |k| {
            format!(
                "INSERT INTO person VALUES ({k}, 'x', 1, 1) ON CONFLICT (id) DO UPDATE SET mail = excluded.mail || person.id"
            )
        },
        |k| format!("DELETE FROM person WHERE id = {k} RETURNING mail, tax * 2"),
        |k| {
            format!(
                "INSERT INTO person VALUES ({}, 'y{k}', 1, {k}), ({}, 'z{k}', 2, {k})",
                k + 30,
                k + 40
            )
        },
        |k| {
            format!(
                "INSERT INTO child (k, p, a, b, up, n) VALUES ({k}, 0, 0, 'a', {k}, 9) RETURNING *"
            )
        },
        |k| format!("INSERT INTO child (k, p) VALUES ({}, 0)", k + 10),
        |k| {
            format!(
                "INSERT INTO child (k, up) VALUES ({}, 1) ON CONFLICT DO NOTHING RETURNING k",
                k + 20
            )
        },
        |k| {
            format!(
                "INSERT INTO child (k, p) VALUES ({k}, 0) ON CONFLICT (k) DO UPDATE SET p = excluded.p, n = child.n + 1 RETURNING n"
            )
        },
        |k| format!("UPDATE child SET up = {k} WHERE k = {k}"),
        |k| {
            format!(
                "UPDATE child SET n = n + 1, a = NULL WHERE k = {k} RETURNING n - 1 AS before, b || 'x'"
            )
        },
        |k| format!("UPDATE child SET b = 'nobody', noise = DEFAULT WHERE k = {k}"),
        |k| format!("UPDATE child SET day = '2024-01-0{k}' WHERE k = {k} AND n > 0 RETURNING day"),
    ];
    for statement in statements {
        run(&session, &runtime, &statement(1)).unwrap();
        assert!(
            is_short(&session, &runtime, &statement(2)),
            "{}",
            statement(2)
        );
    }
    for broken in [
        "INSERT INTO child (k, p) VALUES (30, 9)",
        "UPDATE child SET up = 9 WHERE k = 1",
        "INSERT INTO child (k, p) VALUES (1, 0)",
        "INSERT INTO person VALUES (50, 'y1', NULL, NULL)",
        "UPDATE person SET mail = 'y1' WHERE id = 41",
    ] {
        run(&session, &runtime, broken).unwrap_err();
        assert!(!is_short(&session, &runtime, broken), "{broken}");
    }
}

#[test]
fn who_waits_for_the_write_lock_can_be_stopped() {
    let (runtime, session) = (runtime(), database(2));
    for sql in [
        "CREATE TABLE plain (k INTEGER PRIMARY KEY, n INTEGER)",
        "CREATE TABLE person (k INTEGER PRIMARY KEY, n INTEGER UNIQUE)",
        "INSERT INTO plain VALUES (1, 1), (2, 2)",
        "INSERT INTO person VALUES (1, 1), (2, 2)",
    ] {
        run(&session, &runtime, sql).unwrap();
    }
    let statements = |table: &str| {
        [
            format!("UPDATE {table} SET n = n + 10 WHERE k = 1"),
            format!(
                "INSERT INTO {table} VALUES (2, 20) ON CONFLICT (k) DO UPDATE SET n = excluded.n"
            ),
            format!("DELETE FROM {table} WHERE k = 2"),
            format!("INSERT INTO {table} VALUES (3, 30)"),
            format!("INSERT INTO {table} SELECT 4, 40"),
        ]
    };
    let rows = |table: &str| {
        let sql = format!("SELECT k, n FROM {table} ORDER BY k");
        run(&session, &runtime, &sql).unwrap()
    };
    for table in ["plain", "person"] {
        let before = rows(table);
        let context = session.database().context();
        let contents = context.catalog.contents();
        let found = contents.tables().find(|found| found.name.name == table);
        let object = found.expect("it was created").object;
        let changer = runtime.block_on(context.home.change(&[object])).unwrap();
        run(&session, &runtime, "SET statement_timeout = '20ms'").unwrap();
        // The second time it is known.
        for sql in statements(table).iter().flat_map(|sql| [sql, sql]) {
            let stopped = run(&session, &runtime, sql).unwrap_err();
            assert!(stopped.contains("statement_timeout"), "{sql}: {stopped}");
        }
        drop(changer);
        run(&session, &runtime, "RESET statement_timeout").unwrap();
        assert_eq!(rows(table), before);
        for sql in statements(table) {
            let done = run(&session, &runtime, &sql);
            assert!(done.is_ok_and(|done| done.ends_with(" 1")), "{sql}");
        }
    }
}
