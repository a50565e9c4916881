//! All settings. A new one is an entry here.

use super::value::{Value, ValueKind};
use super::{Access, Setting};
use crate::context::{NULL_ORDERS, NUMA_STRATEGIES, StatementContext};
use crate::error::{Mistake, SqlError};
use crate::maintenance::balance::{Chosen, WAYS};
use eris_home::Synchronous;
use eris_types::most_similar;
use std::time::Duration;

/// Least memory: below this the engine's own structures would not fit.
const LEAST_MEMORY: u64 = 16_000_000;

/// The settings, by name.
pub(crate) static SETTINGS: [Setting; 25] = [
    Setting {
        name: "balancing",
        kind: ValueKind::Choice(&WAYS),
        access: Access::Database {
            get: |context| Value::Text(context.services.balance.chosen().way),
            set: |context, value| {
                context
                    .services
                    .balance
                    .choose(|chosen| chosen.way = value.text())
            },
            default: |_| Value::Text(Chosen::default().way),
            is_kept: true,
        },
        description: "how AEUs' loads are made equal by giving rows other owners: all at once, or towards the average of neighbours; a table in its own way with CALL eris.balance('t', 'off')",
    },
    Setting {
        name: "balancing_neighbours",
        kind: ValueKind::Integer {
            least: 1,
            most: u16::MAX as u64,
            unit: "AEUs",
        },
        access: Access::Database {
            get: |context| number(context.services.balance.chosen().neighbours),
            set: |context, value| {
                context
                    .services
                    .balance
                    .choose(|chosen| chosen.neighbours = value.usize())
            },
            default: |_| number(Chosen::default().neighbours),
            is_kept: true,
        },
        description: "over how many AEUs to either side moving_average averages: the more, the faster; of one table with CALL eris.balance('t', neighbours => 4)",
    },
    Setting {
        name: "balancing_period",
        kind: ValueKind::Duration { none: false },
        access: Access::Database {
            get: |context| {
                Value::Number(context.services.balance.chosen().period.as_millis() as u64)
            },
            set: |context, value| {
                let period = Duration::from_millis(value.number());
                context
                    .services
                    .balance
                    .choose(|chosen| chosen.period = period)
            },
            default: |_| Value::Number(Chosen::default().period.as_millis() as u64),
            is_kept: true,
        },
        description: "how often AEUs' loads are looked at",
    },
    Setting {
        name: "balancing_threshold",
        kind: ValueKind::Integer {
            least: 0,
            most: 10_000,
            unit: "percent",
        },
        access: Access::Database {
            get: |context| Value::Number(context.services.balance.chosen().threshold),
            set: |context, value| {
                context
                    .services
                    .balance
                    .choose(|chosen| chosen.threshold = value.number())
            },
            default: |_| Value::Number(Chosen::default().threshold),
            is_kept: true,
        },
        description: "the standard deviation of AEUs' loads, in percent of their mean, from which on rows move if that pays; of one table with CALL eris.balance('t', threshold => 10)",
    },
    Setting {
        name: "batch_rows",
        kind: ValueKind::Integer {
            least: 64,
            most: 1 << 20,
            unit: "rows",
        },
        access: Access::Session {
            get: |variables| number(variables.batch_rows),
            set: |variables, value| variables.batch_rows = value.usize(),
        },
        description: "rows of a batch above the scans",
    },
    Setting {
        name: "default_null_order",
        kind: ValueKind::Choice(&[
            NULL_ORDERS[0].0,
            NULL_ORDERS[1].0,
            NULL_ORDERS[2].0,
            NULL_ORDERS[3].0,
        ]),
        access: Access::Session {
            get: |variables| Value::Text(variables.null_order.clone()),
            set: |variables, value| variables.null_order = value.text(),
        },
        description: "where NULL stands in ORDER BY without NULLS FIRST or LAST; the default is PostgreSQL's, nulls_last is DuckDB's",
    },
    Setting {
        name: "huge_pages",
        kind: ValueKind::Choice(&["auto", "always", "never"]),
        access: Access::Start {
            get: |context| Value::Text(format!("{:?}", context.home.huge_pages()).to_lowercase()),
            how: "start with --huge-pages auto|always|never, or with ERIS_HUGE_PAGES",
        },
        description: "whether column data lies on pages of 2 MiB",
    },
    Setting {
        name: "join_build_bytes",
        kind: ValueKind::Bytes {
            least: 0,
            unlimited: false,
        },
        access: Access::Session {
            get: |variables| number(variables.join_build_bytes),
            set: |variables, value| variables.join_build_bytes = value.usize(),
        },
        description: "a join's build side up to this size is read as a whole; larger ones are exchanged by hash",
    },
    Setting {
        name: "join_build_rows",
        kind: ValueKind::Integer {
            least: 0,
            most: 1 << 40,
            unit: "rows",
        },
        access: Access::Session {
            get: |variables| number(variables.join_build_rows),
            set: |variables, value| variables.join_build_rows = value.usize(),
        },
        description: "the same limit in rows, where bytes are not known",
    },
    Setting {
        name: "join_filters",
        kind: ValueKind::Boolean,
        access: Access::Session {
            get: |variables| Value::Boolean(variables.join_filters),
            set: |variables, value| variables.join_filters = value.boolean(),
        },
        description: "whether joins send the keys of their build side to the scan of the other",
    },
    Setting {
        name: "join_reordering",
        kind: ValueKind::Boolean,
        access: Access::Session {
            get: |variables| Value::Boolean(variables.join_reordering),
            set: |variables, value| variables.join_reordering = value.boolean(),
        },
        description: "whether the order of joins and their build sides are chosen by what they cost; off: as written",
    },
    Setting {
        name: "key_recoding",
        kind: ValueKind::Boolean,
        access: Access::Session {
            get: |variables| Value::Boolean(variables.key_recoding),
            set: |variables, value| variables.key_recoding = value.boolean(),
        },
        description: "whether joins, and loads of tables with foreign keys, may lead to columns being stored by the order of the other table's rows",
    },
    Setting {
        name: "max_temp_directory_size",
        kind: ValueKind::Bytes {
            least: 0,
            unlimited: true,
        },
        access: Access::Database {
            get: |context| Value::Number(context.services.spill.limit().unwrap_or(u64::MAX)),
            set: |context, value| {
                let bytes = value.number();
                context
                    .services
                    .spill
                    .set_limit((bytes < u64::MAX).then_some(bytes));
                Ok(())
            },
            default: |_| Value::Number(u64::MAX),
            is_kept: false,
        },
        description: "most bytes of all temporary files together",
    },
    Setting {
        name: "memory_limit",
        kind: ValueKind::Bytes {
            least: LEAST_MEMORY,
            unlimited: false,
        },
        access: Access::Database {
            get: |context| Value::Number(context.home.budget().limit()),
            set: |context, value| {
                context.home.budget().set_limit(value.number());
                Ok(())
            },
            default: |context| Value::Number(context.services.first_memory_limit),
            is_kept: false,
        },
        description: "what tables and statements may take together; at the start --memory or ERIS_MEMORY",
    },
    Setting {
        name: "numa_strategy",
        kind: ValueKind::Choice(&[
            NUMA_STRATEGIES[0].0,
            NUMA_STRATEGIES[1].0,
            NUMA_STRATEGIES[2].0,
        ]),
        access: Access::Session {
            get: |variables| {
                let mut known = NUMA_STRATEGIES.iter();
                let own = known.find(|(_, strategy)| *strategy == variables.numa_strategy);
                Value::Text(own.map(|(name, _)| *name).unwrap_or_default().to_owned())
            },
            set: |variables, value| {
                let name = value.text();
                let mut known = NUMA_STRATEGIES.iter();
                if let Some((_, strategy)) = known.find(|(known, _)| *known == name) {
                    variables.numa_strategy = *strategy;
                }
            },
        },
        description: "whether rows are scanned at their node (push), or idle AEUs of other nodes copy chunks to theirs (pull); auto estimates which ends sooner",
    },
    Setting {
        name: "parallel_streams",
        kind: ValueKind::Integer {
            least: 1,
            most: 4096,
            unit: "streams",
        },
        access: Access::Session {
            get: |variables| number(variables.parallel_streams),
            set: |variables, value| variables.parallel_streams = value.usize(),
        },
        description: "streams of rows on which operators above the scans work side by side",
    },
    Setting {
        name: "prefer_hash_join",
        kind: ValueKind::Boolean,
        access: Access::Session {
            get: |variables| Value::Boolean(variables.prefer_hash_join),
            set: |variables, value| variables.prefer_hash_join = value.boolean(),
        },
        description: "whether joins on equality are hash joins, or merges of sorted rows",
    },
    Setting {
        name: "scan_sharing",
        kind: ValueKind::Boolean,
        access: Access::Session {
            get: |variables| Value::Boolean(variables.scan_sharing),
            set: |variables, value| variables.scan_sharing = value.boolean(),
        },
        description: "whether queries that are about to scan the same chunk of a table do so together",
    },
    Setting {
        name: "search_path",
        kind: ValueKind::Text("the name of a schema"),
        access: Access::Session {
            get: |variables| Value::Text(variables.schema.clone()),
            set: |variables, value| variables.schema = value.text(),
        },
        description: "the schema of names that are written without one",
    },
    Setting {
        name: "statement_timeout",
        kind: ValueKind::Duration { none: true },
        access: Access::Session {
            get: |variables| {
                let timeout = variables.statement_timeout.unwrap_or_default();
                Value::Number(timeout.as_millis() as u64)
            },
            set: |variables, value| {
                let timeout = Duration::from_millis(value.number());
                variables.statement_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
            },
        },
        description: "statements that take longer are stopped",
    },
    Setting {
        name: "synchronous",
        kind: ValueKind::Synchronous,
        access: Access::Database {
            get: |context| Value::Synchronous(synchronous(context)),
            set: |context, value| set_synchronous(context, value.synchronous()),
            default: |_| Value::Synchronous(Synchronous::default()),
            is_kept: true,
        },
        description: "when commits are on the disk: on, before they are acknowledged; off, a moment later; or within a time; a crash takes what is not there yet. At the start --synchronous, for as long as the process lasts",
    },
    Setting {
        name: "temp_directory",
        kind: ValueKind::Text("the path of a directory"),
        access: Access::Database {
            get: |context| Value::Text(context.services.spill.directory().display().to_string()),
            set: |context, value| Ok(context.services.spill.set_directory(value.text())?),
            default: |_| Value::Text(std::env::temp_dir().display().to_string()),
            is_kept: false,
        },
        description: "where statements put what does not fit into memory",
    },
    Setting {
        name: "threads",
        kind: ValueKind::Integer {
            least: 1,
            most: u16::MAX as u64,
            unit: "AEUs",
        },
        access: Access::Start {
            get: |context| number(context.home.worker_count()),
            how: "start with --aeus N, or with ERIS_TOPOLOGY=NODESxAEUS",
        },
        description: "AEUs, which scan and write; as many threads work on what they yield",
    },
    Setting {
        name: "timezone",
        kind: ValueKind::Choice(&["UTC"]),
        access: Access::Session {
            get: |_| Value::Text("UTC".to_owned()),
            set: |_, _| {},
        },
        description: "the time zone of TIMESTAMP WITH TIME ZONE; others by AT TIME ZONE",
    },
    Setting {
        name: "topology",
        kind: ValueKind::Text("NODESxAEUS"),
        access: Access::Start {
            get: |context| Value::Text(topology(context)),
            how: "start with ERIS_TOPOLOGY=NODESxAEUS, such as 4x2, for logical nodes; otherwise it is the machine's",
        },
        description: "NUMA nodes, and AEUs on each",
    },
];

