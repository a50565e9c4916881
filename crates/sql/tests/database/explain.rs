//! EXPLAIN ANALYZE: the numbers of a fragment's phases are those of its rows, however they are spread.

use crate::common::{TOPOLOGIES, block_on, database};
use datafusion::arrow::array::{Array, AsArray};
use eris_sql::{Outcome, Session};

const ROWS: i64 = 200_000;

/// `(v + w) % 3 = 1`, as it is shown.
const COMPUTED: &str = "(CAST((v + w) AS BIGINT) % 3) = 1";

fn with_each_topology(test: impl AsyncFn(&Session)) {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on(test(&database.session()));
    }
}

/// The first column of all rows.
async fn lines(session: &Session, sql: &str) -> Vec<String> {
    let outcome = session.execute(sql).await;
    let outcome = outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Outcome::Rows(rows) = outcome else {
        return Vec::new();
    };
    let batches = rows.collect().await.unwrap();
    let texts = batches.iter().flat_map(|batch| {
        let texts = batch.column(0).as_string_view();
        (0..texts.len()).map(|row| texts.value(row).to_owned())
    });
    texts.collect()
}

/// `v` ascends; everywhere `w` takes values from 0 to 99 and `k` from 0 to 999, without regard to each other.
async fn tables(session: &Session) {
    for sql in [
        "CREATE TABLE fact (v INTEGER NOT NULL, w INTEGER, k INTEGER NOT NULL)",
        "CREATE TABLE dim (k INTEGER NOT NULL, color VARCHAR)",
        "INSERT INTO fact SELECT i, i * i % 9973 % 100, i % 1000 FROM generate_series(1, 200000) AS g(i)",
        "INSERT INTO dim SELECT i, 'c' || (i % 5) FROM generate_series(0, 999) AS g(i)",
    ] {
        lines(session, sql).await;
    }
}

/// How many rows of the table hold this.
fn rows(holds: impl Fn(i64, i64, i64) -> bool) -> u64 {
    let all = (1..=ROWS).map(|i| (i, i * i % 9973 % 100, i % 1000));
    all.filter(|(v, w, k)| holds(*v, *w, *k)).count() as u64
}

/// What the plan tells of the fragment over `fact`.
#[derive(Debug)]
struct Told {
    plan: Vec<String>,
    /// Each condition with the rows it met and those that were left.
    phases: Vec<(String, u64, u64)>,
    /// Rows of the output, and rows that were sent.
    output: (u64, u64),
    chunks: u64,
    skipped: u64,
}

fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

async fn told(session: &Session, sql: &str) -> Told {
    let plan = lines(session, &format!("EXPLAIN ANALYZE {sql}")).await;
    let at = plan.iter().position(|line| line.contains("table=fact"));
    let part = &plan[at.expect("it is read") + 1..];
    let of = |mark: &str| {
        let found = part.iter().find_map(|line| line.split_once(mark));
        found.unwrap_or_else(|| panic!("no {mark}: {plan:#?}")).1
    };
    let phases = part.iter().take_while(|line| !line.contains("└─ "));
    let phases = phases.filter_map(|line| line.split_once("├─ "));
    let phases = phases.filter(|(_, phase)| phase.contains(" rows ("));
    let phases = phases.map(|(_, phase)| {
        let (what, counts) = phase.rsplit_once(": ").unwrap();
        let counts = numbers(counts);
        (what.to_owned(), counts[0], counts[1])
    });
    let output = numbers(of("└─ output: "));
    let chunks = numbers(of("; "));
    Told {
        phases: phases.collect(),
        output: (output[0], output[1]),
        chunks: chunks[0],
        skipped: chunks[1],
        plan,
    }
}

