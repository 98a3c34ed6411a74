//! What a candidate differs from itself by.

use super::Estimate;

/// The noise floor from an A/A control: the larger distance of the two ends of the interval of a
/// candidate's ratio to itself from 1, in logarithms. A true ratio of 1 may look as far off as this; what
/// is closer to 1 can't be told from it. `None` where the interval is not above 0.
///
/// It is the upper bound, not the estimate: a control of few blocks that happened to come out at 1 has
/// shown little. Deciding by the ends of an interval: D. J. Schuirmann (1987), as for equivalence.
#[must_use]
pub fn noise_floor(control: &Estimate) -> Option<f64> {
    let floor = control.lower.ln().abs().max(control.upper.ln().abs());
    (control.lower > 0.0 && floor.is_finite()).then_some(floor)
}

/// Whether a limit on a ratio (> 0) is closer to 1 than the noise floor.
#[must_use]
pub fn is_below_floor(limit: f64, floor: f64) -> bool {
    limit.ln().abs() < floor
}
