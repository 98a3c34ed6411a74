//! Idle power that differs before and after the load.

use super::noise::IdleNoise;
use crate::energy::conditions::Conditions;
use crate::energy::evidence::AttemptEvidence;

/// A difference within this many of its standard errors is chance (for normal errors, 99.7 %).
const STANDARD_ERRORS: f64 = 3.0;
/// The rise of a warmer board's power, as a share of its idle power per kelvin. The leakage of silicon about
/// doubles every 25 to 30 K, which is 2.5 % per kelvin, and is less than 40 % of an idle board's power. The
/// candidate's heat explains this much, and is an outcome.
const HEAT_PER_KELVIN: f64 = 0.01;

/// The difference of the two idle baselines.
pub(super) struct Drift {
    /// The whole difference, in watts.
    watts: f64,
    /// The part that the board's heat does not explain, in watts.
    unexplained_watts: f64,
    /// Standard error of the difference, in watts. Unknown if the baselines contain too few readings.
    pub(super) standard_error_watts: Option<f64>,
}

impl Drift {
    pub(super) fn of(
        evidence: &AttemptEvidence<'_>,
        noise: Option<IdleNoise>,
        before_watts: f64,
        after_watts: f64,
    ) -> Self {
        let attempt = evidence.attempt;
        let difference = after_watts - before_watts;
        let conditions = Conditions::of(evidence);
        let warmer = conditions
            .idle_before_celsius
            .zip(conditions.idle_after_celsius)
            .map_or(0.0, |(before, after)| after - before);
        let heat_watts = HEAT_PER_KELVIN * warmer * before_watts;
        let unexplained_watts = if heat_watts * difference > 0.0 {
            (difference.abs() - heat_watts.abs()).max(0.0)
        } else {
            difference.abs()
        };
        let variance = |noise: IdleNoise| {
            noise.variance_of(attempt.idle_before.seconds())
                + noise.variance_of(attempt.idle_after.seconds())
        };
        Self {
            watts: difference.abs(),
            unexplained_watts,
            standard_error_watts: noise.map(|noise| variance(noise).sqrt()),
        }
    }

    /// Whether neither chance nor heat explains the difference. If the noise is unknown, chance explains nothing.
    pub(super) fn is_real(&self) -> bool {
        self.is_beyond_chance(self.unexplained_watts)
    }

    fn is_beyond_chance(&self, watts: f64) -> bool {
        watts > STANDARD_ERRORS * self.standard_error_watts.unwrap_or(0.0)
    }

    /// The largest effect of the unexplained part on the net energy of a window, in joules.
    pub(super) fn effect_joules(&self, window_seconds: f64) -> f64 {
        largest_effect_joules(self.unexplained_watts, window_seconds)
    }

    /// The effect of the whole difference on the net energy of a window, as a standard uncertainty. It is uniform within
    /// the bounds (JCGM 100:2008, 4.3.7). Heat is an outcome, but the mean of the baselines contains half of its power.
    /// Absent if chance explains the difference.
    pub(super) fn joules(&self, window_seconds: f64) -> Option<f64> {
        self.is_beyond_chance(self.watts)
            .then(|| largest_effect_joules(self.watts, window_seconds) / 3.0_f64.sqrt())
    }
}

/// The largest effect of a difference of the baselines on the net energy of a window, in joules. Idle power in the window
/// lies between the two baselines, so it differs from their mean by at most half of their difference.
fn largest_effect_joules(watts: f64, window_seconds: f64) -> f64 {
    watts / 2.0 * window_seconds
}
