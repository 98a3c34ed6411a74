//! `FrugalityBaseline`: the release that new releases of one service are compared with; and `spec.baseline`, by which
//! a benchmark asks for the comparison.

// The derive macros repeat the types in a private scope; print columns repeat their types.
#![allow(unreachable_pub, clippy::duplicated_attributes)]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{candidate::Candidate, quantity::Decimal, schema::open_object, status::Verdict};

/// Name under which a baseline's candidate takes part in a benchmark.
pub const BASELINE: &str = "baseline";
/// Name under which an anchor's candidate takes part in a benchmark.
pub const ANCHOR: &str = "anchor";
/// Annotation on a promoted baseline: UID of the benchmark, ID of the run, and name of the candidate that was promoted.
pub const PROMOTED_BY: &str = "frugality.dev/promoted-by";
/// Most earlier releases in the status of a baseline.
pub const MAX_PREVIOUS: usize = 10;

/// The released version of one service.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "frugality.dev",
    version = "v1alpha1",
    kind = "FrugalityBaseline",
    plural = "frugalitybaselines",
    shortname = "fbl",
    category = "frugality",
    namespaced,
    status = "FrugalityBaselineStatus",
    derive = "PartialEq",
    doc = "The release before: the candidate that new releases of a service are measured against.",
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.candidate.image",
        description = "Image that takes part in benchmarks"
    ),
    printcolumn(
        name = "Promoted-From",
        type_ = "string",
        json_path = ".status.promotedFrom.benchmark",
        description = "Benchmark whose verdict Pass wrote the image in PROMOTED-IMAGE; blank if only people have written the baseline"
    ),
    printcolumn(
        name = "Pinned",
        type_ = "boolean",
        json_path = ".spec.pinned",
        priority = 1,
        description = "Whether only people change the baseline"
    ),
    printcolumn(
        name = "Promoted-Image",
        type_ = "string",
        json_path = ".status.promotedFrom.image",
        priority = 1,
        description = "Image that the last promotion wrote. If IMAGE differs, a person has changed it since"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("self.candidate.image.matches('@sha256:[0-9a-f]{64}$')").message("a baseline's candidate.image needs a digest, because a tag can be moved to another image: write for example ghcr.io/you/shop@sha256: and the 64 digits that docker images --digests or crane digest prints"),
    validation = Rule::new("!has(self.candidate.backends) || self.candidate.backends.all(b, b.image.matches('@sha256:[0-9a-f]{64}$'))").message("a baseline's candidate.backends need images with a digest (@sha256: and 64 digits), because a tag can be moved to another image"),
    validation = Rule::new("!has(self.candidate.measuredNodeSelector)").message("a baseline is measured on the node of the benchmark that compares with it: leave out candidate.measuredNodeSelector"),
)]
pub struct FrugalityBaselineSpec {
    /// The released version, with all its settings, as in `spec.candidates` of a benchmark. Images need a digest.
    /// The name is free: the candidate takes part as `baseline` or `anchor`.
    pub candidate: Candidate,
    /// Whether only people change this baseline. Default: false. The operator then never promotes a candidate to
    /// it. Set it for an anchor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// Where the candidate came from, written by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrugalityBaselineStatus {
    /// The run whose verdict promoted the candidate. If `image` differs from the spec's, a person has changed the
    /// spec since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<PromotedFrom>,
    /// Earlier releases, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PREVIOUS), extend("x-kubernetes-list-type" = "atomic"))]
    pub previous: Vec<PreviousRelease>,
}

