//! A process that is killed while eight sessions write: what was acknowledged is there when it is opened again, no
//! statement half, and all that follows from rows is right.
//!
//! ```text
//! this process                          its child
//! open, look, close                ┌──▶ eight sessions, each with rows and tables of its own
//! start the child ─────────────────┘      each statement that is acknowledged: a line
//! SIGKILL at some moment ◀──── lines ─────┘
//! open, look: each session's state is that after its last line, or after one statement more
//! open a backup that was acknowledged: the state of who made it is that behind the statement before
//! ```
//!
//! Which statements a session runs follows from a seed, so both processes know them. `ERIS_CYCLES` says how often the
//! child is killed.

use crate::common::{Random, block_on_threads, count, must, open, run, values};
use eris_sql::Session;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const SESSIONS: usize = 8;
/// So many tables of its own a session has at most, and so many events: a cycle takes as long as the one before.
const MOST_TABLES: usize = 6;
const MOST_EVENTS: i64 = 200_000;
/// Where the child finds its database, and the seed of its statements.
const DIRECTORY: &str = "ERIS_KILLED_DIRECTORY";
const SEED: &str = "ERIS_KILLED_SEED";

/// What is a session's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// Its accounts: their number, what they have, and a note that no two have.
    accounts: BTreeMap<i64, (i64, String)>,
    /// How many events it has had, and the sum of their numbers.
    events: (i64, i64),
    /// Its own tables: how many columns and rows they have.
    tables: BTreeMap<String, (i64, i64)>,
}

/// A statement, and what it makes of the state.
struct Step {
    sql: String,
    after: State,
}

/// Where a session's backup goes: beside the database.
fn backup(directory: &Path, session: usize, number: usize) -> PathBuf {
    directory.with_file_name(format!("backup {session} {number}"))
}

/// The next statement of a session whose database is in the directory. `number` is that of the statement, and no two
/// have the same note.
fn step(
    directory: &Path,
    session: usize,
    number: usize,
    random: &mut Random,
    before: &State,
) -> Step {
    let mut after = before.clone();
    let any_table = |random: &mut Random| {
        let names: Vec<&String> = before.tables.keys().collect();
        (!names.is_empty()).then(|| names[random.below(names.len())].clone())
    };
    let tag = random.below(u64::MAX);
    let sql = match random.below(15) {
        0..3 => {
            let account = random.below(40i64) * SESSIONS as i64 + session as i64;
            let note = format!("{session} {number} {tag}");
            after
                .accounts
                .insert(account, (number as i64, note.clone()));
            format!(
                "INSERT INTO account VALUES ({account}, {session}, {number}, '{note}') \
                 ON CONFLICT (id) DO UPDATE SET n = excluded.n, note = excluded.note"
            )
        }
        3 => {
            after
                .accounts
                .values_mut()
                .for_each(|account| account.0 += 1);
            format!("UPDATE account SET n = n + 1 WHERE owner = {session}")
        }
        4 => {
            after.accounts.retain(|_, (n, _)| *n % 3 != 0);
            format!("DELETE FROM account WHERE owner = {session} AND n % 3 = 0")
        }
        5..7 => {
            after.events.0 += 1;
            after.events.1 += number as i64;
            format!(
                "INSERT INTO event VALUES ({session}, {number}, 'kind {}')",
                number % 5
            )
        }
        7 if before.events.0 > MOST_EVENTS => {
            after.events = (0, 0);
            format!("DELETE FROM event WHERE session = {session}")
        }
        7 => {
            let rows = [10, 3_000, 40_000][random.below(3usize)];
            after.events.0 += rows;
            after.events.1 += rows * (rows - 1) / 2;
            format!(
                "INSERT INTO event SELECT {session}, i, 'kind ' || i % 9 FROM range({rows}) AS q(i)"
            )
        }
        8 if before.tables.len() < MOST_TABLES => {
            let (name, rows) = (
                format!("own_{session}_{number}_{tag}"),
                random.below(2_000i64),
            );
            after.tables.insert(name.clone(), (2, rows));
            format!(
                "CREATE TABLE {name} AS SELECT i AS a, 'x' || i % 3 AS b FROM range({rows}) AS q(i)"
            )
        }
        8 | 10 => match any_table(random) {
            Some(name) if random.below(2usize) == 0 => {
                after.tables.remove(&name);
                format!("DROP TABLE {name}")
            }
            Some(name) => {
                after.tables.get_mut(&name).unwrap().1 = 0;
                format!("TRUNCATE {name}")
            }
            None => "SELECT 1".to_owned(),
        },
        9 => match any_table(random) {
            Some(name) => {
                after.tables.get_mut(&name).unwrap().0 += 1;
                format!("ALTER TABLE {name} ADD COLUMN c{number}_{tag} INTEGER DEFAULT {number}")
            }
            None => "SELECT 1".to_owned(),
        },
        11 => "CHECKPOINT".to_owned(),
        12 => format!(
            "CALL eris.balance('{}')",
            ["account", "event"][random.below(2usize)]
        ),
        13 => format!(
            "BACKUP DATABASE TO '{}'",
            backup(directory, session, number).display()
        ),
        _ => match any_table(random) {
            Some(name) => {
                let using = ["", "USING blink "][random.below(2usize)];
                format!("CREATE INDEX i{number}_{tag} ON {name} {using}(a)")
            }
            None => "SELECT 1".to_owned(),
        },
    };
    Step { sql, after }
}

