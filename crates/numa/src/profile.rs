//! What the memory of a machine can deliver, as a file: measured here, measured elsewhere, or taken from a paper.
//!
//! ```toml
//! name = "Intel Xeon E7-4860, 4 nodes"
//! source = "Kissinger et al., ERIS (ADMS 2014), Tables 1 and 2, page 3"
//! aeus_per_node = 10
//! pairs = ["0111", "1011", "1101", "1110"]      # line: the node that reads; column: whose memory; digit: their link
//!
//! [[links]]                                     # number 0
//! name = "local"
//! gigabytes_per_second = 26.7                   # all cores of the reading node at once, sequentially
//! nanoseconds = 129                             # one dependent load
//!
//! [[links]]                                     # number 1
//! name = "1 hop QPI"
//! gigabytes_per_second = 10.7
//! nanoseconds = 193
//!
//! [[links.copies]]                              # any number of them, if they were measured
//! engine = "plain"                              # or "prefetched", "streaming"
//! block = 262144                                # bytes
//! gigabytes_per_second = 11.4                   # of one core's copying, ahead of a scan
//! ```
//!
//! Links are numbered with digits, then lower-case letters. A table `speeds` may follow ([`Speeds`]). The
//! machines of the ERIS paper come along, by name.

use crate::copy::CopyEngine;
use crate::error::TOPOLOGY_VARIABLE;
use crate::speeds::Speeds;
use eris_types::NodeId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The environment variable that gives a profile: the name of a known machine, or a file.
pub const MACHINE_VARIABLE: &str = "ERIS_MACHINE";

/// The machines of the ERIS paper (Tables 1 and 2), by the name under which they are asked for.
const KNOWN: [(&str, &str); 3] = [
    ("eris-intel", include_str!("../profiles/eris-intel.toml")),
    ("eris-amd", include_str!("../profiles/eris-amd.toml")),
    ("eris-sgi", include_str!("../profiles/eris-sgi.toml")),
];

/// As many links as there are digits and letters.
pub(crate) const MOST_LINKS: usize = 36;

/// Bandwidth and latency of each pair of nodes, and perhaps what its cores do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// What the machine is called.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// AEUs of each node.
    pub aeus_per_node: u16,
    /// By source, then home: the number of their link.
    #[serde(serialize_with = "as_digits")]
    pairs: Vec<Vec<u8>>,
    links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speeds: Option<Speeds>,
}

/// What lies between cores of one node and memory of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What it is called.
    pub name: String,
    /// Sequential reading by all cores of the source at once, in GB (10⁹ bytes) per second.
    pub gigabytes_per_second: f64,
    /// One dependent load.
    pub nanoseconds: f64,
    /// How fast one core copies from there, by engine and block. Empty if that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopySpeed>,
}

/// How fast one core copies memory of another node into a block of its own, to scan it there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopySpeed {
    /// How it copies.
    pub engine: CopyEngine,
    /// Bytes of a block.
    pub block: usize,
    /// GB (10⁹ bytes) per second of copying alone: what a scan of blocks takes longer than one of its own memory.
    pub gigabytes_per_second: f64,
}

/// A file that is no profile, or does not fit.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error(
        "cannot read the machine profile {path}: {source}; known by name are {known}",
        path = path.display(),
        known = known_names()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML, or lacks something.
    #[error("machine profile {origin}: {source}")]
    Syntax {
        /// The file or name.
        origin: String,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// A value cannot be.
    #[error("machine profile {origin}: {reason}")]
    Value {
        /// The file or name.
        origin: String,
        /// Which value, and what it should be.
        reason: String,
    },
    /// The machine has fewer nodes than the topology that shall imitate it.
    #[error(
        "machine {machine:?} has {has} nodes, the topology {needed}; fewer can be given, as in {variable}={has}x2",
        variable = TOPOLOGY_VARIABLE
    )]
    FewNodes {
        /// The machine.
        machine: String,
        /// Its nodes.
        has: usize,
        /// Those of the topology.
        needed: usize,
    },
}

/// The file, before anything is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    source: String,
    aeus_per_node: u16,
    pairs: Vec<String>,
    links: Vec<Link>,
    speeds: Option<Speeds>,
}

impl Profile {
    /// The profile that [`MACHINE_VARIABLE`] gives; `None` if it is not set, or empty.
    ///
    /// # Errors
    /// [`ProfileError`] of the file.
    pub fn given() -> Result<Option<Self>, ProfileError> {
        match std::env::var_os(MACHINE_VARIABLE) {
            Some(value) if !value.is_empty() => Self::named(Path::new(&value)).map(Some),
            _ => Ok(None),
        }
    }

