//! What a pass knows: plain data, read once by `observe`, from which every decision follows.

pub mod addresses;
pub mod contents;
pub mod placement;
pub mod pods;

use std::{collections::BTreeMap, sync::Arc};

use frugality_measure::reading::Reading;
use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};

use crate::{
    api::{FrugalityTrial, Reason},
    plan::facts::{
        addresses::{Endpoints, ServiceFacts},
        contents::Contents,
        placement::PlacementRequest,
    },
};

/// Settings of the operator that decisions depend on. They come from its command line, never from
/// a benchmark.
#[derive(Clone, Debug)]
pub struct Config {
    /// Image with Fortio and `frugality-injector`.
    pub injector_image: String,
    /// PostgreSQL image where a benchmark names none.
    pub database_image: String,
    /// Port of the meters.
    pub meter_port: u16,
    /// More than any measured node can draw, in watts, if the installation says so.
    pub max_node_watts: Option<f64>,
    /// Where the operator tells its own clock, for meters that do not tell theirs.
    pub time_url: Option<String>,
    /// What the installation gives to the pods of all benchmarks.
    pub pods: PodPolicy,
}

/// What the installation gives to the pods of all benchmarks, whatever their specs say.
#[derive(Clone, Debug, Default)]
pub struct PodPolicy {
    /// Requests and limits of the injector's container.
    pub injector_resources: ResourceRequirements,
    /// Requests and limits of containers that seed, check and count the database, and of the container that brings
    /// a batch's runner.
    pub helper_resources: ResourceRequirements,
    /// Taints that the pods tolerate. A node whose taints are all tolerated takes part.
    pub tolerations: Vec<Toleration>,
}

/// Everything that one pass has seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Every other benchmark of the cluster.
    pub peers: Vec<Peer>,
    /// The locks of all nodes that are in use.
    pub locks: Vec<Lock>,
    /// Nodes of the cluster.
    pub nodes: Vec<NodeFacts>,
    /// Pods of this benchmark.
    pub pods: Vec<PodFacts>,
    /// Pods of other benchmarks that still exist.
    pub foreign_pods: Vec<ForeignPod>,
    /// Objects that this benchmark has made, pods and ledger aside.
    pub children: Vec<Child>,
    /// Addresses behind the benchmark's Services.
    pub endpoints: Vec<Endpoints>,
    /// The benchmark's PostgreSQL, where CloudNativePG runs it.
    pub database: Option<ClusterFacts>,
    /// Whether the cluster knows CloudNativePG's resource.
    pub cloud_native_pg_installed: bool,
    /// The ledger of this benchmark, all runs.
    pub trials: Vec<FrugalityTrial>,
    /// Entries of the ledger whose stored form can't be read.
    pub unreadable: Vec<Unreadable>,
    /// How far the operator's clock is ahead of the API server's, in seconds; 0 where they agree as far as can
    /// be seen. Sessions have the operator's time, everything else has the cluster's.
    pub operator_ahead_seconds: f64,
    /// What the reader of meters has for this benchmark, by the name of the trial (or
    /// [`preflight`]).
    pub sessions: BTreeMap<String, Session>,
    /// Objects that could not be created, and why.
    pub refused: Option<Refusal>,
    /// The reason that the last passes gave for waiting, and since when in Unix seconds.
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

/// How the name of a session begins that reads a meter before any trial exists.
const PREFLIGHT: &str = "preflight/";

/// Name of the session that reads a node's meter before any trial exists; no trial's.
#[must_use]
pub fn preflight(node: &str) -> String {
    format!("{PREFLIGHT}{node}")
}

/// Whether a session is one that reads a meter before any trial exists.
#[must_use]
pub fn is_preflight(session: &str) -> bool {
    session.starts_with(PREFLIGHT)
}

/// Another benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// `namespace/name`.
    pub name: String,
    /// UID.
    pub uid: String,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: i64,
    /// Whether it wants no turn: its current generation has ended, it is suspended, or it is being
    /// deleted.
    pub rests: bool,
    /// Where it wants to run; `None` where its stored form can't be read.
    pub request: Option<PlacementRequest>,
}

/// The right to use a node: one benchmark at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Its name, which follows from the node's.
    pub name: String,
    /// UID and `namespace/name` of the benchmark that holds it.
    pub holder: Option<(String, String)>,
    /// Since when it is held.
    pub acquired_unix_seconds: Option<f64>,
    /// Version to be replaced, so that two operators cannot both take it.
    pub resource_version: String,
}

/// A pod whose label names another benchmark. Anyone can write that label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignPod {
    /// `namespace/name`.
    pub name: String,
    /// UID of the benchmark that its label names.
    pub benchmark_uid: String,
    /// Node that it is on or is told to go to; `None` if it names no node.
    pub node: Option<String>,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// Whether a container of it runs.
    pub running: bool,
    /// Since when it is being deleted, if it is, in Unix seconds.
    pub deleting_since_unix_seconds: Option<f64>,
}

/// An entry of the ledger whose stored form can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Name.
    pub name: String,
    /// Run that it belongs to, by its label.
    pub run: Option<String>,
    /// What is wrong with it.
    pub error: String,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: String,
    /// Whether pods can be put on it now.
    pub schedulable: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// IP address of the ready meter on it.
    pub meter_ip: Option<String>,
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
    /// `v1 Secret`, which the operator can create and not see: it belongs to a Service and goes with it.
    Secret,
    /// `postgresql.cnpg.io/v1 Cluster`.
    Cluster,
}