impl Told {
    fn assert(&self, phases: &[(&str, u64, u64)], sent: u64) {
        let expected = phases
            .iter()
            .map(|(what, before, after)| ((*what).to_owned(), *before, *after));
        assert_eq!(
            self.phases,
            expected.collect::<Vec<_>>(),
            "{:#?}",
            self.plan
        );
        let left = phases.last().map_or(ROWS as u64, |(_, _, left)| *left);
        assert_eq!(self.output, (left, sent), "{:#?}", self.plan);
        let fact = self
            .plan
            .iter()
            .position(|line| line.contains("table=fact"))
            .unwrap();
        let workers = self.plan[fact + 1..]
            .iter()
            .take_while(|line| !line.contains("FragmentExec"));
        let passed = workers.filter_map(|line| line.split_once("rows_passed="));
        let passed: u64 = passed.map(|(_, rest)| numbers(rest)[0]).sum();
        assert_eq!(passed, left, "{:#?}", self.plan);
    }
}

#[test]
fn rows_after_each_phase_are_those_that_hold() {
    with_each_topology(async |session| {
        tables(session).await;
        let all = ROWS as u64;
        let few = rows(|_, w, _| w < 25);
        let third = rows(|v, w, _| w < 25 && (v + w) % 3 == 1);
        let sql = "SELECT v FROM fact WHERE (v + w) % 3 = 1 AND w < 25";
        let phases = [("w < 25", all, few), (COMPUTED, few, third)];
        told(session, sql).await.assert(&phases, third);

        // A lookup; and one of which only the keys matter.
        let red = rows(|_, _, k| k % 5 == 1);
        let third = rows(|v, w, k| k % 5 == 1 && (v + w) % 3 == 1);
        let from = "FROM fact JOIN dim ON fact.k = dim.k WHERE color = 'c1' AND (v + w) % 3 = 1";
        let ask = format!("SELECT v, color {from}");
        let phases = [
            ("k in 200 keys → (color)", all, red),
            (COMPUTED, red, third),
        ];
        told(session, &ask).await.assert(&phases, third);
        let ask = format!("SELECT v {from}");
        let phases = [("k in 200 keys", all, red), (COMPUTED, red, third)];
        told(session, &ask).await.assert(&phases, third);
    });
}

#[test]
fn each_chunk_may_take_tests_in_another_order_and_all_rows_are_accounted_for() {
    with_each_topology(async |session| {
        tables(session).await;
        let left = rows(|_, w, k| w < 25 && k % 5 == 1 && k < 700);
        let ask = "SELECT v FROM fact JOIN dim ON fact.k = dim.k WHERE color = 'c1' AND w < 25 AND fact.k < 700";
        let told = told(session, ask).await;
        let lost = told.phases.iter().map(|(_, before, after)| before - after);
        assert_eq!(lost.sum::<u64>(), ROWS as u64 - left, "{told:#?}");
        assert_eq!(told.output, (left, left), "{told:#?}");
    });
}

#[test]
fn what_zone_maps_and_visibility_leave_out_is_told() {
    with_each_topology(async |session| {
        tables(session).await;
        let told_before = told(session, "SELECT w FROM fact WHERE v > 1000000").await;
        assert_eq!(told_before.chunks, 0, "{told_before:#?}");
        let excluded = format!("v > 1000000: excluded {} chunks", told_before.skipped);
        assert!(
            told_before
                .plan
                .iter()
                .any(|line| line.ends_with(&excluded)),
            "{told_before:#?}"
        );
        // Every row holds it, as the zones show: nothing is read for it.
        let told_of_all = told(session, "SELECT w FROM fact WHERE v > 0").await;
        told_of_all.assert(&[], ROWS as u64);
        let held = format!("v > 0: held for all of {} chunks", told_of_all.chunks);
        assert!(
            told_of_all.plan.iter().any(|line| line.ends_with(&held)),
            "{told_of_all:#?}"
        );

        lines(session, "DELETE FROM fact WHERE v % 10 = 3").await;
        let visible = rows(|v, _, _| v % 10 != 3);
        let few = rows(|v, w, _| v % 10 != 3 && w < 25);
        let phases = [("visible", ROWS as u64, visible), ("w < 25", visible, few)];
        told(session, "SELECT k FROM fact WHERE w < 25")
            .await
            .assert(&phases, few);
    });
}

