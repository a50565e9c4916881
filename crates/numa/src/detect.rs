//! Where a topology comes from: this machine, files like its own, or made up.

use crate::error::{TOPOLOGY_VARIABLE, TopologyError};
use crate::profile::Profile;
use crate::topology::Topology;
use crate::{affinity, fake, sysfs};
use std::path::Path;
use std::sync::Arc;

impl Topology {
    /// This machine's topology, as far as this process may use it.
    ///
    /// With [`TOPOLOGY_VARIABLE`] set (and not empty) the logical one it describes, with AEUs bound to this machine's
    /// CPUs if those are enough. Else what sysfs tells, without the CPUs that the affinity mask or the cgroup's cpuset
    /// withhold. A node of which every CPU is withheld is left out (the process was told to stay away from it); a
    /// node that never had a CPU stays, as memory alone. The mask is the calling thread's: call it before binding that.
    ///
    /// With [`MACHINE_VARIABLE`](crate::MACHINE_VARIABLE) set, its nodes are [as far apart](Topology::paced_as) as
    /// those of the machine that it names.
    ///
    /// # Errors
    /// [`TopologyError`]: a variable's value is no topology or no machine, or the machine's files are unreadable.
    pub fn detect() -> Result<Self, TopologyError> {
        let cpus = affinity::allowed_cpus().map_err(TopologyError::Affinity)?;
        let root = Path::new("/");
        let mut real = sysfs::read(root, Some(&cpus))?;
        if let Some(nodes) = sysfs::allowed_memory(root)? {
            real.withhold_memory(&nodes);
        }
        let topology = match std::env::var_os(TOPOLOGY_VARIABLE) {
            Some(value) if !value.is_empty() => {
                let (nodes, cores) = fake::parse(&value.to_string_lossy())?;
                fake::over(&real, nodes, cores)
            }
            _ => real,
        };
        match Profile::given()? {
            Some(machine) => Ok(topology.paced_as(Arc::new(machine))?),
            None => Ok(topology),
        }
    }

    /// This machine with the nodes and AEUs that a text such as `4x2` describes, as [`TOPOLOGY_VARIABLE`] does it.
    ///
    /// # Errors
    /// As [`Topology::detect`].
    pub fn described(text: &str) -> Result<Self, TopologyError> {
        let cpus = affinity::allowed_cpus().map_err(TopologyError::Affinity)?;
        let (nodes, cores) = fake::parse(text)?;
        let real = sysfs::read(Path::new("/"), Some(&cpus))?;
        Ok(fake::over(&real, nodes, cores))
    }

    /// The topology described by the files under `root`, the directory in which `sys` and `proc` lie (`/` on a live
    /// machine), with all CPUs that are online.
    ///
    /// Without `sys/devices/system/node` the machine is one node. Offline nodes and CPUs are left out.
    ///
    /// # Errors
    /// [`TopologyError`] names the file that cannot be read or understood.
    pub fn from_sysfs(root: &Path) -> Result<Self, TopologyError> {
        sysfs::read(root, None)
    }

    /// A made-up topology: `nodes` logical nodes, each with `cores_per_node` AEUs that are bound to no CPU. All memory
    /// comes from wherever the operating system takes it. Distances: 10 to itself, 20 to every other.
    ///
    /// It does not bind AEUs, so that any number of such engines can run beside each other in one process;
    /// [`Topology::detect`] does.
    ///
    /// # Panics
    /// If a number is zero or there are more than 65,535 AEUs in all.
    pub fn fake(nodes: u16, cores_per_node: u16) -> Self {
        fake::unbound(nodes, cores_per_node)
    }
}
