//! The machine at hand by what was measured of it before: the profile that is kept for this user's engines.

use super::Drawing;
use super::copies;
use super::given::Numbers;
use super::speeds;
use crate::report::{BenchReport, Machine};
use eris_numa::{Profile, Topology};
use serde_json::json;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// A machine, and the profile of it that is kept.
#[derive(Clone, Debug)]
pub struct KeptMachine {
    /// Nodes and AEUs.
    pub topology: Topology,
    /// What was measured.
    pub profile: Profile,
    /// Where it is kept.
    pub file: PathBuf,
    /// How long ago it was measured; `None` if the system does not tell.
    pub age: Option<Duration>,
}

impl KeptMachine {
    /// Prints it to standard output: as the report of a measurement, each number as one run, or for people.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match json {
            true => self.report().write(true, &mut out),
            false => write!(out, "{self}"),
        }
    }

    /// Where the numbers come from, and since when they are known.
    pub fn told(&self) -> String {
        let when = match self.age {
            Some(age) => format!("measured {} ago", rounded(age)),
            None => "measured before".to_owned(),
        };
        format!("{when}, kept in {}", self.file.display())
    }

    fn report(&self) -> BenchReport {
        let mut report = BenchReport::new("machine", &self.topology);
        for source in self.topology.nodes() {
            for home in self.topology.nodes() {
                let link = self.profile.link(source.id, home.id);
                let params = || {
                    [
                        ("source", json!(source.id.0)),
                        ("home", json!(home.id.0)),
                        ("distance", json!(source.distances[home.id.index()])),
                    ]
                };
                let gigabytes = vec![link.gigabytes_per_second];
                report.row("sequential read", params(), "GB/s", gigabytes, None);
                let nanoseconds = vec![link.nanoseconds];
                report.row("dependent load", params(), "ns", nanoseconds, None);
            }
        }
        if let Some(speeds) = self.profile.speeds() {
            speeds::add(speeds, &mut report);
        }
        copies::add(&self.profile, &mut report);
        report
    }
}

impl fmt::Display for KeptMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = Machine::of(&self.topology);
        write!(f, "{machine}\n{}\n", Drawing(&self.topology))?;
        writeln!(f, "{}\n", self.told())?;
        write!(f, "{}", Numbers(&self.profile))
    }
}

/// A time in its largest unit of which there are at least two.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("days", 86_400), ("hours", 3_600), ("minutes", 60)];
    let unit = units.into_iter().find(|(_, unit)| seconds >= 2 * unit);
    let (name, unit) = unit.unwrap_or(("seconds", 1));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::Speeds;

    #[test]
    fn what_is_kept_is_shown_with_its_age() {
        let profile = Profile::known("eris-intel").unwrap();
        let kept = KeptMachine {
            topology: Topology::fake(2, 1),
            profile: profile.with_speeds(Speeds::usual()),
            file: PathBuf::from("/kept.toml"),
            age: Some(Duration::from_secs(7_300)),
        };
        let shown = kept.to_string();
        for part in [
            "topology fake 2x1",
            "┌ node 1: memory ",
            "measured 2 hours ago, kept in /kept.toml",
            "1 hop QPI  10.7  193",
            "copy within a node",
        ] {
            assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
        }
        let report = kept.report();
        let far = &report.rows[2];
        assert_eq!((&*far.case, far.value), ("sequential read", 10.7));
        assert_eq!(far.params["home"], 1);
        assert!(report.rows.iter().any(|row| row.case == "copy"));
    }

    #[test]
    fn times_have_the_largest_unit_that_tells() {
        let shown = [0, 119, 120, 7_199, 7_200, 200_000].map(Duration::from_secs);
        assert_eq!(
            shown.map(rounded),
            [
                "0 seconds",
                "119 seconds",
                "2 minutes",
                "119 minutes",
                "2 hours",
                "2 days"
            ]
        );
    }
}
