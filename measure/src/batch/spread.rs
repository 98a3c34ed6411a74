//! Mean and standard deviation of numbers that arrive one by one or in several groups.

use serde::{Deserialize, Serialize};

/// Count, mean and spread of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The number of values.
    pub count: u64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sampled population (n − 1); 0 for a single value. Its square is not stored:
    /// for bytes, the square is too large for a report.
    pub deviation: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
}

impl Spread {
    /// The spread of one number.
    #[must_use]
    pub fn of(number: f64) -> Self {
        Self {
            count: 1,
            mean: number,
            deviation: 0.0,
            least: number,
            most: number,
        }
    }

    /// The spread of two groups together (Chan, Golub and LeVeque, *Updating Formulae and a Pairwise
    /// Algorithm for Computing Sample Variances*, 1979, formulae 1.5).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let count = self.count.saturating_add(other.count);
        let share = other.count as f64 / count.max(1) as f64;
        let apart = other.mean - self.mean;
        let squares = self.squares() + other.squares() + apart * apart * self.count as f64 * share;
        Self {
            count,
            mean: self.mean + apart * share,
            deviation: (squares / (count.max(2) - 1) as f64).sqrt(),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// The spread of all groups together; absent without groups.
    pub fn over(lots: impl IntoIterator<Item = Self>) -> Option<Self> {
        lots.into_iter().reduce(Self::and)
    }

    /// The sum of all values: mean times count.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }

    /// Standard deviation of the sampled population. Absent for a single value.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then_some(self.deviation)
    }

    /// Sum of the squared deviations from the mean.
    pub(super) fn squares(&self) -> f64 {
        self.deviation.powi(2) * self.count.saturating_sub(1) as f64
    }

    /// Whether this can be a spread of numbers above 0.
    pub(super) fn is_possible(&self) -> bool {
        self.count > 0
            && (0.0..crate::NUMBERS_END).contains(&self.deviation)
            && self.least > 0.0
            && self.least <= self.mean * (1.0 + 1e-9)
            && self.mean <= self.most * (1.0 + 1e-9)
            && self.most < crate::NUMBERS_END
    }
}
