//! `FrugalityBenchmark`: what a user asks to be measured.

// The derives repeat the types in a private scope of their own; print columns repeat their types.
#![allow(unreachable_pub, clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    batch::Batch,
    candidate::{Candidate, Resources, is_one, one},
    costs::Costs,
    load::Load,
    parameters::{allowed_rule, refusal},
    quantity::{Decimal, HumanDuration},
    scenario::Scenario,
    status::FrugalityBenchmarkStatus,
};

/// Blocks below which nothing is reported: with fewer, a t-interval says next to nothing.
pub const MIN_BLOCKS: i32 = 5;
/// The most blocks that a run may have.
pub const MAX_BLOCKS: i32 = 50;

/// Which servers to compare, under which load, on which data and against which budgets.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "frugality.dev",
    version = "v1alpha1",
    kind = "FrugalityBenchmark",
    plural = "frugalitybenchmarks",
    shortname = "fb",
    category = "frugality",
    namespaced,
    status = "FrugalityBenchmarkStatus",
    derive = "PartialEq",
    doc = "What a request costs in joules: candidates, load, budgets, and the verdict.",
    validation = Rule::new("self.metadata.name.size() <= 30 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')").message("metadata.name must be a DNS label of at most 30 characters that begins with a letter, because the names of all that the benchmark creates begin with it"),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.verdict", description = "Pass, Reported, Fail, Inconclusive, Invalid or Error; blank while running"),
    printcolumn(name = "Winner", type_ = "string", json_path = ".status.columns.winner", description = "Candidate that beats every other, at every point; tie where all are shown to be equal; depends on load where different ones win at different points; depends on the board where power is modelled and another board could turn it round; else not separated"),
    printcolumn(name = "Ratio", type_ = "string", json_path = ".status.columns.ratio", description = "Winner's figure over the next best, with its interval; of modelled power, from the least to the most over all boards; of several points, where they are closest"),
    printcolumn(name = "J/req", type_ = "string", json_path = ".status.columns.energy", description = "Winner's energy per successful request, and which joule it is; of several points, least to most"),
    printcolumn(name = "Req/s", type_ = "string", json_path = ".status.columns.rate", description = "Winner's successful requests per second"),
    printcolumn(name = "ms/req", type_ = "string", json_path = ".status.columns.latency", description = "Winner's mean time of a successful request"),
    printcolumn(name = "Power", type_ = "string", json_path = ".status.columns.power", description = "Where the node's power came from: Metered or Modelled"),
    printcolumn(name = "Trials", type_ = "string", json_path = ".status.columns.trials", description = "Valid trials of those planned"),
    printcolumn(name = "Left", type_ = "string", json_path = ".status.columns.left", priority = 1, description = "About how long measuring goes on"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.columns.reason", priority = 1, description = "Reason of the state"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.columns.message", priority = 1, description = "What the state means"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.budgets) || self.budgets.size() == 0 || self.trials.blocks >= 5").message("budgets need spec.trials.blocks of at least 5: fewer trials give no interval worth gating on"),
    validation = Rule::new("!has(self.budgets) || self.budgets.all(b, self.candidates.exists(c, c.name == b.candidate))").message("every budget must name a candidate of spec.candidates"),
    validation = Rule::new("!has(self.budgets) || self.budgets.all(b, !has(b.against) || (b.against != b.candidate && self.candidates.exists(c, c.name == b.against)))").message("a budget's against must name another candidate of spec.candidates"),
    validation = Rule::new("[has(self.request), has(self.scenario), has(self.batch)].filter(given, given).size() == 1").message("spec needs one of request (path and method of one request, sent again and again), scenario (a script of several) and batch (programs that run to completion), and no two"),
    validation = Rule::new("!has(self.batch) || ((!has(self.load.connections) || self.load.connections == 1) && self.load.rate == 'Max' && !has(self.load.requests) && !has(self.load.sweep))").message("with a batch there is one execution at a time, as soon as the one before has ended: leave load.connections, load.rate, load.requests (batch.executions is for that) and load.sweep out"),
    validation = Rule::new("!has(self.batch) || !has(self.batch.executions) || !has(self.load.duration)").message("batch.executions and load.duration both say how long the window is: leave one of them out"),
    validation = Rule::new("!has(self.batch) || self.candidates.all(c, has(c.command) && c.command.size() > 0)").message("with a batch every candidate needs command, the program that is executed; write for example command: [stockfish, bench]"),
    validation = Rule::new("!has(self.batch) || self.candidates.all(c, (!has(c.replicas) || c.replicas == 1) && (!has(c.peers) || !c.peers))").message("with a batch each candidate is one pod: leave replicas and peers out"),
    validation = Rule::new("has(self.request) || ((!has(self.load.arrivals) || self.load.arrivals != 'Open') && (!has(self.load.catchUp) || self.load.catchUp))").message("load.arrivals: Open and load.catchUp: false are for request: leave them out; a scenario at a load.rate is open anyway"),
    validation = Rule::new("!has(self.scenario) || !has(self.load.requests)").message("load.requests counts single requests: with a scenario write load.duration instead"),
    validation = Rule::new("!has(self.scenario) || !has(self.scenario.rampUp) || duration(self.scenario.rampUp) <= duration(self.load.warmUp)").message("scenario.rampUp is the beginning of load.warmUp: write a longer load.warmUp, or a shorter rampUp"),
    validation = Rule::new("!has(self.database) || self.candidates.all(c, !has(c.measuredNodeSelector))").message("a database is on one node, beside its candidates: leave measuredNodeSelector of the candidates out, or spec.database"),
    validation = Rule::new("!has(self.trials.control) || self.candidates.exists(c, c.name == self.trials.control)").message("trials.control must name a candidate of spec.candidates"),
    validation = Rule::new("!has(self.budgets) || self.load.rate == 'Max' || self.budgets.all(b, !has(b.minRequestsPerSecond) || double(b.minRequestsPerSecond) <= double(self.load.rate))").message("a budget's minRequestsPerSecond can't be met at a lower load.rate: write rate: Max, or a rate above the budget"),
    validation = Rule::new("!has(self.energy.tieWithin) || self.candidates.size() > 1").message("energy.tieWithin compares candidates: name a second one in spec.candidates, or leave it out"),
    validation = Rule::new("!has(self.load.sweep) || (has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * (has(self.trials.looks) && self.trials.looks.size() > 0 ? self.trials.looks[self.trials.looks.size() - 1] : self.trials.blocks) <= 999").message("points of load.sweep × trials.blocks (or the last look) are at most 999: ask for fewer points, or fewer blocks"),
    validation = Rule::new("!has(self.load.sweep) || (has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * self.candidates.size() <= 128").message("points of load.sweep × candidates are at most 128, or the status would be too large for the API server: write several benchmarks"),
    validation = Rule::new("duration(self.deadline).getSeconds() >= (self.candidates.size() + (has(self.trials.control) ? 1 : 0)) * (has(self.load.sweep) && !has(self.load.sweep.maxErrorRatio) && has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep) && has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * (has(self.trials.looks) && self.trials.looks.size() > 0 ? self.trials.looks[0] : self.trials.blocks) * (9 + duration(self.load.warmUp).getSeconds() + 2 * duration(self.trials.idleBaseline).getSeconds() + (has(self.load.duration) ? duration(self.load.duration).getSeconds() : (has(self.load.requests) || (has(self.batch) && has(self.batch.executions)) ? 20 : 60)))").message("spec.deadline is shorter than the trials must take: candidates (and control) × points of a sweep × blocks (or the first look) × (warmUp + duration + 2 × idleBaseline + 9s); write a longer deadline, or ask for fewer points or blocks, or a shorter load.duration"),
)]
pub struct FrugalityBenchmarkSpec {
    /// The contestants, 1 to 16. One alone is judged against its budgets only.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub candidates: Vec<Candidate>,
    /// PostgreSQL that all candidates use in turn: made, filled and checked by the operator, and reached by
    /// `DATABASE_URL`. Without it, candidates get no database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// The request that the injector sends, again and again. Either this, `scenario` or `batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// A script of several requests that the injector runs, again and again, instead of `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
    /// Programs that run to completion, instead of servers that are asked; for example a chess engine's benchmark or
    /// a ray tracer. Each candidate's `command` is executed in its pod, one execution after another, in windows of
    /// whole executions. An execution counts where a request does, or with `work` each unit of it, which joules,
    /// rates, costs and budgets are then of. The measured node needs the injector's image too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// How hard, and for how long: connections, rate, and duration or number of requests; one load, or several in turn.
    #[serde(default)]
    pub load: Load,
    /// How often, and in which order.
    #[serde(default)]
    pub trials: Trials,
    /// Which joules decide.
    #[serde(default)]
    pub energy: Energy,
    /// Limits that decide between Pass and Fail; without any the verdict is Reported. Editing them judges
    /// the same trials anew and measures nothing again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["candidate"]))]
    pub budgets: Vec<Budget>,
    /// Prices and carbon of the measured node and of its energy: what a million requests cost then stands beside their
    /// joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// Where servers and injector run.
    #[serde(default)]
    pub placement: Placement,
    /// Longest time from the benchmark's turn to its verdict, at most 14 days; a run that lasts
    /// longer ends as Error.
    #[serde(default = "default_deadline")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1m') && duration(self) <= duration('336h')").message("spec.deadline must be from 1m to 336h; write for example 6h"))]
    pub deadline: HumanDuration,
    /// Pauses the run: nothing new is started, the attempt in hand becomes void, pods and database are
    /// removed and the nodes are given back. Set to false again, the same run goes on once they are free:
    /// measured blocks are kept, the one in hand is measured again, and `deadline` counts anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Starts another run with the same settings: write another number, for example `2`. All runs with the same
    /// settings stay in the ledger, and the status counts them (`tries`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rerun: Option<i64>,
    /// How long after its end the benchmark is deleted, its ledger included: at least `1m`, and longer than
    /// whoever reads the verdict needs. Not for benchmarks that a GitOps tool would create again. Absent:
    /// it is kept. One whose spec or ledger can't be read is kept, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1m') && duration(self) <= duration('8784h')").message("spec.ttlAfterFinished must be from 1m to 8784h; write for example 24h"))]
    pub ttl_after_finished: Option<HumanDuration>,
}

