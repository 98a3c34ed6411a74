//! The spread between trials (type A) and the meter's own accuracy (type B), together.
//!
//! JCGM 100:2008, Guide to the Expression of Uncertainty in Measurement: 4.2 and 4.3 for the types,
//! 5.1.2 for independent contributions, which add as squares, 6.2 for the expanded uncertainty.

use serde::{Deserialize, Serialize};

use super::Estimate;
// The type A part has Student's t in its place.
use crate::model::COVERAGE;

/// The ends of an interval, in the unit of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The ends of y·exp(±U) with U = √((t·u_A)² + (2·u_B)²): a geometric mean's interval widened by the
/// meter's relative standard uncertainty u_B (≥ 0; of logarithms it is the same, to first order). t·u_A
/// is half the interval's length in logarithms, at whatever confidence that interval has. `None` where
/// `estimate` is not above 0, `meter` not a number of at least 0, or the upper end not finite.
///
/// A ratio of two figures of the same meter is *not* to be widened so: a gain that is wrong by a factor
/// is wrong in both by the same factor, which cancels. Nor does this know of errors that do not scale
/// with the figure, such as an offset in watts.
#[must_use]
pub fn expanded(estimate: &Estimate, meter: f64) -> Option<Bounds> {
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
