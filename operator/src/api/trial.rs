//! `FrugalityTrial`: one attempt of one trial. These objects are the ledger. Only the operator writes them, and no
//! other record of the measurements exists.

// The derive macros repeat the types in a private scope; print columns repeat their types.
#![allow(unreachable_pub, clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use frugality_measure::figures::{LoadSpan, RequestFigures};
use frugality_measure::{
    batch,
    course::Course,
    energy::{EnergyFigures, Window},
    fortio::FortioResult,
    k6::K6Result,
    load::LoadResult,
    pace::InjectorCpu,
    report::ClockOffset,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    baseline::FrozenBaselines, candidate::MAX_PODS, schema::open_object, trial_load::TrialLoad,
};

/// The attempt: run, point, block, candidate and nodes.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "frugality.dev",
    version = "v1alpha1",
    kind = "FrugalityTrial",
    plural = "frugalitytrials",
    shortname = "fbt",
    category = "frugality",
    namespaced,
    status = "FrugalityTrialStatus",
    derive = "PartialEq",
    doc = "One attempt of one trial of a FrugalityBenchmark, written by the operator alone.",
    printcolumn(
        name = "Outcome",
        type_ = "string",
        json_path = ".status.outcome",
        description = "Measured, Void or Failed; blank while running"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "Reason code; the runbook explains each"
    ),
    printcolumn(
        name = "Gross/req",
        type_ = "string",
        json_path = ".status.columns.energy",
        description = "Gross energy per successful request; ~ marks modelled energy"
    ),
    printcolumn(
        name = "Req/s",
        type_ = "string",
        json_path = ".status.columns.rate",
        description = "Successful requests per second, or cycles, executions or units of work, as GROSS/REQ shows"
    ),
    printcolumn(
        name = "ms/req",
        type_ = "string",
        json_path = ".status.columns.latency",
        description = "Mean time of a successful request, cycle or execution; with a unit if it is not milliseconds per request"
    ),
    printcolumn(
        name = "Benchmark",
        type_ = "string",
        json_path = ".spec.benchmark",
        priority = 1
    ),
    printcolumn(
        name = "Point",
        type_ = "string",
        json_path = ".spec.point",
        priority = 1
    ),
    printcolumn(
        name = "Block",
        type_ = "integer",
        json_path = ".spec.block",
        priority = 1
    ),
    printcolumn(
        name = "Attempt",
        type_ = "integer",
        json_path = ".spec.attempt",
        priority = 1
    ),
    printcolumn(
        name = "Candidate",
        type_ = "string",
        json_path = ".spec.candidate",
        priority = 1
    ),
    printcolumn(
        name = "Errors",
        type_ = "string",
        json_path = ".status.columns.errors",
        priority = 1,
        description = "Requests without an expected answer"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("an entry of the ledger can't be rewritten"))]
pub struct FrugalityTrialSpec {
    /// Name of the benchmark.
    #[schemars(length(max = 63))]
    pub benchmark: String,
    /// ID of the run.
    #[schemars(length(max = 63))]
    pub run: String,
    /// Load settings, for example `c4-max`.
    #[schemars(length(max = 63))]
    pub point: String,
    /// Number of the block, from 1; 0 for the preparation of the run.
    pub block: i32,
    /// Position of the candidate within the block, from 1.
    pub position: i32,
    /// Number of the attempt at the block, from 1.
    pub attempt: i32,
    /// Name of the candidate; empty for the preparation of the run.
    #[schemars(length(max = 63))]
    pub candidate: String,
    /// Rate in requests per second, or in cycles per second, if the point is a load level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub rate_per_second: Option<f64>,
    /// Name of the measured node.
    #[schemars(length(max = 253))]
    pub measured_node: String,
    /// Name of the node that runs the injector.
    #[schemars(length(max = 253))]
    pub injector_node: String,
    /// Seed of the random order within the blocks.
    pub seed: i64,
    /// Baselines of the run, as they were when the run got its nodes. The entry is then no attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Box<FrozenBaselines>>,
    /// Images of the operator's own containers. Only the first entry of a run has them, and the whole run uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<RunImages>,
}

/// Images of the operator's own containers, as they were configured when a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunImages {
    /// Image with Fortio.
    #[schemars(length(max = 512))]
    pub injector: String,
    /// Image with k6.
    #[schemars(length(max = 512))]
    pub injector_k6: String,
    /// PostgreSQL image, if the benchmark sets none.
    #[schemars(length(max = 512))]
    pub database: String,
}

impl FrugalityTrialSpec {
    /// Whether injector and candidate share the measured node. Gross and net joules then include the injector's
    /// energy.
    #[must_use]
    pub fn is_node_shared(&self) -> bool {
        self.measured_node == self.injector_node
    }
}

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// Every check passed, and the figures count.
    Measured,
    /// A cause outside the candidate made the attempt worthless. The block is tried again.
    Void,
    /// Something did not work. The run ends with the verdict Error.
    Failed,
}