fn default_deadline() -> HumanDuration {
    "6h".into()
}

/// A PostgreSQL on the measured node, new for each run.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("(has(self.provider) && self.provider == 'Standalone') || !has(self.runAsUser)").message("database.runAsUser goes with provider: Standalone; CloudNativePG runs its images as user 26, so leave it out"),
    validation = Rule::new("!has(self.provider) || self.provider != 'Standalone' || !has(self.instances) || self.instances == 1").message("database.instances goes with CloudNativePG: provider Standalone is one pod, so leave it out"),
    validation = Rule::new("!has(self.provider) || self.provider != 'Standalone' || !has(self.storage) || !has(self.storage.storageClass)").message("database.storage.storageClass goes with CloudNativePG: provider Standalone keeps its data in an emptyDir of the node, so leave it out"),
    validation = Rule::new("!has(self.parameters) || !('max_connections' in self.parameters) || !self.parameters['max_connections'].matches('^[0-9]+$') || int(self.parameters['max_connections']) >= self.poolSize + 10").message("database.parameters.max_connections leaves too few connections: write at least database.poolSize + 10"),
)]
pub struct Database {
    /// Who runs it: `CloudNativePG`, which must be installed, or `Standalone`, one pod that this operator
    /// makes itself, for boards that are too small for another operator. Candidates see no difference:
    /// same address, same way to log in, TLS off in both.
    #[serde(default, skip_serializing_if = "Provider::is_default")]
    pub provider: Provider,
    /// Instances of CloudNativePG: the primary, and replicas of it that no candidate reads from. All are
    /// on the measured node, where what replication costs is measured. Absent: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 3))]
    pub instances: i32,
    /// PostgreSQL image; its tag begins with a version ≥ 15. Absent: the operator's default. CloudNativePG
    /// needs one made for it; for `Standalone` any image does that has PostgreSQL's programs in its `PATH`,
    /// such as `docker.io/library/postgres:17` with `runAsUser: 999`. The chart's `database.allowedImages`
    /// must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches(':[0-9]+[^/]*$')").message("database.image needs a tag that begins with a PostgreSQL version, for example ghcr.io/cloudnative-pg/postgresql:17.5"))]
    #[x_kube(validation = Rule::new("!self.matches(':[0-9]+[^/]*$') || self.matches(':(1[5-9]|[2-9][0-9])([^0-9/][^/]*)?$')").message("database.image must be PostgreSQL 15 or later, where the candidates' role can be given the right to the CHECKPOINT before each trial; write for example ghcr.io/cloudnative-pg/postgresql:17.5"))]
    pub image: Option<String>,
    /// User ID of PostgreSQL in the image of a `Standalone` database: 999 in Debian's official image, 70 in
    /// Alpine's. Absent: 26, as in CloudNativePG's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
    /// The volume for the data.
    #[serde(default)]
    pub storage: Storage,
    /// PostgreSQL settings such as `work_mem: 4MB`, over the operator's own: autovacuum and JIT off, 64 MB of shared
    /// buffers, 60 connections, no timed checkpoints. Names are in small letters. What CloudNativePG keeps to itself
    /// it refuses by name (`ChildRefused`). Allowed are `archive_timeout`, `autovacuum`,
    /// `autovacuum_analyze_scale_factor`, `autovacuum_analyze_threshold`, `autovacuum_max_workers`,
    /// `autovacuum_naptime`, `autovacuum_vacuum_cost_delay`, `autovacuum_vacuum_cost_limit`,
    /// `autovacuum_vacuum_insert_scale_factor`, `autovacuum_vacuum_insert_threshold`,
    /// `autovacuum_vacuum_scale_factor`, `autovacuum_vacuum_threshold`, `autovacuum_work_mem`, `backend_flush_after`,
    /// `bgwriter_delay`, `bgwriter_flush_after`, `bgwriter_lru_maxpages`, `bgwriter_lru_multiplier`,
    /// `checkpoint_completion_target`, `checkpoint_flush_after`, `checkpoint_timeout`, `commit_delay`,
    /// `commit_siblings`, `constraint_exclusion`, `cpu_index_tuple_cost`, `cpu_operator_cost`, `cpu_tuple_cost`,
    /// `cursor_tuple_fraction`, `deadlock_timeout`, `default_statistics_target`, `default_toast_compression`,
    /// `default_transaction_isolation`, `effective_cache_size`, `effective_io_concurrency`, `enable_async_append`,
    /// `enable_bitmapscan`, `enable_gathermerge`, `enable_hashagg`, `enable_hashjoin`, `enable_incremental_sort`,
    /// `enable_indexonlyscan`, `enable_indexscan`, `enable_material`, `enable_memoize`, `enable_mergejoin`,
    /// `enable_nestloop`, `enable_parallel_append`, `enable_parallel_hash`, `enable_partition_pruning`,
    /// `enable_partitionwise_aggregate`, `enable_partitionwise_join`, `enable_seqscan`, `enable_sort`,
    /// `enable_tidscan`, `from_collapse_limit`, `fsync`, `full_page_writes`, `geqo`, `geqo_threshold`,
    /// `hash_mem_multiplier`, `huge_pages`, `idle_in_transaction_session_timeout`, `idle_session_timeout`,
    /// `io_combine_limit`, `io_method`, `io_workers`, `jit`, `jit_above_cost`, `jit_inline_above_cost`,
    /// `jit_optimize_above_cost`, `join_collapse_limit`, `lock_timeout`, `maintenance_io_concurrency`,
    /// `maintenance_work_mem`, `max_connections`, `max_locks_per_transaction`, `max_parallel_maintenance_workers`,
    /// `max_parallel_workers`, `max_parallel_workers_per_gather`, `max_prepared_transactions`, `max_wal_size`,
    /// `max_worker_processes`, `min_parallel_index_scan_size`, `min_parallel_table_scan_size`, `min_wal_size`,
    /// `parallel_leader_participation`, `parallel_setup_cost`, `parallel_tuple_cost`, `plan_cache_mode`,
    /// `random_page_cost`, `seq_page_cost`, `shared_buffers`, `statement_timeout`, `synchronous_commit`,
    /// `temp_buffers`, `vacuum_cost_delay`, `vacuum_cost_limit`, `wal_buffers`, `wal_compression`, `wal_init_zero`,
    /// `wal_keep_size`, `wal_recycle`, `wal_skip_threshold`, `wal_sync_method`, `wal_writer_delay`,
    /// `wal_writer_flush_after` and `work_mem`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64), schema_with = "string_map")]
    #[x_kube(validation = Rule::new(allowed_rule()).message(Message::Expression(refusal())))]
    pub parameters: BTreeMap<String, String>,
    /// CPU and memory of the database's pod.
    #[serde(default)]
    pub resources: Resources,
    /// Connections that each pod of a candidate may open, given to all of them as `POOL_SIZE`. PostgreSQL's
    /// `max_connections` must take those of all its pods, and 10.
    #[serde(default = "default_pool_size")]
    #[schemars(range(min = 1, max = 50))]
    pub pool_size: i32,
    /// What the database is filled with before the first trial. A copy of it is kept as the database `app_seed`, and
    /// every attempt begins with the database `app` made from that copy, whatever the candidate before did to it.
    pub seed: Seed,
}

