//! The idle baseline, the net energy above it, and the detection limit of the net energy.

use super::drift::Drift;
use super::ends;
use super::noise::IdleNoise;
use crate::energy::evidence::AttemptEvidence;
use crate::statistics::t_quantile;
use crate::{energy::attempt::ROUNDING_SECONDS, void::Void};

/// The inputs for the net energy.
pub(super) struct Gross {
    pub(super) node_joules: f64,
    pub(super) window_seconds: f64,
    pub(super) idle_before_watts: f64,
    pub(super) idle_after_watts: f64,
    pub(super) idle_before_seconds: f64,
    pub(super) idle_after_seconds: f64,
    pub(super) interval_seconds: f64,
    pub(super) timestamp_uncertainty_seconds: f64,
    /// How much idle power varies by itself; unknown if the baselines contain too few readings.
    pub(super) idle_noise: Option<IdleNoise>,
    /// Standard uncertainty of the net energy from baselines that differ by more than chance and heat
    /// explain, in joules.
    pub(super) drift_joules: Option<f64>,
    /// Relative standard uncertainty of `node_joules`: from the times of its readings, and from the power
    /// between readings at its ends. It excludes the meter's accuracy, which is common to all trials.
    pub(super) relative_uncertainty: f64,
}

/// The net energy with its detection limit.
pub(super) struct Net {
    pub(super) joules: Option<f64>,
    pub(super) detection_limit_joules: f64,
    pub(super) withheld: Option<String>,
}

/// Detection limit over standard uncertainty if σ is known: `L_D` = 3.29 σ, for 5 % of false alarms and 5 % of
/// misses (L. A. Currie, Analytical Chemistry 40 (1968) 586, with a constant σ). A net energy of 0 exceeds it in
/// 0.05 % of attempts.
const DETECTION_FACTOR: f64 = 3.29;
/// The share of attempts without any load whose net energy stays below the limit.
const DETECTION_PROBABILITY: f64 = 0.9995;
/// From this number of degrees of freedom on, the normal distribution replaces Student's t.
const MANY_DEGREES: f64 = 1e4;

/// Detection limit over standard uncertainty: Student's t for an uncertainty with `degrees_of_freedom`. If
/// the uncertainty has no degrees of freedom, the limit is infinite.
pub(super) fn detection_factor(degrees_of_freedom: f64) -> f64 {
    if degrees_of_freedom > MANY_DEGREES {
        return DETECTION_FACTOR;
    }
    t_quantile(DETECTION_PROBABILITY, degrees_of_freedom)
        .map_or(f64::INFINITY, |t| t.max(DETECTION_FACTOR))
}

/// Share of the energy's square below which a variance is rounding: a billionth of the energy. Counters are read with some twelve
/// digits.
const ROUNDING: f64 = 1e-18;

/// A baseline over less than this many of the meter's intervals depends mostly on the readings around it,
/// which contain other load.
const MIN_IDLE_INTERVALS: f64 = 2.0;

/// Shortest idle baseline that a meter with this interval can measure, in seconds.
fn shortest_idle_seconds(interval_seconds: f64) -> f64 {
    MIN_IDLE_INTERVALS * interval_seconds
}

/// Whether an idle baseline is too short for a meter with this interval, both in seconds. Its power then contains other load.
#[must_use]
pub fn is_baseline_too_short(idle_seconds: f64, interval_seconds: f64) -> bool {
    idle_seconds + ROUNDING_SECONDS < shortest_idle_seconds(interval_seconds)
}

impl Gross {
    pub(super) fn of(evidence: &AttemptEvidence<'_>) -> Result<Self, Void> {
        let AttemptEvidence { attempt, series } = evidence;
        let node_joules = series.node_joules(attempt.measured)?;
        let window_seconds = attempt.measured.seconds();
        let idle_before_watts =
            series.node_joules(attempt.idle_before)? / attempt.idle_before.seconds();
        let idle_after_watts =
            series.node_joules(attempt.idle_after)? / attempt.idle_after.seconds();
        // The power above the idle baselines; 0 if the power is below them.
        let idle_watts = f64::midpoint(idle_before_watts, idle_after_watts);
        let load_watts = (node_joules / window_seconds - idle_watts).max(0.0);
        let timestamp_uncertainty_seconds = series.timestamp_uncertainty_seconds();
        let idle_noise = IdleNoise::of(evidence);
        let drift = Drift::of(evidence, idle_noise, idle_before_watts, idle_after_watts);
        Ok(Self {
            node_joules,
            window_seconds,
            idle_before_watts,
            idle_after_watts,
            idle_before_seconds: attempt.idle_before.seconds(),
            idle_after_seconds: attempt.idle_after.seconds(),
            interval_seconds: series.interval_seconds(),
            timestamp_uncertainty_seconds,
            idle_noise,
            drift_joules: drift.joules(window_seconds),
            relative_uncertainty: of_ends(
                series.lateness_seconds(attempt.measured.start_unix_seconds),
                series.lateness_seconds(attempt.measured.end_unix_seconds),
                window_seconds,
            )
            .hypot(ends::relative_uncertainty(
                evidence,
                node_joules,
                load_watts,
            )),
        })
    }

