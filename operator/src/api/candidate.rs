//! A candidate: the server that receives the requests, and its backends.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{costs::Costs, quantity::HumanDuration, schema::string_map};

/// Most pods of one server.
pub const MAX_REPLICAS: i32 = 16;
/// Most backends of one candidate.
pub const MAX_BACKENDS: usize = 4;
/// Most pods of one candidate: replicas of its server and of each backend.
pub const MAX_PODS: usize = MAX_REPLICAS.unsigned_abs() as usize * (1 + MAX_BACKENDS);

/// One candidate: a server that listens on a port, alone or in front of backends. With `spec.batch`, a program
/// that runs to completion.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.costs) || has(self.measuredNodeSelector)").message("a candidate's costs need a node of its own: write its measuredNodeSelector too, or spec.costs for all candidates"))]
#[x_kube(validation = Rule::new("!has(self.backends) || self.backends.all(b, b.name != self.name)").message("a backend has the candidate's own name: write another one, for example service"))]
pub struct Candidate {
    /// Name of the candidate, unique in the benchmark; at most 15 characters.
    #[schemars(
        length(min = 1, max = 15),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The server that receives the requests.
    #[serde(flatten)]
    pub server: Server,
    /// Secrets in the benchmark's namespace that let the node pull the images from a private registry.
    /// `kubectl create secret docker-registry` makes such Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<SecretName>,
    /// Longest time in each attempt until all pods of the candidate are ready, including image pulls. If they take
    /// longer, the run ends as Error. Default: 180s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('1h')").message("a candidate's readyWithin must be from 1s to 1h; write for example 60s"))]
    pub ready_within: Option<HumanDuration>,
    /// Servers behind the candidate's server, such as the services behind a load balancer. They run in separate
    /// pods on the measured node, new for every attempt. The operator makes the candidate's server when all
    /// backends are ready. The candidate's figures include the backends; `.status.results[].workloads` shows each
    /// server separately. All pods of the candidate get the address of each backend as `NAME_HOST` and
    /// `NAME_PORT`. NAME is the backend's name in capitals, with `_` for `-`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_BACKENDS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub backends: Vec<Backend>,
    /// Labels of the node that is measured for this candidate, instead of `placement.measuredNodeSelector`. To
    /// compare one server on two boards, write two candidates with different selectors. Each such node needs a
    /// meter that reports its accuracy, because the meter's error affects only one candidate. The status then
    /// shows the node's watts next to each candidate's figures. Not allowed with a database, which runs on one
    /// node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    #[x_kube(validation = Rule::new("self.size() > 0").message("a candidate's measuredNodeSelector names labels, for example kubernetes.io/hostname: pi-5; without it placement.measuredNodeSelector applies"))]
    pub measured_node_selector: Option<BTreeMap<String, String>>,
    /// Prices and carbon of the candidate's own node and its energy, instead of `spec.costs`. Needs
    /// `measuredNodeSelector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
}

/// A server behind the candidate's server.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// Name of the backend, unique in the candidate and different from the candidate's name; at most 15
    /// characters. As a host name it resolves to the addresses of all ready pods, and the client chooses one.
    #[schemars(
        length(min = 1, max = 15),
        regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// The settings of the server.
    #[serde(flatten)]
    pub server: Server,
}

