//! The input of a pass: plain data, which `observe` reads once. Every decision follows from these data.

pub mod addresses;
pub mod contents;
mod peer;
pub mod placement;
pub mod pods;
mod refusal;
pub mod scheduling;
mod session;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements, Toleration};

pub use self::{
    peer::Peer,
    refusal::{AfterRefusal, Refusal},
    session::{Session, is_preflight, preflight},
};
use crate::{
    api::{FrugalityBaseline, FrugalityTrial},
    plan::{
        facts::{
            addresses::{Endpoints, ServiceFacts},
            contents::Contents,
        },
        names,
    },
};

/// Settings of the operator that decisions depend on. They come from the operator's command line, never from a
/// benchmark.
#[derive(Clone, Debug)]
pub struct Config {
    /// Image with Fortio and `frugality-injector`.
    pub injector_image: String,
    /// Image with k6 and `frugality-injector`, for loads that k6 sends.
    pub injector_k6_image: String,
    /// PostgreSQL image, if a benchmark sets none.
    pub database_image: String,
    /// Port of the meters.
    pub meter_port: u16,
    /// A power that no measured node can exceed, in watts; `None` if the installation sets none.
    pub max_node_watts: Option<f64>,
    /// URL at which the operator reports the time of its clock, for meters that report no time.
    pub time_url: Option<String>,
    /// What the installation gives to the pods of all benchmarks.
    pub pods: PodPolicy,
}

/// What the installation gives to the pods of all benchmarks. A spec can't change it.
#[derive(Clone, Debug, Default)]
pub struct PodPolicy {
    /// Requests and limits of the injector's container.
    pub injector_resources: ResourceRequirements,
    /// Requests and limits of the containers that seed, check and count the database, and of the container that
    /// installs a batch's runner.
    pub helper_resources: ResourceRequirements,
    /// Taints that the pods tolerate. The operator uses a node if the pods tolerate all its taints.
    pub tolerations: Vec<Toleration>,
    /// PriorityClass of the pods; `None`: the cluster's default.
    pub priority_class_name: Option<String>,
    /// Secrets of the benchmark's namespace with which kubelet pulls the images of pods, in addition to the candidate's
    /// own. CloudNativePG's pods have none.
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// Everything that one pass read from the cluster.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Every other benchmark of the cluster.
    pub peers: Vec<Arc<Peer>>,
    /// The locks of all nodes that are or were in use.
    pub locks: Vec<Lock>,
    /// Nodes of the cluster.
    pub nodes: Vec<NodeFacts>,
    /// Pods of this benchmark.
    pub pods: Vec<PodFacts>,
    /// Pods of other benchmarks that still exist.
    pub foreign_pods: Vec<ForeignPod>,
    /// Objects that this benchmark made, except pods and ledger.
    pub children: Vec<Child>,
    /// Addresses behind the benchmark's Services.
    pub endpoints: Vec<Endpoints>,
    /// The benchmark's PostgreSQL, if CloudNativePG runs it.
    pub database: Option<ClusterFacts>,
    /// Whether the cluster knows CloudNativePG's resource.
    pub cloud_native_pg_installed: bool,
    /// The ledger of this benchmark, with all its runs.
    pub trials: Vec<FrugalityTrial>,
    /// The FrugalityBaselines that the spec names, by name, if they exist.
    pub baselines: BTreeMap<String, FrugalityBaseline>,
    /// Entries of the ledger whose stored form can't be read.
    pub unreadable: Vec<Unreadable>,
    /// How far the operator's clock is ahead of the API server's, in seconds; 0 if no difference is visible. Times
    /// of sessions are the operator's, all other times are the cluster's.
    pub operator_ahead_seconds: f64,
    /// The meter reader's sessions for this benchmark, by the name of the trial (or [`preflight`]).
    pub sessions: BTreeMap<String, Session>,
    /// Whether the operator has no right to run a benchmark in the benchmark's namespace. Only asked before a run
    /// begins.
    pub namespace_forbidden: bool,
    /// The object that the API server refused to create, and why.
    pub refused: Option<Refusal>,
    /// The reason for waiting in the last passes, and its start in Unix seconds.
    pub waiting_since: Option<(String, f64)>,
}

impl Observed {
    /// Whether an attempt is under load, or in the idle baseline after it.
    #[must_use]
    pub fn is_under_load(&self) -> bool {
        let mut statuses = self.trials.iter().filter_map(|trial| trial.status.as_ref());
        statuses.any(|status| status.outcome.is_none() && status.idle_before.is_some())
    }
}

/// The right to use a node, which one benchmark holds at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Its name, which follows from the name of the node.
    pub name: String,
    /// UID and `namespace/name` of the benchmark that holds it.
    pub holder: Option<(String, String)>,
    /// When the holder took the lock, in Unix seconds.
    pub acquired_unix_seconds: Option<f64>,
    /// Version that a write replaces. Of two operators that take the lock at once, only one succeeds.
    pub resource_version: String,
}

