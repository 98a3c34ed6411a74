//! A figure with its interval, and the kinds of joules.

use frugality_measure::significant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pods that attributed joules cover. Gross and net joules cover the whole measured node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Boundary {
    #[default]
    CandidateAndDatabase,
    Candidate,
}

/// The kind of joules that decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs)]
pub enum DecidingFigure {
    Gross,
    Net,
    Attributed,
    #[strum(serialize = "net attributed")]
    NetAttributed,
}

impl DecidingFigure {
    /// The word that texts put next to joules.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A figure with its interval over the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Geometric mean over the trials. Arithmetic mean for the error ratio, the growth of memory and the drift of
    /// latency.
    pub value: f64,
    /// Lower end of the t-interval, with the confidence in `status.look`.
    pub lower: f64,
    /// Upper end of the t-interval, with the confidence in `status.look`.
    pub upper: f64,
    /// Interval that also includes uncertainty which the spread between trials does not show; for joules. Budgets
    /// are decided on this interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expanded: Option<Expanded>,
}

/// The interval value·exp(±U), U² = (t·u_A)² + (2·u_B)². u_B is the timing error at the window's edges and, if the
/// meter reports its accuracy, the meter's accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expanded {
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
    /// Whether the interval includes the meter's accuracy. False if the meter reported no accuracy in a trial.
    pub covers_meter: bool,
    /// True if power is modelled and the accuracy of the model is unknown. The interval then shows only how well
    /// the figure repeats on this model, and nothing about joules. Such a figure is shown as `~x`, without an
    /// interval.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeatability_only: bool,
}

impl Figure {
    /// A number without an interval: that of a single trial.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self {
            value,
            lower: value,
            upper: value,
            expanded: None,
        }
    }

    /// Whether the whole interval that decides is on one side of 1, for a ratio.
    #[must_use]
    pub fn excludes_one(&self) -> bool {
        let (lower, upper) = self.bounds();
        upper < 1.0 || lower > 1.0
    }

    /// The figure multiplied by a factor above 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            lower: self.lower * factor,
            upper: self.upper * factor,
            expanded: self.expanded.map(|expanded| Expanded {
                lower: expanded.lower * factor,
                upper: expanded.upper * factor,
                ..expanded
            }),
        }
    }

    /// The figure with seven digits. That is more than any meter's accuracy, and a status has little room.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            value: seven_digits(self.value),
            lower: seven_digits(self.lower),
            upper: seven_digits(self.upper),
            expanded: self.expanded.map(|expanded| Expanded {
                lower: seven_digits(expanded.lower),
                upper: seven_digits(expanded.upper),
                ..expanded
            }),
        }
    }

    /// Whether the accuracy is unknown. If so, no interval is shown.
    #[must_use]
    pub fn is_repeatability_only(&self) -> bool {
        self.expanded.is_some_and(|e| e.repeatability_only)
    }

    /// Ends of the deciding interval: the expanded interval if there is one, else the t-interval.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        self.expanded
            .map_or((self.lower, self.upper), |e| (e.lower, e.upper))
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The value with the seven digits that figures have in a status.
#[must_use]
pub fn seven_digits(value: f64) -> f64 {
    significant(value, 7)
}
