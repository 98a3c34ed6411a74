//! The input of a pass: plain data, which `observe` reads once. Every decision follows from these data.

pub mod addresses;
pub mod contents;
pub mod placement;
pub mod pods;

use std::{collections::BTreeMap, sync::Arc};

use frugality_measure::reading::Reading;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LocalObjectReference, ResourceRequirements, Toleration};
use kube::ResourceExt;

use crate::{
    api::{
        FrugalityBaseline, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial,
        PastVerdict, Reason, Verdict,
    },
    plan::facts::{
        addresses::{Endpoints, ServiceFacts},
        contents::Contents,
        placement::PlacementRequest,
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

/// Prefix of the names of sessions that read a meter before any trial exists.
const PREFLIGHT: &str = "preflight/";

/// Name of the session that reads the meter of a node before any trial exists. No trial has such a name.
#[must_use]
pub fn preflight(node: &str) -> String {
    format!("{PREFLIGHT}{node}")
}

/// Whether a session reads a meter before any trial exists.
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
    /// When its last run with nodes ended, in Unix seconds; `None` if it never had nodes.
    pub last_turn_unix_seconds: Option<i64>,
    /// Whether the benchmark needs no nodes now: its current generation has ended, it is suspended, or it is being
    /// deleted.
    pub rests: bool,
    /// Where it is to run; `None` if its stored form can't be read.
    pub request: Option<PlacementRequest>,
    /// Names of the nodes that its run began on, the injector's last. The run continues on no others. Empty if the run
    /// has no attempt, or if the benchmark rests.
    pub began_on: Vec<String>,
}

impl Peer {
    /// A readable benchmark as the others see it.
    #[must_use]
    pub fn of(benchmark: &FrugalityBenchmark) -> Self {
        let stored = Self::unreadable(benchmark);
        let rests = benchmark.is_complete() || benchmark.spec.suspend || stored.rests;
        Self {
            last_turn_unix_seconds: last_turn_unix_seconds(benchmark),
            request: Some(PlacementRequest::of(&benchmark.spec)),
            began_on: if rests {
                Vec::new()
            } else {
                began_on(benchmark)
            },
            rests,
            ..stored
        }
    }

    /// A benchmark whose metadata alone can be read. It may hold locks, but never waits for any.
    #[must_use]
    pub fn unreadable(stored: &impl ResourceExt) -> Self {
        Self {
            name: format!(
                "{}/{}",
                stored.namespace().unwrap_or_default(),
                stored.name_any()
            ),
            uid: stored.uid().unwrap_or_default(),
            created_unix_seconds: stored
                .creation_timestamp()
                .map_or(0, |time| time.0.as_second()),
            last_turn_unix_seconds: None,
            rests: stored.meta().deletion_timestamp.is_some(),
            request: None,
            began_on: Vec::new(),
        }
    }
}

/// The nodes of the spec's run, if the status describes that run and the run has attempts.
fn began_on(benchmark: &FrugalityBenchmark) -> Vec<String> {
    let is_of_run = |it: &&FrugalityBenchmarkStatus| {
        it.observed_generation == benchmark.metadata.generation && has_attempts(it)
    };
    let Some(status) = benchmark.current_status().filter(is_of_run) else {
        return Vec::new();
    };
    let measured = status.measured_node.iter().flat_map(|it| it.split(", "));
    let mut names: Vec<String> = measured.map(str::to_owned).collect();
    names.extend(status.injector_node.clone());
    names.dedup();
    names
}

fn has_attempts(status: &FrugalityBenchmarkStatus) -> bool {
    let progress = status.progress.as_ref();
    progress.is_some_and(|it| it.trials_done + it.void_attempts > 0)
}

/// The end of the newest run that had nodes.
fn last_turn_unix_seconds(benchmark: &FrugalityBenchmark) -> Option<i64> {
    let status = benchmark.current_status()?;
    let current = status
        .end()
        .filter(|end| had_turn(has_attempts(status), status.verdict, Some(&end.reason)))
        .map(|end| end.last_transition_time.0.as_second());
    let is_turn = |past: &&PastVerdict| {
        let verdict = Some(past.verdict);
        had_turn(past.provenance.is_some(), verdict, past.reason.as_deref())
    };
    let earlier = status.history.iter().filter(is_turn).filter_map(|past| {
        let ended: Timestamp = past.ended_at.as_ref()?.parse().ok()?;
        Some(ended.as_second())
    });
    earlier.chain(current).max()
}

/// Whether a run with this end had nodes. A run without attempts had nodes if its preparation failed, for example the
/// start of the database. If CloudNativePG or a permission is missing, the run ends before its turn.
fn had_turn(has_attempts: bool, verdict: Option<Verdict>, reason: Option<&str>) -> bool {
    let before_turn = [Reason::CloudNativePgMissing, Reason::NamespaceNotAllowed];
    has_attempts
        || (verdict == Some(Verdict::Error)
            && before_turn.iter().all(|it| Some(it.as_str()) != reason))
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

/// The meter reader's data for one trial.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Readings so far, in the order of scraping.
    pub readings: Arc<Vec<Reading>>,
    /// When the reader started, in Unix seconds of the operator's clock.
    pub started_unix_seconds: f64,
    /// Why the newest scrape failed, if it failed.
    pub last_error: Option<String>,
    /// What was missing when the meter last answered without power metrics; `None` if that never happened.
    pub without_power: Option<String>,
    /// Whether the reader has seen the trial's injector Job.
    pub injector_seen: bool,
    /// When the operator first saw that the check of the trial's database has ended, in Unix seconds of the operator's
    /// clock. The check's node may have another clock.
    pub check_ended_unix_seconds: Option<f64>,
}

impl Session {
    /// Why the newest scrape gave no reading, as reason code and message; `None` if it gave one.
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

/// Why the API server refused an object, by its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A ResourceQuota has no room now.
    Quota,
    /// It is forbidden (Pod Security, a LimitRange, a missing right). A second try would fail too.
    Forbidden,
    /// Another reason, which may be temporary.
    Other,
}

impl Refused {
    /// Classifies a message of the API server. The quota texts are from the `ResourceQuota` admission plug-in
    /// (`controller.go` in `k8s.io/apiserver/pkg/admission/plugin/resourcequota`). The second text appears until
    /// Kubernetes has counted a new quota for the first time.
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

/// An object that the API server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason code for the condition.
    pub reason: Reason,
    /// The object, and the API server's message.
    pub message: String,
    /// Whether the object is an entry of the ledger.
    pub is_entry: bool,
}

impl Refusal {
    /// Why the API server did not create an object, given by kind and name, by its HTTP status code. `None` if the answer is
    /// no refusal: the operator tries again. A conflict of names is a refusal only if the existing object does not belong to
    /// the benchmark.
    #[must_use]
    pub fn of(object: &str, code: u16, message: &str) -> Option<Self> {
        match code {
            409 => Some(Self {
                reason: Reason::NameConflict,
                message: format!(
                    "{object} exists and does not belong to this benchmark; delete or rename it, then write another number in spec.rerun to start another run"
                ),
                is_entry: false,
            }),
            400 | 403 | 422 => Some(Self {
                reason: match Refused::by(message) {
                    Refused::Quota => Reason::QuotaExceeded,
                    Refused::Forbidden | Refused::Other => Reason::ChildRefused,
                },
                message: format!("the API server refused {object}: {message}"),
                is_entry: false,
            }),
            _ => None,
        }
    }

    /// Why the API server did not create this entry of the ledger. `None` if the answer is no refusal. A webhook that can't be
    /// called refuses too: it may be away for as long as a run lasts.
    #[must_use]
    pub fn of_entry(name: &str, code: u16, message: &str) -> Option<Self> {
        let is_silent_webhook = code == 500 && message.contains("failed calling webhook");
        let code = if is_silent_webhook { 403 } else { code };
        Self::of(&format!("FrugalityTrial {name}"), code, message).map(|refusal| Self {
            is_entry: true,
            ..refusal
        })
    }

    /// Whether the operator tries to create the object again until the run's deadline, because it may succeed then. An entry
    /// of the ledger has no part that a user writes, so another spec would not help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.is_entry || self.reason == Reason::QuotaExceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_quota_is_distinguished_from_a_forbidden_object() {
        // Messages of Kubernetes 1.33.
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

    #[test]
    fn a_code_and_a_message_make_a_refusal() {
        let quota = "pods \"x\" is forbidden: exceeded quota: small, requested: pods=1";
        let conflict = "services \"x\" already exists";
        for (code, message, reason) in [
            (400, "bad", Some(Reason::ChildRefused)),
            (403, quota, Some(Reason::QuotaExceeded)),
            (
                403,
                "pods \"x\" is forbidden: no",
                Some(Reason::ChildRefused),
            ),
            (409, conflict, Some(Reason::NameConflict)),
            (422, "invalid", Some(Reason::ChildRefused)),
            (404, "namespace not found", None),
            (429, "too many requests", None),
            (500, quota, None),
        ] {
            let refusal = Refusal::of("Service x", code, message);
            assert_eq!(refusal.as_ref().map(|it| it.reason), reason, "{code}");
            let passes = refusal.as_ref().is_some_and(Refusal::may_pass);
            assert_eq!(passes, reason == Some(Reason::QuotaExceeded), "{code}");
            if let Some(refusal) = refusal {
                assert!(!refusal.is_entry);
                assert!(refusal.message.contains("Service x"), "{refusal:?}");
                // The API server's words about a conflict say nothing about whose object it is.
                assert_eq!(
                    refusal.message.contains(message),
                    code != 409,
                    "{refusal:?}"
                );
            }
        }
    }

    #[test]
    fn a_refused_entry_may_succeed_later() {
        let silence = "Internal error occurred: failed calling webhook \"w\": timeout";
        for (code, message, reason) in [
            (400, "denied by a webhook", Some(Reason::ChildRefused)),
            (422, "invalid", Some(Reason::ChildRefused)),
            (500, silence, Some(Reason::ChildRefused)),
            (500, "etcdserver: request timed out", None),
            (429, "too many requests", None),
        ] {
            let refusal = Refusal::of_entry("x", code, message);
            assert_eq!(refusal.as_ref().map(|it| it.reason), reason, "{code}");
            if let Some(refusal) = refusal {
                assert!(refusal.may_pass() && refusal.is_entry, "{refusal:?}");
                let words = format!("the API server refused FrugalityTrial x: {message}");
                assert_eq!(refusal.message, words);
            }
        }
    }
}
