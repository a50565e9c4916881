//! How much memory this process may use: the machine's, or what its control groups leave of it.
//!
//! ```text
//! proc/self/cgroup      0::/app             version 2: one hierarchy, its number is 0
//!                       4:memory:/app       version 1: one line per controller
//! proc/self/mountinfo   … /app /sys/fs/cgroup … - cgroup2 …     group at the mount's top, mount point, kind
//! sys/fs/cgroup/…       memory.max, memory.high (v2); memory.limit_in_bytes (v1)
//! ```
//! A limit of any ancestor holds as well; the lowest counts.

use crate::error::TopologyError;
use crate::files::Files;
use crate::sysfs;
use std::path::Path;

/// Bytes. `root` is the directory in which `proc` and `sys` lie.
pub(crate) fn available_memory(root: &Path) -> Result<u64, TopologyError> {
    let files = Files::new(root);
    let total = sysfs::memory_total(root);
    let limit = memory_limit(&files)?;
    match (total, limit) {
        (Ok(total), Some(limit)) => Ok(total.min(limit)),
        (Err(_), Some(limit)) => Ok(limit),
        (total, None) => total,
    }
}

/// A mounted hierarchy that knows about memory.
struct Mount {
    /// The group that appears at the mount point.
    group: String,
    /// The mount point, relative to the root.
    point: String,
    version: u8,
}

fn memory_limit(files: &Files) -> Result<Option<u64>, TopologyError> {
    let groups = files.text("proc/self/cgroup")?.unwrap_or_default();
    let mut lowest = None;
    for mount in mounts(&files.text("proc/self/mountinfo")?.unwrap_or_default()) {
        let group = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match mount.version {
                2 => number == "0",
                _ => controllers.split(',').any(|name| name == "memory"),
            };
            ours.then_some(group)
        });
        let Some(group) = group else { continue };
        // In a container the group's path may lie outside of what is mounted; the mount's top is then the container's.
        let mount_group = mount.group.trim_end_matches('/');
        let mut below = group
            .strip_prefix(mount_group)
            .unwrap_or("")
            .trim_matches('/');
        loop {
            let directory = format!("{}/{below}", mount.point);
            let names: &[&str] = if mount.version == 2 {
                &["memory.max", "memory.high"]
            } else {
                &["memory.limit_in_bytes"]
            };
            for name in names {
                // "max" is no limit; version 1 says so by a number next to 2^63, which the machine's size undercuts.
                let text = files.text(&format!("{directory}/{name}"))?;
                let limit = text.and_then(|text| text.trim().parse::<u64>().ok());
                lowest = [lowest, limit].into_iter().flatten().min();
            }
            if below.is_empty() {
                break;
            }
            below = below.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
    Ok(lowest)
}

fn mounts(mountinfo: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (group, point) = (
            left.next()?.to_string(),
            left.next()?.trim_start_matches('/').to_string(),
        );
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let version = match kind {
            "cgroup2" => 2,
            "cgroup" if options.split(',').any(|option| option == "memory") => 1,
            _ => return None,
        };
        Some(Mount {
            group,
            point,
            version,
        })
    };
    mountinfo.lines().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const TOTAL: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:       8388608 kB\nMemFree: 1 kB\n",
    );
    const V2: (&str, &str) = (
        "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn without_groups_the_machine_is_the_limit() {
        let root = machine(&[TOTAL]);
        assert_eq!(available_memory(root.path()).unwrap(), 8 << 30);
        assert!(available_memory(machine(&[]).path()).is_err());
    }

    #[test]
    fn the_lowest_limit_of_all_ancestors_holds() {
        let root = machine(&[
            TOTAL,
            V2,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.high", "3000000\n"),
            ("sys/fs/cgroup/a/memory.max", "2000000\n"),
        ]);
        assert_eq!(available_memory(root.path()).unwrap(), 2_000_000);
    }

    #[test]
    fn version_1_has_its_own_hierarchy_and_no_limit_is_a_huge_number() {
        let mount = "34 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let files = |limit| {
            machine(&[
                TOTAL,
                ("proc/self/mountinfo", mount),
                ("proc/self/cgroup", "5:cpu:/x\n4:memory:/app\n0::/\n"),
                ("sys/fs/cgroup/memory/app/memory.limit_in_bytes", limit),
                (
                    "sys/fs/cgroup/memory/memory.limit_in_bytes",
                    "9223372036854771712\n",
                ),
            ])
        };
        assert_eq!(
            available_memory(files("9223372036854771712\n").path()).unwrap(),
            8 << 30
        );
        assert_eq!(
            available_memory(files("4096000\n").path()).unwrap(),
            4_096_000
        );
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mounts_top() {
        let root = machine(&[
            TOTAL,
            (
                "proc/self/mountinfo",
                "31 23 0:28 /docker/7 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "0::/docker/7/worker\n"),
            ("sys/fs/cgroup/memory.max", "5000000\n"),
        ]);
        assert_eq!(available_memory(root.path()).unwrap(), 5_000_000);
    }
}
