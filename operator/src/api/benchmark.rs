//! `FrugalityBenchmark`: the measurement that a user asks for.

// The derive macros repeat the types in a private scope; print columns repeat their types.
#![allow(unreachable_pub, clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    baseline::Baseline,
    batch::Batch,
    budget::Budget,
    candidate::{Candidate, Resources, is_one, one},
    costs::Costs,
    figure::{Boundary, DecidingFigure},
    load::Load,
    parameters::{allowed_rule, refusal},
    quantity::{Decimal, HumanDuration},
    scenario::Scenario,
    schema::string_map,
    status::{FrugalityBenchmarkStatus, NOT_SEEN},
};

/// Fewest blocks for a report. With fewer, a t-interval says next to nothing.
pub const MIN_BLOCKS: i32 = 5;
/// Most blocks of a run.
pub const MAX_BLOCKS: i32 = 50;

/// The servers to compare, with load, data and budgets.
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
    doc = "A measurement of joules per request: candidates, load, budgets and the verdict.",
    validation = Rule::new("self.metadata.name.size() <= 30 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')").message("metadata.name must be a DNS label of at most 30 characters that begins with a letter, because the names of all objects of the benchmark begin with it"),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.columns.verdict", description = "Pass, Reported, Fail, Inconclusive, Invalid or Error; while running the reason of the state"),
    printcolumn(name = "Winner", type_ = "string", json_path = ".status.columns.winner", description = "Candidate that beats every other candidate at every point. Without a winner: tie, depends on load, depends on board, or all candidates that no comparison shows to be beaten"),
    printcolumn(name = "Ratio", type_ = "string", json_path = ".status.columns.ratio", description = "Ratio of the leading candidate's energy to that of the next best candidate that WINNER does not name, with its interval. If WINNER names several candidates, the first of them leads. If it names all: to the second of them. In a sweep: at the point with the closest ratio. With modelled power the interval covers all boards, or those that the stated accuracy allows"),
    printcolumn(name = "Energy/req", type_ = "string", json_path = ".status.columns.energy", description = "Energy per successful request, with the kind of joule; ~ marks modelled energy without an interval. Like all further figures of the row: of the candidate that the message is about, else of the leading candidate. With several candidates, the row's first figure begins with the name of its candidate. The winner's name is left out. In a sweep, the name of the candidate that WINNER names first is left out too. The figure then ends with the point, such as @c16: the message's point, else RATIO's point, else the candidate's cheapest point, which least marks. No kind of joule then means gross"),
    printcolumn(name = "Req/s", type_ = "string", json_path = ".status.columns.rate", description = "Successful requests per second, or cycles, executions or units of work, as ENERGY/REQ shows"),
    printcolumn(name = "ms/req", type_ = "string", json_path = ".status.columns.latency", description = "Mean time of a successful request, cycle or execution; with a unit if it is not milliseconds per request"),
    printcolumn(name = "Power", type_ = "string", json_path = ".status.columns.power", description = "Source of the node's power: metered or modelled"),
    printcolumn(name = "Trials", type_ = "string", json_path = ".status.columns.trials", description = "Valid trials and planned trials; while running with the estimated time left"),
    printcolumn(name = "Candidate", type_ = "string", json_path = ".status.columns.candidate", priority = 1, description = "Candidate of the figures"),
    printcolumn(name = "Point", type_ = "string", json_path = ".status.columns.point", priority = 1, description = "Point of a sweep at which the figures were measured"),
    printcolumn(name = "CPU-ms/req", type_ = "string", json_path = ".status.columns.cpu", priority = 1, description = "CPU milliseconds of the candidate and its database per successful request"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.columns.reason", priority = 1, description = "Reason code of the state"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.measuredNode", priority = 1, description = "Measured nodes"),
    printcolumn(name = "Injector", type_ = "string", json_path = ".status.injectorNode", priority = 1, description = "Node of the injector"),
    printcolumn(name = "Left", type_ = "string", json_path = ".status.columns.left", priority = 1, description = "Estimated time of measuring left"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.budgets) || self.budgets.size() == 0 || self.trials.blocks >= 5").message("budgets need spec.trials.blocks of at least 5: fewer trials give no useful interval"),
    validation = Rule::new("!has(self.budgets) || self.budgets.all(b, self.candidates.exists(c, c.name == b.candidate))").message("every budget must name a candidate of spec.candidates"),
    validation = Rule::new("!has(self.batch) || !has(self.budgets) || self.budgets.all(b, !has(b.atMost) && !has(b.maxEnergyDelayJouleSeconds))").message("atMost and maxEnergyDelayJouleSeconds are for request and scenario: with a batch leave them out"),
    validation = Rule::new("!has(self.budgets) || !self.budgets.exists(b, has(b.loadCurve)) || (has(self.load.sweep) && has(self.load.sweep.levels) && self.load.sweep.levels.size() > 0)").message("a budget's loadCurve needs load.sweep.levels: write for example levels: [100, 80, 60, 40, 20, 10]"),
    validation = Rule::new("!has(self.budgets) || !has(self.load.sweep) || !has(self.load.sweep.of) || self.load.sweep.of != 'Common' || !self.budgets.exists(b, has(b.loadCurve) && (has(b.loadCurve.maxIdleShare) || has(b.loadCurve.minProportionality)))").message("with load.sweep.of: Common, level 100 is not each candidate's highest rate: leave out maxIdleShare and minProportionality, or write of: Own"),
    validation = Rule::new("!has(self.budgets) || self.budgets.all(b, !has(b.against) || (b.against != b.candidate && self.candidates.exists(c, c.name == b.against)))").message("a budget's against must name another candidate of spec.candidates"),
    validation = Rule::new("[has(self.request), has(self.scenario), has(self.batch)].filter(given, given).size() == 1").message("spec needs one of request (path and method of one request, sent again and again), scenario (a script of several requests) or batch (programs that run to completion): write exactly one of them"),
    validation = Rule::new("!has(self.batch) || ((!has(self.load.connections) || self.load.connections == 1) && self.load.rate == 'Max' && !has(self.load.requests) && !has(self.load.sweep))").message("with a batch there is one execution at a time, without a pause: leave out load.connections, load.rate, load.sweep and load.requests (write batch.executions instead)"),
    validation = Rule::new("!has(self.batch) || !has(self.batch.executions) || !has(self.load.duration)").message("batch.executions and load.duration both say how long the window is: leave one of them out"),
    validation = Rule::new("!has(self.batch) || self.candidates.all(c, has(c.command) && c.command.size() > 0)").message("with a batch every candidate needs command, the program that is executed; write for example command: [stockfish, bench]"),
    validation = Rule::new("!has(self.batch) || self.candidates.all(c, (!has(c.replicas) || c.replicas == 1) && (!has(c.peers) || !c.peers))").message("with a batch each candidate is one pod: leave replicas and peers out"),
    validation = Rule::new("has(self.request) || ((!has(self.load.arrivals) || self.load.arrivals != 'Open') && (!has(self.load.catchUp) || self.load.catchUp))").message("load.arrivals: Open and load.catchUp: false are for request: leave them out; a scenario at a load.rate is open anyway"),
    validation = Rule::new("!has(self.scenario) || !has(self.load.requests)").message("load.requests counts single requests: with a scenario write load.duration instead"),
    validation = Rule::new("!has(self.scenario) || !has(self.scenario.rampUp) || duration(self.scenario.rampUp) <= duration(self.load.warmUp)").message("scenario.rampUp is the beginning of load.warmUp: write a longer load.warmUp, or a shorter rampUp"),
    validation = Rule::new("!has(self.database) || self.candidates.all(c, !has(c.measuredNodeSelector))").message("a database runs on one node, together with its candidates: leave out measuredNodeSelector of the candidates, or spec.database"),
    validation = Rule::new("!has(self.trials.control) || self.candidates.exists(c, c.name == self.trials.control) || (has(self.baseline) && self.trials.control == 'baseline')").message("trials.control must name a candidate of spec.candidates, or baseline if spec.baseline is set"),
    validation = Rule::new("!has(self.budgets) || self.load.rate == 'Max' || self.budgets.all(b, !has(b.minRequestsPerSecond) || double(b.minRequestsPerSecond) < double(self.load.rate))").message("a budget's minRequestsPerSecond can't be met at the same load.rate or a lower one: write rate: Max, or a rate above the budget"),
    validation = Rule::new("!has(self.baseline) || self.candidates.all(c, c.name != 'baseline' && c.name != 'anchor')").message("with spec.baseline, the names baseline and anchor belong to the releases before: give the candidate another name, for example new"),
    validation = Rule::new("!has(self.baseline) || (has(self.baseline.candidate) ? self.candidates.exists(c, c.name == self.baseline.candidate) : self.candidates.size() == 1)").message("baseline.candidate must name the candidate of spec.candidates that is compared; it may be left out if there is only one"),
    validation = Rule::new("!has(self.baseline) || self.candidates.all(c, !has(c.measuredNodeSelector))").message("with spec.baseline all candidates run on one node: leave out measuredNodeSelector of the candidates, and write placement.measuredNodeSelector instead"),
    validation = Rule::new("!has(self.baseline) || !has(self.baseline.promote) || self.baseline.promote != 'OnPass' || self.candidates.all(c, (has(self.baseline.candidate) && c.name != self.baseline.candidate) || (c.image.matches('@sha256:[0-9a-f]{64}$') && (!has(c.backends) || c.backends.all(b, b.image.matches('@sha256:[0-9a-f]{64}$')))))").message("with baseline.promote: OnPass the compared candidate's images need a digest, because a tag can be moved to another image: write for example ghcr.io/you/shop@sha256: and 64 digits, or promote: Never"),
    validation = Rule::new("!has(self.baseline) || self.trials.blocks >= 5").message("spec.baseline needs spec.trials.blocks of at least 5: fewer trials give no useful interval"),
    validation = Rule::new("!has(self.energy.tieWithin) || self.candidates.size() > 1").message("energy.tieWithin compares candidates: name a second one in spec.candidates, or leave out energy.tieWithin"),
    validation = Rule::new("!has(self.load.sweep) || (has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * (has(self.load.sweep.levels) && self.load.sweep.levels.size() > 0 ? self.load.sweep.levels.size() + 1 : 1) * (has(self.trials.looks) && self.trials.looks.size() > 0 ? self.trials.looks[self.trials.looks.size() - 1] : self.trials.blocks) <= 999").message("points of load.sweep × trials.blocks (or the last look) are at most 999: ask for fewer points, or fewer blocks"),
    validation = Rule::new("!has(self.load.sweep) || (has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * (has(self.load.sweep.levels) && self.load.sweep.levels.size() > 0 ? self.load.sweep.levels.size() + 1 : 1) * self.candidates.size() <= 128").message("points of load.sweep × candidates are at most 128, or the status would be too large for the API server: write several benchmarks"),
    validation = Rule::new("duration(self.deadline).getSeconds() >= (self.candidates.size() + (has(self.trials.control) ? 1 : 0)) * (has(self.load.sweep) && !has(self.load.sweep.maxErrorRatio) && has(self.load.sweep.connections) && self.load.sweep.connections.size() > 0 ? self.load.sweep.connections.size() : 1) * (has(self.load.sweep) && has(self.load.sweep.replicas) && self.load.sweep.replicas.size() > 0 ? self.load.sweep.replicas.size() : 1) * (has(self.load.sweep) && has(self.load.sweep.levels) && self.load.sweep.levels.size() > 0 ? self.load.sweep.levels.size() + 1 : 1) * (has(self.trials.looks) && self.trials.looks.size() > 0 ? self.trials.looks[0] : self.trials.blocks) * (9 + duration(self.load.warmUp).getSeconds() + 2 * duration(self.trials.idleBaseline).getSeconds() + (has(self.load.duration) ? duration(self.load.duration).getSeconds() : (has(self.load.requests) || (has(self.batch) && has(self.batch.executions)) ? 20 : 60)))").message("spec.deadline is shorter than the trials must take: candidates (and control) × points of a sweep × blocks (or the first look) × (warmUp + duration + 2 × idleBaseline + 9s); write a longer deadline, or ask for fewer points or blocks, or a shorter load.duration"),
)]
pub struct FrugalityBenchmarkSpec {
    /// Candidates to compare, 1 to 16. A single candidate is judged only against its budgets.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub candidates: Vec<Candidate>,
    /// PostgreSQL that all candidates use in turn. The operator creates, fills and checks it; candidates reach it
    /// by `DATABASE_URL`. If absent, candidates get no database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// HTTP request that the injector sends again and again. Write exactly one of `request`, `scenario` and
    /// `batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// Script of several requests that the injector runs again and again, instead of `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<Scenario>,
    /// Programs that run to completion, instead of servers; for example a chess engine's benchmark or a ray
    /// tracer. Each candidate's `command` is executed in its pod, one execution after another, in windows of whole
    /// executions. Figures are per execution. If `work` is set, joules, rates, costs and budgets are per unit of
    /// work. The measured node needs the injector's image too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// Load of each trial: connections, rate, and duration or number of requests. One load, or several in turn.
    #[serde(default)]
    pub load: Load,
    /// Number and order of the trials.
    #[serde(default)]
    pub trials: Trials,
    /// Joules that decide winner and budgets.
    #[serde(default)]
    pub energy: Energy,
    /// Limits that decide between Pass and Fail. Without budgets the verdict is Reported. After an edit the
    /// operator judges the same trials again and measures nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["candidate"]))]
    pub budgets: Vec<Budget>,
    /// Comparison with the release before. Its candidate is measured again in the same blocks, and a
    /// non-inferiority margin decides, like a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Prices and carbon of the measured node and its energy. The status then shows the cost per million requests
    /// next to the joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// Nodes for the servers and the injector.
    #[serde(default)]
    pub placement: Placement,
    /// Longest time from the moment the benchmark gets its nodes to its verdict, at most 14 days. If an edit ends
    /// an attempt of this benchmark, the time starts again. A longer run ends as Error.
    #[serde(default = "default_deadline")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1m') && duration(self) <= duration('336h')").message("spec.deadline must be from 1m to 336h; write for example 6h"))]
    pub deadline: HumanDuration,
    /// Whether the run is paused. Default: false. The operator then starts nothing new and makes the current
    /// attempt void. It removes pods and database, and releases the nodes. When `suspend` is false again, the same
    /// run continues as soon as the nodes are free. Measured blocks are kept, the interrupted block is measured
    /// again, and `deadline` starts again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Number of the run. Write another number, for example `2`, to start another run with the same settings. The
    /// status counts the runs with the same settings (`tries`). They stay in the ledger until a run with other settings
    /// has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub rerun: Option<i64>,
    /// Time from the end of the benchmark to its deletion, ledger included; at least `1m`. Choose a longer time
    /// than the readers of the verdict need. Do not set it if a GitOps tool would create the benchmark again. If
    /// absent, the benchmark is kept. A benchmark whose spec or ledger can't be read is kept, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1m') && duration(self) <= duration('8784h')").message("spec.ttlAfterFinished must be from 1m to 8784h; write for example 24h"))]
    pub ttl_after_finished: Option<HumanDuration>,
    /// Number of runs whose entries stay in the ledger, the current run included, from 1 to 100. Default: 5. An edit of
    /// the load, an image or another setting starts another run. When a run has ended, the operator deletes the
    /// entries of the oldest runs, with their traces. Runs with the settings of a run that stays also stay,
    /// because they are tries of it (`tries`). If the settings of a deleted run come back, they are measured again,
    /// as a first try.
    #[serde(default = "default_runs_to_keep")]
    #[schemars(range(min = 1, max = 100))]
    pub runs_to_keep: i32,
}

