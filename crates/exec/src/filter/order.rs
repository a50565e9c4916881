//! The order in which a chunk's tests cost least: what they cost, and what a worker has learnt of how many rows pass.

/// By how much the memory of earlier chunks fades with each chunk.
const FADE: f64 = 0.75;

/// A row that is left has so many others read with it: those of its vector, unless they are left, too.
const READ_WITH: f64 = 8.0;

/// How many rows a test met and how many of them passed, fading.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassRate {
    met: f64,
    passed: f64,
}

impl PassRate {
    /// One row in two, until something better is known.
    pub(super) const UNKNOWN: PassRate = PassRate {
        met: 2.0,
        passed: 1.0,
    };

    /// The share of the rows that pass.
    pub(super) fn share(&self) -> f64 {
        self.passed / self.met
    }

    /// So many rows of a chunk were met, and so many of them passed.
    pub(super) fn note(&mut self, met: usize, passed: usize) {
        self.met = self.met * FADE + met as f64;
        self.passed = self.passed * FADE + passed as f64;
    }
}

/// Orders tests, each with what it costs and the share of the rows that pass it: again and again the one that, with all
/// others behind it, costs least.
pub(super) fn arrange(tests: &mut [(usize, f64, f64)]) {
    // Almost all is read of many rows, and little more than themselves of few.
    let read = |share: f64| share * READ_WITH / (1.0 + share * (READ_WITH - 1.0));
    let mut share = 1.0;
    for at in 0..tests.len() {
        let rest = &mut tests[at..];
        let all: f64 = rest.iter().map(|(_, cost, _)| cost).sum();
        let total = |&(_, cost, pass): &(usize, f64, f64)| {
            cost * read(share) + (all - cost) * read(share * pass)
        };
        let totals = rest.iter().map(total).enumerate();
        let first = totals.min_by(|(_, a), (_, b)| a.total_cmp(b));
        rest.swap(0, first.map_or(0, |(first, _)| first));
        share *= rest[0].2;
    }
}

#[cfg(test)]
mod tests {
    use super::arrange;

    #[test]
    fn what_leaves_few_rows_goes_before_what_is_cheap() {
        let order = |mut tests: Vec<(usize, f64, f64)>| {
            arrange(&mut tests);
            tests.iter().map(|test| test.0).collect::<Vec<_>>()
        };
        assert_eq!(order(vec![(0, 2.3, 0.2), (1, 2.9, 0.001)]), [1, 0]);
        assert_eq!(order(vec![(0, 2.9, 0.5), (1, 2.3, 0.5)]), [1, 0]);
        assert_eq!(
            order(vec![(0, 1.0, 1.0), (1, 2.0, 0.01), (2, 1.0, 0.05)]),
            [2, 1, 0]
        );
        assert!(order(vec![]).is_empty());
    }
}
