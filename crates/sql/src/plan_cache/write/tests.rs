//! A comment in a text keeps it out of the cache: so the statement's own way is the oracle.

use crate::{Database, Outcome, Parameter, Session};
use datafusion::arrow::util::pretty::pretty_format_batches;
use eris_engine::Settings;
use eris_numa::{HugePages, Topology};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

fn database(cores: u16) -> Session {
    let database = Database::open(Settings {
        topology: Topology::fake(1, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(256 << 20),
    });
    database.unwrap().session()
}

fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap()
}

fn outcome(result: Result<Outcome, crate::SqlError>, runtime: &Runtime) -> Result<String, String> {
    match result.map_err(|error| error.to_string())? {
        Outcome::Rows(rows) => {
            let batches = runtime
                .block_on(rows.collect())
                .map_err(|error| error.to_string())?;
            Ok(pretty_format_batches(&batches).unwrap().to_string())
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
    let contents = session.database().core().catalog.contents();
    contents.plans.writes.planned()
}

const TABLES: [&str; 4] = [
    "CREATE TABLE one (k INTEGER PRIMARY KEY, n BIGINT DEFAULT 7, small TINYINT, d DOUBLE, \
     price DECIMAL(9, 2), name VARCHAR(6), day DATE, flag BOOLEAN NOT NULL DEFAULT true)",
    "CREATE TABLE two (b INTEGER, a VARCHAR, n BIGINT, PRIMARY KEY (a, b))",
    "CREATE TABLE three (k INTEGER, n BIGINT NOT NULL)",
    "CREATE TABLE four (k REAL PRIMARY KEY, n BIGINT, at TIMESTAMP)",
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

#[test]
fn what_the_cache_writes_is_what_the_statement_writes() {
    let runtime = runtime();
    let mut runner = TestRunner::new(Config::with_cases(24));
    let statements = prop::collection::vec(statement(), 60);
    let known = std::cell::Cell::new(0);
    let ran = runner.run(&statements, |statements| {
        let (cached, planned) = (database(2), database(2));
        for table in TABLES {
            run(&cached, &runtime, table).unwrap();
            run(&planned, &runtime, table).unwrap();
        }
        for sql in &statements {
            // Behind its first line an error shows the statement; and of several rows whose keys are taken it names any.
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
        for query in [
            "SELECT * FROM one ORDER BY k",
            "SELECT * FROM two ORDER BY a, b",
            "SELECT * FROM three ORDER BY k, n",
            "SELECT * FROM four ORDER BY k",
        ] {
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