/// A pod whose label names another benchmark. Any user can write that label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignPod {
    /// `namespace/name`.
    pub name: String,
    /// UID of the benchmark that its label names.
    pub benchmark_uid: String,
    /// Node that the pod is on, or that its spec asks for; `None` if it names no node.
    pub node: Option<String>,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// Whether one of its containers runs.
    pub running: bool,
    /// When its deletion began, in Unix seconds; `None` if it is not being deleted.
    pub deleting_since_unix_seconds: Option<f64>,
}

/// An entry of the ledger whose stored form can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Name.
    pub name: String,
    /// Run that it belongs to, by its label.
    pub run: Option<String>,
    /// The parser's error.
    pub error: String,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: String,
    /// Whether the node accepts new pods now.
    pub schedulable: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// IP address of the node's meter, if the meter is ready.
    pub meter_ip: Option<String>,
    /// Digest of its machine's ID, and its kernel. Another machine can join under the same name.
    pub machine: Option<String>,
}

/// Kind of an object that a benchmark makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    /// `apps/v1 Deployment`.
    Deployment,
    /// `v1 Service`.
    Service,
    /// `batch/v1 Job`.
    Job,
    /// `v1 Secret`. The operator can create it but not read it. It belongs to a Service and is deleted with it.
    Secret,
    /// `postgresql.cnpg.io/v1 Cluster`.
    Cluster,
}

/// An object that this benchmark made.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Kind.
    pub kind: ChildKind,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Run that it belongs to.
    pub run: String,
    /// Trial that it belongs to, if it belongs to one.
    pub trial: Option<String>,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Why its newest pod could not be created, in the API server's words; `None` if no pod was refused.
    pub pods_refused: Option<String>,
    /// How often its spec was written; 1 if only at its creation. `None` if the API server does not count that.
    pub generation: Option<i64>,
    /// Whether it is a Job that has ended and makes no more pods.
    pub ended: bool,
    /// Which pods answer, if it is a Service.
    pub service: Option<ServiceFacts>,
}

impl Child {
    /// Whether it is the Job that fills or restores the database of this run.
    #[must_use]
    pub fn is_seed_job(&self, benchmark: &str, run: &str) -> bool {
        self.kind == ChildKind::Job && names::is_seed_name(&self.name, benchmark, run)
    }
}

/// A pod of this benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodFacts {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Value of its role label.
    pub role: String,
    /// Run that it belongs to.
    pub run: String,
    /// Trial that it belongs to, if it belongs to one.
    pub trial: Option<String>,
    /// Name of its server in the candidate, if it is a candidate's pod.
    pub workload: Option<String>,
    /// Hostname label of the node that its spec asks for.
    pub hostname: Option<String>,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// When the scheduler chose its node, in Unix seconds.
    pub scheduled_unix_seconds: Option<f64>,
    /// When it became ready, in Unix seconds; `None` if it is not ready.
    pub ready_since_unix_seconds: Option<f64>,
    /// When the newest of its running containers started, in Unix seconds.
    pub started_unix_seconds: Option<f64>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether all its containers have ended and none will start again.
    pub ended: bool,
    /// Why the cluster ended or evicted it, as reason and message.
    pub evicted: Option<String>,
    /// Why a container waits, as reason and message.
    pub waiting: Option<(String, String)>,
    /// Restarts of its containers.
    pub restarts: i32,
    /// The largest number of crashes of one container. An end of a container that should not end counts, and so
    /// does a failed init container.
    pub crashes: i32,
    /// The reason why the scheduler finds no node; `None` if it has one.
    pub unschedulable: Option<String>,
    /// URL of its readiness probe, if it is a candidate's pod that is not ready.
    pub readiness_url: Option<String>,
    /// Result of the operator's own probe of that URL, if it has sent one.
    pub probed: Option<Probed>,
    /// Ended containers by name. For a restarted container, its last end.
    pub terminated: BTreeMap<String, Termination>,
    /// Image digests by container.
    pub images: BTreeMap<String, String>,
    /// What its containers run, by name.
    pub contents: BTreeMap<String, Contents>,
}

impl PodFacts {
    /// Whether none of its containers runs or will run again. A kubelet that does not answer leaves them in the status as running.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.deleting && self.ended && self.started_unix_seconds.is_none()
    }
}

/// How a server that is not ready answered the operator's readiness probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// An HTTP status.
    Status(u16),
    /// The port refuses connections: no process listens.
    Refused,
    /// No response; the text is the error.
    Failed(String),
}

/// The end of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// Exit code.
    pub exit_code: i32,
    /// Kubelet's reason, for example `OOMKilled`.
    pub reason: String,
    /// Termination message.
    pub message: String,
}

/// The benchmark's CloudNativePG cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Whether condition `Ready` is true and every instance is ready.
    pub ready: bool,
    /// Whether CloudNativePG reports that the cluster is unrecoverable or has an invalid definition.
    pub broken: bool,
    /// Phase and its reason, as text for people.
    pub phase: String,
    /// Hostname label of the node that its spec asks for.
    pub hostname: String,
}
