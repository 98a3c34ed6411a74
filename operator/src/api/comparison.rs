//! Candidates compared with each other, in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::figure::Figure;

/// Difference of a candidate from itself, from an A/A control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoiseFloor {
    /// Load settings; in a sweep, the point with the greatest share.
    #[serde(default)]
    pub point: String,
    /// Name of the candidate that took part twice.
    pub candidate: String,
    /// Ratio of the candidate's figure to its figure under the hidden name, paired by block. The expected value is
    /// 1.
    pub ratio: Figure,
    /// Distance from 1 to the farther end of the interval, as a share. With 0.02, ratios from 1/1.02 to 1.02 can't
    /// be distinguished from 1.
    pub share: f64,
}

/// Comparison of one candidate with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Load settings of the point, for example `c4-max`.
    pub point: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Name of the other candidate.
    pub against: String,
    /// Ratio of the candidate's figure to the other's, paired by block. Below 1 means less energy. Its interval
    /// has the confidence `look.claimConfidence`. Without a winner among n candidates, it has 1/(n − 1) of that error.
    /// With modelled power, the ratio is by this node's watts. Its `expanded` interval then covers every board, or
    /// every board that the stated accuracy of the watts allows. For net joules, the `expanded` interval includes
    /// idle baselines that differ by more than chance.
    pub ratio: Figure,
    /// Whether the deciding interval excludes 1 and the ratio is farther from 1 than the noise floor.
    pub separated: bool,
    /// Whether the ratio is shown to be within `energy.tieWithin` of 1; absent if the spec does not set
    /// `tieWithin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<bool>,
    /// Extremes of the ratio over all boards, for gross or attributed joules of modelled power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<BoardRange>,
    /// Boards for which the ratio is on one side of 1. Absent for measured power, and for net joules, in which the
    /// board cancels. Also absent if no board is shown to separate the two candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardVerdict>,
}

impl Comparison {
    /// Whether it shows that its candidate beats the other one. A difference that is shown to be too small to matter does not
    /// count, because it makes a tie.
    #[must_use]
    pub fn is_won(&self) -> bool {
        self.separated && self.ratio.value < 1.0 && self.equivalent != Some(true)
    }

    /// Whether the difference is shown, and is smaller than `energy.tieWithin`. Neither candidate then counts as better.
    #[must_use]
    pub fn is_within_margin(&self) -> bool {
        self.separated && self.equivalent == Some(true)
    }
}

/// Boards on which one candidate needs less energy than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BoardVerdict {
    /// On every board whose power is a straight line of CPU use. Both extremes exclude 1, on the same side, and are beyond
    /// the noise floor.
    EveryBoard,
    /// On this board, by the stated accuracy of its watts.
    StatedAccuracy,
    /// It depends on the board: one extreme excludes 1 and is beyond the noise floor. The other is not, or is on the other side.
    DependsOnBoard,
}

/// The extremes of a ratio of modelled joules. They bound the ratio on any board with the power idle watts + watts
/// per CPU × CPUs in use, with both watts at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardRange {
    /// Ratio on a board that draws only idle watts. For gross joules it is the ratio of the times per request.
    pub idle_only: Figure,
    /// Ratio on a board that draws power only for CPU time. For gross joules it is the ratio of the node's CPU
    /// times per request.
    pub cpu_only: Figure,
}

impl BoardRange {
    /// The extremes, the smaller first.
    #[must_use]
    pub fn values(&self) -> (f64, f64) {
        let (idle, cpu) = (self.idle_only.value, self.cpu_only.value);
        (idle.min(cpu), idle.max(cpu))
    }

    /// Ends of an interval that contains the intervals of both extremes.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let (idle, cpu) = (self.idle_only.bounds(), self.cpu_only.bounds());
        (idle.0.min(cpu.0), idle.1.max(cpu.1))
    }

    /// Whether the ratio is on one side of 1 on every board.
    #[must_use]
    pub fn is_separated(&self) -> bool {
        let (lower, upper) = self.bounds();
        upper < 1.0 || lower > 1.0
    }

    /// The extremes with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            idle_only: self.idle_only.rounded(),
            cpu_only: self.cpu_only.rounded(),
        }
    }
}
