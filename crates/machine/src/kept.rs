//! The file in which a measured profile is kept, and of which machine it is.
//!
//! ```text
//! $XDG_CACHE_HOME/eris/machine-2x8.toml          or ~/.cache/eris/…; 2x8: nodes and AEUs of each
//! source = "measured by eris 0.1.0 on AMD EPYC 9124, 2 nodes, 16 AEUs, 256 GB"
//! ```
//!
//! The file's `source` says what it was measured on, and by which version. A profile with another source is none of
//! this machine.

use eris_numa::{Profile, ProfileError, Topology};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a profile is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The processor and the topology.
    pub name: String,
    /// Memory in GB.
    memory: u64,
}

impl Identity {
    /// The machine at hand, as far as `topology` has of it.
    pub fn here(topology: &Topology) -> Self {
        let (nodes, aeus) = (topology.nodes().len(), topology.aeus().len());
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory: u64 = topology.nodes().iter().map(|node| node.memory_bytes).sum();
        let made_up = if topology.is_fake() { " (made up)" } else { "" };
        Identity {
            name: format!(
                "{}, {nodes} nodes{made_up}, {aeus} AEUs",
                processor(&cpuinfo)
            ),
            // A kernel of another version has a little more or less.
            memory: memory.div_ceil(1_000_000_000),
        }
    }

    /// What a profile of it says that it was measured on.
    pub fn source(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let Identity { name, memory } = self;
        format!("measured by eris {version} on {name}, {memory} GB")
    }
}

/// The processor's name; architectures whose kernel tells none are named themselves.
pub fn processor(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        matches!(key.trim(), "model name" | "cpu model" | "Model" | "cpu")
            .then(|| value.trim().to_string())
    });
    name.unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

/// Where profiles of this machine are kept.
#[derive(Clone, Debug)]
pub struct Kept {
    file: PathBuf,
    source: String,
}

/// A profile was not kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the machine profile in {}: {source}", file.display())]
pub struct KeptError {
    file: PathBuf,
    source: io::Error,
}

impl Kept {
    /// In the user's cache directory; `None` if the user has none.
    pub fn of_user(topology: &Topology) -> Option<Self> {
        let given = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        let caches = match given("XDG_CACHE_HOME") {
            Some(caches) => PathBuf::from(caches),
            None => Path::new(&given("HOME")?).join(".cache"),
        };
        Some(Self::within(&caches.join("eris"), topology))
    }

    /// In a directory.
    pub fn within(directory: &Path, topology: &Topology) -> Self {
        let nodes = topology.nodes().len();
        let each = topology.aeus().len().div_ceil(nodes);
        let made_up = if topology.is_fake() { "-made-up" } else { "" };
        Kept {
            file: directory.join(format!("machine-{nodes}x{each}{made_up}.toml")),
            source: Identity::here(topology).source(),
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The profile that was kept, if it is of this machine and version.
    pub fn load(&self) -> Option<Profile> {
        let read: Result<Profile, ProfileError> = Profile::read(&self.file);
        read.ok().filter(|profile| profile.source == self.source)
    }

    /// How long ago the file was written; `None` if that is not known.
    pub fn age(&self) -> Option<Duration> {
        let written = std::fs::metadata(&self.file).and_then(|file| file.modified());
        written.ok()?.elapsed().ok()
    }

    /// Keeps a profile. Whoever reads meanwhile sees the one before, or this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(&self, profile: &Profile) -> Result<(), KeptError> {
        self.write(profile).map_err(|source| KeptError {
            file: self.file.clone(),
            source,
        })
    }

    fn write(&self, profile: &Profile) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let written = self.file.with_extension(format!("{}", std::process::id()));
        let mut file = std::fs::File::create(&written)?;
        file.write_all(profile.to_toml().as_bytes())?;
        drop(file);
        std::fs::rename(&written, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_name() {
        assert_eq!(
            processor("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"),
            "Some CPU @ 2 GHz"
        );
        assert_eq!(processor(""), std::env::consts::ARCH);
    }

    #[test]
    fn what_is_kept_is_of_one_machine() {
        let directory = tempfile::tempdir().unwrap();
        let topology = Topology::fake(4, 2);
        let kept = Kept::within(&directory.path().join("new"), &topology);
        assert_eq!(kept.load(), None);
        let profile = Profile::known("eris-intel").unwrap();
        let here = profile
            .clone()
            .with_source(Identity::here(&topology).source());
        kept.store(&here).unwrap();
        assert_eq!(kept.load(), Some(here));
        assert!(kept.age().is_some_and(|age| age < Duration::from_secs(60)));
        kept.store(&profile).unwrap();
        assert_eq!(kept.load(), None, "of another machine");
        std::fs::write(kept.file(), "name = 1").unwrap();
        assert_eq!(kept.load(), None, "no profile");
        let nowhere = Kept::within(kept.file(), &topology);
        let error = nowhere.store(&profile).unwrap_err().to_string();
        assert!(error.contains("machine-4x2"), "{error}");
    }
}