/// An object that this benchmark has made.
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
    /// Trial that it belongs to, if one.
    pub trial: Option<String>,
    /// When it was created.
    pub created_unix_seconds: f64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Why its newest pod could not be created, if so: the API server's words.
    pub pods_refused: Option<String>,
    /// How often its spec was written, where the API server counts that: 1 as it was made.
    pub generation: Option<i64>,
    /// Whether it is a Job that is over: it makes no pod any more.
    pub ended: bool,
    /// What a Service says of who answers.
    pub service: Option<ServiceFacts>,
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
    /// Trial that it belongs to, if one.
    pub trial: Option<String>,
    /// Which of its candidate's servers it is, if one.
    pub workload: Option<String>,
    /// Host name label of the node that it is put on.
    pub hostname: Option<String>,
    /// When it was created.
    pub created_unix_seconds: f64,
    /// When it was given its node, if it was.
    pub scheduled_unix_seconds: Option<f64>,
    /// Since when it has been ready, if it is.
    pub ready_since_unix_seconds: Option<f64>,
    /// When the newest of its running containers started.
    pub started_unix_seconds: Option<f64>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether all its containers have ended for good.
    pub ended: bool,
    /// Why the cluster ended or evicted it, if it did: reason and message.
    pub evicted: Option<String>,
    /// Why a container waits, as reason and message.
    pub waiting: Option<(String, String)>,
    /// Restarts of its containers.
    pub restarts: i32,
    /// Most ends of one of its containers that should go on for ever, or that failed to prepare it.
    pub crashes: i32,
    /// Why no node takes it, if none does.
    pub unschedulable: Option<String>,
    /// Where its readiness probe asks, of a candidate's pod that is not ready.
    pub readiness_url: Option<String>,
    /// What the operator was answered there, if it has asked.
    pub probed: Option<Probed>,
    /// Containers that have ended (the last time, where they were restarted), by name.
    pub terminated: BTreeMap<String, Termination>,
    /// Image digests by container.
    pub images: BTreeMap<String, String>,
    /// What its containers run, by their names.
    pub contents: BTreeMap<String, Contents>,
}

/// What a server that is not ready answers its readiness probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// An HTTP status.
    Status(u16),
    /// Nothing listens there.
    Refused,
    /// No answer, and why.
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
    /// Condition `Ready` is true and every instance is ready.
    pub ready: bool,
    /// The operator says that it can't be recovered or is ill defined.
    pub broken: bool,
    /// Phase and its reason, for people.
    pub phase: String,
    /// Host name label of the node that it is put on.
    pub hostname: String,
}

/// What the reader of meters has for one trial.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Readings so far, in the order of scraping.
    pub readings: Arc<Vec<Reading>>,
    /// When reading began.
    pub started_unix_seconds: f64,
    /// Why the newest scrape failed, if it did.
    pub last_error: Option<String>,
    /// What was missing, the last time that the meter answered without power metrics, if it ever did.
    pub without_power: Option<String>,
    /// Whether the trial's injector Job has been seen since reading began.
    pub injector_seen: bool,
}

impl Session {
    /// Why the newest scrape gave no reading, if it did: reason code and words.
    #[must_use]
    pub fn no_reading(&self) -> Option<(Reason, &str)> {
        let error = self.last_error.as_deref()?;
        let reason = if self.without_power.as_deref() == Some(error) {
            Reason::NoPowerMetrics
        } else {
            Reason::MeterMissing
        };
        Some((reason, error))
    }
}

/// How the API server refused an object, by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A ResourceQuota has no room now.
    Quota,
    /// It is forbidden (Pod Security, a LimitRange, a missing right): trying again does not help.
    Forbidden,
    /// Something else, which may pass.
    Other,
}

impl Refused {
    /// By a message of the API server. The words of quotas are those of the `ResourceQuota` admission plug-in
    /// (`controller.go` in `k8s.io/apiserver/pkg/admission/plugin/resourcequota`): the second stands until a new
    /// quota was counted for the first time.
    #[must_use]
    pub fn by(message: &str) -> Self {
        if message.contains("exceeded quota: ") || message.contains("status unknown for quota: ") {
            Self::Quota
        } else if message.contains("is forbidden: ") {
            Self::Forbidden
        } else {
            Self::Other
        }
    }
}

/// The API server refused an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason code for the condition.
    pub reason: Reason,
    /// Which object, and what the API server said.
    pub message: String,
}

impl Refusal {
    /// Whether the object is to be created again until the run's deadline, because it may succeed then.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.reason == Reason::QuotaExceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_without_room_is_told_apart_from_what_is_forbidden_for_good() {
        // As Kubernetes 1.33 says it.
        for (message, refused) in [
            (
                "pods \"x-7d\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2",
                Refused::Quota,
            ),
            (
                "jobs.batch \"x\" is forbidden: status unknown for quota: small, resources: count/jobs.batch",
                Refused::Quota,
            ),
            (
                "pods \"x-7d\" is forbidden: failed quota: small: must specify requests.cpu for: server",
                Refused::Forbidden,
            ),
            (
                "pods \"x-7d\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile",
                Refused::Forbidden,
            ),
            (
                "deployments.apps is forbidden: User \"u\" cannot create resource \"deployments\"",
                Refused::Forbidden,
            ),
            (
                "Internal error occurred: failed calling webhook \"w\": timeout",
                Refused::Other,
            ),
        ] {
            assert_eq!(Refused::by(message), refused, "{message}");
        }
    }
}