fn default_pool_size() -> i32 {
    10
}

/// Who runs the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Provider {
    #[default]
    #[serde(rename = "CloudNativePG")]
    CloudNativePg,
    Standalone,
}

impl Provider {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is serde's"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Volume of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Storage {
    /// Size, for example `1Gi`.
    #[serde(default = "default_storage_size")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(Mi|Gi|M|G)$"))]
    pub size: String,
    /// Storage class of CloudNativePG's volume; absent: the cluster's default. `Standalone` has none: its
    /// data are in an `emptyDir` of the node, limited to `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class: Option<String>,
}

fn default_storage_size() -> String {
    "1Gi".into()
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            size: default_storage_size(),
            storage_class: None,
        }
    }
}

/// Where the rows come from. Exactly one of `contacts` and `configMap`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.contacts) != has(self.configMap)").message("database.seed needs exactly one of contacts (rows of the built-in address book) and configMap (your own SQL)"))]
pub struct Seed {
    /// Rows of the built-in address book: made-up contacts in the table `contacts` (`id`, `uid`, `vcard`,
    /// `etag`, `name`), the same ones every time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub contacts: Option<i64>,
    /// SQL of your own, from a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSeed>,
}

/// SQL in a ConfigMap of the benchmark's namespace, run by psql as the application's own role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigMapSeed {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the ConfigMap whose value is the SQL, for example `seed.sql`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
    /// Table whose rows are counted and digested afterwards.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z_][a-z0-9_]*$"))]
    pub table: String,
    /// Rows that the table must have then; with any other number the run ends (`SeedFailed`).
    #[schemars(range(min = 1))]
    pub rows: i64,
}

