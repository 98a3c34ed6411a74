//! `FrugalityTrace`: the course of one attempt. Only the operator creates these objects, and nothing reads them to
//! decide.

// The derive macros repeat the types in a private scope; print columns repeat their types.
#![allow(unreachable_pub, clippy::duplicated_attributes)]

use frugality_measure::{
    energy::{MOST_PHASES, TracePhase},
    reading::Provenance,
    slices::Slices,
};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The attempt, and its course.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "frugality.dev",
    version = "v1alpha1",
    kind = "FrugalityTrace",
    plural = "frugalitytraces",
    shortname = "fbtr",
    category = "frugality",
    namespaced,
    derive = "PartialEq",
    doc = "Power, CPU time, memory, temperature, clock, requests and latencies over the time of one attempt, written by the operator alone. It has the name of its FrugalityTrial, and is deleted with it. No verdict depends on it, and an attempt may have none.",
    printcolumn(name = "Benchmark", type_ = "string", json_path = ".spec.benchmark"),
    printcolumn(
        name = "Point",
        type_ = "string",
        json_path = ".spec.point",
        priority = 1
    ),
    printcolumn(name = "Candidate", type_ = "string", json_path = ".spec.candidate"),
    printcolumn(name = "Block", type_ = "integer", json_path = ".spec.block"),
    printcolumn(
        name = "Attempt",
        type_ = "integer",
        json_path = ".spec.attempt",
        priority = 1
    ),
    printcolumn(
        name = "Power",
        type_ = "string",
        json_path = ".spec.provenance",
        description = "Source of the node's power"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("the course of an attempt can't be rewritten"))]
pub struct FrugalityTraceSpec {
    /// Name of the benchmark.
    #[schemars(length(max = 63))]
    pub benchmark: String,
    /// ID of the run.
    #[schemars(length(max = 63))]
    pub run: String,
    /// Load settings, for example `c4-max`.
    #[schemars(length(max = 63))]
    pub point: String,
    /// Number of the block, from 1.
    pub block: i32,
    /// Number of the attempt at the block, from 1.
    pub attempt: i32,
    /// Name of the candidate.
    #[schemars(length(max = 63))]
    pub candidate: String,
    /// How the node's power was obtained. If the readings differ, the least trustworthy source.
    pub provenance: Provenance,
    /// The course of each phase, in the order of time. All phases together have at most 100 points.
    #[schemars(length(max = MOST_PHASES))]
    pub phases: Vec<TracePhase>,
    /// Requests and latencies over the measured window, from its begin. Absent if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
}
