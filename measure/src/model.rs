//! A power model that is linear in CPU use: P = idle watts + watts per CPU × CPUs in use.
//!
//! Its energy over a time is idle watts × time + watts per CPU × CPU time, with both coefficients at least 0.
//! Two conclusions need neither coefficient:
//!
//! - The ratio of two loads' energies lies between the ratio of their times and the ratio of their CPU times,
//!   because a mediant lies between its two fractions.
//! - The power that the load adds to the idle power is proportional to CPU time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Coverage factor of an expanded uncertainty, for about 95 % (JCGM 100:2008, 6.3.3).
pub const COVERAGE: f64 = 2.0;

/// The model's coefficients for one node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LinearModel {
    /// Power without load, in watts.
    pub idle_watts: f64,
    /// Power that one busy CPU adds, in watts.
    pub watts_per_cpu: f64,
    /// Uncertainty of the two coefficients. Absent if it was not specified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<ModelUncertainty>,
}

/// Relative standard uncertainties of a model's coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelUncertainty {
    /// Relative standard uncertainty of the idle watts.
    pub idle_watts: f64,
    /// Relative standard uncertainty of the watts per CPU.
    pub watts_per_cpu: f64,
}

/// An amount of energy in the linear model: its time and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// The factor of the idle watts, in seconds.
    pub idle_seconds: f64,
    /// The factor of the watts per CPU, in CPU-seconds.
    pub cpu_seconds: f64,
}

impl LinearModel {
    /// Energy, in joules.
    #[must_use]
    pub fn joules(&self, parts: Parts) -> f64 {
        self.idle_watts * parts.idle_seconds + self.watts_per_cpu * parts.cpu_seconds
    }

    /// Relative standard uncertainty of such an energy. The two coefficients often come from one measurement
    /// and may have any correlation. Their contributions therefore add linearly, which bounds every
    /// correlation (JCGM 100:2008, 5.2.2). `None` if the coefficients' uncertainty is unknown, or if the
    /// energy is 0.
    #[must_use]
    pub fn relative_uncertainty(&self, parts: Parts) -> Option<f64> {
        let uncertainty = self.uncertainty?;
        let joules = self.joules(parts);
        let of_parts = self.idle_watts * uncertainty.idle_watts * parts.idle_seconds
            + self.watts_per_cpu * uncertainty.watts_per_cpu * parts.cpu_seconds;
        (joules > 0.0).then(|| of_parts / joules)
    }

    /// CPU time that follows from an energy over a time, in seconds. `None` if CPU time takes no energy.
    #[must_use]
    pub fn cpu_seconds(&self, joules: f64, seconds: f64) -> Option<f64> {
        let of_cpu = joules - self.idle_watts * seconds;
        (self.watts_per_cpu > 0.0).then(|| (of_cpu / self.watts_per_cpu).max(0.0))
    }

    /// The models at both ends of the expanded uncertainty. The first draws most for time and least for CPU
    /// time; the second is the reverse. A ratio of two energies has its extremes there. `None` if the
    /// uncertainty is unknown.
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

/// Formats a value with at most four decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
