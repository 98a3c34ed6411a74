//! From trials to a figure with its interval. The unit is the trial, never the request. The spread comes from
//! the trials themselves: Student's t with n − 1 degrees of freedom.
//!
//! Formulas: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2 (confidence limits of a mean). If the
//! figure is on a ratio scale (joules, seconds), they apply to logarithms. The limits are then transformed
//! back and are never negative.
//!
//! Conclusions from intervals: [`sequential`] for repeated looks, [`equivalence`] for a tie, [`multiplicity`]
//! for several claims and several tries, [`uncertainty`] for the meter's own accuracy, [`control`] for the
//! noise floor, [`outliers`] for disturbed blocks, [`position`] for the places within the blocks, [`serial`]
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
pub struct IntervalEstimate {
    /// The mean, in the unit of the values.
    pub value: f64,
    /// Lower end of the interval, same unit. At most `value`.
    pub lower: f64,
    /// Upper end of the interval, same unit. At least `value`.
    pub upper: f64,
    /// Number of trials, or of pairs. At least 2.
    pub trials: usize,
}

/// The median of some numbers; absent if the list is empty.
#[must_use]
pub fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// The quantile of Student's t distribution with `degrees_of_freedom` (> 0, possibly fractional) at
/// `probability` (strictly between 0 and 1). `None` outside these ranges.
#[must_use]
pub fn t_quantile(probability: f64, degrees_of_freedom: f64) -> Option<f64> {
    if !(probability > 0.0 && probability < 1.0 && degrees_of_freedom.is_finite()) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    let t = distribution.inverse_cdf(probability);
    t.is_finite().then_some(t)
}

/// Arithmetic mean with the interval mean ± t·s/√n, s with n − 1. `confidence` is a share, such as 0.95.
/// `None` with fewer than 2 values, with a value that is not finite, or if `confidence` is not between 0 and
/// 1.
#[must_use]
pub fn arithmetic_mean(values: &[f64], confidence: f64) -> Option<IntervalEstimate> {
    let freedom = values.len().checked_sub(1)? as f64;
    let t = t_quantile(f64::midpoint(1.0, confidence), freedom)?;
    mean_within(values, t).filter(|_| confidence > 0.0)
}

/// Arithmetic mean with the interval mean ± `t`·s/√n, s with n − 1.
fn mean_within(values: &[f64], t: f64) -> Option<IntervalEstimate> {
    let trials = values.len();
    if trials < 2 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = trials as f64;
    // Two passes: a large mean then costs no digits in the sum of squared deviations.
    let value = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = t * deviation / n.sqrt();
    half.is_finite().then_some(IntervalEstimate {
        value,
        lower: value - half,
        upper: value + half,
        trials,
    })
}

/// Geometric mean with the interval exp(m ± t·s/√n), m and s of the logarithms. This is how a candidate's
/// figure follows from its trials. `None` as for [`arithmetic_mean`], or if a value is not above 0.
#[must_use]
pub fn geometric_mean(values: &[f64], confidence: f64) -> Option<IntervalEstimate> {
    let logarithms = logarithms(values.iter().copied())?;
    of_logarithms(&logarithms, confidence)
}

/// Ratio of the first to the second of two candidates in the same blocks: exp(d̄) with the interval exp(d̄ ±
/// t·s/√n). Here d is ln a − ln b of one block. Common effects of a block (a warm afternoon, a busy
/// neighbour) cancel. `None` as for [`geometric_mean`].
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<IntervalEstimate> {
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

fn of_logarithms(logarithms: &[f64], confidence: f64) -> Option<IntervalEstimate> {
    transformed_back(arithmetic_mean(logarithms, confidence)?)
}

/// As [`of_logarithms`], with `t` standard errors of the mean in either direction.
fn of_spread(logarithms: &[f64], t: f64) -> Option<IntervalEstimate> {
    transformed_back(mean_within(logarithms, t)?)
}

fn transformed_back(mean: IntervalEstimate) -> Option<IntervalEstimate> {
    let upper = mean.upper.exp();
    upper.is_finite().then(|| IntervalEstimate {
        value: mean.value.exp(),
        lower: mean.lower.exp(),
        upper,
        trials: mean.trials,
    })
}
