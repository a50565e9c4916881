//! What one core does per second, and what a message and a shared word cost: the part of a machine profile that is not
//! about links.
//!
//! ```toml
//! [speeds]
//! copy = 9.8                                    # GB/s: from memory of a node into memory of the same node
//! message = 14                                  # nanoseconds: one command among many, sent and received
//!
//! [[speeds.scans]]
//! kernel = "compare"                            # or "unpack"
//! bits = 10                                     # of a packed value
//! gigabytes_per_second = 9.1                    # of packed bytes, from memory of its node
//!
//! [[speeds.draws]]
//! way = "cpu"                                   # as ways are called in eris_atomics
//! threads = 2                                   # that draw from one sequence as fast as they can
//! nanoseconds = 11                              # from one draw of anybody to the next
//! ```

use serde::{Deserialize, Serialize};

/// What a core of a machine does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speeds {
    /// GB (10⁹ bytes) per second that one core copies within its node's memory.
    pub copy: f64,
    /// Nanoseconds of one command among many, sent and received.
    pub message: f64,
    /// How fast packed values are read.
    pub scans: Vec<ScanSpeed>,
    /// What a number of a shared sequence costs.
    #[serde(default)]
    pub draws: Vec<DrawCost>,
}

/// What is done with packed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScanKernel {
    /// Each is compared with a range.
    Compare,
    /// Each is unpacked to 64 bits.
    Unpack,
}

/// How fast one core reads packed values of one width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanSpeed {
    /// What it does with them.
    pub kernel: ScanKernel,
    /// Bits of a value.
    pub bits: u8,
    /// Packed bytes, in GB (10⁹) per second, from memory of the core's node.
    pub gigabytes_per_second: f64,
}

/// What a number costs if so many threads draw from one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawCost {
    /// In which way they draw.
    pub way: String,
    /// How many they are.
    pub threads: usize,
    /// Nanoseconds from one draw of anybody to the next.
    pub nanoseconds: f64,
}

impl Speeds {
    /// What is taken for granted where nothing has been measured: a core of a server of the 2020s.
    pub fn usual() -> Self {
        let scan = |kernel, bits, gigabytes_per_second| ScanSpeed {
            kernel,
            bits,
            gigabytes_per_second,
        };
        Speeds {
            copy: 8.0,
            message: 20.0,
            scans: vec![
                scan(ScanKernel::Compare, 1, 8.0),
                scan(ScanKernel::Compare, 64, 8.0),
                scan(ScanKernel::Unpack, 1, 0.5),
                scan(ScanKernel::Unpack, 64, 8.0),
            ],
            draws: Vec::new(),
        }
    }

    /// Bytes per second that a core reads of values of so many bits. Between two widths that were measured it goes
    /// straight from one to the other.
    pub fn scan(&self, kernel: ScanKernel, bits: f64) -> f64 {
        let of_kernel = || self.scans.iter().filter(|scan| scan.kernel == kernel);
        let width = |scan: &&ScanSpeed| f64::from(scan.bits);
        let below = of_kernel().filter(|scan| width(scan) <= bits);
        let above = of_kernel().filter(|scan| width(scan) >= bits);
        let below = below.max_by(|a, b| width(a).total_cmp(&width(b)));
        let above = above.min_by(|a, b| width(a).total_cmp(&width(b)));
        let gigabytes = match (below, above) {
            (Some(below), Some(above)) if below.bits < above.bits => {
                let share = (bits - width(&below)) / (width(&above) - width(&below));
                let rise = above.gigabytes_per_second - below.gigabytes_per_second;
                below.gigabytes_per_second + share * rise
            }
            (Some(one), _) | (_, Some(one)) => one.gigabytes_per_second,
            (None, None) => self.copy,
        };
        gigabytes * 1e9
    }

    /// What cannot be, if there is something.
    pub(crate) fn mistake(&self) -> Option<String> {
        let wrong = |number: f64| !(number > 0.0 && number.is_finite());
        if wrong(self.copy) || wrong(self.message) {
            return Some("speeds: copy and message must be above 0".to_owned());
        }
        let scan = self
            .scans
            .iter()
            .find(|scan| wrong(scan.gigabytes_per_second) || !(1..=64).contains(&scan.bits));
        if let Some(scan) = scan {
            let bits = scan.bits;
            return Some(format!(
                "speeds: a scan of {bits} bits needs 1 to 64 bits and a speed above 0"
            ));
        }
        let draw = self
            .draws
            .iter()
            .find(|draw| wrong(draw.nanoseconds) || draw.threads == 0);
        draw.map(|draw| {
            let way = &draw.way;
            format!("speeds: draws by {way:?} need at least a thread and a time above 0")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_between_two_has_a_speed_between_theirs() {
        let scan = |kernel, bits, gigabytes_per_second| ScanSpeed {
            kernel,
            bits,
            gigabytes_per_second,
        };
        let speeds = Speeds {
            scans: vec![
                scan(ScanKernel::Compare, 64, 10.0),
                scan(ScanKernel::Compare, 4, 4.0),
                scan(ScanKernel::Compare, 10, 7.0),
                scan(ScanKernel::Unpack, 8, 1.0),
            ],
            ..Speeds::usual()
        };
        let compare = |bits| speeds.scan(ScanKernel::Compare, bits) / 1e9;
        assert_eq!(
            [1.0, 4.0, 7.0, 10.0, 37.0, 64.0].map(compare),
            [4.0, 4.0, 5.5, 7.0, 8.5, 10.0]
        );
        assert_eq!(speeds.scan(ScanKernel::Unpack, 64.0), 1e9);
        assert_eq!(speeds.mistake(), None);
    }

    #[test]
    fn what_cannot_be_is_told() {
        let told = |change: fn(&mut Speeds)| {
            let mut speeds = Speeds::usual();
            change(&mut speeds);
            speeds.mistake().unwrap()
        };
        assert!(told(|speeds| speeds.copy = 0.0).contains("copy"));
        assert!(told(|speeds| speeds.scans[0].bits = 65).contains("65 bits"));
        let draw = DrawCost {
            way: "cpu".into(),
            threads: 0,
            nanoseconds: 1.0,
        };
        let mut speeds = Speeds::usual();
        speeds.draws.push(draw);
        assert!(speeds.mistake().unwrap().contains("cpu"));
    }
}
