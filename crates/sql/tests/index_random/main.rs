//! Tables with indexes against twins without any: whatever is written to both, and whatever indexes come and go, every
//! query has the same answer.
//!
//! ```text
//! t   keyed or not · CREATE INDEX, DROP INDEX between ──┐
//!     the same INSERT, UPDATE, DELETE, TRUNCATE, ALTER  ├── the same rows?
//! u   no key, no index ─────────────────────────────────┘
//! ```
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release --workspace --test index_random`.

mod values;

use datafusion::arrow::util::display::array_value_to_string;
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlError};
use std::time::{SystemTime, UNIX_EPOCH};
use values::{TYPES, Type, text};

const TOPOLOGIES: [(u16, u16); 3] = [(1, 1), (1, 2), (4, 2)];
/// Tables per topology, and steps each.
const TABLES: u64 = 3;
const STEPS: usize = 110;
const FIRST_ROWS: u64 = 1_500;

/// Numbers that look random and repeat with their seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn seed() -> u64 {
    let given = std::env::var("ERIS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_nanos() as u64 % 1_000_000
    })
}

struct Column {
    name: String,
    of: Type,
    nullable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    None,
    Id,
    /// A column that is not NULL, if there is one, and the id.
    Composite,
}

struct Index {
    name: String,
    columns: Vec<String>,
}

struct Twins<'a> {
    session: &'a Session,
    random: Random,
    columns: Vec<Column>,
    indexes: Vec<Index>,
    /// That of t; ids are different anyway.
    key: Key,
    next: u64,
    named: u64,
    log: Vec<String>,
    /// Fragments of queries that an index led.
    lookups: u64,
}

async fn run(session: &Session, sql: &str) -> Result<Vec<String>, SqlError> {
    match session.execute(sql).await? {
        Outcome::Rows(rows) => {
            let batches = rows.collect().await?;
            let mut all = Vec::new();
            for batch in &batches {
                for row in 0..batch.num_rows() {
                    let cells = batch.columns().iter();
                    let cells = cells.map(|column| match column.is_null(row) {
                        true => "NULL".to_owned(),
                        false => array_value_to_string(column, row).unwrap(),
                    });
                    all.push(cells.collect::<Vec<_>>().join("|"));
                }
            }
            Ok(all)
        }
        Outcome::Count { rows, .. } => Ok(vec![format!("{rows} rows")]),
        Outcome::Done { .. } => Ok(Vec::new()),
    }
}

impl Twins<'_> {
    fn fail(&self, sql: &str, problem: &str) -> ! {
        let log = self.log.join(";\n");
        panic!("{problem}\n{sql}\nafter\n{log}")
    }

    async fn run(&mut self, sql: String) -> Vec<String> {
        self.log.push(sql.chars().take(300).collect());
        match run(self.session, &sql).await {
            Ok(rows) => rows,
            Err(error) => self.fail(&sql, &error.to_string()),
        }
    }

    /// Runs a statement on both; `@` stands for the table. Both answer the same.
    async fn both(&mut self, sql: &str) {
        let with = self.run(sql.replace('@', "t")).await;
        let without = self.run(sql.replace('@', "u")).await;
        if with != without {
            self.fail(sql, &format!("{with:?} with indexes, {without:?} without"));
        }
    }

    /// The same of a query without an order.
    async fn query(&mut self, sql: &str) {
        let [mut with, mut without] = [
            self.ask(sql.replace('@', "t")).await,
            self.ask(sql.replace('@', "u")).await,
        ];
        with.sort();
        without.sort();
        self.compare(sql, &with, &without);
    }

    /// The same of one with an order.
    async fn ordered(&mut self, sql: &str) {
        let with = self.ask(sql.replace('@', "t")).await;
        let without = self.ask(sql.replace('@', "u")).await;
        self.compare(sql, &with, &without);
    }

    async fn ask(&self, sql: String) -> Vec<String> {
        match run(self.session, &sql).await {
            Ok(rows) => rows,
            Err(error) => self.fail(&sql, &error.to_string()),
        }
    }

    fn compare(&self, sql: &str, with: &[String], without: &[String]) {
        if with != without {
            let missing: Vec<_> = without.iter().filter(|row| !with.contains(row)).collect();
            let extra: Vec<_> = with.iter().filter(|row| !without.contains(row)).collect();
            let message = format!(
                "{} rows with indexes, {} without; missing {missing:?}, too many {extra:?}",
                with.len(),
                without.len()
            );
            self.fail(sql, &message);
        }
    }

    /// One with an index more often than others.
    fn column(&mut self) -> (String, Type) {
        if self.random.one_in(2) && !self.indexes.is_empty() {
            let first = &self.random.pick(&self.indexes).columns[0];
            let mut columns = self.columns.iter();
            if let Some(column) = columns.find(|column| column.name == *first) {
                return (column.name.clone(), column.of);
            }
        }
        let at = self.random.below(self.columns.len() as u64) as usize;
        let column = &self.columns[at];
        (column.name.clone(), column.of)
    }

    /// Rows of new ids, or of the ids given.
    fn rows(&mut self, ids: &[u64]) -> String {
        let rows = ids.iter().map(|id| {
            let mut cells = vec![id.to_string()];
            for at in 0..self.columns.len() {
                let (of, nullable) = (self.columns[at].of, self.columns[at].nullable);
                cells.push(match nullable && self.random.one_in(9) {
                    true => "NULL".to_owned(),
                    false => of.value(&mut self.random),
                });
            }
            format!("({})", cells.join(", "))
        });
        rows.collect::<Vec<_>>().join(", ")
    }

    fn new_ids(&mut self, count: u64) -> Vec<u64> {
        self.next += count;
        (self.next - count..self.next).collect()
    }

    /// A condition on one column of the kind that an index may understand.
    fn simple(&mut self) -> String {
        let (name, of) = self.column();
        let mut value = || of.value(&mut self.random);
        let (one, other) = (value(), value());
        match self.random.below(17) {
            0..3 => format!("{name} = {one}"),
            3 => {
                let many = match self.random.below(4) {
                    0 => 300,
                    _ => 1 + self.random.below(12),
                };
                let mut list: Vec<_> = (0..many).map(|_| of.value(&mut self.random)).collect();
                if self.random.one_in(6) {
                    list.push("NULL".to_owned());
                }
                format!("{name} IN ({})", list.join(", "))
            }
            4 => format!("{name} BETWEEN {one} AND {other}"),
            5 => format!("{name} > {one}"),
            6 => format!("{name} <= {one}"),
            7 => format!("{name} >= {one} AND {name} < {other}"),
            8 => format!("{name} IS NULL"),
            9 => format!("{name} IS NOT NULL"),
            10 if of == Type::Text => {
                let start = text(&mut self.random);
                let start: String = start.chars().take(20).collect();
                let end = self.random.pick(&["%", "%", "%", "", "_", "%b"]);
                format!("{name} LIKE '{}{end}'", start.trim_matches('\''))
            }
            11 => format!("{one} < {name}"),
            12 => format!("{name} <> {one}"),
            _ => {
                let id = self.random.below(self.next);
                let many = self.random.below(30);
                match self.random.below(3) {
                    0 => format!("id = {id}"),
                    1 => format!("id BETWEEN {id} AND {}", id + many),
                    _ => format!("id IN ({id}, {}, {})", id + many, id * 7 % self.next),
                }
            }
        }
    }

    fn condition(&mut self) -> String {
        let one = self.simple();
        match self.random.below(8) {
            0..3 => one,
            3..5 => format!("{one} AND {}", self.simple()),
            5 => format!("({one}) AND ({}) AND {}", self.simple(), self.simple()),
            6 => format!("({one}) OR ({})", self.simple()),
            _ => {
                // The same column twice.
                let (name, of) = self.column();
                let (a, b) = (of.value(&mut self.random), of.value(&mut self.random));
                format!("({name} = {a} OR {name} = {b}) AND ({one})")
            }
        }
    }

    async fn look(&mut self) {
        let condition = self.condition();
        let (name, of) = self.column();
        let compared = of.compared(&name);
        match self.random.below(8) {
            0..3 => {
                self.query(&format!("SELECT * FROM @ WHERE {condition}"))
                    .await
            }
            3 => {
                let sql =
                    format!("SELECT count(*), min(id), max({compared}) FROM @ WHERE {condition}");
                self.query(&sql).await;
            }
            4 => {
                // Also where there is no condition, and where it is on the column itself.
                let on = match self.random.below(3) {
                    0 => String::new(),
                    1 => format!("WHERE {name} > {}", of.value(&mut self.random)),
                    _ => format!("WHERE {condition}"),
                };
                let both = self.random.pick(&["min(#), max(#)", "min(#)", "max(#)"]);
                let both = both.replace('#', &compared);
                self.query(&format!("SELECT {both} FROM @ {on}")).await;
            }
            5 => {
                let order = self.order(&compared);
                let on = match self.random.below(3) {
                    0 => format!("WHERE {condition}"),
                    _ => String::new(),
                };
                let (rows, from) = (1 + self.random.below(30), self.random.below(20));
                let offset = match self.random.one_in(3) {
                    true => format!("OFFSET {from}"),
                    false => String::new(),
                };
                // Of rows that are equal by the order any may come: only the order's columns are looked at.
                let sql =
                    format!("SELECT {compared} FROM @ {on} ORDER BY {order} LIMIT {rows} {offset}");
                self.ordered(&sql).await;
                let sql =
                    format!("SELECT * FROM @ {on} ORDER BY {order}, id LIMIT {rows} {offset}");
                self.ordered(&sql).await;
            }
            6 => {
                let (other, other_of) = self.column();
                let other = other_of.compared(&other);
                let (one, two) = (self.order(&compared), self.order(&other));
                let (equal, of) = self.column();
                let equal = format!("{equal} = {}", of.value(&mut self.random));
                let on = self.random.pick(&["TRUE", &equal]).to_string();
                let sql = format!(
                    "SELECT {compared}, {other} FROM @ WHERE {on} ORDER BY {one}, {two} LIMIT 7"
                );
                self.ordered(&sql).await;
            }
            _ => self.join(&name).await,
        }
    }

    fn order(&mut self, name: &str) -> String {
        let descending = self.random.pick(&["", "DESC"]);
        let nulls = self.random.pick(&["", "NULLS FIRST", "NULLS LAST"]);
        format!("{name} {descending} {nulls}")
    }

    async fn join(&mut self, name: &str) {
        let (part, many) = (self.random.below(40), 10 + self.random.below(60));
        let few = format!(
            "CREATE OR REPLACE TABLE few AS \
             SELECT {name} AS v, min(id) AS note FROM u WHERE id % {many} = {part} GROUP BY {name}"
        );
        self.run(few).await;
        if self.random.one_in(2) {
            self.first_joined(name).await;
            return;
        }
        let sql = match self.random.below(3) {
            0 => format!("SELECT x.id, few.v FROM @ AS x JOIN few ON x.{name} = few.v"),
            1 => format!("SELECT * FROM @ WHERE {name} IN (SELECT v FROM few)"),
            _ => {
                let condition = self.condition();
                format!(
                    "SELECT x.*, few.v FROM few LEFT JOIN \
                     (SELECT * FROM @ WHERE {condition}) AS x ON x.{name} = few.v"
                )
            }
        };
        self.query(&sql).await;
    }

    /// The first rows by some order of those that have a match, of which a column is needed.
    async fn first_joined(&mut self, name: &str) {
        let on = match self.random.below(3) {
            0 => format!("WHERE {}", self.condition()),
            _ => String::new(),
        };
        let (descending, rows) = (self.random.pick(&["", "DESC"]), 1 + self.random.below(30));
        let joined = format!("(SELECT * FROM @ {on}) AS x JOIN few ON x.{name} = few.v");
        let sql =
            format!("SELECT x.id, few.note FROM {joined} ORDER BY x.id {descending} LIMIT {rows}");
        self.ordered(&sql).await;
        let (other, of) = self.column();
        let compared = of.compared(&format!("x.{other}"));
        let sql = format!(
            "SELECT min({compared}), max({compared}), max(few.note), max(x.id) FROM {joined}"
        );
        self.ordered(&sql).await;
        // Of rows that are equal by the order any may come.
        let order = self.order(&compared);
        let sql =
            format!("SELECT {compared}, few.note * 0 FROM {joined} ORDER BY {order} LIMIT {rows}");
        self.ordered(&sql).await;
    }

    async fn write(&mut self) {
        match self.random.below(20) {
            0..5 => {
                let count = 1 + self.random.below(40);
                let ids = self.new_ids(count);
                let rows = self.rows(&ids);
                self.both(&format!("INSERT INTO @ VALUES {rows}")).await;
            }
            5..9 => {
                let condition = self.condition();
                let (name, of) = self.column();
                let value = of.value(&mut self.random);
                self.both(&format!(
                    "UPDATE @ SET {name} = {value} WHERE {condition} AND id % 3 <> 0"
                ))
                .await;
            }
            9..12 => {
                let condition = self.condition();
                let part = self.random.below(3);
                self.both(&format!(
                    "DELETE FROM @ WHERE ({condition}) AND id % 3 = {part}"
                ))
                .await;
            }
            12..16 if self.key == Key::Id => self.upsert().await,
            16 if self.random.one_in(4) => {
                self.both("TRUNCATE @").await;
                self.fill().await;
            }
            17 => self.alter().await,
            // Many rows at once.
            18 => {
                let ids = self.new_ids(200);
                let rows = self.rows(&ids);
                self.both(&format!("INSERT INTO @ VALUES {rows}")).await;
            }
            _ => {
                let id = self.random.below(self.next);
                self.both(&format!("DELETE FROM @ WHERE id = {id}")).await;
            }
        }
    }

    /// Rows of which some are there already: rejected, left, or replaced.
    async fn upsert(&mut self) {
        let mut ids: Vec<u64> = (0..1 + self.random.below(12))
            .map(|_| self.random.below(self.next + 3))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        self.next = self.next.max(ids.last().map_or(0, |last| last + 1));
        let rows = self.rows(&ids);
        let list = ids
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let there = self
            .ask(format!("SELECT id FROM u WHERE id IN ({list})"))
            .await;
        match self.random.below(3) {
            0 => {
                let sql = format!("INSERT INTO t VALUES {rows}");
                self.log.push(sql.chars().take(300).collect());
                let inserted = run(self.session, &sql).await;
                if inserted.is_ok() != there.is_empty() {
                    self.fail(&sql, &format!("{there:?} are there, {inserted:?}"));
                }
                if inserted.is_ok() {
                    self.run(format!("INSERT INTO u VALUES {rows}")).await;
                }
            }
            1 => {
                self.run(format!(
                    "INSERT INTO t VALUES {rows} ON CONFLICT DO NOTHING"
                ))
                .await;
                let columns = self.names();
                self.run(format!(
                    "INSERT INTO u SELECT * FROM (VALUES {rows}) AS v ({columns}) \
                     WHERE id NOT IN (SELECT id FROM u)"
                ))
                .await;
            }
            _ => {
                let set = self.columns.iter().map(|column| &column.name);
                let set = set.map(|name| format!("{name} = excluded.{name}"));
                let set = set.collect::<Vec<_>>().join(", ");
                self.run(format!(
                    "INSERT INTO t VALUES {rows} ON CONFLICT (id) DO UPDATE SET {set}"
                ))
                .await;
                self.run(format!("DELETE FROM u WHERE id IN ({list})"))
                    .await;
                self.run(format!("INSERT INTO u VALUES {rows}")).await;
            }
        }
    }

    fn names(&self) -> String {
        let names = self.columns.iter().map(|column| column.name.as_str());
        ["id"]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>()
            .join(", ")
    }

    async fn alter(&mut self) {
        self.named += 1;
        let name = format!("c{}", self.named);
        match self.random.below(4) {
            0 if self.columns.len() < 9 => {
                let of = *self.random.pick(&TYPES);
                let value = of.value(&mut self.random);
                self.both(&format!(
                    "ALTER TABLE @ ADD COLUMN {name} {} DEFAULT {value}",
                    of.sql()
                ))
                .await;
                self.columns.push(Column {
                    name,
                    of,
                    nullable: true,
                });
            }
            1 if self.columns.len() > 3 => {
                // The first that is not NULL may be of the key.
                let nullable = self.columns.iter().map(|column| column.nullable);
                let nullable: Vec<usize> = (0..)
                    .zip(nullable)
                    .filter(|one| one.1)
                    .map(|one| one.0)
                    .collect();
                let Some(&at) = nullable.first() else {
                    return;
                };
                let old = self.columns[at].name.clone();
                let indexes = self
                    .indexes
                    .extract_if(.., |index| index.columns.contains(&old));
                for index in indexes.collect::<Vec<_>>() {
                    self.run(format!("DROP INDEX {}", index.name)).await;
                }
                self.both(&format!("ALTER TABLE @ DROP COLUMN {old}")).await;
                self.columns.remove(at);
            }
            2 => {
                let at = self.random.below(self.columns.len() as u64) as usize;
                let old = self.columns[at].name.clone();
                self.both(&format!("ALTER TABLE @ RENAME COLUMN {old} TO {name}"))
                    .await;
                let columns = self.indexes.iter_mut().flat_map(|index| &mut index.columns);
                columns
                    .filter(|column| **column == old)
                    .for_each(|column| column.clone_from(&name));
                self.columns[at].name = name;
            }
            _ => {
                let small = |column: &Column| matches!(column.of, Type::Small | Type::Int);
                if let Some(at) = self.columns.iter().position(small) {
                    let old = self.columns[at].name.clone();
                    self.both(&format!("ALTER TABLE @ ALTER COLUMN {old} TYPE BIGINT"))
                        .await;
                    self.columns[at].of = Type::Big;
                }
            }
        }
    }

    async fn index(&mut self) {
        if self.indexes.len() >= 4 {
            let at = self.random.below(self.indexes.len() as u64) as usize;
            let index = self.indexes.remove(at);
            self.count_lookups().await;
            self.run(format!("DROP INDEX {}", index.name)).await;
            return;
        }
        self.named += 1;
        let name = format!("i{}", self.named);
        let mut columns = Vec::new();
        for _ in 0..*self.random.pick(&[1, 1, 1, 2, 2, 3]) {
            let (column, _) = self.column();
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        if self.random.one_in(6) {
            columns.push("id".to_owned());
        }
        let using =
            self.random
                .pick(&["", "USING art", "USING hash", "USING blink", "USING blink"]);
        self.run(format!(
            "CREATE INDEX {name} ON t {using} ({})",
            columns.join(", ")
        ))
        .await;
        self.indexes.push(Index { name, columns });
    }

    async fn count_lookups(&mut self) {
        let sum =
            "SELECT coalesce(sum(lookups), 0)::BIGINT FROM eris.indexes WHERE \"table\" = 't'";
        let rows = self.ask(sum.to_owned()).await;
        self.lookups = self.lookups.max(rows[0].parse().unwrap());
    }

    async fn fill(&mut self) {
        for _ in 0..3 {
            let ids = self.new_ids(FIRST_ROWS / 3);
            let rows = self.rows(&ids);
            self.run(format!("INSERT INTO u VALUES {rows}")).await;
        }
        self.run("INSERT INTO t SELECT * FROM u".to_owned()).await;
    }

    async fn live(&mut self) {
        let count = 4 + self.random.below(3);
        for number in 0..count {
            self.columns.push(Column {
                name: format!("a{number}"),
                of: *self.random.pick(&TYPES),
                nullable: !self.random.one_in(3),
            });
        }
        let columns = self.columns.iter().map(|column| {
            let null = if column.nullable { "" } else { "NOT NULL" };
            format!(", {} {} {null}", column.name, column.of.sql())
        });
        let columns: String = columns.collect();
        let first = self.columns.iter().find(|column| !column.nullable);
        let key = match (self.key, first) {
            (Key::None, _) => String::new(),
            (Key::Composite, Some(first)) => format!(", PRIMARY KEY ({}, id)", first.name),
            _ => ", PRIMARY KEY (id)".to_owned(),
        };
        self.run(format!("CREATE TABLE t (id BIGINT NOT NULL{columns}{key})"))
            .await;
        self.run(format!("CREATE TABLE u (id BIGINT NOT NULL{columns})"))
            .await;
        self.fill().await;
        for _ in 0..STEPS {
            match self.random.below(16) {
                0 | 1 => self.index().await,
                2..6 => self.write().await,
                _ => self.look().await,
            }
        }
        self.query("SELECT * FROM @").await;
        self.count_lookups().await;
    }
}

#[test]
fn indexes_change_no_answer() {
    let seed = seed();
    println!("ERIS_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let mut lookups = 0;
    for (number, (nodes, cores)) in TOPOLOGIES.into_iter().enumerate() {
        let settings = Settings {
            topology: Topology::fake(nodes, cores),
            huge_pages: HugePages::Never,
            memory_limit: Some(1 << 30),
            database: None,
        };
        let database = Database::open(Engine::home(settings).unwrap()).unwrap();
        for table in 0..TABLES {
            let session = database.session();
            let mut twins = Twins {
                session: &session,
                random: Random(seed * 100 + number as u64 * 10 + table),
                columns: Vec::new(),
                indexes: Vec::new(),
                key: [Key::Id, Key::None, Key::Composite][table as usize % 3],
                next: 1,
                named: 0,
                log: vec![format!("ERIS_SEED={seed}, {nodes}x{cores}, table {table}")],
                lookups: 0,
            };
            runtime.block_on(async {
                twins.live().await;
                twins.run("DROP TABLE t, u".to_owned()).await;
            });
            lookups += twins.lookups;
        }
    }
    assert!(
        lookups > 40,
        "indexes led {lookups} times: nothing was tested"
    );
}
