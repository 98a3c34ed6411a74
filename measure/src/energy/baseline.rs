//! The idle baseline, what is left above it, and whether that can be told from nothing.

use super::checks::Evidence;
use super::ends;
use super::{ROUNDING_SECONDS, Void};

/// What net energy is computed from.
pub(super) struct Gross {
    pub(super) node_joules: f64,
    pub(super) window_seconds: f64,
    pub(super) idle_before_watts: f64,
    pub(super) idle_after_watts: f64,
    pub(super) idle_before_seconds: f64,
    pub(super) idle_after_seconds: f64,
    pub(super) interval_seconds: f64,
    pub(super) timestamp_uncertainty_seconds: f64,
    /// Standard uncertainty of `node_joules` relative to it: of its times, and of what happens between
    /// readings at its ends. The meter's accuracy is not in it: it is common to all trials.
    pub(super) relative_uncertainty: f64,
}

/// Net energy with what it had to exceed.
pub(super) struct Net {
    pub(super) joules: Option<f64>,
    pub(super) detection_limit_joules: f64,
    pub(super) withheld: Option<String>,
}

/// Detection limit over standard uncertainty, for 5 % of false alarms and 5 % of misses:
/// `L_D` = 3.29 σ (L. A. Currie, Analytical Chemistry 40 (1968) 586, with a constant σ).
const DETECTION_FACTOR: f64 = 3.29;

/// A baseline over less than this many of the meter's intervals is mostly the readings around it,
/// which belong to other load.
const MIN_IDLE_INTERVALS: f64 = 2.0;

impl Gross {
    pub(super) fn of(evidence: &Evidence<'_>) -> Result<Self, Void> {
        let Evidence { attempt, series } = evidence;
        let node_joules = series.node_joules(attempt.measured)?;
        let window_seconds = attempt.measured.seconds();
        let idle_before_watts =
            series.node_joules(attempt.idle_before)? / attempt.idle_before.seconds();
        let idle_after_watts =
            series.node_joules(attempt.idle_after)? / attempt.idle_after.seconds();
        // Above the idle baselines; 0 where it is below them.
        let idle_watts = f64::midpoint(idle_before_watts, idle_after_watts);
        let load_watts = (node_joules / window_seconds - idle_watts).max(0.0);
        let timestamp_uncertainty_seconds = series.timestamp_uncertainty_seconds();
        Ok(Self {
            node_joules,
            window_seconds,
            idle_before_watts,
            idle_after_watts,
            idle_before_seconds: attempt.idle_before.seconds(),
            idle_after_seconds: attempt.idle_after.seconds(),
            interval_seconds: series.interval_seconds(),
            timestamp_uncertainty_seconds,
            relative_uncertainty: of_times(timestamp_uncertainty_seconds, window_seconds).hypot(
                ends::relative_uncertainty(evidence, node_joules, load_watts),
            ),
        })
    }

    /// Standard uncertainty of the net energy, in joules. The baseline is the mean of two, so its
    /// own is |B⁺ − B⁻|/2: the standard deviation of two values over √2. The window adds its own, the
    /// baselines that of their times.
    fn net_uncertainty_joules(&self) -> f64 {
        let spread_watts = (self.idle_after_watts - self.idle_before_watts).abs() / 2.0;
        let delta = self.timestamp_uncertainty_seconds;
        let before = self.idle_before_watts * of_times(delta, self.idle_before_seconds);
        let after = self.idle_after_watts * of_times(delta, self.idle_after_seconds);
        let baseline_watts = spread_watts.hypot(before.hypot(after) / 2.0);
        (baseline_watts * self.window_seconds).hypot(self.node_joules * self.relative_uncertainty)
    }
}

/// Standard uncertainty of an energy over `seconds` relative to it, from not knowing the exact times of its
/// two ends. Each time lies anywhere within ±δ: u = δ/√3 (JCGM 100:2008, 4.3.7), and the ends are
/// independent, at the window's mean power: u(E)/E = √2·u/T.
fn of_times(delta_seconds: f64, seconds: f64) -> f64 {
    2.0_f64.sqrt() * delta_seconds / 3.0_f64.sqrt() / seconds
}

impl Net {
    /// net = E − T·(B⁻ + B⁺)/2, where it is positive and not below its detection limit.
    pub(super) fn of(gross: &Gross) -> Self {
        let baseline_watts = f64::midpoint(gross.idle_before_watts, gross.idle_after_watts);
        let joules = gross.node_joules - gross.window_seconds * baseline_watts;
        let detection_limit_joules = DETECTION_FACTOR * gross.net_uncertainty_joules();
        let idle_seconds = gross.idle_before_seconds.min(gross.idle_after_seconds);
        let needed_seconds = MIN_IDLE_INTERVALS * gross.interval_seconds;
        let withheld = if idle_seconds + ROUNDING_SECONDS < needed_seconds {
            Some(format!(
                "an idle baseline of {idle_seconds:.3} s is too short for a meter that is read \
                 every {:.3} s: {needed_seconds:.3} s are needed",
                gross.interval_seconds
            ))
        } else if joules <= 0.0 || joules < detection_limit_joules {
            Some(format!(
                "net energy of {joules:.3} J cannot be told from 0: the detection limit is \
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
