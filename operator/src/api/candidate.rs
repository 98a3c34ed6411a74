//! A candidate: the server that is asked, and what stands behind it.

// The derives repeat the types in a private scope of their own.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{benchmark::string_map, costs::Costs, quantity::HumanDuration};

/// The most pods of a server.
pub const MAX_REPLICAS: i32 = 16;
/// The most backends of a candidate.
pub const MAX_BACKENDS: usize = 4;
/// The most pods of a candidate: replicas of the server that is asked and of each backend.
pub const MAX_PODS: usize = MAX_REPLICAS.unsigned_abs() as usize * (1 + MAX_BACKENDS);

/// One contestant: a server that listens on a port, alone or in front of others; with `spec.batch` a program that runs to
/// completion.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.costs) || has(self.measuredNodeSelector)").message("a candidate's costs are those of a node of its own: write its measuredNodeSelector too, or spec.costs for all candidates"))]
#[x_kube(validation = Rule::new("!has(self.backends) || self.backends.all(b, b.name != self.name)").message("a backend has the candidate's own name: write another one, for example service"))]
pub struct Candidate {
    /// Name, unique in the benchmark; at most 15 characters.
    #[schemars(
        length(min = 1, max = 15),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The server that is asked.
    #[serde(flatten)]
    pub server: Server,
    /// Secrets of the benchmark's namespace that let the node pull the images from a private registry, as
    /// `kubectl create secret docker-registry` makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<SecretName>,
    /// How long the candidate may take in each attempt until all its pods are ready, images to be pulled included; the
    /// run then ends as Error. Absent: 180s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('1h')").message("a candidate's readyWithin must be from 1s to 1h; write for example 60s"))]
    pub ready_within: Option<HumanDuration>,
    /// Servers behind the one that is asked, such as the services behind a load balancer: in pods of their
    /// own on the measured node, fresh for every attempt, started and ready before the server that is asked is
    /// made, and part of the candidate's figures, which `.status.results[].workloads` tells apart. All pods of
    /// the candidate get the address of each as `NAME_HOST` and `NAME_PORT`, where NAME is its name in capitals
    /// with `_` for `-`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_BACKENDS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backends: Vec<Backend>,
    /// Labels of the node that is measured for this candidate, instead of `placement.measuredNodeSelector`: the
    /// same server on two boards is two candidates with two of them. Each such node needs a meter that tells its
    /// accuracy, for what it reads wrong is in one candidate alone; figures of both are then told beside the
    /// node's watts. Not with a database, which is on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    #[x_kube(validation = Rule::new("self.size() > 0").message("a candidate's measuredNodeSelector names labels, for example kubernetes.io/hostname: pi-5; leave it out for placement.measuredNodeSelector"))]
    pub measured_node_selector: Option<BTreeMap<String, String>>,
    /// Prices and carbon of the node that `measuredNodeSelector` names, and of its energy, instead of `spec.costs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
}

/// A server behind a candidate's own.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// Name, unique in the candidate and not the candidate's own; at most 15 characters. Its host name is
    /// that of all its ready pods: whoever looks it up gets an address for each, to choose from.
    #[schemars(
        length(min = 1, max = 15),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// How it runs.
    #[serde(flatten)]
    pub server: Server,
}

