//! From trials to a figure with its interval. The unit is the trial, never the request, and the
//! spread is taken from the trials themselves: Student's t with n − 1 degrees of freedom.
//!
//! Formulas: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2 (confidence limits of a
//! mean); of logarithms where the figure is a ratio scale (joules, seconds), after which the limits
//! are transformed back, so that they are never negative.
//!
//! What is concluded from intervals: [`sequential`] for repeated looks, [`equivalence`] for a tie,
//! [`multiplicity`] for several claims and several tries, [`uncertainty`] for the meter's own accuracy, [`control`]
//! for the noise floor, [`outliers`] for disturbed blocks, [`position`] for the places within the blocks, [`serial`]
//! for trials that are not independent, [`proportion`] for errors and void attempts.

pub mod broken_line;
pub mod control;
pub mod equivalence;
pub mod multiplicity;
pub mod outliers;
pub mod position;
pub mod proportion;
pub mod sequential;
pub mod serial;
pub mod uncertainty;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A figure over trials, with its two-sided confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// The mean, in the unit of the values it was made from.
    pub value: f64,
    /// Lower end of the interval, same unit. At most `value`.
    pub lower: f64,
    /// Upper end of the interval, same unit. At least `value`.
    pub upper: f64,
    /// Number of trials, or of pairs, behind it. At least 2.
    pub trials: usize,
}

/// The middle of some numbers; absent if there are none.
#[must_use]
pub fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The value that a Student-t variable with `degrees_of_freedom` (> 0, need not be whole) stays
/// below with `probability` (strictly between 0 and 1). `None` outside these ranges.
#[must_use]
pub fn t_quantile(probability: f64, degrees_of_freedom: f64) -> Option<f64> {
    if !(probability > 0.0 && probability < 1.0 && degrees_of_freedom.is_finite()) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    let t = distribution.inverse_cdf(probability);
    t.is_finite().then_some(t)
}

/// Arithmetic mean with the interval mean ± t·s/√n, s with n − 1. `confidence` is a share, such as
/// 0.95. `None` with fewer than 2 values, with one that is not finite, or where `confidence` is not
/// between 0 and 1.
#[must_use]
pub fn arithmetic_mean(values: &[f64], confidence: f64) -> Option<Estimate> {
    let freedom = values.len().checked_sub(1)? as f64;
    let t = t_quantile(f64::midpoint(1.0, confidence), freedom)?;
    mean_within(values, t).filter(|_| confidence > 0.0)
}

/// Arithmetic mean with the interval mean ± `t`·s/√n, s with n − 1.
fn mean_within(values: &[f64], t: f64) -> Option<Estimate> {
    let trials = values.len();
    if trials < 2 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = trials as f64;
    // Two passes: the sum of squares of deviations loses no digits to a large mean.
    let value = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = t * deviation / n.sqrt();
    half.is_finite().then_some(Estimate {
        value,
        lower: value - half,
        upper: value + half,
        trials,
    })
}

/// Geometric mean with the interval exp(m ± t·s/√n), m and s of the logarithms: how a candidate's
/// figure is made from its trials. `None` as for [`arithmetic_mean`], or where a value is not
/// above 0.
#[must_use]
pub fn geometric_mean(values: &[f64], confidence: f64) -> Option<Estimate> {
    let logarithms = logarithms(values.iter().copied())?;
    of_logarithms(&logarithms, confidence)
}

/// Ratio of the first to the second of two candidates tried in the same blocks: exp(d̄) with the
/// interval exp(d̄ ± t·s/√n), where d is ln a − ln b of one block. What the blocks have in common
/// (a warm afternoon, a busy neighbour) cancels. `None` as for [`geometric_mean`].
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    let first = logarithms(pairs.iter().map(|pair| pair.0))?;
    let second = logarithms(pairs.iter().map(|pair| pair.1))?;
    let differences: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a - b).collect();
    of_logarithms(&differences, confidence)
}

fn logarithms(values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    values
        .map(|value| (value > 0.0 && value.is_finite()).then(|| value.ln()))
        .collect()
}

fn of_logarithms(logarithms: &[f64], confidence: f64) -> Option<Estimate> {
    transformed_back(arithmetic_mean(logarithms, confidence)?)
}

/// The same with `t` deviations of the mean to either side.
fn of_spread(logarithms: &[f64], t: f64) -> Option<Estimate> {
    transformed_back(mean_within(logarithms, t)?)
}

fn transformed_back(mean: Estimate) -> Option<Estimate> {
    let upper = mean.upper.exp();
    upper.is_finite().then(|| Estimate {
        value: mean.value.exp(),
        lower: mean.lower.exp(),
        upper,
        trials: mean.trials,
    })
}