async fn number(session: &Session, sql: &str) -> i64 {
    let found = values(session, sql).await.unwrap();
    found[0][0].parse().unwrap_or(0)
}

/// What a session has.
async fn look(session: &Session, of: usize) -> State {
    let mut state = State::default();
    let accounts = format!("SELECT id, n, note FROM account WHERE owner = {of}");
    for row in values(session, &accounts).await.unwrap() {
        let account = (row[1].parse().unwrap(), row[2].clone());
        state.accounts.insert(row[0].parse().unwrap(), account);
    }
    state.events.0 = number(
        session,
        &format!("SELECT count(*) FROM event WHERE session = {of}"),
    )
    .await;
    state.events.1 = number(
        session,
        &format!("SELECT sum(number) FROM event WHERE session = {of}"),
    )
    .await;
    let tables = format!(
        "SELECT table_name, count(*) FROM information_schema.columns WHERE starts_with(table_name, 'own_{of}_') \
         GROUP BY table_name"
    );
    for row in values(session, &tables).await.unwrap() {
        let rows = number(session, &format!("SELECT count(*) FROM {}", row[0])).await;
        state
            .tables
            .insert(row[0].clone(), (row[1].parse().unwrap(), rows));
    }
    state
}

/// What follows from rows: keys, indexes, foreign keys.
async fn check_whole(session: &Session, states: &[State]) {
    for (id, (n, note)) in states.iter().flat_map(|state| &state.accounts) {
        let by_key = values(
            session,
            &format!("SELECT n, note FROM account WHERE id = {id}"),
        )
        .await;
        assert_eq!(by_key.unwrap(), [[n.to_string(), note.clone()]]);
        let by_note = values(
            session,
            &format!("SELECT id FROM account WHERE note = '{note}'"),
        )
        .await;
        assert_eq!(by_note.unwrap(), [[id.to_string()]]);
        let again = format!("INSERT INTO account VALUES (1000000, 0, 0, '{note}')");
        assert!(
            run(session, &again).await.is_err(),
            "the note {note} is there twice"
        );
    }
    // By an index, and in a way that no index understands.
    for (indexed, scanned) in [
        (
            "event WHERE kind = 'kind 4'",
            "event WHERE kind || '' = 'kind 4'",
        ),
        (
            "event WHERE session = 3 AND number BETWEEN 5 AND 9",
            "event WHERE session + 0 = 3 AND number + 0 BETWEEN 5 AND 9",
        ),
        (
            "account WHERE n BETWEEN 4 AND 7",
            "account WHERE n + 0 BETWEEN 4 AND 7",
        ),
    ] {
        let [by_index, by_scan] =
            [indexed, scanned].map(|rows| format!("SELECT count(*) FROM {rows}"));
        let found = number(session, &by_index).await;
        assert_eq!(found, number(session, &by_scan).await, "{indexed}");
    }
    assert!(
        run(session, "INSERT INTO event VALUES (99, 0, NULL)")
            .await
            .is_err(),
        "no session 99"
    );
}