fn default_runs_to_keep() -> i32 {
    5
}

fn default_deadline() -> HumanDuration {
    "6h".into()
}

/// PostgreSQL on the measured node, new for each run.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("(has(self.provider) && self.provider == 'Standalone') || !has(self.runAsUser)").message("database.runAsUser goes with provider: Standalone; CloudNativePG runs its images as user 26, so leave it out"),
    validation = Rule::new("!has(self.provider) || self.provider != 'Standalone' || !has(self.instances) || self.instances == 1").message("database.instances goes with CloudNativePG: provider Standalone is one pod, so leave it out"),
    validation = Rule::new("!has(self.provider) || self.provider != 'Standalone' || !has(self.storage) || !has(self.storage.storageClass)").message("database.storage.storageClass goes with CloudNativePG: provider Standalone keeps its data in an emptyDir of the node, so leave it out"),
    validation = Rule::new("!has(self.parameters) || !('max_connections' in self.parameters) || !self.parameters['max_connections'].matches('^[0-9]+$') || int(self.parameters['max_connections']) >= self.poolSize + 10").message("database.parameters.max_connections leaves too few connections: write at least database.poolSize + 10"),
)]
pub struct Database {
    /// Who runs the database. `CloudNativePG` (default): the operator of this name, which must be installed.
    /// `Standalone`: one pod that Frugality makes, for boards that are too small for another operator. Candidates
    /// see no difference: same address, same login, TLS off in both.
    #[serde(default, skip_serializing_if = "Provider::is_default")]
    pub provider: Provider,
    /// Number of CloudNativePG instances: the primary, and replicas from which no candidate reads. All run on the
    /// measured node, and the figures include the cost of replication. Default: 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = 3))]
    pub instances: i32,
    /// PostgreSQL image. Its tag begins with a version ≥ 15. Default: the operator's default image. CloudNativePG
    /// needs an image made for it. `Standalone` accepts every image with PostgreSQL's programs in its `PATH`, such
    /// as `docker.io/library/postgres:17` with `runAsUser: 999`. The chart's `database.allowedImages` must contain
    /// the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new("self.matches(':[0-9]+[^/]*$')").message("database.image needs a tag that begins with a PostgreSQL version, for example ghcr.io/cloudnative-pg/postgresql:17.5"))]
    #[x_kube(validation = Rule::new("!self.matches(':[0-9]+[^/]*$') || self.matches(':(1[5-9]|[2-9][0-9])([^0-9/][^/]*)?$')").message("database.image must be PostgreSQL 15 or later, because earlier versions can't grant the candidates' role the right to the CHECKPOINT before each trial; write for example ghcr.io/cloudnative-pg/postgresql:17.5"))]
    pub image: Option<String>,
    /// User ID of PostgreSQL in the image of a `Standalone` database: 999 in Debian's official image, 70 in
    /// Alpine's. Default: 26, as in CloudNativePG's images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
    /// Volume for the data.
    #[serde(default)]
    pub storage: Storage,
    /// PostgreSQL settings such as `work_mem: 4MB`. They replace the operator's settings: autovacuum and JIT off, 64 MB
    /// of shared buffers, 60 connections, no timed checkpoints. Names are in small letters. CloudNativePG refuses the
    /// settings that it reserves, by name (`ChildRefused`). Allowed are `archive_timeout`, `autovacuum`,
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
    /// Connections that each pod of a candidate may open. Each pod gets the number as `POOL_SIZE`. PostgreSQL's
    /// `max_connections` must be at least the sum over all pods, plus 10.
    #[serde(default = "default_pool_size")]
    #[schemars(range(min = 1, max = 50))]
    pub pool_size: i32,
    /// Data that the database holds before the first trial. The operator keeps a copy as the database `app_seed`.
    /// Every attempt begins with the database `app`, made again from this copy. Changes by earlier candidates are
    /// therefore gone.
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
    /// Size of the volume, for example `1Gi`.
    #[serde(default = "default_storage_size")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+(Mi|Gi|M|G)$"))]
    pub size: String,
    /// Storage class of CloudNativePG's volume. Default: the cluster's default class. `Standalone` has no class:
    /// its data are in an `emptyDir` of the node, limited to `size`.
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

/// Source of the rows. Exactly one of `contacts` and `configMap`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.contacts) != has(self.configMap)").message("database.seed needs exactly one of contacts (rows of the built-in address book) and configMap (your own SQL)"))]
pub struct Seed {
    /// Number of rows of the built-in address book: invented contacts in the table `contacts` (`id`, `uid`,
    /// `vcard`, `etag`, `name`), the same every time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub contacts: Option<i64>,
    /// Your own SQL, from a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSeed>,
}

/// SQL in a ConfigMap of the benchmark's namespace. psql runs it with the application's role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigMapSeed {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the ConfigMap whose value is the SQL, for example `seed.sql`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
    /// Table whose rows are counted and digested after the SQL has run.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z_][a-z0-9_]*$"))]
    pub table: String,
    /// Number of rows that the table must have after the SQL has run. With any other number the run ends
    /// (`SeedFailed`).
    #[schemars(range(min = 1))]
    pub rows: i64,
}