/// HTTP method. Not HEAD: Fortio waits for a body after every answer, until the timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Method {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As it stands in a request line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether such requests leave the data as they are (RFC 9110 §9.2.1).
    #[must_use]
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get)
    }
}

/// The request that is sent again and again.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.body) || (has(self.method) && self.method in ['POST', 'PUT', 'PATCH'])").message("request.body goes with method POST, PUT or PATCH"))]
pub struct Request {
    /// HTTP method.
    #[serde(default)]
    pub method: Method,
    /// Path and query, for example `/contacts/{uuid}`; each `{uuid}` is a fresh UUID in every request. All else in
    /// path, headers and body is sent byte for byte.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^/[^[:space:]]*$')").message("request.path is a path without host and blanks that begins with /; write for example /contacts/{uuid}, and %20 for a blank"))]
    pub path: String,
    /// Headers that are sent with every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("self.all(h, !(h.name.lowerAscii() in ['connection', 'content-length', 'transfer-encoding']))").message("request.headers must not set Connection, Content-Length or Transfer-Encoding: the injector keeps connections open and knows the body's length; leave them out"))]
    #[x_kube(validation = Rule::new("self.all(h, !h.value.matches('^[ \\t]') && !h.value.matches('[ \\t]$'))").message("a header's value must not begin or end with a blank or tab: HTTP does not transport them (RFC 9110, 5.5); leave them out"))]
    pub headers: Vec<Header>,
    /// Body of a POST, PUT or PATCH; each `{uuid}` is fresh here too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65_536))]
    pub body: Option<String>,
    /// Status codes that count as success, from 200 to 299. Fortio takes every other code for a
    /// failure and reconnects, which would be measured too.
    #[serde(default = "default_expected_status")]
    #[schemars(length(min = 1, max = 8), inner(range(min = 200, max = 299)), extend("x-kubernetes-list-type" = "set"))]
    pub expected_status: Vec<i32>,
    /// Whether candidates are compared though the mean size of their answers differs by more than 1 %,
    /// as where the smaller answer is what was improved. Judges the same trials anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub responses_may_differ: bool,
    /// Whether candidates are compared though their requests differ by more than a tenth in the number of
    /// the database's transactions, as where fewer queries are what was improved. Judges the same trials
    /// anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queries_may_differ: bool,
}