#[test]
fn rows_that_an_index_leads_to_are_all_that_is_met() {
    with_each_topology(async |session| {
        tables(session).await;
        lines(session, "CREATE INDEX by_v ON fact (v)").await;
        let wanted = |v: i64| [5, 70_000, 70_001, 150_000].contains(&v);
        let found = rows(|v, _, _| wanted(v));
        let few = rows(|v, w, _| wanted(v) && w < 50);
        let told = told(
            session,
            "SELECT v FROM fact WHERE v IN (5, 70000, 70001, 150000) AND w < 50",
        )
        .await;
        assert!(
            told.plan.iter().any(|line| line.contains("index=by_v")),
            "{told:#?}"
        );
        let lost = told.phases.iter().map(|(_, before, after)| before - after);
        assert_eq!(lost.sum::<u64>(), found - few, "{told:#?}");
        assert!(
            told.phases.iter().all(|(_, before, _)| *before <= found),
            "{told:#?}"
        );
        assert_eq!(told.output, (few, few), "{told:#?}");
    });
}

/// A join that is no star: its build side is read first, and the scan of the other side leaves out what has no match,
/// however far apart the keys lie.
#[test]
fn the_keys_of_a_build_side_reach_the_scan_of_the_other_side() {
    with_each_topology(async |session| {
        tables(session).await;
        for sql in [
            "CREATE TABLE far (v BIGINT, name VARCHAR)",
            "INSERT INTO far SELECT i * 197, 'n' || i FROM generate_series(1, 1000) AS g(i)",
            "INSERT INTO far VALUES (NULL, 'nobody'), (5000000, 'far away')",
        ] {
            lines(session, sql).await;
        }
        let few = rows(|_, w, _| w < 50);
        let found = rows(|v, w, _| w < 50 && v % 197 == 0 && v <= 197_000);
        for (sql, answer) in [("EXISTS", found), ("NOT EXISTS", 1002 - found)] {
            let sql = format!(
                "SELECT CAST(count(*) AS VARCHAR) FROM far WHERE {sql}
                 (SELECT 1 FROM fact WHERE CAST(fact.v AS BIGINT) = far.v AND w < 50)"
            );
            assert_eq!(lines(session, &sql).await, [answer.to_string()], "{sql}");
        }
        for sql in [
            "CREATE TABLE near (v INTEGER, name VARCHAR)",
            "INSERT INTO near SELECT CAST(v AS INTEGER), name FROM far",
        ] {
            lines(session, sql).await;
        }
        for (condition, answer) in [("EXISTS", found), ("NOT EXISTS", 1002 - found)] {
            let sql = format!(
                "SELECT CAST(count(*) AS VARCHAR) FROM near WHERE {condition}
                 (SELECT 1 FROM fact WHERE fact.v = near.v AND w < 50)"
            );
            assert_eq!(lines(session, &sql).await, [answer.to_string()], "{sql}");
            let told = told(session, &sql).await;
            assert_eq!(told.output, (found, found), "{told:#?}");
            let keys = told
                .phases
                .iter()
                .find(|(what, ..)| what == "v in 1001 keys");
            let (_, met, left) = keys.unwrap_or_else(|| panic!("{told:#?}"));
            assert!(
                left < met && *met <= ROWS as u64 && found <= few,
                "{told:#?}"
            );
        }
    });
}