/// HTTP method. HEAD is not possible, because Fortio waits for a body after every answer, until the timeout.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
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
    /// The method as in a request line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The request that the injector sends again and again.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.body) || (has(self.method) && self.method in ['POST', 'PUT', 'PATCH'])").message("request.body goes with method POST, PUT or PATCH"))]
pub struct Request {
    /// HTTP method of the request.
    #[serde(default)]
    pub method: Method,
    /// Path and query, for example `/contacts/{uuid}`. Each `{uuid}` becomes a new UUID in every request.
    /// Everything else in path, headers and body is sent byte for byte.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("self.matches('^/[^[:space:]]*$')").message("request.path is a path without host and blanks that begins with /; write for example /contacts/{uuid}, and %20 for a blank"))]
    pub path: String,
    /// Headers that every request has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    #[x_kube(validation = Rule::new("self.all(h, !(h.name.lowerAscii() in ['connection', 'content-length', 'transfer-encoding']))").message("request.headers must not set Connection, Content-Length or Transfer-Encoding: the injector keeps connections open and knows the body's length; leave them out"))]
    #[x_kube(validation = Rule::new("self.all(h, !h.value.matches('^[ \\t]') && !h.value.matches('[ \\t]$'))").message("a header's value must not begin or end with a blank or tab: HTTP does not transport them (RFC 9110, 5.5); leave them out"))]
    pub headers: Vec<Header>,
    /// Body of a POST, PUT or PATCH. Each `{uuid}` becomes a new UUID in every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65_536))]
    pub body: Option<String>,
    /// Status codes that count as success, from 200 to 299. Default: 200. Fortio treats every other code as a
    /// failure and reconnects, and the figures would include the reconnects.
    #[serde(default = "default_expected_status")]
    #[schemars(length(min = 1, max = 8), inner(range(min = 200, max = 299)), extend("x-kubernetes-list-type" = "set"))]
    pub expected_status: Vec<i32>,
    /// Whether candidates are compared even if the mean size of their answers differs by more than 1 %. Set it,
    /// for example, if the smaller answer is the improvement. Default: false. After a change the operator judges
    /// the same trials again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub responses_may_differ: bool,
    /// Whether candidates are compared even if their requests differ by more than a tenth in the number of
    /// database transactions. Set it, for example, if fewer queries are the improvement. Default: false. After a
    /// change the operator judges the same trials again.
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
    /// Name of the header, for example `Accept`.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[-A-Za-z0-9_]+$"))]
    pub name: String,
    /// Value of the header, for example `application/json`.
    #[schemars(length(max = 2048), regex(pattern = r"^[^\r\n]*$"))]
    pub value: String,
}