fn default_expected_status() -> Vec<i32> {
    vec![200]
}

/// One HTTP header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// Name, for example `Accept`.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[-A-Za-z0-9_]+$"))]
    pub name: String,
    /// Value, for example `application/json`.
    #[schemars(length(max = 2048), regex(pattern = r"^[^\r\n]*$"))]
    pub value: String,
}

/// How often each candidate is tried.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.looks) || [1, 2, 3, 4, 5, 6, 7].all(i, i >= self.looks.size() || self.looks[i - 1] < self.looks[i])").message("trials.looks must ascend, for example [10, 15, 20]"),
    validation = Rule::new("!has(self.looks) || self.looks.size() == 0 || self.blocks == 10 || self.looks[self.looks.size() - 1] == self.blocks").message("trials.looks must end with trials.blocks: leave blocks out, or make it the last look"),
)]
pub struct Trials {
    /// Passes over all candidates; each gives one trial of each. Fewer than 5 give no report, and more of
    /// them narrower intervals.
    #[serde(default = "default_blocks")]
    #[schemars(range(min = 1, max = MAX_BLOCKS))]
    pub blocks: i32,
    /// Numbers of blocks, ascending and each at least 5, after which the run is judged and ends if that
    /// decides: with budgets once Pass or Fail is certain, without once there is a winner or a tie. The
    /// last one stands for `blocks`, which need not be given. Each look is at a stricter level, such that
    /// all of them together are wrong no oftener than one: for `[10, 15, 20]` intervals have 97.7 %
    /// instead of 95 %, and those of ratios and budgets 98.6 % instead of 97.0 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(range(min = MIN_BLOCKS, max = MAX_BLOCKS)), extend("x-kubernetes-list-type" = "atomic"))]
    pub looks: Vec<i32>,
    /// Name of a candidate that takes part twice, the second time under a hidden name (an A/A control).
    /// What it differs from itself by is the noise floor, and a ratio budget closer to 1 is refused. The
    /// second one is neither shown among the candidates nor judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub control: Option<String>,
    /// Seed of the random order of the candidates within the blocks, and of the points of a sweep.
    #[serde(default = "default_seed")]
    #[schemars(range(min = 0))]
    pub seed: i64,
    /// How often a block is tried before the run ends as Invalid: an attempt that something disturbed is
    /// void, and its block is tried again.
    #[serde(default = "default_max_attempts")]
    #[schemars(range(min = 1, max = 20))]
    pub max_attempts: i32,
    /// Length of the idle baseline before and after each trial: the candidate is up and nobody asks it
    /// anything. Net energy is what the window cost beyond it.
    #[serde(default = "default_idle_baseline")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('5s') && duration(self) <= duration('10m')").message("trials.idleBaseline must be from 5s to 10m"))]
    pub idle_baseline: HumanDuration,
}

