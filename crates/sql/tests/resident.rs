//! The memory of the process as the system sees it, with the allocator of all doors. One test, so that it has its
//! process for itself.

use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session};
use futures::StreamExt;

const MB: u64 = 1_000_000;

/// Bytes that are resident.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Waits until at most so many bytes are resident; threads give theirs back a little after the statement.
async fn settles_below(bytes: u64, after: &str) {
    for _ in 0..10_000 {
        if resident() <= bytes {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("{} MB are resident after {after}", resident() / MB);
}

async fn run(session: &Session, sql: &str) -> Result<(), eris_sql::SqlError> {
    if let Outcome::Rows(mut rows) = session.execute(sql).await? {
        while let Some(batch) = rows.next().await {
            batch?;
        }
    }
    Ok(())
}

#[test]
fn memory_is_given_back_after_drop_failure_and_cancelling() {
    let settings = Settings {
        topology: Topology::fake(1, 2),
        huge_pages: HugePages::Never,
        memory_limit: Some(400 * MB),
        database: None,
    };
    eris_allocator::give_back_soon(settings.memory_limit).unwrap();
    let database = Database::open(Engine::home(settings).unwrap()).unwrap();
    let session = database.session();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        // Warm: threads and their caches exist, code is loaded.
        let small = "CREATE TABLE s AS SELECT i, i % 7 AS g FROM generate_series(1, 100000) AS q(i)";
        run(&session, small).await.unwrap();
        run(&session, "SELECT g, sum(i) FROM s GROUP BY g ORDER BY g").await.unwrap();
        let warm = resident() + 40 * MB;

        let large = "CREATE TABLE t AS SELECT i * i * 31 % 1000000007 AS a, i * i * 17 % 999999937 AS b, \
                     i * i * 7 % 998244353 AS c FROM generate_series(1, 12000000) AS q(i)";
        run(&session, large).await.unwrap();
        let full = resident();
        assert!(full > warm + 60 * MB, "{} MB", full / MB);
        run(&session, "DROP TABLE t").await.unwrap();
        settles_below(warm, "DROP").await;

        let larger = large.replace("12000000", "800000000");
        run(&session, &larger).await.unwrap_err();
        settles_below(warm, "a table that does not fit").await;

        // Cancelled when much is there: the writer has written rows, then it is dropped.
        let budget = database.home().budget();
        {
            let writing = run(&session, &larger);
            tokio::pin!(writing);
            while budget.used() < 150 * MB {
                let tick = tokio::time::sleep(std::time::Duration::from_millis(1));
                tokio::select! {
                    ended = &mut writing => panic!("{ended:?}"),
                    () = tick => {}
                }
            }
        }
        settles_below(warm, "cancelling").await;
    });
}