/// A server in pods of its own.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Container image, for example `ghcr.io/you/server:1.2`; by digest (`…@sha256:…`) it can't change
    /// during a run. Its user must be a number other than 0, or set `runAsUser`: pods run as non-root.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^[^[:space:]]+$') && !self.contains('://')").message("a candidate's image is a name without blanks and without https://; write for example ghcr.io/you/server:1.2"))]
    pub image: String,
    /// When the node asks the registry for the image: only where it has none (`IfNotPresent`, what
    /// happens where this is absent), before every attempt (`Always`; a tag that then has another digest
    /// makes the attempt void), or not at all (`Never`, for images that were imported on the node).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Program to run instead of the image's entry point. With a `batch` it is needed, for it is what is executed; the
    /// image needs nothing else then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 4096)))]
    pub command: Vec<String>,
    /// Arguments to the image's entry point, or to `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment, literal values only: they arrive byte for byte, and Kubernetes expands no `$(NAME)` in them, nor in
    /// `command` and `args`. A program that needs one in its arguments is started by a shell:
    /// `command: [sh, -c, "exec server --database $DATABASE_URL"]`. The operator adds `PORT`, with a database `DATABASE_URL` and
    /// `POOL_SIZE`, and for each backend of the candidate `NAME_HOST` and `NAME_PORT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("!self.exists(e, e.name in ['PORT', 'DATABASE_URL', 'POOL_SIZE', 'PGUSER', 'PGPASSWORD', 'POD_IP', 'PEERS_HOST', 'PEERS_COUNT'])").message("env must not set PORT, DATABASE_URL, POOL_SIZE, PGUSER, PGPASSWORD, POD_IP, PEERS_HOST or PEERS_COUNT: the operator sets them equally for all candidates; use port, database.poolSize and peers"))]
    pub env: Vec<EnvVar>,
    /// Port that the server listens on, above 1023; also given to it as `PORT`.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1024, max = 65535))]
    pub port: i32,
    /// Pods of the server, all on the measured node. A candidate's are behind one address that spreads
    /// connections (not requests) over them by chance. Memory and joules are those of all together; each has
    /// a pool of `database.poolSize` of its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = MAX_REPLICAS))]
    pub replicas: i32,
    /// Whether its pods are a cluster whose members know each other. Each is then told its own address as
    /// `POD_IP`, how many they are as `PEERS_COUNT`, and as `PEERS_HOST` a host name that stands for the addresses
    /// of all of them, those that are not ready too. A member should be ready once it has found the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peers: bool,
    /// CPU and memory of each of the server's pods. Give all candidates the same.
    #[serde(default)]
    pub resources: Resources,
    /// Path that answers 200 once the server can work; with a `batch` any does.
    #[serde(default = "default_readiness_path")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^/[^[:space:]]*$')").message("readinessPath is a path without host and blanks that begins with /; write for example /healthz"))]
    pub readiness_path: String,
    /// User ID to run as, instead of the image's. Needed where the image runs as root, or names its user
    /// by a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
    /// Group ID to run as, instead of the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_group: Option<i64>,
}

pub(super) fn one() -> i32 {
    1
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
pub(super) fn is_one(number: &i32) -> bool {
    *number == 1
}

/// When a node asks the registry for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum PullPolicy {
    IfNotPresent,
    Always,
    Never,
}

impl PullPolicy {
    /// As Kubernetes spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IfNotPresent => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// A Secret of the benchmark's namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretName {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

fn default_port() -> i32 {
    8080
}

fn default_readiness_path() -> String {
    "/healthz".into()
}

/// One environment variable with a literal value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvVar {
    /// Name of the variable, for example `LOG_LEVEL`.
    #[schemars(
        length(min = 1, max = 128),
        regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$")
    )]
    pub name: String,
    /// Its value, for example `warn`.
    #[schemars(length(max = 4096))]
    pub value: String,
}

/// CPU and memory of a pod, in Kubernetes' quantities.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.cpu) || !has(self.limits.cpu) || quantity(self.requests.cpu).compareTo(quantity(self.limits.cpu)) <= 0").message("resources.requests.cpu is more than resources.limits.cpu: write the same amount or less"),
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.memory) || !has(self.limits.memory) || quantity(self.requests.memory).compareTo(quantity(self.limits.memory)) <= 0").message("resources.requests.memory is more than resources.limits.memory: write the same amount or less"),
)]
pub struct Resources {
    /// What the scheduler sets aside for the pod.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
    /// What the kernel enforces. A CPU limit throttles, and that is then part of what is measured.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
}

/// Amounts of CPU and memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceList {
    /// Cores, for example `500m` or `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: Option<String>,
    /// Memory, for example `128Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"))]
    pub memory: Option<String>,
}

impl ResourceList {
    /// Whether neither amount is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}
