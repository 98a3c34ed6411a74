//! A power model that is a straight line of CPU use: P = idle watts + watts per CPU × CPUs in use.
//!
//! Its energy over a time is idle watts × time + watts per CPU × CPU time, with both coefficients at
//! least 0. Two conclusions need neither coefficient:
//!
//! - The energy of one load over that of another lies between the ratio of their times and the ratio of
//!   their CPU times, because a mediant lies between its two fractions.
//! - What the load adds to the idle power is proportional to CPU time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Coverage factor of an expanded uncertainty, for about 95 % (JCGM 100:2008, 6.3.3).
pub const COVERAGE: f64 = 2.0;

/// The model's coefficients for one node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearModel {
    /// Power with nothing to do, in watts.
    pub idle_watts: f64,
    /// Power that one busy CPU adds, in watts.
    pub watts_per_cpu: f64,
    /// How well the two are known; absent where this was not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<ModelUncertainty>,
}

/// Relative standard uncertainties of a model's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUncertainty {
    /// Of the idle watts, as a share of them.
    pub idle_watts: f64,
    /// Of the watts per CPU, as a share of them.
    pub watts_per_cpu: f64,
}

/// An amount of energy as a straight line makes it: in time, and in CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// What the idle watts multiply, in seconds.
    pub idle_seconds: f64,
    /// What the watts per CPU multiply, in seconds.
    pub cpu_seconds: f64,
}

impl LinearModel {
    /// Energy, in joules.
    #[must_use]
    pub fn joules(&self, parts: Parts) -> f64 {
        self.idle_watts * parts.idle_seconds + self.watts_per_cpu * parts.cpu_seconds
    }

    /// Relative standard uncertainty of such an energy. The two coefficients may be correlated in any way: they often
    /// come from one measurement. Their contributions therefore add linearly, which bounds every correlation (JCGM
    /// 100:2008, 5.2.2). `None` where the coefficients' uncertainty is unknown, or the energy is 0.
    #[must_use]
    pub fn relative_uncertainty(&self, parts: Parts) -> Option<f64> {
        let uncertainty = self.uncertainty?;
        let joules = self.joules(parts);
        let of_parts = self.idle_watts * uncertainty.idle_watts * parts.idle_seconds
            + self.watts_per_cpu * uncertainty.watts_per_cpu * parts.cpu_seconds;
        (joules > 0.0).then(|| of_parts / joules)
    }

    /// CPU time that an energy over a time implies, in seconds. `None` if CPU time costs nothing.
    #[must_use]
    pub fn cpu_seconds(&self, joules: f64, seconds: f64) -> Option<f64> {
        let of_cpu = joules - self.idle_watts * seconds;
        (self.watts_per_cpu > 0.0).then(|| (of_cpu / self.watts_per_cpu).max(0.0))
    }

    /// The models at both ends of what the stated uncertainty allows, expanded. First the one that draws most for time and
    /// least for CPU time, then the reverse: a ratio of two energies has its extremes there. `None` where
    /// the uncertainty is unknown.
    #[must_use]
    pub fn extremes(&self) -> Option<[Self; 2]> {
        let uncertainty = self.uncertainty?;
        let idle = (COVERAGE * uncertainty.idle_watts).exp();
        let per_cpu = (COVERAGE * uncertainty.watts_per_cpu).exp();
        Some([
            Self {
                idle_watts: self.idle_watts * idle,
                watts_per_cpu: self.watts_per_cpu / per_cpu,
                ..*self
            },
            Self {
                idle_watts: self.idle_watts / idle,
                watts_per_cpu: self.watts_per_cpu * per_cpu,
                ..*self
            },
        ])
    }
}

impl ModelUncertainty {
    /// The larger of the two. It bounds the relative standard uncertainty of every energy of the model.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.idle_watts.max(self.watts_per_cpu)
    }
}

impl fmt::Display for LinearModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (idle, per_cpu) = (short(self.idle_watts), short(self.watts_per_cpu));
        match self.uncertainty {
            Some(known) => write!(
                f,
                "{idle} W idle (u = {} %) + {per_cpu} W per CPU (u = {} %)",
                short(100.0 * known.idle_watts),
                short(100.0 * known.watts_per_cpu)
            ),
            None => write!(f, "{idle} W idle + {per_cpu} W per CPU, accuracy unknown"),
        }
    }
}

/// At most four decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