/// The record of an attempt. It is final when it has an outcome.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(oldSelf.outcome) || self == oldSelf").message("an entry of the ledger that has an outcome can't be rewritten"))]
pub struct FrugalityTrialStatus {
    /// Outcome: Measured, Void or Failed; absent while the attempt is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Reason code for the outcome; `docs/runbook.md` explains each code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub reason: Option<String>,
    /// The reason as a sentence with numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub message: Option<String>,
    /// Time when the outcome was written (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub finished_at: Option<String>,
    /// Idle baseline before the load, written before the injector starts. Times in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "window")]
    pub idle_before: Option<Window>,
    /// Measured window. Times in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "window")]
    pub window: Option<Window>,
    /// Idle baseline after the load. Times in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "window")]
    pub idle_after: Option<Window>,
    /// UIDs of the candidate's pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PODS))]
    pub candidate_pods: Vec<String>,
    /// UIDs of the database's pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub database_pods: Vec<String>,
    /// Digest of the versions of the addresses behind the attempt's Services, at the end of the idle baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub endpoints: Option<String>,
    /// Digests of the images that ran, by container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub images: BTreeMap<String, String>,
    /// Requests and limits of the containers that ran, by container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub resources: BTreeMap<String, String>,
    /// The machines of both nodes, `measured` and `injector`: a digest of the machine's ID, and the kernel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 2))]
    pub machines: BTreeMap<String, String>,
    /// Number of restarts of the candidate's containers during the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<i32>,
    /// Rows and digest of the data, read before the first idle baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseFacts>,
    /// State of the database after its restore for this attempt, before the candidate started. It has rows and
    /// digest of the seeded table, and a digest for each other kind of object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<DatabaseFacts>,
    /// Database transactions per request, warm-up and tail included. Absent without a database, or if the database
    /// did not answer after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub transactions_per_request: Option<f64>,
    /// Figures about the requests of the measured window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub requests: Option<RequestFigures>,
    /// Energy figures of the measured window, with the readings at its edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub energy: Option<EnergyFigures>,
    /// Fortio's result of the measured run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub fortio: Option<FortioResult>,
    /// k6's result of the measured window, if the benchmark has a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub k6: Option<K6Result>,
    /// Result of the executions of the measured window, if the benchmark has a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub batch: Option<batch::ExecutionsResult>,
    /// Latencies over the measured window. Present if the window was known to have at least ten minutes or a
    /// million requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub course: Option<Course>,
    /// Result of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub warm_up: Option<LoadSpan>,
    /// Result of the tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub tail: Option<LoadSpan>,
    /// Meter's clock minus injector's clock, before the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub clock: Option<ClockOffset>,
    /// Meter's clock minus injector's clock, directly after the tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub clock_after: Option<ClockOffset>,
    /// CPU use of the injector's CPUs in the measured run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub injector_cpu: Option<InjectorCpu>,
    /// Texts for `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<TrialColumns>,
}

impl FrugalityTrialStatus {
    /// The load generator's result. `None` without a load.
    #[must_use]
    pub fn load(&self) -> Option<TrialLoad<'_>> {
        let fortio = self.fortio.as_ref().map(TrialLoad::Fortio);
        let k6 = || self.k6.as_ref().map(TrialLoad::K6);
        let batch = || self.batch.as_ref().map(TrialLoad::Batch);
        fortio.or_else(k6).or_else(batch)
    }

    /// Stores the injector's result.
    pub fn set_load(&mut self, load: LoadResult) {
        match load {
            LoadResult::Fortio(result) => self.fortio = Some(result),
            LoadResult::K6(result) => self.k6 = Some(result),
            LoadResult::Batch(result) => self.batch = Some(result),
        }
    }

    /// Slope of the mean latency of expected answers in the window, in seconds per second. `None` if the window is
    /// too short, or if a container was restarted.
    #[must_use]
    pub fn latency_drift_seconds_per_second(&self) -> Option<f64> {
        let is_one_process = self.window?.is_long() && self.restarts == Some(0);
        let is_known = self.requests.as_ref()?.ms_per_request.is_some();
        let course = self.course.as_ref();
        course
            .filter(|_| is_one_process && is_known)?
            .drift_seconds_per_second()
    }
}

/// State of the database at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseFacts {
    /// Rows of the seeded table.
    pub rows: i64,
    /// Digest over all rows of the seeded table.
    #[schemars(length(max = 64))]
    pub digest: String,
    /// Digests by kind of object, such as `indexes` or `settings`. `clusterGeneration` is not a digest, but the
    /// generation of CloudNativePG's Cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub state: BTreeMap<String, String>,
}

/// Texts for `kubectl get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialColumns {
    /// Gross joules per successful request. `~` marks modelled energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<String>,
    /// Successful requests per second, or cycles, executions or units of work. `energy` names the unit; without it,
    /// this text does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Mean milliseconds per successful request. With a unit if it is not per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// Requests without an expected answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
}

/// Schema of a window, in Unix seconds of the measured node's clock.
fn window(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "nullable": true,
        "properties": {
            "startUnixSeconds": { "type": "number", "description": "Start of the window." },
            "endUnixSeconds": { "type": "number", "description": "End of the window." },
        },
        "required": ["startUnixSeconds", "endUnixSeconds"],
    })
}