/// A promotion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotedFrom {
    /// Name of the benchmark.
    #[schemars(length(max = 63))]
    pub benchmark: String,
    /// UID of the benchmark.
    #[schemars(length(max = 63))]
    pub uid: String,
    /// ID of the run.
    #[schemars(length(max = 63))]
    pub run: String,
    /// Generation of the benchmark's spec that was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Name of the candidate that was promoted. Absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15))]
    pub candidate: Option<String>,
    /// Image that was promoted.
    #[schemars(length(max = 512))]
    pub image: String,
    /// SHA-256 over the ledger entries that the figures come from.
    #[schemars(length(max = 128))]
    pub ledger_digest: String,
    /// Verdict of the run.
    pub verdict: Verdict,
    /// Reason code of the verdict. `NoBaseline` means that the release was compared with nothing.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// Number of runs with the same settings, if there were several. The verdict is then one of several tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<i32>,
    /// Time of the promotion (RFC 3339).
    #[schemars(length(max = 64))]
    pub at: String,
}

impl PromotedFrom {
    /// Whether this is the promotion of the same candidate after the same run. An edit of `baseline.candidate` starts no
    /// other run, and neither does an edit of the budgets.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_candidate = match (&self.candidate, &other.candidate) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.uid == other.uid
            && self.run == other.run
            && self.image == other.image
            && is_same_candidate
    }
}

/// An earlier release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousRelease {
    /// Image of the release.
    #[schemars(length(max = 512))]
    pub image: String,
    /// The promotion that wrote the image; absent if a person wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted_from: Option<PromotedFrom>,
}

/// Comparison with the release before, which is measured again in the same blocks.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.anchor) == has(self.anchorMaxEnergyRatio)").message("baseline.anchor and baseline.anchorMaxEnergyRatio go together: write both, for example anchor: shop-2026 and anchorMaxEnergyRatio: 1.10, or none"),
    validation = Rule::new("!has(self.anchor) || self.anchor != self.name").message("baseline.anchor must be another FrugalityBaseline than baseline.name: an anchor stays, and promotions move the baseline"),
)]
pub struct Baseline {
    /// Name of a FrugalityBaseline in the benchmark's namespace. Its candidate takes part in every block as
    /// `baseline`. The operator reads it when the run gets its nodes. A later change does not affect the run.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Name of the candidate that is compared. Default: the only candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub candidate: Option<String>,
    /// Non-inferiority margin: largest ratio of the candidate's deciding figure to the baseline's figure. For
    /// example, `1.03` allows at most 3 % more energy. The verdict is Pass only if the whole interval of the ratio
    /// is below the margin.
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("baseline.maxEnergyRatio must be above 0, for example 1.03"))]
    pub max_energy_ratio: Decimal,
    /// Name of a second FrugalityBaseline that only people change. Its candidate takes part as `anchor`. It limits
    /// what many small steps add up to. The run does not begin without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub anchor: Option<String>,
    /// Largest ratio of the candidate's deciding figure to the anchor's figure, for example `1.10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("baseline.anchorMaxEnergyRatio must be above 0, for example 1.10"))]
    pub anchor_max_energy_ratio: Option<Decimal>,
    /// Verdict if no FrugalityBaseline of this name exists when the run gets its nodes, as for the first release.
    /// The candidate is measured, and its other budgets are judged. If all of them are met, the verdict is
    /// `Inconclusive` (default) or `Pass`, with the reason `NoBaseline`.
    #[serde(default)]
    pub when_missing: WhenMissing,
    /// Whether a Pass makes the candidate the new baseline. `Never` (default): only people change the
    /// FrugalityBaseline. `OnPass`: the operator writes the candidate into it, or creates it. The candidate's
    /// images need a digest. If the FrugalityBaseline has changed since the run began, the operator does not overwrite it.
    #[serde(default)]
    pub promote: Promote,
}

/// Verdict without a baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum WhenMissing {
    Pass,
    #[default]
    Inconclusive,
}

/// When the candidate becomes the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Promote {
    #[default]
    Never,
    OnPass,
}

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

impl FrozenBaseline {
    /// The current state of a FrugalityBaseline.
    #[must_use]
    pub fn of(baseline: &FrugalityBaseline) -> Self {
        let metadata = &baseline.metadata;
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            candidate: baseline.spec.candidate.clone(),
        }
    }
}