/// What the child does until it is killed.
#[test]
#[ignore = "the process that is killed"]
fn child() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("started by the test below"));
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let database = open(&directory, [(1, 1), (1, 2), (4, 2)][seed as usize % 3]);
    block_on_threads(async {
        let mut sessions = tokio::task::JoinSet::new();
        for number in 0..SESSIONS {
            let (session, directory) = (database.session(), directory.clone());
            sessions.spawn(async move {
                let mut state = look(&session, number).await;
                let mut random = Random::seeded(seed * 1_000 + number as u64);
                for done in 1.. {
                    let step = step(&directory, number, done, &mut random, &state);
                    must(&session, &step.sql).await;
                    state = step.after;
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "\nacknowledged {number} {done}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
        // One that fails ends all: then it was not killed.
        while let Some(session) = sessions.join_next().await {
            session.unwrap();
        }
    });
}

/// Runs the child, and kills it; how many statements of each session were acknowledged.
fn kill_child(directory: &Path, seed: u64, after: Duration) -> Vec<usize> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["killed::child", "--exact", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = vec![0; SESSIONS];
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut killer = None;
    for line in lines.map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let ["acknowledged", session, done] = words[..] else {
            continue;
        };
        acknowledged[session.parse::<usize>().unwrap()] = done.parse().unwrap();
        // From the first line on.
        if killer.is_none() {
            let pid = child.id().to_string();
            killer = Some(std::thread::spawn(move || {
                std::thread::sleep(after);
                let killed = Command::new("kill").args(["-KILL", &pid]).status();
                assert!(killed.unwrap().success());
            }));
        }
    }
    killer
        .expect("the child has said something")
        .join()
        .unwrap();
    assert_eq!(
        child.wait().unwrap().signal(),
        Some(9),
        "it was killed, and nothing else"
    );
    acknowledged
}

/// A backup has of each session one of these states: what the one that made it had, and what others had at that moment.
fn look_into_backup(backup: &Path, states: &[Vec<State>]) {
    let database = open(backup, (1, 2));
    block_on_threads(async {
        let session = database.session();
        let mut all = Vec::new();
        for number in 0..SESSIONS {
            all.push(look(&session, number).await);
        }
        for (now, states) in all.iter().zip(states) {
            assert!(states.contains(now), "{}: {now:?}", backup.display());
        }
        check_whole(&session, &all).await;
    });
    database.close().unwrap();
}

/// Also those that were being made.
fn remove_backups(beside: &Path) {
    for entry in std::fs::read_dir(beside).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("backup") {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let cycles = std::env::var("ERIS_CYCLES").map_or(20, |cycles| cycles.parse().unwrap());
    let seed = crate::common::seed();
    let mut random = Random::seeded(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let mut states = vec![State::default(); SESSIONS];
    let (mut statements, mut made) = (0, 0);
    for cycle in 0..=cycles {
        let database = open(&path, [(1, 2), (1, 1), (2, 2)][random.below(3usize)]);
        let (found, expected) = block_on_threads(async {
            let session = database.session();
            if cycle == 0 {
                let made = "CREATE TABLE owner (id INTEGER PRIMARY KEY); \
                     INSERT INTO owner SELECT i FROM range(8) AS q(i); \
                     CREATE TABLE account (id BIGINT PRIMARY KEY, owner INTEGER REFERENCES owner, n BIGINT, \
                         note VARCHAR UNIQUE); \
                     CREATE TABLE event (session INTEGER NOT NULL REFERENCES owner, number BIGINT, kind VARCHAR); \
                     CREATE INDEX event_kind ON event (kind); \
                     CREATE INDEX event_session ON event USING blink (session, number); \
                     CREATE INDEX account_n ON account USING blink (n)";
                for statement in made.split(';') {
                    must(&session, statement).await;
                }
            }
            let mut found = Vec::new();
            for number in 0..SESSIONS {
                found.push(look(&session, number).await);
            }
            check_whole(&session, &found).await;
            assert_eq!(count(&session, "SELECT * FROM owner").await.unwrap(), 8);
            (found, states.clone())
        });
        database.close().unwrap();
        drop(database);
        if cycle == 0 {
            assert_eq!(found, expected);
        }
        if cycle == cycles {
            break;
        }
        let of_child = seed % 1_000_000 + cycle;
        let after = Duration::from_millis(random.below(400u64));
        let acknowledged = kill_child(&path, of_child, after);
        let database = open(&path, (1, 2));
        // Who made it, its number, and that session's state.
        let mut backups: Vec<(usize, usize, State)> = Vec::new();
        // All states that each session has had.
        let mut histories: Vec<Vec<State>> = Vec::new();
        states = block_on_threads(async {
            let session = database.session();
            let mut states = Vec::new();
            for (number, acknowledged) in acknowledged.iter().enumerate() {
                let mut random = Random::seeded(of_child * 1_000 + number as u64);
                let mut state = found[number].clone();
                let mut history = vec![state.clone()];
                for done in 1..=*acknowledged {
                    let step = step(&path, number, done, &mut random, &state);
                    if step.sql.starts_with("BACKUP") {
                        backups.push((number, done, state));
                    }
                    state = step.after;
                    history.push(state.clone());
                }
                let next = step(&path, number, acknowledged + 1, &mut random, &state);
                let now = look(&session, number).await;
                assert!(
                    now == state || now == next.after,
                    "cycle {cycle}, session {number}, {acknowledged} acknowledged, then {}\nfound {now:?}\nexpected {state:?}",
                    next.sql
                );
                history.push(next.after);
                histories.push(history);
                statements += acknowledged;
                states.push(now);
            }
            states
        });
        drop(database);
        made += backups.len();
        if !backups.is_empty() {
            let (number, done, state) = &backups[random.below(backups.len())];
            histories[*number] = vec![state.clone()];
            look_into_backup(&backup(&path, *number, *done), &histories);
        }
        remove_backups(directory.path());
    }
    println!("{statements} statements and {made} backups were acknowledged in {cycles} cycles");
    assert!(statements > 0 && (made > 0 || cycles < 20));
}