/// Nodes and AEUs per node, or each node's where they differ.
fn topology(context: &StatementContext) -> String {
    let mut aeus = vec![0usize; context.home.nodes().len()];
    for worker in context.home.workers() {
        aeus[worker.node.index()] += 1;
    }
    match aeus.iter().all(|count| *count == aeus[0]) {
        true => format!("{}x{}", aeus.len(), aeus[0]),
        false => aeus
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join("+"),
    }
}

/// When commits are durable, where they are.
fn synchronous(context: &StatementContext) -> Synchronous {
    let durability = context.home.durability();
    durability.map_or_else(Synchronous::default, |durability| durability.synchronous())
}

fn set_synchronous(context: &StatementContext, synchronous: Synchronous) -> Result<(), SqlError> {
    match context.home.durability() {
        Some(durability) => durability.set_synchronous(synchronous),
        // RESET ALL changes nothing here.
        None if synchronous == Synchronous::default() => {}
        None => {
            let message = "setting \"synchronous\" is for databases on a disk: this one ends with its process";
            let error = SqlError::invalid(Mistake::CannotChangeSetting, message);
            return Err(error.with_hint(Some("start with --db DIR")));
        }
    }
    Ok(())
}

fn number(value: usize) -> Value {
    Value::Number(value as u64)
}

