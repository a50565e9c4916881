//! What the engine is and does: `eris.aeus`, `eris.tasks`, `eris.nodes`, `eris.budget`, `eris.queries`,
//! `eris.settings`, `eris.functions`, `eris.prepared_statements`.

use crate::context::StatementContext;
use crate::settings::SETTINGS;
use crate::system::functions::{list, session_state};
use crate::system::relation::{Cell, CellType, SystemTable, row};
use futures::FutureExt;
use std::future::ready;

use CellType::{Number, Real, Text, Time};

pub(super) static RELATIONS: [SystemTable; 8] = [
    SystemTable {
        name: "aeus",
        columns: &[
            ("aeu", Number),
            ("node", Number),
            ("cpu", Number),
            ("busy_seconds", Real),
            ("commands_received", Number),
            ("commands_sent", Number),
            ("command_groups", Number),
            ("tasks", Number),
            ("slices", Number),
            ("steps_busy", Number),
            ("steps_idle", Number),
            ("parks", Number),
            ("wakes", Number),
            ("rows_scanned", Number),
            ("bytes_scanned", Number),
            ("chunks_scanned", Number),
            ("chunks_skipped", Number),
            ("chunks_helped", Number),
            ("panics", Number),
            // What it can read from its node's memory while the others do the same; NULL before EXPLAIN ANALYZE has
            // measured it.
            ("read_bytes_per_second", Number),
        ],
        rows: |context| ready(Ok(aeus(context))).boxed(),
    },
    SystemTable {
        name: "tasks",
        columns: &[
            ("aeu", Number),
            ("node", Number),
            // What it is: a command, which is executed in one go, or a task, which runs in slices.
            ("work", Text),
            ("form", Text),
            // Commands that were executed, or slices that were run.
            ("run", Number),
            // Tasks that have been spawned, and those of them that are not at their end.
            ("spawned", Number),
            ("waiting", Number),
            // How often a task has begun to wait for something else.
            ("waits", Number),
            // Estimated from some of them; NULL if the time of none was taken.
            ("busy_seconds", Real),
        ],
        rows: |context| ready(Ok(tasks(context))).boxed(),
    },
    SystemTable {
        name: "nodes",
        columns: &[
            ("node", Number),
            ("os_node", Number),
            ("cores", Number),
            ("aeus", Number),
            ("memory_bytes", Number),
            ("table_bytes", Number),
            // Pages that Eris has for its data here; of these, pages that the system has taken from other nodes, as it
            // does when one is full (NULL if the nodes are made up).
            ("resident_bytes", Number),
            ("elsewhere_bytes", Number),
            // By its AEUs together; NULL before EXPLAIN ANALYZE has measured it.
            ("read_bytes_per_second", Number),
        ],
        rows: |context| ready(Ok(nodes(context))).boxed(),
    },
    SystemTable {
        name: "budget",
        columns: &[
            ("limit_bytes", Number),
            ("used_bytes", Number),
            ("free_bytes", Number),
            ("table_bytes", Number),
            ("other_bytes", Number),
            ("temporary_bytes", Number),
            ("temporary_files", Number),
            ("resident_bytes", Number),
            ("huge_page_bytes", Number),
        ],
        rows: |context| ready(Ok(budget(context))).boxed(),
    },
    SystemTable {
        name: "queries",
        columns: &[
            ("id", Number),
            ("session", Number),
            ("state", Text),
            ("started", Time),
            ("elapsed_ms", Real),
            ("rows", Number),
            ("rows_scanned", Number),
            ("memory_bytes", Number),
            ("peak_memory_bytes", Number),
            ("statement", Text),
            ("error", Text),
        ],
        rows: |context| ready(Ok(queries(context))).boxed(),
    },
    SystemTable {
        name: "settings",
        columns: &[
            ("name", Text),
            ("value", Text),
            ("default", Text),
            ("scope", Text),
            ("type", Text),
            ("description", Text),
        ],
        rows: |context| ready(Ok(settings(context))).boxed(),
    },
    SystemTable {
        name: "functions",
        columns: &[("name", Text), ("kind", Text), ("usage", Text)],
        rows: |context| ready(Ok(functions(context))).boxed(),
    },
    SystemTable {
        name: "prepared_statements",
        columns: &[
            ("name", Text),
            ("parameter_types", Text),
            ("statement", Text),
        ],
        rows: |context| ready(Ok(prepared(context))).boxed(),
    },
];