#[test]
fn each_kind_of_question_that_an_index_serves_names_it() {
    with_each_topology(async |session| {
        for sql in [
            "CREATE TABLE fact (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, n INTEGER NOT NULL, m INTEGER, number INTEGER)",
            "INSERT INTO fact SELECT i, 'name ' || (i * 7919 % 200003), i * 31 % 100003, i % 1000, i * 7919 % 200003 FROM generate_series(1, 200000) AS g(i)",
            "CREATE INDEX by_name ON fact (name)",
            "CREATE INDEX by_n ON fact USING hash (n)",
            "CREATE INDEX by_m_and_n ON fact USING hash (m, n)",
            "CREATE INDEX by_number ON fact USING blink (number)",
            "CREATE TABLE few (a INTEGER, payload VARCHAR)",
            "INSERT INTO few SELECT i * 1000, 'p' || i FROM generate_series(1, 5) AS g(i)",
        ] {
            lines(session, sql).await;
        }
        let cases = [
            (
                "SELECT n FROM fact WHERE id = 77",
                "index=fact_pkey(id = 77)",
            ),
            (
                "SELECT n FROM fact WHERE id IN (5, 6, 7, 77, 78)",
                "index=fact_pkey(id IN (5, 6, 7, 77, 78))",
            ),
            (
                "SELECT n FROM fact WHERE id BETWEEN 5 AND 20",
                "index=fact_pkey(id >= 5 AND id <= 20)",
            ),
            (
                "SELECT n FROM fact WHERE name LIKE 'name 77%'",
                "index=by_name(name LIKE 'name 77%')",
            ),
            (
                "SELECT n FROM fact WHERE number = 1700",
                "index=by_number(number = 1700), using blink, rows≈1",
            ),
            (
                "SELECT n FROM fact WHERE number BETWEEN 1700 AND 1702",
                "index=by_number(number >= 1700 AND number <= 1702), using blink, rows≈3",
            ),
            (
                "SELECT n FROM fact ORDER BY number LIMIT 5",
                "index=by_number(in order), using blink",
            ),
            (
                "SELECT n FROM fact ORDER BY id LIMIT 5",
                "index=fact_pkey(in order)",
            ),
            (
                "SELECT n FROM fact ORDER BY name DESC LIMIT 5",
                "index=by_name(in order)",
            ),
            ("SELECT max(name) FROM fact", "index=by_name(in order)"),
            (
                "SELECT min(id), max(id) FROM fact WHERE id > 9",
                "index=fact_pkey(id > 9 AND in order)",
            ),
            ("SELECT id FROM fact WHERE n = 5", "index=by_n(n = 5)"),
            (
                "SELECT id FROM fact WHERE n IN (SELECT a FROM few)",
                "index=by_n(dynamic)",
            ),
            (
                "SELECT n, payload FROM fact JOIN few ON id = a",
                "index=fact_pkey(dynamic)",
            ),
            // These read more rows than it would pay for, or ask what the index does not know.
            ("SELECT n, payload FROM fact JOIN few ON m = a", ""),
            ("SELECT n FROM fact WHERE id BETWEEN 5 AND 150000", ""),
            ("SELECT n FROM fact WHERE name LIKE '%77'", ""),
            ("SELECT id FROM fact WHERE n BETWEEN 5 AND 7", ""),
            ("SELECT n FROM fact ORDER BY n LIMIT 5", ""),
            ("SELECT max(n) FROM fact", ""),
        ];
        for (sql, expected) in cases {
            let plan = lines(session, &format!("EXPLAIN {sql}")).await;
            let mut named = plan
                .iter()
                .filter_map(|line| line.find("index=").map(|at| &line[at..]));
            match expected {
                "" => assert_eq!(named.next(), None, "{sql}"),
                _ => assert!(
                    named.any(|line| line.starts_with(expected)),
                    "{sql}: {plan:#?}"
                ),
            }
        }
        // By the join's keys only as many rows are met as have one, though more is wanted of the other side.
        let told = told(
            session,
            "SELECT n, payload FROM fact JOIN few ON id = a WHERE n > 100",
        )
        .await;
        assert!(
            told.phases.iter().all(|(_, before, _)| *before <= 5),
            "{told:#?}"
        );
    });
}

/// Of conditions that go together, and of such that no formula knows.
#[test]
fn expected_rows_stand_beside_actual_ones() {
    with_each_topology(async |session| {
        tables(session).await;
        for condition in [
            "w < 10",
            "k % 10 = 3",
            "k >= 100 AND k < 200 AND k % 2 = 0",
            "w < 5 OR k < 100",
        ] {
            let sql = format!("EXPLAIN ANALYZE SELECT v FROM fact WHERE {condition}");
            let plan = lines(session, &sql).await;
            let line = plan.iter().find(|line| line.contains("table=fact"));
            let (_, shown) = line.unwrap().split_once(", rows=").unwrap();
            let [rows, estimated, ..] = numbers(shown)[..] else {
                panic!("{shown}");
            };
            assert!(shown.contains(", estimated="), "{shown}");
            // Four standard deviations of a twentieth of 2,048 rows.
            let error = (rows as f64 - estimated as f64).abs() / rows as f64;
            assert!(error < 0.4, "{condition}: {shown}");
        }
    });
}

