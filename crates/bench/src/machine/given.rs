//! A machine that is not measured: the profile of another one.

use super::copies::CopyTables;
use super::speeds::SpeedTables;
use crate::report::{align, digits};
use eris_numa::Profile;
use eris_types::NodeId;
use std::fmt;
use std::io::{self, Write};

/// Of more nodes, a table of all pairs is wider than a screen.
const MOST_DRAWN: usize = 24;

/// A profile, to be read by people.
#[derive(Clone, Debug)]
pub struct GivenMachine(pub Profile);

impl GivenMachine {
    /// Prints the profile to standard output, as JSON or for people.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !json {
            return write!(out, "{self}");
        }
        serde_json::to_writer_pretty(&mut out, &self.0)?;
        writeln!(out)
    }
}

impl fmt::Display for GivenMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = &self.0;
        writeln!(
            f,
            "machine    {} (given, nothing was measured)",
            profile.name
        )?;
        writeln!(f, "source     {}", profile.source)?;
        let (nodes, aeus) = (profile.nodes(), profile.aeus_per_node);
        writeln!(f, "topology   {nodes}x{aeus}\n")?;
        write!(f, "{}", Numbers(profile))
    }
}

/// The numbers of a profile as tables.
pub(super) struct Numbers<'a>(pub &'a Profile);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.0;
        let nodes = profile.nodes();
        let title = ["", "link", "GB/s", "ns", "pairs"].map(String::from);
        let mut lines = vec![title.to_vec()];
        let links = profile.links().iter().zip(profile.pairs_by_link());
        for (number, (link, pairs)) in links.enumerate() {
            lines.push(vec![
                number.to_string(),
                link.name.clone(),
                digits(link.gigabytes_per_second),
                digits(link.nanoseconds),
                pairs.to_string(),
            ]);
        }
        write!(f, "{}", align(&lines))?;
        if let Some(speeds) = profile.speeds() {
            write!(f, "\n{}", SpeedTables(speeds))?;
        }
        write!(f, "{}", CopyTables(profile))?;
        if nodes > MOST_DRAWN {
            return Ok(());
        }
        let all = || (0..nodes as u16).map(NodeId);
        let mut lines = vec![vec!["sequential read, all cores, GB/s".to_owned()]];
        lines[0].extend(all().map(|home| home.to_string()));
        for source in all() {
            let mut line = vec![format!("  from {source}")];
            line.extend(all().map(|home| digits(profile.link(source, home).gigabytes_per_second)));
            lines.push(line);
        }
        write!(f, "\n{}", align(&lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_machine_is_drawn_with_its_links_and_pairs() {
        let shown = |name| GivenMachine(Profile::known(name).unwrap()).to_string();
        let intel = shown("eris-intel");
        for part in [
            "Intel Xeon E7-4860, 4 nodes (given, nothing was measured)",
            "Tables 1 and 2",
            "topology   4x10",
            "1 hop QPI  10.7  193     12",
            "from node 3",
        ] {
            assert!(intel.contains(part), "{part:?} is missing in\n{intel}");
        }
        // Of 64 nodes only the kinds of links.
        let sgi = shown("eris-sgi");
        assert!(sgi.contains("4 hop NUMALink") && !sgi.contains("from node"));
    }
}
