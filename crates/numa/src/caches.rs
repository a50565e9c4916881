//! CPU caches, as sysfs describes them per CPU, summed up by kind.

use crate::error::TopologyError;
use crate::files::Files;
use crate::list;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// One kind of cache of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 for the innermost.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Size of one instance in bytes. A virtual machine may show a cache that it shares with its neighbours.
    pub bytes: u64,
    /// Size of a cache line in bytes.
    pub line_bytes: u64,
    /// CPUs that share one instance (the most, if instances differ).
    pub shared_by: u32,
    /// How many of them the CPUs of this topology have.
    pub instances: u32,
}

/// What a cache holds. In the order of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data alone.
    Data,
    /// Instructions alone.
    Instruction,
    /// Both.
    Unified,
}

/// Reads the caches of `cpus`. Ascending by level, data before instructions.
pub(crate) fn read(files: &Files, cpus: &[u32]) -> Result<Vec<Cache>, TopologyError> {
    // Kinds that differ in size (cores of two sorts) are listed apart.
    let mut kinds: BTreeMap<(u32, CacheKind, u64, u64), BTreeSet<Vec<u32>>> = BTreeMap::new();
    for &cpu in cpus {
        let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        for (_, directory) in files.numbered(&cache, "index", "")? {
            let file = |name: &str| format!("{directory}/{name}");
            let kind = match files.text(&file("type"))?.as_deref().map(str::trim) {
                Some("Data") => CacheKind::Data,
                Some("Instruction") => CacheKind::Instruction,
                Some("Unified") => CacheKind::Unified,
                _ => continue,
            };
            let Some(level) = files.number(&file("level"))? else {
                continue;
            };
            let Some(bytes) = size(files, &file("size"))? else {
                continue;
            };
            let line = files.number(&file("coherency_line_size"))?.unwrap_or(64);
            let shared = match files.text(&file("shared_cpu_list"))? {
                None => vec![cpu],
                Some(text) => list::parse(&text)
                    .ok_or_else(|| files.wrong(&file("shared_cpu_list"), "a CPU list", &text))?,
            };
            kinds
                .entry((level as u32, kind, bytes, line))
                .or_default()
                .insert(shared);
        }
    }
    let cache = |((level, kind, bytes, line_bytes), instances): (_, BTreeSet<Vec<u32>>)| Cache {
        level,
        kind,
        bytes,
        line_bytes,
        shared_by: instances.iter().map(Vec::len).max().unwrap_or(0) as u32,
        instances: instances.len() as u32,
    };
    Ok(kinds.into_iter().map(cache).collect())
}

/// A size as sysfs writes it: `32K`, seldom `1M`.
fn size(files: &Files, path: &str) -> Result<Option<u64>, TopologyError> {
    let Some(text) = files.text(path)? else {
        return Ok(None);
    };
    let trimmed = text.trim();
    let (digits, unit) = match trimmed.as_bytes().last() {
        Some(b'K') => (&trimmed[..trimmed.len() - 1], 1 << 10),
        Some(b'M') => (&trimmed[..trimmed.len() - 1], 1 << 20),
        Some(b'G') => (&trimmed[..trimmed.len() - 1], 1 << 30),
        _ => (trimmed, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|n| n.checked_mul(unit));
    bytes
        .map(Some)
        .ok_or_else(|| files.wrong(path, "a size such as 32K", &text))
}