#[test]
fn what_was_read_is_held_against_what_memory_delivers() {
    with_each_topology(async |session| {
        tables(session).await;
        let asked = "SELECT CAST(count(read_bytes_per_second) AS VARCHAR) FROM eris.nodes";
        assert_eq!(lines(session, asked).await, ["0"], "nobody has asked");
        let plan = lines(
            session,
            "EXPLAIN ANALYZE SELECT sum(w) FROM fact WHERE k > 7",
        )
        .await;
        let same = "SELECT CAST(a.total > 1000000 AND abs(n.total - a.total) < 100 AS VARCHAR) \
                    FROM (SELECT sum(read_bytes_per_second) AS total FROM eris.nodes) n, \
                         (SELECT sum(read_bytes_per_second) AS total FROM eris.aeus) a";
        assert_eq!(lines(session, same).await, ["true"]);
        // Each worker's limit is its own, and that of the fragment theirs together.
        let limits = "SELECT CAST(CAST(read_bytes_per_second AS BIGINT) AS VARCHAR) FROM eris.aeus ORDER BY aeu";
        let limits = lines(session, limits).await;
        let limit = |aeu: &str| {
            limits[aeu.parse::<usize>().unwrap()]
                .parse::<f64>()
                .unwrap()
                / 1e9
        };
        let mut workers = 0.0;
        for line in &plan {
            if let Some((_, rest)) = line.split_once("AEU ")
                && let Some((_, shown)) = line.split_once(" % of ")
            {
                let aeu = rest.split(' ').next().unwrap();
                assert!(
                    shown.starts_with(&format!("{:.1} GB/s", limit(aeu))),
                    "{plan:#?}"
                );
            }
            if let Some((_, rest)) = line.split_once("AEU ") {
                workers += limit(rest.split(' ').next().unwrap());
            }
        }
        let total = plan.iter().find(|line| line.contains(" chunks, ")).unwrap();
        let (_, shown) = total.split_once(" % of ").unwrap();
        let shown: f64 = shown.split(' ').next().unwrap().parse().unwrap();
        assert!((shown - workers).abs() < 0.2, "{workers} of {plan:#?}");
    });
}

/// The line of the fragment over `fact`.
async fn fact_line(session: &Session, sql: &str) -> String {
    let plan = lines(session, &format!("EXPLAIN {sql}")).await;
    let line = plan.iter().find(|line| line.contains("table=fact"));
    line.unwrap_or_else(|| panic!("{plan:#?}")).clone()
}

#[test]
fn push_is_shown_where_nothing_can_be_pulled() {
    with_each_topology(async |session| {
        tables(session).await;
        let nodes = "SELECT CAST(count(*) > 1 AS VARCHAR) FROM eris.nodes";
        let has_several = lines(session, nodes).await == ["true"];
        let scan = "SELECT sum(v) FROM fact WHERE w < 25";
        // What is read depends on the build side, of which nothing is known yet.
        let star = "SELECT v, color FROM fact JOIN dim ON fact.k = dim.k";
        let shown = [
            fact_line(session, scan).await,
            fact_line(session, star).await,
        ];
        for line in &shown {
            assert_eq!(line.ends_with(", push"), !has_several, "{line}");
        }
        let by_block = shown[1].ends_with(", push or pull by block");
        assert_eq!(by_block, has_several, "{shown:?}");
        // Nodes may have different parts of the rows, so that help is expected.
        assert_eq!(shown[0].contains(" ≈"), has_several, "{shown:?}");

        lines(session, "SET numa_strategy = push").await;
        let line = fact_line(session, scan).await;
        assert_eq!(line.ends_with(", push"), !has_several, "{line}");
        assert_eq!(line.contains(", push ≈"), has_several, "{line}");
        let ran = lines(session, &format!("EXPLAIN ANALYZE {scan}")).await;
        let came = |line: &String| line.ends_with("; nothing from other nodes");
        assert_eq!(ran.iter().any(came), has_several, "{ran:#?}");
    });
}