impl Value {
    pub fn number(&self) -> u64 {
        match self {
            Value::Number(number) => *number,
            other => unreachable!("{other:?} is of another kind than its setting"),
        }
    }

    fn usize(&self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }

    fn boolean(&self) -> bool {
        match self {
            Value::Boolean(value) => *value,
            other => unreachable!("{other:?} is of another kind than its setting"),
        }
    }

    fn synchronous(&self) -> Synchronous {
        match self {
            Value::Synchronous(value) => *value,
            other => unreachable!("{other:?} is of another kind than its setting"),
        }
    }

    fn text(self) -> String {
        match self {
            Value::Text(text) => text,
            other => unreachable!("{other:?} is of another kind than its setting"),
        }
    }
}

/// Other names, as other databases call them.
const SYNONYMS: [(&str, &str); 4] = [
    ("schema", "search_path"),
    ("time_zone", "timezone"),
    ("max_memory", "memory_limit"),
    ("aeus", "threads"),
];

/// The setting of this name, whatever its case.
///
/// # Errors
/// There is none.
pub(crate) fn find(name: &str) -> Result<&'static Setting, SqlError> {
    let wanted = name.to_lowercase();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == wanted);
    let wanted = synonym.map_or(wanted.as_str(), |(_, name)| name);
    let found = SETTINGS.iter().find(|setting| setting.name == wanted);
    found.ok_or_else(|| {
        let similar = most_similar(wanted, SETTINGS.iter().map(|setting| setting.name));
        let hint = match similar {
            Some(similar) => format!("did you mean \"{similar}\"?"),
            None => "SHOW ALL lists all settings".to_owned(),
        };
        SqlError::invalid(
            Mistake::UndefinedObject,
            format!("there is no setting \"{name}\""),
        )
        .with_hint(Some(hint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Variables;

    #[test]
    fn settings_are_in_the_order_of_their_names() {
        assert!(SETTINGS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn what_a_session_sets_is_what_it_gets() {
        for setting in &SETTINGS {
            let Access::Session { get, set } = setting.access else {
                continue;
            };
            let value = get(&Variables::new(3));
            let mut variables = Variables::new(1);
            set(&mut variables, value.clone());
            assert_eq!(get(&variables), value, "{}", setting.name);
        }
    }
}