    /// The detection limit of the net energy, in joules: the net energy's standard uncertainty u times
    /// Student's t. u has these parts:
    ///
    /// - the baseline, a mean of two baselines: the readings' noise in this mean, or half of the difference
    ///   of the two baselines if that is larger. A drift that the readings do not show then counts in full;
    /// - the noise of idle power in the window, which is in the gross energy;
    /// - the window's ends;
    /// - the times of the baselines' readings, if the meter reports none.
    ///
    /// The degrees of freedom are the noise's (Welch and Satterthwaite, JCGM 100:2008, G.4.1). If the noise
    /// is unknown, only the two baselines show how far a mean varies, and a difference of two has one degree
    /// of freedom.
    fn detection_limit_joules(&self) -> f64 {
        let noise_watts2 = |seconds: f64| self.idle_noise.map_or(0.0, |it| it.variance_of(seconds));
        let of_baselines =
            (noise_watts2(self.idle_before_seconds) + noise_watts2(self.idle_after_seconds)) / 4.0;
        let of_window = noise_watts2(self.window_seconds);
        let half_difference = self.half_difference_watts();
        let watts2 =
            of_baselines.max(half_difference.powi(2)) + of_window + self.of_reading_times_watts2();
        let variance = watts2 * self.window_seconds.powi(2) + self.of_ends_joules2();
        let of_noise = (of_baselines + of_window) * self.window_seconds.powi(2);
        let factor = match self.idle_noise {
            Some(noise) if of_noise > 0.0 => {
                detection_factor(noise.degrees_of_freedom * (variance / of_noise).powi(2))
            }
            None if half_difference.powi(2) > 0.0 => {
                let of_difference = (half_difference * self.window_seconds).powi(2);
                detection_factor((variance / of_difference).powi(2))
            }
            _ => DETECTION_FACTOR,
        };
        factor * variance.sqrt()
    }

    fn half_difference_watts(&self) -> f64 {
        (self.idle_after_watts - self.idle_before_watts) / 2.0
    }

    /// Variance of the mean baseline by the times of its readings.
    fn of_reading_times_watts2(&self) -> f64 {
        let delta = self.timestamp_uncertainty_seconds;
        let before = self.idle_before_watts * of_times(delta, self.idle_before_seconds);
        let after = self.idle_after_watts * of_times(delta, self.idle_after_seconds);
        (before.powi(2) + after.powi(2)) / 4.0
    }

    /// Variance of the gross energy by the window's ends.
    fn of_ends_joules2(&self) -> f64 {
        (self.node_joules * self.relative_uncertainty).powi(2)
    }

    /// Whether nothing shows how much idle power varies. The readings are too few, and the times of the readings and the window's
    /// ends explain the difference of the two baselines. Two means can be nearly equal by chance.
    fn is_noise_unknown(&self) -> bool {
        let seconds2 = self.window_seconds.powi(2);
        let of_difference = self.half_difference_watts().powi(2) * seconds2;
        let of_others = self.of_reading_times_watts2() * seconds2 + self.of_ends_joules2();
        // Equal powers that are computed from counters differ by rounding.
        let is_small = of_difference <= of_others.max(ROUNDING * self.node_joules.powi(2));
        self.idle_noise.is_none() && is_small
    }
}

/// Relative standard uncertainty of an energy over `seconds`, because the exact times of its two ends are
/// unknown. Each time lies anywhere within ±δ: u = δ/√3 (JCGM 100:2008, 4.3.7). The ends are independent, at
/// the window's mean power: u(E)/E = √2·u/T.
fn of_times(delta_seconds: f64, seconds: f64) -> f64 {
    of_ends(delta_seconds, delta_seconds, seconds)
}

/// As [`of_times`], with a δ for each end.
fn of_ends(start_seconds: f64, end_seconds: f64, seconds: f64) -> f64 {
    start_seconds.hypot(end_seconds) / 3.0_f64.sqrt() / seconds
}

impl Net {
    /// Withholds the net energy if there is a reason why it would be too small.
    pub(super) fn unless(self, withheld: Option<String>) -> Self {
        match withheld {
            Some(_) => Self {
                joules: None,
                withheld,
                ..self
            },
            None => self,
        }
    }

    /// net = E − T·(B⁻ + B⁺)/2. Absent if it is not positive or is below its detection limit.
    pub(super) fn of(gross: &Gross) -> Self {
        let baseline_watts = f64::midpoint(gross.idle_before_watts, gross.idle_after_watts);
        let joules = gross.node_joules - gross.window_seconds * baseline_watts;
        let detection_limit_joules = gross.detection_limit_joules();
        let idle_seconds = gross.idle_before_seconds.min(gross.idle_after_seconds);
        let withheld = if is_baseline_too_short(idle_seconds, gross.interval_seconds) {
            Some(format!(
                "an idle baseline of {idle_seconds:.3} s is too short for a meter that is read \
                 every {:.3} s: {:.3} s are needed",
                gross.interval_seconds,
                shortest_idle_seconds(gross.interval_seconds)
            ))
        } else if gross.is_noise_unknown() {
            Some(
                "the idle baselines have too few readings to show how much idle power varies"
                    .to_owned(),
            )
        } else if joules <= 0.0 || joules < detection_limit_joules {
            Some(format!(
                "net energy of {joules:.3} J cannot be distinguished from 0: the detection limit is \
                 {detection_limit_joules:.3} J, with {:.3} W idle before and {:.3} W after",
                gross.idle_before_watts, gross.idle_after_watts
            ))
        } else {
            None
        };
        Self {
            joules: withheld.is_none().then_some(joules),
            detection_limit_joules,
            withheld,
        }
    }
}
