//! Settings of DuckDB that say how it works, and nothing about what it answers.

/// Names of pragmas and settings.
const HARMLESS: &[&str] = &[
    "checkpoint_threshold",
    "disable_checkpoint_on_shutdown",
    "disable_optimizer",
    "disable_profiling",
    "disable_progress_bar",
    "disable_verification",
    "disable_verify_parallelism",
    "disabled_optimizers",
    "enable_checkpoint_on_shutdown",
    "enable_object_cache",
    "enable_optimizer",
    "enable_profiling",
    "enable_progress_bar",
    "enable_verification",
    "explain_output",
    "external_threads",
    "force_bitpacking_mode",
    "force_checkpoint",
    "force_compression",
    "immediate_transaction_mode",
    "index_scan_max_count",
    "index_scan_percentage",
    "max_vacuum_tasks",
    "memory_limit",
    "merge_join_threshold",
    "nested_loop_join_threshold",
    "order_by_non_integer_literal",
    "partitioned_write_flush_threshold",
    "perfect_ht_threshold",
    "preserve_insertion_order",
    "profiling_coverage",
    "profiling_mode",
    "profiling_output",
    "read_ahead_depth",
    "storage_compatibility_version",
    "temp_directory",
    "threads",
    "verify_external",
    "verify_fetch_row",
    "verify_parallelism",
    "verify_serializer",
    "wal_autocheckpoint",
    "worker_threads",
];

/// Whether a statement sets nothing but such.
pub fn is_harmless(sql: &str) -> bool {
    let lower = sql.to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    let first = words.next();
    let name = match first {
        Some("pragma" | "checkpoint") => words.next(),
        Some("set" | "reset") => words.find(|word| !["global", "session", "local"].contains(word)),
        _ => return false,
    };
    match name {
        None => first == Some("checkpoint"),
        Some(name) => HARMLESS.contains(&name) || name.starts_with("debug_"),
    }
}