    /// The known machine of this name, or the one in this file.
    ///
    /// # Errors
    /// [`ProfileError`] of the file.
    pub fn named(name: &Path) -> Result<Self, ProfileError> {
        match name.to_str().and_then(Self::known) {
            Some(known) => Ok(known),
            None => Self::read(name),
        }
    }

    /// A machine that comes along.
    pub fn known(name: &str) -> Option<Self> {
        let (name, text) = KNOWN.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(text, name).expect("the tests read all of them"))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ProfileError`] names the file, and the line or the value.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path).map_err(|source| ProfileError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    pub(crate) fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let written: Written = toml::from_str(text).map_err(|source| ProfileError::Syntax {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        Self::checked(written).map_err(|reason| ProfileError::Value {
            origin: origin.to_owned(),
            reason,
        })
    }

    fn checked(written: Written) -> Result<Self, String> {
        let nodes = written.pairs.len();
        if nodes == 0 || nodes > usize::from(u16::MAX) {
            return Err(format!("pairs has {nodes} lines; it needs one per node"));
        }
        if written.aeus_per_node == 0 {
            return Err("aeus_per_node is 0".to_owned());
        }
        for link in &written.links {
            let numbers = [link.gigabytes_per_second, link.nanoseconds];
            if !numbers
                .iter()
                .all(|&number| number > 0.0 && number.is_finite())
            {
                return Err(format!(
                    "link {:?} has a number that is not above 0",
                    link.name
                ));
            }
            let is_wrong = |copy: &&CopySpeed| {
                let speed = copy.gigabytes_per_second;
                !(speed > 0.0 && speed.is_finite()) || copy.block == 0
            };
            if let Some(copy) = link.copies.iter().find(is_wrong) {
                return Err(format!(
                    "link {:?}: {} copies need a block and a speed above 0",
                    link.name,
                    copy.engine.name()
                ));
            }
        }
        if let Some(mistake) = written.speeds.as_ref().and_then(Speeds::mistake) {
            return Err(mistake);
        }
        let line = |(number, line): (usize, &String)| {
            let links = line.chars().map(|digit| {
                let link = digit
                    .to_digit(MOST_LINKS as u32)
                    .filter(|_| !digit.is_uppercase());
                match link {
                    Some(link) if (link as usize) < written.links.len() => Ok(link as u8),
                    _ => Err(format!(
                        "pairs, line {}: {digit:?} is no link; there are {}",
                        number + 1,
                        written.links.len()
                    )),
                }
            });
            let links = links.collect::<Result<Vec<u8>, String>>()?;
            match links.len() == nodes {
                true => Ok(links),
                false => Err(format!(
                    "pairs, line {}: {} links for {nodes} nodes",
                    number + 1,
                    links.len()
                )),
            }
        };
        let pairs = written.pairs.iter().enumerate().map(line);
        let pairs = pairs.collect::<Result<Vec<_>, String>>()?;
        Ok(Profile {
            name: written.name,
            source: written.source,
            aeus_per_node: written.aeus_per_node,
            pairs,
            links: written.links,
            speeds: written.speeds,
        })
    }

    /// A machine of these links, each pair with the number of its own.
    pub(crate) fn new(
        name: String,
        source: String,
        aeus_per_node: u16,
        pairs: Vec<Vec<u8>>,
        links: Vec<Link>,
    ) -> Self {
        Profile {
            name,
            source,
            aeus_per_node,
            pairs,
            links,
            speeds: None,
        }
    }

    /// The same machine, of which this is known as well.
    pub fn with_speeds(self, speeds: Speeds) -> Self {
        Profile {
            speeds: Some(speeds),
            ..self
        }
    }

    /// The same machine, with what copies over each link reach, by its number.
    pub fn with_copies(mut self, copies: Vec<Vec<CopySpeed>>) -> Self {
        for (link, copies) in self.links.iter_mut().zip(copies) {
            link.copies = copies;
        }
        self
    }

    /// The same numbers, of which this says where they come from.
    pub fn with_source(self, source: String) -> Self {
        Profile { source, ..self }
    }

    /// What its cores do, if that is known.
    pub fn speeds(&self) -> Option<&Speeds> {
        self.speeds.as_ref()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.pairs.len()
    }

    /// All kinds of links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// What lies between the cores of `source` and the memory of `home`.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn link(&self, source: NodeId, home: NodeId) -> &Link {
        &self.links[self.link_number(source, home)]
    }

    /// The number of what lies between the cores of `source` and the memory of `home`.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn link_number(&self, source: NodeId, home: NodeId) -> usize {
        usize::from(self.pairs[source.index()][home.index()])
    }

    /// How many pairs have each link, by its number.
    pub fn pairs_by_link(&self) -> Vec<usize> {
        let mut counts = vec![0; self.links.len()];
        let all = self.pairs.iter().flatten();
        all.for_each(|&link| counts[usize::from(link)] += 1);
        counts
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("strings and numbers have a form in TOML")
    }
}

/// The names of the machines that come along.
fn known_names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

fn as_digits<S: serde::Serializer>(pairs: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
    let digit = |&link: &u8| char::from_digit(link.into(), MOST_LINKS as u32);
    let line = |links: &Vec<u8>| links.iter().filter_map(digit).collect::<String>();
    to.collect_seq(pairs.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16) -> NodeId {
        NodeId(number)
    }

    /// Table 2 of the ERIS paper, and what Section 2.2 says of it in words.
    #[test]
    fn the_machines_of_the_paper_are_as_it_says() {
        let intel = Profile::known("eris-intel").unwrap();
        let (local, remote) = (intel.link(node(0), node(0)), intel.link(node(3), node(1)));
        assert_eq!((intel.nodes(), intel.aeus_per_node), (4, 10));
        assert!((remote.nanoseconds / local.nanoseconds - 1.5).abs() < 0.01);
        assert!((local.gigabytes_per_second / remote.gigabytes_per_second - 2.5).abs() < 0.01);

        let amd = Profile::known("eris-amd").unwrap();
        let factor = |profile: &Profile, of: fn(&Link) -> f64| {
            let numbers = profile.links().iter().map(of);
            numbers.clone().fold(0.0, f64::max) / numbers.fold(f64::MAX, f64::min)
        };
        assert_eq!((amd.nodes(), amd.aeus_per_node), (8, 8));
        assert!((factor(&amd, |link| link.gigabytes_per_second) - 9.1).abs() < 0.05);
        assert!((factor(&amd, |link| link.nanoseconds) - 2.3).abs() < 0.05);

        let sgi = Profile::known("eris-sgi").unwrap();
        assert_eq!((sgi.nodes(), sgi.aeus_per_node), (64, 8));
        assert!((factor(&sgi, |link| link.gigabytes_per_second) - 5.5).abs() < 0.1);
        assert!((factor(&sgi, |link| link.nanoseconds) - 10.7).abs() < 0.1);
        for profile in [&intel, &amd, &sgi] {
            let used = profile.pairs_by_link();
            assert!(used.iter().all(|&pairs| pairs > 0), "{}", profile.name);
            for source in 0..profile.nodes() as u16 {
                assert_eq!(profile.link(node(source), node(source)).name, "local");
                for home in 0..profile.nodes() as u16 {
                    let back = profile.link(node(home), node(source));
                    assert_eq!(profile.link(node(source), node(home)), back);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let file = |pairs: &str, link: &str| {
            format!(
                "name = \"m\"\nsource = \"s\"\naeus_per_node = 1\npairs = {pairs}\n[[links]]\nname = \"l\"\n{link}\n"
            )
        };
        let good = "gigabytes_per_second = 1\nnanoseconds = 100";
        assert!(Profile::parse(&file("[\"0\"]", good), "m.toml").is_ok());
        for (text, told) in [
            (
                file("[\"01\", \"10\"]", good),
                "pairs, line 1: '1' is no link",
            ),
            (
                file("[\"0\", \"00\"]", good),
                "pairs, line 1: 1 links for 2 nodes",
            ),
            (file("[]", good), "one per node"),
            (file("[\"A\"]", good), "'A' is no link"),
            (
                file("[\"0\"]", "gigabytes_per_second = 0\nnanoseconds = 1"),
                "link \"l\"",
            ),
            (
                file("[\"0\"]", "gigabytes_per_second = nan\nnanoseconds = 1"),
                "link \"l\"",
            ),
            (file("[\"0\"]", "nanoseconds = 1"), "gigabytes_per_second"),
            (file("[\"0\"]", "gigabytes = 1"), "unknown field"),
            (
                file(
                    "[\"0\"]",
                    &format!(
                        "{good}\n[[links.copies]]\nengine = \"plain\"\nblock = 0\ngigabytes_per_second = 1"
                    ),
                ),
                "link \"l\": plain copies need a block",
            ),
            ("name".to_owned(), "line 1"),
        ] {
            let error = Profile::parse(&text, "m.toml").unwrap_err().to_string();
            assert!(error.contains("m.toml") && error.contains(told), "{error}");
        }
        let error = Profile::read(Path::new("/nowhere.toml"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nowhere.toml") && error.contains("eris-amd"),
            "{error}"
        );
    }
}