fn default_blocks() -> i32 {
    10
}

fn default_seed() -> i64 {
    1
}

fn default_max_attempts() -> i32 {
    3
}

fn default_idle_baseline() -> HumanDuration {
    "15s".into()
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            blocks: default_blocks(),
            looks: Vec::new(),
            control: None,
            seed: default_seed(),
            max_attempts: default_max_attempts(),
            idle_baseline: default_idle_baseline(),
        }
    }
}

/// What attributed joules cover. Gross and net joules cover the whole measured node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Boundary {
    #[default]
    CandidateAndDatabase,
    Candidate,
}

/// Which joules decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DecidingFigure {
    Gross,
    Net,
    Attributed,
    NetAttributed,
}

impl DecidingFigure {
    /// As it stands beside a joule.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gross => "gross",
            Self::Net => "net",
            Self::Attributed => "attributed",
            Self::NetAttributed => "net attributed",
        }
    }
}

/// Which joules decide, and whether modelled ones may.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.boundary) || self.boundary == 'CandidateAndDatabase' || (has(self.decidingFigure) && self.decidingFigure in ['Attributed', 'NetAttributed'])").message("energy.boundary Candidate needs energy.decidingFigure Attributed or NetAttributed: the node's own energy can't be measured without its database"))]
pub struct Energy {
    /// What attributed joules cover: the pods of candidate and database, or the `Candidate` alone, which
    /// needs `decidingFigure: Attributed` or `NetAttributed`.
    #[serde(default)]
    pub boundary: Boundary,
    /// Joules per request that decide winner and budgets. `Gross`: all that the node used in the window.
    /// `Net`: that less the power of the idle node. `Attributed`: what the meter gives to the boundary's
    /// pods, a share by CPU time that grows with the square of the node's use. `NetAttributed`: the boundary's share of `Net`
    /// by CPU time above idle. Absent: Gross at `rate: Max`, Net at a fixed rate. If the injector shares the measured node,
    /// `NetAttributed` decides, whatever stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// Whether joules computed from CPU use may decide a budget. They then decide on CPU-seconds
    /// and time in truth, not on measured watts.
    #[serde(default)]
    pub allow_modelled: bool,
    /// Share by which candidates may differ and still be called equal, for example `0.05`: there is a
    /// tie where every ratio is shown to lie within 1/1.05 and 1.05. Without it there is never a tie, for
    /// that no difference was found does not show that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0 && double(self) <= 1.0").message("energy.tieWithin is a share above 0 and up to 1, for example 0.05"))]
    pub tie_within: Option<Decimal>,
}

