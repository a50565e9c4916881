//! Numbers by Zipf's law, without a table: rejection-inversion (Hörmann and Derflinger, *Rejection-inversion to
//! generate variates from monotone discrete distributions*, 1996).
//!
//! The sum over ranks is enclosed by the integral of the same function, which has an inverse. A point below the curve
//! is drawn and inverted to the nearest rank; it is rejected if it lies above that rank's bar, which is rarely so.

/// Ranks from 0 to below a count, the one of rank r with a weight of (r + 1) to the power of `-exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    /// The integral at the beginning and the end.
    first: f64,
    last: f64,
    /// Nearer to a rank than this, nothing is rejected.
    near: f64,
}

impl Zipf {
    /// # Panics
    /// If there is nothing to draw from, or the exponent is negative.
    pub fn new(count: u64, exponent: f64) -> Self {
        assert!(
            count > 0 && exponent >= 0.0,
            "{count} ranks, exponent {exponent}"
        );
        let mut zipf = Zipf {
            count: count as f64,
            exponent,
            first: 0.0,
            last: 0.0,
            near: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(count as f64 + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next rank; `uniform` gives 64 random bits.
    pub fn draw(&self, mut uniform: impl FnMut() -> u64) -> u64 {
        loop {
            let share = (uniform() >> 11) as f64 / (1u64 << 53) as f64;
            let at = self.last + share * (self.first - self.last);
            let exact = self.inverse(at);
            let rank = exact.round().clamp(1.0, self.count);
            if rank - exact <= self.near || at >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, rank: f64) -> f64 {
        (-self.exponent * rank.ln()).exp()
    }

    /// The integral of the weight, up to a constant.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        // Near an exponent of 1 the quotient is 0 by 0.
        log * if t.abs() > 1e-8 {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.exponent)).max(-1.0);
        (y * if t.abs() > 1e-8 {
            t.ln_1p() / t
        } else {
            1.0 - t / 2.0
        })
        .exp()
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Random;
    use super::*;

    #[test]
    fn ranks_come_as_often_as_their_weights_say() {
        const DRAWS: u64 = 400_000;
        for count in [1, 2, 50, 1000] {
            for exponent in [0.0, 0.5, 1.0, 1.000_000_001, 1.2, 3.0] {
                let zipf = Zipf::new(count, exponent);
                let mut random = Random(count ^ 42);
                let mut drawn = vec![0u64; count as usize];
                for _ in 0..DRAWS {
                    drawn[zipf.draw(|| random.bits()) as usize] += 1;
                }
                let weights = (1..=count).map(|rank| (rank as f64).powf(-exponent));
                let all: f64 = weights.clone().sum();
                // Pearson's statistic, of ranks that are expected often enough; its deviation is about the root of
                // twice their number.
                let (mut statistic, mut ranks) = (0.0, 0.0);
                for (weight, drawn) in weights.zip(&drawn) {
                    let expected = weight / all * DRAWS as f64;
                    if expected >= 10.0 {
                        statistic += (*drawn as f64 - expected).powi(2) / expected;
                        ranks += 1.0;
                    }
                }
                assert!(
                    statistic < ranks + 6.0 * (2.0f64 * ranks).sqrt(),
                    "{count} ranks, exponent {exponent}: {statistic} of {ranks}"
                );
            }
        }
    }
}