/// A server in separate pods.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Container image, for example `ghcr.io/you/server:1.2`. With a digest (`…@sha256:…`) the image can't change
    /// during a run. Pods run as non-root: the image's user must be a number other than 0, or set `runAsUser`.
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^[^[:space:]]+$') && !self.contains('://')").message("a candidate's image is a name without blanks and without https://; write for example ghcr.io/you/server:1.2"))]
    pub image: String,
    /// When the node asks the registry for the image. `IfNotPresent` (default): only if the node lacks the image.
    /// `Always`: before every attempt; if the tag then has another digest, the attempt is void. `Never`: for
    /// images that were imported on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Program to run instead of the image's entry point. A `batch` requires it: it is the program that is
    /// executed. The image then needs nothing but this program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 4096)))]
    pub command: Vec<String>,
    /// Arguments to the image's entry point, or to `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment variables with literal values. The values arrive byte for byte: Kubernetes expands no `$(NAME)`
    /// in them, in `command` or in `args`. If a program needs a variable in its arguments, start it with a shell:
    /// `command: [sh, -c, "exec server --database $DATABASE_URL"]`. The operator adds `PORT`. With a database it
    /// adds `DATABASE_URL` and `POOL_SIZE`. For each backend of the candidate it adds `NAME_HOST` and `NAME_PORT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("!self.exists(e, e.name in ['PORT', 'DATABASE_URL', 'POOL_SIZE', 'PGUSER', 'PGPASSWORD', 'POD_IP', 'PEERS_HOST', 'PEERS_COUNT'])").message("env must not set PORT, DATABASE_URL, POOL_SIZE, PGUSER, PGPASSWORD, POD_IP, PEERS_HOST or PEERS_COUNT: the operator sets them equally for all candidates; use port, database.poolSize and peers"))]
    pub env: Vec<EnvVar>,
    /// Port on which the server listens, above 1023. The server gets the number as `PORT`.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1024, max = 65535))]
    pub port: i32,
    /// Number of the server's pods, all on the measured node. Default: 1. A candidate's pods share one address
    /// that spreads connections (not requests) over them at random. Memory and joules are totals over all pods.
    /// Each pod has its own pool of `database.poolSize` connections.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = MAX_REPLICAS))]
    pub replicas: i32,
    /// Whether the pods form a cluster whose members know each other. Default: false. Each pod then gets its own
    /// address as `POD_IP` and the number of pods as `PEERS_COUNT`. `PEERS_HOST` is a host name that resolves to
    /// the addresses of all pods, ready or not. A member should become ready when it has found the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peers: bool,
    /// CPU and memory of each pod of the server. Give all candidates the same amounts.
    #[serde(default)]
    pub resources: Resources,
    /// HTTP path that answers 200 when the server can work. With a `batch` any path is accepted.
    #[serde(default = "default_readiness_path")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^/[^[:space:]]*$')").message("readinessPath is a path without host and blanks that begins with /; write for example /healthz"))]
    pub readiness_path: String,
    /// User ID to run as, instead of the image's user. Needed if the image runs as root or gives its user as a
    /// name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
    /// Group ID to run as, instead of the image's group.
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
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[allow(missing_docs)]
pub enum PullPolicy {
    IfNotPresent,
    Always,
    Never,
}

impl PullPolicy {
    /// The value in Kubernetes' spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A Secret in the benchmark's namespace.
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
    /// Value of the variable, for example `warn`.
    #[schemars(length(max = 4096))]
    pub value: String,
}

/// CPU and memory of a pod, as Kubernetes quantities.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.cpu) || !has(self.limits.cpu) || quantity(self.requests.cpu).compareTo(quantity(self.limits.cpu)) <= 0").message("resources.requests.cpu is more than resources.limits.cpu: write the same amount or less"),
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.memory) || !has(self.limits.memory) || quantity(self.requests.memory).compareTo(quantity(self.limits.memory)) <= 0").message("resources.requests.memory is more than resources.limits.memory: write the same amount or less"),
)]
pub struct Resources {
    /// Amounts that the scheduler reserves for the pod.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
    /// Amounts that the kernel enforces. A CPU limit throttles the pod, and the figures include the throttling.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub limits: ResourceList,
}

/// Amounts of CPU and memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceList {
    /// Amount of CPU in cores, for example `500m` or `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: Option<String>,
    /// Amount of memory, for example `128Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(Ki|Mi|Gi|k|M|G)?$"))]
    pub memory: Option<String>,
}

impl ResourceList {
    /// Whether both amounts are absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }
}
