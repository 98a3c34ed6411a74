//! The difference between a candidate and itself.

use super::IntervalEstimate;

/// The noise floor from an A/A control, in logarithms: the larger distance from 1 of the two ends of the
/// control's interval. `control` is the interval of a candidate's ratio to itself. A true ratio of 1 may look
/// as far from 1 as this floor. A ratio closer to 1 cannot be distinguished from 1. `None` if the interval is
/// not above 0.
///
/// The floor is the upper bound, not the estimate: a control of few blocks that came out at 1 by chance
/// proves little. Decisions by the ends of an interval: D. J. Schuirmann (1987), as for equivalence.
#[must_use]
pub fn noise_floor(control: &IntervalEstimate) -> Option<f64> {
    let floor = control.lower.ln().abs().max(control.upper.ln().abs());
    (control.lower > 0.0 && floor.is_finite()).then_some(floor)
}

/// Whether a limit on a ratio (> 0) is closer to 1 than the noise floor.
#[must_use]
pub fn is_below_floor(limit: f64, floor: f64) -> bool {
    limit.ln().abs() < floor
}
