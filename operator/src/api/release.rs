//! The releases before, in the ledger and in the status of a benchmark.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{candidate::Candidate, figure::Figure, schema::open_object};

/// Baselines of a run, as they were when the run got its nodes. Absent: no such FrugalityBaseline existed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenBaselines {
    /// The baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<FrozenBaseline>,
    /// The anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<FrozenBaseline>,
}

/// A FrugalityBaseline at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenBaseline {
    /// Name of the FrugalityBaseline.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID of the FrugalityBaseline.
    #[schemars(length(max = 63))]
    pub uid: String,
    /// Generation of its spec.
    pub generation: i64,
    /// Its candidate.
    #[schemars(schema_with = "open_object")]
    pub candidate: Candidate,
}

/// The comparison with the release before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaselineResult {
    /// Candidate that is compared.
    #[schemars(length(max = 15))]
    pub candidate: String,
    /// The baseline.
    pub baseline: ReleaseRatio,
    /// The anchor, if the spec names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<ReleaseRatio>,
    /// State of the promotion, if the spec asks for it and the verdict is Pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionState>,
    /// Why the candidate was not promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub not_promoted_because: Option<String>,
}

/// A release, and the candidate's figure divided by the release's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRatio {
    /// Name of the FrugalityBaseline.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Image of the release. Absent if there was no FrugalityBaseline of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Ratio of the candidate's deciding figure to the release's figure, paired by block. Its interval has the
    /// confidence `look.claimConfidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_ratio: Option<Figure>,
    /// The margin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_energy_ratio: Option<f64>,
}

/// State of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PromotionState {
    /// The operator is writing the FrugalityBaseline.
    Pending,
    /// The candidate has become the baseline.
    Promoted,
    /// The operator did not change the FrugalityBaseline.
    NotPromoted,
}
