//! Mean and standard deviation of numbers that come one by one, or in several lots.

use serde::{Deserialize, Serialize};

/// How numbers spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Sum of the squares of what they differ from the mean by.
    pub squares: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Spread {
    /// Of one number.
    #[must_use]
    pub fn of(number: f64) -> Self {
        Self {
            count: 1,
            mean: number,
            squares: 0.0,
            least: number,
            most: number,
        }
    }

    /// Of two lots together (Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing
    /// Sample Variances*, 1979, formulae 1.5).
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let count = self.count.saturating_add(other.count);
        let share = other.count as f64 / count.max(1) as f64;
        let apart = other.mean - self.mean;
        Self {
            count,
            mean: self.mean + apart * share,
            squares: self.squares + other.squares + apart * apart * self.count as f64 * share,
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// Of all of them; absent where there is none.
    pub fn over(lots: impl IntoIterator<Item = Self>) -> Option<Self> {
        lots.into_iter().reduce(Self::and)
    }

    /// Mean times count.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }

    /// Of the population that they are a sample of: the squares over one less than the count. Absent for one alone.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// Whether it can be of numbers above 0.
    pub(super) fn is_possible(&self) -> bool {
        self.count > 0
            && self.squares.is_finite()
            && self.squares >= 0.0
            && self.least > 0.0
            && self.least <= self.mean * (1.0 + 1e-9)
            && self.mean <= self.most * (1.0 + 1e-9)
            && self.most < crate::NUMBERS_END
    }
}
