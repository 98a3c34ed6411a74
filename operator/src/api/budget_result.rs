//! What became of the limits, in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::figure::Figure;

/// Result of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetOutcome {
    /// The whole interval is within the limit.
    Met,
    /// The whole interval is beyond the limit.
    Exceeded,
    /// The limit lies inside the interval, or the excess is too small to count among several limits.
    Undecided,
    /// The limit is closer to 1 than the noise floor.
    BelowNoiseFloor,
    /// There is no trustworthy figure to compare.
    Withheld,
}

/// A limit and its figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetResult {
    /// Load settings of the point at which the limit is decided. Empty for a figure of all load levels, and for a
    /// limit with `atMost` whose figure is withheld.
    #[serde(default)]
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Name of the limit's field in the budget.
    pub limit: String,
    /// Name of the other candidate of a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15))]
    pub against: Option<String>,
    /// Value of the limit, in the unit of its field.
    pub limit_value: f64,
    /// `atMost.p99Milliseconds` of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_milliseconds: Option<f64>,
    /// Figure that the limit applies to. Its interval has the confidence `look.claimConfidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// Result of the limit.
    pub outcome: BudgetOutcome,
    /// Result as a sentence with numbers.
    pub message: String,
}
