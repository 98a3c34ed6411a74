//! The spread between trials (type A) and the meter's own accuracy (type B), combined.
//!
//! JCGM 100:2008, Guide to the Expression of Uncertainty in Measurement: 4.2 and 4.3 for the types, 5.1.2 for
//! independent contributions, which add as squares, 6.2 for the expanded uncertainty.

use serde::{Deserialize, Serialize};

use super::IntervalEstimate;
// For type A, Student's t takes the place of this factor.
use crate::model::COVERAGE;

/// The ends of an interval, in the unit of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The ends of y·exp(±U) with U = √((t·u_A)² + (2·u_B)²): a geometric mean's interval, widened by the meter's
/// relative standard uncertainty u_B (≥ 0; to first order it equals the uncertainty of the logarithm). t·u_A
/// is half the interval's length in logarithms, at the interval's own confidence. `None` if `estimate` is not
/// above 0, if `meter` is not a number of at least 0, or if the upper end is not finite.
///
/// Do *not* widen a ratio of two figures of the same meter in this way: a wrong gain affects both by the same
/// factor, which cancels. The formula also excludes errors that do not scale with the figure, such as an
/// offset in watts.
#[must_use]
pub fn expanded(estimate: &IntervalEstimate, meter: f64) -> Option<Bounds> {
    if !(meter >= 0.0 && meter.is_finite() && estimate.lower > 0.0 && estimate.upper.is_finite()) {
        return None;
    }
    let of_trials = (estimate.upper / estimate.value).ln();
    let whole = of_trials.hypot(COVERAGE * meter).exp();
    let upper = estimate.value * whole;
    upper.is_finite().then_some(Bounds {
        lower: estimate.value / whole,
        upper,
    })
}