/// Limits for one candidate; each is met only if the whole interval of the figure keeps to it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("has(self.maxJoulesPerRequest) || has(self.maxMillisecondsPerRequest) || has(self.minRequestsPerSecond) || has(self.maxErrorRatio) || has(self.maxEnergyRatio)").message("a budget needs at least one of maxJoulesPerRequest, maxMillisecondsPerRequest, minRequestsPerSecond, maxErrorRatio and maxEnergyRatio"),
    validation = Rule::new("has(self.maxEnergyRatio) == has(self.against)").message("maxEnergyRatio and against go together: the candidate's figure over that of against"),
)]
pub struct Budget {
    /// Candidate that the limits are for.
    #[schemars(length(min = 1, max = 15))]
    pub candidate: String,
    /// Most joules per successful request, of the deciding figure, for example `0.005`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_joules_per_request: Option<Decimal>,
    /// Longest mean time of a successful request, in milliseconds, for example `20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_milliseconds_per_request: Option<Decimal>,
    /// Fewest successful requests per second, for example `500`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_requests_per_second: Option<Decimal>,
    /// Largest share of requests without an expected answer, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) <= 1.0").message("maxErrorRatio is a share from 0 to 1, for example 0.01"))]
    pub max_error_ratio: Option<Decimal>,
    /// Largest ratio of the candidate's deciding figure to that of `against`, paired by block; for example
    /// `1.05` for at most 5 % more energy than the release before. One that is closer to 1 than the noise
    /// floor of `trials.control` is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("maxEnergyRatio must be above 0, for example 1.05"))]
    pub max_energy_ratio: Option<Decimal>,
    /// The other candidate of `maxEnergyRatio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub against: Option<String>,
}

/// Which nodes take part. Without selectors a ready node with a meter is measured, the first by name; where
/// nodes are labelled `frugality.dev/role=measured`, one of these and no other. Another ready node injects.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.allowSharedNode || !has(self.measuredNodeSelector) || !has(self.injectorNodeSelector) || !('kubernetes.io/hostname' in self.measuredNodeSelector) || !('kubernetes.io/hostname' in self.injectorNodeSelector) || self.measuredNodeSelector['kubernetes.io/hostname'] != self.injectorNodeSelector['kubernetes.io/hostname']").message("placement puts the injector on the measured node: write another kubernetes.io/hostname in injectorNodeSelector, or allowSharedNode: true"))]
pub struct Placement {
    /// Labels of the node that runs candidates (but those with a selector of their own) and database, for
    /// example `kubernetes.io/hostname: pi-1`. It needs a meter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    pub measured_node_selector: BTreeMap<String, String>,
    /// Labels of the node that runs the injector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    pub injector_node_selector: BTreeMap<String, String>,
    /// Whether the injector may run on the measured node where there is no other. Its energy is then
    /// part of the node's: gross and net joules are withheld, and net attributed ones decide.
    #[serde(default)]
    pub allow_shared_node: bool,
}

/// A map of strings with bounded values, as CEL's cost estimate wants it.
pub(super) fn string_map(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 1024 },
    })
}
