//! Idle power that is not the same after the load as before it.

use super::Conditions;
use super::checks::Evidence;
use super::noise::IdleNoise;

/// A difference within this many of its standard errors is chance (for normal errors, 99.7 %).
const STANDARD_ERRORS: f64 = 3.0;
/// By how much a warmer board draws more, as a share of its idle power for each kelvin: the leakage of
/// silicon about doubles with every 25 to 30 K, 2.5 % a kelvin, and is less than 40 % of an idle
/// board's power. So much is the candidate's own heat, which is an outcome.
const HEAT_PER_KELVIN: f64 = 0.01;

/// How far the two idle baselines differ.
pub(super) struct Drift {
    /// Beyond what the board's heat explains, in watts.
    unexplained_watts: f64,
    /// Standard error of the difference, in watts; unknown if the baselines hold too few readings.
    pub(super) standard_error_watts: Option<f64>,
}

impl Drift {
    pub(super) fn of(
        evidence: &Evidence<'_>,
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
            unexplained_watts,
            standard_error_watts: noise.map(|noise| variance(noise).sqrt()),
        }
    }

    /// Whether chance does not explain it. If the noise is unknown, chance explains nothing.
    pub(super) fn is_real(&self) -> bool {
        self.unexplained_watts > STANDARD_ERRORS * self.standard_error_watts.unwrap_or(0.0)
    }

    /// What it may do to the net energy of a window, in joules: idle power in the window lies between the two, and half of
    /// their difference from their mean at worst.
    pub(super) fn effect_joules(&self, window_seconds: f64) -> f64 {
        self.unexplained_watts / 2.0 * window_seconds
    }

    /// The same as a standard uncertainty, anywhere within these bounds (JCGM 100:2008, 4.3.7); absent if chance or heat
    /// explain it.
    pub(super) fn joules(&self, window_seconds: f64) -> Option<f64> {
        self.is_real()
            .then(|| self.effect_joules(window_seconds) / 3.0_f64.sqrt())
    }
}