fn aeus(context: &StatementContext) -> Vec<Vec<Cell>> {
    let bandwidth = context.services.bandwidth();
    let workers = context.home.workers().into_iter();
    let rows = workers.map(|worker| {
        let counted = worker.counters;
        row![
            worker.aeu.0,
            worker.node.0,
            worker.cpu,
            counted.busy_nanoseconds as f64 / 1e9,
            counted.received.iter().sum::<u64>(),
            counted.sent.iter().sum::<u64>(),
            counted.groups,
            counted.tasks,
            counted.slices,
            counted.steps_busy,
            counted.steps_idle,
            counted.parks,
            counted.wakes,
            counted.rows_scanned,
            counted.bytes_scanned,
            counted.chunks_scanned,
            counted.chunks_skipped,
            counted.chunks_helped,
            counted.panics,
            bandwidth.map(|bandwidth| bandwidth.of_aeu(worker.aeu) as u64),
        ]
    });
    rows.collect()
}

fn tasks(context: &StatementContext) -> Vec<Vec<Cell>> {
    let workers = context.home.workers().into_iter();
    let rows = workers.flat_map(|worker| {
        worker.work.into_iter().map(move |work| {
            row![
                worker.aeu.0,
                worker.node.0,
                snake_case(work.name),
                if work.is_task { "task" } else { "command" },
                work.run,
                work.is_task.then_some(work.spawned),
                work.is_task.then_some(work.waiting),
                work.is_task.then_some(work.waits),
                work.time.map(|time| time.as_secs_f64()),
            ]
        })
    });
    rows.collect()
}

/// `ExecuteKeys` as `execute_keys`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(character.to_lowercase());
    }
    text
}

fn nodes(context: &StatementContext) -> Vec<Vec<Cell>> {
    let workers = context.home.workers();
    let usage = context.home.usage();
    let bandwidth = context.services.bandwidth();
    let rows = context.home.nodes().into_iter().map(|node| {
        let aeus = workers.iter().filter(|worker| worker.node == node.node);
        let held = usage.iter().filter(|usage| usage.node == node.node);
        row![
            node.node.0,
            node.os_node,
            node.cores,
            aeus.count(),
            node.memory_bytes,
            held.map(|usage| usage.bytes).sum::<u64>(),
            node.resident,
            node.elsewhere,
            bandwidth.map(|bandwidth| bandwidth.of_node(node.node) as u64),
        ]
    });
    rows.collect()
}

fn budget(context: &StatementContext) -> Vec<Vec<Cell>> {
    let budget = context.home.budget();
    let used = budget.used();
    let tables: u64 = context.home.usage().iter().map(|usage| usage.bytes).sum();
    let (resident, huge) = process_memory();
    vec![row![
        budget.limit(),
        used,
        budget.free(),
        tables,
        used.saturating_sub(tables),
        context.services.spill.used(),
        context.services.spill.files(),
        resident,
        huge,
    ]]
}

/// Bytes of the process that are in memory, and those of them on huge pages, as the operating system says; nothing
/// where it does not say.
fn process_memory() -> (Option<u64>, Option<u64>) {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    };
    (field("Rss:"), field("AnonHugePages:"))
}

fn queries(context: &StatementContext) -> Vec<Vec<Cell>> {
    let rows = context.services.queries.rows().into_iter().map(|query| {
        row![
            query.id,
            query.session,
            query.state,
            query.started,
            query.elapsed.as_micros() as f64 / 1e3,
            query.rows,
            query.rows_scanned,
            query.memory,
            query.most_memory,
            query.text,
            query.error,
        ]
    });
    rows.collect()
}

fn settings(context: &StatementContext) -> Vec<Vec<Cell>> {
    let rows = SETTINGS.iter().map(|setting| {
        row![
            setting.name,
            setting.value(context),
            setting.default(context),
            setting.scope(),
            setting.type_name(),
            setting.description,
        ]
    });
    rows.collect()
}

fn functions(context: &StatementContext) -> Vec<Vec<Cell>> {
    let all = list(&session_state(context)).into_iter();
    all.map(|it| row![it.name, it.kind, it.usage]).collect()
}

fn prepared(context: &StatementContext) -> Vec<Vec<Cell>> {
    let all = context.session.prepared();
    let rows = all.iter().map(|(name, prepared)| {
        let types = prepared.type_names().into_iter();
        let types: Vec<String> = types
            .map(|name| name.unwrap_or_else(|| "any".to_owned()))
            .collect();
        row![name, types.join(", "), prepared.text()]
    });
    rows.collect()
}