/// How often each candidate is measured, and in which order.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.looks) || [1, 2, 3, 4, 5, 6, 7].all(i, i >= self.looks.size() || self.looks[i - 1] < self.looks[i])").message("trials.looks must ascend, for example [10, 15, 20]"),
    validation = Rule::new("!has(self.looks) || self.looks.size() == 0 || self.blocks == 10 || self.looks[self.looks.size() - 1] == self.blocks").message("trials.looks must end with trials.blocks: leave blocks out, or make it the last look"),
)]
pub struct Trials {
    /// Number of passes over all candidates; each pass gives one trial per candidate. Fewer than 5 give no report.
    /// More give narrower intervals.
    #[serde(default = "default_blocks")]
    #[schemars(range(min = 1, max = MAX_BLOCKS))]
    pub blocks: i32,
    /// Numbers of blocks, ascending and each at least 5, after which the run is judged. The run ends at the first
    /// look that decides. With budgets a look decides if Pass or Fail is certain; without budgets, if there is a
    /// winner or a tie. The last number replaces `blocks`, which may be absent. Each look has a stricter level,
    /// and all looks together are wrong no more often than a single look. For `[10, 15, 20]`, intervals have 97.7
    /// % instead of 95 %, and intervals of ratios and budgets have 98.6 % instead of 97.0 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(range(min = MIN_BLOCKS, max = MAX_BLOCKS)), extend("x-kubernetes-list-type" = "atomic"))]
    pub looks: Vec<i32>,
    /// Name of a candidate that takes part twice, the second time under a hidden name (an A/A control). The
    /// difference between the two is the noise floor, and a ratio budget closer to 1 is refused. The hidden
    /// candidate is not listed among the candidates and is not judged. With `spec.baseline` it may be `baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub control: Option<String>,
    /// Seed of the random order of the candidates within blocks, and of the points of a sweep.
    #[serde(default = "default_seed")]
    #[schemars(range(min = 0))]
    pub seed: i64,
    /// Number of attempts at a block before the run ends as Invalid. If something disturbs an attempt, the attempt
    /// is void, and its block is tried again.
    #[serde(default = "default_max_attempts")]
    #[schemars(range(min = 1, max = 20))]
    pub max_attempts: i32,
    /// Length of the idle baseline before and after each trial. The candidate is up and gets no requests. Net
    /// energy is the energy of the window minus this baseline.
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

/// Which joules decide, and whether modelled joules may decide.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("!has(self.boundary) || self.boundary == 'CandidateAndDatabase' || (has(self.decidingFigure) && self.decidingFigure in ['Attributed', 'NetAttributed'])").message("energy.boundary Candidate needs energy.decidingFigure Attributed or NetAttributed: the node's own energy can't be measured without its database"))]
pub struct Energy {
    /// Pods that attributed joules cover: the pods of candidate and database, or of the `Candidate` alone.
    /// `Candidate` needs `decidingFigure: Attributed` or `NetAttributed`.
    #[serde(default)]
    pub boundary: Boundary,
    /// Joules per request that decide winner and budgets. `Gross`: all energy of the node in the window. `Net`:
    /// gross minus the power of the idle node. `Attributed`: the meter's share for the boundary's pods. This share
    /// is by CPU time and grows with the square of the node's use. `NetAttributed`: the boundary's share of `Net`
    /// by CPU time above idle. Default: Gross at `rate: Max`, Net at a fixed rate. If the injector shares the
    /// measured node, `NetAttributed` decides even if this field has another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deciding_figure: Option<DecidingFigure>,
    /// Whether joules computed from CPU use may decide a budget. Such joules depend on CPU-seconds and time only,
    /// not on measured watts.
    #[serde(default)]
    pub allow_modelled: bool,
    /// Share by which candidates may differ and still count as equal, for example `0.05`. There is a tie if every
    /// ratio is shown to lie within 1/1.05 and 1.05. If absent, there is never a tie, because finding no
    /// difference does not prove equality.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0 && double(self) <= 1.0").message("energy.tieWithin is a share above 0 and up to 1, for example 0.05"))]
    pub tie_within: Option<Decimal>,
}

/// Nodes that take part. Without selectors the operator measures the first ready node, by name, that has a meter.
/// If nodes have the label `frugality.dev/role=measured`, it measures only one of these. The injector runs on
/// another ready node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("self.allowSharedNode || !has(self.measuredNodeSelector) || !has(self.injectorNodeSelector) || !('kubernetes.io/hostname' in self.measuredNodeSelector) || !('kubernetes.io/hostname' in self.injectorNodeSelector) || self.measuredNodeSelector['kubernetes.io/hostname'] != self.injectorNodeSelector['kubernetes.io/hostname']").message("placement puts the injector on the measured node: write another kubernetes.io/hostname in injectorNodeSelector, or allowSharedNode: true"))]
pub struct Placement {
    /// Labels of the node that runs the database and all candidates without their own selector, for example
    /// `kubernetes.io/hostname: pi-1`. The node needs a meter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    pub measured_node_selector: BTreeMap<String, String>,
    /// Labels of the node that runs the injector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16), schema_with = "string_map")]
    pub injector_node_selector: BTreeMap<String, String>,
    /// Whether the injector may run on the measured node if there is no other node. The injector's energy is then
    /// part of the node's energy. Gross and net joules are withheld, and net attributed joules decide.
    #[serde(default)]
    pub allow_shared_node: bool,
}

impl FrugalityBenchmark {
    /// The status, if an operator wrote it.
    #[must_use]
    pub fn current_status(&self) -> Option<&FrugalityBenchmarkStatus> {
        let written =
            |status: &&FrugalityBenchmarkStatus| status.observed_generation != Some(NOT_SEEN);
        self.status.as_ref().filter(written)
    }

    /// Whether the current spec has its final result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.current_status().is_some_and(|status| {
            status.observed_generation == self.metadata.generation && status.end().is_some()
        })
    }
}
