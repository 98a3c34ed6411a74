//! Random numbers that depend only on a seed.
//!
//! The generator is ChaCha with 8 rounds, which has a specified output. This module implements the sampling itself, so
//! a seed gives the same numbers with all later versions of the rand crates.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    generator: ChaCha8Rng,
    /// The second number of the last pair of normal numbers.
    spare_normal: Option<f64>,
}

impl Random {
    /// The stream of one case. `section` is the part of the crate, `index` the case in it.
    #[must_use]
    pub fn new(seed: u64, section: u64, index: u64) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&section.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self {
            generator,
            spare_normal: None,
        }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A uniform number of at least 0 and below 1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform number of at least `low` and below `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A uniform integer below `bound`, or 0 if `bound` is 0. Its bias, `bound` / 2^64, is negligible here.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the high half of a product with a usize fits usize"
    )]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// True with the probability `share`.
    pub fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }

    /// One of the items, each equally likely.
    pub fn of<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        items[self.below(N)]
    }

    /// A normal number with mean 0 and standard deviation 1: G. E. P. Box and M. E. Muller, Annals of
    /// Mathematical Statistics 29 (1958) 610.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare_normal = Some(radius * sine);
        radius * cosine
    }

    /// Student's t with 3 degrees of freedom, divided by its standard deviation of √3.
    pub fn heavy_tailed(&mut self) -> f64 {
        let z = self.normal();
        let chi_squared: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        z / (chi_squared / 3.0).sqrt() / 3.0_f64.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_moments_of_their_distributions() {
        let mut random = Random::new(1, 2, 3);
        let n = 100_000;
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            (mean, square / values.len() as f64)
        };
        let normal: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let (mean, variance) = moments(&normal);
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02);
        let uniform: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
        let (mean, variance) = moments(&uniform);
        assert!((mean - 0.5).abs() < 0.005 && (variance - 1.0 / 12.0).abs() < 0.002);
        // The interquartile range of t with 3 degrees of freedom is 2 · 0.764892.
        let mut heavy: Vec<f64> = (0..n).map(|_| random.heavy_tailed()).collect();
        heavy.sort_by(f64::total_cmp);
        let range = heavy[n * 3 / 4] - heavy[n / 4];
        assert!((range - 2.0 * 0.764_892 / 3.0_f64.sqrt()).abs() < 0.02);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, section, index| Random::new(seed, section, index).bits();
        assert_eq!(draw(1, 1, 1), draw(1, 1, 1));
        let different = [draw(1, 1, 1), draw(2, 1, 1), draw(1, 2, 1), draw(1, 1, 2)];
        for (at, one) in different.iter().enumerate() {
            assert!(!different[..at].contains(one));
        }
    }
}
